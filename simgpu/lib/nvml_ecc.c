// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_ecc.c: memory errors, and memory taken out of use. */
#include "nvml.h"

SG_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(current && pending);
    SG_NVML_HAS(d, SG_CARD_ECC);
    SG_NVML_SENSE(d, &s);
    *current = s.ecc_mode;
    *pending = s.ecc_pending;
    return NVML_SUCCESS;
}

SG_NVML_FACT(nvmlDeviceGetDefaultEccMode, nvmlEnableState_t, d->card->flags & SG_CARD_ECC,
             !!(d->card->flags & SG_CARD_ECC_DEFAULT))

SG_API nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t d, nvmlEnableState_t on)
{
    SG_NVML_GPU(d);
    SG_NVML_HAS(d, SG_CARD_ECC);
    return sg_nvml_mode(d, SG_MODE_ECC, on);
}

SG_API nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t d, nvmlEccCounterType_t type)
{
    SG_NVML_GPU(d);
    SG_NVML_HAS(d, SG_CARD_ECC);
    return sg_nvml_mode(d, SG_MODE_CLEAR_ECC, type);
}

/* The counters of one kind, if the card counts. */
static nvmlReturn_t counters(nvmlDevice_t d, nvmlMemoryErrorType_t error, nvmlEccCounterType_t type,
                             struct sg_sensors *s, const uint64_t **ret)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(error < 2 && type < 2);
    SG_NVML_HAS(d, SG_CARD_ECC);
    SG_NVML_SENSE(d, s);
    SG_NVML_NEED(s->ecc_mode);
    *ret = s->ecc[error][type];
    return NVML_SUCCESS;
}

static uint64_t sum(const uint64_t *place)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < SG_ECC_PLACES; i++)
        n += place[i];
    return n;
}

SG_API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t error, nvmlEccCounterType_t type,
                                                unsigned long long *count)
{
    struct sg_sensors s;
    const uint64_t *place;

    SG_NVML_TRY(counters(d, error, type, &s, &place));
    SG_NVML_WANT(count);
    *count = sum(place);
    return NVML_SUCCESS;
}

/* Since Ampere, errors outside the memory are told together, as of SRAM. */
static bool together(nvmlDevice_t d)
{
    return d->card->architecture >= NVML_DEVICE_ARCH_AMPERE;
}

SG_API nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t d, nvmlMemoryErrorType_t error,
                                                    nvmlEccCounterType_t type, nvmlMemoryLocation_t where,
                                                    unsigned long long *count)
{
    struct sg_sensors s;
    const uint64_t *place;

    SG_NVML_TRY(counters(d, error, type, &s, &place));
    SG_NVML_WANT(count && where < SG_ECC_PLACES);
    if (where == NVML_MEMORY_LOCATION_DEVICE_MEMORY) {
        *count = place[where];
        return NVML_SUCCESS;
    }
    if (where == NVML_MEMORY_LOCATION_SRAM) {
        SG_NVML_NEED(together(d));
        *count = sum(place) - place[NVML_MEMORY_LOCATION_DEVICE_MEMORY];
        return NVML_SUCCESS;
    }
    SG_NVML_NEED(!together(d) && where != NVML_MEMORY_LOCATION_TEXTURE_SHM);
    *count = place[where];
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t error,
                                                   nvmlEccCounterType_t type, nvmlEccErrorCounts_t *c)
{
    struct sg_sensors s;
    const uint64_t *place;

    SG_NVML_TRY(counters(d, error, type, &s, &place));
    SG_NVML_WANT(c);
    c->l1Cache = place[NVML_MEMORY_LOCATION_L1_CACHE];
    c->l2Cache = place[NVML_MEMORY_LOCATION_L2_CACHE];
    c->deviceMemory = place[NVML_MEMORY_LOCATION_DEVICE_MEMORY];
    c->registerFile = place[NVML_MEMORY_LOCATION_REGISTER_FILE];
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t d, nvmlEccSramErrorStatus_t *e)
{
    struct sg_sensors s;
    const uint64_t *bad, *now, *mended, *mended_now;

    SG_NVML_GPU(d);
    SG_NVML_VERSION(e, nvmlEccSramErrorStatus_t, 1);
    SG_NVML_NEED(together(d));
    SG_NVML_TRY(counters(d, 1, 1, &s, &bad));
    now = s.ecc[1][0];
    mended = s.ecc[0][1];
    mended_now = s.ecc[0][0];
    memset(&e->aggregateUncParity, 0, sizeof(*e) - offsetof(nvmlEccSramErrorStatus_t, aggregateUncParity));
    e->aggregateUncSecDed = sum(bad) - bad[NVML_MEMORY_LOCATION_DEVICE_MEMORY];
    e->volatileUncSecDed = sum(now) - now[NVML_MEMORY_LOCATION_DEVICE_MEMORY];
    e->aggregateCor = sum(mended) - mended[NVML_MEMORY_LOCATION_DEVICE_MEMORY];
    e->volatileCor = sum(mended_now) - mended_now[NVML_MEMORY_LOCATION_DEVICE_MEMORY];
    e->aggregateUncBucketL2 = bad[NVML_MEMORY_LOCATION_L2_CACHE];
    e->aggregateUncBucketSm = bad[NVML_MEMORY_LOCATION_L1_CACHE] + bad[NVML_MEMORY_LOCATION_REGISTER_FILE];
    e->aggregateUncBucketOther = e->aggregateUncSecDed - e->aggregateUncBucketL2 - e->aggregateUncBucketSm;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts(nvmlDevice_t d,
                                                                     nvmlEccSramUniqueUncorrectedErrorCounts_t *e)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(e, nvmlEccSramUniqueUncorrectedErrorCounts_t, 1);
    SG_NVML_HAS(d, SG_CARD_ECC);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_HOPPER);
    e->entryCount = 0; /* no addresses are made up */
    return NVML_SUCCESS;
}

/* ---- rows and pages ------------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned int *corrected, unsigned int *uncorrected,
                                              unsigned int *pending, unsigned int *failed)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(corrected && uncorrected && pending && failed);
    SG_NVML_HAS(d, SG_CARD_ROW_REMAPPER);
    SG_NVML_SENSE(d, &s);
    *corrected = s.remapped_corrected;
    *uncorrected = s.remapped_uncorrected;
    *pending = s.remap_pending;
    *failed = s.remap_failed;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t d, nvmlRemappedRowsInfo_v2_t *r)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(r);
    SG_NVML_HAS(d, SG_CARD_ROW_REMAPPER);
    SG_NVML_SENSE(d, &s);
    *r = (nvmlRemappedRowsInfo_v2_t){.corrActiveRemaps = s.remapped_corrected,
                                     .uncActiveRemaps = s.remapped_uncorrected,
                                     .bPending = s.remap_pending,
                                     .bFailureOccurred = s.remap_failed};
    return NVML_SUCCESS;
}

/* Banks have their spare rows in proportion to the memory: 16 a GiB on the
 * cards that tell. A remapped row leaves its bank with high availability. */
SG_API nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t d, nvmlRowRemapperHistogramValues_t *h)
{
    struct sg_sensors s;
    unsigned banks, hit;

    SG_NVML_GPU(d);
    SG_NVML_WANT(h);
    SG_NVML_HAS(d, SG_CARD_ROW_REMAPPER);
    SG_NVML_SENSE(d, &s);
    banks = (unsigned)(d->info->memory_bytes >> 26);
    hit = s.remapped_corrected + s.remapped_uncorrected;
    hit = hit < banks ? hit : banks;
    *h = (nvmlRowRemapperHistogramValues_t){.max = banks - hit, .high = hit};
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetBankRemapperStatus_v1(nvmlDevice_t d, nvmlEccBankRemapperStatus_v1_t *b)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(b);
    SG_NVML_HAS(d, SG_CARD_ROW_REMAPPER);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_BLACKWELL);
    memset(b, 0, sizeof(*b));
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t d, nvmlRepairStatus_t *r)
{
    SG_NVML_GPU(d);
    SG_NVML_VERSION(r, nvmlRepairStatus_t, 1);
    SG_NVML_HAS(d, SG_CARD_ROW_REMAPPER);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_HOPPER);
    r->bChannelRepairPending = r->bTpcRepairPending = 0;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t d, nvmlUnrepairableMemoryStatus_v1_t *u)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(u);
    SG_NVML_HAS(d, SG_CARD_ROW_REMAPPER);
    SG_NVML_NEED(d->card->architecture >= NVML_DEVICE_ARCH_BLACKWELL);
    SG_NVML_SENSE(d, &s);
    u->bUnrepairableMemory = s.remap_failed;
    return NVML_SUCCESS;
}

/* Pages are retired on cards that count errors and cannot remap rows. */
static nvmlReturn_t retired(nvmlDevice_t d, nvmlPageRetirementCause_t cause, unsigned int *n,
                            unsigned long long *address, unsigned long long *time_us)
{
    struct sg_sensors s;
    unsigned room;

    SG_NVML_GPU(d);
    SG_NVML_WANT(n && cause < 2);
    SG_NVML_NEED((d->card->flags & (SG_CARD_ECC | SG_CARD_ROW_REMAPPER)) == SG_CARD_ECC);
    SG_NVML_SENSE(d, &s);
    room = address ? *n : 0;
    *n = s.retired[cause];
    if (*n > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *n; i++) {
        address[i] = (unsigned long long)i << 16;
        if (time_us)
            time_us[i] = s.start_us;
    }
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t d, nvmlPageRetirementCause_t cause, unsigned int *n,
                                              unsigned long long *address)
{
    return retired(d, cause, n, address, NULL);
}

SG_API nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t d, nvmlPageRetirementCause_t cause, unsigned int *n,
                                                 unsigned long long *address, unsigned long long *time_us)
{
    return retired(d, cause, n, address, time_us);
}

SG_NVML_READING(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t,
                (d->card->flags & (SG_CARD_ECC | SG_CARD_ROW_REMAPPER)) == SG_CARD_ECC, s.retire_pending)
