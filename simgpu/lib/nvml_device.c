// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_device.c: what does not change about a device, or not with its use. */
#include "nvml.h"

SG_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *buf, unsigned int n)
{
    SG_NVML_DEV(d);
    return sg_nvml_text(buf, n, d->info->name);
}

SG_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *buf, unsigned int n)
{
    SG_NVML_DEV(d);
    return sg_nvml_text(buf, n, d->info->uuid);
}

SG_API nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t d, char *buf, unsigned int n)
{
    SG_NVML_DEV(d);
    return sg_nvml_text(buf, n, d->info->serial);
}

SG_API nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t d, char *buf, unsigned int n)
{
    SG_NVML_DEV(d);
    return sg_nvml_text(buf, n, "96.00.00.00.00");
}

SG_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p)
{
    SG_NVML_DEV(d);
    if (!p)
        return NVML_ERROR_INVALID_ARGUMENT;
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

/* The older structures end before the second identifier. */
static nvmlReturn_t pci_v1(nvmlDevice_t d, nvmlPciInfo_v1_t *p, bool subsystem)
{
    nvmlPciInfo_t q;
    nvmlReturn_t r;

    if (!p)
        return NVML_ERROR_INVALID_ARGUMENT;
    r = SG_PUBLIC(nvmlDeviceGetPciInfo_v3)(d, &q);
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
    r = SG_PUBLIC(nvmlDeviceGetPciInfo_v3)(d, &q);
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

SG_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor)
{
    SG_NVML_DEV(d);
    if (!major || !minor)
        return NVML_ERROR_INVALID_ARGUMENT;
    *major = (int)d->info->capability / 10;
    *minor = (int)d->info->capability % 10;
    return NVML_SUCCESS;
}

/* Calls with one number as their answer. */
#define NUMBER(name, type, value)                     \
    SG_API nvmlReturn_t name(nvmlDevice_t d, type *v) \
    {                                                 \
        SG_NVML_DEV(d);                               \
        if (!v)                                       \
            return NVML_ERROR_INVALID_ARGUMENT;       \
        *v = (value);                                 \
        return NVML_SUCCESS;                          \
    }
NUMBER(nvmlDeviceGetIndex, unsigned int, (unsigned)(d - sg_nvml.dev))
NUMBER(nvmlDeviceGetMinorNumber, unsigned int, d->info->minor)
NUMBER(nvmlDeviceGetBoardId, unsigned int, d->info->pci_bus << 8)
NUMBER(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
NUMBER(nvmlDeviceGetBrand, nvmlBrandType_t, 14) /* NVIDIA */
NUMBER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, 9) /* Hopper */
NUMBER(nvmlDeviceGetNumGpuCores, unsigned int, d->info->multiprocessors * 128)
NUMBER(nvmlDeviceGetMemoryBusWidth, unsigned int, 5120)
NUMBER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
NUMBER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
NUMBER(nvmlDeviceGetDisplayMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NUMBER(nvmlDeviceGetDisplayActive, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NUMBER(nvmlDeviceGetAccountingMode, nvmlEnableState_t, NVML_FEATURE_DISABLED)
NUMBER(nvmlDeviceGetPerformanceState, nvmlPstates_t, 0)
NUMBER(nvmlDeviceGetPowerState, nvmlPstates_t, 0)
NUMBER(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned int, 700000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, 700000)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, 700000)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, 5)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, 0)
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned int, 0)
NUMBER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, 0)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, 0)

SG_API nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned int *lo, unsigned int *hi)
{
    SG_NVML_DEV(d);
    if (!lo || !hi)
        return NVML_ERROR_INVALID_ARGUMENT;
    *lo = 200000;
    *hi = 700000;
    return NVML_SUCCESS;
}

static nvmlReturn_t clock_of(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz)
{
    SG_NVML_DEV(d);
    if (!mhz || type > NVML_CLOCK_VIDEO)
        return NVML_ERROR_INVALID_ARGUMENT;
    *mhz = type == NVML_CLOCK_MEM ? 2619 : 1980;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz)
{
    return clock_of(d, type, mhz);
}

SG_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz)
{
    return clock_of(d, type, mhz);
}

SG_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    SG_NVML_DEV(d);
    if (!current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    *current = *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int *same)
{
    SG_NVML_DEV(a);
    SG_NVML_DEV(b);
    if (!same)
        return NVML_ERROR_INVALID_ARGUMENT;
    *same = a == b;
    return NVML_SUCCESS;
}

/* No field is simulated, and each says so by itself. */
SG_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *v)
{
    SG_NVML_DEV(d);
    if (n <= 0 || !v)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < n; i++)
        v[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
