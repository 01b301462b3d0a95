// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * devres.c: a device's multiprocessors as a resource that can be split. How
 * small a part may be, and which sizes there are, follows the architecture, as
 * NVIDIA documents it. Multiprocessors are a row here: real cards group them,
 * and where a group is not full, give fewer parts (an H100 of 132 gave 15 parts
 * of 8, not 16).
 */
#include "driver.h"
#include "green.h"

#define RESOURCE_MAGIC 0x53475253u

enum { IGNORE_COSCHEDULING = 1, MAX_CLUSTER = 2, SPLIT_FLAGS = 3 };

static void rules(CUdevice dev, unsigned flags, unsigned *least, unsigned *align)
{
    unsigned cc = sg_dev(dev)->info->capability;

    *least = cc >= 90 ? 8 : cc >= 80 ? 4 : cc >= 70 ? 2 : 1;
    *align = cc >= 90 ? 8 : cc >= 70 ? 2 : 1;
    if (flags & IGNORE_COSCHEDULING && cc >= 80)
        *least = *align = 2;
    if (flags & MAX_CLUSTER && cc >= 90)
        *least = *align = 16; /* the largest cluster that can be asked for */
}

static void fill(CUdevice dev, unsigned first, unsigned sms, bool split, CUdevResource *r)
{
    struct sg_resource_own own = {RESOURCE_MAGIC, (uint32_t)dev, first, split};

    memset(r, 0, sizeof(*r));
    r->type = sms ? SG_RESOURCE_SM : SG_RESOURCE_NONE;
    memcpy(r->own, &own, sizeof(own));
    r->sm.count = sms;
    if (sms)
        rules(dev, 0, &r->sm.least, &r->sm.align);
}

void sg_resource_fill(CUdevice dev, unsigned first, unsigned sms, CUdevResource *r)
{
    fill(dev, first, sms ? sms : sg_dev(dev)->info->multiprocessors, false, r);
}

/* What is in r, if it is one that was given out here and not tampered with. */
static bool own_of(const CUdevResource *r, struct sg_resource_own *own)
{
    memcpy(own, r->own, sizeof(*own));
    return r->type == SG_RESOURCE_SM && own->magic == RESOURCE_MAGIC && sg_dev((CUdevice)own->dev) &&
           own->first <= sg_dev((CUdevice)own->dev)->info->multiprocessors &&
           r->sm.count <= sg_dev((CUdevice)own->dev)->info->multiprocessors - own->first;
}

static CUresult of_type(CUdevice dev, unsigned first, unsigned sms, CUdevResource *r, CUdevResourceType type)
{
    if (!r)
        return CUDA_ERROR_INVALID_VALUE;
    switch (type) {
    case SG_RESOURCE_SM:
        sg_resource_fill(dev, first, sms, r);
        return CUDA_SUCCESS;
    case SG_RESOURCE_QUEUE_CONFIG:
        if (sg_driver.cuda < 13010)
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        memset(r, 0, sizeof(*r));
        r->type = type;
        r->queue.dev = dev;
        r->queue.limit = 32;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    }
}

SG_API CUresult cuDeviceGetDevResource(CUdevice dev, CUdevResource *r, CUdevResourceType type)
{
    SG_ENTER();
    return sg_dev(dev) ? of_type(dev, 0, 0, r, type) : CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuCtxGetDevResource(CUcontext c, CUdevResource *r, CUdevResourceType type)
{
    SG_ENTER();
    if (!sg_is(c, SG_CTX) || !c->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    return of_type(c->dev, c->green ? c->green->first : 0, c->sms, r, type);
}

SG_API CUresult cuGreenCtxGetDevResource(CUgreenCtx g, CUdevResource *r, CUdevResourceType type)
{
    SG_ENTER();
    if (!sg_is(g, SG_GREEN))
        return CUDA_ERROR_INVALID_CONTEXT;
    return of_type(g->ctx->dev, g->first, g->ctx->sms, r, type);
}

static CUresult of_stream(CUstream h, CUdevResource *r, CUdevResourceType type, bool pt)
{
    CUstream s;
    CUresult ret;

    SG_ENTER();
    ret = sg_stream_of(h, pt, &s);
    return ret == CUDA_SUCCESS ? cuCtxGetDevResource(s->ctx, r, type) : ret;
}

CUresult cuStreamGetDevResource(CUstream, CUdevResource *, CUdevResourceType);
SG_API CUresult cuStreamGetDevResource(CUstream s, CUdevResource *r, CUdevResourceType type)
{
    return of_stream(s, r, type, false);
}

CUresult cuStreamGetDevResource_ptsz(CUstream, CUdevResource *, CUdevResourceType);
SG_API CUresult cuStreamGetDevResource_ptsz(CUstream s, CUdevResource *r, CUdevResourceType type)
{
    return of_stream(s, r, type, true);
}

/* ---- splits ---------------------------------------------------------------------------- */

SG_API CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups, const CUdevResource *input,
                                            CUdevResource *rest, unsigned int flags, unsigned int least)
{
    unsigned min, align, each, n;
    struct sg_resource_own own;
    CUdevResource in;

    SG_ENTER();
    if (!groups || !input || flags & ~(unsigned)SPLIT_FLAGS || flags == SPLIT_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    in = *input; /* rest may be the same */
    if (in.type != SG_RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (!own_of(&in, &own))
        return CUDA_ERROR_INVALID_VALUE;
    if (own.split || least > in.sm.count)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    rules((CUdevice)own.dev, flags, &min, &align);
    each = least < min ? min : (least + align - 1) / align * align;
    n = in.sm.count / each;
    if (!n)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (result) {
        if (!*groups)
            return CUDA_ERROR_INVALID_VALUE;
        n = *groups < n ? *groups : n;
        for (unsigned i = 0; i < n; i++)
            fill((CUdevice)own.dev, own.first + i * each, each, true, &result[i]);
    }
    *groups = n;
    if (rest)
        fill((CUdevice)own.dev, own.first + n * each, in.sm.count - n * each, true, rest);
    return CUDA_SUCCESS;
}

struct sg_group_params {
    unsigned int count, coscheduled, preferred, flags;
    unsigned int reserved[12];
};
enum { BACKFILL = 1 };

/* Groups of sizes of their own; a size of 0 becomes what is left. */
CUresult cuDevSmResourceSplit(CUdevResource *, unsigned int, const CUdevResource *, CUdevResource *, unsigned int,
                              struct sg_group_params *);
SG_API CUresult cuDevSmResourceSplit(CUdevResource *result, unsigned int groups, const CUdevResource *input,
                                     CUdevResource *rest, unsigned int flags, struct sg_group_params *p)
{
    unsigned min, align, used = 0;
    struct sg_resource_own own;
    CUdevResource in;

    SG_ENTER();
    if (!groups || !input || !p || flags)
        return CUDA_ERROR_INVALID_VALUE;
    in = *input;
    if (in.type != SG_RESOURCE_SM)
        return CUDA_ERROR_INVALID_RESOURCE_TYPE;
    if (!own_of(&in, &own) || own.split)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    rules((CUdevice)own.dev, 0, &min, &align);
    for (unsigned i = 0; i < groups; i++) {
        unsigned together = p[i].coscheduled ? p[i].coscheduled : align, left = in.sm.count - used;

        if (p[i].flags & ~(unsigned)BACKFILL || together > in.sm.count || (together > 1 && together % 2))
            return CUDA_ERROR_INVALID_VALUE;
        if (!p[i].count)
            p[i].count = left / together * together;
        if (!p[i].count ? result != NULL : p[i].count > left || (p[i].count > 1 && p[i].count % 2) ||
                                               (!(p[i].flags & BACKFILL) && p[i].count % together))
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        if (result) {
            fill((CUdevice)own.dev, own.first + used, p[i].count, true, &result[i]);
            result[i].sm.align = together;
        }
        used += p[i].count;
    }
    if (rest)
        fill((CUdevice)own.dev, own.first + used, in.sm.count - used, true, rest);
    return CUDA_SUCCESS;
}

/* ---- descriptions ------------------------------------------------------------------------ */

SG_API CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *pd, CUdevResource *v, unsigned int n)
{
    struct sg_resource_own a = {0}, b;
    unsigned end = 0, sms = 0;
    CUdevResourceDesc d;

    SG_ENTER();
    if (!pd || !v || !n)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        if (v[i].type == SG_RESOURCE_QUEUE_CONFIG && sg_driver.cuda >= 13010)
            continue;
        if (v[i].type != SG_RESOURCE_SM)
            return CUDA_ERROR_INVALID_RESOURCE_TYPE;
        /* Parts of one split, none twice, one behind the other. */
        if (!own_of(&v[i], &b) || (sms && (b.dev != a.dev || b.first != end)))
            return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
        if (!sms)
            a = b;
        end = b.first + v[i].sm.count;
        sms += v[i].sm.count;
    }
    if (!sms)
        return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    d = sg_object_new(sizeof(*d));
    if (!d)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->dev = (CUdevice)a.dev;
    d->first = a.first;
    d->sms = sms;
    d->magic = SG_RESOURCE_DESC; /* no call ends it */
    *pd = d;
    return CUDA_SUCCESS;
}
