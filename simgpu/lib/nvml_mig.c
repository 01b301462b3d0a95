// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_mig.c: cutting a GPU, and the devices that it is cut into. The host
 * process keeps the layout; handles are names for its numbers. */
#include "nvml.h"

#define SHAPES ((SG_MAX_MESSAGE - sizeof(struct sg_reply)) / sizeof(struct sg_mig_shape))
#define PARTS SG_MIG_LIST
#define NONE UINT32_MAX

nvmlReturn_t sg_mig_list(nvmlDevice_t d, struct sg_mig_instance *v, unsigned *n)
{
    struct sg_reply rep;
    size_t len = 0;
    nvmlReturn_t r = sg_nvml_ask(SG_OP_MIG_LIST, d, 0, &rep, v, PARTS * sizeof(*v), &len);

    *n = (unsigned)(len / sizeof(*v));
    return r;
}

static nvmlReturn_t shapes(nvmlDevice_t d, struct sg_mig_shape *v, unsigned *n)
{
    struct sg_reply rep;
    size_t len = 0;
    nvmlReturn_t r = sg_nvml_ask(SG_OP_MIG_SHAPES, d, 0, &rep, v, SHAPES * sizeof(*v), &len);

    *n = (unsigned)(len / sizeof(*v));
    return r;
}

nvmlReturn_t sg_mig_command(nvmlDevice_t d, uint32_t op, uint64_t a, uint64_t b, uint64_t *ret)
{
    struct sg_request req = {.op = op, .gpu = d->gpu, .a = a, .b = b};
    struct sg_reply rep;

    SG_NVML_TRY(sg_nvml_request(&req, NULL, &rep, NULL, 0, NULL));
    if (ret)
        *ret = rep.a;
    return NVML_SUCCESS;
}

/* ---- mode ---------------------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *current, unsigned int *pending)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(current && pending);
    SG_NVML_NEED(d->card->mig_instances);
    SG_NVML_SENSE(d, &s);
    *current = s.mig;
    *pending = s.mig_pending;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t d, unsigned int on, nvmlReturn_t *activation)
{
    nvmlReturn_t r;

    SG_NVML_GPU(d);
    SG_NVML_WANT(activation && on < 2);
    SG_NVML_NEED(d->card->mig_instances);
    r = sg_nvml_mode(d, SG_MODE_MIG, on);
    *activation = r;
    /* A card in use keeps the new mode for later; the call has succeeded. */
    return r == NVML_ERROR_IN_USE ? NVML_SUCCESS : r;
}

SG_NVML_FACT(nvmlDeviceGetMaxMigDeviceCount, unsigned int, true, d->card->mig_instances)

/* ---- devices ------------------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t d, unsigned int *yes)
{
    SG_NVML_DEV(d);
    SG_NVML_WANT(yes);
    *yes = d->parent != NULL;
    return NVML_SUCCESS;
}

/* Names the MIG device that p describes. */
nvmlDevice_t sg_mig_handle(nvmlDevice_t d, const struct sg_mig_instance *p)
{
    nvmlDevice_t m = &sg_nvml.mig[(unsigned)(d - sg_nvml.dev) * SG_MIG_PARTS + p->index % SG_MIG_PARTS];

    pthread_mutex_lock(&sg_nvml.lock);
    *m = (struct nvmlDevice_st){SG_NVML_DEVICE, d->gpu, d->info, d->card, d, *p};
    pthread_mutex_unlock(&sg_nvml.lock);
    return m;
}

SG_API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned int index, nvmlDevice_t *ret)
{
    struct sg_mig_instance v[PARTS];
    struct sg_sensors s;
    unsigned n;

    SG_NVML_GPU(d);
    SG_NVML_WANT(ret);
    SG_NVML_NEED(d->card->mig_instances);
    SG_NVML_WANT(index < d->card->mig_instances);
    SG_NVML_SENSE(d, &s);
    SG_NVML_NEED(s.mig);
    SG_NVML_TRY(sg_mig_list(d, v, &n));
    for (unsigned i = 0; i < n; i++) {
        if (v[i].index == index) {
            *ret = sg_mig_handle(d, &v[i]);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t sg_nvml_mig_find(const char *uuid, nvmlDevice_t *ret)
{
    struct sg_mig_instance v[PARTS];
    unsigned n;

    for (unsigned g = 0; g < sg_nvml.ndev; g++) {
        nvmlDevice_t d = &sg_nvml.dev[g];

        if (!d->card->mig_instances || sg_mig_list(d, v, &n) != NVML_SUCCESS)
            continue;
        for (unsigned i = 0; i < n; i++) {
            if (v[i].ci != NONE && !strncmp(v[i].uuid, uuid, sizeof(v[i].uuid))) {
                *ret = sg_mig_handle(d, &v[i]);
                return NVML_SUCCESS;
            }
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

SG_API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t d, nvmlDevice_t *ret)
{
    SG_NVML_DEV(d);
    SG_NVML_WANT(ret && d->parent);
    *ret = d->parent;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned int *id)
{
    SG_NVML_DEV(d);
    SG_NVML_WANT(id);
    SG_NVML_NEED(d->parent);
    *id = d->part.gi;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned int *id)
{
    SG_NVML_DEV(d);
    SG_NVML_WANT(id);
    SG_NVML_NEED(d->parent);
    *id = d->part.ci;
    return NVML_SUCCESS;
}

static nvmlReturn_t attributes(nvmlDevice_t d, nvmlDeviceAttributes_t *a, size_t size)
{
    nvmlDeviceAttributes_t full;
    struct sg_mig_instance v[PARTS];
    unsigned n, gi_slices = 0;

    SG_NVML_DEV(d);
    SG_NVML_WANT(a && d->parent);
    SG_NVML_TRY(sg_mig_list(d->parent, v, &n));
    for (unsigned i = 0; i < n; i++) {
        if (v[i].gi == d->part.gi && v[i].ci == NONE)
            gi_slices = v[i].slices;
    }
    full = (nvmlDeviceAttributes_t){
        .multiprocessorCount = d->part.multiprocessors, .sharedCopyEngineCount = d->part.engines[0],
        .sharedDecoderCount = d->part.engines[1], .sharedEncoderCount = d->part.engines[2],
        .sharedJpegCount = d->part.engines[3], .sharedOfaCount = d->part.engines[4],
        .gpuInstanceSliceCount = gi_slices, .computeInstanceSliceCount = d->part.slices,
        .memorySizeMB = d->part.memory_bytes >> 20};
    memcpy(a, &full, size);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t d, nvmlDeviceAttributes_t *a)
{
    return attributes(d, a, sizeof(*a));
}

SG_API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t d, nvmlDeviceAttributes_t *a)
{
    return attributes(d, a, sizeof(*a));
}

/* ---- shapes of GPU instances ------------------------------------------------------------------ */

/* Finds a shape by its place in the interface or by its number. */
nvmlReturn_t sg_mig_shape_of(nvmlDevice_t d, bool by_index, unsigned which, struct sg_mig_shape *ret)
{
    struct sg_mig_shape v[SHAPES];
    unsigned n;

    SG_NVML_GPU(d);
    SG_NVML_NEED(d->card->mig_instances);
    SG_NVML_WANT(!by_index || which < NVML_GPU_INSTANCE_PROFILE_COUNT);
    SG_NVML_TRY(shapes(d, v, &n));
    for (unsigned i = 0; i < n; i++) {
        if ((by_index ? v[i].index : v[i].id) == which) {
            *ret = v[i];
            return NVML_SUCCESS;
        }
    }
    return by_index ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

SG_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t d, unsigned int index,
                                                        nvmlGpuInstanceProfileInfo_t *p)
{
    struct sg_mig_shape s;

    SG_NVML_TRY(sg_mig_shape_of(d, true, index, &s));
    SG_NVML_WANT(p);
    *p = (nvmlGpuInstanceProfileInfo_t){.id = s.id, .isP2pSupported = s.p2p, .sliceCount = s.slices,
                                        .instanceCount = s.count, .multiprocessorCount = s.multiprocessors,
                                        .copyEngineCount = s.engines[0], .decoderCount = s.engines[1],
                                        .encoderCount = s.engines[2], .jpegCount = s.engines[3],
                                        .ofaCount = s.engines[4], .memorySizeMB = s.memory_mib};
    return NVML_SUCCESS;
}

/* Version 3 tells peer access among capabilities behind the name. */
static nvmlReturn_t profile_v(nvmlDevice_t d, bool by_index, unsigned which, nvmlGpuInstanceProfileInfo_v2_t *p)
{
    struct sg_mig_shape s;
    unsigned version;

    SG_NVML_GPU(d);
    SG_NVML_WANT(p);
    version = p->version;
    if (version != GS_NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2) &&
        version != GS_NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v3_t, 3))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    SG_NVML_TRY(sg_mig_shape_of(d, by_index, which, &s));
    if (version >> 24 == 3) {
        nvmlGpuInstanceProfileInfo_v3_t *q = (nvmlGpuInstanceProfileInfo_v3_t *)(void *)p;

        *q = (nvmlGpuInstanceProfileInfo_v3_t){
            .version = version, .id = s.id, .sliceCount = s.slices, .instanceCount = s.count,
            .multiprocessorCount = s.multiprocessors, .copyEngineCount = s.engines[0], .decoderCount = s.engines[1],
            .encoderCount = s.engines[2], .jpegCount = s.engines[3], .ofaCount = s.engines[4],
            .memorySizeMB = s.memory_mib, .capabilities = s.p2p ? 1 : 0};
        memcpy(q->name, s.name, sizeof(s.name));
        return NVML_SUCCESS;
    }
    *p = (nvmlGpuInstanceProfileInfo_v2_t){
        .version = version, .id = s.id, .isP2pSupported = s.p2p, .sliceCount = s.slices, .instanceCount = s.count,
        .multiprocessorCount = s.multiprocessors, .copyEngineCount = s.engines[0], .decoderCount = s.engines[1],
        .encoderCount = s.engines[2], .jpegCount = s.engines[3], .ofaCount = s.engines[4],
        .memorySizeMB = s.memory_mib};
    memcpy(p->name, s.name, sizeof(s.name));
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t d, unsigned int index,
                                                         nvmlGpuInstanceProfileInfo_v2_t *p)
{
    return profile_v(d, true, index, p);
}

SG_API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t d, unsigned int id,
                                                             nvmlGpuInstanceProfileInfo_v2_t *p)
{
    return profile_v(d, false, id, p);
}

static nvmlReturn_t placements(nvmlDevice_t d, unsigned id, nvmlGpuInstancePlacement_t *p, unsigned *n)
{
    struct sg_mig_shape s;
    unsigned have = 0, room;

    SG_NVML_TRY(sg_mig_shape_of(d, false, id, &s));
    SG_NVML_WANT(n);
    room = p ? *n : 0;
    for (unsigned at = 0; at < 32; at++) {
        if (!(s.starts & 1u << at))
            continue;
        if (have < room)
            p[have] = (nvmlGpuInstancePlacement_t){.start = at, .size = s.size};
        have++;
    }
    *n = have;
    return p && have > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t d, unsigned int id,
                                                               nvmlGpuInstancePlacement_t *p, unsigned int *n)
{
    return placements(d, id, p, n);
}

SG_API nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t d, unsigned int id,
                                                                  nvmlGpuInstancePlacement_t *p, unsigned int *n)
{
    return placements(d, id, p, n);
}

SG_API nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t d, unsigned int id, unsigned int *n)
{
    struct sg_mig_shape s;

    SG_NVML_TRY(sg_mig_shape_of(d, false, id, &s));
    SG_NVML_WANT(n);
    *n = s.remaining;
    return NVML_SUCCESS;
}

/* ---- GPU instances ----------------------------------------------------------------------------- */

static nvmlGpuInstance_t instance(nvmlDevice_t d, unsigned id)
{
    nvmlGpuInstance_t g = &sg_nvml.instance[(unsigned)(d - sg_nvml.dev) * SG_MIG_MAX + id % SG_MIG_MAX];

    pthread_mutex_lock(&sg_nvml.lock);
    g->dev = d;
    g->id = id;
    for (unsigned i = 0; i < SG_MIG_PARTS; i++)
        g->part[i] = (struct nvmlComputeInstance_st){g, i};
    pthread_mutex_unlock(&sg_nvml.lock);
    return g;
}

/* Enters with a GPU instance and finds what the host says of it. */
nvmlReturn_t sg_mig_enter(nvmlGpuInstance_t g, struct sg_mig_instance *v, unsigned *n, struct sg_mig_instance *self)
{
    uintptr_t at = (uintptr_t)g - (uintptr_t)sg_nvml.instance;

    SG_NVML_ENTER();
    SG_NVML_WANT(at < sizeof(sg_nvml.instance) && at % sizeof(sg_nvml.instance[0]) == 0 && g->dev);
    SG_NVML_DEV(g->dev);
    SG_NVML_TRY(sg_mig_list(g->dev, v, n));
    for (unsigned i = 0; i < *n; i++) {
        if (v[i].gi == g->id && v[i].ci == NONE) {
            *self = v[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_INVALID_ARGUMENT; /* destroyed */
}

static nvmlReturn_t create(nvmlDevice_t d, unsigned id, uint64_t start, nvmlGpuInstance_t *ret)
{
    uint64_t made;

    SG_NVML_GPU(d);
    SG_NVML_WANT(ret);
    SG_NVML_NEED(d->card->mig_instances);
    SG_NVML_TRY(sg_mig_command(d, SG_OP_MIG_CREATE, id, start, &made));
    *ret = instance(d, (unsigned)made);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t d, unsigned int id, nvmlGpuInstance_t *ret)
{
    return create(d, id, UINT64_MAX, ret);
}

SG_API nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t d, unsigned int id,
                                                             const nvmlGpuInstancePlacement_t *p,
                                                             nvmlGpuInstance_t *ret)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(p);
    return create(d, id, p->start, ret);
}

SG_API nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t g)
{
    struct sg_mig_instance v[PARTS], self;
    unsigned n;

    SG_NVML_TRY(sg_mig_enter(g, v, &n, &self));
    return sg_mig_command(g->dev, SG_OP_MIG_DESTROY, g->id, 0, NULL);
}

SG_API nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t d, unsigned int id, nvmlGpuInstance_t *ret, unsigned int *n)
{
    struct sg_mig_instance v[PARTS];
    unsigned have, found = 0;

    SG_NVML_GPU(d);
    SG_NVML_WANT(ret && n);
    SG_NVML_NEED(d->card->mig_instances);
    SG_NVML_TRY(sg_mig_list(d, v, &have));
    for (unsigned i = 0; i < have; i++) {
        if (v[i].ci == NONE && v[i].profile == id)
            ret[found++] = instance(d, v[i].gi);
    }
    *n = found;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t d, unsigned int id, nvmlGpuInstance_t *ret)
{
    struct sg_mig_instance v[PARTS];
    unsigned n;

    SG_NVML_GPU(d);
    SG_NVML_WANT(ret);
    SG_NVML_NEED(d->card->mig_instances);
    SG_NVML_TRY(sg_mig_list(d, v, &n));
    for (unsigned i = 0; i < n; i++) {
        if (v[i].ci == NONE && v[i].gi == id) {
            *ret = instance(d, id);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

SG_API nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t g, nvmlGpuInstanceInfo_t *i)
{
    struct sg_mig_instance v[PARTS], self;
    unsigned n;

    SG_NVML_TRY(sg_mig_enter(g, v, &n, &self));
    SG_NVML_WANT(i);
    *i = (nvmlGpuInstanceInfo_t){.device = g->dev, .id = self.gi, .profileId = self.profile,
                                 .placement = {.start = self.start, .size = self.size}};
    return NVML_SUCCESS;
}
