// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* capturecalls.c: the calls of stream capture, and the modes that threads respect. */
#include "sg.h"

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* What would be unsafe while a capture runs that this thread must respect: its
 * own, unless relaxed, and in global mode another thread's global one. */
CUresult sg_capture_forbids(CUcontext ctx SG_UNUSED)
{
    CUresult r = CUDA_SUCCESS;

    if (__builtin_expect(!__atomic_load_n(&sg_captures, __ATOMIC_ACQUIRE), 1) ||
        thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return r;
    sg_lock();
    for (struct sg_capture *c = sg_captures; c; c = c->next) {
        bool mine = pthread_equal(c->thread, pthread_self());

        if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        if (mine || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
            c->status = SG_CAPTURE_INVALID;
            r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode old = thread_mode;

    SG_ENTER();
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    thread_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

/* The stream behind a handle, for a look: the legacy one is in no capture, but
 * has no state to tell while a blocking stream captures. */
static CUresult look(CUstream h, bool pt, CUstream *ret)
{
    CUresult r = sg_stream_of(h, pt, ret);

    return r == CUDA_SUCCESS && (*ret)->kind == SG_STREAM_LEGACY ? sg_capture_legacy((*ret)->ctx, false) : r;
}

static bool nodes_of(CUgraph g, const CUgraphNode *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!sg_is(v[i], SG_NODE) || v[i]->graph != g)
            return false;
    }
    return true;
}

static CUresult begin(CUstream h, CUgraph into, const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n,
                      CUstreamCaptureMode mode, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (s->kind == SG_STREAM_LEGACY)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (into && (!nodes_of(into, deps, n) || !sg_edges_valid(deps, edges, n) || sg_capture_into(into)))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_capture_begin(s, into, deps, edges, n, mode);
}

#define BEGIN(suffix, pt)                                                                                          \
    SG_API CUresult cuStreamBeginCapture##suffix(CUstream s)                                                       \
    {                                                                                                              \
        return begin(s, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL, pt);                                   \
    }                                                                                                              \
    SG_API CUresult cuStreamBeginCapture_v2##suffix(CUstream s, CUstreamCaptureMode mode)                          \
    {                                                                                                              \
        return begin(s, NULL, NULL, NULL, 0, mode, pt);                                                            \
    }                                                                                                              \
    SG_API CUresult cuStreamBeginCaptureToGraph##suffix(CUstream s, CUgraph g, const CUgraphNode *deps,            \
                                                        const CUgraphEdgeData *e, size_t n,                        \
                                                        CUstreamCaptureMode mode)                                  \
    {                                                                                                              \
        if (!sg_is(g, SG_GRAPH) || (n && !deps))                                                                   \
            return sg_ready() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;                             \
        return begin(s, g, deps, e, n, mode, pt);                                                                  \
    }                                                                                                              \
    SG_API CUresult cuStreamEndCapture##suffix(CUstream h, CUgraph *pg)                                            \
    {                                                                                                              \
        CUstream s;                                                                                                \
        CUresult r;                                                                                                \
                                                                                                                   \
        SG_ENTER();                                                                                                \
        r = sg_stream_of(h, pt, &s);                                                                               \
        if (r == CUDA_SUCCESS)                                                                                     \
            r = pg ? sg_capture_end(s, pg) : CUDA_ERROR_INVALID_VALUE;                                             \
        return r;                                                                                                  \
    }
BEGIN(, false)
BEGIN(_ptsz, true)

static CUresult info(CUstream h, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *g, const CUgraphNode **deps,
                     const CUgraphEdgeData **edges, size_t *ndeps, bool pt)
{
    CUresult r;
    CUstream s;

    SG_ENTER();
    r = look(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (!status || (edges && !deps))
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    *status = s->capture ? (CUstreamCaptureStatus)s->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
    if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        for (size_t i = 0; deps && !edges && i < s->ndeps; i++) {
            if (!sg_edge_plain(&s->edges[i]))
                r = CUDA_ERROR_LOSSY_QUERY;
        }
        if (id)
            *id = s->capture->id;
        if (g)
            *g = s->capture->graph;
        if (deps)
            *deps = s->deps;
        if (edges)
            *edges = s->edges;
        if (ndeps)
            *ndeps = s->ndeps;
    }
    sg_unlock();
    return r;
}

#define INFO(suffix, pt)                                                                                          \
    SG_API CUresult cuStreamIsCapturing##suffix(CUstream s, CUstreamCaptureStatus *st)                            \
    {                                                                                                             \
        return info(s, st, NULL, NULL, NULL, NULL, NULL, pt);                                                     \
    }                                                                                                             \
    SG_API CUresult cuStreamGetCaptureInfo##suffix(CUstream s, CUstreamCaptureStatus *st, cuuint64_t *id)         \
    {                                                                                                             \
        return info(s, st, id, NULL, NULL, NULL, NULL, pt);                                                       \
    }                                                                                                             \
    SG_API CUresult cuStreamGetCaptureInfo_v2##suffix(CUstream s, CUstreamCaptureStatus *st, cuuint64_t *id,      \
                                                      CUgraph *g, const CUgraphNode **d, size_t *n)               \
    {                                                                                                             \
        return info(s, st, id, g, d, NULL, n, pt);                                                                \
    }                                                                                                             \
    SG_API CUresult cuStreamGetCaptureInfo_v3##suffix(CUstream s, CUstreamCaptureStatus *st, cuuint64_t *id,      \
                                                      CUgraph *g, const CUgraphNode **d,                          \
                                                      const CUgraphEdgeData **e, size_t *n)                       \
    {                                                                                                             \
        return info(s, st, id, g, d, e, n, pt);                                                                   \
    }
INFO(, false)
INFO(_ptsz, true)

static CUresult update(CUstream h, const CUgraphNode *deps, const CUgraphEdgeData *e, size_t n, unsigned flags, bool pt)
{
    CUresult r;
    CUstream s;

    SG_ENTER();
    r = look(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (flags > 1 || (n && !deps) || !sg_edges_valid(deps, e, n)) /* 0: add; 1: set */
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    if (!s->capture)
        r = CUDA_ERROR_ILLEGAL_STATE;
    else if (s->capture->status == SG_CAPTURE_INVALID)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!nodes_of(s->capture->graph, deps, n))
        r = CUDA_ERROR_INVALID_VALUE;
    else
        r = sg_capture_deps(s, deps, e, n, flags);
    sg_unlock();
    return r;
}

#define UPDATE(suffix, pt)                                                                                         \
    SG_API CUresult cuStreamUpdateCaptureDependencies##suffix(CUstream s, CUgraphNode *d, size_t n, unsigned int f) \
    {                                                                                                              \
        return update(s, d, NULL, n, f, pt);                                                                       \
    }                                                                                                              \
    SG_API CUresult cuStreamUpdateCaptureDependencies_v2##suffix(                                                  \
        CUstream s, CUgraphNode *d, const CUgraphEdgeData *e, size_t n, unsigned int f)                            \
    {                                                                                                              \
        return update(s, d, e, n, f, pt);                                                                          \
    }
UPDATE(, false)
UPDATE(_ptsz, true)

/* ---- stream-ordered memory -------------------------------------------------------------- */

CUresult sg_capture_alloc(CUstream s, size_t n, CUmemoryPool pool, CUdeviceptr *p)
{
    CUDA_MEM_ALLOC_NODE_PARAMS a = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, s->ctx->dev}},
        .bytesize = n,
    };
    union sg_node_params u;
    CUresult r;

    if (pool && !sg_is(pool, SG_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    if (pool)
        a.poolProps.location.id = pool->dev;
    if (!p || !n)
        return CUDA_ERROR_INVALID_VALUE;
    memset(&u, 0, sizeof(u));
    r = sg_graph_block_new(&a, &u.alloc.block);
    if (r != CUDA_SUCCESS)
        return r;
    u.alloc.params = a;
    r = sg_capture_add(s, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &u);
    if (r == CUDA_SUCCESS)
        *p = a.dptr;
    else
        sg_graph_block_drop(u.alloc.block);
    return r;
}

CUresult sg_capture_free(CUstream s, CUdeviceptr p)
{
    union sg_node_params u;
    CUgraphNode *v;
    CUresult r;

    memset(&u, 0, sizeof(u));
    u.free = sg_graph_block_find(p);
    if (!u.free)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    v = s->capture ? s->capture->graph->nodes : NULL;
    for (size_t i = 0; v && i < s->capture->graph->n; i++) {
        if (v[i]->type == CU_GRAPH_NODE_TYPE_MEM_FREE && v[i]->p.free == u.free)
            v = NULL; /* twice */
    }
    sg_unlock();
    r = v ? sg_capture_add(s, CU_GRAPH_NODE_TYPE_MEM_FREE, &u) : CUDA_ERROR_INVALID_VALUE;
    if (r != CUDA_SUCCESS)
        sg_graph_block_drop(u.free);
    return r;
}
