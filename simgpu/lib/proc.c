// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * proc.c: finding entry points by name, version and stream flavour, by the
 * rules observed on real drivers; and the export tables that a client may ask
 * for. The runtime's challenge (table d4082055-…) is on purpose not answered.
 */
#include <stdio.h>

#include "driver.h"
#include "fault.h"
#include "procs.h"
#include "sg.h"

enum { PER_THREAD_FLAG = 2, FLAGS = 3 };

/* Whether this driver has the symbol. */
static bool has(const struct sg_proc *p)
{
    return p->version <= sg_driver.cuda && !sg_absent[p->number];
}

static CUresult find(const char *name, int version, cuuint64_t flags, void **ret, CUdriverProcAddressQueryResult *why)
{
    size_t lo = 0, hi = sg_procs_count, best;
    unsigned char want;
    bool known = false;

    *why = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (strcmp(sg_procs[mid].base, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    /* The per-thread flavour counts only where the name has one; then the
     * other one is no substitute. */
    want = 0;
    for (hi = lo; hi < sg_procs_count && !strcmp(sg_procs[hi].base, name); hi++) {
        known |= has(&sg_procs[hi]);
        want |= flags & PER_THREAD_FLAG && has(&sg_procs[hi]) && sg_procs[hi].per_thread;
    }
    if (!known)
        return CUDA_ERROR_NOT_FOUND;
    best = sg_procs_count;
    for (size_t i = lo; i < hi; i++) {
        if (has(&sg_procs[i]) && sg_procs[i].per_thread == want && (unsigned)sg_procs[i].version <= (unsigned)version &&
            (best == sg_procs_count || sg_procs[i].version > sg_procs[best].version))
            best = i;
    }
    if (best == sg_procs_count) {
        *why = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        return CUDA_ERROR_NOT_FOUND;
    }
    *why = CU_GET_PROC_ADDRESS_SUCCESS;
    *ret = (void *)sg_procs[best].symbol;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGetProcAddress(const char *name, void **pfn, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult why;

    if (!name || !pfn || flags & ~(cuuint64_t)FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    return find(name, version, flags, pfn, &why); /* *pfn stays as it is on failure */
}

SG_API CUresult cuGetProcAddress_v2(const char *name, void **pfn, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult why;

    if (!name || !pfn || flags & ~(cuuint64_t)FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    *pfn = NULL;
    find(name, version, flags, pfn, &why);
    if (status)
        *status = why;
    return CUDA_SUCCESS;
}

/* ---- export tables ------------------------------------------------------------------- */

static CUresult primary_of(CUcontext *pctx, CUdevice dev)
{
    return cuDevicePrimaryCtxRetain(pctx, dev);
}

static CUresult nothing(void)
{
    return CUDA_SUCCESS;
}

static CUresult module_of(CUmodule *pm, const void *wrapper)
{
    return cuModuleLoadFatBinary(pm, wrapper);
}

static char tool_area[4096];
static CUresult tool_buffer(void **p, size_t *n)
{
    *p = tool_area;
    *n = sizeof(tool_area);
    return CUDA_SUCCESS;
}

/* Values that a library keeps with a context. */
struct kept {
    CUcontext ctx;
    void *key, *value;
    struct kept *next;
};
static struct kept *kept;

static struct kept **slot(CUcontext ctx, void *key)
{
    struct kept **k;

    for (k = &kept; *k && ((*k)->ctx != ctx || (*k)->key != key); k = &(*k)->next)
        ;
    return k;
}

static CUresult local_put(CUcontext ctx, void *key, void *value, void *dtor SG_UNUSED)
{
    struct kept **k, *n;
    CUresult r = CUDA_SUCCESS;

    if (!ctx)
        ctx = sg_current();
    sg_lock();
    k = slot(ctx, key);
    if (*k) {
        (*k)->value = value;
    } else if ((n = calloc(1, sizeof(*n)))) {
        *n = (struct kept){ctx, key, value, NULL};
        *k = n;
    } else {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    sg_unlock();
    return r;
}

static CUresult local_delete(CUcontext ctx, void *key)
{
    struct kept **k, *n;

    if (!ctx)
        ctx = sg_current();
    sg_lock();
    k = slot(ctx, key);
    n = *k;
    if (n)
        *k = n->next;
    sg_unlock();
    free(n);
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult local_get(void **value, CUcontext ctx, void *key)
{
    struct kept **k;
    CUresult r = CUDA_ERROR_INVALID_HANDLE;

    if (!ctx)
        ctx = sg_current();
    sg_lock();
    k = slot(ctx, key);
    if (*k) {
        *value = (*k)->value;
        r = CUDA_SUCCESS;
    }
    sg_unlock();
    return r;
}

#define F(f) ((const void *)(uintptr_t)(f))
#define N F(nothing)
static const void *runtime_table[16] = {
    (void *)sizeof(runtime_table), N, F(primary_of), N, N, N, F(module_of), N, N, N, N, N, N, N, N, N};
static const void *tools_table[8] = {(void *)sizeof(tools_table), N, F(tool_buffer), N, N, N, F(tool_buffer), N};
static const void *tls_table[4] = {(void *)sizeof(tls_table), N, N, N};
static const void *newest_table[4] = {(void *)sizeof(newest_table), N, N, N}; /* asked for by runtime 13.5, nothing is called */
static const void *local_table[] = {F(local_put), F(local_delete), F(local_get)};
static const void *check_table[5] = {(void *)sizeof(check_table), N, N, N, N};

static const struct {
    unsigned char uuid[16];
    const void *table;
} exports[] = {
    {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9}, runtime_table},
    {{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66}, tools_table},
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc}, tls_table},
    {{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93}, local_table},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2}, newest_table},
    {{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e}, check_table},
};

SG_API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < SG_LEN(exports); i++) {
        if (!memcmp(exports[i].uuid, id->bytes, sizeof(exports[i].uuid))) {
            *table = exports[i].table;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- profiler ----------------------------------------------------------------------------- */

SG_API CUresult cuProfilerStart(void)
{
    SG_ENTER();
    return CUDA_SUCCESS;
}

SG_API CUresult cuProfilerStop(void)
{
    SG_ENTER();
    return CUDA_SUCCESS;
}

SG_API CUresult cuProfilerInitialize(const char *config SG_UNUSED, const char *out SG_UNUSED, unsigned int mode SG_UNUSED)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}
