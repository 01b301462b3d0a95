// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * mem.c: linear device memory. A table sorted by address knows every range that
 * a program may name; the mappings behind them are blocks (block.c).
 */
#include <sys/mman.h>

#include "sg.h"

static struct {
    struct sg_mem *v;
    size_t n, cap;
} table;

static struct sg_block *small; /* blocks that allocations share */

/* Index of the first block that begins after p. */
static size_t above(uintptr_t p)
{
    size_t lo = 0, hi = table.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (table.v[mid].base > p)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

struct sg_mem *sg_mem_find(uintptr_t p, size_t n)
{
    size_t i = above(p);
    struct sg_mem *m;

    if (!i)
        return NULL;
    m = &table.v[i - 1];
    return p - m->base < m->size && n <= m->size - (p - m->base) ? m : NULL;
}

CUresult sg_mem_insert(const struct sg_mem *m)
{
    size_t i = above(m->base);

    if (table.n == table.cap) {
        size_t cap = table.cap ? table.cap * 2 : 64;
        struct sg_mem *v = realloc(table.v, cap * sizeof(*v));

        if (!v)
            return CUDA_ERROR_OUT_OF_MEMORY;
        table.v = v;
        table.cap = cap;
    }
    memmove(&table.v[i + 1], &table.v[i], (table.n - i) * sizeof(*table.v));
    table.v[i] = *m;
    table.v[i].serial = sg_serial();
    table.n++;
    return CUDA_SUCCESS;
}

void sg_mem_remove(struct sg_mem *m)
{
    size_t i = (size_t)(m - table.v);

    table.n--;
    memmove(&table.v[i], &table.v[i + 1], (table.n - i) * sizeof(*table.v));
}

void sg_mem_each(void (*f)(struct sg_mem *m, void *arg), void *arg)
{
    for (size_t i = 0; i < table.n; i++)
        f(&table.v[i], arg);
}

bool sg_mem_touches(uintptr_t p, size_t n)
{
    size_t i = above(p);

    return (i && p - table.v[i - 1].base < table.v[i - 1].mapped) || (i < table.n && table.v[i].base - p < n);
}

/* A range may go over several mappings, as long as each may be accessed; else
 * it lies in one block. */
bool sg_mem_ours(CUdeviceptr p, size_t n)
{
    uintptr_t at = (uintptr_t)p;
    bool r;

    sg_lock();
    for (;;) {
        struct sg_mem *m = sg_mem_find(at, 1);
        size_t left;

        r = m && (m->kind != SG_MEM_MAPPED || m->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        if (!r)
            break;
        left = m->size - (at - m->base);
        if (n <= left)
            break;
        if (m->kind != SG_MEM_MAPPED) {
            r = false;
            break;
        }
        at += left;
        n -= left;
    }
    sg_unlock();
    return r;
}

bool sg_mem_host(const void *p, size_t n)
{
    size_t i;
    bool r = true;

    if (!n)
        return true;
    if ((uintptr_t)p < SG_PAGE || (uintptr_t)p + n < (uintptr_t)p)
        return false;
    sg_lock();
    i = above((uintptr_t)p);
    if (i) {
        struct sg_mem *m = &table.v[i - 1];
        uintptr_t at = (uintptr_t)p - m->base;

        /* Into the padding of a block, or from a block into what follows it. */
        if (at < m->mapped && m->kind != SG_MEM_REGISTERED && m->kind != SG_MEM_MAPPED)
            r = at < m->size && n <= m->size - at;
    }
    sg_unlock();
    return r;
}

/* A program may well clear all of a GPU larger than the host's memory: pages that
 * are given back read as zeros and take no memory until something is written. */
bool sg_mem_zero_pages(char *p, size_t n)
{
    struct sg_mem *m;
    bool shared = false, ours;

    sg_lock();
    m = sg_mem_find((uintptr_t)p, n);
    ours = m && m->kind != SG_MEM_HOST && m->kind != SG_MEM_REGISTERED && m->kind != SG_MEM_MODULE;
    if (ours)
        shared = m->physical || (m->block && m->block->shared);
    sg_unlock();
    return ours && madvise(p, n, shared ? MADV_REMOVE : MADV_DONTNEED) == 0;
}

/* ---- allocating and freeing ------------------------------------------------------ */

/* A part of a block that other small allocations lie in, too. The lock is held. */
static bool take_part(struct sg_mem *m, CUcontext ctx, unsigned use)
{
    for (struct sg_block *b = small; b; b = b->next) {
        if (b->ctx != ctx || b->use != use || b->size - b->live < m->mapped)
            continue;
        m->base = sg_block_take(b, m->mapped);
        m->block = b;
        if (m->base)
            return true;
    }
    return false;
}

/* Gives back what m had; a block that is empty now is returned for the caller to
 * free, which needs no lock. The lock is held. */
static struct sg_block *put(const struct sg_mem *m)
{
    struct sg_block *b = m->block, **at;

    sg_block_give(b, m->base, m->mapped);
    if (b->live)
        return NULL;
    for (at = &small; *at && *at != b; at = &(*at)->next)
        ;
    if (*at)
        *at = b->next;
    return b;
}

CUresult sg_mem_alloc(size_t bytes, enum sg_kind kind, bool low, unsigned flags, CUcontext ctx, CUdeviceptr *ret)
{
    struct sg_mem m = {.size = bytes, .dev = ctx->dev, .ctx = ctx, .kind = kind, .flags = flags};
    unsigned use = kind == SG_MEM_ARRAY ? SG_USE_ARRAY : kind == SG_MEM_MANAGED ? SG_USE_MANAGED : SG_USE_LINEAR;
    size_t unit = sg_rules(ctx->dev)->block_bytes;
    bool part = unit && bytes < unit && !low && kind != SG_MEM_MANAGED, found = false;
    struct sg_block *b = NULL;
    CUresult r;

    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (part) {
        m.mapped = sg_round(bytes, SG_ALLOC_UNIT);
        sg_lock();
        found = take_part(&m, ctx, use);
    }
    if (!found) {
        if (part)
            sg_unlock();
        r = sg_block_new(ctx->dev, ctx, part ? unit : bytes, use, low, &b);
        if (r != CUDA_SUCCESS)
            return r;
        sg_lock();
        if (part) {
            b->next = small;
            small = b;
        } else {
            m.mapped = b->size;
        }
        m.block = b;
        m.base = sg_block_take(b, m.mapped);
    }
    b = NULL;
    r = m.base ? sg_mem_insert(&m) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS && m.base)
        b = put(&m);
    sg_unlock();
    if (b)
        sg_block_free(b);
    if (r == CUDA_SUCCESS)
        *ret = m.base;
    return r;
}

/* Frees what is behind an allocation that is out of the table. The lock is held;
 * what can be done without it is returned. */
static struct sg_block *release(struct sg_mem *m, CUstream s)
{
    if (m->kind == SG_MEM_POOL) {
        sg_pool_mem_free(m, s);
        return NULL;
    }
    if (m->managed)
        sg_managed_free(m->managed);
    return m->block ? put(m) : NULL;
}

static CUresult free_of(CUdeviceptr p, bool (*fits)(enum sg_kind, enum sg_kind), enum sg_kind kind, bool wait)
{
    struct sg_mem *m, copy;
    struct sg_block *b;

    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->kind == SG_MEM_GRAPH) {
        sg_unlock();
        return sg_graph_mem_free(p, wait);
    }
    if (!m || m->base != p || !fits(m->kind, kind)) {
        sg_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    copy = *m;
    sg_unlock();
    if (wait && copy.ctx && copy.ctx->alive)
        sg_ctx_wait(copy.ctx);
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (!m || m->serial != copy.serial) {
        sg_unlock();
        return CUDA_ERROR_INVALID_VALUE; /* another thread freed it meanwhile */
    }
    copy = *m;
    sg_mem_remove(m);
    b = release(&copy, NULL);
    sg_unlock();
    if (b)
        sg_block_free(b);
    return CUDA_SUCCESS;
}

static bool same(enum sg_kind a, enum sg_kind b)
{
    return a == b;
}

CUresult sg_mem_free(CUdeviceptr p, enum sg_kind kind, bool wait)
{
    return free_of(p, same, kind, wait);
}

void sg_mem_adopt(CUcontext from, CUcontext to)
{
    for (size_t i = 0; i < table.n; i++) {
        if (table.v[i].ctx == from)
            table.v[i].ctx = to;
    }
}

/* Frees what belongs to a context that ends. The lock is held. */
void sg_mem_free_context(CUcontext ctx)
{
    for (size_t i = table.n; i-- > 0;) {
        struct sg_mem copy = table.v[i];
        struct sg_block *b;

        /* Pool memory and physical memory belong to the device. */
        if (copy.ctx != ctx || copy.kind == SG_MEM_POOL || copy.kind == SG_MEM_MAPPED || copy.kind == SG_MEM_IMPORTED ||
            copy.kind == SG_MEM_GRAPH || copy.kind == SG_MEM_MODULE)
            continue;
        sg_mem_remove(&table.v[i]);
        if (copy.kind == SG_MEM_HOST)
            munmap((void *)copy.base, copy.mapped);
        b = release(&copy, NULL);
        if (b)
            sg_block_free(b);
    }
}

/* ---- the calls --------------------------------------------------------------- */

static CUresult alloc(CUdeviceptr *p, size_t n, enum sg_kind kind, bool low, unsigned flags)
{
    CUresult r;

    SG_ENTER_CTX(c);
    if (!p || !n)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_capture_forbids(c);
    if (r != CUDA_SUCCESS)
        return r;
    if (kind == SG_MEM_MANAGED)
        return sg_managed_alloc(n, flags, c, p);
    return sg_mem_alloc(n, kind, low, flags, c, p);
}

SG_API CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n)
{
    return alloc(p, n, SG_MEM_DEVICE, false, 0);
}

SG_API CUresult cuMemAlloc(CUdeviceptr_v1 *p, unsigned int n)
{
    CUdeviceptr q;
    CUresult r = p ? alloc(&q, n, SG_MEM_DEVICE, true, 0) : CUDA_ERROR_INVALID_VALUE;

    if (r == CUDA_SUCCESS)
        *p = (CUdeviceptr_v1)q;
    return r;
}

#define PITCH 512u

SG_API CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    size_t row, n;
    CUresult r;

    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16) || width > SIZE_MAX - PITCH)
        return sg_ready() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    row = sg_round(width, PITCH);
    if (__builtin_mul_overflow(row, height, &n))
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = alloc(p, n, SG_MEM_DEVICE, false, 0);
    if (r == CUDA_SUCCESS)
        *pitch = row;
    return r;
}

SG_API CUresult cuMemAllocPitch(CUdeviceptr_v1 *p, unsigned int *pitch, unsigned int width, unsigned int height,
                                unsigned int element)
{
    size_t row = sg_round(width, PITCH);
    CUdeviceptr q;
    CUresult r;

    if (!p || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return sg_ready() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    r = alloc(&q, row * height, SG_MEM_DEVICE, true, 0);
    if (r == CUDA_SUCCESS) {
        *p = (CUdeviceptr_v1)q;
        *pitch = (unsigned int)row;
    }
    return r;
}

SG_API CUresult cuMemAllocManaged(CUdeviceptr *p, size_t n, unsigned int flags)
{
    if (sg_ready() && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return alloc(p, n, SG_MEM_MANAGED, false, flags);
}

/* What cuMemFree takes: also what a pool gave, and the buffers of external memory. */
static bool freeable(enum sg_kind kind, enum sg_kind any SG_UNUSED)
{
    return kind == SG_MEM_DEVICE || kind == SG_MEM_MANAGED || kind == SG_MEM_POOL || kind == SG_MEM_EXTERNAL ||
           kind == SG_MEM_IMPORTED;
}

SG_API CUresult cuMemFree_v2(CUdeviceptr p)
{
    CUresult r;

    SG_ENTER_CTX(c);
    if (!p)
        return CUDA_SUCCESS;
    r = sg_capture_forbids(c);
    if (r == CUDA_SUCCESS)
        r = free_of(p, freeable, SG_MEM_DEVICE, true);
    if (r == CUDA_SUCCESS)
        sg_pool_sync();
    return r;
}

SG_API CUresult cuMemFree(CUdeviceptr_v1 p)
{
    return cuMemFree_v2(p);
}

SG_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct sg_request req = {.op = SG_OP_MEM_INFO};
    struct sg_reply rep;
    CUresult r;

    SG_ENTER_CTX(c);
    if (!free_bytes || !total)
        return CUDA_ERROR_INVALID_VALUE;
    req.gpu = sg_state.dev[c->dev].index;
    r = sg_call(&req, NULL, &rep, NULL, 0, NULL);
    if (r == CUDA_SUCCESS) {
        *free_bytes = rep.a;
        *total = rep.b;
    }
    return r;
}

SG_API CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
    size_t f, t;
    CUresult r;

    if (sg_ready() && (!free_bytes || !total))
        return CUDA_ERROR_INVALID_VALUE;
    r = cuMemGetInfo_v2(&f, &t);
    if (r == CUDA_SUCCESS) {
        *free_bytes = f > UINT32_MAX ? UINT32_MAX : (unsigned int)f;
        *total = t > UINT32_MAX ? UINT32_MAX : (unsigned int)t;
    }
    return r;
}

SG_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
    struct sg_mem *m;

    SG_ENTER_CTX(c);
    (void)c;
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m) {
        if (base)
            *base = m->base;
        if (size)
            *size = m->size;
    }
    sg_unlock();
    return m ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SG_API CUresult cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *size, CUdeviceptr_v1 p)
{
    CUdeviceptr b = 0;
    size_t n = 0;
    CUresult r = cuMemGetAddressRange_v2(&b, &n, p);

    if (r == CUDA_SUCCESS && base)
        *base = (CUdeviceptr_v1)b;
    if (r == CUDA_SUCCESS && size)
        *size = (unsigned int)n;
    return r;
}
