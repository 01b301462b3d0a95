// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* copynd.c: copies in two and three dimensions, and arrays as linear memory. */
#include "sg.h"

/* One body for both word sizes of the two-dimensional form. */
#define FROM_2D(c, p)                                                                                       \
    CUDA_MEMCPY3D c = {                                                                                     \
        .srcXInBytes = (p)->srcXInBytes, .srcY = (p)->srcY, .srcMemoryType = (p)->srcMemoryType,            \
        .srcHost = (p)->srcHost, .srcDevice = (p)->srcDevice, .srcArray = (p)->srcArray,                    \
        .srcPitch = (p)->srcPitch, .dstXInBytes = (p)->dstXInBytes, .dstY = (p)->dstY,                      \
        .dstMemoryType = (p)->dstMemoryType, .dstHost = (p)->dstHost, .dstDevice = (p)->dstDevice,          \
        .dstArray = (p)->dstArray, .dstPitch = (p)->dstPitch, .WidthInBytes = (p)->WidthInBytes,            \
        .Height = (p)->Height, .Depth = 1}

#define SYNC_2D(name, type, pt)                          \
    SG_API CUresult name(const type *p)                  \
    {                                                    \
        if (!p)                                          \
            return CUDA_ERROR_INVALID_VALUE;             \
        {                                                \
            FROM_2D(c, p);                               \
            return sg_copy_sync(&c, pt);                 \
        }                                                \
    }
#define ASYNC_2D(name, type, pt)                         \
    SG_API CUresult name(const type *p, CUstream s)      \
    {                                                    \
        if (!p)                                          \
            return CUDA_ERROR_INVALID_VALUE;             \
        {                                                \
            FROM_2D(c, p);                               \
            return sg_copy_async(&c, s, pt);                 \
        }                                                \
    }
SYNC_2D(cuMemcpy2D, CUDA_MEMCPY2D_v1, false)
SYNC_2D(cuMemcpy2D_v2, CUDA_MEMCPY2D, false)
SYNC_2D(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, true)
SYNC_2D(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1, false)
SYNC_2D(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, false)
SYNC_2D(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, true)
ASYNC_2D(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1, false)
ASYNC_2D(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, false)
ASYNC_2D(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, true)

#define FROM_3D(c, p)                                                                                       \
    CUDA_MEMCPY3D c = {                                                                                     \
        .srcXInBytes = (p)->srcXInBytes, .srcY = (p)->srcY, .srcZ = (p)->srcZ, .srcLOD = (p)->srcLOD,       \
        .srcMemoryType = (p)->srcMemoryType, .srcHost = (p)->srcHost, .srcDevice = (p)->srcDevice,          \
        .srcArray = (p)->srcArray, .srcPitch = (p)->srcPitch, .srcHeight = (p)->srcHeight,                  \
        .dstXInBytes = (p)->dstXInBytes, .dstY = (p)->dstY, .dstZ = (p)->dstZ, .dstLOD = (p)->dstLOD,       \
        .dstMemoryType = (p)->dstMemoryType, .dstHost = (p)->dstHost, .dstDevice = (p)->dstDevice,          \
        .dstArray = (p)->dstArray, .dstPitch = (p)->dstPitch, .dstHeight = (p)->dstHeight,                  \
        .WidthInBytes = (p)->WidthInBytes, .Height = (p)->Height, .Depth = (p)->Depth}

#define SYNC_3D(name, type, pt)                          \
    SG_API CUresult name(const type *p)                  \
    {                                                    \
        if (!p)                                          \
            return CUDA_ERROR_INVALID_VALUE;             \
        {                                                \
            FROM_3D(c, p);                               \
            return sg_copy_sync(&c, pt);                 \
        }                                                \
    }
#define ASYNC_3D(name, type, pt)                         \
    SG_API CUresult name(const type *p, CUstream s)      \
    {                                                    \
        if (!p)                                          \
            return CUDA_ERROR_INVALID_VALUE;             \
        {                                                \
            FROM_3D(c, p);                               \
            return sg_copy_async(&c, s, pt);                 \
        }                                                \
    }
SYNC_3D(cuMemcpy3D, CUDA_MEMCPY3D_v1, false)
SYNC_3D(cuMemcpy3D_v2, CUDA_MEMCPY3D, false)
SYNC_3D(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, true)
SYNC_3D(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, false)
SYNC_3D(cuMemcpy3DPeer_ptds, CUDA_MEMCPY3D_PEER, true)
ASYNC_3D(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1, false)
ASYNC_3D(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, false)
ASYNC_3D(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, true)
ASYNC_3D(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, false)
ASYNC_3D(cuMemcpy3DPeerAsync_ptsz, CUDA_MEMCPY3D_PEER, true)

/* ---- arrays --------------------------------------------------------------------- */

static size_t channel_bytes(CUarray_format f)
{
    switch (f) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static CUresult array_create(CUarray *pa, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    size_t height = d->Height ? d->Height : 1, depth = d->Depth ? d->Depth : 1, n;
    size_t element = channel_bytes(d->Format) * d->NumChannels;
    CUarray a;
    CUresult r;

    SG_ENTER_CTX(c);
    if (!pa || !d->Width || !element || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_capture_forbids(c);
    if (r != CUDA_SUCCESS)
        return r;
    a = sg_object_new(sizeof(*a));
    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;
    a->magic = SG_ARRAY;
    a->desc = *d;
    a->ctx = c;
    a->height = height;
    if (__builtin_mul_overflow(d->Width, element, &a->pitch) || __builtin_mul_overflow(a->pitch, height, &n) ||
        __builtin_mul_overflow(n, depth, &n))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    else
        r = sg_mem_alloc(n, SG_MEM_DEVICE, false, 0, NULL, c, &a->base);
    if (r != CUDA_SUCCESS) {
        sg_object_free(a, sizeof(*a));
        return r;
    }
    *pa = a;
    return CUDA_SUCCESS;
}

SG_API CUresult cuArray3DCreate_v2(CUarray *pa, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return d ? array_create(pa, d) : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuArrayCreate_v2(CUarray *pa, const CUDA_ARRAY_DESCRIPTOR *d)
{
    CUDA_ARRAY3D_DESCRIPTOR t;

    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    t = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
    return array_create(pa, &t);
}

SG_API CUresult cuArray3DCreate(CUarray *pa, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
    CUDA_ARRAY3D_DESCRIPTOR t;

    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    t = (CUDA_ARRAY3D_DESCRIPTOR){.Width = d->Width, .Height = d->Height, .Depth = d->Depth, .Format = d->Format,
                                  .NumChannels = d->NumChannels, .Flags = d->Flags};
    return array_create(pa, &t);
}

SG_API CUresult cuArrayCreate(CUarray *pa, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
    CUDA_ARRAY3D_DESCRIPTOR t;

    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    t = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
    return array_create(pa, &t);
}

SG_API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray a)
{
    SG_ENTER();
    if (!sg_is(a, SG_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    *d = a->desc;
    return CUDA_SUCCESS;
}

SG_API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *d, CUarray a)
{
    SG_ENTER();
    if (!sg_is(a, SG_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    *d = (CUDA_ARRAY_DESCRIPTOR){.Width = a->desc.Width, .Height = a->desc.Height, .Format = a->desc.Format,
                                 .NumChannels = a->desc.NumChannels};
    return CUDA_SUCCESS;
}

SG_API CUresult cuArrayDestroy(CUarray a)
{
    SG_ENTER();
    if (!sg_is(a, SG_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    a->magic = 0;
    sg_mem_free(a->base, true);
    sg_object_free(a, sizeof(*a));
    return CUDA_SUCCESS;
}
