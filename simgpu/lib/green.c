// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * green.c: green contexts. One is a context like any other to programs, but
 * shares the primary context's memory and turn on the GPU: only its streams
 * know that they have fewer multiprocessors. What it leaves behind when it ends
 * is the primary context's.
 */
#include "green.h"

enum { DEFAULT_STREAM = 1 };

static CUgreenCtx all; /* under the lock */

static void forget(CUgreenCtx g)
{
    CUgreenCtx *p;

    for (p = &all; *p && *p != g; p = &(*p)->next)
        ;
    if (*p)
        *p = g->next;
    g->ctx->green = NULL;
    sg_object_free(g, sizeof(*g));
}

SG_API CUresult cuGreenCtxCreate(CUgreenCtx *pg, CUdevResourceDesc d, CUdevice dev, unsigned int flags)
{
    CUcontext primary, c;
    CUgreenCtx g;
    CUresult r;

    SG_ENTER();
    if (!pg || flags != DEFAULT_STREAM || !sg_is(d, SG_RESOURCE_DESC))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (d->dev != dev)
        return CUDA_ERROR_INVALID_VALUE;
    r = cuDevicePrimaryCtxRetain(&primary, dev);
    if (r != CUDA_SUCCESS)
        return r;
    g = sg_object_new(sizeof(*g));
    c = sg_object_new(sizeof(*c));
    if (!g || !c) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
        goto fail;
    }
    c->id = primary->id;
    c->dev = dev;
    c->api_version = primary->api_version;
    c->flags = primary->flags;
    memcpy(c->limits, primary->limits, sizeof(c->limits));
    c->sms = d->sms;
    c->green = g;
    c->alive = true;
    c->magic = SG_CTX;
    sg_lock();
    c->serial = sg_serial();
    g->id = sg_serial();
    r = sg_stream_new(c, SG_STREAM_LEGACY, 0, 0, &c->legacy);
    sg_unlock();
    if (r != CUDA_SUCCESS)
        goto fail;
    g->first = d->first;
    g->ctx = c;
    sg_lock();
    g->next = all;
    all = g;
    g->magic = SG_GREEN;
    sg_unlock();
    *pg = g;
    return CUDA_SUCCESS;
fail:
    sg_object_free(c, sizeof(*c));
    sg_object_free(g, sizeof(*g));
    cuDevicePrimaryCtxRelease_v2(dev);
    return r;
}

/* What a program made in the green context lives on in the primary one. The
 * lock is held. */
static void hand_over(CUcontext c, CUcontext primary)
{
    sg_grow_end(c);
    sg_mem_adopt(c, primary);
    sg_module_adopt(c, primary);
    while (c->streams) {
        CUstream s = c->streams;

        c->streams = s->next;
        if (s == c->legacy) {
            sg_capture_drop_stream(s);
            sg_rpc(SG_OP_STREAM_DESTROY, 0, 0, s->slot, NULL);
            sg_stream_drop(s);
            continue;
        }
        s->ctx = primary;
        s->next = primary->streams;
        primary->streams = s;
    }
    c->legacy = NULL;
}

SG_API CUresult cuGreenCtxDestroy(CUgreenCtx g)
{
    CUcontext c, primary;
    CUdevice dev;

    SG_ENTER();
    if (!sg_is(g, SG_GREEN))
        return CUDA_ERROR_INVALID_CONTEXT;
    c = g->ctx;
    dev = c->dev;
    primary = &sg_state.dev[dev].primary;
    sg_ctx_wait(c);
    sg_lock();
    c->alive = false; /* the structure stays: threads may have it current */
    hand_over(c, primary);
    forget(g);
    sg_unlock();
    return cuDevicePrimaryCtxRelease_v2(dev);
}

/* The primary context is reset: what is on it goes as well. */
void sg_green_end(CUcontext primary)
{
    for (CUgreenCtx g = all, next; g; g = next) {
        next = g->next;
        if (g->ctx->dev != primary->dev)
            continue;
        g->ctx->alive = false;
        hand_over(g->ctx, primary); /* before it ends all that it has */
        forget(g);
    }
}

SG_API CUresult cuCtxFromGreenCtx(CUcontext *pc, CUgreenCtx g)
{
    SG_ENTER();
    if (!pc)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(g, SG_GREEN))
        return CUDA_ERROR_INVALID_CONTEXT;
    *pc = g->ctx;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx, unsigned long long *); /* newer than cuda_abi.h */
SG_API CUresult cuGreenCtxGetId(CUgreenCtx g, unsigned long long *id)
{
    SG_ENTER();
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(g, SG_GREEN))
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = g->id;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGreenCtxStreamCreate(CUstream *ps, CUgreenCtx g, unsigned int flags, int priority)
{
    CUresult r;

    SG_ENTER();
    if (!ps || flags != CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(g, SG_GREEN))
        return CUDA_ERROR_INVALID_CONTEXT;
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    sg_lock();
    r = sg_stream_new(g->ctx, SG_STREAM_NONBLOCKING, flags, priority, ps);
    sg_unlock();
    return r;
}

SG_API CUresult cuStreamGetGreenCtx(CUstream s, CUgreenCtx *pg)
{
    CUresult r;

    SG_ENTER();
    if (!pg)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_of(s, false, &s);
    if (r == CUDA_SUCCESS)
        *pg = s->ctx->green;
    return r;
}

/* ---- events of a whole context ----------------------------------------------------------- */

#define STREAMS 256u

/* The streams of c, or the error if one of them captures. */
static CUresult streams_of(CUcontext c, CUstream *v, size_t *n)
{
    CUresult r = CUDA_SUCCESS;

    *n = 0;
    sg_lock();
    for (CUstream s = c->streams; s; s = s->next) {
        if (s->capture) {
            s->capture->status = SG_CAPTURE_INVALID;
            r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        if (*n < STREAMS)
            v[(*n)++] = s;
    }
    sg_unlock();
    return r;
}

static CUresult joiner_of(CUcontext c)
{
    CUresult r = CUDA_SUCCESS;

    sg_lock();
    if (!c->joiner)
        r = sg_stream_new(c, SG_STREAM_NONBLOCKING, CU_STREAM_NON_BLOCKING, 0, &c->joiner);
    sg_unlock();
    return r;
}

/* e is recorded when all that the context's streams hold now has passed: in
 * its own stream, which waits for the others. */
static CUresult record(CUcontext c, CUevent e)
{
    CUstream v[STREAMS];
    CUresult r;
    size_t n;

    if (!sg_is(e, SG_EVENT) || e->ctx->id != c->id)
        return CUDA_ERROR_INVALID_HANDLE;
    r = streams_of(c, v, &n);
    if (r == CUDA_SUCCESS)
        r = joiner_of(c);
    for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
        CUstream s = v[i];

        if (s == c->joiner || sg_done(s->slot, __atomic_load_n(&s->pushed, __ATOMIC_ACQUIRE)))
            continue;
        if (!s->joint)
            r = sg_event_new(c, CU_EVENT_DISABLE_TIMING, &s->joint);
        if (r == CUDA_SUCCESS)
            r = cuEventRecord(s->joint, s);
        if (r == CUDA_SUCCESS)
            r = cuStreamWaitEvent(c->joiner, s->joint, 0);
    }
    return r == CUDA_SUCCESS ? cuEventRecord(e, c->joiner) : r;
}

/* All that is submitted to c from now on waits for e. */
static CUresult wait(CUcontext c, CUevent e)
{
    CUstream v[STREAMS];
    CUresult r;
    size_t n;

    if (!sg_is(e, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (e->capture)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    r = streams_of(c, v, &n);
    for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++)
        r = cuStreamWaitEvent(v[i], e, 0);
    if (r == CUDA_SUCCESS && e->shared) {
        /* Its name goes with it, an ordinary one stays good. */
        CUevent own;

        r = sg_event_new(c, CU_EVENT_DISABLE_TIMING, &own);
        if (r != CUDA_SUCCESS)
            return r;
        r = joiner_of(c);
        if (r == CUDA_SUCCESS)
            r = cuStreamWaitEvent(c->joiner, e, 0);
        if (r == CUDA_SUCCESS)
            r = cuEventRecord(own, c->joiner);
        if (r == CUDA_SUCCESS) {
            c->gate_slot = own->slot;
            c->gate_generation = own->generation;
        }
        cuEventDestroy_v2(own);
    } else if (r == CUDA_SUCCESS) {
        c->gate_slot = e->slot; /* and streams that are made later */
        c->gate_generation = e->generation;
    }
    return r;
}

SG_API CUresult cuCtxRecordEvent(CUcontext c, CUevent e)
{
    SG_ENTER();
    return sg_is(c, SG_CTX) && c->alive ? record(c, e) : CUDA_ERROR_INVALID_CONTEXT;
}

SG_API CUresult cuCtxWaitEvent(CUcontext c, CUevent e)
{
    SG_ENTER();
    return sg_is(c, SG_CTX) && c->alive ? wait(c, e) : CUDA_ERROR_INVALID_CONTEXT;
}

SG_API CUresult cuGreenCtxRecordEvent(CUgreenCtx g, CUevent e)
{
    SG_ENTER();
    return sg_is(g, SG_GREEN) ? record(g->ctx, e) : CUDA_ERROR_INVALID_CONTEXT;
}

SG_API CUresult cuGreenCtxWaitEvent(CUgreenCtx g, CUevent e)
{
    SG_ENTER();
    return sg_is(g, SG_GREEN) ? wait(g->ctx, e) : CUDA_ERROR_INVALID_CONTEXT;
}
