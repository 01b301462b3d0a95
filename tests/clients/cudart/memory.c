// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* memory.c: linear, pitched, managed, host, stream-ordered and shared memory, and
 * what is known of a pointer. */
#include "rt.h"

RT(cudaMalloc, void **p, size_t bytes)
{
    CUdeviceptr d = 0;
    cudaError_t e;

    RT_ENTER();
    if (!p)
        return rt_set(RT_INVALID_VALUE);
    if (!bytes) { /* documented: nothing, and no error */
        *p = NULL;
        return RT_OK;
    }
    e = RT_DRV(cuMemAlloc(&d, bytes));
    if (e == RT_OK)
        *p = rt_addr(d);
    return e;
}

RT(cudaFree, void *p)
{
    RT_ENTER(); /* also for nothing: programs call it to make a context */
    return p ? RT_DRV(cuMemFree(rt_ptr(p))) : RT_OK;
}

RT(cudaMallocPitch, void **p, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr d;
    cudaError_t e;

    RT_ENTER();
    if (!p || !pitch)
        return rt_set(RT_INVALID_VALUE);
    e = RT_DRV(cuMemAllocPitch(&d, pitch, width, height, 4));
    if (e == RT_OK)
        *p = rt_addr(d);
    return e;
}

RT(cudaMallocManaged, void **p, size_t bytes, unsigned int flags)
{
    CUdeviceptr d;
    cudaError_t e;

    RT_ENTER();
    if (!p)
        return rt_set(RT_INVALID_VALUE);
    e = RT_DRV(cuMemAllocManaged(&d, bytes, flags));
    if (e == RT_OK)
        *p = rt_addr(d);
    return e;
}

RT_PASS(cudaMemGetInfo, cuMemGetInfo(free_bytes, total), size_t *free_bytes, size_t *total)
RT_PASS(cudaMallocHost, cuMemHostAlloc(p, bytes, 0), void **p, size_t bytes)
RT_PASS(cudaHostAlloc, cuMemHostAlloc(p, bytes, flags), void **p, size_t bytes, unsigned int flags)
RT_PASS(cudaHostGetFlags, cuMemHostGetFlags(flags, p), unsigned int *flags, void *p)
RT_PASS(cudaHostRegister, cuMemHostRegister(p, bytes, flags), void *p, size_t bytes, unsigned int flags)
RT_PASS(cudaHostUnregister, cuMemHostUnregister(p), void *p)

RT(cudaFreeHost, void *p)
{
    RT_ENTER();
    return p ? RT_DRV(cuMemFreeHost(p)) : RT_OK;
}

RT(cudaHostGetDevicePointer, void **ret, void *p, unsigned int flags)
{
    CUdeviceptr d;
    cudaError_t e;

    RT_ENTER();
    if (!ret)
        return rt_set(RT_INVALID_VALUE);
    e = RT_DRV(cuMemHostGetDevicePointer(&d, p, flags));
    if (e == RT_OK)
        *ret = rt_addr(d);
    return e;
}

/* ---- stream-ordered ------------------------------------------------------------- */

RT(cudaMallocAsync, void **p, size_t bytes, CUstream s)
{
    CUdeviceptr d;
    cudaError_t e;

    RT_ENTER();
    if (!p)
        return rt_set(RT_INVALID_VALUE);
    e = RT_DRV(cuMemAllocAsync(&d, bytes, s));
    if (e == RT_OK)
        *p = rt_addr(d);
    return e;
}

RT(cudaMallocFromPoolAsync, void **p, size_t bytes, CUmemoryPool pool, CUstream s)
{
    CUdeviceptr d;
    cudaError_t e;

    RT_ENTER();
    if (!p)
        return rt_set(RT_INVALID_VALUE);
    e = RT_DRV(cuMemAllocFromPoolAsync(&d, bytes, pool, s));
    if (e == RT_OK)
        *p = rt_addr(d);
    return e;
}

RT_PASS(cudaFreeAsync, cuMemFreeAsync(rt_ptr(p), s), void *p, CUstream s)
RT_PASS(cudaMemPoolCreate, cuMemPoolCreate(pool, props), CUmemoryPool *pool, const CUmemPoolProps *props)
RT_PASS(cudaMemPoolDestroy, cuMemPoolDestroy(pool), CUmemoryPool pool)
RT_PASS(cudaMemPoolTrimTo, cuMemPoolTrimTo(pool, keep), CUmemoryPool pool, size_t keep)
RT_PASS(cudaMemPoolSetAttribute, cuMemPoolSetAttribute(pool, a, v), CUmemoryPool pool, CUmemPool_attribute a, void *v)
RT_PASS(cudaMemPoolGetAttribute, cuMemPoolGetAttribute(pool, a, v), CUmemoryPool pool, CUmemPool_attribute a, void *v)
RT_PASS(cudaMemPoolSetAccess, cuMemPoolSetAccess(pool, v, n), CUmemoryPool pool, const CUmemAccessDesc *v, size_t n)
RT_PASS(cudaMemPoolGetAccess, cuMemPoolGetAccess(v, pool, where), CUmemAccess_flags *v, CUmemoryPool pool, CUmemLocation *where)

/* ---- shared between processes --------------------------------------------------- */

RT_PASS(cudaIpcGetMemHandle, cuIpcGetMemHandle(h, rt_ptr(p)), CUipcMemHandle *h, void *p)
RT_PASS(cudaIpcCloseMemHandle, cuIpcCloseMemHandle(rt_ptr(p)), void *p)
RT_PASS(cudaIpcGetEventHandle, cuIpcGetEventHandle(h, e), CUipcEventHandle *h, CUevent e)
RT_PASS(cudaIpcOpenEventHandle, cuIpcOpenEventHandle(e, h), CUevent *e, CUipcEventHandle h)

RT(cudaIpcOpenMemHandle, void **p, CUipcMemHandle h, unsigned int flags)
{
    CUdeviceptr d;
    cudaError_t e;

    RT_ENTER();
    if (!p)
        return rt_set(RT_INVALID_VALUE);
    e = RT_DRV(cuIpcOpenMemHandle(&d, h, flags));
    if (e == RT_OK)
        *p = rt_addr(d);
    return e;
}

/* ---- what is known of a pointer ------------------------------------------------- */

enum { UNREGISTERED, HOST, DEVICE, MANAGED };

struct pointer_attributes {
    int type;
    int device;
    void *on_device, *on_host;
#if RT_MAJOR >= 13
    long reserved[8];
#endif
};

RT(cudaPointerGetAttributes, struct pointer_attributes *ret, const void *p)
{
    CUmemorytype type = 0;
    unsigned int managed = 0;
    int device = CU_DEVICE_INVALID;
    CUdeviceptr on_device = 0;
    void *on_host = NULL;
    CUpointer_attribute ask[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *into[] = {&type, &managed, &device, &on_device, &on_host};

    RT_ENTER();
    if (!ret)
        return rt_set(RT_INVALID_VALUE);
    RT_TRY((cudaError_t)rt_drv.cuPointerGetAttributes(5, ask, into, rt_ptr(p)));
    memset(ret, 0, sizeof(*ret));
    ret->device = device;
    ret->on_device = rt_addr(on_device);
    ret->on_host = on_host;
    if (managed)
        ret->type = MANAGED;
    else if (type == CU_MEMORYTYPE_DEVICE)
        ret->type = DEVICE;
    else if (type == CU_MEMORYTYPE_HOST)
        ret->type = HOST;
    if (ret->type == UNREGISTERED) { /* any address of the host's is that */
        ret->device = CU_DEVICE_INVALID;
        ret->on_host = (void *)(uintptr_t)p;
    }
    return RT_OK;
}

#if RT_MAJOR == 12
static CUmemLocation where(int device)
{
    CUmemLocation l = {device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE, device};

    return l;
}

RT_PASS(cudaMemAdvise, cuMemAdvise(rt_ptr(p), n, a, where(d)), const void *p, size_t n, CUmem_advise a, int d)
RT_PASS(cudaMemAdvise_v2, cuMemAdvise(rt_ptr(p), n, a, l), const void *p, size_t n, CUmem_advise a, CUmemLocation l)
RT_PASS(cudaMemPrefetchAsync, cuMemPrefetchAsync(rt_ptr(p), n, where(d), 0, s), const void *p, size_t n, int d, CUstream s)
RT_PASS(cudaMemPrefetchAsync_v2, cuMemPrefetchAsync(rt_ptr(p), n, l, f, s), const void *p, size_t n, CUmemLocation l,
        unsigned int f, CUstream s)
#else
RT_PASS(cudaMemAdvise, cuMemAdvise(rt_ptr(p), n, a, l), const void *p, size_t n, CUmem_advise a, CUmemLocation l)
RT_PASS(cudaMemPrefetchAsync, cuMemPrefetchAsync(rt_ptr(p), n, l, f, s), const void *p, size_t n, CUmemLocation l,
        unsigned int f, CUstream s)
#endif
