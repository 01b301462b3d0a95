// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_mig_compute.c: compute instances inside GPU instances. */
#include "nvml.h"

#define NONE UINT32_MAX

/* Slices of a compute instance's profile, 0 if the interface has no such one. */
static unsigned slices_of(unsigned profile)
{
    static const unsigned slices[NVML_COMPUTE_INSTANCE_PROFILE_COUNT] = {1, 2, 3, 4, 7, 8, 6, 1, 7};

    return profile < SG_LEN(slices) && profile < 5 ? slices[profile] : 0;
}

/* Whether an instance of n slices can hold a compute instance of that many. */
static bool fits(unsigned n, unsigned slices)
{
    return slices && slices <= n && !(n == 4 && slices == 3);
}

struct view {
    struct sg_mig_instance v[SG_MIG_LIST], self;
    unsigned n;
};

static nvmlReturn_t enter(nvmlGpuInstance_t g, struct view *w)
{
    return sg_mig_enter(g, w->v, &w->n, &w->self);
}

static nvmlReturn_t profile(nvmlGpuInstance_t g, unsigned number, unsigned engines, nvmlComputeInstanceProfileInfo_t *p)
{
    struct sg_mig_shape s;
    struct view w;
    unsigned slices = slices_of(number);

    SG_NVML_TRY(enter(g, &w));
    SG_NVML_WANT(p && number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT && !engines);
    SG_NVML_NEED(fits(w.self.slices, slices));
    SG_NVML_TRY(sg_mig_shape_of(g->dev, false, w.self.profile, &s));
    *p = (nvmlComputeInstanceProfileInfo_t){
        .id = number, .sliceCount = slices, .instanceCount = w.self.slices / slices,
        .multiprocessorCount = slices == w.self.slices ? s.multiprocessors : slices * s.slice_multiprocessors,
        .sharedCopyEngineCount = s.engines[0], .sharedDecoderCount = s.engines[1], .sharedEncoderCount = s.engines[2],
        .sharedJpegCount = s.engines[3], .sharedOfaCount = s.engines[4]};
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t g, unsigned int number,
                                                                 unsigned int engines,
                                                                 nvmlComputeInstanceProfileInfo_t *p)
{
    return profile(g, number, engines, p);
}

SG_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t g, unsigned int number,
                                                                  unsigned int engines,
                                                                  nvmlComputeInstanceProfileInfo_v2_t *p)
{
    nvmlComputeInstanceProfileInfo_t q;
    struct sg_mig_shape s;
    unsigned version;
    struct view w;

    SG_NVML_TRY(enter(g, &w));
    SG_NVML_WANT(p);
    version = p->version;
    if (version != GS_NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v2_t, 2) &&
        version != GS_NVML_STRUCT_VERSION(nvmlComputeInstanceProfileInfo_v3_t, 3))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    SG_NVML_TRY(profile(g, number, engines, &q));
    /* Both begin alike; version 3 has one more word. */
    memset(p, 0, version & 0xffffff);
    p->version = version;
    memcpy(&p->id, &q, sizeof(q));
    SG_NVML_TRY(sg_mig_shape_of(g->dev, false, w.self.profile, &s));
    if (q.sliceCount == w.self.slices)
        memcpy(p->name, s.name, sizeof(s.name));
    else
        snprintf(p->name, sizeof(p->name), "MIG %uc.%.24s", q.sliceCount, s.name + 4);
    return NVML_SUCCESS;
}

/* Compute slices in use in the instance. */
static uint32_t taken(const struct view *w)
{
    uint32_t bits = 0;

    for (unsigned i = 0; i < w->n; i++) {
        if (w->v[i].gi == w->self.gi && w->v[i].ci != NONE)
            bits |= ((1u << w->v[i].size) - 1) << w->v[i].start;
    }
    return bits;
}

SG_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t g, unsigned int number,
                                                                       unsigned int *n)
{
    unsigned slices = slices_of(number), count = 0;
    struct view w;

    SG_NVML_TRY(enter(g, &w));
    SG_NVML_WANT(n);
    SG_NVML_NEED(fits(w.self.slices, slices));
    for (unsigned at = 0; at + slices <= w.self.slices; at += slices)
        count += !(taken(&w) & ((1u << slices) - 1) << at);
    *n = count;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t g, unsigned int number,
                                                                        nvmlComputeInstancePlacement_t *p,
                                                                        unsigned int *n)
{
    unsigned slices = slices_of(number), have = 0, room;
    struct view w;

    SG_NVML_TRY(enter(g, &w));
    SG_NVML_WANT(n);
    SG_NVML_NEED(fits(w.self.slices, slices));
    room = p ? *n : 0;
    for (unsigned at = 0; at + slices <= w.self.slices; at += slices) {
        if (have < room)
            p[have] = (nvmlComputeInstancePlacement_t){.start = at, .size = slices};
        have++;
    }
    *n = have;
    return p && have > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t create(nvmlGpuInstance_t g, unsigned number, unsigned start, nvmlComputeInstance_t *ret)
{
    struct view w;
    uint64_t made;

    SG_NVML_TRY(enter(g, &w));
    SG_NVML_WANT(ret && number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT);
    SG_NVML_TRY(sg_mig_command(g->dev, SG_OP_CI_CREATE, g->id, number | (uint64_t)start << 32, &made));
    *ret = &g->part[made % SG_MIG_PARTS];
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t g, unsigned int number,
                                                         nvmlComputeInstance_t *ret)
{
    return create(g, number, NONE, ret);
}

SG_API nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t g, unsigned int number,
                                                                      const nvmlComputeInstancePlacement_t *p,
                                                                      nvmlComputeInstance_t *ret)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(p);
    return create(g, number, p->start, ret);
}

/* Enters with a compute instance. */
static nvmlReturn_t enter_part(nvmlComputeInstance_t c, struct view *w, struct sg_mig_instance *part)
{
    uintptr_t at = (uintptr_t)c - (uintptr_t)sg_nvml.instance;
    size_t inside = at % sizeof(sg_nvml.instance[0]);

    SG_NVML_ENTER();
    SG_NVML_WANT(at < sizeof(sg_nvml.instance) && inside >= offsetof(struct nvmlGpuInstance_st, part) &&
                 (inside - offsetof(struct nvmlGpuInstance_st, part)) % sizeof(*c) == 0 && c->in);
    SG_NVML_TRY(enter(c->in, w));
    for (unsigned i = 0; i < w->n; i++) {
        if (w->v[i].gi == c->in->id && w->v[i].ci == c->id) {
            *part = w->v[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

SG_API nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t c)
{
    struct sg_mig_instance part;
    struct view w;

    SG_NVML_TRY(enter_part(c, &w, &part));
    return sg_mig_command(c->in->dev, SG_OP_CI_DESTROY, c->in->id, c->id, NULL);
}

static nvmlReturn_t info(nvmlComputeInstance_t c, nvmlComputeInstanceInfo_t *i)
{
    struct sg_mig_instance part;
    struct view w;

    SG_NVML_TRY(enter_part(c, &w, &part));
    SG_NVML_WANT(i);
    *i = (nvmlComputeInstanceInfo_t){.device = c->in->dev, .gpuInstance = c->in, .id = part.ci,
                                     .profileId = part.profile,
                                     .placement = {.start = part.start, .size = part.size}};
    return NVML_SUCCESS;
}

/* The first form ends before the placement. */
SG_API nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t c, nvmlComputeInstanceInfo_t *i)
{
    nvmlComputeInstanceInfo_t q;

    SG_NVML_TRY(info(c, &q));
    SG_NVML_WANT(i);
    memcpy(i, &q, offsetof(nvmlComputeInstanceInfo_t, placement));
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t c, nvmlComputeInstanceInfo_t *i)
{
    return info(c, i);
}

SG_API nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t g, unsigned int number,
                                                       nvmlComputeInstance_t *ret, unsigned int *n)
{
    unsigned found = 0;
    struct view w;

    SG_NVML_TRY(enter(g, &w));
    SG_NVML_WANT(ret && n);
    for (unsigned i = 0; i < w.n; i++) {
        if (w.v[i].gi == g->id && w.v[i].ci != NONE && w.v[i].profile == number)
            ret[found++] = &g->part[w.v[i].ci % SG_MIG_PARTS];
    }
    *n = found;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t g, unsigned int id,
                                                          nvmlComputeInstance_t *ret)
{
    struct view w;

    SG_NVML_TRY(enter(g, &w));
    SG_NVML_WANT(ret);
    for (unsigned i = 0; i < w.n; i++) {
        if (w.v[i].gi == g->id && w.v[i].ci == id && id < SG_MIG_PARTS) {
            *ret = &g->part[id];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}
