// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_media.c: video sessions and frame capture. Nothing here encodes, so
 * lists are empty and averages are 0. */
#include "nvml.h"

SG_API nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_t d, nvmlEncoderType_t type, unsigned int *percent)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(percent && type < 3);
    SG_NVML_NEED(d->card->encoders && (type < 2 || d->card->architecture >= NVML_DEVICE_ARCH_ADA));
    *percent = 100;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t d, unsigned int *n, unsigned int *fps, unsigned int *latency)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(n && fps && latency);
    *n = *fps = *latency = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t d, unsigned int *n, nvmlEncoderSessionInfo_t *s SG_UNUSED)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(n);
    *n = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t d, nvmlFBCStats_t *f)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(f);
    memset(f, 0, sizeof(*f));
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t d, unsigned int *n, nvmlFBCSessionInfo_t *s SG_UNUSED)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(n);
    *n = 0;
    return NVML_SUCCESS;
}
