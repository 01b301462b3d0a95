// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* copy.c: copies and fills. */
#include "rt.h"

/* A direction that the program gives becomes the driver's call for it, so that a
 * pointer on the wrong side is found out. */
static cudaError_t copy(void *to, const void *from, size_t n, enum rt_copy_kind kind, bool async, CUstream s)
{
    CUdeviceptr d = rt_ptr(to), p = rt_ptr(from);

    if (!n)
        return RT_OK;
    switch (kind) {
    case RT_HOST_TO_DEVICE:
        return (cudaError_t)(async ? rt_drv.cuMemcpyHtoDAsync(d, from, n, s) : rt_drv.cuMemcpyHtoD(d, from, n));
    case RT_DEVICE_TO_HOST:
        return (cudaError_t)(async ? rt_drv.cuMemcpyDtoHAsync(to, p, n, s) : rt_drv.cuMemcpyDtoH(to, p, n));
    case RT_DEVICE_TO_DEVICE:
        return (cudaError_t)(async ? rt_drv.cuMemcpyDtoDAsync(d, p, n, s) : rt_drv.cuMemcpyDtoD(d, p, n));
    case RT_HOST_TO_HOST:
    case RT_BY_ADDRESS:
        return (cudaError_t)(async ? rt_drv.cuMemcpyAsync(d, p, n, s) : rt_drv.cuMemcpy(d, p, n));
    }
    return RT_INVALID_MEMCPY_DIRECTION;
}

RT(cudaMemcpy, void *to, const void *from, size_t n, enum rt_copy_kind kind)
{
    RT_ENTER();
    return rt_set(copy(to, from, n, kind, false, NULL));
}

RT(cudaMemcpyAsync, void *to, const void *from, size_t n, enum rt_copy_kind kind, CUstream s)
{
    RT_ENTER();
    return rt_set(copy(to, from, n, kind, true, s));
}

static cudaError_t peer(void *to, int to_device, const void *from, int from_device, size_t n, bool async, CUstream s)
{
    CUcontext c, f;

    RT_ENTER();
    RT_TRY(rt_primary(to_device, &c));
    RT_TRY(rt_primary(from_device, &f));
    return async ? RT_DRV(cuMemcpyPeerAsync(rt_ptr(to), c, rt_ptr(from), f, n, s))
                 : RT_DRV(cuMemcpyPeer(rt_ptr(to), c, rt_ptr(from), f, n));
}

RT(cudaMemcpyPeer, void *to, int to_device, const void *from, int from_device, size_t n)
{
    return peer(to, to_device, from, from_device, n, false, NULL);
}

RT(cudaMemcpyPeerAsync, void *to, int to_device, const void *from, int from_device, size_t n, CUstream s)
{
    return peer(to, to_device, from, from_device, n, true, s);
}

/* ---- variables ------------------------------------------------------------------ */

static cudaError_t inside(const void *symbol, size_t n, size_t offset, char **ret)
{
    CUdeviceptr d;
    size_t size;
    cudaError_t e = rt_variable(symbol, &d, &size);

    if (e == RT_OK && (offset > size || n > size - offset))
        e = RT_INVALID_VALUE;
    if (e == RT_OK)
        *ret = (char *)rt_addr(d) + offset;
    return e;
}

#define TO_SYMBOL(name, async, stream, ...)                               \
    RT(name, const void *symbol, const void *from, size_t n, size_t offset, enum rt_copy_kind kind __VA_ARGS__) \
    {                                                                     \
        char *p;                                                          \
        RT_ENTER();                                                       \
        RT_TRY(inside(symbol, n, offset, &p));                            \
        return rt_set(copy(p, from, n, kind, async, stream));             \
    }
#define FROM_SYMBOL(name, async, stream, ...)                             \
    RT(name, void *to, const void *symbol, size_t n, size_t offset, enum rt_copy_kind kind __VA_ARGS__) \
    {                                                                     \
        char *p;                                                          \
        RT_ENTER();                                                       \
        RT_TRY(inside(symbol, n, offset, &p));                            \
        return rt_set(copy(to, p, n, kind, async, stream));               \
    }
TO_SYMBOL(cudaMemcpyToSymbol, false, NULL)
TO_SYMBOL(cudaMemcpyToSymbolAsync, true, s, , CUstream s)
FROM_SYMBOL(cudaMemcpyFromSymbol, false, NULL)
FROM_SYMBOL(cudaMemcpyFromSymbolAsync, true, s, , CUstream s)

/* ---- two and three dimensions ---------------------------------------------------- */

static CUmemorytype side(enum rt_copy_kind kind, bool to, CUarray a)
{
    if (a)
        return CU_MEMORYTYPE_ARRAY;
    switch (kind) {
    case RT_HOST_TO_HOST: return CU_MEMORYTYPE_HOST;
    case RT_HOST_TO_DEVICE: return to ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    case RT_DEVICE_TO_HOST: return to ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case RT_DEVICE_TO_DEVICE: return CU_MEMORYTYPE_DEVICE;
    default: return CU_MEMORYTYPE_UNIFIED;
    }
}

static cudaError_t copy2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                          enum rt_copy_kind kind, bool async, CUstream s)
{
    CUDA_MEMCPY2D c = {.srcMemoryType = side(kind, false, NULL), .srcHost = from, .srcDevice = rt_ptr(from),
                       .srcPitch = from_pitch, .dstMemoryType = side(kind, true, NULL), .dstHost = to,
                       .dstDevice = rt_ptr(to), .dstPitch = to_pitch, .WidthInBytes = width, .Height = height};

    RT_ENTER();
    if (!width || !height)
        return RT_OK;
    return async ? RT_DRV(cuMemcpy2DAsync(&c, s)) : RT_DRV(cuMemcpy2DUnaligned(&c));
}

RT(cudaMemcpy2D, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
   enum rt_copy_kind kind)
{
    return copy2d(to, to_pitch, from, from_pitch, width, height, kind, false, NULL);
}

RT(cudaMemcpy2DAsync, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
   enum rt_copy_kind kind, CUstream s)
{
    return copy2d(to, to_pitch, from, from_pitch, width, height, kind, true, s);
}

/* With an array on either side the runtime counts in elements; arrays are not made
 * by the stand-in, so such a copy is refused. */
cudaError_t rt_copy3d(const struct rt_copy3d *p, CUDA_MEMCPY3D *ret)
{
    if (p->src_array || p->dst_array)
        return RT_NOT_SUPPORTED;
    memset(ret, 0, sizeof(*ret));
    ret->srcMemoryType = side(p->kind, false, NULL);
    ret->srcHost = p->src.ptr;
    ret->srcDevice = rt_ptr(p->src.ptr);
    ret->srcPitch = p->src.pitch;
    ret->srcHeight = p->src.ysize;
    ret->srcXInBytes = p->src_pos.x;
    ret->srcY = p->src_pos.y;
    ret->srcZ = p->src_pos.z;
    ret->dstMemoryType = side(p->kind, true, NULL);
    ret->dstHost = p->dst.ptr;
    ret->dstDevice = rt_ptr(p->dst.ptr);
    ret->dstPitch = p->dst.pitch;
    ret->dstHeight = p->dst.ysize;
    ret->dstXInBytes = p->dst_pos.x;
    ret->dstY = p->dst_pos.y;
    ret->dstZ = p->dst_pos.z;
    ret->WidthInBytes = p->extent.width;
    ret->Height = p->extent.height;
    ret->Depth = p->extent.depth;
    return RT_OK;
}

RT(cudaMemcpy3D, const struct rt_copy3d *p)
{
    CUDA_MEMCPY3D c;

    RT_ENTER();
    RT_TRY(p ? rt_copy3d(p, &c) : RT_INVALID_VALUE);
    return RT_DRV(cuMemcpy3D(&c));
}

RT(cudaMemcpy3DAsync, const struct rt_copy3d *p, CUstream s)
{
    CUDA_MEMCPY3D c;

    RT_ENTER();
    RT_TRY(p ? rt_copy3d(p, &c) : RT_INVALID_VALUE);
    return RT_DRV(cuMemcpy3DAsync(&c, s));
}

/* ---- fills ------------------------------------------------------------------------ */

static unsigned char byte(int v)
{
    return (unsigned char)v;
}

RT_PASS(cudaMemset, cuMemsetD8(rt_ptr(p), byte(v), n), void *p, int v, size_t n)
RT_PASS(cudaMemsetAsync, cuMemsetD8Async(rt_ptr(p), byte(v), n, s), void *p, int v, size_t n, CUstream s)
RT_PASS(cudaMemset2D, cuMemsetD2D8(rt_ptr(p), pitch, byte(v), w, h), void *p, size_t pitch, int v, size_t w, size_t h)
RT_PASS(cudaMemset2DAsync, cuMemsetD2D8Async(rt_ptr(p), pitch, byte(v), w, h, s), void *p, size_t pitch, int v, size_t w,
        size_t h, CUstream s)
