// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* texref.c: texture and surface references of the old interface. */
#include "array.h"

struct CUtexref_st {
    uint32_t magic;
    CUmodule module; /* NULL: made by cuTexRefCreate */
    char name[128];
    CUarray array;
    CUmipmappedArray mipmap;
    CUdeviceptr p;
    size_t bytes;
    CUarray_format format;
    int channels;
    CUaddress_mode address[3];
    CUfilter_mode filter, mipmap_filter;
    float bias, min_level, max_level, border[4];
    unsigned anisotropy, flags;
    CUtexref next;
};
static CUtexref all; /* of modules; under the lock */

static CUtexref new_ref(CUmodule m, const char *name)
{
    CUtexref t = sg_object_new(sizeof(*t));

    if (!t)
        return NULL;
    *t = (struct CUtexref_st){.magic = SG_TEXREF, .module = m, .format = CU_AD_FORMAT_FLOAT, .channels = 1};
    strncpy(t->name, name, sizeof(t->name) - 1);
    return t;
}

/* The reference of a module by name: any name exists, as any function does. */
static CUresult of_module(CUtexref *ret, CUmodule m, const char *name)
{
    CUtexref t;

    SG_ENTER();
    if (!ret || !name || !*name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(m, SG_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    sg_lock();
    for (t = all; t && (t->module != m || strncmp(t->name, name, sizeof(t->name) - 1)); t = t->next)
        ;
    if (!t && (t = new_ref(m, name))) {
        t->next = all;
        all = t;
    }
    sg_unlock();
    *ret = t;
    return t ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void sg_texref_free_module(CUmodule m)
{
    for (CUtexref *at = &all; *at;) {
        CUtexref t = *at;

        if (t->module != m) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        sg_object_free(t, sizeof(*t));
    }
}

SG_API CUresult cuModuleGetTexRef(CUtexref *ret, CUmodule m, const char *name)
{
    return of_module(ret, m, name);
}

SG_API CUresult cuModuleGetSurfRef(CUsurfref *ret, CUmodule m, const char *name)
{
    return of_module((CUtexref *)ret, m, name);
}

SG_API CUresult cuTexRefCreate(CUtexref *ret)
{
    SG_ENTER();
    if (!ret)
        return CUDA_ERROR_INVALID_VALUE;
    *ret = new_ref(NULL, "");
    return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SG_API CUresult cuTexRefDestroy(CUtexref t)
{
    SG_ENTER();
    if (!sg_is(t, SG_TEXREF) || t->module)
        return CUDA_ERROR_INVALID_HANDLE;
    sg_object_free(t, sizeof(*t));
    return CUDA_SUCCESS;
}

#define ENTER_REF(t)           \
    SG_ENTER();                \
    if (!sg_is(t, SG_TEXREF)) \
    return CUDA_ERROR_INVALID_HANDLE
/* A call that reads into out, or sets, one thing, if a condition holds. */
#define CALL(name, args, cond, body)          \
    SG_API CUresult name args                 \
    {                                         \
        ENTER_REF(t);                         \
        if (!(cond))                          \
            return CUDA_ERROR_INVALID_VALUE;  \
        body;                                 \
        return CUDA_SUCCESS;                  \
    }

static void unbind(CUtexref t)
{
    t->array = NULL;
    t->mipmap = NULL;
    t->p = 0;
    t->bytes = 0;
}

SG_API CUresult cuTexRefSetArray(CUtexref t, CUarray a, unsigned int flags)
{
    ENTER_REF(t);
    if (flags != 1) /* CU_TRSA_OVERRIDE_FORMAT */
        return CUDA_ERROR_INVALID_VALUE;
    if (a && !sg_is(a, SG_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    unbind(t);
    t->array = a;
    if (a) {
        t->format = a->desc.Format;
        t->channels = (int)a->desc.NumChannels;
    }
    return CUDA_SUCCESS;
}

SG_API CUresult cuTexRefSetMipmappedArray(CUtexref t, CUmipmappedArray m, unsigned int flags)
{
    ENTER_REF(t);
    if (flags != 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(m, SG_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    unbind(t);
    t->mipmap = m;
    t->format = m->desc.Format;
    t->channels = (int)m->desc.NumChannels;
    return CUDA_SUCCESS;
}

static CUresult set_address(size_t *offset, CUtexref t, CUdeviceptr p, size_t bytes)
{
    size_t before = p % 512;

    ENTER_REF(t);
    if (p && (!bytes || !sg_mem_ours(p, bytes)))
        return CUDA_ERROR_INVALID_VALUE;
    if (before && !offset) /* an address that is not aligned needs the rest told */
        return CUDA_ERROR_INVALID_VALUE;
    unbind(t);
    t->p = p - before;
    t->bytes = bytes;
    if (offset)
        *offset = before;
    return CUDA_SUCCESS;
}

SG_API CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref t, CUdeviceptr p, size_t bytes)
{
    return set_address(offset, t, p, bytes);
}

SG_API CUresult cuTexRefSetAddress(unsigned int *offset, CUtexref t, CUdeviceptr_v1 p, unsigned int bytes)
{
    size_t o = 0;
    CUresult r = set_address(offset ? &o : NULL, t, p, bytes);

    if (r == CUDA_SUCCESS && offset)
        *offset = (unsigned)o;
    return r;
}

static CUresult set_2d(CUtexref t, size_t width, size_t height, CUarray_format f, unsigned channels, CUdeviceptr p,
                       size_t pitch)
{
    size_t element = sg_format_bytes(f) * channels, n;

    ENTER_REF(t);
    if (!element || !width || !height || p % 512 || pitch % 32 || __builtin_mul_overflow(width, element, &n) || n > pitch ||
        __builtin_mul_overflow(height - 1, pitch, &n) || __builtin_add_overflow(n, width * element, &n) ||
        !sg_mem_ours(p, n))
        return CUDA_ERROR_INVALID_VALUE;
    unbind(t);
    t->p = p;
    t->bytes = n;
    t->format = f;
    t->channels = (int)channels;
    return CUDA_SUCCESS;
}

SG_API CUresult cuTexRefSetAddress2D(CUtexref t, const CUDA_ARRAY_DESCRIPTOR_v1 *d, CUdeviceptr_v1 p, unsigned int pitch)
{
    return d ? set_2d(t, d->Width, d->Height, d->Format, d->NumChannels, p, pitch) : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuTexRefSetAddress2D_v2(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr p, size_t pitch)
{
    return d ? set_2d(t, d->Width, d->Height, d->Format, d->NumChannels, p, pitch) : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuTexRefSetAddress2D_v3(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *d, CUdeviceptr p, size_t pitch)
{
    return cuTexRefSetAddress2D_v2(t, d, p, pitch);
}

CALL(cuTexRefSetFormat, (CUtexref t, CUarray_format f, int n), sg_format_bytes(f) && (n == 1 || n == 2 || n == 4),
     t->format = f; t->channels = n)
CALL(cuTexRefSetAddressMode, (CUtexref t, int dim, CUaddress_mode a), dim >= 0 && dim < 3 && a <= 3, t->address[dim] = a)
CALL(cuTexRefSetFilterMode, (CUtexref t, CUfilter_mode f), f <= 1, t->filter = f)
CALL(cuTexRefSetFlags, (CUtexref t, unsigned int flags), true, t->flags = flags)
CALL(cuTexRefSetMipmapFilterMode, (CUtexref t, CUfilter_mode f), f <= 1, t->mipmap_filter = f)
CALL(cuTexRefSetMipmapLevelBias, (CUtexref t, float bias), true, t->bias = bias)
CALL(cuTexRefSetMipmapLevelClamp, (CUtexref t, float lo, float hi), true, t->min_level = lo; t->max_level = hi)
CALL(cuTexRefSetMaxAnisotropy, (CUtexref t, unsigned int n), true, t->anisotropy = n)
CALL(cuTexRefSetBorderColor, (CUtexref t, float *c), c, memcpy(t->border, c, sizeof(t->border)))
CALL(cuTexRefGetAddress_v2, (CUdeviceptr *out, CUtexref t), out &&t->p, *out = t->p)
CALL(cuTexRefGetAddress, (CUdeviceptr_v1 *out, CUtexref t), out &&t->p, *out = (CUdeviceptr_v1)t->p)
CALL(cuTexRefGetArray, (CUarray *out, CUtexref t), out &&t->array, *out = t->array)
CALL(cuTexRefGetMipmappedArray, (CUmipmappedArray *out, CUtexref t), out &&t->mipmap, *out = t->mipmap)
CALL(cuTexRefGetAddressMode, (CUaddress_mode *out, CUtexref t, int dim), out &&dim >= 0 && dim < 3,
     *out = t->address[dim])
CALL(cuTexRefGetFilterMode, (CUfilter_mode *out, CUtexref t), out, *out = t->filter)
CALL(cuTexRefGetFlags, (unsigned int *out, CUtexref t), out, *out = t->flags)
CALL(cuTexRefGetFormat, (CUarray_format *f, int *n, CUtexref t), f || n, if (f) *f = t->format; if (n) *n = t->channels)
CALL(cuTexRefGetMaxAnisotropy, (int *out, CUtexref t), out, *out = (int)t->anisotropy)
CALL(cuTexRefGetMipmapFilterMode, (CUfilter_mode *out, CUtexref t), out, *out = t->mipmap_filter)
CALL(cuTexRefGetMipmapLevelBias, (float *out, CUtexref t), out, *out = t->bias)
CALL(cuTexRefGetMipmapLevelClamp, (float *lo, float *hi, CUtexref t), lo || hi, if (lo) *lo = t->min_level;
     if (hi) *hi = t->max_level)
CALL(cuTexRefGetBorderColor, (float *out, CUtexref t), out, memcpy(out, t->border, sizeof(t->border)))

SG_API CUresult cuParamSetTexRef(CUfunction f, int unit, CUtexref t)
{
    ENTER_REF(t);
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    return unit == -1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; /* CU_PARAM_TR_DEFAULT */
}

SG_API CUresult cuSurfRefSetArray(CUsurfref s, CUarray a, unsigned int flags)
{
    CUtexref t = (CUtexref)s;

    ENTER_REF(t);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(a, SG_ARRAY))
        return CUDA_ERROR_INVALID_HANDLE;
    t->array = a;
    return CUDA_SUCCESS;
}

SG_API CUresult cuSurfRefGetArray(CUarray *out, CUsurfref s)
{
    CUtexref t = (CUtexref)s;

    ENTER_REF(t);
    if (!out || !t->array)
        return CUDA_ERROR_INVALID_VALUE;
    *out = t->array;
    return CUDA_SUCCESS;
}
