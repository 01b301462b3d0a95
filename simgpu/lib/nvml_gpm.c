// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_gpm.c: performance metrics between two samples. A sample keeps the
 * engine's figures of its moment; what has no model here is not supported. */
#include "nvml.h"

struct nvmlGpmSample_st {
    uint32_t magic;
    bool taken;
    struct sg_sensors s;
    nvmlDevice_t dev;
};
#define SG_NVML_GPM 0x5347474du

/* Samples live in a table, so that any pointer can be told to be one. */
#define SAMPLES 512u
static struct nvmlGpmSample_st samples[SAMPLES];

static bool valid(nvmlGpmSample_t s)
{
    uintptr_t at = (uintptr_t)s - (uintptr_t)samples;

    return at < sizeof(samples) && at % sizeof(samples[0]) == 0 && s->magic == SG_NVML_GPM;
}

SG_API nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *g)
{
    SG_NVML_DEV(d);
    SG_NVML_VERSION(g, nvmlGpmSupport_t, 1);
    g->isSupportedDevice = !!(d->card->flags & SG_CARD_GPM);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *ret)
{
    nvmlReturn_t r = NVML_ERROR_MEMORY;

    SG_NVML_ENTER();
    SG_NVML_WANT(ret);
    pthread_mutex_lock(&sg_nvml.lock);
    for (unsigned i = 0; i < SAMPLES && r != NVML_SUCCESS; i++) {
        if (samples[i].magic)
            continue;
        samples[i] = (struct nvmlGpmSample_st){.magic = SG_NVML_GPM};
        *ret = &samples[i];
        r = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&sg_nvml.lock);
    return r;
}

SG_API nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t s)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(valid(s));
    s->magic = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t d, nvmlGpmSample_t s)
{
    SG_NVML_GPU(d);
    SG_NVML_HAS(d, SG_CARD_GPM);
    SG_NVML_WANT(valid(s));
    SG_NVML_SENSE(d, &s->s);
    s->dev = d;
    s->taken = true;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t d, unsigned int gi SG_UNUSED, nvmlGpmSample_t s)
{
    SG_NVML_GPU(d);
    SG_NVML_HAS(d, SG_CARD_GPM);
    SG_NVML_WANT(valid(s));
    return NVML_ERROR_NOT_SUPPORTED; /* no engine time by instance */
}

SG_API nvmlReturn_t nvmlGpmQueryIfStreamingEnabled(nvmlDevice_t d, unsigned int *on)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(on);
    SG_NVML_HAS(d, SG_CARD_GPM);
    *on = 1;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGpmSetStreamingEnabled(nvmlDevice_t d, unsigned int on)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(on < 2);
    SG_NVML_HAS(d, SG_CARD_GPM);
    return NVML_SUCCESS;
}

/* A metric between two samples; false if nothing models it. Numbers are those
 * of nvmlGpmMetricId_t. */
static bool metric(const struct sg_sensors *a, const struct sg_sensors *s, nvmlGpmMetric_t *m)
{
    uint64_t us = s->time_us - a->time_us;
    double busy = us ? (double)(s->busy_ns - a->busy_ns) / (double)us / 10 : s->busy[0];

    m->metricInfo.unit = "%";
    switch (m->metricId) {
    case 1: /* graphics engine */
        m->value = busy;
        m->metricInfo.shortName = m->metricInfo.longName = "Graphics Engine Utilization";
        return true;
    case 2: /* multiprocessors */
        m->value = busy;
        m->metricInfo.shortName = m->metricInfo.longName = "SM Utilization";
        return true;
    case 3: /* warps in them */
        m->value = busy / 2;
        m->metricInfo.shortName = m->metricInfo.longName = "SM Occupancy";
        return true;
    case 10: /* memory bandwidth */
        m->value = busy / 2; /* as the memory's utilisation */
        m->metricInfo.shortName = m->metricInfo.longName = "DRAM Bandwidth Utilization";
        return true;
    case 20: /* MiB/s over PCIe */
    case 21:
        m->value = (m->metricId == 20 ? s->pcie_tx_kbps : s->pcie_rx_kbps) / 1024.0;
        m->metricInfo.unit = "MiB/s";
        m->metricInfo.shortName = m->metricInfo.longName = m->metricId == 20 ? "PCIe Tx" : "PCIe Rx";
        return true;
    default:
        return false;
    }
}

SG_API nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *g)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(g);
    if (g->version != 1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    SG_NVML_WANT(g->numMetrics <= SG_LEN(g->metrics) && valid(g->sample1) && valid(g->sample2));
    SG_NVML_WANT(g->sample1->taken && g->sample2->taken && g->sample1->dev == g->sample2->dev);
    for (unsigned i = 0; i < g->numMetrics; i++) {
        nvmlGpmMetric_t *m = &g->metrics[i];

        m->nvmlReturn = m->metricId && metric(&g->sample1->s, &g->sample2->s, m) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    }
    return NVML_SUCCESS;
}
