// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * copy.c: copies. Every form becomes a three-dimensional copy, is checked
 * against the table of blocks and done with the processor. Bytes move when the
 * call is made: kernels do nothing, so only host functions could tell the
 * difference, and while one is queued a copy waits its turn behind it. On a card
 * whose copies take time, an entry in the ring then occupies a copy engine.
 */
#include <sys/mman.h>

#include "sg.h"

struct side {
    uintptr_t base;
    size_t pitch, height;
    bool host;
};

/* Whether n from at on lie in an array's dimension, of which 0 means 1. */
static bool within(size_t at, size_t n, size_t of)
{
    of = of ? of : 1;
    return at <= of && n <= of - at;
}

/* Resolves one side of a copy; *ret_end is the offset of its end. */
static CUresult resolve(const CUDA_MEMCPY3D *c, bool dst, struct side *s, size_t *ret_end)
{
    CUmemorytype type = dst ? c->dstMemoryType : c->srcMemoryType;
    CUarray a = dst ? c->dstArray : c->srcArray;
    size_t x = dst ? c->dstXInBytes : c->srcXInBytes, y = dst ? c->dstY : c->srcY, z = dst ? c->dstZ : c->srcZ;
    size_t end, rows, t;

    s->pitch = dst ? c->dstPitch : c->srcPitch;
    s->height = dst ? c->dstHeight : c->srcHeight;
    s->host = type == CU_MEMORYTYPE_HOST;
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        s->base = dst ? (uintptr_t)c->dstHost : (uintptr_t)c->srcHost;
        break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        s->base = (uintptr_t)(dst ? c->dstDevice : c->srcDevice);
        break;
    case CU_MEMORYTYPE_ARRAY:
        if (!sg_is(a, SG_ARRAY))
            return CUDA_ERROR_INVALID_HANDLE;
        s->base = (uintptr_t)a->base;
        s->pitch = a->pitch;
        s->height = a->height;
        /* Within its elements: rows and slices are padded. */
        if (!a->base || x > a->row || c->WidthInBytes > a->row - x || !within(y, c->Height, a->desc.Height) ||
            !within(z, c->Depth, a->desc.Depth))
            return CUDA_ERROR_INVALID_VALUE;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!s->pitch)
        s->pitch = x + c->WidthInBytes;
    if (!s->height)
        s->height = y + c->Height;
    if (c->Height > 1 && s->pitch < c->WidthInBytes)
        return CUDA_ERROR_INVALID_VALUE;
    /* end = ((z + depth - 1) * height + y + rows - 1) * pitch + x + width */
    if (__builtin_add_overflow(z, c->Depth - 1, &rows) || __builtin_mul_overflow(rows, s->height, &rows) ||
        __builtin_add_overflow(rows, y, &rows) || __builtin_add_overflow(rows, c->Height - 1, &rows) ||
        __builtin_mul_overflow(rows, s->pitch, &t) || __builtin_add_overflow(t, x, &t) ||
        __builtin_add_overflow(t, c->WidthInBytes, &end))
        return CUDA_ERROR_INVALID_VALUE;
    *ret_end = end;
    return CUDA_SUCCESS;
}

/* Whether something is mapped everywhere in a range. */
static bool mapped(uintptr_t p, size_t n)
{
    uintptr_t end = (p + n + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    unsigned char pages[256];

    for (p = p / SG_PAGE * SG_PAGE; p < end;) {
        size_t part = end - p < sizeof(pages) * SG_PAGE ? end - p : sizeof(pages) * SG_PAGE;

        if (mincore((void *)p, part, pages) != 0)
            return false;
        p += part;
    }
    return true;
}

static CUresult check_side(const CUDA_MEMCPY3D *c, bool dst)
{
    CUmemorytype type = dst ? c->dstMemoryType : c->srcMemoryType;
    struct side s;
    size_t end;
    CUresult r = resolve(c, dst, &s, &end);

    if (r != CUDA_SUCCESS)
        return r;
    if (type == CU_MEMORYTYPE_HOST)
        return sg_mem_host((void *)s.base, end) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (sg_mem_ours(s.base, end))
        return CUDA_SUCCESS;
    /* A unified address that is nobody's block is pageable host memory, if any. */
    if (type == CU_MEMORYTYPE_UNIFIED && !sg_mem_ours(s.base, 1) && sg_mem_host((void *)s.base, end) &&
        mapped(s.base, end))
        return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_copy_check(const CUDA_MEMCPY3D *c)
{
    CUresult r;

    if (!c->WidthInBytes || !c->Height || !c->Depth)
        return CUDA_SUCCESS;
    r = check_side(c, true);
    return r == CUDA_SUCCESS ? check_side(c, false) : r;
}

/* The GPU writes managed memory where it goes. */
static void touch(const CUDA_MEMCPY3D *c, const struct side *d)
{
    size_t end;
    struct side s;

    if (!d->host && resolve(c, true, &s, &end) == CUDA_SUCCESS)
        sg_managed_touch(d->base, end, sg_current() ? sg_current()->dev : 0);
}

void sg_copy_do(const CUDA_MEMCPY3D *c)
{
    struct side d, s;
    size_t end;

    if (!c->WidthInBytes || !c->Height || !c->Depth || resolve(c, true, &d, &end) || resolve(c, false, &s, &end))
        return;
    touch(c, &d);
    sg_bytes_use();
    for (size_t z = 0; z < c->Depth; z++) {
        for (size_t y = 0; y < c->Height; y++) {
            char *to = (char *)d.base + ((c->dstZ + z) * d.height + c->dstY + y) * d.pitch + c->dstXInBytes;
            char *from = (char *)s.base + ((c->srcZ + z) * s.height + c->srcY + y) * s.pitch + c->srcXInBytes;

            memmove(to, from, c->WidthInBytes);
        }
    }
    sg_bytes_done();
}

/* ---- time ---------------------------------------------------------------------- */

/* Copies of at most this from pageable memory return when they are staged. */
#define STAGED ((size_t)64 << 10)

enum place { PAGEABLE, PINNED, ON_DEVICE };

/* Where one side lies; the lock is held. */
static enum place place_of(const CUDA_MEMCPY3D *c, bool dst, CUdevice *dev)
{
    CUmemorytype type = dst ? c->dstMemoryType : c->srcMemoryType;
    CUarray a = dst ? c->dstArray : c->srcArray;
    uintptr_t p = type == CU_MEMORYTYPE_HOST ? (uintptr_t)(dst ? c->dstHost : c->srcHost)
                                             : (uintptr_t)(dst ? c->dstDevice : c->srcDevice);
    const struct sg_mem *m = sg_mem_find(type == CU_MEMORYTYPE_ARRAY ? (uintptr_t)a->base : p, 1);

    if (!m)
        return PAGEABLE;
    if (m->kind == SG_MEM_HOST || m->kind == SG_MEM_REGISTERED)
        return PINNED;
    *dev = m->dev;
    return ON_DEVICE;
}

struct sg_copy_way sg_copy_way(const CUDA_MEMCPY3D *c)
{
    struct sg_copy_way w = {.bytes = c->WidthInBytes * c->Height * c->Depth};
    CUdevice from = 0, to = 0;
    enum place s, d;

    sg_lock();
    s = place_of(c, false, &from);
    d = place_of(c, true, &to);
    sg_unlock();
    if (s == ON_DEVICE && d == ON_DEVICE)
        w.arg = from == to ? SG_COPY_DTOD : SG_COPY_PEER;
    else if (s == ON_DEVICE)
        w.arg = SG_COPY_DTOH;
    else if (d == ON_DEVICE)
        w.arg = SG_COPY_HTOD;
    else
        w.arg = SG_COPY_HOST;
    if (s != PAGEABLE && d != PAGEABLE)
        w.arg |= SG_COPY_PINNED;
    return w;
}

bool sg_timed_copies(CUstream s)
{
    return sg_state.dev[s->ctx->dev].info->timed_copies != 0;
}

CUresult sg_copy_submit(CUstream s, const CUDA_MEMCPY3D *c)
{
    struct sg_copy_way w;

    if (!sg_timed_copies(s) || !c->WidthInBytes || !c->Height || !c->Depth)
        return CUDA_SUCCESS;
    w = sg_copy_way(c);
    return sg_submit(s, SG_ENTRY_COPY, w.arg, w.bytes, NULL);
}

/* Whether a call that makes such a copy comes back only when it is complete.
 * After the driver's documentation of API synchronisation. */
static bool waits(const struct sg_copy_way *w, bool sync)
{
    bool pinned = w->arg & SG_COPY_PINNED;

    switch (w->arg & SG_COPY_WAY) {
    case SG_COPY_HTOD:
        return pinned ? sync : w->bytes > STAGED;
    case SG_COPY_DTOH:
        return sync || !pinned;
    case SG_COPY_HOST:
        return sync;
    default: /* within devices: never waits for them */
        return false;
    }
}

static void deferred(void *arg)
{
    if (sg_copy_check(arg) == CUDA_SUCCESS) /* memory may be gone meanwhile */
        sg_copy_do(arg);
    free(arg);
}

/* Bytes move when the call is made, or behind the host functions that are
 * queued: nothing else in a stream could change or see them. */
CUresult sg_copy_move(CUstream s, const CUDA_MEMCPY3D *c)
{
    CUDA_MEMCPY3D *later;
    CUresult r;

    if (!sg_host_unfinished()) {
        sg_copy_do(c);
        return CUDA_SUCCESS;
    }
    later = malloc(sizeof(*later));
    if (!later)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *later = *c;
    r = sg_host_function(s, deferred, later, NULL);
    if (r != CUDA_SUCCESS)
        free(later);
    return r;
}

/* On a card whose copies take time. */
static CUresult timed(CUstream s, const CUDA_MEMCPY3D *c, bool sync)
{
    struct sg_copy_way w;
    CUresult r = CUDA_SUCCESS;

    if (!c->WidthInBytes || !c->Height || !c->Depth)
        return sync ? sg_stream_drain(s) : r;
    w = sg_copy_way(c);
    /* What comes from pageable memory, or from the processor, is read now. */
    if (sync && !(w.arg & SG_COPY_PINNED))
        r = sg_stream_drain(s);
    if (r == CUDA_SUCCESS)
        r = sg_copy_move(s, c);
    if (r == CUDA_SUCCESS)
        r = sg_submit(s, SG_ENTRY_COPY, w.arg, w.bytes, NULL);
    return r == CUDA_SUCCESS && waits(&w, sync) ? sg_stream_drain(s) : r;
}

CUresult sg_copy_sync(const CUDA_MEMCPY3D *c, bool per_thread)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_for_sync(per_thread, &s);
    if (r == CUDA_SUCCESS)
        r = sg_copy_check(c);
    if (r == CUDA_SUCCESS && sg_timed_copies(s))
        return timed(s, c, true);
    if (r == CUDA_SUCCESS)
        r = sg_stream_drain(s);
    if (r == CUDA_SUCCESS)
        sg_copy_do(c);
    return r;
}

CUresult sg_copy_async(const CUDA_MEMCPY3D *c, CUstream h, bool per_thread)
{
    union sg_node_params p = {.memcpy = *c};
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, per_thread, &s);
    if (r == CUDA_SUCCESS)
        r = sg_copy_check(c);
    if (r == CUDA_SUCCESS)
        r = sg_capturing(s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_add(s, CU_GRAPH_NODE_TYPE_MEMCPY, &p);
    return sg_timed_copies(s) ? timed(s, c, false) : sg_copy_move(s, c);
}

/* ---- one dimension ------------------------------------------------------------ */

static CUDA_MEMCPY3D line(CUmemorytype dt, uintptr_t dst, CUmemorytype st, uintptr_t src, size_t n)
{
    CUDA_MEMCPY3D c = {
        .dstMemoryType = dt, .srcMemoryType = st, .WidthInBytes = n, .Height = 1, .Depth = 1};

    if (dt == CU_MEMORYTYPE_HOST)
        c.dstHost = (void *)dst;
    else
        c.dstDevice = dst;
    if (st == CU_MEMORYTYPE_HOST)
        c.srcHost = (void *)src;
    else
        c.srcDevice = src;
    return c;
}

#define H CU_MEMORYTYPE_HOST
#define D CU_MEMORYTYPE_DEVICE
#define U CU_MEMORYTYPE_UNIFIED

static CUresult line_sync(CUmemorytype dt, uintptr_t dst, CUmemorytype st, uintptr_t src, size_t n, bool pt)
{
    CUDA_MEMCPY3D c = line(dt, dst, st, src, n);

    return sg_copy_sync(&c, pt);
}

static CUresult line_async(CUmemorytype dt, uintptr_t dst, CUmemorytype st, uintptr_t src, size_t n, CUstream s,
                           bool pt)
{
    CUDA_MEMCPY3D c = line(dt, dst, st, src, n);

    return sg_copy_async(&c, s, pt);
}

/* name, as in the interface; the types of its arguments; the two sides. */
#define SYNC(name, dtype, stype, ntype, d, s, pt)           \
    SG_API CUresult name(dtype dst, stype src, ntype n)     \
    {                                                       \
        return line_sync(d, (uintptr_t)dst, s, (uintptr_t)src, n, pt); \
    }
#define ASYNC(name, dtype, stype, ntype, d, s, pt)                       \
    SG_API CUresult name(dtype dst, stype src, ntype n, CUstream stream) \
    {                                                                    \
        return line_async(d, (uintptr_t)dst, s, (uintptr_t)src, n, stream, pt); \
    }
#define ALL(name, dtype, stype, d, s, v1d, v1s)                                                   \
    SYNC(cuMemcpy##name, v1d, v1s, unsigned int, d, s, false)                                     \
    SYNC(cuMemcpy##name##_v2, dtype, stype, size_t, d, s, false)                                  \
    SYNC(cuMemcpy##name##_v2_ptds, dtype, stype, size_t, d, s, true)                              \
    ASYNC(cuMemcpy##name##Async, v1d, v1s, unsigned int, d, s, false)                             \
    ASYNC(cuMemcpy##name##Async_v2, dtype, stype, size_t, d, s, false)                            \
    ASYNC(cuMemcpy##name##Async_v2_ptsz, dtype, stype, size_t, d, s, true)

ALL(HtoD, CUdeviceptr, const void *, D, H, CUdeviceptr_v1, const void *)
ALL(DtoH, void *, CUdeviceptr, H, D, void *, CUdeviceptr_v1)
ALL(DtoD, CUdeviceptr, CUdeviceptr, D, D, CUdeviceptr_v1, CUdeviceptr_v1)
SYNC(cuMemcpy, CUdeviceptr, CUdeviceptr, size_t, U, U, false)
SYNC(cuMemcpy_ptds, CUdeviceptr, CUdeviceptr, size_t, U, U, true)
ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, size_t, U, U, false)
ASYNC(cuMemcpyAsync_ptsz, CUdeviceptr, CUdeviceptr, size_t, U, U, true)

#define PEER_SYNC(name, pt)                                                                        \
    SG_API CUresult name(CUdeviceptr dst, CUcontext dc SG_UNUSED, CUdeviceptr src, CUcontext sc SG_UNUSED, size_t n) \
    {                                                                                              \
        return line_sync(D, dst, D, src, n, pt);                                                   \
    }
#define PEER_ASYNC(name, pt)                                                                       \
    SG_API CUresult name(CUdeviceptr dst, CUcontext dc SG_UNUSED, CUdeviceptr src, CUcontext sc SG_UNUSED, size_t n, \
                         CUstream s)                                                               \
    {                                                                                              \
        return line_async(D, dst, D, src, n, s, pt);                                               \
    }
PEER_SYNC(cuMemcpyPeer, false)
PEER_SYNC(cuMemcpyPeer_ptds, true)
PEER_ASYNC(cuMemcpyPeerAsync, false)
PEER_ASYNC(cuMemcpyPeerAsync_ptsz, true)
