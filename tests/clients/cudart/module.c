// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * module.c: what a program registers before main: fat binaries, and the names of
 * their kernels and variables by the host's addresses. Nothing is loaded before it
 * is used; then a fat binary becomes one of the driver's libraries, which belongs to
 * no context, so that one handle serves all devices.
 */
#include <pthread.h>

#include "rt.h"

enum { BUCKETS = 1 << 16 }; /* a large framework registers about 10^5 kernels */

struct image {
    const void *data; /* the fat binary, in the program's own memory */
    CUlibrary library;
    struct symbol *symbols;
};

struct symbol {
    const void *host;
    const char *name; /* the program's own memory */
    struct image *image;
    CUkernel kernel;
    bool variable;
    struct symbol *next;         /* in the bucket */
    struct symbol *next_of_image;
};

/* What the compiler puts into a program. */
struct wrapper {
    int magic, version;
    const void *data, *more;
};
enum { WRAPPER_MAGIC = 0x466243b1 };

static struct symbol *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct symbol **bucket(const void *p)
{
    return &table[(uintptr_t)p / 8 * 0x9e3779b97f4a7c15u >> 48];
}

/* The lock is held. */
static struct symbol *find(const void *host)
{
    struct symbol *s;

    for (s = *bucket(host); s && s->host != host; s = s->next)
        ;
    return s;
}

static void add(struct image *image, const void *host, const char *name, bool variable)
{
    struct symbol *s = image ? calloc(1, sizeof(*s)) : NULL;

    if (!s)
        return;
    s->host = host;
    s->name = name;
    s->image = image;
    s->variable = variable;
    pthread_mutex_lock(&lock);
    s->next_of_image = image->symbols;
    image->symbols = s;
    s->next = *bucket(host);
    *bucket(host) = s;
    pthread_mutex_unlock(&lock);
}

RT_API void **__cudaRegisterFatBinary(const struct wrapper *w);
RT_API void **__cudaRegisterFatBinary(const struct wrapper *w)
{
    struct image *i = calloc(1, sizeof(*i));

    if (i && w && w->magic == WRAPPER_MAGIC)
        i->data = w->data;
    return (void **)i;
}

RT_API void __cudaRegisterFatBinaryEnd(void **handle);
RT_API void __cudaRegisterFatBinaryEnd(void **handle RT_UNUSED)
{
}

RT_API char __cudaInitModule(void **handle);
RT_API char __cudaInitModule(void **handle RT_UNUSED)
{
    return 1;
}

/* A library that is closed takes its names along. The driver's handle is left: at the
 * end of the process the driver may be gone first. */
RT_API void __cudaUnregisterFatBinary(void **handle);
RT_API void __cudaUnregisterFatBinary(void **handle)
{
    struct image *i = (struct image *)handle;

    if (!i)
        return;
    pthread_mutex_lock(&lock);
    while (i->symbols) {
        struct symbol *s = i->symbols, **p = bucket(s->host);

        while (*p && *p != s)
            p = &(*p)->next;
        if (*p)
            *p = s->next;
        i->symbols = s->next_of_image;
        free(s);
    }
    pthread_mutex_unlock(&lock);
    free(i);
}

RT_API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int threads, void *tid,
                                   void *bid, void *block, void *grid, int *warp);
RT_API void __cudaRegisterFunction(void **handle, const char *host, char *device RT_UNUSED, const char *name,
                                   int threads RT_UNUSED, void *tid RT_UNUSED, void *bid RT_UNUSED, void *block RT_UNUSED,
                                   void *grid RT_UNUSED, int *warp RT_UNUSED)
{
    add((struct image *)handle, host, name, false);
}

RT_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                              int constant, int global);
RT_API void __cudaRegisterVar(void **handle, char *host, char *device RT_UNUSED, const char *name, int external RT_UNUSED,
                              size_t size RT_UNUSED, int constant RT_UNUSED, int global RT_UNUSED)
{
    add((struct image *)handle, host, name, true);
}

/* ---- looking up -------------------------------------------------------------------- */

/* The lock is held. */
static cudaError_t load(struct image *i)
{
    if (i->library)
        return RT_OK;
    if (!i->data)
        return RT_INVALID_DEVICE_FUNCTION;
    return (cudaError_t)rt_drv.cuLibraryLoadData(&i->library, i->data, NULL, NULL, 0, NULL, NULL, 0);
}

cudaError_t rt_kernel(const void *func, CUkernel *ret)
{
    cudaError_t e = rt_start();
    struct symbol *s;

    if (e != RT_OK)
        return e;
    if (!func)
        return RT_INVALID_DEVICE_FUNCTION;
    pthread_mutex_lock(&lock);
    s = find(func);
    if (!s) {
        *ret = (CUkernel)(uintptr_t)func; /* a handle from cudaGetKernel or cudaLibraryGetKernel */
    } else if (s->variable) {
        e = RT_INVALID_DEVICE_FUNCTION;
    } else {
        if (!s->kernel)
            e = load(s->image);
        if (e == RT_OK && !s->kernel)
            e = (cudaError_t)rt_drv.cuLibraryGetKernel(&s->kernel, s->image->library, s->name);
        if (e == RT_SYMBOL_NOT_FOUND)
            e = RT_INVALID_DEVICE_FUNCTION;
        *ret = s->kernel;
    }
    pthread_mutex_unlock(&lock);
    return e;
}

cudaError_t rt_variable(const void *symbol, CUdeviceptr *ret, size_t *ret_bytes)
{
    cudaError_t e = RT_INVALID_SYMBOL;
    struct symbol *s;

    pthread_mutex_lock(&lock);
    s = find(symbol);
    if (s && s->variable) {
        e = load(s->image);
        if (e == RT_OK)
            e = (cudaError_t)rt_drv.cuLibraryGetGlobal(ret, ret_bytes, s->image->library, s->name);
    }
    pthread_mutex_unlock(&lock);
    return e;
}

RT(__cudaGetKernel, CUkernel *k, const void *func)
{
    return rt_set(k ? rt_kernel(func, k) : RT_INVALID_VALUE);
}

RT(cudaGetKernel, CUkernel *k, const void *func)
{
    return rt_set(k ? rt_kernel(func, k) : RT_INVALID_VALUE);
}

RT(cudaGetFuncBySymbol, CUfunction *f, const void *func)
{
    CUkernel k;

    RT_ENTER();
    RT_TRY(f ? rt_kernel(func, &k) : RT_INVALID_VALUE);
    return RT_DRV(cuKernelGetFunction(f, k));
}

RT(cudaGetSymbolAddress, void **p, const void *symbol)
{
    CUdeviceptr d;
    size_t size;

    RT_ENTER();
    RT_TRY(p ? rt_variable(symbol, &d, &size) : RT_INVALID_VALUE);
    *p = rt_addr(d);
    return RT_OK;
}

RT(cudaGetSymbolSize, size_t *size, const void *symbol)
{
    CUdeviceptr d;

    RT_ENTER();
    return rt_set(size ? rt_variable(symbol, &d, size) : RT_INVALID_VALUE);
}

RT_PASS_BARE(cudaLibraryLoadData, cuLibraryLoadData(l, code, jo, jv, nj, lo, lv, nl), CUlibrary *l, const void *code,
             CUjit_option *jo, void **jv, unsigned int nj, CUlibraryOption *lo, void **lv, unsigned int nl)
RT_PASS_BARE(cudaLibraryLoadFromFile, cuLibraryLoadFromFile(l, path, jo, jv, nj, lo, lv, nl), CUlibrary *l, const char *path,
             CUjit_option *jo, void **jv, unsigned int nj, CUlibraryOption *lo, void **lv, unsigned int nl)
RT_PASS_BARE(cudaLibraryUnload, cuLibraryUnload(l), CUlibrary l)
RT_PASS_BARE(cudaLibraryGetKernel, cuLibraryGetKernel(k, l, name), CUkernel *k, CUlibrary l, const char *name)
RT_PASS_BARE(cudaLibraryGetKernelCount, cuLibraryGetKernelCount(n, l), unsigned int *n, CUlibrary l)
RT_PASS_BARE(cudaLibraryEnumerateKernels, cuLibraryEnumerateKernels(v, n, l), CUkernel *v, unsigned int n, CUlibrary l)
RT_PASS(cudaLibraryGetGlobal, cuLibraryGetGlobal((CUdeviceptr *)p, n, l, name), void **p, size_t *n, CUlibrary l,
        const char *name)
RT_PASS(cudaLibraryGetManaged, cuLibraryGetManaged((CUdeviceptr *)p, n, l, name), void **p, size_t *n, CUlibrary l,
        const char *name)
RT_PASS(cudaLibraryGetUnifiedFunction, cuLibraryGetUnifiedFunction(p, l, name), void **p, CUlibrary l, const char *name)
