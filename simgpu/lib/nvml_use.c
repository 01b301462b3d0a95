// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_use.c: memory, processes, utilisation, and what follows from them. */
#include "nvml.h"

SG_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m)
{
    struct sg_reply rep;
    nvmlReturn_t r;

    SG_NVML_DEV(d);
    if (!m)
        return NVML_ERROR_INVALID_ARGUMENT;
    r = sg_nvml_ask(SG_OP_MEM_INFO, d, 0, &rep, NULL, 0, NULL);
    if (r != NVML_SUCCESS)
        return r;
    m->free = rep.a;
    m->total = rep.b + d->info->reserved_bytes;
    m->used = m->total - m->free; /* the driver's own counts as used here */
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *m)
{
    struct sg_reply rep;
    nvmlReturn_t r;

    SG_NVML_DEV(d);
    if (!m)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (m->version != GS_NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    r = sg_nvml_ask(SG_OP_MEM_INFO, d, 0, &rep, NULL, 0, NULL);
    if (r != NVML_SUCCESS)
        return r;
    m->free = rep.a;
    m->total = rep.b + d->info->reserved_bytes;
    m->used = rep.c;
    m->reserved = d->info->reserved_bytes;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t d, nvmlBAR1Memory_t *m)
{
    SG_NVML_DEV(d);
    if (!m)
        return NVML_ERROR_INVALID_ARGUMENT;
    m->bar1Total = 128ull << 30;
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
    nvmlReturn_t r = sg_nvml_ask(SG_OP_PROCESSES, d, 0, &rep, v, MAX_PROCESSES * sizeof(*v), &len);

    *n = (unsigned)(len / sizeof(*v));
    return r;
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
                (nvmlProcessInfo_v2_t){v[i].pid, v[i].used_bytes, UINT32_MAX, UINT32_MAX};
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
        l->procArray[i] = (nvmlProcessDetail_v1_t){v[i].pid, v[i].used_bytes, UINT32_MAX, UINT32_MAX, 0};
    return NVML_SUCCESS;
}

/* ---- utilisation --------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *u)
{
    struct sg_reply rep;
    nvmlReturn_t r;

    SG_NVML_DEV(d);
    if (!u)
        return NVML_ERROR_INVALID_ARGUMENT;
    r = sg_nvml_ask(SG_OP_UTILIZATION, d, 0, &rep, NULL, 0, NULL);
    if (r == NVML_SUCCESS) {
        u->gpu = (unsigned)rep.a;
        u->memory = (unsigned)rep.b;
    }
    return r;
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

    SG_NVML_DEV(d);
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

SG_API nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t d, nvmlSamplingType_t type, unsigned long long since,
                                         nvmlValueType_t *value_type, unsigned int *n, nvmlSample_t *out)
{
    struct sg_sample v[MAX_SAMPLES];
    unsigned got, have = 0, room;
    nvmlReturn_t r;

    SG_NVML_DEV(d);
    if (!n || !value_type)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (type != NVML_GPU_UTILIZATION_SAMPLES && type != NVML_MEMORY_UTILIZATION_SAMPLES)
        return NVML_ERROR_NOT_SUPPORTED;
    r = samples(d, since, v, &got);
    if (r != NVML_SUCCESS)
        return r;
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
        out[k].sampleValue.uiVal = type == NVML_GPU_UTILIZATION_SAMPLES ? v[i].percent : v[i].percent / 2;
    }
    return NVML_SUCCESS;
}

/* ---- figures made up from the utilisation ------------------------------------------------ */

static nvmlReturn_t busy(nvmlDevice_t d, unsigned *percent)
{
    nvmlUtilization_t u;
    nvmlReturn_t r = SG_PUBLIC(nvmlDeviceGetUtilizationRates)(d, &u);

    if (r == NVML_SUCCESS)
        *percent = u.gpu;
    return r;
}

SG_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned int *celsius)
{
    unsigned percent;
    nvmlReturn_t r;

    if (!celsius || sensor != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    r = busy(d, &percent);
    if (r == NVML_SUCCESS)
        *celsius = 32 + percent / 3;
    return r;
}

SG_API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t d, nvmlTemperature_t *t)
{
    unsigned celsius;
    nvmlReturn_t r;

    if (!t)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (t->version != GS_NVML_STRUCT_VERSION(nvmlTemperature_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    r = SG_PUBLIC(nvmlDeviceGetTemperature)(d, t->sensorType, &celsius);
    if (r == NVML_SUCCESS)
        t->temperature = (int)celsius;
    return r;
}

SG_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *milliwatts)
{
    unsigned percent;
    nvmlReturn_t r;

    if (!milliwatts)
        return NVML_ERROR_INVALID_ARGUMENT;
    r = busy(d, &percent);
    if (r == NVML_SUCCESS)
        *milliwatts = 70000 + percent * 6000;
    return r;
}

static nvmlReturn_t idle_engine(nvmlDevice_t d, unsigned int *percent, unsigned int *period_us)
{
    SG_NVML_DEV(d);
    if (!percent || !period_us)
        return NVML_ERROR_INVALID_ARGUMENT;
    *percent = 0;
    *period_us = 167000;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t d, unsigned int *percent, unsigned int *period_us)
{
    return idle_engine(d, percent, period_us);
}

SG_API nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t d, unsigned int *percent, unsigned int *period_us)
{
    return idle_engine(d, percent, period_us);
}
