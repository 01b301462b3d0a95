// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * tensormap.c: descriptions of tensors for the copy unit of newer GPUs. The
 * 128 bytes are opaque to programs; here they hold what was asked for, not
 * what hardware would read. The rules for arguments are those of NVIDIA's
 * documentation.
 */
#include "sg.h"

#define DIMS 5u

struct gs_opaque_CUtensorMap {
    uint32_t magic;
    uint8_t type, rank, interleave, swizzle, promotion, fill, kind, mode;
    uint8_t reserved[4];
    uint64_t address;
    uint64_t dim[DIMS]; /* 33 bits are used */
    uint32_t box[DIMS];
    uint32_t step; /* 4 bits each */
    uint64_t stride0;
    uint8_t rest[24];
} __attribute__((aligned(64)));
_Static_assert(sizeof(CUtensorMap) == 128, "CUtensorMap");

enum { INTERLEAVE_NONE, INTERLEAVE_16B, INTERLEAVE_32B };
enum { SWIZZLE_NONE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B, SWIZZLES = 7 };
enum { TILED, IM2COL, IM2COL_WIDE };
#define MAGIC 0x5347544du
#define TYPES 16u
#define PACKED 13u /* from here on, several elements in one */

static unsigned bytes_of(unsigned type)
{
    static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1};

    return bytes[type];
}

static bool is_float(unsigned type)
{
    return type >= 6 && type <= 12;
}

struct common {
    unsigned type, rank;
    void *p;
    const cuuint64_t *dim, *stride;
    const cuuint32_t *step;
    unsigned interleave, swizzle, promotion, fill;
};

static CUresult begin(CUtensorMap *m, const struct common *a, unsigned least_rank)
{
    unsigned align = a->interleave == INTERLEAVE_32B || a->type >= PACKED + 1 ? 32 : 16;

    SG_ENTER_CTX(c);
    if (sg_dev(c->dev)->info->capability < 90)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!m || (uintptr_t)m % 64 || a->type >= TYPES || a->rank < least_rank || a->rank > DIMS || !a->p || !a->dim ||
        !a->stride || !a->step || a->interleave > INTERLEAVE_32B || a->swizzle >= SWIZZLES || a->promotion > 3 ||
        a->fill > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if ((a->interleave != INTERLEAVE_NONE && a->rank < 3) || (uintptr_t)a->p % align ||
        (a->interleave == INTERLEAVE_32B && a->swizzle != SWIZZLE_32B) || (a->fill && !is_float(a->type)))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < a->rank; i++) {
        if (!a->dim[i] || a->dim[i] > (uint64_t)1 << 32 || !a->step[i] || a->step[i] > 8)
            return CUDA_ERROR_INVALID_VALUE;
        if (i + 1 < a->rank && (a->stride[i] % align || a->stride[i] >= (uint64_t)1 << 40))
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUtensorMap filled(const struct common *a, unsigned kind)
{
    CUtensorMap m;

    memset(&m, 0, sizeof(m));
    m.magic = MAGIC;
    m.type = (uint8_t)a->type;
    m.rank = (uint8_t)a->rank;
    m.interleave = (uint8_t)a->interleave;
    m.swizzle = (uint8_t)a->swizzle;
    m.promotion = (uint8_t)a->promotion;
    m.fill = (uint8_t)a->fill;
    m.kind = (uint8_t)kind;
    m.address = (uintptr_t)a->p;
    for (unsigned i = 0; i < a->rank; i++) {
        m.dim[i] = a->dim[i];
        m.step |= a->step[i] << 4 * i;
    }
    m.stride0 = a->rank > 1 ? a->stride[0] : 0;
    return m;
}

SG_API CUresult cuTensorMapEncodeTiled(CUtensorMap *m, CUtensorMapDataType type, cuuint32_t rank, void *p,
                                       const cuuint64_t *dim, const cuuint64_t *stride, const cuuint32_t *box,
                                       const cuuint32_t *step, CUtensorMapInterleave interleave,
                                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                       CUtensorMapFloatOOBfill fill)
{
    const struct common a = {type, rank, p, dim, stride, step, interleave, swizzle, promotion, fill};
    static const unsigned widest[SWIZZLES] = {0, 32, 64, 128, 128, 128, 128};
    CUresult r = begin(m, &a, 1);
    CUtensorMap done;

    if (r != CUDA_SUCCESS)
        return r;
    if (!box)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < rank; i++) {
        if (!box[i] || box[i] > 256)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (interleave == INTERLEAVE_NONE && type < PACKED &&
        ((size_t)box[0] * bytes_of(type) % 16 || (swizzle && (size_t)box[0] * bytes_of(type) > widest[swizzle])))
        return CUDA_ERROR_INVALID_VALUE;
    done = filled(&a, TILED);
    memcpy(done.box, box, rank * sizeof(*box));
    *m = done;
    return CUDA_SUCCESS;
}

/* Pixels and channels of the two forms for convolutions. */
static bool columns(cuuint32_t channels, cuuint32_t pixels)
{
    return channels && channels <= 256 && pixels && pixels <= 1024;
}

SG_API CUresult cuTensorMapEncodeIm2col(CUtensorMap *m, CUtensorMapDataType type, cuuint32_t rank, void *p,
                                        const cuuint64_t *dim, const cuuint64_t *stride, const int *lower,
                                        const int *upper, cuuint32_t channels, cuuint32_t pixels,
                                        const cuuint32_t *step, CUtensorMapInterleave interleave,
                                        CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                        CUtensorMapFloatOOBfill fill)
{
    const struct common a = {type, rank, p, dim, stride, step, interleave, swizzle, promotion, fill};
    CUresult r = begin(m, &a, 3);
    CUtensorMap done;
    int most;

    if (r != CUDA_SUCCESS)
        return r;
    if (!lower || !upper || !columns(channels, pixels))
        return CUDA_ERROR_INVALID_VALUE;
    most = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
    for (unsigned i = 0; i + 2 < rank; i++) {
        if (lower[i] < -most || lower[i] >= most || upper[i] < -most || upper[i] >= most)
            return CUDA_ERROR_INVALID_VALUE;
    }
    done = filled(&a, IM2COL);
    done.box[0] = channels;
    done.box[1] = pixels;
    *m = done;
    return CUDA_SUCCESS;
}

SG_API CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *m, CUtensorMapDataType type, cuuint32_t rank, void *p,
                                            const cuuint64_t *dim, const cuuint64_t *stride, int lower, int upper,
                                            cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *step,
                                            CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
                                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                            CUtensorMapFloatOOBfill fill)
{
    const struct common a = {type, rank, p, dim, stride, step, interleave, swizzle, promotion, fill};
    CUresult r = begin(m, &a, 3);
    CUtensorMap done;

    if (r != CUDA_SUCCESS)
        return r;
    if (sg_dev(sg_current()->dev)->info->capability < 100)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (mode > 1 || !columns(channels, pixels) || lower < -32768 || lower > 32767 || upper < -32768 || upper > 32767)
        return CUDA_ERROR_INVALID_VALUE;
    done = filled(&a, IM2COL_WIDE);
    done.mode = (uint8_t)mode;
    done.box[0] = channels;
    done.box[1] = pixels;
    *m = done;
    return CUDA_SUCCESS;
}

SG_API CUresult cuTensorMapReplaceAddress(CUtensorMap *m, void *p)
{
    SG_ENTER_CTX(c);
    (void)c;
    if (!m || (uintptr_t)m % 64 || m->magic != MAGIC || !p ||
        (uintptr_t)p % (m->interleave == INTERLEAVE_32B || m->type >= PACKED + 1 ? 32 : 16))
        return CUDA_ERROR_INVALID_VALUE;
    m->address = (uintptr_t)p;
    return CUDA_SUCCESS;
}

/* Which window of addresses the copy unit may touch, from 13.5: the cards here have one. */
CUresult cuTensorMapSetAllocationClass(CUtensorMap *, int, int *);
SG_API CUresult cuTensorMapSetAllocationClass(CUtensorMap *m, int want, int *ret)
{
    enum { AUTO, SMALL, LARGE };

    if (ret)
        *ret = SMALL;
    {
        SG_ENTER_CTX(c);
        (void)c;
    }
    return !m || (uintptr_t)m % 64 || m->magic != MAGIC || want < AUTO || want > LARGE ? CUDA_ERROR_INVALID_VALUE
                                                                                        : CUDA_SUCCESS;
}
