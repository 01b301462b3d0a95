// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* mipmap.c: mipmapped arrays, whose levels are arrays in one allocation. */
#include "array.h"

static CUmipmappedArray all; /* under the lock */

static size_t half(size_t n)
{
    return n > 1 ? n / 2 : n; /* 0 stays: the array has no such dimension */
}

static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    size_t n = d->Width > d->Height ? d->Width : d->Height;
    unsigned levels = 1;

    if (!(d->Flags & (SG_ARRAY_LAYERED | SG_ARRAY_CUBEMAP)) && d->Depth > n)
        n = d->Depth;
    while (n > 1) {
        n /= 2;
        levels++;
    }
    return levels;
}

static void drop(CUmipmappedArray m)
{
    for (unsigned i = 0; i < m->levels; i++)
        sg_object_free(m->level[i], sizeof(*m->level[i]));
    sg_object_free(m, sizeof(*m));
}

/* Makes the levels and says where each begins. */
static CUresult lay_out(CUmipmappedArray m, CUcontext c)
{
    CUDA_ARRAY3D_DESCRIPTOR d = m->desc;
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < m->levels && r == CUDA_SUCCESS; i++) {
        CUarray a = sg_object_new(sizeof(*a));

        m->level[i] = a;
        r = a ? sg_array_layout(&d, c->dev, a) : CUDA_ERROR_OUT_OF_MEMORY;
        if (r != CUDA_SUCCESS)
            break;
        a->magic = SG_ARRAY;
        a->ctx = c;
        a->level_of = m;
        a->base = m->bytes; /* becomes an address with the memory */
        if (__builtin_add_overflow(m->bytes, sg_round(a->bytes, SG_ALLOC_UNIT), &m->bytes))
            r = CUDA_ERROR_OUT_OF_MEMORY;
        d.Width = half(d.Width);
        d.Height = half(d.Height);
        if (!(d.Flags & (SG_ARRAY_LAYERED | SG_ARRAY_CUBEMAP)))
            d.Depth = half(d.Depth);
    }
    return r;
}

SG_API CUresult cuMipmappedArrayCreate(CUmipmappedArray *pm, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels)
{
    CUmipmappedArray m;
    CUresult r;

    SG_ENTER_CTX(c);
    if (!pm || !d || !levels)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_capture_forbids(c);
    if (r != CUDA_SUCCESS)
        return r;
    m = sg_object_new(sizeof(*m));
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->desc = *d;
    m->ctx = c;
    m->levels = levels < most_levels(d) ? levels : most_levels(d);
    if (m->levels > SG_LEN(m->level))
        m->levels = SG_LEN(m->level);
    r = lay_out(m, c);
    if (r == CUDA_SUCCESS && !(d->Flags & SG_ARRAY_UNBACKED))
        r = sg_mem_alloc(m->bytes, SG_MEM_ARRAY, false, 0, c, &m->base);
    if (r != CUDA_SUCCESS) {
        drop(m);
        return r;
    }
    for (unsigned i = 0; i < m->levels; i++)
        m->level[i]->base = m->base ? m->base + m->level[i]->base : 0;
    m->magic = SG_MIPMAP;
    sg_lock();
    m->next = all;
    all = m;
    sg_unlock();
    *pm = m;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMipmappedArrayGetLevel(CUarray *pa, CUmipmappedArray m, unsigned int level)
{
    SG_ENTER();
    if (!sg_is(m, SG_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pa || level >= m->levels)
        return CUDA_ERROR_INVALID_VALUE;
    *pa = m->level[level];
    return CUDA_SUCCESS;
}

SG_API CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray m,
                                                      CUdevice dev)
{
    SG_ENTER();
    if (!sg_is(m, SG_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_dev(dev) ? sg_array_requirements(out, m->desc.Flags, m->bytes) : CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUmipmappedArray m)
{
    SG_ENTER();
    if (!sg_is(m, SG_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    return out ? sg_sparse_properties((struct sg_sparse *)out, &m->desc) : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMipmappedArrayDestroy(CUmipmappedArray m)
{
    CUmipmappedArray *at;

    SG_ENTER();
    if (!sg_is(m, SG_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    sg_lock();
    for (at = &all; *at && *at != m; at = &(*at)->next)
        ;
    if (!*at) {
        sg_unlock();
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *at = m->next;
    sg_unlock();
    m->magic = 0;
    if (m->base)
        sg_mem_free(m->base, SG_MEM_ARRAY, true);
    drop(m);
    return CUDA_SUCCESS;
}

void sg_mipmap_free_context(CUcontext ctx)
{
    for (CUmipmappedArray *at = &all; *at;) {
        CUmipmappedArray m = *at;

        if (m->ctx != ctx) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        drop(m);
    }
}
