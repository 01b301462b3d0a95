// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * array.c: arrays. On a card with blocks they are laid out as the hardware does:
 * in tiles of 64 bytes by 8 rows, so that they cost more than their elements.
 * The bytes themselves lie in rows, since nothing here looks at tiles.
 */
#include "array.h"

#define TILE_BYTES 64u
#define TILE_ROWS 8u

static CUarray all; /* of contexts' own; under the lock */

size_t sg_format_bytes(CUarray_format f)
{
    switch ((int)f) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X4:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X4:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static bool shape(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    bool layered = d->Flags & SG_ARRAY_LAYERED, cube = d->Flags & SG_ARRAY_CUBEMAP;

    if (!d->Width || d->Flags & ~0xffu)
        return false;
    if (cube)
        return d->Width == d->Height && (layered ? d->Depth && d->Depth % 6 == 0 : d->Depth == 6);
    if (layered)
        return d->Depth != 0;
    return !d->Depth || d->Height; /* a depth without a height is no shape */
}

CUresult sg_array_layout(const CUDA_ARRAY3D_DESCRIPTOR *d, CUdevice dev, struct CUarray_st *a)
{
    size_t element = sg_format_bytes(d->Format) * d->NumChannels, depth = d->Depth ? d->Depth : 1;

    if (!element || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4) || !shape(d))
        return CUDA_ERROR_INVALID_VALUE;
    a->desc = *d;
    a->height = d->Height ? d->Height : 1;
    if (__builtin_mul_overflow(d->Width, element, &a->row) || a->row > SIZE_MAX / 2 || a->height > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    a->pitch = a->row;
    if (sg_rules(dev)->block_bytes) {
        a->pitch = sg_round(a->row, TILE_BYTES);
        if (d->Height)
            a->height = sg_round(a->height, TILE_ROWS);
    }
    if (__builtin_mul_overflow(a->pitch, a->height, &a->bytes) || __builtin_mul_overflow(a->bytes, depth, &a->bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

static CUresult array_create(CUarray *pa, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    CUarray a;
    CUresult r;

    SG_ENTER_CTX(c);
    if (!pa)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_capture_forbids(c);
    if (r != CUDA_SUCCESS)
        return r;
    a = sg_object_new(sizeof(*a));
    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = sg_array_layout(d, c->dev, a);
    if (r == CUDA_SUCCESS && !(d->Flags & SG_ARRAY_UNBACKED))
        r = sg_mem_alloc(a->bytes, SG_MEM_ARRAY, false, 0, c, &a->base);
    if (r != CUDA_SUCCESS) {
        sg_object_free(a, sizeof(*a));
        return r;
    }
    a->magic = SG_ARRAY;
    a->ctx = c;
    sg_lock();
    a->next = all;
    all = a;
    sg_unlock();
    *pa = a;
    return CUDA_SUCCESS;
}

SG_API CUresult cuArray3DCreate_v2(CUarray *pa, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return d ? array_create(pa, d) : CUDA_ERROR_INVALID_VALUE;
}

/* The three other forms of a descriptor. */
#define FROM(d, depth, flags)                                                                       \
    {                                                                                               \
        .Width = (d)->Width, .Height = (d)->Height, .Depth = depth, .Format = (d)->Format,          \
        .NumChannels = (d)->NumChannels, .Flags = flags                                             \
    }

SG_API CUresult cuArrayCreate_v2(CUarray *pa, const CUDA_ARRAY_DESCRIPTOR *d)
{
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    return array_create(pa, &(CUDA_ARRAY3D_DESCRIPTOR)FROM(d, 0, 0));
}

SG_API CUresult cuArray3DCreate(CUarray *pa, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    return array_create(pa, &(CUDA_ARRAY3D_DESCRIPTOR)FROM(d, d->Depth, d->Flags));
}

SG_API CUresult cuArrayCreate(CUarray *pa, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    return array_create(pa, &(CUDA_ARRAY3D_DESCRIPTOR)FROM(d, 0, 0));
}

/* Enters with a living array. */
#define ENTER_ARRAY(a, d)                 \
    SG_ENTER();                           \
    if (!sg_is(a, SG_ARRAY))              \
        return CUDA_ERROR_INVALID_HANDLE; \
    if (!(d))                             \
        return CUDA_ERROR_INVALID_VALUE

SG_API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray a)
{
    ENTER_ARRAY(a, d);
    *d = a->desc;
    return CUDA_SUCCESS;
}

SG_API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *d, CUarray a)
{
    ENTER_ARRAY(a, d);
    *d = (CUDA_ARRAY_DESCRIPTOR){a->desc.Width, a->desc.Height, a->desc.Format, a->desc.NumChannels};
    return CUDA_SUCCESS;
}

SG_API CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *d, CUarray a)
{
    ENTER_ARRAY(a, d);
    *d = (CUDA_ARRAY3D_DESCRIPTOR_v1){(unsigned)a->desc.Width, (unsigned)a->desc.Height, (unsigned)a->desc.Depth,
                                      a->desc.Format, a->desc.NumChannels, a->desc.Flags};
    return CUDA_SUCCESS;
}

SG_API CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *d, CUarray a)
{
    ENTER_ARRAY(a, d);
    *d = (CUDA_ARRAY_DESCRIPTOR_v1){(unsigned)a->desc.Width, (unsigned)a->desc.Height, a->desc.Format,
                                    a->desc.NumChannels};
    return CUDA_SUCCESS;
}

SG_API CUresult cuArrayGetPlane(CUarray *plane, CUarray a, unsigned int index SG_UNUSED)
{
    ENTER_ARRAY(a, plane);
    return CUDA_ERROR_INVALID_VALUE; /* no format of several planes is simulated */
}

CUresult sg_array_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, unsigned flags, size_t bytes)
{
    if (!(flags & SG_ARRAY_DEFERRED))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = sg_round(bytes, SG_ARRAY_PAGE), .alignment = SG_ARRAY_PAGE};
    return CUDA_SUCCESS;
}

SG_API CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray a, CUdevice dev)
{
    ENTER_ARRAY(a, out);
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return sg_array_requirements(out, a->desc.Flags, a->bytes);
}

/* Tiles of 64 KiB; none of them is a mip tail. */
CUresult sg_sparse_properties(struct sg_sparse *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    size_t element = sg_format_bytes(d->Format) * d->NumChannels;
    unsigned w = 256, h = 256;

    if (!(d->Flags & SG_ARRAY_SPARSE))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned turn = 0; element > 1; element /= 2, turn ^= 1) {
        if (turn)
            w /= 2;
        else
            h /= 2;
    }
    *out = (struct sg_sparse){.width = w, .height = h, .depth = 1, .first_tail_level = 1};
    return CUDA_SUCCESS;
}

SG_API CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray a)
{
    ENTER_ARRAY(a, out);
    return sg_sparse_properties((struct sg_sparse *)out, &a->desc);
}

SG_API CUresult cuArrayDestroy(CUarray a)
{
    CUarray *at;

    SG_ENTER();
    if (!sg_is(a, SG_ARRAY) || a->level_of)
        return CUDA_ERROR_INVALID_HANDLE;
    sg_lock();
    for (at = &all; *at && *at != a; at = &(*at)->next)
        ;
    if (!*at) { /* another thread was faster */
        sg_unlock();
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *at = a->next;
    sg_unlock();
    a->magic = 0;
    if (a->base)
        sg_mem_free(a->base, SG_MEM_ARRAY, true);
    sg_object_free(a, sizeof(*a));
    return CUDA_SUCCESS;
}

void sg_array_free_context(CUcontext ctx)
{
    for (CUarray *at = &all; *at;) {
        CUarray a = *at;

        if (a->ctx != ctx) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        sg_object_free(a, sizeof(*a)); /* its memory is freed with the context's */
    }
    sg_mipmap_free_context(ctx);
}
