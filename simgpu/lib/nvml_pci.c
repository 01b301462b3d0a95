// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_pci.c: where a card sits, and its link to the host. */
#include <sched.h>

#include "nvml.h"

static nvmlReturn_t pci_info(nvmlDevice_t d, nvmlPciInfo_t *p)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(p);
    memset(p, 0, sizeof(*p));
    p->domain = d->info->pci_domain;
    p->bus = d->info->pci_bus;
    p->device = d->info->pci_device;
    p->pciDeviceId = d->info->pci_device_id;
    p->pciSubSystemId = d->info->pci_subsystem_id;
    snprintf(p->busIdLegacy, sizeof(p->busIdLegacy), "%04X:%02X:%02X.0", p->domain, p->bus, p->device);
    snprintf(p->busId, sizeof(p->busId), "%08X:%02X:%02X.0", p->domain, p->bus, p->device);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p)
{
    return pci_info(d, p);
}

/* The older structures end before the second identifier. */
static nvmlReturn_t pci_v1(nvmlDevice_t d, nvmlPciInfo_v1_t *p, bool subsystem)
{
    nvmlPciInfo_t q;
    nvmlReturn_t r;

    if (!p)
        return NVML_ERROR_INVALID_ARGUMENT;
    r = pci_info(d, &q);
    if (r != NVML_SUCCESS)
        return r;
    memcpy(p->busId, q.busIdLegacy, sizeof(p->busId));
    p->domain = q.domain;
    p->bus = q.bus;
    p->device = q.device;
    p->pciDeviceId = q.pciDeviceId;
    if (subsystem)
        p->pciSubSystemId = q.pciSubSystemId;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t d, nvmlPciInfo_v1_t *p)
{
    return pci_v1(d, p, true);
}

SG_API nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t d, nvmlPciInfo_v1_t *p)
{
    return pci_v1(d, p, false);
}

SG_API nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t d, nvmlPciInfoExt_t *p)
{
    nvmlPciInfo_t q;
    nvmlReturn_t r;

    if (!p)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (p->version != GS_NVML_STRUCT_VERSION(nvmlPciInfoExt_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    r = pci_info(d, &q);
    if (r != NVML_SUCCESS)
        return r;
    p->domain = q.domain;
    p->bus = q.bus;
    p->device = q.device;
    p->pciDeviceId = q.pciDeviceId;
    p->pciSubSystemId = q.pciSubSystemId;
    p->baseClass = 3; /* display controller */
    p->subClass = 2;  /* 3D */
    memcpy(p->busId, q.busId, sizeof(p->busId));
    return NVML_SUCCESS;
}

SG_NVML_FACT(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, true, d->card->pcie_generation)
SG_NVML_FACT(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, true, d->card->pcie_generation)
SG_NVML_FACT(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, true, d->card->pcie_width)
SG_NVML_READING(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, true, s.pcie_generation)
SG_NVML_READING(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, true, s.pcie_width)
SG_NVML_READING(nvmlDeviceGetPcieReplayCounter, unsigned int, true, s.pcie_replays)

/* Megatransfers a second of a generation. */
static unsigned speed(unsigned generation)
{
    static const unsigned mbps[] = {0, 2500, 5000, 8000, 16000, 32000, 64000, 128000};

    return generation < SG_LEN(mbps) ? mbps[generation] : 0;
}

SG_NVML_READING(nvmlDeviceGetPcieSpeed, unsigned int, true, speed(s.pcie_generation))

/* The highest speed is told as a number of an enumeration, from 1. */
SG_NVML_FACT(nvmlDeviceGetPcieLinkMaxSpeed, unsigned int, true, d->card->pcie_generation)

SG_API nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t d, nvmlPcieUtilCounter_t counter, unsigned int *kbps)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(kbps && counter < 2);
    SG_NVML_SENSE(d, &s);
    *kbps = counter ? s.pcie_rx_kbps : s.pcie_tx_kbps;
    return NVML_SUCCESS;
}

/* ---- processors and memory near the card --------------------------------------------- */

/* All processors of the machine are near: one node. */
static nvmlReturn_t near(nvmlDevice_t d, unsigned int n, unsigned long *set)
{
    cpu_set_t cpus;

    SG_NVML_GPU(d);
    SG_NVML_WANT(n && set);
    memset(set, 0, n * sizeof(*set));
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
        return NVML_ERROR_UNKNOWN;
    for (unsigned i = 0; i < n * 8 * sizeof(*set) && i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &cpus))
            set[i / (8 * sizeof(*set))] |= 1ul << i % (8 * sizeof(*set));
    }
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t d, unsigned int n, unsigned long *set)
{
    return near(d, n, set);
}

SG_API nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t d, unsigned int n, unsigned long *set,
                                                        nvmlAffinityScope_t scope)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(scope < 2);
    return near(d, n, set);
}

SG_API nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t d, unsigned int n, unsigned long *set,
                                                nvmlAffinityScope_t scope)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(n && set && scope < 2);
    memset(set, 0, n * sizeof(*set));
    *set = 1;
    return NVML_SUCCESS;
}

/* The calling thread is where it should be already. */
SG_API nvmlReturn_t nvmlDeviceSetCpuAffinity(nvmlDevice_t d)
{
    SG_NVML_GPU(d);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceClearCpuAffinity(nvmlDevice_t d)
{
    SG_NVML_GPU(d);
    return NVML_SUCCESS;
}

SG_NVML_FACT(nvmlDeviceGetNumaNodeId, unsigned int, false, 0) /* device memory is no node of the system's */
