// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * copybatch.c: many copies in one call, which happen at one place of the stream
 * in any order. All are checked before any is made. They cost an engine the
 * fixed part of each and the bytes of all.
 */
#include "sg.h"

enum { ORDER_STREAM = 1, ORDER_DURING_CALL = 2, ORDER_ANY = 3 };
enum { POINTER = 1, ARRAY = 2 };

/* CUDA_MEMCPY3D_BATCH_OP and what it consists of. */
struct operand {
    int type;
    union {
        struct {
            CUdeviceptr ptr;
            size_t row_length, layer_height; /* elements; 0: as the extent */
            CUmemLocation hint;
        } ptr;
        struct {
            CUarray array;
            size_t x, y, z;
        } array;
    } op;
};
struct copy_op {
    struct operand src, dst;
    struct {
        size_t width, height, depth;
    } extent; /* elements */
    int order;
    unsigned flags;
};
_Static_assert(sizeof(struct copy_op) == 112, "batch operation");

/* From here to the capture's refusal, the same for all forms. */
static CUresult begin(CUstream h, bool pt, CUstream *s)
{
    bool capturing;
    CUresult r;

    if (!h && !pt)
        return CUDA_ERROR_INVALID_VALUE; /* not in the legacy stream, as documented */
    r = sg_stream_of(h, pt, s);
    if (r == CUDA_SUCCESS && (*s)->kind == SG_STREAM_LEGACY)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = sg_capturing(*s, &capturing);
    return r == CUDA_SUCCESS && capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : r;
}

static CUresult submit(CUstream s, const CUDA_MEMCPY3D *copies, size_t n)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++)
        r = sg_copy_move(s, &copies[i]);
    if (!sg_timed_copies(s))
        return r;
    for (size_t i = 0, k; i < n && r == CUDA_SUCCESS; i = k) {
        struct sg_copy_way w = sg_copy_way(&copies[i]);

        for (k = i + 1; k < n && k - i < UINT16_MAX; k++) {
            struct sg_copy_way next = sg_copy_way(&copies[k]);

            if (next.arg != w.arg)
                break;
            w.bytes += next.bytes;
        }
        r = sg_submit(s, SG_ENTRY_COPY, w.arg | (uint32_t)(k - i) << SG_COPY_PIECES_SHIFT, w.bytes, NULL);
    }
    return r;
}

static bool attributes(const CUmemcpyAttributes *a, const size_t *first, size_t n, size_t count)
{
    if (!a || !first || !n || n > count || first[0])
        return false;
    for (size_t i = 0; i < n; i++) {
        if (a[i].srcAccessOrder < ORDER_STREAM || a[i].srcAccessOrder > ORDER_ANY || first[i] >= count ||
            (i && first[i] <= first[i - 1]))
            return false;
    }
    return true;
}

static CUresult linear(CUdeviceptr *dst, CUdeviceptr *src, size_t *size, size_t n, CUmemcpyAttributes *a, size_t *first,
                       size_t na, size_t *bad, CUstream h, bool pt)
{
    CUDA_MEMCPY3D *c;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (bad)
        *bad = SIZE_MAX; /* no copy in particular */
    if (!dst || !src || !size || !n || n > SIZE_MAX / sizeof(*c) || !attributes(a, first, na, n))
        return CUDA_ERROR_INVALID_VALUE;
    r = begin(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    c = calloc(n, sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
        c[i] = (CUDA_MEMCPY3D){.dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = dst[i],
                               .srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = src[i],
                               .WidthInBytes = size[i], .Height = 1, .Depth = 1};
        r = size[i] ? sg_copy_check(&c[i]) : CUDA_ERROR_INVALID_VALUE;
        if (r != CUDA_SUCCESS && bad)
            *bad = i;
    }
    if (r == CUDA_SUCCESS)
        r = submit(s, c, n);
    free(c);
    return r;
}

static size_t element(CUarray a)
{
    switch ((int)a->desc.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return a->desc.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2 * (size_t)a->desc.NumChannels;
    default:
        return 4 * (size_t)a->desc.NumChannels;
    }
}

static bool operand(const struct operand *o, size_t e, CUmemorytype *type, CUdeviceptr *p, CUarray *array, size_t at[3],
                    size_t *pitch, size_t *height)
{
    if (o->type == ARRAY) {
        *type = CU_MEMORYTYPE_ARRAY;
        *array = o->op.array.array;
        at[1] = o->op.array.y;
        at[2] = o->op.array.z;
        return !__builtin_mul_overflow(o->op.array.x, e, &at[0]);
    }
    *type = CU_MEMORYTYPE_UNIFIED;
    *p = o->op.ptr.ptr;
    *height = o->op.ptr.layer_height;
    return o->type == POINTER && !__builtin_mul_overflow(o->op.ptr.row_length, e, pitch);
}

static bool convert(const struct copy_op *o, CUDA_MEMCPY3D *c)
{
    size_t e = 1, from[3] = {0}, to[3] = {0};

    memset(c, 0, sizeof(*c));
    if (o->src.type == ARRAY) {
        if (!sg_is(o->src.op.array.array, SG_ARRAY))
            return false;
        e = element(o->src.op.array.array);
    }
    if (o->dst.type == ARRAY) {
        if (!sg_is(o->dst.op.array.array, SG_ARRAY))
            return false;
        e = element(o->dst.op.array.array);
    }
    if (!operand(&o->src, e, &c->srcMemoryType, &c->srcDevice, &c->srcArray, from, &c->srcPitch, &c->srcHeight) ||
        !operand(&o->dst, e, &c->dstMemoryType, &c->dstDevice, &c->dstArray, to, &c->dstPitch, &c->dstHeight))
        return false;
    c->srcXInBytes = from[0];
    c->srcY = from[1];
    c->srcZ = from[2];
    c->dstXInBytes = to[0];
    c->dstY = to[1];
    c->dstZ = to[2];
    c->Height = o->extent.height;
    c->Depth = o->extent.depth;
    return o->order >= ORDER_STREAM && o->order <= ORDER_ANY && o->extent.width && c->Height && c->Depth &&
           !__builtin_mul_overflow(o->extent.width, e, &c->WidthInBytes);
}

static CUresult spatial(size_t n, const struct copy_op *ops, size_t *bad, unsigned long long flags, CUstream h, bool pt)
{
    CUDA_MEMCPY3D *c;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (bad)
        *bad = SIZE_MAX;
    if (!ops || !n || n > SIZE_MAX / sizeof(*c) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    r = begin(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    c = calloc(n, sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
        r = convert(&ops[i], &c[i]) ? sg_copy_check(&c[i]) : CUDA_ERROR_INVALID_VALUE;
        if (r != CUDA_SUCCESS && bad)
            *bad = i;
    }
    if (r == CUDA_SUCCESS)
        r = submit(s, c, n);
    free(c);
    return r;
}

#define LINEAR(name, pt)                                                                                            \
    SG_API CUresult name(CUdeviceptr *dst, CUdeviceptr *src, size_t *size, size_t n, CUmemcpyAttributes *a,         \
                         size_t *first, size_t na, size_t *bad, CUstream s)                                         \
    {                                                                                                               \
        return linear(dst, src, size, n, a, first, na, bad, s, pt);                                                 \
    }
LINEAR(cuMemcpyBatchAsync, false)
LINEAR(cuMemcpyBatchAsync_ptsz, true)

#define LINEAR_V2(name, pt)                                                                                         \
    SG_API CUresult name(CUdeviceptr *dst, CUdeviceptr *src, size_t *size, size_t n, CUmemcpyAttributes *a,         \
                         size_t *first, size_t na, CUstream s);                                                     \
    SG_API CUresult name(CUdeviceptr *dst, CUdeviceptr *src, size_t *size, size_t n, CUmemcpyAttributes *a,         \
                         size_t *first, size_t na, CUstream s)                                                      \
    {                                                                                                               \
        return linear(dst, src, size, n, a, first, na, NULL, s, pt);                                                \
    }
LINEAR_V2(cuMemcpyBatchAsync_v2, false)
LINEAR_V2(cuMemcpyBatchAsync_v2_ptsz, true)

#define SPATIAL(name, pt)                                                                                           \
    SG_API CUresult name(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *bad, unsigned long long flags, CUstream s)  \
    {                                                                                                               \
        return spatial(n, (const struct copy_op *)ops, bad, flags, s, pt);                                          \
    }
SPATIAL(cuMemcpy3DBatchAsync, false)
SPATIAL(cuMemcpy3DBatchAsync_ptsz, true)

#define SPATIAL_V2(name, pt)                                                                                        \
    SG_API CUresult name(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream s);              \
    SG_API CUresult name(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream s)               \
    {                                                                                                               \
        return spatial(n, (const struct copy_op *)ops, NULL, flags, s, pt);                                         \
    }
SPATIAL_V2(cuMemcpy3DBatchAsync_v2, false)
SPATIAL_V2(cuMemcpy3DBatchAsync_v2_ptsz, true)

/* ---- one copy with attributes: it goes where other copies may go, and is captured ----- */

static bool attributes_of_one(const CUmemcpyAttributes *a)
{
    const size_t first = 0;

    return attributes(a, &first, 1, 1);
}

#define ONE(name, pt)                                                                                               \
    SG_API CUresult name(CUdeviceptr d, CUdeviceptr from, size_t n, CUmemcpyAttributes *a, CUstream s);             \
    SG_API CUresult name(CUdeviceptr d, CUdeviceptr from, size_t n, CUmemcpyAttributes *a, CUstream s)              \
    {                                                                                                               \
        const CUDA_MEMCPY3D c = {.dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = d,                            \
                                 .srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = from,                         \
                                 .WidthInBytes = n, .Height = 1, .Depth = 1};                                       \
                                                                                                                    \
        SG_ENTER();                                                                                                 \
        return attributes_of_one(a) ? sg_copy_async(&c, s, pt) : CUDA_ERROR_INVALID_VALUE;                          \
    }
ONE(cuMemcpyWithAttributesAsync, false)
ONE(cuMemcpyWithAttributesAsync_ptsz, true)

#define ONE_3D(name, pt)                                                                                            \
    SG_API CUresult name(CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream s);                         \
    SG_API CUresult name(CUDA_MEMCPY3D_BATCH_OP *op, unsigned long long flags, CUstream s)                          \
    {                                                                                                               \
        CUDA_MEMCPY3D c;                                                                                            \
                                                                                                                    \
        SG_ENTER();                                                                                                 \
        if (!op || flags || !convert((const struct copy_op *)op, &c))                                               \
            return CUDA_ERROR_INVALID_VALUE;                                                                        \
        return sg_copy_async(&c, s, pt);                                                                            \
    }
ONE_3D(cuMemcpy3DWithAttributesAsync, false)
ONE_3D(cuMemcpy3DWithAttributesAsync_ptsz, true)
