// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_offset.c: shifts of the voltage and frequency curve, which GeForce and
 * workstation cards have; they are kept and shown, and change no speed. */
#include "nvml.h"

#define LEAST (-500)
#define MOST 1000

static bool has(nvmlDevice_t d)
{
    return d->card->fans > 0 || !(d->card->flags & SG_CARD_SERIAL);
}

static nvmlReturn_t get(nvmlDevice_t d, bool memory, int *mhz)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(mhz);
    SG_NVML_NEED(has(d));
    SG_NVML_SENSE(d, &s);
    *mhz = memory ? s.memory_offset : s.graphics_offset;
    return NVML_SUCCESS;
}

static nvmlReturn_t set(nvmlDevice_t d, bool memory, int mhz)
{
    SG_NVML_GPU(d);
    SG_NVML_NEED(has(d));
    SG_NVML_WANT(mhz >= LEAST && mhz <= MOST);
    return sg_nvml_mode(d, memory ? SG_MODE_MEMORY_OFFSET : SG_MODE_GRAPHICS_OFFSET, (uint32_t)mhz);
}

static nvmlReturn_t range(nvmlDevice_t d, int *lo, int *hi)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(lo && hi);
    SG_NVML_NEED(has(d));
    *lo = LEAST;
    *hi = MOST;
    return NVML_SUCCESS;
}

#define OFFSET(clock, memory)                                                                       \
    SG_API nvmlReturn_t nvmlDeviceGet##clock##VfOffset(nvmlDevice_t d, int *mhz)                    \
    {                                                                                               \
        return get(d, memory, mhz);                                                                 \
    }                                                                                               \
    SG_API nvmlReturn_t nvmlDeviceSet##clock##VfOffset(nvmlDevice_t d, int mhz)                     \
    {                                                                                               \
        return set(d, memory, mhz);                                                                 \
    }                                                                                               \
    SG_API nvmlReturn_t nvmlDeviceGet##clock##MinMaxVfOffset(nvmlDevice_t d, int *lo, int *hi)      \
    {                                                                                               \
        return range(d, lo, hi);                                                                    \
    }
OFFSET(GpcClk, false)
OFFSET(MemClk, true)

SG_API nvmlReturn_t nvmlDeviceGetClockOffsets(nvmlDevice_t d, nvmlClockOffset_t *o)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(o, nvmlClockOffset_t, 1);
    SG_NVML_WANT(o->type < NVML_CLOCK_COUNT && o->pstate < 16);
    SG_NVML_NEED(o->type != NVML_CLOCK_VIDEO && !o->pstate);
    SG_NVML_TRY(range(d, &o->minClockOffsetMHz, &o->maxClockOffsetMHz));
    return get(d, o->type == NVML_CLOCK_MEM, &o->clockOffsetMHz);
}

SG_API nvmlReturn_t nvmlDeviceSetClockOffsets(nvmlDevice_t d, nvmlClockOffset_t *o)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(o, nvmlClockOffset_t, 1);
    SG_NVML_WANT(o->type < NVML_CLOCK_COUNT && o->pstate < 16);
    SG_NVML_NEED(o->type != NVML_CLOCK_VIDEO && !o->pstate);
    return set(d, o->type == NVML_CLOCK_MEM, o->clockOffsetMHz);
}
