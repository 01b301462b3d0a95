// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * module.c: modules and functions. Code is never looked at, let alone run: any
 * image loads and any function name exists in it. Only PTX text is searched for
 * the names of its kernels, for calls that list them.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sg.h"

#define GLOBAL_BYTES 65536u /* what a global variable of unknown size gets */

struct sg_global {
    char *name;
    CUdeviceptr p;
    struct sg_global *next;
};

static CUmodule all; /* under the lock */

static unsigned hash(const char *s, size_t n)
{
    unsigned h = 5381;

    while (n--)
        h = h * 33 + (unsigned char)*s++;
    return h % SG_LEN(((CUmodule)0)->table);
}

bool sg_module_lacks(CUmodule m, const char *name)
{
    if (!m->text || !m->nentries)
        return false;
    for (size_t i = 0; i < m->nentries; i++) {
        if (!strcmp(m->entries[i]->name, name))
            return false;
    }
    return true;
}

CUfunction sg_module_function(CUmodule m, const char *name, size_t len)
{
    unsigned h = hash(name, len);
    CUfunction f;

    for (f = m->table[h]; f; f = f->next) {
        if (!strncmp(f->name, name, len) && !f->name[len])
            return f;
    }
    f = sg_object_new(sizeof(*f));
    if (!f)
        return NULL;
    f->name = malloc(len + 1);
    if (!f->name) {
        sg_object_free(f, sizeof(*f));
        return NULL;
    }
    memcpy(f->name, name, len);
    f->name[len] = 0;
    f->magic = SG_FUNC;
    f->number = UINT32_MAX;
    f->module = m;
    f->carveout = -1;
    f->facts.registers = 32;
    if (m->text)
        sg_text_facts(m->text, f);
    f->block[0] = f->block[1] = f->block[2] = 1;
    f->next = m->table[h];
    m->table[h] = f;
    return f;
}

/* Bytes of ".local .align N .bW NAME[COUNT]" from p to the next kernel. */
static size_t local_of(const char *p)
{
    const char *end = strstr(p, ".entry");
    size_t sum = 0;

    while ((p = strstr(p, ".local")) && (!end || p < end)) {
        const char *semicolon = strchr(p, ';'), *type = strstr(p, " .b"), *count = strchr(p, '[');

        if (type && count && semicolon && type < count && count < semicolon) {
            unsigned long bits = strtoul(type + 3, NULL, 10), n = strtoul(count + 1, NULL, 10);

            if (bits <= 128 && n <= 1u << 20)
                sum += bits / 8 * n;
        }
        p += 6;
    }
    return sum;
}

/* Finds ".entry NAME" in PTX. The lock is held. */
static CUresult find_entries(CUmodule m)
{
    const char *p = m->text;

    while (p && (p = strstr(p, ".entry"))) {
        size_t len = 0;
        CUfunction *v;

        p += 6;
        while (isspace((unsigned char)*p))
            p++;
        while (isalnum((unsigned char)p[len]) || p[len] == '_' || p[len] == '$')
            len++;
        if (!len)
            continue;
        v = realloc(m->entries, (m->nentries + 1) * sizeof(*v));
        if (!v)
            return CUDA_ERROR_OUT_OF_MEMORY;
        m->entries = v;
        v[m->nentries] = sg_module_function(m, p, len);
        if (!v[m->nentries])
            return CUDA_ERROR_OUT_OF_MEMORY;
        m->nentries++;
        p += len;
        v[m->nentries - 1]->facts.local = (int)local_of(p);
    }
    return CUDA_SUCCESS;
}

static void release(CUmodule m)
{
    CUmodule *p;

    for (p = &all; *p && *p != m; p = &(*p)->next)
        ;
    if (*p)
        *p = m->next;
    for (unsigned i = 0; i < SG_LEN(m->table); i++) {
        while (m->table[i]) {
            CUfunction f = m->table[i];

            m->table[i] = f->next;
            f->magic = 0;
            free(f->name);
            free(f->params);
            sg_object_free(f, sizeof(*f));
        }
    }
    while (m->globals) {
        struct sg_global *g = m->globals;
        struct sg_mem *b = sg_mem_find((uintptr_t)g->p, 1);

        if (b && b->base == g->p && b->kind == SG_MEM_MODULE)
            sg_mem_remove(b);
        m->globals = g->next;
        munmap((void *)(uintptr_t)g->p, GLOBAL_BYTES);
        free(g->name);
        free(g);
    }
    for (unsigned i = 0; i < SG_LEN(m->charges); i++)
        sg_device_give(m->charges[i]);
    sg_texref_free_module(m);
    free(m->entries);
    free(m->text);
    m->magic = 0;
    sg_object_free(m, sizeof(*m));
}

/* Makes the next launch of each function a first one. */
static void renumber(CUmodule m)
{
    for (unsigned i = 0; i < SG_LEN(m->table); i++) {
        for (CUfunction f = m->table[i]; f; f = f->next)
            __atomic_store_n(&f->number, UINT32_MAX, __ATOMIC_RELAXED);
    }
}

/* The lock is held. */
void sg_module_adopt(CUcontext from, CUcontext to)
{
    for (CUmodule m = all; m; m = m->next) {
        if (m->ctx == from)
            m->ctx = to;
    }
}

/* The lock is held. */
void sg_module_free_context(CUcontext ctx)
{
    for (CUmodule m = all, next; m; m = next) {
        next = m->next;
        if (m->ctx == ctx && !m->library) {
            release(m);
        } else if (m->library && m->charges[ctx->dev]) {
            /* Its code goes with the context, and is loaded again with the next one. */
            sg_device_give(m->charges[ctx->dev]);
            m->charges[ctx->dev] = 0;
            renumber(m);
        }
    }
}

void sg_module_renumber(CUcontext ctx)
{
    for (CUmodule m = all; m; m = m->next) {
        if (m->ctx == ctx || m->library)
            renumber(m);
    }
}

/* Makes a module or library of an image. */
CUresult sg_module_new(CUcontext ctx, bool library, const void *image, CUmodule *ret)
{
    CUmodule m = sg_object_new(sizeof(*m));
    CUresult r = CUDA_SUCCESS;

    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->magic = SG_MODULE;
    m->ctx = ctx;
    m->library = library;
    /* PTX is the only image that is text; it starts with a comment or a directive. */
    if (!memcmp(image, "//", 2) || *(const char *)image == '.' || isspace(*(const unsigned char *)image)) {
        m->text = strdup(image);
        if (!m->text)
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->image = m->text ? strlen(m->text) : sg_image_bytes(image);
    if (r == CUDA_SUCCESS)
        r = sg_grow_load(m);
    sg_lock();
    m->next = all;
    all = m;
    if (r == CUDA_SUCCESS)
        r = m->text ? find_entries(m) : sg_image_read(m, image);
    if (r != CUDA_SUCCESS)
        release(m);
    sg_unlock();
    if (r == CUDA_SUCCESS)
        *ret = m;
    return r;
}

CUresult sg_module_from_file(CUcontext ctx, bool library, const char *path, CUmodule *ret)
{
    CUresult r = CUDA_ERROR_FILE_NOT_FOUND;
    FILE *f = fopen(path, "re");
    char *image = NULL;
    long n;

    if (!f)
        return r;
    if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET)) {
        image = calloc(1, (size_t)n + 2);
        if (image && fread(image, 1, (size_t)n, f) == (size_t)n)
            r = sg_module_new(ctx, library, image, ret);
        else
            r = image ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    fclose(f);
    free(image);
    return r;
}

void sg_module_free(CUmodule m)
{
    sg_lock();
    release(m);
    sg_unlock();
}

static CUresult load(CUmodule *pm, const void *image)
{
    SG_ENTER_CTX(c);
    if (!pm || !image)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_module_new(c, false, image, pm);
}

SG_API CUresult cuModuleLoadData(CUmodule *pm, const void *image)
{
    return load(pm, image);
}

SG_API CUresult cuModuleLoadDataEx(CUmodule *pm, const void *image, unsigned int n SG_UNUSED, CUjit_option *o SG_UNUSED,
                                   void **v SG_UNUSED)
{
    return load(pm, image);
}

SG_API CUresult cuModuleLoadFatBinary(CUmodule *pm, const void *image)
{
    return load(pm, image);
}

SG_API CUresult cuModuleLoad(CUmodule *pm, const char *path)
{
    SG_ENTER_CTX(c);
    if (!pm || !path)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_module_from_file(c, false, path, pm);
}

SG_API CUresult cuModuleUnload(CUmodule m)
{
    SG_ENTER_CTX(c);
    if (!sg_is(m, SG_MODULE) || m->library)
        return CUDA_ERROR_INVALID_HANDLE;
    sg_ctx_wait(c);
    sg_module_free(m);
    return CUDA_SUCCESS;
}

SG_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    SG_ENTER();
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

SG_API CUresult cuModuleGetFunction(CUfunction *pf, CUmodule m, const char *name)
{
    CUfunction f;

    SG_ENTER_CTX(c);
    (void)c;
    if (!pf || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(m, SG_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!*name || sg_module_lacks(m, name))
        return CUDA_ERROR_NOT_FOUND;
    sg_lock();
    f = sg_module_function(m, name, strlen(name));
    sg_unlock();
    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pf = f;
    return CUDA_SUCCESS;
}

SG_API CUresult cuModuleGetFunctionCount(unsigned int *n, CUmodule m)
{
    SG_ENTER();
    if (!n || !sg_is(m, SG_MODULE))
        return CUDA_ERROR_INVALID_VALUE;
    *n = (unsigned)m->nentries;
    return CUDA_SUCCESS;
}

SG_API CUresult cuModuleEnumerateFunctions(CUfunction *v, unsigned int n, CUmodule m)
{
    SG_ENTER();
    if (!v || !sg_is(m, SG_MODULE))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n && i < m->nentries; i++)
        v[i] = m->entries[i];
    return CUDA_SUCCESS;
}

/* A global variable: zeroed host memory that counts as the module's. */
CUresult sg_module_global(CUmodule m, CUcontext ctx, const char *name, CUdeviceptr *p, size_t *size)
{
    struct sg_global *g;
    CUresult r = CUDA_SUCCESS;

    if (!*name)
        return CUDA_ERROR_NOT_FOUND;
    r = sg_grow_code(m);
    if (r != CUDA_SUCCESS)
        return r;
    sg_lock();
    for (g = m->globals; g && strcmp(g->name, name); g = g->next)
        ;
    if (!g) {
        struct sg_mem b = {.size = GLOBAL_BYTES, .mapped = GLOBAL_BYTES, .dev = ctx->dev, .ctx = ctx, .kind = SG_MEM_MODULE};
        void *q = MAP_FAILED;

        g = calloc(1, sizeof(*g));
        if (g && (g->name = strdup(name)))
            q = mmap(NULL, GLOBAL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (q == MAP_FAILED) {
            r = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            b.base = g->p = (uintptr_t)q;
            r = sg_mem_insert(&b);
        }
        if (r != CUDA_SUCCESS) {
            if (q != MAP_FAILED)
                munmap(q, GLOBAL_BYTES);
            if (g)
                free(g->name);
            free(g);
        } else {
            g->next = m->globals;
            m->globals = g;
        }
    }
    if (r == CUDA_SUCCESS) {
        if (p)
            *p = g->p;
        if (size)
            *size = GLOBAL_BYTES;
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *size, CUmodule m, const char *name)
{
    SG_ENTER_CTX(c);
    if (!name || (!p && !size))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(m, SG_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    return sg_module_global(m, c, name, p, size);
}

/* The first form: 32 bits of the address, as of all its kind. */
SG_API CUresult cuModuleGetGlobal(CUdeviceptr_v1 *p, unsigned int *size, CUmodule m, const char *name)
{
    CUdeviceptr at = 0;
    size_t n = 0;
    CUresult r = !p && !size && sg_ready() ? CUDA_ERROR_INVALID_VALUE : cuModuleGetGlobal_v2(&at, &n, m, name);

    if (r == CUDA_SUCCESS && p)
        *p = (CUdeviceptr_v1)at;
    if (r == CUDA_SUCCESS && size)
        *size = (unsigned)n;
    return r;
}
