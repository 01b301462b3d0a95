// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_fields.c: figures by number (NVML_FI_*), many in one call; each answers
 * or fails by itself. Ranges of numbers are those of the interface. */
#include "nvml.h"

struct field {
    nvmlFieldValue_t *v;
    nvmlDevice_t d;
    const struct sg_sensors *s;
};

static nvmlReturn_t number(struct field *f, unsigned x)
{
    f->v->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    f->v->value.uiVal = x;
    return NVML_SUCCESS;
}

static nvmlReturn_t wide(struct field *f, uint64_t x)
{
    f->v->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    f->v->value.ullVal = x;
    return NVML_SUCCESS;
}

static nvmlReturn_t with_sign(struct field *f, int x)
{
    f->v->valueType = 5;
    f->v->value.siVal = x;
    return NVML_SUCCESS;
}

static uint64_t sum(const uint64_t *place)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < SG_ECC_PLACES; i++)
        n += place[i];
    return n;
}

/* 1 to 28: error correction. */
static nvmlReturn_t ecc(struct field *f, unsigned id)
{
    unsigned aggregate, k, kind;

    SG_NVML_HAS(f->d, SG_CARD_ECC);
    if (id < 3)
        return number(f, id == 1 ? f->s->ecc_mode : f->s->ecc_pending);
    SG_NVML_NEED(f->s->ecc_mode);
    if (id < 7)
        return wide(f, sum(f->s->ecc[(id - 3) % 2][(id - 3) / 2]));
    aggregate = id >= 18;
    k = id - (aggregate ? 18 : 7); /* L1 twice, L2 twice, … CBU once */
    kind = k < 10 ? k % 2 : 1;
    k = k < 10 ? k / 2 : 6;
    if (k != NVML_MEMORY_LOCATION_DEVICE_MEMORY)
        SG_NVML_NEED(f->d->card->architecture < NVML_DEVICE_ARCH_AMPERE);
    return wide(f, f->s->ecc[kind][aggregate][k]);
}

/* 32 to 137 and 148 to 168: NVLink. */
static nvmlReturn_t link(struct field *f, unsigned id)
{
    const struct sg_card *c = f->d->card;
    unsigned n = c->nvlinks, scope = f->v->scopeId;

    SG_NVML_NEED(n);
    if ((id >= 84 && id <= 89) || (id >= 132 && id <= 137)) { /* speeds of links 0 to 11 */
        SG_NVML_NEED(id - (id < 90 ? 84 : 126) < n);
        return number(f, c->nvlink_mbps);
    }
    if (id == 90)
        return number(f, c->nvlink_mbps);
    switch (id) {
    case 164:
    case 165:
    case 166:
    case 167:
        SG_NVML_WANT(scope < n);
        return number(f, id == 164   ? c->nvlink_mbps
                         : id == 165 ? 1
                         : id == 166 ? c->nvlink_version
                                     : 0);
    case 161:
    case 162:
    case 163:
        SG_NVML_WANT(scope < n || scope == UINT32_MAX);
        return wide(f, f->s->nvlink_errors * (scope == UINT32_MAX ? n : 1));
    default:
        break;
    }
    SG_NVML_NEED(id < 60 || (id >= 96 && id < 120) || (id >= 148 && id <= 160));
    if (id == 38 || id == 45 || id == 52 || id == 59 || id == 160) /* totals over the links */
        return wide(f, f->s->nvlink_errors * n);
    if (id < 60)
        SG_NVML_NEED((id - 32) % 7 < n);
    else if (id < 120)
        SG_NVML_NEED((id - 96) % 6 + 6 < n);
    else
        SG_NVML_NEED(id - 148 < n);
    return wide(f, f->s->nvlink_errors);
}

/* 185 to 192: power by scope. */
static nvmlReturn_t power(struct field *f, unsigned id)
{
    const struct sg_card *c = f->d->card;

    SG_NVML_WANT(f->v->scopeId < 4);
    SG_NVML_NEED(!f->v->scopeId);
    switch (id) {
    case 185:
        return number(f, f->s->power);
    case 186:
        return number(f, f->s->power_instant);
    case 187:
        return number(f, c->power_min);
    case 188:
        return number(f, c->power_max);
    case 189:
        return number(f, c->power_default);
    case 191:
        return wide(f, f->s->energy_mj);
    default:
        return number(f, f->s->power_limit);
    }
}

/* Whole figures that need nothing but their number. */
static nvmlReturn_t single(struct field *f, unsigned id)
{
    const struct sg_card *c = f->d->card;
    const struct sg_sensors *s = f->s;
    bool pages = (c->flags & (SG_CARD_ECC | SG_CARD_ROW_REMAPPER)) == SG_CARD_ECC;

    switch (id) {
    case 29:
    case 30:
        SG_NVML_NEED(pages);
        return wide(f, s->retired[id - 29]);
    case 31:
    case 92:
    case 93:
        SG_NVML_NEED(pages);
        return wide(f, s->retire_pending);
    case 82:
        SG_NVML_NEED(c->temp_memory);
        return number(f, s->memory_temperature);
    case 83:
        return wide(f, s->energy_mj);
    case 91:
        SG_NVML_NEED(c->nvlinks);
        return number(f, c->nvlinks);
    case 94:
        return number(f, s->pcie_replays);
    case 95:
        return number(f, 0);
    case 138: /* NVLink bytes: nothing moves */
    case 139:
    case 140:
    case 141:
        SG_NVML_NEED(c->nvlinks);
        return wide(f, 0);
    case 142:
    case 143:
    case 144:
    case 145:
        SG_NVML_HAS(f->d, SG_CARD_ROW_REMAPPER);
        return number(f, id == 142   ? s->remapped_corrected
                         : id == 143 ? s->remapped_uncorrected
                         : id == 144 ? s->remap_pending
                                     : s->remap_failed);
    case 147:
        SG_NVML_HAS(f->d, SG_CARD_NVSWITCH);
        return number(f, c->nvlinks);
    case 170:
        SG_NVML_NEED(c->architecture >= NVML_DEVICE_ARCH_HOPPER);
        return number(f, 0); /* no chip beside it */
    case 184:
        return number(f, c->mig_instances && c->architecture >= NVML_DEVICE_ARCH_HOPPER);
    case 193:
    case 194:
    case 195:
    case 196:
        SG_NVML_NEED(c->architecture >= NVML_DEVICE_ARCH_ADA && (id != 195 || c->temp_memory));
        return with_sign(f, (int)c->temp_operating - (int)(id == 193   ? c->temp_shutdown
                                                           : id == 194 ? c->temp_slowdown
                                                           : id == 195 ? c->temp_memory
                                                                       : c->temp_operating));
    case 197:
    case 198:
        SG_NVML_NEED(c->architecture >= NVML_DEVICE_ARCH_AMPERE);
        return wide(f, 0);
    case 199:
        return number(f, c->mig_instances != 0);
    case 226:
    case 227:
        SG_NVML_NEED(c->architecture >= NVML_DEVICE_ARCH_AMPERE);
        return number(f, s->remap_pending);
    case 230:
        SG_NVML_NEED(c->architecture >= NVML_DEVICE_ARCH_AMPERE);
        return number(f, s->recovery);
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

static nvmlReturn_t value(struct field *f)
{
    unsigned id = f->v->fieldId;

    if (id >= 1 && id <= 28)
        return ecc(f, id);
    if ((id >= 32 && id <= 73) || (id >= 84 && id <= 90) || (id >= 96 && id <= 137) || (id >= 148 && id <= 168))
        return link(f, id);
    if (id >= 74 && id <= 81) /* times below the wanted clock */
        return wide(f, f->s->violation_ns[id < 80 ? id - 74 : id - 70]);
    if (id >= 173 && id <= 183)
        return number(f, 0); /* errors of the link */
    if (id >= 185 && id <= 192)
        return power(f, id);
    return single(f, id);
}

SG_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *v)
{
    struct sg_sensors s;

    SG_NVML_GPU(d);
    SG_NVML_WANT(n > 0 && v);
    SG_NVML_SENSE(d, &s);
    for (int i = 0; i < n; i++) {
        struct field f = {&v[i], d, &s};

        v[i].timestamp = (long long)s.time_us;
        v[i].latencyUsec = 0;
        v[i].nvmlReturn = value(&f);
    }
    return NVML_SUCCESS;
}

/* Nothing that counts here can be set back by its number. */
SG_API nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *v)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(n > 0 && v);
    for (int i = 0; i < n; i++)
        v[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
