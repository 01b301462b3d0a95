// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* copynd.c: copies in two and three dimensions. */
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
