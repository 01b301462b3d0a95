// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_modes.c: modes of the driver, accounting, and what only root may do. */
#include "nvml.h"

SG_NVML_READING(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, true, s.persistence)
SG_NVML_READING(nvmlDeviceGetComputeMode, nvmlComputeMode_t, true, s.compute_mode)
SG_NVML_READING(nvmlDeviceGetAccountingMode, nvmlEnableState_t, true, s.accounting)

SG_API nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t d, nvmlEnableState_t on)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, SG_MODE_PERSISTENCE, on);
}

SG_API nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t d, nvmlComputeMode_t mode)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, SG_MODE_COMPUTE, mode);
}

SG_API nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t d, nvmlRestrictedAPI_t api, nvmlEnableState_t *restricted)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(restricted && api < 2);
    SG_NVML_NEED(!api && d->card->graphics_app); /* automatic boost is a thing of the past */
    SG_NVML_SENSE(d, &s);
    *restricted = s.restricted[api];
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceSetAPIRestriction(nvmlDevice_t d, nvmlRestrictedAPI_t api, nvmlEnableState_t restricted)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(api < 2 && restricted < 2);
    SG_NVML_NEED(!api && d->card->graphics_app);
    return sg_nvml_mode(d, SG_MODE_API_RESTRICTION, api | (uint64_t)restricted << 32);
}

/* ---- accounting ------------------------------------------------------------------------- */

#define ACCOUNTS ((SG_MAX_MESSAGE - sizeof(struct sg_reply)) / sizeof(struct sg_account))
#define BUFFER 4000u /* processes that the driver remembers */

static nvmlReturn_t accounts(nvmlDevice_t d, uint64_t pid, struct sg_account *v, unsigned *n)
{
    struct sg_reply rep;
    size_t len = 0;
    nvmlReturn_t r = sg_nvml_ask(SG_OP_ACCOUNTING, d, pid, &rep, v, ACCOUNTS * sizeof(*v), &len);

    *n = (unsigned)(len / sizeof(*v));
    return r;
}

SG_NVML_FACT(nvmlDeviceGetAccountingBufferSize, unsigned int, true, BUFFER)

SG_API nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t d, unsigned int *n, unsigned int *pids)
{
    struct sg_account v[ACCOUNTS];
    unsigned have, room;

    SG_NVML_GPU(d);
    SG_NVML_WANT(n);
    SG_NVML_TRY(accounts(d, 0, v, &have));
    room = pids ? *n : 0;
    *n = have;
    if (have > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < have; i++)
        pids[i] = v[i].pid;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t d, unsigned int pid, nvmlAccountingStats_t *st)
{
    struct sg_account v[ACCOUNTS];
    unsigned n;

    SG_NVML_GPU(d);
    SG_NVML_WANT(st && pid);
    SG_NVML_TRY(accounts(d, pid, v, &n));
    if (!n)
        return NVML_ERROR_NOT_FOUND;
    memset(st, 0, sizeof(*st));
    st->gpuUtilization = v->gpu_percent;
    st->memoryUtilization = v->memory_percent;
    st->maxMemoryUsage = v->max_bytes;
    st->time = v->time_ms;
    st->startTime = v->start_us;
    st->isRunning = v->running;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t d, nvmlAccountingStats_v2_t *st)
{
    struct sg_account v[ACCOUNTS];
    unsigned n;

    SG_NVML_GPU(d);
    SG_NVML_WANT(st && st->pid);
    SG_NVML_TRY(accounts(d, st->pid, v, &n));
    if (!n)
        return NVML_ERROR_NOT_FOUND;
    *st = (nvmlAccountingStats_v2_t){.pid = v->pid, .isRunning = v->running, .gpuUtilization = v->gpu_percent,
                                     .memoryUtilization = v->memory_percent, .maxMemoryUsage = v->max_bytes,
                                     .sampleCount = (unsigned)v->samples, .sumGpuUtil = v->sum_gpu,
                                     .sumFbUtil = v->sum_memory, .time = v->time_ms, .startTime = v->start_us};
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t d, nvmlEnableState_t on)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, SG_MODE_ACCOUNTING, on);
}

SG_API nvmlReturn_t nvmlDeviceClearAccountingPids(nvmlDevice_t d)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, SG_MODE_CLEAR_ACCOUNTING, 0);
}

/* ---- taking a card away ------------------------------------------------------------------- */

static nvmlReturn_t at(const nvmlPciInfo_t *p, nvmlDevice_t *ret)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(p);
    for (unsigned i = 0; i < sg_nvml.ndev; i++) {
        const struct sg_gpu_info *g = sg_nvml.dev[i].info;

        if (g->pci_domain == p->domain && g->pci_bus == p->bus && g->pci_device == p->device) {
            *ret = &sg_nvml.dev[i];
            return sg_nvml_check(*ret);
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

SG_API nvmlReturn_t nvmlDeviceModifyDrainState(nvmlPciInfo_t *p, nvmlEnableState_t on)
{
    nvmlDevice_t d;

    SG_NVML_TRY(at(p, &d));
    return sg_nvml_mode(d, SG_MODE_DRAIN, on);
}

SG_API nvmlReturn_t nvmlDeviceQueryDrainState(nvmlPciInfo_t *p, nvmlEnableState_t *on)
{
    struct sg_sensors s;
    nvmlDevice_t d;

    SG_NVML_TRY(at(p, &d));
    SG_NVML_WANT(on);
    SG_NVML_SENSE(d, &s);
    *on = s.drain;
    return NVML_SUCCESS;
}

/* The node's cards stay where they are. */
SG_API nvmlReturn_t nvmlDeviceRemoveGpu(nvmlPciInfo_t *p)
{
    nvmlDevice_t d;

    SG_NVML_TRY(at(p, &d));
    return NVML_ERROR_NOT_SUPPORTED;
}

SG_API nvmlReturn_t nvmlDeviceRemoveGpu_v2(nvmlPciInfo_t *p, nvmlDetachGpuState_t detach SG_UNUSED,
                                           nvmlPcieLinkState_t link SG_UNUSED)
{
    nvmlDevice_t d;

    SG_NVML_TRY(at(p, &d));
    return NVML_ERROR_NOT_SUPPORTED;
}

SG_API nvmlReturn_t nvmlDeviceDiscoverGpus(nvmlPciInfo_t *p)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(p);
    return NVML_SUCCESS; /* nothing new */
}

/* ---- names --------------------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceGetHostname_v1(nvmlDevice_t d, nvmlHostname_v1_t *h)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(h);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_BLACKWELL);
    SG_NVML_SENSE(d, &s);
    memcpy(h->value, s.hostname, sizeof(h->value));
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceSetHostname_v1(nvmlDevice_t d, nvmlHostname_v1_t *h)
{
    struct sg_request req = {.op = SG_OP_MODE, .a = SG_MODE_HOSTNAME};
    struct sg_reply rep;

    SG_NVML_GPU(d);
    SG_NVML_WANT(h && memchr(h->value, 0, sizeof(h->value)));
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_BLACKWELL);
    req.gpu = d->gpu;
    req.len = (uint32_t)strlen(h->value);
    return sg_nvml_request(&req, h->value, &rep, NULL, 0, NULL);
}

/* ---- memory limits of control groups ------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t d, nvmlSetMemoryLimits_v1_t *l)
{
    struct sg_request req = {.op = SG_OP_LIMIT_SET};
    struct sg_reply rep;

    SG_NVML_GPU(d);
    SG_NVML_WANT(l && l->nameSpace && strlen(l->nameSpace) < 4000);
    req.gpu = d->gpu;
    req.a = l->softLimit;
    req.b = l->hardLimit;
    req.len = (uint32_t)strlen(l->nameSpace);
    return sg_nvml_request(&req, l->nameSpace, &rep, NULL, 0, NULL);
}

SG_API nvmlReturn_t nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t d, nvmlGetMemoryLimits_v1_t *l)
{
    struct sg_request req = {.op = SG_OP_LIMIT_GET};
    struct sg_reply rep;

    SG_NVML_GPU(d);
    SG_NVML_WANT(l && l->nameSpace && strlen(l->nameSpace) < 4000);
    req.gpu = d->gpu;
    req.len = (uint32_t)strlen(l->nameSpace);
    SG_NVML_TRY(sg_nvml_request(&req, l->nameSpace, &rep, NULL, 0, NULL));
    l->softLimit = rep.a;
    l->hardLimit = rep.b;
    l->currentUsed = rep.c;
    return NVML_SUCCESS;
}
