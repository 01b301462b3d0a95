// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* managedinfo.c: advice about managed memory, and what is known of a range. */
#include "managed.h"

enum { READ_MOSTLY = 1, NOT_READ_MOSTLY, PREFER, PREFER_NONE, ACCESSED_BY, NOT_ACCESSED_BY };

struct advice {
    unsigned what;
    CUmemLocation where;
};

static void advise_part(struct part *p, const void *arg)
{
    const struct advice *a = arg;
    int dev = sg_where_of(&a->where);
    uint32_t bit = dev == CPU ? CPU_BIT : 1u << (dev & 31);

    switch (a->what) {
    case READ_MOSTLY:
    case NOT_READ_MOSTLY:
        p->read_mostly = a->what == READ_MOSTLY;
        break;
    case PREFER:
        p->preferred = a->where;
        break;
    case PREFER_NONE:
        p->preferred = (CUmemLocation){0};
        break;
    case ACCESSED_BY:
        p->accessed_by |= bit;
        break;
    default:
        p->accessed_by &= ~bit;
    }
}

static CUresult advise(CUdeviceptr p, size_t n, unsigned what, CUmemLocation where)
{
    struct advice a = {what, where};
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_mem *m;

    SG_ENTER();
    if (what < READ_MOSTLY || what > NOT_ACCESSED_BY)
        return r;
    /* Where does not matter for the others. */
    if ((what == PREFER || what >= ACCESSED_BY) && sg_where_of(&where) == NOWHERE)
        return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE : r;
    sg_lock();
    m = sg_managed_find(p, n);
    if (m && sg_managed_apply(m, (uintptr_t)p, n, advise_part, &a)) {
        sg_managed_loosen(m);
        sg_managed_join(m->managed);
        r = CUDA_SUCCESS;
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuMemAdvise(CUdeviceptr p, size_t n, CUmem_advise advice, CUdevice dev)
{
    return advise(p, n, advice, sg_location_of(dev));
}

SG_API CUresult cuMemAdvise_v2(CUdeviceptr p, size_t n, CUmem_advise advice, CUmemLocation where)
{
    return advise(p, n, advice, where);
}

/* ---- what is known of a range: the lock is held -------------------------------------- */

static int id_of(const CUmemLocation *l)
{
    return l->type ? sg_where_of(l) : NOWHERE;
}

static int value_of(const struct part *p, CUmem_range_attribute a)
{
    switch ((int)a) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
        return p->read_mostly;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        return id_of(&p->preferred);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        return id_of(&p->prefetched);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
        return (int)p->preferred.type;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
        return p->preferred.id;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        return (int)p->prefetched.type;
    default:
        return p->prefetched.id;
    }
}

static CUresult range_attribute(void *data, size_t size, CUmem_range_attribute a, CUdeviceptr p, size_t n)
{
    struct sg_mem *m = sg_managed_find(p, n);
    size_t from, to, count = size / sizeof(int), k = 0;
    uint32_t by = UINT32_MAX;
    int value = 0, *out = data;
    bool first = true, same = true;

    if (!data || !m || a < CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY || a > CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID ||
        !count || size % sizeof(int) || (a != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && count != 1))
        return CUDA_ERROR_INVALID_VALUE;
    from = (uintptr_t)p - m->base;
    to = from + n;
    for (const struct part *q = m->managed->parts; q; q = q->next) {
        if (q->at >= to || q->at + q->size <= from)
            continue;
        by &= q->accessed_by;
        same &= first || value_of(q, a) == value;
        value = value_of(q, a);
        first = false;
    }
    if (a != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
        /* Parts that differ have nothing in common. */
        bool location = a == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION || a == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;

        *out = same ? value : location ? NOWHERE : 0;
        return CUDA_SUCCESS;
    }
    for (int i = 0; i < 31 && k < count; i++) {
        if (by >> i & 1)
            out[k++] = i;
    }
    if (by & CPU_BIT && k < count)
        out[k++] = CPU;
    while (k < count)
        out[k++] = NOWHERE;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute a, CUdeviceptr p, size_t n)
{
    CUresult r;

    SG_ENTER();
    sg_lock();
    r = range_attribute(data, size, a, p, n);
    sg_unlock();
    return r;
}

SG_API CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *a, size_t count, CUdeviceptr p,
                                        size_t n)
{
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    if (!data || !sizes || !a || !count)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = range_attribute(data[i], sizes[i], a[i], p, n);
    sg_unlock();
    return r;
}

/* ---- where memory lies, from 13.4 ------------------------------------------------------ */

#define SAMPLE (64u << 10)

/* The commonest place of samples in [from, to); of equals, the first. */
static int commonest(const struct sg_managed *g, size_t from, size_t to, size_t step)
{
    size_t seen[SG_MAX_GPUS + 2] = {0}; /* by place, from NOWHERE on */
    unsigned best = 0;

    for (const struct part *p = g->parts; p; p = p->next) {
        /* Samples lie at from + k * step: those before an address, rounded up. */
        size_t a = p->at > from ? p->at - from : 0, b = p->at + p->size < to ? p->at + p->size : to;

        if (p->at < to && p->at + p->size > from)
            seen[p->where - NOWHERE] += (b - from - 1) / step + 1 - (a ? (a - 1) / step + 1 : 0);
    }
    for (unsigned i = 1; i < SG_LEN(seen); i++) {
        if (seen[i] > seen[best])
            best = i;
    }
    return (int)best + NOWHERE;
}

CUresult cuMemGetLocationInfo(CUdeviceptr, size_t, size_t, size_t, CUmemLocation *);
SG_API CUresult cuMemGetLocationInfo(CUdeviceptr p, size_t n, size_t each, size_t step, CUmemLocation *out)
{
    CUresult r = CUDA_SUCCESS;
    struct sg_mem *m;

    SG_ENTER();
    if (!out || !each || each > n || step > each)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < sg_state.ndev; i++) {
        if (!sg_attr(sg_state.dev[i].info, CONCURRENT_MANAGED_ACCESS))
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!step)
        step = each < SAMPLE ? each : SAMPLE;
    sg_lock();
    m = sg_managed_find(p, n);
    if (!m)
        r = CUDA_ERROR_INVALID_VALUE;
    for (size_t at = 0, k = 0; r == CUDA_SUCCESS && at < n; k++) {
        size_t from = (uintptr_t)p - m->base + at, len = n - at < each ? n - at : each;
        int where = commonest(m->managed, from, from + len, step);

        out[k] = where == NOWHERE ? (CUmemLocation){0}
                 : where == CPU   ? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST}
                                  : (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = where};
        at += len;
    }
    sg_unlock();
    return r;
}
