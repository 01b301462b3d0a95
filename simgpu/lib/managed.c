// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * managed.c: managed memory. Its bytes are host memory here; what is kept is
 * where each part of it would be. With the exact account all of it counts as the
 * device's from the start, until all of it is advised to lie with the processor.
 * Where it migrates, a part takes device memory once the
 * GPU has used it (a copy, a fill) or it was prefetched, and loses it by a
 * prefetch to the processor or when others need the room: then the host says on
 * the next occasion how much is left, and the parts unused for longest are gone.
 * What is advised to lie with the processor is used from there, and so is what lies
 * there and is advised to be used by the device; only a prefetch brings it over.
 * Kernels do nothing, so that what they would touch is not known.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "managed.h"

static unsigned migrating; /* allocations; under the lock */

CUresult sg_managed_alloc(size_t bytes, unsigned flags, CUcontext c, CUdeviceptr *ret)
{
    struct sg_mem m = {.size = bytes, .dev = c->dev, .ctx = c, .kind = SG_MEM_MANAGED, .flags = flags};
    bool migrates = sg_rules(c->dev)->managed_migrates;
    struct sg_managed *g;
    struct part *all;
    CUresult r = CUDA_SUCCESS;
    void *p;

    if (bytes > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    g = calloc(1, sizeof(*g));
    all = calloc(1, sizeof(*all));
    if (!g || !all) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    } else if (!migrates) {
        r = sg_block_new(c->dev, c, bytes, SG_USE_MANAGED, false, &m.block);
    } else if (!(m.block = calloc(1, sizeof(*m.block)))) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        m.block->size = sg_round(bytes, SG_PAGE);
        p = sg_map_aligned(0, m.block->size, bytes < 2u << 20 ? 0 : 2u << 20, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
        m.block->base = (uintptr_t)p;
        r = p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        if (!p)
            free(m.block);
    }
    if (r != CUDA_SUCCESS) {
        free(g);
        free(all);
        return r;
    }
    *all = (struct part){.size = m.block->size, .where = migrates ? NOWHERE : c->dev};
    *g = (struct sg_managed){.base = m.block->base, .size = m.block->size, .migrates = migrates, .parts = all};
    m.managed = g;
    m.mapped = m.block->size;
    sg_lock();
    m.base = sg_block_take(m.block, m.mapped);
    r = m.base ? sg_mem_insert(&m) : CUDA_ERROR_OUT_OF_MEMORY;
    migrating += r == CUDA_SUCCESS && migrates;
    sg_unlock();
    if (r != CUDA_SUCCESS) {
        sg_block_free(m.block);
        free(g);
        free(all);
        return r;
    }
    *ret = m.base;
    return CUDA_SUCCESS;
}

void sg_managed_free(struct sg_managed *g)
{
    for (unsigned i = 0; i < SG_MAX_GPUS; i++)
        sg_device_give(g->handle[i]);
    while (g->parts) {
        struct part *p = g->parts;

        g->parts = p->next;
        free(p);
    }
    migrating -= g->migrates;
    free(g);
}

/* ---- parts: the lock is held ---------------------------------------------------- */

/* Makes a part begin at offset at. */
static bool split(struct sg_managed *g, size_t at)
{
    struct part *p = g->parts, *q;

    while (p && p->at + p->size <= at)
        p = p->next;
    if (!p || p->at == at)
        return true;
    q = malloc(sizeof(*q));
    if (!q)
        return false;
    *q = *p;
    q->at = at;
    q->size = p->at + p->size - at;
    p->size = at - p->at;
    p->next = q;
    return true;
}

static bool alike(const struct part *a, const struct part *b)
{
    return a->where == b->where && a->read_mostly == b->read_mostly && a->accessed_by == b->accessed_by &&
           a->used == b->used && !memcmp(&a->preferred, &b->preferred, sizeof(a->preferred)) &&
           !memcmp(&a->prefetched, &b->prefetched, sizeof(a->prefetched));
}

void sg_managed_join(struct sg_managed *g)
{
    for (struct part *p = g->parts; p && p->next;) {
        struct part *q = p->next;

        if (!alike(p, q)) {
            p = q;
            continue;
        }
        p->size += q->size;
        p->next = q->next;
        free(q);
    }
}

static uint64_t resident(const struct sg_managed *g, CUdevice dev)
{
    uint64_t n = 0;

    for (const struct part *p = g->parts; p; p = p->next)
        n += p->where == dev ? p->size : 0;
    return n;
}

/* Sends parts of a device to the processor, longest unused first, until no more
 * than keep bytes are there. */
static void evict(struct sg_managed *g, CUdevice dev, uint64_t keep)
{
    for (uint64_t have = resident(g, dev); have > keep;) {
        struct part *oldest = NULL;

        for (struct part *p = g->parts; p; p = p->next) {
            if (p->where == dev && (!oldest || p->used < oldest->used))
                oldest = p;
        }
        if (oldest->size > have - keep)
            split(g, oldest->at + sg_round(have - keep, SG_PAGE)); /* else all of it goes */
        oldest->where = CPU;
        have -= oldest->size;
    }
}

/* Learns what others have pushed out. */
static void learn(struct sg_managed *g, CUdevice dev)
{
    struct sg_request req = {.op = SG_OP_RESIZE, .a = g->handle[dev], .b = UINT64_MAX};
    struct sg_reply rep;

    if (!g->handle[dev] || sg_call(&req, NULL, &rep, NULL, 0, NULL) != CUDA_SUCCESS || rep.b >= g->charged[dev])
        return;
    g->charged[dev] = rep.b;
    evict(g, dev, rep.b);
}

/* Brings the account to what is there, and what is there to the room that is. */
static void settle(struct sg_managed *g, CUdevice dev)
{
    struct sg_request make = {.op = SG_OP_ALLOC, .gpu = sg_state.dev[dev].index, .b = SG_USE_MANAGED};
    struct sg_request req = {.op = SG_OP_RESIZE};
    struct sg_reply rep;
    uint64_t want = resident(g, dev);

    if (!g->handle[dev]) {
        if (!want)
            return;
        if (sg_call(&make, NULL, &rep, NULL, 0, NULL) != CUDA_SUCCESS) {
            evict(g, dev, 0);
            return;
        }
        g->handle[dev] = rep.a;
    }
    req.a = g->handle[dev];
    req.b = want;
    if (sg_call(&req, NULL, &rep, NULL, 0, NULL) != CUDA_SUCCESS)
        rep.b = g->charged[dev];
    g->charged[dev] = rep.b;
    if (rep.b < want)
        evict(g, dev, rep.b);
}

/* Calls f for the parts that make up [p, p+n) of m. */
bool sg_managed_apply(struct sg_mem *m, uintptr_t p, size_t n, void (*f)(struct part *, const void *), const void *arg)
{
    size_t from = (p - m->base) / SG_PAGE * SG_PAGE, to = sg_round(p - m->base + n, SG_PAGE);

    if (!split(m->managed, from) || !split(m->managed, to))
        return false;
    for (struct part *q = m->managed->parts; q; q = q->next) {
        if (q->at >= from && q->at < to)
            f(q, arg);
    }
    return true;
}

/* Where a part is when a device has used it. */
static int place_of(const struct part *p, CUdevice dev)
{
    if (p->where == dev)
        return dev;
    if (p->preferred.type && sg_where_of(&p->preferred) == CPU)
        return CPU;
    return p->where == CPU && p->accessed_by >> dev & 1 ? CPU : dev;
}

struct move {
    int to;
    bool touch; /* the device uses it, wherever it is then */
    unsigned long long use;
    const CUmemLocation *prefetch;
};

static void move(struct part *p, const void *arg)
{
    const struct move *m = arg;

    p->where = m->touch ? place_of(p, m->to) : m->to;
    p->used = m->use;
    if (m->prefetch)
        p->prefetched = *m->prefetch;
}

static void place(struct sg_mem *m, uintptr_t p, size_t n, struct move mv)
{
    struct sg_managed *g = m->managed;

    mv.use = ++g->uses;
    if (!g->migrates)
        mv.to = g->parts->where;
    for (unsigned i = 0; g->migrates && i < sg_state.ndev; i++)
        learn(g, (CUdevice)i);
    sg_managed_apply(m, p, n, move, &mv);
    for (unsigned i = 0; g->migrates && i < sg_state.ndev; i++)
        settle(g, (CUdevice)i);
    sg_managed_join(g);
}

void sg_managed_place(struct sg_mem *m, uintptr_t p, size_t n, int to, const CUmemLocation *prefetch)
{
    place(m, p, n, (struct move){.to = to, .prefetch = prefetch});
}

void sg_managed_loosen(struct sg_mem *m)
{
    struct sg_managed *g = m->managed;

    if (g->migrates)
        return;
    for (struct part *p = g->parts; p; p = p->next) {
        if (!p->preferred.type || sg_where_of(&p->preferred) != CPU)
            return;
    }
    for (struct part *p = g->parts; p; p = p->next)
        p->where = CPU;
    g->migrates = true;
    migrating++;
    sg_device_give(m->block->handle);
    m->block->handle = 0;
}

void sg_managed_touch(CUdeviceptr p, size_t n, CUdevice dev)
{
    struct sg_mem *m;
    bool there = true;

    if (!__atomic_load_n(&migrating, __ATOMIC_RELAXED))
        return;
    sg_lock();
    m = sg_mem_find((uintptr_t)p, n);
    if (m && m->managed && m->managed->migrates) {
        size_t at = (uintptr_t)p - m->base;

        for (struct part *q = m->managed->parts; q; q = q->next) {
            if (q->at < at + n && at < q->at + q->size)
                there &= q->where == place_of(q, dev);
        }
        if (!there)
            place(m, (uintptr_t)p, n, (struct move){.to = dev, .touch = true});
    }
    sg_unlock();
}

/* ---- the calls --------------------------------------------------------------------- */

CUmemLocation sg_location_of(CUdevice dev)
{
    return dev == CPU ? (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0}
                      : (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, dev};
}

/* A location as a device or the processor; -2: it is none. */
int sg_where_of(const CUmemLocation *l)
{
    switch ((int)l->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sg_dev(l->id) ? l->id : NOWHERE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return CPU;
    default:
        return NOWHERE;
    }
}

struct sg_mem *sg_managed_find(CUdeviceptr p, size_t n)
{
    struct sg_mem *m = n ? sg_mem_find((uintptr_t)p, n) : NULL;

    return m && m->managed ? m : NULL;
}

static CUresult prefetch(CUdeviceptr p, size_t n, CUmemLocation to, CUstream h, bool pt)
{
    struct sg_mem *m;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (sg_where_of(&to) == NOWHERE)
        return to.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    m = sg_managed_find(p, n);
    if (m)
        sg_managed_place(m, (uintptr_t)p, n, sg_where_of(&to), &to);
    sg_unlock();
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemPrefetchAsync(CUdeviceptr p, size_t n, CUdevice dev, CUstream s)
{
    return prefetch(p, n, sg_location_of(dev), s, false);
}

SG_API CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr p, size_t n, CUdevice dev, CUstream s)
{
    return prefetch(p, n, sg_location_of(dev), s, true);
}

SG_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr p, size_t n, CUmemLocation to, unsigned int flags, CUstream s)
{
    return sg_ready() && flags ? CUDA_ERROR_INVALID_VALUE : prefetch(p, n, to, s, false);
}

SG_API CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr p, size_t n, CUmemLocation to, unsigned int flags, CUstream s)
{
    return sg_ready() && flags ? CUDA_ERROR_INVALID_VALUE : prefetch(p, n, to, s, true);
}
