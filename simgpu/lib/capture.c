// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * capture.c: stream capture. A capture belongs to its origin stream; another
 * stream joins by waiting for an event that was recorded in the capture. Each
 * stream remembers the nodes that its next one will depend on.
 */
#include "sg.h"

static struct sg_capture *all; /* under the lock */
static unsigned long long next_id;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult sg_capturing(CUstream s, bool *ret)
{
    *ret = false;
    if (__builtin_expect(!s->capture, 1))
        return CUDA_SUCCESS;
    if (s->capture->status == SG_CAPTURE_INVALID)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *ret = true;
    return CUDA_SUCCESS;
}

static CUresult set_deps(CUgraphNode **to, size_t *nto, const CUgraphNode *from, size_t n)
{
    CUgraphNode *v = NULL;

    if (n) {
        v = malloc(n * sizeof(*v));
        if (!v)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(v, from, n * sizeof(*v));
    }
    free(*to);
    *to = v;
    *nto = n;
    return CUDA_SUCCESS;
}

CUresult sg_capture_add(CUstream s, CUgraphNodeType type, const union sg_node_params *p)
{
    CUgraphNode n;
    CUresult r;

    sg_lock();
    r = s->capture ? sg_node_add(s->capture->graph, type, s->deps, s->ndeps, p, &n) : CUDA_ERROR_ILLEGAL_STATE;
    if (r == CUDA_SUCCESS)
        r = set_deps(&s->deps, &s->ndeps, &n, 1);
    sg_unlock();
    return r;
}

/* Records an event inside a capture: it remembers what it is behind. */
CUresult sg_capture_event(CUstream s, CUevent e)
{
    CUresult r;

    sg_lock();
    r = set_deps(&e->deps, &e->ndeps, s->deps, s->ndeps);
    if (r == CUDA_SUCCESS)
        e->capture = s->capture;
    sg_unlock();
    return r;
}

/* A wait in which a capture takes part. *ret_captured: nothing is left to do. */
CUresult sg_capture_wait(CUstream s, CUevent e, bool *ret_captured)
{
    struct sg_capture *c;
    CUresult r = CUDA_SUCCESS;
    CUgraphNode *v;

    *ret_captured = true;
    sg_lock();
    for (c = all; c && c != e->capture; c = c->next)
        ;
    if (!c) {
        /* Recorded outside, or in a capture that has ended. */
        if (s->capture) {
            s->capture->status = SG_CAPTURE_INVALID;
            r = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        } else {
            e->capture = NULL;
            *ret_captured = false;
        }
        goto out;
    }
    if (s->capture && s->capture != c) {
        s->capture->status = c->status = SG_CAPTURE_INVALID;
        r = CUDA_ERROR_STREAM_CAPTURE_MERGE;
        goto out;
    }
    if (s->kind == SG_STREAM_LEGACY) {
        c->status = SG_CAPTURE_INVALID;
        r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        goto out;
    }
    v = malloc((s->ndeps + e->ndeps + 1) * sizeof(*v));
    if (!v) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
        goto out;
    }
    if (s->ndeps)
        memcpy(v, s->deps, s->ndeps * sizeof(*v));
    if (e->ndeps)
        memcpy(v + s->ndeps, e->deps, e->ndeps * sizeof(*v));
    free(s->deps);
    s->deps = v;
    s->ndeps += e->ndeps;
    s->capture = c;
out:
    sg_unlock();
    return r;
}

/* What would be unsafe while a capture runs that this thread must respect. */
CUresult sg_capture_forbids(CUcontext ctx)
{
    CUresult r = CUDA_SUCCESS;

    if (__builtin_expect(!__atomic_load_n(&all, __ATOMIC_ACQUIRE), 1) || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return r;
    sg_lock();
    for (struct sg_capture *c = all; c; c = c->next) {
        bool mine = pthread_equal(c->thread, pthread_self());

        if (c->origin->ctx != ctx || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        if (mine || (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
            c->status = SG_CAPTURE_INVALID;
            r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    sg_unlock();
    return r;
}

static void leave(CUstream s)
{
    free(s->deps);
    s->deps = NULL;
    s->ndeps = 0;
    s->capture = NULL;
}

static void drop(struct sg_capture *c)
{
    struct sg_capture **p;

    for (p = &all; *p && *p != c; p = &(*p)->next)
        ;
    if (*p)
        __atomic_store_n(p, c->next, __ATOMIC_RELEASE);
    for (CUstream s = c->origin->ctx->streams; s; s = s->next) {
        if (s->capture == c)
            leave(s);
    }
    free(c);
}

/* A stream ends while it captures; the caller may or may not hold the lock,
 * as both happen, so nothing is locked here. */
void sg_capture_drop_stream(CUstream s)
{
    struct sg_capture *c = s->capture;

    if (!c)
        return;
    c->status = SG_CAPTURE_INVALID;
    if (c->origin == s) {
        sg_graph_free(c->graph);
        drop(c);
    } else {
        leave(s);
    }
}

static CUresult begin(CUstream h, CUgraph into, const CUgraphNode *deps, size_t ndeps, CUstreamCaptureMode mode,
                      bool pt)
{
    struct sg_capture *c;
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
    if (s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    c = calloc(1, sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->graph = into ? into : sg_graph_new();
    if (!c->graph) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->origin = s;
    c->mode = mode;
    c->thread = pthread_self();
    c->status = SG_CAPTURE_ACTIVE;
    sg_lock();
    c->id = ++next_id;
    c->next = all;
    r = set_deps(&s->deps, &s->ndeps, deps, ndeps);
    if (r == CUDA_SUCCESS) {
        s->capture = c;
        __atomic_store_n(&all, c, __ATOMIC_RELEASE);
    }
    sg_unlock();
    if (r != CUDA_SUCCESS) {
        if (!into)
            sg_graph_free(c->graph);
        free(c);
    }
    return r;
}

#define BEGIN(name, pt)                                              \
    SG_API CUresult name(CUstream s, CUstreamCaptureMode mode)       \
    {                                                                \
        return begin(s, NULL, NULL, 0, mode, pt);                    \
    }
BEGIN(cuStreamBeginCapture_v2, false)
BEGIN(cuStreamBeginCapture_v2_ptsz, true)

SG_API CUresult cuStreamBeginCapture(CUstream s)
{
    return begin(s, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL, false);
}

SG_API CUresult cuStreamBeginCapture_ptsz(CUstream s)
{
    return begin(s, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL, true);
}

#define BEGIN_TO(name, pt)                                                                                  \
    SG_API CUresult name(CUstream s, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *d SG_UNUSED, \
                         size_t n, CUstreamCaptureMode mode)                                                \
    {                                                                                                       \
        if (!sg_is(g, SG_GRAPH) || (n && !deps))                                                     \
            return CUDA_ERROR_INVALID_VALUE;                                                                \
        return begin(s, g, deps, n, mode, pt);                                                              \
    }
BEGIN_TO(cuStreamBeginCaptureToGraph, false)
BEGIN_TO(cuStreamBeginCaptureToGraph_ptsz, true)

static CUresult end(CUstream h, CUgraph *pg, bool pt)
{
    struct sg_capture *c;
    CUresult r;
    CUstream s;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (!pg)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    c = s->capture;
    if (!c) {
        r = CUDA_ERROR_ILLEGAL_STATE;
    } else if (c->origin != s) {
        c->status = SG_CAPTURE_INVALID;
        r = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    } else if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->thread, pthread_self())) {
        r = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    } else {
        if (c->status == SG_CAPTURE_INVALID)
            r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        for (CUstream o = s->ctx->streams; o && r == CUDA_SUCCESS; o = o->next) {
            for (size_t i = 0; o != s && o->capture == c && i < o->ndeps; i++) {
                if (!sg_graph_reaches(s->deps, s->ndeps, o->deps[i]))
                    r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
            }
        }
        if (r == CUDA_SUCCESS) {
            *pg = c->graph;
        } else {
            sg_graph_free(c->graph);
            *pg = NULL;
        }
        drop(c);
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuStreamEndCapture(CUstream s, CUgraph *pg)
{
    return end(s, pg, false);
}

SG_API CUresult cuStreamEndCapture_ptsz(CUstream s, CUgraph *pg)
{
    return end(s, pg, true);
}

static CUresult info(CUstream h, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *g, const CUgraphNode **deps,
                     const CUgraphEdgeData **edges, size_t *ndeps, bool pt)
{
    CUresult r;
    CUstream s;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    *status = s->capture ? (CUstreamCaptureStatus)s->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
    if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        if (id)
            *id = s->capture->id;
        if (g)
            *g = s->capture->graph;
        if (deps)
            *deps = s->deps;
        if (edges)
            *edges = NULL;
        if (ndeps)
            *ndeps = s->ndeps;
    }
    sg_unlock();
    return CUDA_SUCCESS;
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

static CUresult update(CUstream h, const CUgraphNode *deps, size_t n, unsigned flags, bool pt)
{
    CUresult r;
    CUstream s;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (flags > 1 || (n && !deps))
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    if (!s->capture) {
        r = CUDA_ERROR_ILLEGAL_STATE;
    } else {
        size_t old = flags ? 0 : s->ndeps; /* 1: set; 0: add */
        CUgraphNode *v = malloc((old + n + 1) * sizeof(*v));

        if (!v) {
            r = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            if (old)
                memcpy(v, s->deps, old * sizeof(*v));
            if (n)
                memcpy(v + old, deps, n * sizeof(*v));
            free(s->deps);
            s->deps = v;
            s->ndeps = old + n;
        }
    }
    sg_unlock();
    return r;
}

#define UPDATE(suffix, pt)                                                                                         \
    SG_API CUresult cuStreamUpdateCaptureDependencies##suffix(CUstream s, CUgraphNode *d, size_t n, unsigned int f) \
    {                                                                                                              \
        return update(s, d, n, f, pt);                                                                             \
    }                                                                                                              \
    SG_API CUresult cuStreamUpdateCaptureDependencies_v2##suffix(                                                  \
        CUstream s, CUgraphNode *d, const CUgraphEdgeData *e SG_UNUSED, size_t n, unsigned int f)                  \
    {                                                                                                              \
        return update(s, d, n, f, pt);                                                                             \
    }
UPDATE(, false)
UPDATE(_ptsz, true)

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
