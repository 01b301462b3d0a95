// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_device.c: what a card is called, and what does not change about it. */
#include <time.h>

#include "nvml.h"

SG_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *buf, unsigned int n)
{
    SG_NVML_DEV(d);
    return sg_nvml_text(buf, n, d->info->name);
}

SG_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *buf, unsigned int n)
{
    SG_NVML_DEV(d);
    return sg_nvml_text(buf, n, d->parent ? d->part.uuid : d->info->uuid);
}

/* Texts that a card may have or not. */
#define TEXT(name, cond, text)                                                \
    SG_API nvmlReturn_t name(nvmlDevice_t d, char *buf, unsigned int n)       \
    {                                                                         \
        SG_NVML_GPU(d);                                                       \
        SG_NVML_WANT(buf);                                                    \
        SG_NVML_NEED(cond);                                                   \
        return sg_nvml_text(buf, n, text);                                    \
    }
TEXT(nvmlDeviceGetSerial, d->card->flags & SG_CARD_SERIAL, d->info->serial)
TEXT(nvmlDeviceGetVbiosVersion, *d->card->vbios, d->card->vbios)
TEXT(nvmlDeviceGetBoardPartNumber, *d->card->part_number, d->card->part_number)
TEXT(nvmlDeviceGetInforomImageVersion, *d->card->inforom_image, d->card->inforom_image)

SG_API nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t d, nvmlInforomObject_t object, char *buf, unsigned int n)
{
    const char *text;

    SG_NVML_GPU(d);
    SG_NVML_WANT(buf && object < 4);
    text = object == 0   ? d->card->inforom_oem
           : object == 1 ? d->card->inforom_ecc
           : object == 2 ? d->card->inforom_power
                         : "";
    SG_NVML_NEED(*text);
    return sg_nvml_text(buf, n, text);
}

SG_API nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t d, unsigned int *sum)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(sum);
    SG_NVML_NEED(*d->card->inforom_image);
    *sum = 0x811c9dc5u;
    for (const char *c = d->card->inforom_image; *c; c++)
        *sum = (*sum ^ (unsigned char)*c) * 16777619u; /* any sum that follows from the contents */
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t d)
{
    SG_NVML_GPU(d);
    SG_NVML_NEED(*d->card->inforom_image);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetLastBBXFlushTime(nvmlDevice_t d, unsigned long long *us, unsigned long *seconds)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(us && seconds);
    SG_NVML_HAS(d, SG_CARD_SERIAL);
    *us = *seconds = 0; /* never since the card came up */
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor)
{
    SG_NVML_DEV(d);
    SG_NVML_WANT(major && minor);
    *major = (int)d->info->capability / 10;
    *minor = (int)d->info->capability % 10;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t d, unsigned int *index)
{
    SG_NVML_DEV(d);
    SG_NVML_WANT(index);
    *index = d->parent ? d->part.index : (unsigned)(d - sg_nvml.dev);
    return NVML_SUCCESS;
}

SG_NVML_FACT(nvmlDeviceGetMinorNumber, unsigned int, true, d->info->minor)
SG_NVML_FACT(nvmlDeviceGetBoardId, unsigned int, true, d->info->pci_bus << 8)
SG_NVML_FACT(nvmlDeviceGetMultiGpuBoard, unsigned int, true, 0)
SG_NVML_FACT(nvmlDeviceGetBrand, nvmlBrandType_t, true, d->card->brand)
SG_NVML_FACT(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, true, d->card->architecture)
SG_NVML_FACT(nvmlDeviceGetNumGpuCores, unsigned int, true, d->info->multiprocessors * d->card->cores_per_sm)
SG_NVML_FACT(nvmlDeviceGetMemoryBusWidth, unsigned int, true, d->card->bus_width)
SG_NVML_FACT(nvmlDeviceGetBusType, nvmlBusType_t, true, NVML_BUS_TYPE_PCIE)
SG_NVML_FACT(nvmlDeviceGetDisplayMode, nvmlEnableState_t, true, NVML_FEATURE_DISABLED)
SG_NVML_FACT(nvmlDeviceGetDisplayActive, nvmlEnableState_t, true, NVML_FEATURE_DISABLED)
SG_NVML_FACT(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, true, 0)
SG_NVML_FACT(nvmlDeviceGetIrqNum, unsigned int, true, 64 + d->info->minor)
SG_NVML_FACT(nvmlDeviceGetPowerSource, nvmlPowerSource_t, true, 0) /* mains */
SG_NVML_FACT(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, true, NVML_FEATURE_ENABLED)
SG_NVML_FACT(nvmlDeviceGetModuleId, unsigned int, d->card->nvlinks, d->info->minor + 1)
/* Automatic boost by this call went away with Maxwell; adaptive clocking is
 * what there is instead. */
SG_NVML_FACT(nvmlDeviceGetAdaptiveClockInfoStatus, unsigned int, d->card->architecture >= NVML_DEVICE_ARCH_TURING, 1)

SG_API nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t d, char *buf)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(buf);
    SG_NVML_HAS(d, SG_CARD_GSP);
    return sg_nvml_text(buf, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE, sg_conn.node->driver_version);
}

SG_API nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t d, unsigned int *on, unsigned int *by_default)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(on && by_default);
    *on = *by_default = !!(d->card->flags & SG_CARD_GSP);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetGpuUptime_v1(nvmlDevice_t d, nvmlGpuUptime_v1_t *u)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(u);
    SG_NVML_SENSE(d, &s);
    u->uptime = (unsigned)((s.time_us - s.start_us) / 1000000u);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int *same)
{
    SG_NVML_GPU(a);
    SG_NVML_GPU(b);
    SG_NVML_WANT(same);
    *same = a == b;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t d, nvmlPdi_t *p)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(p, nvmlPdi_t, 1);
    memcpy(&p->value, d->info->uuid_bytes, sizeof(p->value));
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t d, nvmlDeviceAddressingMode_t *m)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(m, nvmlDeviceAddressingMode_t, 1);
    m->value = 0; /* neither HMM nor ATS */
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t d, nvmlDeviceCapabilities_t *c)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(c, nvmlDeviceCapabilities_t, 1);
    c->capMask = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t d, nvmlC2cModeInfo_v1_t *c)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(c);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_HOPPER);
    c->isC2cEnabled = (d->card->flags & SG_CARD_C2C) != 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t d, nvmlPlatformInfo_t *p)
{
    unsigned version;

    SG_NVML_GPU(d);
    SG_NVML_WANT(p);
    version = p->version; /* both versions have one layout, only the names of two bytes differ */
    if (version != GS_NVML_STRUCT_VERSION(nvmlPlatformInfo_t, 1) &&
        version != GS_NVML_STRUCT_VERSION(nvmlPlatformInfo_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_BLACKWELL && d->card->nvlinks);
    memset(p, 0, sizeof(*p));
    p->version = version;
    memcpy(p->ibGuid, d->info->uuid_bytes, sizeof(p->ibGuid));
    memcpy(p->chassisSerialNumber, "SIMULATED", 9);
    p->peerType = 1; /* through switches */
    p->moduleId = (unsigned char)(d->info->minor + 1);
    return NVML_SUCCESS;
}
