// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_cc.c: confidential computing, which cards can do and nobody has turned
 * on; and encryption, which goes with it. */
#include "nvml.h"

static bool capable(void)
{
    for (unsigned i = 0; i < sg_nvml.ndev; i++) {
        if (sg_nvml.dev[i].card->flags & SG_CARD_CC)
            return true;
    }
    return false;
}

SG_API nvmlReturn_t nvmlSystemGetConfComputeCapabilities(nvmlConfComputeSystemCaps_t *c)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(c);
    c->cpuCaps = 0; /* none of the processors' own */
    c->gpusCaps = capable();
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlSystemGetConfComputeState(nvmlConfComputeSystemState_t *s)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(s);
    SG_NVML_NEED(capable());
    memset(s, 0, sizeof(*s));
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlSystemGetConfComputeGpusReadyState(unsigned int *ready)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(ready);
    SG_NVML_NEED(capable());
    *ready = 1;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlSystemGetConfComputeSettings(nvmlSystemConfComputeSettings_t *s)
{
    SG_NVML_ENTER();
    SG_NVML_VERSION(s, nvmlSystemConfComputeSettings_t, 1);
    SG_NVML_NEED(capable());
    s->environment = s->ccFeature = s->devToolsMode = s->multiGpuMode = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlSystemGetConfComputeSettings_v2(nvmlSystemConfComputeSettings_v2_t *s)
{
    SG_NVML_ENTER();
    SG_NVML_VERSION(s, nvmlSystemConfComputeSettings_v2_t, 2);
    SG_NVML_NEED(capable());
    s->environment = s->ccFeature = s->devToolsMode = s->multiGpuMode = s->tdispState = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlSystemGetConfComputeKeyRotationThresholdInfo(
    nvmlConfComputeGetKeyRotationThresholdInfo_t *k)
{
    SG_NVML_ENTER();
    SG_NVML_VERSION(k, nvmlConfComputeGetKeyRotationThresholdInfo_t, 1);
    return NVML_ERROR_NOT_SUPPORTED; /* without the feature there are no keys */
}

SG_API nvmlReturn_t nvmlSystemSetConfComputeKeyRotationThresholdInfo(
    nvmlConfComputeSetKeyRotationThresholdInfo_t *k)
{
    SG_NVML_ENTER();
    SG_NVML_VERSION(k, nvmlConfComputeSetKeyRotationThresholdInfo_t, 1);
    return NVML_ERROR_NOT_SUPPORTED;
}

SG_API nvmlReturn_t nvmlSystemSetConfComputeGpusReadyState(unsigned int ready)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(ready < 2);
    return NVML_ERROR_NOT_SUPPORTED;
}

/* All of the memory is unprotected. */
SG_API nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t d, nvmlConfComputeMemSizeInfo_t *m)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(m);
    SG_NVML_HAS(d, SG_CARD_CC);
    m->protectedMemSizeKib = 0;
    m->unprotectedMemSizeKib = (d->info->memory_bytes + d->info->reserved_bytes) >> 10;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t d, nvmlMemory_t *m)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(m);
    SG_NVML_HAS(d, SG_CARD_CC);
    memset(m, 0, sizeof(*m));
    return NVML_SUCCESS;
}

SG_NVML_NOT_ON_CARD(nvmlDeviceSetConfComputeUnprotectedMemSize, unsigned long long kib SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetConfComputeGpuCertificate, nvmlConfComputeGpuCertificate_t *c SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetConfComputeGpuAttestationReport, nvmlConfComputeGpuAttestationReport_t *r SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceGetDramEncryptionMode, nvmlDramEncryptionInfo_t *current SG_UNUSED,
                    nvmlDramEncryptionInfo_t *pending SG_UNUSED)
SG_NVML_NOT_ON_CARD(nvmlDeviceSetDramEncryptionMode, const nvmlDramEncryptionInfo_t *mode SG_UNUSED)
