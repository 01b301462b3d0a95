// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * capture.c: what a stream capture is. It belongs to its origin stream; another
 * stream, of any context, joins by waiting for an event that was recorded in
 * the capture. Each stream remembers the nodes that its next one will depend
 * on. Whatever a capture does not allow spoils it; capturecalls.c ends it.
 */
#include "sg.h"

struct sg_capture *sg_captures;
static struct sg_capture *orphans; /* whose origin was destroyed: freed later, without the lock */
static unsigned long long next_id;

static CUresult merge(CUgraphNode **to, CUgraphEdgeData **eto, size_t *nto, const CUgraphNode *from,
                      const CUgraphEdgeData *efrom, size_t n)
{
    CUgraphNode *v = malloc((*nto + n + 1) * sizeof(*v));
    CUgraphEdgeData *e = calloc(*nto + n + 1, sizeof(*e));
    size_t have = *nto;

    if (!v || !e) {
        free(v);
        free(e);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (have) {
        memcpy(v, *to, have * sizeof(*v));
        memcpy(e, *eto, have * sizeof(*e));
    }
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;

        while (k < have && v[k] != from[i])
            k++;
        v[k] = from[i];
        if (k == have) {
            have++;
            if (efrom)
                e[k] = efrom[i];
        }
    }
    free(*to);
    free(*eto);
    *to = v;
    *eto = e;
    *nto = have;
    return CUDA_SUCCESS;
}

static void forget(CUgraphNode **v, CUgraphEdgeData **e, size_t *n)
{
    free(*v);
    free(*e);
    *v = NULL;
    *e = NULL;
    *n = 0;
}

/* Replaces, or adds to, what the next node of s depends on. The lock is held. */
CUresult sg_capture_deps(CUstream s, const CUgraphNode *v, const CUgraphEdgeData *e, size_t n, bool replace)
{
    if (replace)
        forget(&s->deps, &s->edges, &s->ndeps);
    return merge(&s->deps, &s->edges, &s->ndeps, v, e, n);
}

static CUresult join(struct sg_capture *c, CUstream s)
{
    CUstream *v = realloc(c->members, (c->nmembers + 1) * sizeof(*v));

    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->members = v;
    v[c->nmembers++] = s;
    __atomic_store_n(&s->capture, c, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
}

static void leave(CUstream s)
{
    forget(&s->deps, &s->edges, &s->ndeps);
    s->capture = NULL;
}

/* Takes a capture off the list; its streams go on as before. The lock is held. */
static void drop(struct sg_capture *c)
{
    struct sg_capture **p;

    for (p = &sg_captures; *p && *p != c; p = &(*p)->next)
        ;
    if (*p)
        __atomic_store_n(p, c->next, __ATOMIC_RELEASE);
    for (size_t i = 0; i < c->nmembers; i++)
        leave(c->members[i]);
    c->nmembers = 0;
}

static void release(struct sg_capture *c)
{
    free(c->members);
    free(c);
}

static void reap(void)
{
    struct sg_capture *c;

    sg_lock();
    c = orphans;
    orphans = NULL;
    sg_unlock();
    while (c) {
        struct sg_capture *next = c->next;

        if (!c->given)
            sg_graph_free(c->graph);
        release(c);
        c = next;
    }
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
        drop(c);
        if (!c->given)
            c->graph->magic = SG_HIDDEN; /* no longer the program's to end */
        c->next = orphans;
        orphans = c;
        if (!c->given)
            sg_graph_hide(c->graph); /* the program may have asked for it */
        return;
    }
    for (size_t i = 0; i < c->nmembers; i++) {
        if (c->members[i] == s) {
            c->members[i] = c->members[--c->nmembers];
            break;
        }
    }
    leave(s);
}

bool sg_capture_into(CUgraph g)
{
    struct sg_capture *c;

    if (!__atomic_load_n(&sg_captures, __ATOMIC_ACQUIRE))
        return false;
    sg_lock();
    for (c = sg_captures; c && !sg_graph_holds(g, c->graph); c = c->next)
        ;
    sg_unlock();
    return c;
}

/* ---- work in a capture ---------------------------------------------------------------- */

CUresult sg_capturing(CUstream s, bool *ret)
{
    struct sg_capture *c = s->capture;

    *ret = false;
    if (__builtin_expect(!c, 1)) {
        if (__builtin_expect(s->kind == SG_STREAM_LEGACY && __atomic_load_n(&sg_captures, __ATOMIC_ACQUIRE), 0))
            return sg_capture_legacy(s->ctx, true);
        return CUDA_SUCCESS;
    }
    if (c->status == SG_CAPTURE_INVALID)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *ret = true;
    return CUDA_SUCCESS;
}

CUresult sg_capture_spoil(CUstream s, CUresult code)
{
    sg_lock();
    if (s->capture)
        s->capture->status = SG_CAPTURE_INVALID;
    sg_unlock();
    return code;
}

CUresult sg_capture_legacy(CUcontext ctx, bool spoil)
{
    CUresult r = CUDA_SUCCESS;

    if (!__atomic_load_n(&sg_captures, __ATOMIC_ACQUIRE))
        return r;
    sg_lock();
    for (struct sg_capture *c = sg_captures; c; c = c->next) {
        for (size_t i = 0; i < c->nmembers; i++) {
            if (c->members[i]->ctx != ctx || c->members[i]->kind != SG_STREAM_BLOCKING)
                continue;
            r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
            if (spoil)
                c->status = SG_CAPTURE_INVALID;
        }
    }
    sg_unlock();
    return r;
}

CUresult sg_capture_add(CUstream s, CUgraphNodeType type, const union sg_node_params *p)
{
    CUgraphNode n;
    CUresult r;

    sg_lock();
    if (!s->capture)
        r = CUDA_ERROR_ILLEGAL_STATE;
    else
        r = sg_node_add(s->capture->graph, type, s->deps, s->edges, s->ndeps, p, &n);
    if (r == CUDA_SUCCESS) {
        n->ctx = s->ctx;
        r = sg_capture_deps(s, &n, NULL, 1, true);
    }
    sg_unlock();
    return r;
}

/* Records an event inside a capture: it remembers what it is behind. */
CUresult sg_capture_event(CUstream s, CUevent e)
{
    CUresult r = CUDA_ERROR_ILLEGAL_STATE;

    sg_lock();
    if (s->capture) {
        forget(&e->deps, &e->edges, &e->ndeps);
        r = merge(&e->deps, &e->edges, &e->ndeps, s->deps, s->edges, s->ndeps);
    }
    if (r == CUDA_SUCCESS) {
        e->capture = s->capture;
        e->capture_id = s->capture->id;
    }
    sg_unlock();
    return r;
}

/* The capture that e was last recorded in, if it has not ended. The lock is held. */
static struct sg_capture *capture_of(CUevent e)
{
    struct sg_capture *c;

    for (c = sg_captures; c && (c != e->capture || c->id != e->capture_id); c = c->next)
        ;
    return c;
}

CUresult sg_capture_event_used(CUevent e)
{
    struct sg_capture *c;

    if (!e->capture)
        return CUDA_SUCCESS;
    sg_lock();
    c = capture_of(e);
    if (c)
        c->status = SG_CAPTURE_INVALID;
    sg_unlock();
    return CUDA_ERROR_CAPTURED_EVENT;
}

/* A wait in which a capture takes part. *ret_captured: nothing is left to do. */
CUresult sg_capture_wait(CUstream s, CUevent e, bool *ret_captured)
{
    struct sg_capture *c;
    CUresult r = CUDA_SUCCESS;

    *ret_captured = true;
    sg_lock();
    c = capture_of(e);
    if (!c) {
        /* Recorded outside, or in a capture that has ended. */
        if (s->capture) {
            s->capture->status = SG_CAPTURE_INVALID;
            r = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        } else {
            e->capture = NULL;
            *ret_captured = false;
        }
    } else if (s->capture && s->capture != c) {
        s->capture->status = c->status = SG_CAPTURE_INVALID;
        r = CUDA_ERROR_STREAM_CAPTURE_MERGE;
    } else if (s->kind == SG_STREAM_LEGACY) {
        c->status = SG_CAPTURE_INVALID;
        r = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else if (c->status == SG_CAPTURE_INVALID) {
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else {
        if (!s->capture)
            r = join(c, s);
        if (r == CUDA_SUCCESS)
            r = sg_capture_deps(s, e->deps, e->edges, e->ndeps, false);
    }
    sg_unlock();
    return r;
}

/* ---- begin and end ---------------------------------------------------------------------- */

CUresult sg_capture_begin(CUstream s, CUgraph into, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                          size_t ndeps, CUstreamCaptureMode mode)
{
    struct sg_capture *c;
    CUresult r;

    reap();
    c = calloc(1, sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->graph = into ? into : sg_graph_new();
    if (!c->graph) {
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->given = into;
    c->origin = s;
    c->mode = mode;
    c->thread = pthread_self();
    c->status = SG_CAPTURE_ACTIVE;
    sg_lock();
    c->id = ++next_id;
    r = s->capture ? CUDA_ERROR_ILLEGAL_STATE : sg_capture_deps(s, deps, edges, ndeps, true);
    if (r == CUDA_SUCCESS)
        r = join(c, s);
    if (r == CUDA_SUCCESS) {
        c->next = sg_captures;
        __atomic_store_n(&sg_captures, c, __ATOMIC_RELEASE);
    }
    sg_unlock();
    if (r == CUDA_SUCCESS)
        return r;
    if (!into)
        sg_graph_free(c->graph);
    release(c);
    return r;
}

/* Is the work of all members behind the origin's newest nodes? The lock is held. */
static bool joined(struct sg_capture *c)
{
    CUstream s = c->origin;

    for (size_t k = 0; k < c->nmembers; k++) {
        CUstream o = c->members[k];

        for (size_t i = 0; o != s && i < o->ndeps; i++) {
            if (!sg_graph_reaches(s->deps, s->ndeps, o->deps[i]))
                return false;
        }
    }
    return true;
}

CUresult sg_capture_end(CUstream s, CUgraph *ret)
{
    struct sg_capture *c;
    CUresult r = CUDA_SUCCESS;

    reap();
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
        else if (!joined(c))
            r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        drop(c);
        sg_unlock();
        /* A destructor of the program's may run, so without the lock. */
        *ret = r == CUDA_SUCCESS ? c->graph : NULL;
        if (r != CUDA_SUCCESS && !c->given)
            sg_graph_free(c->graph);
        release(c);
        return r;
    }
    sg_unlock();
    return r;
}
