// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* hostmem.c: pinned and registered host memory, and what a pointer is. */
#include <sys/mman.h>

#include "sg.h"

static CUresult host_alloc(void **pp, size_t n, unsigned flags)
{
    struct sg_mem m = {.size = n, .kind = SG_MEM_HOST, .flags = flags};
    CUresult r;
    void *p;

    SG_ENTER_CTX(c);
    if (!pp || !n || n > SIZE_MAX - SG_PAGE || flags & ~7u)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_capture_forbids(c);
    if (r != CUDA_SUCCESS)
        return r;
    m.dev = c->dev;
    m.ctx = c;
    m.mapped = (n + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    p = mmap(NULL, m.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m.base = (uintptr_t)p;
    sg_lock();
    r = sg_mem_insert(&m);
    sg_unlock();
    if (r != CUDA_SUCCESS)
        munmap(p, m.mapped);
    else
        *pp = p;
    return r;
}

SG_API CUresult cuMemHostAlloc(void **pp, size_t n, unsigned int flags)
{
    return host_alloc(pp, n, flags);
}

SG_API CUresult cuMemAllocHost_v2(void **pp, size_t n)
{
    return host_alloc(pp, n, 0);
}

SG_API CUresult cuMemAllocHost(void **pp, unsigned int n)
{
    return host_alloc(pp, n, 0);
}

/* Takes the block that begins at p out of the table. */
static CUresult take(void *p, enum sg_kind kind, struct sg_mem *ret, CUresult missing)
{
    CUresult r = missing;
    struct sg_mem *m;

    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->base == (uintptr_t)p && m->kind == kind) {
        *ret = *m;
        sg_mem_remove(m);
        r = CUDA_SUCCESS;
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuMemFreeHost(void *p)
{
    struct sg_mem m;
    CUresult r;

    SG_ENTER_CTX(c);
    if (!p)
        return CUDA_SUCCESS;
    r = sg_capture_forbids(c);
    if (r != CUDA_SUCCESS)
        return r;
    sg_ctx_wait(c);
    r = take(p, SG_MEM_HOST, &m, CUDA_ERROR_INVALID_VALUE);
    if (r == CUDA_SUCCESS)
        munmap(p, m.mapped);
    return r;
}

SG_API CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned int flags)
{
    struct sg_mem m = {.base = (uintptr_t)p, .size = n, .mapped = n, .kind = SG_MEM_REGISTERED, .flags = flags};
    CUresult r;

    SG_ENTER_CTX(c);
    if (!p || !n || flags & ~15u || m.base + n < m.base)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_capture_forbids(c);
    if (r != CUDA_SUCCESS)
        return r;
    r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    m.dev = c->dev;
    m.ctx = c;
    sg_lock();
    if (!sg_mem_find(m.base, 1) && !sg_mem_find(m.base + n - 1, 1))
        r = sg_mem_insert(&m);
    sg_unlock();
    return r;
}

SG_API CUresult cuMemHostRegister(void *p, size_t n, unsigned int flags)
{
    return cuMemHostRegister_v2(p, n, flags);
}

SG_API CUresult cuMemHostUnregister(void *p)
{
    struct sg_mem m;

    SG_ENTER_CTX(c);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    sg_ctx_wait(c);
    return take(p, SG_MEM_REGISTERED, &m, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static bool pinned(const struct sg_mem *m)
{
    return m && (m->kind == SG_MEM_HOST || m->kind == SG_MEM_REGISTERED);
}

SG_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned int flags)
{
    bool ok;

    SG_ENTER_CTX(c);
    (void)c;
    if (!d || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    ok = pinned(sg_mem_find((uintptr_t)p, 1));
    sg_unlock();
    if (!ok)
        return CUDA_ERROR_INVALID_VALUE;
    *d = (uintptr_t)p;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemHostGetDevicePointer(CUdeviceptr_v1 *d, void *p, unsigned int flags)
{
    CUdeviceptr q = 0;
    CUresult r = d ? cuMemHostGetDevicePointer_v2(&q, p, flags) : CUDA_ERROR_INVALID_VALUE;

    if (r == CUDA_SUCCESS && q > UINT32_MAX)
        r = CUDA_ERROR_INVALID_VALUE; /* not an address of the first interface */
    if (r == CUDA_SUCCESS)
        *d = (CUdeviceptr_v1)q;
    return r;
}

SG_API CUresult cuMemHostGetFlags(unsigned int *flags, void *p)
{
    struct sg_mem *m;
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    SG_ENTER_CTX(c);
    (void)c;
    if (!flags)
        return r;
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->kind == SG_MEM_HOST) {
        *flags = m->flags | CU_MEMHOSTALLOC_DEVICEMAP;
        r = CUDA_SUCCESS;
    }
    sg_unlock();
    return r;
}

/* ---- pointer attributes ----------------------------------------------------------- */

/* Writes one attribute of the block m, which may be NULL. */
static CUresult attribute(void *out, CUpointer_attribute a, CUdeviceptr p, const struct sg_mem *m)
{
    bool device = m && !pinned(m);

    switch (a) {
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(int *)out = m != NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(int *)out = 0;
        return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        if (!m)
            return CUDA_ERROR_INVALID_VALUE;
    }
    switch (a) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = m->kind == SG_MEM_POOL || m->kind == SG_MEM_MAPPED ? NULL : m->ctx;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = p;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (device && m->kind != SG_MEM_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)out = (void *)(uintptr_t)p;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)out = m->sync_memops;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)out = m->serial;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = m->kind == SG_MEM_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = m->dev;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)out = m->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)out = m->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)out = 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)out = 3; /* read and write */
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)out = m->pool;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

SG_API CUresult cuPointerGetAttribute(void *out, CUpointer_attribute a, CUdeviceptr p)
{
    CUresult r;

    SG_ENTER_CTX(c);
    (void)c;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = attribute(out, a, p, sg_mem_find((uintptr_t)p, 1));
    sg_unlock();
    return r;
}

/* Attributes of a pointer that is nobody's block are zero, not an error. */
SG_API CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *a, void **out, CUdeviceptr p)
{
    SG_ENTER_CTX(c);
    (void)c;
    if (!n || !a || !out)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    for (unsigned i = 0; i < n; i++) {
        if (!out[i] || attribute(out[i], a[i], p, sg_mem_find((uintptr_t)p, 1)) == CUDA_SUCCESS)
            continue;
        switch (a[i]) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *(unsigned long long *)out[i] = 0;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)out[i] = -2;
            break;
        default:
            *(int *)out[i] = 0;
        }
    }
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute a, CUdeviceptr p)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_mem *m;

    SG_ENTER_CTX(c);
    (void)c;
    if (!value || a != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return r;
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m) {
        m->sync_memops = *(const unsigned *)value;
        r = CUDA_SUCCESS;
    }
    sg_unlock();
    return r;
}

/* ---- managed memory: all of it is host memory here ------------------------------------ */

SG_API CUresult cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise advice SG_UNUSED, CUdevice dev SG_UNUSED)
{
    SG_ENTER();
    return sg_mem_ours(p, n) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemAdvise_v2(CUdeviceptr p, size_t n, CUmem_advise advice SG_UNUSED, CUmemLocation where SG_UNUSED)
{
    SG_ENTER();
    return sg_mem_ours(p, n) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult prefetch(CUdeviceptr p, size_t n, CUstream h, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    return r != CUDA_SUCCESS ? r : sg_mem_ours(p, n) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice dev SG_UNUSED, CUstream s)
{
    return prefetch(p, n, s, false);
}

SG_API CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr p, size_t n, CUdevice dev SG_UNUSED, CUstream s)
{
    return prefetch(p, n, s, true);
}

SG_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr p, size_t n, CUmemLocation where SG_UNUSED,
                                      unsigned int flags SG_UNUSED, CUstream s)
{
    return prefetch(p, n, s, false);
}

SG_API CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr p, size_t n, CUmemLocation where SG_UNUSED,
                                           unsigned int flags SG_UNUSED, CUstream s)
{
    return prefetch(p, n, s, true);
}
