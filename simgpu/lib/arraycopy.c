// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* arraycopy.c: copies of one row from and to arrays; offsets are in bytes. */
#include "sg.h"

#define A CU_MEMORYTYPE_ARRAY
#define D CU_MEMORYTYPE_DEVICE
#define H CU_MEMORYTYPE_HOST

/* Only what a side's kind needs is looked at. */
static CUDA_MEMCPY3D row(CUmemorytype dt, uintptr_t dst, size_t dx, CUmemorytype st, uintptr_t src, size_t sx, size_t n)
{
    CUDA_MEMCPY3D c = {.dstMemoryType = dt, .srcMemoryType = st, .WidthInBytes = n, .Height = 1, .Depth = 1};

    if (dt == A) {
        c.dstArray = (CUarray)dst;
        c.dstXInBytes = dx;
    } else if (dt == D) {
        c.dstDevice = dst;
    } else {
        c.dstHost = (void *)dst;
    }
    if (st == A) {
        c.srcArray = (CUarray)src;
        c.srcXInBytes = sx;
    } else if (st == D) {
        c.srcDevice = src;
    } else {
        c.srcHost = (void *)src;
    }
    return c;
}

#define P(x) ((uintptr_t)(x))
#define NOW(name, params, pt, ...)                        \
    SG_API CUresult name params                           \
    {                                                     \
        CUDA_MEMCPY3D c = row(__VA_ARGS__);               \
                                                          \
        return sg_copy_sync(&c, pt);                      \
    }
#define LATER(name, params, pt, ...)                      \
    SG_API CUresult name params                           \
    {                                                     \
        CUDA_MEMCPY3D c = row(__VA_ARGS__);               \
                                                          \
        return sg_copy_async(&c, s, pt);                  \
    }
#define AA (CUarray d, size_t dx, CUarray a, size_t ax, size_t n)
NOW(cuMemcpyAtoA, (CUarray d, unsigned int dx, CUarray a, unsigned int ax, unsigned int n), false, A, P(d), dx, A, P(a), ax, n)
NOW(cuMemcpyAtoA_v2, AA, false, A, P(d), dx, A, P(a), ax, n)
NOW(cuMemcpyAtoA_v2_ptds, AA, true, A, P(d), dx, A, P(a), ax, n)
#define AD (CUdeviceptr d, CUarray a, size_t ax, size_t n)
NOW(cuMemcpyAtoD, (CUdeviceptr_v1 d, CUarray a, unsigned int ax, unsigned int n), false, D, d, 0, A, P(a), ax, n)
NOW(cuMemcpyAtoD_v2, AD, false, D, d, 0, A, P(a), ax, n)
NOW(cuMemcpyAtoD_v2_ptds, AD, true, D, d, 0, A, P(a), ax, n)
#define DA (CUarray d, size_t dx, CUdeviceptr p, size_t n)
NOW(cuMemcpyDtoA, (CUarray d, unsigned int dx, CUdeviceptr_v1 p, unsigned int n), false, A, P(d), dx, D, p, 0, n)
NOW(cuMemcpyDtoA_v2, DA, false, A, P(d), dx, D, p, 0, n)
NOW(cuMemcpyDtoA_v2_ptds, DA, true, A, P(d), dx, D, p, 0, n)
#define AH (void *h, CUarray a, size_t ax, size_t n)
NOW(cuMemcpyAtoH, (void *h, CUarray a, unsigned int ax, unsigned int n), false, H, P(h), 0, A, P(a), ax, n)
NOW(cuMemcpyAtoH_v2, AH, false, H, P(h), 0, A, P(a), ax, n)
NOW(cuMemcpyAtoH_v2_ptds, AH, true, H, P(h), 0, A, P(a), ax, n)
#define AHS (void *h, CUarray a, size_t ax, size_t n, CUstream s)
LATER(cuMemcpyAtoHAsync, (void *h, CUarray a, unsigned int ax, unsigned int n, CUstream s), false, H, P(h), 0, A, P(a), ax, n)
LATER(cuMemcpyAtoHAsync_v2, AHS, false, H, P(h), 0, A, P(a), ax, n)
LATER(cuMemcpyAtoHAsync_v2_ptsz, AHS, true, H, P(h), 0, A, P(a), ax, n)
#define HA (CUarray d, size_t dx, const void *h, size_t n)
NOW(cuMemcpyHtoA, (CUarray d, unsigned int dx, const void *h, unsigned int n), false, A, P(d), dx, H, P(h), 0, n)
NOW(cuMemcpyHtoA_v2, HA, false, A, P(d), dx, H, P(h), 0, n)
NOW(cuMemcpyHtoA_v2_ptds, HA, true, A, P(d), dx, H, P(h), 0, n)
#define HAS (CUarray d, size_t dx, const void *h, size_t n, CUstream s)
LATER(cuMemcpyHtoAAsync, (CUarray d, unsigned int dx, const void *h, unsigned int n, CUstream s), false, A, P(d), dx, H, P(h), 0, n)
LATER(cuMemcpyHtoAAsync_v2, HAS, false, A, P(d), dx, H, P(h), 0, n)
LATER(cuMemcpyHtoAAsync_v2_ptsz, HAS, true, A, P(d), dx, H, P(h), 0, n)
