// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_use.c: memory, processes, utilisation, and what follows from them. */
#include "nvml.h"

/* What the driver keeps is part of the total, and counts as used where it is not
 * told apart. */
static nvmlReturn_t memory(nvmlDevice_t d, nvmlMemory_v2_t *m)
{
    struct sg_reply rep;

    SG_NVML_DEV(d);
    if (d->parent) {
        struct sg_mig_instance v[SG_MIG_LIST];
        unsigned n;

        SG_NVML_TRY(sg_mig_list(d->parent, v, &n));
        for (unsigned i = 0; i < n; i++) {
            if (v[i].gi != d->part.gi || v[i].ci != d->part.ci)
                continue;
            m->total = v[i].memory_bytes;
            m->used = v[i].used_bytes;
            m->free = m->total - m->used;
            m->reserved = 0;
            return NVML_SUCCESS;
        }
        return NVML_ERROR_INVALID_ARGUMENT; /* destroyed */
    }
    SG_NVML_TRY(sg_nvml_ask(SG_OP_MEM_INFO, d, 0, &rep, NULL, 0, NULL));
    m->free = rep.a;
    m->used = rep.c;
    m->reserved = d->info->reserved_bytes;
    m->total = rep.b + m->reserved;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m)
{
    nvmlMemory_v2_t v2;

    SG_NVML_DEV(d);
    SG_NVML_WANT(m);
    SG_NVML_TRY(memory(d, &v2));
    m->total = v2.total;
    m->free = v2.free;
    m->used = v2.used + v2.reserved;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *m)
{
    SG_NVML_DEV(d);
    SG_NVML_VERSION(m, nvmlMemory_v2_t, 2);
    return memory(d, m);
}

SG_API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t d, nvmlBAR1Memory_t *m)
{
    SG_NVML_DEV(d);
    SG_NVML_WANT(m);
    SG_NVML_NEED(d->card->bar1_bytes);
    m->bar1Total = d->card->bar1_bytes;
    m->bar1Used = 1 << 20;
    m->bar1Free = m->bar1Total - m->bar1Used;
    return NVML_SUCCESS;
}

/* ---- processes --------------------------------------------------------------------- */

#define MAX_PROCESSES ((SG_MAX_MESSAGE - sizeof(struct sg_reply)) / sizeof(struct sg_process))

static nvmlReturn_t processes(nvmlDevice_t d, struct sg_process *v, unsigned *n)
{
    struct sg_reply rep;
    size_t len = 0;
    struct sg_request req = {.op = d->parent ? SG_OP_PROCESSES_MIG : SG_OP_PROCESSES, .gpu = d->gpu,
                             .a = d->part.gi, .b = d->part.ci};
    nvmlReturn_t r = sg_nvml_request(&req, NULL, &rep, v, MAX_PROCESSES * sizeof(*v), &len);

    *n = (unsigned)(len / sizeof(*v));
    return r;
}

/* The MIG instance that a process works in, by its numbers. */
static unsigned instance_of(const struct sg_process *p, unsigned shift)
{
    return p->instance ? (p->instance - 1) >> shift & 0xff : UINT32_MAX;
}

/* Fills a list of either element; *n is room in and number out. */
static nvmlReturn_t running(nvmlDevice_t d, unsigned int *n, void *out, bool v1)
{
    struct sg_process v[MAX_PROCESSES];
    unsigned have, room;
    nvmlReturn_t r;

    SG_NVML_DEV(d);
    if (!n || (*n && !out))
        return NVML_ERROR_INVALID_ARGUMENT;
    r = processes(d, v, &have);
    if (r != NVML_SUCCESS)
        return r;
    room = *n;
    *n = have;
    if (have > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < have; i++) {
        if (v1)
            ((nvmlProcessInfo_v1_t *)out)[i] = (nvmlProcessInfo_v1_t){v[i].pid, v[i].used_bytes};
        else
            ((nvmlProcessInfo_v2_t *)out)[i] =
                (nvmlProcessInfo_v2_t){v[i].pid, v[i].used_bytes, instance_of(&v[i], 8), instance_of(&v[i], 0)};
    }
    return NVML_SUCCESS;
}

/* Nobody draws, and nobody goes through MPS. */
static nvmlReturn_t none(nvmlDevice_t d, unsigned int *n)
{
    SG_NVML_DEV(d);
    if (!n)
        return NVML_ERROR_INVALID_ARGUMENT;
    *n = 0;
    return NVML_SUCCESS;
}

#define LISTS(suffix, element, v1)                                                                                  \
    SG_API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses##suffix(nvmlDevice_t d, unsigned int *n, element *p)   \
    {                                                                                                               \
        return running(d, n, p, v1);                                                                                \
    }                                                                                                               \
    SG_API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses##suffix(nvmlDevice_t d, unsigned int *n,              \
                                                                      element *p SG_UNUSED)                         \
    {                                                                                                               \
        return none(d, n);                                                                                          \
    }                                                                                                               \
    SG_API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses##suffix(nvmlDevice_t d, unsigned int *n,            \
                                                                        element *p SG_UNUSED)                       \
    {                                                                                                               \
        return none(d, n);                                                                                          \
    }
LISTS(, nvmlProcessInfo_v1_t, true)
LISTS(_v2, nvmlProcessInfo_v2_t, false)
LISTS(_v3, nvmlProcessInfo_t, false)

SG_API nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t d, nvmlProcessDetailList_t *l)
{
    struct sg_process v[MAX_PROCESSES];
    unsigned have = 0, room;
    nvmlReturn_t r = NVML_SUCCESS;

    SG_NVML_DEV(d);
    if (!l || l->mode > 2)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (l->version != GS_NVML_STRUCT_VERSION(nvmlProcessDetailList_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!l->mode)
        r = processes(d, v, &have);
    if (r != NVML_SUCCESS)
        return r;
    room = l->procArray ? l->numProcArrayEntries : 0;
    l->numProcArrayEntries = have;
    if (have > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < have; i++)
        l->procArray[i] = (nvmlProcessDetail_v1_t){v[i].pid, v[i].used_bytes, instance_of(&v[i], 8),
                                                   instance_of(&v[i], 0), 0};
    return NVML_SUCCESS;
}

/* ---- utilisation --------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *u)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(u);
    SG_NVML_SENSE(d, &s);
    SG_NVML_NEED(!s.mig); /* the engine is not one any more */
    u->gpu = s.busy[0];
    u->memory = s.busy[1];
    return NVML_SUCCESS;
}

#define MAX_SAMPLES ((SG_MAX_MESSAGE - sizeof(struct sg_reply)) / sizeof(struct sg_sample))

static nvmlReturn_t samples(nvmlDevice_t d, uint64_t since, struct sg_sample *v, unsigned *n)
{
    struct sg_reply rep;
    size_t len = 0;
    nvmlReturn_t r = sg_nvml_ask(SG_OP_SAMPLES, d, since, &rep, v, MAX_SAMPLES * sizeof(*v), &len);

    *n = (unsigned)(len / sizeof(*v));
    return r;
}

/* Keeps the newest sample of each process; the list comes newest first. */
static unsigned newest(struct sg_sample *v, unsigned n)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < n; i++) {
        bool seen = !v[i].pid;

        for (unsigned k = 0; !seen && k < kept; k++)
            seen = v[k].pid == v[i].pid;
        if (!seen)
            v[kept++] = v[i];
    }
    return kept;
}

SG_API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t d, nvmlProcessUtilizationSample_t *u, unsigned int *n,
                                                    unsigned long long since)
{
    struct sg_sample v[MAX_SAMPLES];
    unsigned have, room;
    nvmlReturn_t r;

    SG_NVML_GPU(d);
    if (!n)
        return NVML_ERROR_INVALID_ARGUMENT;
    r = samples(d, since, v, &have);
    if (r != NVML_SUCCESS)
        return r;
    have = newest(v, have);
    room = u ? *n : 0;
    *n = have;
    if (!have)
        return NVML_ERROR_NOT_FOUND;
    if (have > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < have; i++)
        u[i] = (nvmlProcessUtilizationSample_t){.pid = v[i].pid, .timeStamp = v[i].time_us, .smUtil = v[i].percent,
                                                .memUtil = v[i].percent / 2};
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t d, nvmlProcessesUtilizationInfo_t *p)
{
    struct sg_sample v[MAX_SAMPLES];
    unsigned have, room;
    nvmlReturn_t r;

    SG_NVML_DEV(d);
    if (!p)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (p->version != GS_NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    r = samples(d, p->lastSeenTimeStamp, v, &have);
    if (r != NVML_SUCCESS)
        return r;
    have = newest(v, have);
    room = p->procUtilArray ? p->processSamplesCount : 0;
    p->processSamplesCount = have;
    if (!have)
        return NVML_ERROR_NOT_FOUND;
    if (have > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < have; i++)
        p->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            .timeStamp = v[i].time_us, .pid = v[i].pid, .smUtil = v[i].percent, .memUtil = v[i].percent / 2};
    return NVML_SUCCESS;
}

/* Which samples a card gives besides those of the engine: as they are now. */
static bool present(const struct sg_sensors *s, nvmlSamplingType_t type, unsigned *value)
{
    switch (type) {
    case NVML_TOTAL_POWER_SAMPLES:
        *value = s->power_instant;
        return true;
    case 3: /* encoder */
    case 4: /* decoder */
        *value = s->busy[type - 1];
        return true;
    case 5: /* processor clock */
        *value = s->clock[NVML_CLOCK_SM];
        return true;
    case 6: /* memory clock */
        *value = s->clock[NVML_CLOCK_MEM];
        return true;
    case 8: /* JPEG */
    case 9: /* optical flow */
        *value = s->busy[type - 4];
        return true;
    default:
        return false;
    }
}

SG_API nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t d, nvmlSamplingType_t type, unsigned long long since,
                                         nvmlValueType_t *value_type, unsigned int *n, nvmlSample_t *out)
{
    struct sg_sample v[MAX_SAMPLES];
    unsigned got, have = 0, room, value = 0;
    bool engine = type == NVML_GPU_UTILIZATION_SAMPLES || type == NVML_MEMORY_UTILIZATION_SAMPLES;
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(n && value_type && type < 10);
    SG_NVML_NEED((type != 8 || d->card->jpegs) && (type != 9 || d->card->ofas));
    if (!engine) {
        SG_NVML_SENSE(d, &s);
        SG_NVML_NEED(present(&s, type, &value));
    }
    SG_NVML_TRY(samples(d, since, v, &got));
    for (unsigned i = 0; i < got; i++)
        have += !v[i].pid;
    room = *n;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (!out || have < room)
        *n = have;
    if (!have)
        return NVML_ERROR_NOT_FOUND;
    /* Oldest first, and of too many the newest. */
    for (unsigned i = 0, k = out ? *n : 0; i < got && k; i++) {
        if (v[i].pid)
            continue;
        out[--k] = (nvmlSample_t){.timeStamp = v[i].time_us};
        out[k].sampleValue.uiVal = !engine                                ? value
                                   : type == NVML_GPU_UTILIZATION_SAMPLES ? v[i].percent
                                                                          : v[i].percent / 2;
    }
    return NVML_SUCCESS;
}

#define ENGINE(name, cond, n)                                                                            \
    SG_API nvmlReturn_t name(nvmlDevice_t d, unsigned int *percent, unsigned int *period_us)             \
    {                                                                                                    \
        struct sg_sensors s;                                                                             \
                                                                                                         \
        SG_NVML_GPU(d);                                                                                  \
        SG_NVML_WANT(percent && period_us);                                                              \
        SG_NVML_NEED(cond);                                                                              \
        SG_NVML_SENSE(d, &s);                                                                            \
        *percent = s.busy[n];                                                                            \
        *period_us = 167000;                                                                             \
        return NVML_SUCCESS;                                                                             \
    }
ENGINE(nvmlDeviceGetEncoderUtilization, true, 2)
ENGINE(nvmlDeviceGetDecoderUtilization, true, 3)
ENGINE(nvmlDeviceGetJpgUtilization, d->card->jpegs, 4)
ENGINE(nvmlDeviceGetOfaUtilization, d->card->ofas, 5)
