// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * texture.c: texture and surface objects. Kernels do nothing, so that an object
 * is only what it was made of; the rules of what may be bound are the driver's.
 */
#include "array.h"

/* Layouts that the header leaves open. */
enum { OF_ARRAY, OF_MIPMAP, OF_LINEAR, OF_PITCH };
struct resource {
    int type;
    union {
        CUarray array;
        CUmipmappedArray mipmap;
        struct {
            CUdeviceptr p;
            CUarray_format format;
            unsigned channels;
            size_t bytes;
        } linear;
        struct {
            CUdeviceptr p;
            CUarray_format format;
            unsigned channels;
            size_t width, height, pitch;
        } pitch;
        int reserved[32];
    } of;
    unsigned flags;
};
struct texture {
    unsigned address_mode[3], filter_mode, flags, max_anisotropy, mipmap_filter;
    float bias, min_level, max_level, border[4];
    int reserved[12];
};
struct view {
    int format;
    size_t width, height, depth;
    unsigned first_level, last_level, first_layer, last_layer;
    unsigned reserved[16];
};
_Static_assert(sizeof(struct resource) == 144 && sizeof(struct texture) == 104 && sizeof(struct view) == 112,
               "layouts of the interface");

struct object {
    unsigned long long id;
    bool surface, viewed;
    CUcontext ctx;
    struct resource r;
    struct texture t;
    struct view v;
    struct object *next;
};
static struct object *table[256]; /* by id; under the lock */
static unsigned long long last_id;

static bool format_ok(CUarray_format f, unsigned channels)
{
    return sg_format_bytes(f) && (channels == 1 || channels == 2 || channels == 4);
}

static int attribute(CUdevice dev, CUdevice_attribute a)
{
    int v = 0;

    return cuDeviceGetAttribute(&v, a, dev) == CUDA_SUCCESS ? v : 0;
}

static CUresult check_resource(const struct resource *r, CUcontext c)
{
    size_t element, align = (size_t)attribute(c->dev, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    size_t pitch_align = (size_t)attribute(c->dev, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT), n;

    if (r->flags)
        return CUDA_ERROR_INVALID_VALUE;
    switch (r->type) {
    case OF_ARRAY:
        return sg_is(r->of.array, SG_ARRAY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case OF_MIPMAP:
        return sg_is(r->of.mipmap, SG_MIPMAP) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case OF_LINEAR:
        if (!format_ok(r->of.linear.format, r->of.linear.channels) || r->of.linear.p % align || !r->of.linear.bytes)
            return CUDA_ERROR_INVALID_VALUE;
        element = sg_format_bytes(r->of.linear.format) * r->of.linear.channels;
        if (r->of.linear.bytes / element >
            (size_t)attribute(c->dev, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH))
            return CUDA_ERROR_INVALID_VALUE;
        return sg_mem_ours(r->of.linear.p, r->of.linear.bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case OF_PITCH:
        if (!format_ok(r->of.pitch.format, r->of.pitch.channels) || r->of.pitch.p % align || !r->of.pitch.width ||
            !r->of.pitch.height || (pitch_align && r->of.pitch.pitch % pitch_align))
            return CUDA_ERROR_INVALID_VALUE;
        element = sg_format_bytes(r->of.pitch.format) * r->of.pitch.channels;
        if (r->of.pitch.width > SIZE_MAX / element || r->of.pitch.width * element > r->of.pitch.pitch ||
            r->of.pitch.width > (size_t)attribute(c->dev, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
            r->of.pitch.height > (size_t)attribute(c->dev, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
            __builtin_mul_overflow(r->of.pitch.height - 1, r->of.pitch.pitch, &n) ||
            __builtin_add_overflow(n, r->of.pitch.width * element, &n))
            return CUDA_ERROR_INVALID_VALUE;
        return sg_mem_ours(r->of.pitch.p, n) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check_texture(const struct texture *t, const struct view *v, const struct resource *r)
{
    for (unsigned i = 0; i < 3; i++) {
        if (t->address_mode[i] > 3)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (t->filter_mode > 1 || t->mipmap_filter > 1 || t->max_anisotropy > 16)
        return CUDA_ERROR_INVALID_VALUE;
    /* Linear memory is only fetched, and only arrays are viewed as something else. */
    if (v && r->type != OF_ARRAY && r->type != OF_MIPMAP)
        return CUDA_ERROR_INVALID_VALUE;
    if (v && (v->last_level < v->first_level || v->last_layer < v->first_layer))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult add(const struct object *like, unsigned long long *ret)
{
    struct object *o = malloc(sizeof(*o));

    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *o = *like;
    sg_lock();
    o->id = ++last_id;
    o->next = table[o->id % SG_LEN(table)];
    table[o->id % SG_LEN(table)] = o;
    *ret = o->id;
    sg_unlock();
    return CUDA_SUCCESS;
}

/* Copies an object out; the lock is not held. */
static bool find(unsigned long long id, bool surface, struct object *ret, bool drop)
{
    struct object **at, *o;

    sg_lock();
    for (at = &table[id % SG_LEN(table)]; *at && ((*at)->id != id || (*at)->surface != surface); at = &(*at)->next)
        ;
    o = *at;
    if (o) {
        *ret = *o;
        if (drop) {
            *at = o->next;
            free(o);
        }
    }
    sg_unlock();
    return o != NULL;
}

SG_API CUresult cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                                  const CUDA_RESOURCE_VIEW_DESC *view)
{
    struct object o = {.viewed = view != NULL};
    CUresult r;

    SG_ENTER_CTX(c);
    if (!out || !resource || !texture)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&o.r, resource, sizeof(o.r));
    memcpy(&o.t, texture, sizeof(o.t));
    if (view)
        memcpy(&o.v, view, sizeof(o.v));
    o.ctx = c;
    r = check_resource(&o.r, c);
    if (r == CUDA_SUCCESS)
        r = check_texture(&o.t, view ? &o.v : NULL, &o.r);
    return r == CUDA_SUCCESS ? add(&o, out) : r;
}

SG_API CUresult cuTexObjectDestroy(CUtexObject t)
{
    struct object o;

    SG_ENTER();
    return find(t, false, &o, true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject t)
{
    struct object o;

    SG_ENTER();
    if (!out || !find(t, false, &o, false))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &o.r, sizeof(o.r));
    return CUDA_SUCCESS;
}

SG_API CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject t)
{
    struct object o;

    SG_ENTER();
    if (!out || !find(t, false, &o, false))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &o.t, sizeof(o.t));
    return CUDA_SUCCESS;
}

SG_API CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *out, CUtexObject t)
{
    struct object o;

    SG_ENTER();
    if (!out || !find(t, false, &o, false) || !o.viewed)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &o.v, sizeof(o.v));
    return CUDA_SUCCESS;
}

/* A surface is an array that was made for it. */
SG_API CUresult cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *resource)
{
    struct object o = {.surface = true};
    CUresult r;

    SG_ENTER_CTX(c);
    if (!out || !resource)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&o.r, resource, sizeof(o.r));
    o.ctx = c;
    if (o.r.type != OF_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    r = check_resource(&o.r, c);
    if (r == CUDA_SUCCESS && !(o.r.of.array->desc.Flags & SG_ARRAY_SURFACE))
        r = CUDA_ERROR_INVALID_VALUE;
    return r == CUDA_SUCCESS ? add(&o, out) : r;
}

SG_API CUresult cuSurfObjectDestroy(CUsurfObject s)
{
    struct object o;

    SG_ENTER();
    return find(s, true, &o, true) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject s)
{
    struct object o;

    SG_ENTER();
    if (!out || !find(s, true, &o, false))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(out, &o.r, sizeof(o.r));
    return CUDA_SUCCESS;
}
