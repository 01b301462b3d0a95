// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * pool.c: stream-ordered allocation. A block is taken from the GPU when it is
 * asked for and given back when it is freed: the pool keeps nothing in reserve,
 * as a real one does whose release threshold is 0 and whose streams are idle.
 */
#include "sg.h"

static CUmemoryPool explicit_pools; /* under the lock */

static bool valid(CUmemoryPool p)
{
    return sg_is(p, SG_POOL);
}

static size_t rounded(size_t n)
{
    return (n + SG_ALLOC_UNIT - 1) / SG_ALLOC_UNIT * SG_ALLOC_UNIT;
}

static CUresult alloc_async(CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream h, bool pt)
{
    bool capturing, full;
    CUcontext owner;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r == CUDA_SUCCESS)
        r = sg_capturing(s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_alloc(s, n, pool, p);
    if (!p || !n)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pool)
        pool = sg_state.dev[s->ctx->dev].pool;
    if (!valid(pool))
        return CUDA_ERROR_INVALID_VALUE;
    if (n > SIZE_MAX - SG_ALLOC_UNIT)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_lock();
    full = pool->max_size && rounded(n) > pool->max_size - pool->used;
    if (!full) {
        pool->used += rounded(n);
        if (pool->used > pool->used_high)
            pool->used_high = pool->used;
    }
    sg_unlock();
    if (full)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* The memory is the pool's device's, which need not be the stream's. */
    owner = pool->dev == s->ctx->dev ? s->ctx : &sg_state.dev[pool->dev].primary;
    owner->dev = pool->dev;
    r = sg_mem_alloc(n, SG_MEM_POOL, false, 0, pool, owner, p);
    if (r != CUDA_SUCCESS) {
        sg_lock();
        pool->used -= rounded(n);
        sg_unlock();
    }
    return r;
}

SG_API CUresult cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s)
{
    return alloc_async(p, n, NULL, s, false);
}

SG_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *p, size_t n, CUstream s)
{
    return alloc_async(p, n, NULL, s, true);
}

SG_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream s)
{
    return sg_ready() && !pool ? CUDA_ERROR_INVALID_VALUE : alloc_async(p, n, pool, s, false);
}

SG_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream s)
{
    return sg_ready() && !pool ? CUDA_ERROR_INVALID_VALUE : alloc_async(p, n, pool, s, true);
}

static void free_later(void *arg)
{
    sg_mem_free((CUdeviceptr)(uintptr_t)arg, false);
}

static CUresult free_async(CUdeviceptr p, CUstream h, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r == CUDA_SUCCESS)
        r = sg_capturing(s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_free(s, p);
    /* A copy that waits behind a host function may still need the block. */
    if (sg_host_unfinished() && sg_mem_ours(p, 1))
        return sg_host_function(s, free_later, (void *)(uintptr_t)p, NULL);
    return sg_mem_free(p, false);
}

SG_API CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s)
{
    return free_async(p, s, false);
}

SG_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, CUstream s)
{
    return free_async(p, s, true);
}

/* ---- pools --------------------------------------------------------------------- */

SG_API CUresult cuMemPoolCreate(CUmemoryPool *pp, const CUmemPoolProps *props)
{
    CUmemoryPool p;

    SG_ENTER();
    if (!pp || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!sg_dev(props->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    p = sg_object_new(sizeof(*p));
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *p = (struct CUmemPoolHandle_st){
        .magic = SG_POOL, .dev = props->location.id, .max_size = props->maxSize, .reuse = {1, 1, 1}};
    sg_lock();
    p->next = explicit_pools;
    explicit_pools = p;
    sg_unlock();
    *pp = p;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemPoolDestroy(CUmemoryPool p)
{
    SG_ENTER();
    if (!valid(p) || p->deflt)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    for (unsigned i = 0; i < sg_state.ndev; i++) {
        if (sg_state.dev[i].pool == p)
            sg_state.dev[i].pool = &sg_state.dev[i].default_pool;
    }
    /* Blocks of the pool may outlive it and still point to it. */
    p->magic = 0;
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemPoolTrimTo(CUmemoryPool p, size_t keep SG_UNUSED)
{
    SG_ENTER();
    return valid(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemPoolGetAttribute(CUmemoryPool p, CUmemPool_attribute a, void *value)
{
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    if (!valid(p) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    switch (a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = p->reuse[a - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = p->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = p->used;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = p->used_high;
        break;
    default:
        r = CUDA_ERROR_INVALID_VALUE;
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuMemPoolSetAttribute(CUmemoryPool p, CUmemPool_attribute a, void *value)
{
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    if (!valid(p) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    switch (a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        p->reuse[a - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(int *)value;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        p->threshold = *(cuuint64_t *)value;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value)
            r = CUDA_ERROR_INVALID_VALUE; /* may only be reset */
        else
            p->used_high = p->used;
        break;
    default:
        r = CUDA_ERROR_INVALID_VALUE;
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuMemPoolSetAccess(CUmemoryPool p, const CUmemAccessDesc *d, size_t n)
{
    SG_ENTER();
    return valid(p) && (d || !n) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool p, CUmemLocation *where)
{
    SG_ENTER();
    if (!valid(p) || !flags || !where)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = where->id == p->dev ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

static CUresult get_pool(CUmemoryPool *pp, CUdevice dev, bool deflt)
{
    struct sg_device *d;

    SG_ENTER();
    d = sg_dev(dev);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pp)
        return CUDA_ERROR_INVALID_VALUE;
    *pp = deflt ? &d->default_pool : d->pool;
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pp, CUdevice dev)
{
    return get_pool(pp, dev, true);
}

SG_API CUresult cuDeviceGetMemPool(CUmemoryPool *pp, CUdevice dev)
{
    return get_pool(pp, dev, false);
}

SG_API CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool p)
{
    struct sg_device *d;

    SG_ENTER();
    d = sg_dev(dev);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!valid(p) || p->dev != dev)
        return CUDA_ERROR_INVALID_VALUE;
    d->pool = p;
    return CUDA_SUCCESS;
}
