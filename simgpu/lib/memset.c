// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* memset.c: fills, in one and two dimensions. */
#include "sg.h"

/* Zeros of this many bytes and more are not written. */
#define DROP_FROM ((size_t)1 << 20)

CUresult sg_set_check(const CUDA_MEMSET_NODE_PARAMS *p)
{
    size_t row, end, t;

    if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
        return CUDA_ERROR_INVALID_VALUE;
    if (!p->width || !p->height)
        return CUDA_SUCCESS;
    if (p->dst % p->elementSize || (p->height > 1 && p->pitch % p->elementSize) ||
        __builtin_mul_overflow(p->width, p->elementSize, &row) ||
        (p->height > 1 && p->pitch < row) || __builtin_mul_overflow(p->height - 1, p->pitch, &t) ||
        __builtin_add_overflow(t, row, &end))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_mem_ours(p->dst, end) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Zeroes [p, p+n), in bulk by giving whole pages back. */
static void zero(char *p, size_t n)
{
    char *first = (char *)(((uintptr_t)p + SG_PAGE - 1) & ~(uintptr_t)(SG_PAGE - 1));
    char *last = (char *)((uintptr_t)(p + n) & ~(uintptr_t)(SG_PAGE - 1));

    if (n >= DROP_FROM && sg_mem_zero_pages(first, (size_t)(last - first))) {
        memset(p, 0, (size_t)(first - p));
        memset(last, 0, (size_t)(p + n - last));
        return;
    }
    memset(p, 0, n);
}

void sg_set_do(const CUDA_MEMSET_NODE_PARAMS *p)
{
    CUcontext c = sg_current();
    unsigned value;

    if (!p->width || !p->height)
        return;
    value = p->value & (p->elementSize == 4 ? ~0u : (1u << 8 * p->elementSize) - 1);
    sg_managed_touch(p->dst, (p->height - 1) * p->pitch + p->width * p->elementSize, c ? c->dev : 0);
    sg_bytes_use();
    for (size_t y = 0; y < p->height; y++) {
        char *row = (char *)(uintptr_t)(p->dst + y * p->pitch);

        if (!value) {
            zero(row, p->width * p->elementSize);
            continue;
        }
        switch (p->elementSize) {
        case 1:
            memset(row, (int)(p->value & 0xff), p->width);
            break;
        case 2:
            for (size_t x = 0; x < p->width; x++)
                ((uint16_t *)row)[x] = (uint16_t)p->value;
            break;
        default:
            for (size_t x = 0; x < p->width; x++)
                ((uint32_t *)row)[x] = p->value;
        }
    }
    sg_bytes_done();
}

CUresult sg_set_submit(CUstream s, const CUDA_MEMSET_NODE_PARAMS *p)
{
    if (!sg_timed_copies(s) || !p->width || !p->height)
        return CUDA_SUCCESS;
    return sg_submit(s, SG_ENTRY_FILL, 0, (uint64_t)p->width * p->elementSize * p->height, NULL);
}

static void deferred(void *arg)
{
    if (sg_set_check(arg) == CUDA_SUCCESS) /* memory may be gone meanwhile */
        sg_set_do(arg);
    free(arg);
}

/* Fills when the call is made, or behind the host functions that are queued. */
static CUresult fill(CUstream s, const CUDA_MEMSET_NODE_PARAMS *p)
{
    CUDA_MEMSET_NODE_PARAMS *later;
    CUresult r;

    if (!sg_host_unfinished()) {
        sg_set_do(p);
        return sg_set_submit(s, p);
    }
    later = malloc(sizeof(*later));
    if (!later)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *later = *p;
    r = sg_host_function(s, deferred, later, NULL);
    if (r != CUDA_SUCCESS)
        free(later);
    return r == CUDA_SUCCESS ? sg_set_submit(s, p) : r;
}

/* Whether a fill's call waits for it: only if it is of memory that the
 * processor sees as its own, by the documentation. */
static bool waits(const CUDA_MEMSET_NODE_PARAMS *p)
{
    const struct sg_mem *m;
    bool host;

    sg_lock();
    m = sg_mem_find(p->dst, 1);
    host = m && (m->kind == SG_MEM_HOST || m->kind == SG_MEM_REGISTERED);
    sg_unlock();
    return host;
}

static CUresult set_sync(CUdeviceptr dst, size_t pitch, unsigned value, unsigned size, size_t w, size_t h, bool pt)
{
    CUDA_MEMSET_NODE_PARAMS p = {dst, pitch, value, size, w, h};
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_for_sync(pt, &s);
    if (r == CUDA_SUCCESS)
        r = sg_set_check(&p);
    if (r == CUDA_SUCCESS && sg_timed_copies(s)) {
        r = fill(s, &p);
        return r == CUDA_SUCCESS && waits(&p) ? sg_stream_drain(s) : r;
    }
    if (r == CUDA_SUCCESS)
        r = sg_stream_drain(s);
    if (r == CUDA_SUCCESS)
        sg_set_do(&p);
    return r;
}

CUresult sg_set_async(const CUDA_MEMSET_NODE_PARAMS *set, CUstream st, bool pt)
{
    union sg_node_params p = {.memset = *set};
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(st, pt, &s);
    if (r == CUDA_SUCCESS)
        r = sg_set_check(&p.memset);
    if (r == CUDA_SUCCESS)
        r = sg_capturing(s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    return capturing ? sg_capture_add(s, CU_GRAPH_NODE_TYPE_MEMSET, &p) : fill(s, &p.memset);
}

static CUresult set_async(CUdeviceptr dst, size_t pitch, unsigned value, unsigned size, size_t w, size_t h, CUstream st,
                          bool pt)
{
    CUDA_MEMSET_NODE_PARAMS p = {dst, pitch, value, size, w, h};

    return sg_set_async(&p, st, pt);
}

#define FORMS(bits, type)                                                                                        \
    SG_API CUresult cuMemsetD##bits(CUdeviceptr_v1 d, type v, unsigned int n)                                    \
    {                                                                                                            \
        return set_sync(d, 0, v, bits / 8, n, 1, false);                                                         \
    }                                                                                                            \
    SG_API CUresult cuMemsetD##bits##_v2(CUdeviceptr d, type v, size_t n)                                        \
    {                                                                                                            \
        return set_sync(d, 0, v, bits / 8, n, 1, false);                                                         \
    }                                                                                                            \
    SG_API CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr d, type v, size_t n)                                   \
    {                                                                                                            \
        return set_sync(d, 0, v, bits / 8, n, 1, true);                                                          \
    }                                                                                                            \
    SG_API CUresult cuMemsetD##bits##Async(CUdeviceptr d, type v, size_t n, CUstream s)                          \
    {                                                                                                            \
        return set_async(d, 0, v, bits / 8, n, 1, s, false);                                                     \
    }                                                                                                            \
    SG_API CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr d, type v, size_t n, CUstream s)                     \
    {                                                                                                            \
        return set_async(d, 0, v, bits / 8, n, 1, s, true);                                                      \
    }                                                                                                            \
    SG_API CUresult cuMemsetD2D##bits(CUdeviceptr_v1 d, unsigned int p, type v, unsigned int w, unsigned int h)  \
    {                                                                                                            \
        return set_sync(d, p, v, bits / 8, w, h, false);                                                         \
    }                                                                                                            \
    SG_API CUresult cuMemsetD2D##bits##_v2(CUdeviceptr d, size_t p, type v, size_t w, size_t h)                  \
    {                                                                                                            \
        return set_sync(d, p, v, bits / 8, w, h, false);                                                         \
    }                                                                                                            \
    SG_API CUresult cuMemsetD2D##bits##_v2_ptds(CUdeviceptr d, size_t p, type v, size_t w, size_t h)             \
    {                                                                                                            \
        return set_sync(d, p, v, bits / 8, w, h, true);                                                          \
    }                                                                                                            \
    SG_API CUresult cuMemsetD2D##bits##Async(CUdeviceptr d, size_t p, type v, size_t w, size_t h, CUstream s)    \
    {                                                                                                            \
        return set_async(d, p, v, bits / 8, w, h, s, false);                                                     \
    }                                                                                                            \
    SG_API CUresult cuMemsetD2D##bits##Async_ptsz(CUdeviceptr d, size_t p, type v, size_t w, size_t h, CUstream s) \
    {                                                                                                            \
        return set_async(d, p, v, bits / 8, w, h, s, true);                                                      \
    }

FORMS(8, unsigned char)
FORMS(16, unsigned short)
FORMS(32, unsigned int)
