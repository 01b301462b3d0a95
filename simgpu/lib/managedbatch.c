// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* managedbatch.c: prefetching and discarding many ranges of managed memory, from 13.0. */
#include "managed.h"

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *p, size_t *n, size_t count, CUmemLocation *to, size_t *first, size_t ntos,
                                 unsigned long long flags, CUstream s);
CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr *p, size_t *n, size_t count, CUmemLocation *to, size_t *first,
                                      size_t ntos, unsigned long long flags, CUstream s);
CUresult cuMemDiscardBatchAsync(CUdeviceptr *p, size_t *n, size_t count, unsigned long long flags, CUstream s);
CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr *p, size_t *n, size_t count, unsigned long long flags, CUstream s);
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *p, size_t *n, size_t count, CUmemLocation *to, size_t *first,
                                           size_t ntos, unsigned long long flags, CUstream s);
CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr *p, size_t *n, size_t count, CUmemLocation *to, size_t *first,
                                                size_t ntos, unsigned long long flags, CUstream s);

/* first[i] is the range from which on to[i] holds, the first of them 0. to NULL:
 * the ranges are only discarded, so that no place has them. */
static CUresult batch(CUdeviceptr *p, size_t *n, size_t count, const CUmemLocation *to, const size_t *first, size_t ntos,
                      unsigned long long flags, CUstream h, bool pt)
{
    CUresult r;
    CUstream s;
    size_t k = 0;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (!p || !n || !count || flags || (to && (!first || !ntos || ntos > count || first[0])))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 1; to && i < ntos; i++) {
        if (first[i] <= first[i - 1] || first[i] >= count)
            return CUDA_ERROR_INVALID_VALUE;
    }
    sg_lock();
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = sg_managed_find(p[i], n[i]) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; to && i < ntos && r == CUDA_SUCCESS; i++)
        r = sg_where_of(&to[i]) == NOWHERE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        while (to && k + 1 < ntos && first[k + 1] <= i)
            k++;
        sg_managed_place(sg_managed_find(p[i], n[i]), (uintptr_t)p[i], n[i], to ? sg_where_of(&to[k]) : NOWHERE,
                         to ? &to[k] : NULL);
    }
    sg_unlock();
    return r;
}

#define PREFETCH(name, pt)                                                                                       \
    SG_API CUresult name(CUdeviceptr *p, size_t *n, size_t count, CUmemLocation *to, size_t *first, size_t ntos, \
                         unsigned long long flags, CUstream s)                                                   \
    {                                                                                                            \
        static const CUmemLocation none;                                                                         \
                                                                                                                 \
        return batch(p, n, count, to ? to : &none, first, ntos, flags, s, pt);                                   \
    }
PREFETCH(cuMemPrefetchBatchAsync, false)
PREFETCH(cuMemPrefetchBatchAsync_ptsz, true)
PREFETCH(cuMemDiscardAndPrefetchBatchAsync, false)
PREFETCH(cuMemDiscardAndPrefetchBatchAsync_ptsz, true)

SG_API CUresult cuMemDiscardBatchAsync(CUdeviceptr *p, size_t *n, size_t count, unsigned long long flags, CUstream s)
{
    return batch(p, n, count, NULL, NULL, 0, flags, s, false);
}

SG_API CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr *p, size_t *n, size_t count, unsigned long long flags, CUstream s)
{
    return batch(p, n, count, NULL, NULL, 0, flags, s, true);
}
