// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* function.c: functions, libraries and the linker. */
#include <stdio.h>

#include "sg.h"

CUresult sg_func_check(CUfunction f)
{
    return sg_is(f, SG_FUNC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Settings that have no effect here. */
#define ACCEPT(name, ...)                                                        \
    SG_API CUresult name(CUfunction f, __VA_ARGS__)                              \
    {                                                                            \
        SG_ENTER();                                                              \
        (void)v;                                                                 \
        return sg_func_check(f);                                                 \
    }
ACCEPT(cuFuncSetCacheConfig, CUfunc_cache v)
ACCEPT(cuFuncSetSharedMemConfig, CUsharedconfig v)

SG_API CUresult cuKernelSetCacheConfig(CUkernel k, CUfunc_cache config SG_UNUSED, CUdevice dev)
{
    SG_ENTER();
    return sg_dev(dev) ? sg_func_check((CUfunction)k) : CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuFuncGetModule(CUmodule *m, CUfunction f)
{
    SG_ENTER();
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    *m = f->module;
    return CUDA_SUCCESS;
}

SG_API CUresult cuFuncGetName(const char **name, CUfunction f)
{
    SG_ENTER();
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = f->name;
    return CUDA_SUCCESS;
}

SG_API CUresult cuKernelGetName(const char **name, CUkernel k)
{
    return cuFuncGetName(name, (CUfunction)k);
}

SG_API CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction f)
{
    SG_ENTER();
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return sg_func_check(f);
}

SG_API CUresult cuFuncLoad(CUfunction f)
{
    SG_ENTER();
    return sg_func_check(f);
}

/* ---- libraries: modules that belong to no context ------------------------------------- */

SG_API CUresult cuLibraryLoadData(CUlibrary *pl, const void *code, CUjit_option *jo SG_UNUSED, void **jv SG_UNUSED,
                                  unsigned int nj SG_UNUSED, CUlibraryOption *lo SG_UNUSED, void **lv SG_UNUSED,
                                  unsigned int nl SG_UNUSED)
{
    SG_ENTER();
    if (!pl || !code)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_module_new(NULL, true, code, (CUmodule *)pl);
}

SG_API CUresult cuLibraryLoadFromFile(CUlibrary *pl, const char *path, CUjit_option *jo SG_UNUSED, void **jv SG_UNUSED,
                                      unsigned int nj SG_UNUSED, CUlibraryOption *lo SG_UNUSED, void **lv SG_UNUSED,
                                      unsigned int nl SG_UNUSED)
{
    SG_ENTER();
    if (!pl || !path)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_module_from_file(NULL, true, path, (CUmodule *)pl);
}

static CUmodule library(CUlibrary l)
{
    CUmodule m = (CUmodule)l;

    return sg_is(m, SG_MODULE) ? m : NULL;
}

SG_API CUresult cuLibraryUnload(CUlibrary l)
{
    SG_ENTER();
    if (!library(l))
        return CUDA_ERROR_INVALID_HANDLE;
    sg_module_free(library(l));
    return CUDA_SUCCESS;
}

SG_API CUresult cuLibraryGetKernel(CUkernel *pk, CUlibrary l, const char *name)
{
    CUfunction f;

    SG_ENTER();
    if (!pk || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!library(l))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!*name || sg_module_lacks(library(l), name))
        return CUDA_ERROR_NOT_FOUND;
    sg_lock();
    f = sg_module_function(library(l), name, strlen(name));
    sg_unlock();
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pk = (CUkernel)f;
    return CUDA_SUCCESS;
}

SG_API CUresult cuLibraryGetKernelCount(unsigned int *n, CUlibrary l)
{
    return library(l) ? cuModuleGetFunctionCount(n, library(l)) : CUDA_ERROR_INVALID_HANDLE;
}

SG_API CUresult cuLibraryEnumerateKernels(CUkernel *v, unsigned int n, CUlibrary l)
{
    return library(l) ? cuModuleEnumerateFunctions((CUfunction *)v, n, library(l)) : CUDA_ERROR_INVALID_HANDLE;
}

SG_API CUresult cuLibraryGetModule(CUmodule *pm, CUlibrary l)
{
    SG_ENTER_CTX(c);
    (void)c;
    if (!pm || !library(l))
        return CUDA_ERROR_INVALID_HANDLE;
    *pm = library(l);
    return CUDA_SUCCESS;
}

SG_API CUresult cuLibraryGetGlobal(CUdeviceptr *p, size_t *size, CUlibrary l, const char *name)
{
    SG_ENTER_CTX(c);
    if (!name || !library(l))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_module_global(library(l), c, name, p, size);
}

/* Variables and functions that host and device share under one address: PTX that
 * declares none has none; those of other images are not known. */
static CUresult shared_symbol(const void *out, CUlibrary l, const char *name, const char *attribute)
{
    SG_ENTER();
    if (!out || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!library(l))
        return CUDA_ERROR_INVALID_HANDLE;
    return library(l)->text && !strstr(library(l)->text, attribute) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_NOT_SUPPORTED;
}

SG_API CUresult cuLibraryGetManaged(CUdeviceptr *p, size_t *size, CUlibrary l, const char *name)
{
    return shared_symbol(p ? (void *)p : size, l, name, ".managed");
}

SG_API CUresult cuLibraryGetUnifiedFunction(void **fn, CUlibrary l, const char *name)
{
    return shared_symbol(fn, l, name, ".unified");
}

SG_API CUresult cuKernelGetFunction(CUfunction *pf, CUkernel k)
{
    SG_ENTER_CTX(c);
    (void)c;
    if (!pf || sg_func_check((CUfunction)k) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    *pf = (CUfunction)k;
    return CUDA_SUCCESS;
}

SG_API CUresult cuKernelGetLibrary(CUlibrary *pl, CUkernel k)
{
    CUfunction f = (CUfunction)k;

    SG_ENTER();
    if (!pl || sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    *pl = (CUlibrary)f->module;
    return CUDA_SUCCESS;
}

/* ---- linker: the output is the input, so that names can be found in it ------------------ */

struct CUlinkState_st {
    uint32_t magic;
    char *data;
    size_t n;
};

static CUresult link_create(CUlinkState *ps)
{
    SG_ENTER_CTX(c);
    (void)c;
    if (!ps)
        return CUDA_ERROR_INVALID_VALUE;
    *ps = sg_object_new(sizeof(**ps));
    if (!*ps)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*ps)->magic = SG_LINK;
    return CUDA_SUCCESS;
}

static CUresult link_add(CUlinkState s, const void *data, size_t n)
{
    char *d;

    SG_ENTER();
    if (!sg_is(s, SG_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!data || !n || n > SIZE_MAX - s->n - 16)
        return CUDA_ERROR_INVALID_VALUE;
    d = realloc(s->data, s->n + n + 16);
    if (!d)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(d + s->n, data, n);
    s->data = d;
    s->n += n;
    if (!d[s->n - 1])
        s->n--; /* texts are joined without the zero between them */
    memset(d + s->n, 0, 16);
    return CUDA_SUCCESS;
}

static CUresult link_file(CUlinkState s, const char *path)
{
    FILE *f = path ? fopen(path, "re") : NULL;
    CUresult r = CUDA_SUCCESS;
    char buf[4096];
    size_t n;

    if (!f)
        return CUDA_ERROR_FILE_NOT_FOUND;
    while (r == CUDA_SUCCESS && (n = fread(buf, 1, sizeof(buf), f)) > 0)
        r = link_add(s, buf, n);
    fclose(f);
    return r;
}

#define LINK_FORMS(suffix)                                                                                          \
    SG_API CUresult cuLinkCreate##suffix(unsigned int n SG_UNUSED, CUjit_option *o SG_UNUSED, void **v SG_UNUSED,   \
                                         CUlinkState *ps)                                                           \
    {                                                                                                               \
        return link_create(ps);                                                                                     \
    }                                                                                                               \
    SG_API CUresult cuLinkAddData##suffix(CUlinkState s, CUjitInputType t SG_UNUSED, void *d, size_t n,             \
                                          const char *name SG_UNUSED, unsigned int k SG_UNUSED,                     \
                                          CUjit_option *o SG_UNUSED, void **v SG_UNUSED)                            \
    {                                                                                                               \
        return link_add(s, d, n);                                                                                   \
    }                                                                                                               \
    SG_API CUresult cuLinkAddFile##suffix(CUlinkState s, CUjitInputType t SG_UNUSED, const char *path,              \
                                          unsigned int k SG_UNUSED, CUjit_option *o SG_UNUSED, void **v SG_UNUSED)  \
    {                                                                                                               \
        return link_file(s, path);                                                                                  \
    }
LINK_FORMS()
LINK_FORMS(_v2)

SG_API CUresult cuLinkComplete(CUlinkState s, void **cubin, size_t *n)
{
    SG_ENTER();
    if (!sg_is(s, SG_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!s->data || !cubin)
        return CUDA_ERROR_INVALID_VALUE;
    *cubin = s->data;
    if (n)
        *n = s->n + 1;
    return CUDA_SUCCESS;
}

SG_API CUresult cuLinkDestroy(CUlinkState s)
{
    SG_ENTER();
    if (!sg_is(s, SG_LINK))
        return CUDA_ERROR_INVALID_HANDLE;
    s->magic = 0;
    free(s->data);
    sg_object_free(s, sizeof(*s));
    return CUDA_SUCCESS;
}
