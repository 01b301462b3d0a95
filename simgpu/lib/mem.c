// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * mem.c: device memory. Each block is a private mapping that takes host memory
 * only where it is touched; the host process keeps the account. A table sorted
 * by address knows every block that a program may name.
 */
#include <sys/mman.h>

#include "sg.h"

static struct {
    struct sg_mem *v;
    size_t n, cap;
} table;

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

/* Takes bytes from the GPU and maps them. low: an address of 32 bits. */
CUresult sg_mem_alloc(size_t bytes, enum sg_kind kind, bool low, unsigned flags, CUmemoryPool pool, CUcontext ctx,
                      CUdeviceptr *ret)
{
    struct sg_mem m = {.size = bytes, .dev = ctx->dev, .ctx = ctx, .kind = kind, .flags = flags, .pool = pool};
    int map = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    unsigned gpu = sg_state.dev[ctx->dev].index;
    CUresult r;
    void *p;

    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > SIZE_MAX - SG_PAGE)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m.mapped = (bytes + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    r = sg_rpc(SG_OP_ALLOC, gpu, ctx->id, bytes, &m.handle);
    if (r != CUDA_SUCCESS)
        return r;
#ifdef MAP_32BIT
    if (low)
        map |= MAP_32BIT;
#endif
    p = mmap(NULL, m.mapped, PROT_READ | PROT_WRITE, map, -1, 0);
    if (p != MAP_FAILED && low && (uintptr_t)p + m.mapped > UINT32_MAX) {
        munmap(p, m.mapped);
        p = MAP_FAILED;
    }
    if (p == MAP_FAILED) {
        sg_rpc(SG_OP_FREE, gpu, 0, m.handle, NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m.base = (uintptr_t)p;
    sg_lock();
    r = sg_mem_insert(&m);
    sg_unlock();
    if (r != CUDA_SUCCESS) {
        munmap(p, m.mapped);
        sg_rpc(SG_OP_FREE, gpu, 0, m.handle, NULL);
        return r;
    }
    *ret = m.base;
    return CUDA_SUCCESS;
}

static void unmap(const struct sg_mem *m)
{
    if (m->kind == SG_MEM_REGISTERED || m->kind == SG_MEM_MAPPED)
        return;
    munmap((void *)m->base, m->mapped);
    if (m->handle)
        sg_rpc(SG_OP_FREE, 0, 0, m->handle, NULL);
}

/* Frees a block by its first address. wait: first for the context's work. */
CUresult sg_mem_free(CUdeviceptr p, bool wait)
{
    struct sg_mem *m, copy;

    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->kind == SG_MEM_GRAPH) {
        sg_unlock();
        return sg_graph_mem_free(p, wait);
    }
    if (!m || m->base != p ||
        (m->kind != SG_MEM_DEVICE && m->kind != SG_MEM_MANAGED && m->kind != SG_MEM_POOL)) {
        sg_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    copy = *m;
    sg_unlock();
    if (wait && copy.ctx->alive)
        sg_ctx_wait(copy.ctx);
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (!m || m->serial != copy.serial) {
        sg_unlock();
        return CUDA_ERROR_INVALID_VALUE; /* another thread freed it meanwhile */
    }
    sg_mem_remove(m);
    if (copy.pool)
        copy.pool->used -= (copy.size + SG_ALLOC_UNIT - 1) / SG_ALLOC_UNIT * SG_ALLOC_UNIT;
    sg_unlock();
    unmap(&copy);
    return CUDA_SUCCESS;
}

/* Frees what belongs to a context that ends. The lock is held. */
void sg_mem_free_context(CUcontext ctx)
{
    for (size_t i = table.n; i-- > 0;) {
        struct sg_mem copy = table.v[i];

        /* Pool memory belongs to the device, registered memory to the program. */
        if (copy.ctx != ctx || copy.kind == SG_MEM_POOL || copy.kind == SG_MEM_MAPPED)
            continue;
        sg_mem_remove(&table.v[i]);
        unmap(&copy);
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
    return r == CUDA_SUCCESS ? sg_mem_alloc(n, kind, low, flags, NULL, c, p) : r;
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
    row = (width + PITCH - 1) / PITCH * PITCH;
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
    size_t row = ((size_t)width + PITCH - 1) / PITCH * PITCH;
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

SG_API CUresult cuMemFree_v2(CUdeviceptr p)
{
    CUresult r;

    SG_ENTER_CTX(c);
    if (!p)
        return CUDA_SUCCESS;
    r = sg_capture_forbids(c);
    return r == CUDA_SUCCESS ? sg_mem_free(p, true) : r;
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
