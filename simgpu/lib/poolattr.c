// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* poolattr.c: what pools are like, and which one a device uses. */
#include <stdio.h>
#include <unistd.h>

#include "sg.h"

static bool numa_node(int id)
{
    char path[64];

    snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", id);
    return id == 0 || (id > 0 && access(path, F_OK) == 0);
}

SG_API CUresult cuMemPoolCreate(CUmemoryPool *pp, const CUmemPoolProps *props)
{
    struct CUmemPoolHandle_st p = {.magic = SG_POOL, .dev = -1, .reuse = {1, 1, 1}};
    CUmemoryPool made;

    SG_ENTER();
    if (!pp || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE && props->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    switch ((int)props->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (!sg_dev(props->location.id))
            return CUDA_ERROR_INVALID_DEVICE;
        sg_pool_init(&p, props->location.id);
        break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        if (!numa_node(props->location.id))
            return CUDA_ERROR_INVALID_VALUE;
        p.chunk = SG_PAGE * 16;
        break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        p.chunk = SG_PAGE * 16;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    p.location = props->location;
    p.handle_types = (unsigned)props->handleTypes;
    p.max_size = props->maxSize;
    made = sg_pool_add(&p);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pp = made;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemPoolGetAttribute(CUmemoryPool p, CUmemPool_attribute a, void *value)
{
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    if (!sg_pool_valid(p) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    switch ((int)a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = p->reuse[a - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = p->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = p->reserved;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = p->reserved_high;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = p->used;
        break;
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
    if (!sg_pool_valid(p) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    switch ((int)a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        p->reuse[a - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(int *)value;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        p->threshold = *(cuuint64_t *)value;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        if (*(cuuint64_t *)value)
            r = CUDA_ERROR_INVALID_VALUE; /* may only be reset */
        else
            p->reserved_high = p->reserved;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value)
            r = CUDA_ERROR_INVALID_VALUE;
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
    if (!sg_pool_valid(p) || (n && !d))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (d[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || d[i].flags & ~3u || d[i].flags == 2)
            return CUDA_ERROR_INVALID_VALUE;
        if (!sg_dev(d[i].location.id))
            return CUDA_ERROR_INVALID_DEVICE;
        /* A pool's own device always has it. */
        if (d[i].location.id == p->dev && d[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_DEVICE;
    }
    sg_lock();
    for (size_t i = 0; i < n; i++)
        p->access[d[i].location.id] = (unsigned char)d[i].flags;
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool p, CUmemLocation *where)
{
    SG_ENTER();
    if (!sg_pool_valid(p) || !flags || !where)
        return CUDA_ERROR_INVALID_VALUE;
    if (where->type != CU_MEM_LOCATION_TYPE_DEVICE) {
        *flags = p->dev < 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
        return CUDA_SUCCESS;
    }
    if (!sg_dev(where->id))
        return CUDA_ERROR_INVALID_DEVICE;
    *flags = (CUmemAccess_flags)p->access[where->id];
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
    if (!sg_pool_valid(p) || p->dev != dev || p->imported)
        return CUDA_ERROR_INVALID_VALUE;
    d->pool = p;
    return CUDA_SUCCESS;
}

/* The same by location and type of allocation, from 13.0. */
static CUresult located(CUmemLocation *where, int type, CUdevice *ret)
{
    if (!where || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (where->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    *ret = where->id;
    return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pp, CUmemLocation *where, CUmemAllocationType type);
CUresult cuMemGetMemPool(CUmemoryPool *pp, CUmemLocation *where, CUmemAllocationType type);
CUresult cuMemSetMemPool(CUmemLocation *where, CUmemAllocationType type, CUmemoryPool p);

SG_API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pp, CUmemLocation *where, CUmemAllocationType type)
{
    CUdevice dev;
    CUresult r = located(where, (int)type, &dev);

    return r == CUDA_SUCCESS ? get_pool(pp, dev, true) : r;
}

SG_API CUresult cuMemGetMemPool(CUmemoryPool *pp, CUmemLocation *where, CUmemAllocationType type)
{
    CUdevice dev;
    CUresult r = located(where, (int)type, &dev);

    return r == CUDA_SUCCESS ? get_pool(pp, dev, false) : r;
}

SG_API CUresult cuMemSetMemPool(CUmemLocation *where, CUmemAllocationType type, CUmemoryPool p)
{
    CUdevice dev;
    CUresult r = located(where, (int)type, &dev);

    return r == CUDA_SUCCESS ? cuDeviceSetMemPool(dev, p) : r;
}
