// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_topology.c: how cards reach each other: over the bus, over NVLink. */
#include "nvml.h"

/* All cards hang on one host bridge, in pairs on a switch. */
static nvmlGpuTopologyLevel_t between(const struct nvmlDevice_st *a, const struct nvmlDevice_st *b)
{
    if (a == b)
        return NVML_TOPOLOGY_INTERNAL;
    return a->info->minor / 2 == b->info->minor / 2 ? NVML_TOPOLOGY_SINGLE : NVML_TOPOLOGY_HOSTBRIDGE;
}

SG_API nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level)
{
    SG_NVML_GPU(a);
    SG_NVML_GPU(b);
    SG_NVML_WANT(level);
    *level = between(a, b);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t d, nvmlGpuTopologyLevel_t level, unsigned int *n,
                                                     nvmlDevice_t *list)
{
    unsigned have = 0, room;

    SG_NVML_GPU(d);
    SG_NVML_WANT(n);
    SG_NVML_WANT(level <= NVML_TOPOLOGY_SYSTEM && level % 10 == 0);
    room = list ? *n : 0;
    for (unsigned i = 0; i < sg_nvml.ndev; i++) {
        nvmlDevice_t o = &sg_nvml.dev[i];

        if (o == d || between(d, o) != level)
            continue;
        if (have < room)
            list[have] = o;
        have++;
    }
    *n = have;
    return list && have > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu SG_UNUSED, unsigned int *n, nvmlDevice_t *list)
{
    unsigned room;

    SG_NVML_ENTER();
    SG_NVML_WANT(n);
    room = list ? *n : 0;
    *n = sg_nvml.ndev;
    for (unsigned i = 0; i < sg_nvml.ndev && i < room; i++)
        list[i] = &sg_nvml.dev[i];
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t what,
                                           nvmlGpuP2PStatus_t *status)
{
    bool links, bus;

    SG_NVML_GPU(a);
    SG_NVML_GPU(b);
    SG_NVML_WANT(status && what < 5);
    links = a != b && a->card->nvlinks && b->card->nvlinks;
    bus = a != b && (a->card->flags & b->card->flags & SG_CARD_PCI_PEERS);
    if (a == b)
        *status = NVML_P2P_STATUS_NOT_SUPPORTED;
    else if (what == 2) /* over NVLink */
        *status = links ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    else if (what == 3) /* atomic operations */
        *status = links ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    else if (what == 4)
        *status = bus ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
    else
        *status = links || bus ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* ---- NVLink -------------------------------------------------------------------------------- */

#define LINK(d, link)                            \
    do {                                         \
        SG_NVML_GPU(d);                          \
        SG_NVML_NEED((d)->card->nvlinks);        \
        SG_NVML_WANT((link) < (d)->card->nvlinks); \
    } while (0)

SG_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int link, nvmlEnableState_t *on)
{
    LINK(d, link);
    SG_NVML_WANT(on);
    *on = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t d, unsigned int link, unsigned int *version)
{
    /* Numbers of the interface for generations 1 to 6. */
    static const unsigned number[] = {0, 1, 2, 4, 6, 7, 8};

    LINK(d, link);
    SG_NVML_WANT(version);
    *version = d->card->nvlink_version < SG_LEN(number) ? number[d->card->nvlink_version] : 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t d, unsigned int link, nvmlNvLinkCapability_t what,
                                                  unsigned int *yes)
{
    LINK(d, link);
    SG_NVML_WANT(yes && what < 6);
    /* Peers, system memory, both with atomics, valid; bridges between two cards no. */
    *yes = what != 4;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t d, unsigned int link, nvmlNvLinkErrorCounter_t what,
                                                    unsigned long long *count)
{
    struct sg_sensors s;

    LINK(d, link);
    SG_NVML_WANT(count && what < 5);
    SG_NVML_SENSE(d, &s);
    *count = what == 4 ? 0 : s.nvlink_errors;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t d, unsigned int link)
{
    LINK(d, link);
    return NVML_ERROR_NOT_SUPPORTED; /* since Ampere */
}

SG_API nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t d, unsigned int link,
                                                        nvmlIntNvLinkDeviceType_t *type)
{
    LINK(d, link);
    SG_NVML_WANT(type);
    *type = d->card->flags & SG_CARD_NVSWITCH ? 2 : 0;
    return NVML_SUCCESS;
}

/* Links go round robin to the switches, of which there are four. */
static nvmlReturn_t remote(nvmlDevice_t d, unsigned link, nvmlPciInfo_t *p)
{
    LINK(d, link);
    SG_NVML_WANT(p);
    memset(p, 0, sizeof(*p));
    p->bus = 5 + link % 4;
    p->pciDeviceId = 0x22a310de; /* NVSwitch */
    snprintf(p->busIdLegacy, sizeof(p->busIdLegacy), "0000:%02X:00.0", p->bus);
    snprintf(p->busId, sizeof(p->busId), "00000000:%02X:00.0", p->bus);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t d, unsigned int link, nvmlPciInfo_t *p)
{
    nvmlPciInfo_t q;

    SG_NVML_TRY(remote(d, link, &q));
    SG_NVML_WANT(p);
    memcpy(p, &q, offsetof(nvmlPciInfo_t, pciSubSystemId)); /* the first form ends here */
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned int link, nvmlPciInfo_t *p)
{
    return remote(d, link, p);
}

/* The counters with control blocks went away with Ampere. */
SG_NVML_NOT_ON_CARD(nvmlDeviceGetNvLinkUtilizationCounter, unsigned int link SG_UNUSED, unsigned int c SG_UNUSED,
                    unsigned long long *rx SG_UNUSED, unsigned long long *tx SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetNvLinkUtilizationControl, unsigned int link SG_UNUSED, unsigned int c SG_UNUSED,
                    nvmlNvLinkUtilizationControl_t *u SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetNvLinkUtilizationControl, unsigned int link SG_UNUSED, unsigned int c SG_UNUSED,
                    nvmlNvLinkUtilizationControl_t *u SG_UNUSED, unsigned int reset SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceFreezeNvLinkUtilizationCounter, unsigned int link SG_UNUSED, unsigned int c SG_UNUSED,
                    nvmlEnableState_t freeze SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceResetNvLinkUtilizationCounter, unsigned int link SG_UNUSED, unsigned int c SG_UNUSED)

SG_API nvmlReturn_t nvmlDeviceGetNvLinkInfo(nvmlDevice_t d, nvmlNvLinkInfo_t *i)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(i);
    /* The first version has two words. */
    if (i->version == (8u | 1u << 24)) {
        SG_NVML_NEED(d->card->nvlinks);
        i->isNvleEnabled = 0;
        return NVML_SUCCESS;
    }
    SG_NVML_VERSION(i, nvmlNvLinkInfo_t, 2);
    SG_NVML_NEED(d->card->nvlinks);
    i->isNvleEnabled = 0;
    memset(&i->firmwareInfo, 0, sizeof(i->firmwareInfo));
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetNvLinkInfo_v3(nvmlDevice_t d, nvmlNvLinkInfo_v3_t *i)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(i);
    SG_NVML_NEED(d->card->nvlinks);
    memset(i, 0, sizeof(*i));
    return NVML_SUCCESS;
}

/* ---- the fabric behind the switches --------------------------------------------------------- */

/* Health: nothing degraded, no route bad, no configuration wrong. */
#define HEALTHY (2u | 2u << 2 | 2u << 4 | 2u << 6 | 1u << 8)

static bool fabric(nvmlDevice_t d)
{
    return d->card->architecture >= NVML_DEVICE_ARCH_HOPPER && d->card->flags & SG_CARD_NVSWITCH;
}

static void cluster(unsigned char *uuid)
{
    memset(uuid, 0, 16); /* one node, no fabric across nodes */
}

SG_API nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, nvmlGpuFabricInfo_t *f)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(f);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_HOPPER);
    memset(f, 0, sizeof(*f));
    cluster(f->clusterUuid);
    f->state = fabric(d) ? NVML_GPU_FABRIC_STATE_COMPLETED : 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, nvmlGpuFabricInfoV_t *f)
{
    /* Version 2 ends before the summary, which falls into its padding. */
    bool v2;

    SG_NVML_GPU(d);
    SG_NVML_WANT(f);
    v2 = f->version == (offsetof(nvmlGpuFabricInfoV_t, healthSummary) | 2u << 24);
    if (!v2)
        SG_NVML_VERSION(f, nvmlGpuFabricInfoV_t, 3);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_HOPPER);
    cluster(f->clusterUuid);
    f->status = NVML_SUCCESS;
    f->cliqueId = 0;
    f->state = fabric(d) ? NVML_GPU_FABRIC_STATE_COMPLETED : 0;
    f->healthMask = fabric(d) ? HEALTHY : 0;
    if (!v2)
        f->healthSummary = fabric(d) ? 1 : 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetGpuFabricInfo_v4(nvmlDevice_t d, nvmlGpuFabricInfo_v4_t *f)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(f);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_HOPPER);
    memset(f, 0, sizeof(*f));
    f->state = fabric(d) ? NVML_GPU_FABRIC_STATE_COMPLETED : 0;
    f->numCliques = fabric(d) ? 1 : 0;
    f->healthMask = fabric(d) ? HEALTHY : 0;
    f->healthSummary = fabric(d) ? 1 : 0;
    return NVML_SUCCESS;
}
