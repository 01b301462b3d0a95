// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * nvml_rest.c: what no simulated card has, as real ones of its kind do not:
 * Windows' driver models, chips between two GPUs of a board, virtual GPUs and
 * their licences, units of the first Teslas.
 */
#include "nvml.h"

SG_NVML_NOT_ON_CARD(nvmlDeviceGetDriverModel, nvmlDriverModel_t *current SG_UNUSED, nvmlDriverModel_t *pending SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetDriverModel_v2, nvmlDriverModel_t *current SG_UNUSED,
                    nvmlDriverModel_t *pending SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetDriverModel, nvmlDriverModel_t model SG_UNUSED, unsigned int flags SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetBridgeChipInfo, nvmlBridgeChipHierarchy_t *b SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetGpuOperationMode, nvmlGpuOperationMode_t *current SG_UNUSED,
                    nvmlGpuOperationMode_t *pending SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetGpuOperationMode, nvmlGpuOperationMode_t mode SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetAutoBoostedClocksEnabled, nvmlEnableState_t *on SG_UNUSED,
                    nvmlEnableState_t *standard SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetAutoBoostedClocksEnabled, nvmlEnableState_t on SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetDefaultAutoBoostedClocksEnabled, nvmlEnableState_t on SG_UNUSED,
                    unsigned int flags SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetHostVgpuMode, nvmlHostVgpuMode_t *mode SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetVirtualizationMode, nvmlGpuVirtualizationMode_t mode SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetClkMonStatus, nvmlClkMonStatus_t *status SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetBBXTimeData_v1, nvmlBBXTimeData_v1_t *t SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetAdaptiveTgpModeInfo_v1, nvmlAdaptiveTgpModeInfo_v1_t *t SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetAdaptiveTgpMode_v1, nvmlEnableState_t on SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetPowerMizerMode_v1, nvmlDevicePowerMizerModes_v1_t *m SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetPowerMizerMode_v1, nvmlDevicePowerMizerModes_v1_t *m SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetRusdSettings_v1, nvmlRusdSettings_v1_t *r SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDevicePowerSmoothingActivatePresetProfile, nvmlPowerSmoothingProfile_t *p SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDevicePowerSmoothingSetState, nvmlPowerSmoothingState_t *s SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDevicePowerSmoothingUpdatePresetProfileParam, nvmlPowerSmoothingProfile_t *p SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetNvLinkDeviceLowPowerThreshold, nvmlNvLinkPowerThres_t *t SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetNvlinkSupportedBwModes, nvmlNvlinkSupportedBwModes_t *m SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetNvlinkBwMode, nvmlNvlinkGetBwMode_t *m SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetNvlinkBwMode, nvmlNvlinkSetBwMode_t *m SG_UNUSED)

/* Without a licence nothing can be licensed: an empty list, not an error. */
#define LICENCES(suffix)                                                                                      \
    SG_API nvmlReturn_t nvmlDeviceGetGridLicensableFeatures##suffix(nvmlDevice_t d,                           \
                                                                    nvmlGridLicensableFeatures_t *f)          \
    {                                                                                                         \
        SG_NVML_GPU(d);                                                                                       \
        SG_NVML_WANT(f);                                                                                      \
        ((unsigned *)(void *)f)[0] = ((unsigned *)(void *)f)[1] = 0;                                          \
        return NVML_SUCCESS;                                                                                  \
    }
LICENCES()
LICENCES(_v2)
LICENCES(_v3)
LICENCES(_v4)

SG_API nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *n)
{
    SG_NVML_WANT(n); /* works without nvmlInit */
    *n = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int i SG_UNUSED, nvmlExcludedDeviceInfo_t *e SG_UNUSED)
{
    return NVML_ERROR_INVALID_ARGUMENT;
}

SG_API nvmlReturn_t nvmlGetBlacklistDeviceCount(unsigned int *n);
SG_API nvmlReturn_t nvmlGetBlacklistDeviceInfoByIndex(unsigned int i, nvmlExcludedDeviceInfo_t *e);

SG_API nvmlReturn_t nvmlGetBlacklistDeviceCount(unsigned int *n)
{
    SG_NVML_WANT(n);
    *n = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlGetBlacklistDeviceInfoByIndex(unsigned int i SG_UNUSED, nvmlExcludedDeviceInfo_t *e SG_UNUSED)
{
    return NVML_ERROR_INVALID_ARGUMENT;
}

SG_API nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *n, nvmlHwbcEntry_t *e SG_UNUSED)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(n);
    *n = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *b, unsigned int n)
{
    char text[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
    const char *v, *dot;

    SG_NVML_ENTER();
    SG_NVML_VERSION(b, nvmlSystemDriverBranchInfo_t, 1);
    v = sg_conn.node->driver_version;
    dot = strchr(v, '.');
    snprintf(text, sizeof(text), "r%.*s_%.2s", dot ? (int)(dot - v) : (int)strlen(v), v, dot ? dot + 1 : "00");
    return sg_nvml_text(b->branch, n < sizeof(b->branch) ? n : (unsigned)sizeof(b->branch), text);
}

SG_API nvmlReturn_t nvmlUnitGetCount(unsigned int *n)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(n);
    *n = 0; /* no chassis of the S class */
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned int i SG_UNUSED, nvmlUnit_t *u SG_UNUSED)
{
    SG_NVML_ENTER();
    return NVML_ERROR_INVALID_ARGUMENT;
}
