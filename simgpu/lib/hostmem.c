// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* hostmem.c: pinned and registered host memory. */
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
