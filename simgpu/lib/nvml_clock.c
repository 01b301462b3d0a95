// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_clock.c: frequencies, performance states, and what holds them down. */
#include "nvml.h"

static unsigned highest(const struct sg_card *c, nvmlClockType_t type)
{
    return type == NVML_CLOCK_MEM ? c->memory_clock[0] : type == NVML_CLOCK_VIDEO ? c->video_max : c->graphics_max;
}

SG_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(mhz && type < NVML_CLOCK_COUNT);
    *mhz = highest(d->card, type);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(mhz && type < NVML_CLOCK_COUNT);
    SG_NVML_NEED(d->card->graphics_app && type != NVML_CLOCK_MEM && type != NVML_CLOCK_VIDEO);
    *mhz = highest(d->card, type);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(mhz && type < NVML_CLOCK_COUNT);
    SG_NVML_SENSE(d, &s);
    *mhz = s.clock[type];
    return NVML_SUCCESS;
}

static nvmlReturn_t application(nvmlDevice_t d, nvmlClockType_t type, bool standard, unsigned int *mhz)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(mhz && type < NVML_CLOCK_COUNT);
    SG_NVML_NEED(d->card->graphics_app && type != NVML_CLOCK_VIDEO);
    if (standard) {
        *mhz = type == NVML_CLOCK_MEM ? d->card->memory_clock[0] : d->card->graphics_app;
        return NVML_SUCCESS;
    }
    SG_NVML_SENSE(d, &s);
    *mhz = type == NVML_CLOCK_MEM ? s.app_memory : s.app_graphics;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz)
{
    return application(d, type, false, mhz);
}

SG_API nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t d, nvmlClockType_t type, unsigned int *mhz)
{
    return application(d, type, true, mhz);
}

SG_API nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t d, nvmlClockType_t type, nvmlClockId_t id, unsigned int *mhz)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(mhz && type < NVML_CLOCK_COUNT && id <= NVML_CLOCK_ID_CUSTOMER_BOOST_MAX);
    if (id == NVML_CLOCK_ID_APP_CLOCK_TARGET || id == NVML_CLOCK_ID_APP_CLOCK_DEFAULT)
        return application(d, type, id == NVML_CLOCK_ID_APP_CLOCK_DEFAULT, mhz);
    if (id == NVML_CLOCK_ID_CUSTOMER_BOOST_MAX) {
        SG_NVML_NEED(d->card->graphics_app && type != NVML_CLOCK_MEM && type != NVML_CLOCK_VIDEO);
        *mhz = highest(d->card, type);
        return NVML_SUCCESS;
    }
    SG_NVML_SENSE(d, &s);
    *mhz = s.clock[type];
    return NVML_SUCCESS;
}

/* ---- what can be had ------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t d, unsigned int *n, unsigned int *mhz)
{
    unsigned have = 0, room;

    SG_NVML_GPU(d);
    SG_NVML_WANT(n);
    while (have < SG_MEMORY_CLOCKS && d->card->memory_clock[have])
        have++;
    room = mhz ? *n : 0;
    *n = have;
    if (have > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(mhz, d->card->memory_clock, have * sizeof(*mhz));
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t d, unsigned int memory, unsigned int *n,
                                                         unsigned int *mhz)
{
    const struct sg_card *c;
    unsigned have, room;
    bool known = false;

    SG_NVML_GPU(d);
    SG_NVML_WANT(n);
    c = d->card;
    for (unsigned i = 0; i < SG_MEMORY_CLOCKS; i++)
        known |= c->memory_clock[i] && c->memory_clock[i] == memory;
    if (!known)
        return NVML_ERROR_NOT_FOUND;
    have = (c->graphics_max - c->graphics_idle) / c->graphics_step + 1;
    room = mhz ? *n : 0;
    *n = have;
    if (have > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < have; i++)
        mhz[i] = c->graphics_max - i * c->graphics_step;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t d, nvmlPstates_t *states, unsigned int size)
{
    unsigned n = size / sizeof(*states), k = 0;

    SG_NVML_GPU(d);
    SG_NVML_WANT(states && n);
    states[k++] = 0;
    if (d->card->idle_pstate) {
        if (n < 2)
            return NVML_ERROR_INSUFFICIENT_SIZE;
        states[k++] = d->card->idle_pstate;
    }
    while (k < n)
        states[k++] = 32; /* no more */
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t d, nvmlClockType_t type, nvmlPstates_t state,
                                                     unsigned int *lo, unsigned int *hi)
{
    const struct sg_card *c;

    SG_NVML_GPU(d);
    SG_NVML_WANT(lo && hi && type < NVML_CLOCK_COUNT && state < 16);
    c = d->card;
    SG_NVML_NEED(state == 0 || state == c->idle_pstate);
    *hi = highest(c, type);
    *lo = type == NVML_CLOCK_MEM ? *hi : c->graphics_idle;
    if (state) {
        if (type == NVML_CLOCK_MEM)
            *lo = *hi = c->memory_clock[1] ? c->memory_clock[1] : c->memory_clock[0];
        else
            *hi = c->graphics_max / 2;
    }
    return NVML_SUCCESS;
}

/* ---- now --------------------------------------------------------------------------------- */

SG_NVML_READING(nvmlDeviceGetPerformanceState, nvmlPstates_t, true, s.pstate)
SG_NVML_READING(nvmlDeviceGetPowerState, nvmlPstates_t, true, s.pstate)
SG_NVML_READING(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, true, s.reasons)
SG_NVML_READING(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, true, s.reasons)
#define REASONS 0x1ffu
SG_NVML_FACT(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, true, REASONS)
SG_NVML_FACT(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, true, REASONS)

SG_API nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t d, nvmlPerfPolicyType_t policy, nvmlViolationTime_t *v)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(v && policy < SG_VIOLATIONS && (policy < 6 || policy > 9));
    SG_NVML_SENSE(d, &s);
    v->referenceTime = s.time_us - s.start_us;
    v->violationTime = s.violation_ns[policy];
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t d, nvmlGpuDynamicPstatesInfo_t *p)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(p);
    SG_NVML_SENSE(d, &s);
    memset(p, 0, sizeof(*p));
    for (unsigned i = 0; i < 4; i++) { /* graphics, memory, video, bus */
        p->utilization[i].bIsPresent = 1;
        p->utilization[i].percentage = i < 2 ? s.busy[i] : i == 2 ? s.busy[3] : 0;
        p->utilization[i].incThreshold = 60;
        p->utilization[i].decThreshold = 30;
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t modes_text(nvmlDevice_t d, bool now, char *buf, size_t n)
{
    const struct sg_card *c = d->card;
    struct sg_sensors s;

    SG_NVML_SENSE(d, &s);
    if (now)
        snprintf(buf, n,
                 "perf=%u, nvclock=%u, nvclockmin=%u, nvclockmax=%u, memclock=%u, memclockmin=%u, memclockmax=%u",
                 s.pstate, s.clock[NVML_CLOCK_GRAPHICS], c->graphics_idle, c->graphics_max, s.clock[NVML_CLOCK_MEM],
                 c->memory_clock[1] ? c->memory_clock[1] : c->memory_clock[0], c->memory_clock[0]);
    else
        snprintf(buf, n,
                 "perf=0, nvclock=%u, nvclockmin=%u, nvclockmax=%u, memclock=%u, memclockmin=%u, memclockmax=%u",
                 c->graphics_max, c->graphics_idle, c->graphics_max, c->memory_clock[0], c->memory_clock[0],
                 c->memory_clock[0]);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetPerformanceModes(nvmlDevice_t d, nvmlDevicePerfModes_t *m)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(m, nvmlDevicePerfModes_t, 1);
    return modes_text(d, false, m->str, sizeof(m->str));
}

SG_API nvmlReturn_t nvmlDeviceGetCurrentClockFreqs(nvmlDevice_t d, nvmlDeviceCurrentClockFreqs_t *m)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(m, nvmlDeviceCurrentClockFreqs_t, 1);
    return modes_text(d, true, m->str, sizeof(m->str));
}

/* ---- setting ------------------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t d, unsigned int memory, unsigned int graphics)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, SG_MODE_APP_CLOCKS, memory | (uint64_t)graphics << 32);
}

SG_API nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t d)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, SG_MODE_APP_CLOCKS, 0);
}

/* A limit may be named: by the thermal design power, or none. */
static unsigned limit(unsigned mhz, unsigned most)
{
    return mhz > 0xffffff00u || mhz > most ? most : mhz;
}

static nvmlReturn_t lock(nvmlDevice_t d, uint32_t mode, unsigned lo, unsigned hi, unsigned most)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, mode, limit(lo, most) | (uint64_t)limit(hi, most) << 32);
}

SG_API nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t d, unsigned int lo, unsigned int hi)
{
    SG_NVML_GPU(d);
    return lock(d, SG_MODE_LOCKED_GRAPHICS, lo, hi, d->card->graphics_max);
}

SG_API nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t d)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, SG_MODE_LOCKED_GRAPHICS, 0);
}

SG_API nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t d, unsigned int lo, unsigned int hi)
{
    SG_NVML_GPU(d);
    return lock(d, SG_MODE_LOCKED_MEMORY, lo, hi, d->card->memory_clock[0]);
}

SG_API nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t d)
{
    SG_NVML_GPU(d);
    return sg_nvml_mode(d, SG_MODE_LOCKED_MEMORY, 0);
}
