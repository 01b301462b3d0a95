// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_power.c: power, temperature, fans. */
#include "nvml.h"

SG_NVML_READING(nvmlDeviceGetPowerUsage, unsigned int, true, s.power)
SG_NVML_READING(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, true, s.energy_mj)
SG_NVML_READING(nvmlDeviceGetPowerManagementLimit, unsigned int, true, s.power_limit)
SG_NVML_READING(nvmlDeviceGetEnforcedPowerLimit, unsigned int, true, s.power_limit)
SG_NVML_FACT(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, true, d->card->power_default)

SG_API nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned int *lo, unsigned int *hi)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(lo && hi);
    *lo = d->card->power_min;
    *hi = d->card->power_max;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t d, unsigned int mw)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, SG_MODE_POWER_LIMIT, mw);
}

SG_API nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t d, nvmlPowerValue_v2_t *v)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(v, nvmlPowerValue_v2_t, 2);
    SG_NVML_WANT(v->powerScope < 4);
    SG_NVML_NEED(!v->powerScope); /* the card itself */
    return sg_nvml_mode(d, SG_MODE_POWER_LIMIT, v->powerValueMw);
}

/* ---- workload power profiles ------------------------------------------------------------ */

#define PROFILES 5u /* highest performance, highest efficiency, compute, memory, network */

SG_API nvmlReturn_t nvmlDeviceWorkloadPowerProfileGetProfilesInfo(nvmlDevice_t d,
                                                                  nvmlWorkloadPowerProfileProfilesInfo_t *p)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(p, nvmlWorkloadPowerProfileProfilesInfo_t, 1);
    SG_NVML_HAS(d, SG_CARD_POWER_PROFILES);
    memset(&p->perfProfilesMask, 0, sizeof(*p) - offsetof(nvmlWorkloadPowerProfileProfilesInfo_t, perfProfilesMask));
    p->perfProfilesMask.mask[0] = (1u << PROFILES) - 1;
    for (unsigned i = 0; i < PROFILES; i++) {
        p->perfProfile[i].version = GS_NVML_STRUCT_VERSION(nvmlWorkloadPowerProfileInfo_t, 1);
        p->perfProfile[i].profileId = i;
        p->perfProfile[i].priority = i;
        if (i < 2)
            p->perfProfile[i].conflictingMask.mask[0] = 1u << (1 - i);
    }
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(nvmlDevice_t d,
                                                                     nvmlWorkloadPowerProfileCurrentProfiles_t *p)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_VERSION(p, nvmlWorkloadPowerProfileCurrentProfiles_t, 1);
    SG_NVML_HAS(d, SG_CARD_POWER_PROFILES);
    SG_NVML_SENSE(d, &s);
    memset(&p->perfProfilesMask, 0, 3 * sizeof(p->perfProfilesMask));
    p->perfProfilesMask.mask[0] = (1u << PROFILES) - 1;
    p->requestedProfilesMask.mask[0] = p->enforcedProfilesMask.mask[0] = (unsigned)s.power_profiles;
    return NVML_SUCCESS;
}

static nvmlReturn_t request(nvmlDevice_t d, const nvmlMask255_t *mask, bool add, bool replace)
{
    struct sg_sensors s;
    uint64_t want;

    SG_NVML_HAS(d, SG_CARD_POWER_PROFILES);
    for (unsigned i = 0; i < SG_LEN(mask->mask); i++)
        SG_NVML_WANT(!(mask->mask[i] & (i ? UINT32_MAX : ~((1u << PROFILES) - 1))));
    SG_NVML_SENSE(d, &s);
    want = replace ? 0 : s.power_profiles;
    want = add ? want | mask->mask[0] : want & ~(uint64_t)mask->mask[0];
    return sg_nvml_mode(d, SG_MODE_POWER_PROFILES, want);
}

SG_API nvmlReturn_t nvmlDeviceWorkloadPowerProfileSetRequestedProfiles(nvmlDevice_t d,
                                                                       nvmlWorkloadPowerProfileRequestedProfiles_t *p)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(p, nvmlWorkloadPowerProfileRequestedProfiles_t, 1);
    return request(d, &p->requestedProfilesMask, true, false);
}

SG_API nvmlReturn_t nvmlDeviceWorkloadPowerProfileClearRequestedProfiles(nvmlDevice_t d,
                                                                         nvmlWorkloadPowerProfileRequestedProfiles_t *p)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(p, nvmlWorkloadPowerProfileRequestedProfiles_t, 1);
    return request(d, &p->requestedProfilesMask, false, false);
}

SG_API nvmlReturn_t nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1(nvmlDevice_t d,
                                                                    nvmlWorkloadPowerProfileUpdateProfiles_v1_t *p)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(p && p->operation < 3);
    return request(d, &p->updateProfilesMask, p->operation > 0, p->operation == 2);
}

/* ---- temperature -------------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned int *celsius)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(celsius && sensor == NVML_TEMPERATURE_GPU);
    SG_NVML_SENSE(d, &s);
    *celsius = s.temperature;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t d, nvmlTemperature_t *t)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_VERSION(t, nvmlTemperature_t, 1);
    SG_NVML_WANT(t->sensorType == NVML_TEMPERATURE_GPU);
    SG_NVML_SENSE(d, &s);
    t->temperature = (int)s.temperature;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t d, nvmlMarginTemperature_t *m)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_VERSION(m, nvmlMarginTemperature_t, 1);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_ADA);
    SG_NVML_SENSE(d, &s);
    m->marginTemperature = (int)d->card->temp_operating - (int)s.temperature;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t which,
                                                      unsigned int *celsius)
{
    const struct sg_card *c;
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(celsius && which < 8);
    c = d->card;
    switch (which) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
        *celsius = c->temp_shutdown;
        break;
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
        *celsius = c->temp_slowdown;
        break;
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
        SG_NVML_NEED(c->temp_memory);
        *celsius = c->temp_memory;
        break;
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
        *celsius = c->temp_operating;
        break;
    case NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN:
        SG_NVML_NEED(c->fans);
        *celsius = 65;
        break;
    case NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX:
        SG_NVML_NEED(c->fans);
        *celsius = c->temp_operating;
        break;
    case NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR:
        SG_NVML_NEED(c->fans);
        SG_NVML_SENSE(d, &s);
        *celsius = s.acoustic;
        break;
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceSetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t which, int *celsius)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(celsius && which < 8);
    SG_NVML_NEED(which == NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR && d->card->fans);
    SG_NVML_WANT(*celsius > 0);
    return sg_nvml_mode(d, SG_MODE_ACOUSTIC, (unsigned)*celsius);
}

SG_API nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t d, unsigned int index, nvmlGpuThermalSettings_t *t)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(t && (index < 1 || index == 15)); /* 15: all sensors */
    SG_NVML_SENSE(d, &s);
    memset(t, 0, sizeof(*t));
    t->count = 1;
    t->sensor[0].controller = 1; /* in the GPU */
    t->sensor[0].defaultMinTemp = -40;
    t->sensor[0].defaultMaxTemp = (int)d->card->temp_slowdown;
    t->sensor[0].currentTemp = (int)s.temperature;
    t->sensor[0].target = 1; /* the GPU */
    return NVML_SUCCESS;
}

/* ---- fans ----------------------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t d, unsigned int *n)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(n);
    *n = d->card->fans;
    return NVML_SUCCESS;
}

static nvmlReturn_t fan(nvmlDevice_t d, unsigned index, struct sg_sensors *s)
{
    SG_NVML_GPU(d);
    SG_NVML_NEED(d->card->fans);
    SG_NVML_WANT(index < d->card->fans);
    return sg_nvml_sense(d, s);
}

#define FAN(name, type, value)                                                 \
    SG_API nvmlReturn_t name(nvmlDevice_t d, unsigned int index, type *v)      \
    {                                                                          \
        struct sg_sensors s;                                                   \
                                                                               \
        SG_NVML_TRY(fan(d, index, &s));                                        \
        SG_NVML_WANT(v);                                                       \
        *v = (value);                                                          \
        return NVML_SUCCESS;                                                   \
    }
FAN(nvmlDeviceGetFanSpeed_v2, unsigned int, s.fan)
FAN(nvmlDeviceGetTargetFanSpeed, unsigned int, s.fan_target)
FAN(nvmlDeviceGetFanControlPolicy_v2, nvmlFanControlPolicy_t, s.fan_manual)

SG_API nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t d, unsigned int *percent)
{
    struct sg_sensors s;

    SG_NVML_TRY(fan(d, 0, &s));
    SG_NVML_WANT(percent);
    *percent = s.fan;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t d, nvmlFanSpeedInfo_t *f)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_VERSION(f, nvmlFanSpeedInfo_t, 1);
    SG_NVML_TRY(fan(d, f->fan, &s));
    f->speed = d->card->fan_rpm * s.fan / 100;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t d, unsigned int *lo, unsigned int *hi)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(lo && hi);
    SG_NVML_NEED(d->card->fans);
    *lo = d->card->fan_min;
    *hi = 100;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetCoolerInfo(nvmlDevice_t d, nvmlCoolerInfo_t *c)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(c, nvmlCoolerInfo_t, 1);
    SG_NVML_NEED(d->card->fans);
    SG_NVML_WANT(c->index < d->card->fans);
    c->signalType = 2; /* variable speed */
    c->target = 1 << 1; /* the GPU */
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceSetFanSpeed_v2(nvmlDevice_t d, unsigned int index, unsigned int percent)
{
    SG_NVML_GPU(d);
    SG_NVML_NEED(d->card->fans);
    SG_NVML_WANT(index < d->card->fans && percent <= 100);
    return sg_nvml_mode(d, SG_MODE_FAN, percent);
}

SG_API nvmlReturn_t nvmlDeviceSetDefaultFanSpeed_v2(nvmlDevice_t d, unsigned int index)
{
    SG_NVML_GPU(d);
    SG_NVML_NEED(d->card->fans);
    SG_NVML_WANT(index < d->card->fans);
    return sg_nvml_mode(d, SG_MODE_FAN, 255);
}

SG_API nvmlReturn_t nvmlDeviceSetFanControlPolicy(nvmlDevice_t d, unsigned int index, nvmlFanControlPolicy_t manual)
{
    struct sg_sensors s;

    SG_NVML_TRY(fan(d, index, &s));
    SG_NVML_WANT(manual < 2);
    return sg_nvml_mode(d, SG_MODE_FAN, manual ? s.fan_target : 255);
}
