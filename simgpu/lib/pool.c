// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * pool.c: stream-ordered allocation. A pool takes blocks from the GPU and gives
 * parts of them out; a freed part can be used again by the stream that freed it,
 * and by others once that stream has passed the free. Blocks go back when a
 * synchronisation finds more than the release threshold, when the pool is
 * trimmed, or when the GPU is full. With the exact account a pool keeps nothing:
 * each allocation is a block, given back when it is freed.
 */
#include <sys/mman.h>

#include "sg.h"

static CUmemoryPool explicit_pools; /* under the lock */
static unsigned in_use;             /* pools have had blocks: a synchronisation looks at them */

bool sg_pool_valid(CUmemoryPool p)
{
    return sg_is(p, SG_POOL) && !p->destroyed;
}

void sg_pool_init(CUmemoryPool p, CUdevice dev)
{
    *p = (struct CUmemPoolHandle_st){.magic = SG_POOL, .dev = dev, .reuse = {1, 1, 1}};
    p->location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, dev};
    p->chunk = sg_rules(dev)->pool_bytes;
    p->access[dev] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

static CUmemoryPool next_pool(CUmemoryPool p)
{
    for (unsigned i = 0; i < sg_state.ndev; i++) {
        if (p == &sg_state.dev[i].default_pool)
            return i + 1 < sg_state.ndev ? &sg_state.dev[i + 1].default_pool : explicit_pools;
    }
    return p->next;
}

#define EACH_POOL(p) (CUmemoryPool p = &sg_state.dev[0].default_pool; p; p = next_pool(p))

/* ---- giving back: the lock is held ---------------------------------------------- */

/* Takes back the parts whose stream has passed their free; all: every part. */
static void reclaim(CUmemoryPool p, bool all)
{
    for (struct sg_pending **at = &p->pending; *at;) {
        struct sg_pending *f = *at;

        if (!all && !sg_done(f->slot, f->position)) {
            at = &f->next;
            continue;
        }
        sg_block_give(f->block, f->block->base + f->at, f->size);
        *at = f->next;
        free(f);
    }
}

/* Gives back unused blocks until the pool holds keep bytes or less. */
static bool shrink(CUmemoryPool p, uint64_t keep)
{
    bool any = false;

    for (struct sg_block **at = &p->blocks; *at && p->reserved > keep;) {
        struct sg_block *b = *at;

        if (b->live) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        p->reserved -= p->chunk ? b->size : b->need;
        sg_block_free(b);
        any = true;
    }
    return any;
}

static void settle(CUmemoryPool p)
{
    CUmemoryPool *at;

    if (!p->destroyed || p->outstanding)
        return;
    reclaim(p, true);
    shrink(p, 0);
    for (at = &explicit_pools; *at && *at != p; at = &(*at)->next)
        ;
    if (*at)
        *at = p->next;
    sg_device_give(p->handle);
    sg_object_free(p, sizeof(*p));
}

void sg_pool_sync(void)
{
    if (!__atomic_load_n(&in_use, __ATOMIC_RELAXED))
        return;
    sg_lock();
    for EACH_POOL(p) {
        reclaim(p, false);
        shrink(p, p->threshold);
    }
    sg_unlock();
}

bool sg_pools_trim(CUdevice dev)
{
    bool any = false;

    sg_lock();
    for EACH_POOL(p) {
        if (p->dev != dev)
            continue;
        reclaim(p, false);
        any |= shrink(p, 0);
    }
    sg_unlock();
    return any;
}

/* An allocation of a pool ends; s: in the order of that stream. */
void sg_pool_mem_free(struct sg_mem *m, CUstream s)
{
    CUmemoryPool p = m->pool;
    struct sg_block *b = m->block;
    struct sg_pending *f = s && p->chunk ? malloc(sizeof(*f)) : NULL;

    p->used -= m->mapped;
    p->outstanding--;
    if (f) {
        *f = (struct sg_pending){b, m->base - b->base, m->mapped, s->slot, 0, p->pending};
        f->position = __atomic_load_n(&s->pushed, __ATOMIC_RELAXED);
        p->pending = f;
    } else if (p->chunk) {
        sg_block_give(b, m->base, m->mapped);
    } else {
        for (struct sg_block **at = &p->blocks; *at; at = &(*at)->next) {
            if (*at == b) {
                *at = b->next;
                break;
            }
        }
        p->reserved -= m->mapped;
        sg_block_free(b);
    }
    settle(p);
}

/* ---- allocating ------------------------------------------------------------------- */

/* A part of need bytes. any: also one that another stream has not passed. */
static uintptr_t part(CUmemoryPool p, size_t need, CUstream s, bool any, struct sg_block **ret)
{
    reclaim(p, false);
    for (struct sg_block *b = p->blocks; b; b = b->next) {
        uintptr_t at = b->size - b->live < need ? 0 : sg_block_take(b, need);

        if (at) {
            *ret = b;
            return at;
        }
    }
    for (struct sg_pending **at = &p->pending; *at; at = &(*at)->next) {
        struct sg_pending *f = *at;
        uintptr_t base = f->block->base + f->at;

        if (f->size < need || (f->slot != s->slot && !any))
            continue;
        *ret = f->block; /* its bytes still count as given out */
        f->at += need;
        f->size -= need;
        if (!f->size) {
            *at = f->next;
            free(f);
        }
        return base;
    }
    return 0;
}

/* A block in the host's memory. */
static CUresult host_block(size_t size, struct sg_block **ret)
{
    struct sg_block *b = calloc(1, sizeof(*b));
    void *q = b ? sg_map_aligned(0, size, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1) : NULL;

    if (!q) {
        free(b);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *b = (struct sg_block){.base = (uintptr_t)q, .size = size, .use = SG_USE_POOL};
    *ret = b;
    return CUDA_SUCCESS;
}

/* Takes a block that has room for need bytes. The lock is not held. */
static CUresult grow(CUmemoryPool p, size_t need)
{
    size_t unit = p->dev < 0 ? SG_PAGE : sg_rules(p->dev)->block_bytes, size = p->chunk;
    struct sg_block *b;
    CUresult r;

    if (size < need || (p->max_size && p->max_size - p->reserved < size))
        size = unit ? sg_round(need, unit) : need;
    if (p->max_size && (p->reserved > p->max_size || size > sg_round(p->max_size, unit ? unit : 1) - p->reserved))
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = p->dev < 0 ? host_block(size, &b) : sg_block_new(p->dev, NULL, size, SG_USE_POOL, false, &b);
    if (r != CUDA_SUCCESS)
        return r;
    __atomic_store_n(&in_use, 1, __ATOMIC_RELAXED);
    sg_lock();
    b->pool = p;
    b->need = p->chunk ? 0 : need;
    b->next = p->blocks;
    p->blocks = b;
    p->reserved += p->chunk ? b->size : need;
    if (p->reserved > p->reserved_high)
        p->reserved_high = p->reserved;
    sg_unlock();
    return CUDA_SUCCESS;
}

/* Waits until every free of the pool's has been passed. */
static void wait_pending(CUmemoryPool p)
{
    for (;;) {
        struct sg_pending f;
        bool none;

        sg_lock();
        reclaim(p, false);
        none = !p->pending;
        if (!none)
            f = *p->pending;
        sg_unlock();
        if (none || sg_wait(f.slot, f.position) != CUDA_SUCCESS)
            return;
    }
}

static CUresult alloc_from(CUmemoryPool p, CUstream s, size_t n, CUdeviceptr *ret)
{
    struct sg_mem m = {.size = n, .mapped = sg_round(n, SG_ALLOC_UNIT), .kind = SG_MEM_POOL, .pool = p};
    CUresult r = CUDA_SUCCESS;

    m.dev = p->dev < 0 ? s->ctx->dev : p->dev;
    m.ctx = s->ctx; /* only to wait for; the memory is the device's */
    sg_lock();
    for (unsigned tries = 0; r == CUDA_SUCCESS; tries++) {
        m.base = p->chunk ? part(p, m.mapped, s, p->reuse[2], &m.block) : 0;
        for (struct sg_block *b = p->blocks; !p->chunk && b && !m.base; b = b->next) {
            /* Threads that come at once each take their own. */
            if (!b->live && b->need == m.mapped && (m.base = sg_block_take(b, b->size)))
                m.block = b;
        }
        if (m.base)
            break;
        sg_unlock();
        r = grow(p, m.mapped);
        if (r == CUDA_ERROR_OUT_OF_MEMORY && !tries && p->chunk) {
            wait_pending(p);
            sg_pools_trim(m.dev);
            r = CUDA_SUCCESS;
        } else if (tries > 8 && r == CUDA_SUCCESS) {
            r = CUDA_ERROR_OUT_OF_MEMORY; /* others took each block */
        }
        sg_lock();
    }
    if (r == CUDA_SUCCESS) {
        p->used += m.mapped;
        p->outstanding++;
        if (p->used > p->used_high)
            p->used_high = p->used;
        r = sg_mem_insert(&m);
        if (r != CUDA_SUCCESS)
            sg_pool_mem_free(&m, NULL);
    }
    sg_unlock();
    if (r == CUDA_SUCCESS)
        *ret = m.base;
    return r;
}

static CUresult alloc_async(CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream h, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_for_work(h, pt, &s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_alloc(s, n, pool, p);
    if (!p || !n)
        return CUDA_ERROR_INVALID_VALUE;
    if (!pool)
        pool = sg_state.dev[s->ctx->dev].pool;
    if (!sg_pool_valid(pool) || pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (n > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return alloc_from(pool, s, n, p);
}

SG_API CUresult cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s)
{
    return alloc_async(p, n, NULL, s, false);
}

SG_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *p, size_t n, CUstream s)
{
    return alloc_async(p, n, NULL, s, true);
}

SG_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream s)
{
    return sg_ready() && !pool ? CUDA_ERROR_INVALID_VALUE : alloc_async(p, n, pool, s, false);
}

SG_API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream s)
{
    return sg_ready() && !pool ? CUDA_ERROR_INVALID_VALUE : alloc_async(p, n, pool, s, true);
}

static CUresult free_now(CUdeviceptr p, CUstream s)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_block *b = NULL;
    struct sg_mem *m, copy;

    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->kind == SG_MEM_GRAPH) {
        sg_unlock();
        return sg_graph_mem_free(p, false);
    }
    if (m && m->base == p && (m->kind == SG_MEM_POOL || m->kind == SG_MEM_IMPORTED)) {
        copy = *m;
        sg_mem_remove(m);
        if (copy.kind == SG_MEM_POOL)
            sg_pool_mem_free(&copy, s);
        else
            b = copy.block;
        r = CUDA_SUCCESS;
    }
    sg_unlock();
    if (b)
        sg_block_free(b);
    return r;
}

static void free_later(void *arg)
{
    free_now((CUdeviceptr)(uintptr_t)arg, NULL);
}

static CUresult free_async(CUdeviceptr p, CUstream h, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_for_work(h, pt, &s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_free(s, p);
    /* A copy that waits behind a host function may still need the block. */
    if (sg_host_unfinished() && sg_mem_ours(p, 1))
        return sg_host_function(s, free_later, (void *)(uintptr_t)p, NULL);
    return free_now(p, s);
}

SG_API CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s)
{
    return free_async(p, s, false);
}

SG_API CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, CUstream s)
{
    return free_async(p, s, true);
}

/* ---- pools as objects ----------------------------------------------------------------- */

CUmemoryPool sg_pool_add(const struct CUmemPoolHandle_st *like)
{
    CUmemoryPool p = sg_object_new(sizeof(*p));

    if (!p)
        return NULL;
    *p = *like;
    sg_lock();
    p->next = explicit_pools;
    explicit_pools = p;
    sg_unlock();
    return p;
}

SG_API CUresult cuMemPoolDestroy(CUmemoryPool p)
{
    SG_ENTER();
    if (!sg_pool_valid(p) || p->deflt)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    for (unsigned i = 0; i < sg_state.ndev; i++) {
        if (sg_state.dev[i].pool == p)
            sg_state.dev[i].pool = &sg_state.dev[i].default_pool;
    }
    p->destroyed = true; /* goes with its last allocation */
    settle(p);
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemPoolTrimTo(CUmemoryPool p, size_t keep)
{
    SG_ENTER();
    if (!sg_pool_valid(p))
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    reclaim(p, false);
    shrink(p, keep);
    sg_unlock();
    return CUDA_SUCCESS;
}
