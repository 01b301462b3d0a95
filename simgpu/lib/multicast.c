// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * multicast.c: multicast objects, on cards that have them. Which memory is bound
 * where is kept by each process for itself. Only kernels could use such an
 * address, so there is nothing behind one.
 */
#include "vmm.h"

struct bind {
    CUdevice dev;
    size_t at, size;
    struct sg_physical *memory;
    struct bind *next;
};

struct sg_multicast {
    unsigned devices; /* how many there are to be */
    size_t size;
    unsigned added; /* bit a device */
    struct bind *binds;
};

/* The layout of CUmulticastObjectProp, which the header leaves open. */
struct prop {
    unsigned devices;
    size_t size;
    unsigned long long handle_types, flags;
};

struct sg_multicast *sg_multicast_new(unsigned devices, size_t size)
{
    struct sg_multicast *m = calloc(1, sizeof(*m));

    if (m)
        *m = (struct sg_multicast){.devices = devices, .size = size};
    return m;
}

unsigned sg_multicast_devices(const struct sg_multicast *m)
{
    return m->devices;
}

void sg_multicast_free(struct sg_multicast *m)
{
    while (m->binds) {
        struct bind *b = m->binds;

        m->binds = b->next;
        sg_physical_put(b->memory);
        free(b);
    }
    free(m);
}

/* The first device that has multicast, -1: none. */
static CUdevice capable(void)
{
    for (unsigned i = 0; i < sg_state.ndev; i++) {
        if (sg_rules((CUdevice)i)->multicast)
            return (CUdevice)i;
    }
    return -1;
}

static CUresult check(const struct prop *p)
{
    if (capable() < 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!p || !p->devices || p->flags || p->handle_types & ~(unsigned long long)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return p && p->handle_types & CU_MEM_HANDLE_TYPE_FABRIC ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMulticastGetGranularity(size_t *n, const CUmulticastObjectProp *prop,
                                          CUmulticastGranularity_flags option SG_UNUSED)
{
    CUresult r;

    SG_ENTER();
    r = check((const struct prop *)prop);
    if (r == CUDA_SUCCESS && !n)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *n = SG_GRANULARITY;
    return r;
}

SG_API CUresult cuMulticastCreate(CUmemGenericAllocationHandle *h, const CUmulticastObjectProp *prop)
{
    const struct prop *p = (const struct prop *)prop;
    struct sg_physical *m;
    CUresult r;

    SG_ENTER();
    r = check(p);
    if (r != CUDA_SUCCESS)
        return r;
    if (!h || !p->size || p->size % SG_GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    m = sg_physical_new();
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->multicast = sg_multicast_new(p->devices, p->size);
    r = m->multicast ? sg_device_take(capable(), NULL, 0, SG_USE_TOKEN, &m->handle) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        free(m->multicast);
        sg_object_free(m, sizeof(*m));
        return r;
    }
    m->dev = capable();
    m->size = p->size;
    m->prop.requestedHandleTypes = (CUmemAllocationHandleType)p->handle_types;
    *h = (uintptr_t)m;
    return CUDA_SUCCESS;
}

static struct sg_multicast *multicast_of(CUmemGenericAllocationHandle h)
{
    struct sg_physical *m = sg_physical_of(h);

    return m ? m->multicast : NULL;
}

SG_API CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle h, CUdevice dev)
{
    CUresult r = CUDA_SUCCESS;
    struct sg_multicast *m;

    SG_ENTER();
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!sg_rules(dev)->multicast)
        return CUDA_ERROR_NOT_SUPPORTED;
    sg_lock();
    m = multicast_of(h);
    if (!m || m->added >> dev & 1 || (unsigned)__builtin_popcount(m->added) >= m->devices)
        r = CUDA_ERROR_INVALID_VALUE;
    else
        m->added |= 1u << dev;
    sg_unlock();
    return r;
}

/* The lock is held. A device may be bound once all the object's are added; those
 * of other processes are added there, which cannot be seen here. */
static CUresult bind(CUmemGenericAllocationHandle h, size_t at, struct sg_physical *memory, size_t offset, size_t n)
{
    struct sg_multicast *m = multicast_of(h);
    struct bind *b;

    if (!m || !memory || memory->multicast || memory->dev < 0 || !n || n % SG_GRANULARITY || at % SG_GRANULARITY ||
        offset % SG_GRANULARITY || at > m->size || n > m->size - at || offset > memory->size || n > memory->size - offset)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(m->added >> memory->dev & 1))
        return CUDA_ERROR_INVALID_DEVICE;
    for (b = m->binds; b; b = b->next) {
        if (b->dev == memory->dev && at < b->at + b->size && b->at < at + n)
            return CUDA_ERROR_INVALID_VALUE;
    }
    b = malloc(sizeof(*b));
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *b = (struct bind){memory->dev, at, n, memory, m->binds};
    memory->refs++;
    m->binds = b;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMulticastBindMem(CUmemGenericAllocationHandle h, size_t at, CUmemGenericAllocationHandle memory,
                                   size_t offset, size_t n, unsigned long long flags)
{
    CUresult r;

    SG_ENTER();
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = bind(h, at, sg_physical_of(memory), offset, n);
    sg_unlock();
    return r;
}

SG_API CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle h, size_t at, CUdeviceptr p, size_t n,
                                    unsigned long long flags)
{
    struct sg_mem *m;
    CUresult r = CUDA_ERROR_INVALID_VALUE;

    SG_ENTER();
    if (flags)
        return r;
    sg_lock();
    m = sg_mem_find((uintptr_t)p, n);
    if (m && m->kind == SG_MEM_MAPPED)
        r = bind(h, at, m->physical, p - m->base, n);
    sg_unlock();
    return r;
}

/* From 13.1 with the device that is to reach the memory: it is the memory's own. */
CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle h, CUdevice dev, size_t at, CUmemGenericAllocationHandle memory,
                               size_t offset, size_t n, unsigned long long flags);
CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle h, CUdevice dev, size_t at, CUdeviceptr p, size_t n,
                                unsigned long long flags);

SG_API CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle h, CUdevice dev, size_t at,
                                      CUmemGenericAllocationHandle memory, size_t offset, size_t n, unsigned long long flags)
{
    SG_ENTER();
    return sg_dev(dev) ? cuMulticastBindMem(h, at, memory, offset, n, flags) : CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle h, CUdevice dev, size_t at, CUdeviceptr p, size_t n,
                                       unsigned long long flags)
{
    SG_ENTER();
    return sg_dev(dev) ? cuMulticastBindAddr(h, at, p, n, flags) : CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuMulticastUnbind(CUmemGenericAllocationHandle h, CUdevice dev, size_t at, size_t n)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_multicast *m;

    SG_ENTER();
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sg_lock();
    m = multicast_of(h);
    for (struct bind **b = m ? &m->binds : NULL; b && *b; b = &(*b)->next) {
        struct bind *gone = *b;

        if (gone->dev != dev || gone->at != at || gone->size != n)
            continue;
        *b = gone->next;
        sg_physical_put(gone->memory);
        free(gone);
        r = CUDA_SUCCESS;
        break;
    }
    sg_unlock();
    return r;
}
