// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * event.c: events. The host writes when a record completed, in simulated time,
 * into the event's slot; a record's number tells it from the ones before.
 */
#include "sg.h"

static struct {
    uint64_t used[SG_EVENT_SLOTS / 64];
    uint64_t generation[SG_EVENT_SLOTS]; /* newest ever used: a slot is used again */
    unsigned hint;
} slots; /* under the lock */

static int take_slot(void)
{
    for (unsigned k = 0; k < SG_LEN(slots.used); k++) {
        unsigned i = (slots.hint + k) % SG_LEN(slots.used);

        if (~slots.used[i]) {
            unsigned bit = (unsigned)__builtin_ctzll(~slots.used[i]);

            slots.used[i] |= 1ull << bit;
            slots.hint = i;
            return (int)(i * 64 + bit);
        }
    }
    return -1;
}

CUresult sg_event_new(CUcontext c, unsigned flags, CUevent *ret)
{
    CUevent e = sg_object_new(sizeof(*e));
    int slot;

    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_lock();
    slot = take_slot();
    sg_unlock();
    if (slot < 0) {
        sg_object_free(e, sizeof(*e));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    e->magic = SG_EVENT;
    e->slot = (uint32_t)slot;
    e->ctx = c;
    e->flags = flags;
    *ret = e;
    return CUDA_SUCCESS;
}

SG_API CUresult cuEventCreate(CUevent *pe, unsigned int flags)
{
    CUevent e;
    CUresult r;

    SG_ENTER_CTX(c);
    if (!pe || flags & ~7u || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_event_new(c, flags, &e);
    if (r == CUDA_SUCCESS && flags & CU_EVENT_INTERPROCESS)
        r = sg_event_share(e, NULL);
    if (r == CUDA_SUCCESS)
        *pe = e;
    return r;
}

/* The lock is held. */
void sg_event_drop(CUevent e)
{
    if (e->shared) {
        sg_rpc(SG_OP_EVENT_DROP, 0, 0, e->slot, NULL);
        /* The host counted its records: the slot's next event begins beyond. */
        if (slots.generation[e->slot] < sg_event_newest(e))
            slots.generation[e->slot] = sg_event_newest(e);
    }
    slots.used[e->slot / 64] &= ~(1ull << (e->slot % 64));
    free(e->deps);
    free(e->edges);
    sg_object_free(e, sizeof(*e));
}

SG_API CUresult cuEventDestroy_v2(CUevent e)
{
    SG_ENTER();
    if (!sg_is(e, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    sg_lock();
    sg_event_drop(e);
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API CUresult cuEventDestroy(CUevent e)
{
    return cuEventDestroy_v2(e);
}

static CUresult record(CUevent e, CUstream h, unsigned flags, bool pt)
{
    bool capturing;
    CUstream s;
    uint64_t gen;
    CUresult r;

    SG_ENTER();
    if (!sg_is(e, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_of(h, pt, &s);
    if (r == CUDA_SUCCESS && s->ctx->id != e->ctx->id) /* a green context is the primary one */
        r = CUDA_ERROR_INVALID_HANDLE;
    if (r == CUDA_SUCCESS)
        r = sg_capturing(s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing) {
        union sg_node_params p = {.event = e};

        if (flags & CU_EVENT_RECORD_EXTERNAL)
            return sg_capture_add(s, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &p);
        return sg_capture_event(s, e);
    }
    if (e->shared) {
        r = sg_rpc(SG_OP_EVENT_RECORD, 0, 0, e->slot, &gen);
        if (r != CUDA_SUCCESS)
            return r;
    }
    sg_lock();
    if (!e->shared)
        gen = ++slots.generation[e->slot];
    e->capture = NULL;
    sg_unlock();
    r = sg_submit(s, SG_ENTRY_EVENT, sg_event_name(e), gen, &e->position);
    if (r == CUDA_SUCCESS) {
        e->stream = s;
        e->stream_slot = s->slot;
        e->generation = gen;
    }
    return r;
}

SG_API CUresult cuEventRecord(CUevent e, CUstream s)
{
    return record(e, s, 0, false);
}

SG_API CUresult cuEventRecord_ptsz(CUevent e, CUstream s)
{
    return record(e, s, 0, true);
}

SG_API CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned int flags)
{
    return record(e, s, flags, false);
}

SG_API CUresult cuEventRecordWithFlags_ptsz(CUevent e, CUstream s, unsigned int flags)
{
    return record(e, s, flags, true);
}

static bool reached(CUevent e, uint64_t generation)
{
    return !generation ||
           __atomic_load_n(&sg_conn.shm->event[e->slot].generation, __ATOMIC_ACQUIRE) >= generation;
}

static bool complete(CUevent e)
{
    return reached(e, sg_event_newest(e));
}

/* After the time that a question takes: may it be complete now? */
static bool asked(CUevent e)
{
    if (!e->shared)
        return sg_asked(e->stream_slot, e->position);
    if (!sg_clock_on())
        return false;
    sg_clock_asked();
    return true;
}

SG_API CUresult cuEventQuery(CUevent e)
{
    CUresult r;

    SG_ENTER();
    if (!sg_is(e, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (e->capture)
        return sg_capture_event_used(e);
    r = sg_capture_forbids(e->ctx);
    if (r != CUDA_SUCCESS)
        return r;
    if (sg_ctx_fault(e->ctx) != CUDA_SUCCESS)
        return sg_ctx_fault(e->ctx);
    return complete(e) || (asked(e) && complete(e)) ? CUDA_SUCCESS : sg_not_ready();
}

SG_API CUresult cuEventSynchronize(CUevent e)
{
    uint64_t gen;
    CUresult r;

    SG_ENTER();
    if (!sg_is(e, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (e->capture)
        return sg_capture_event_used(e);
    r = sg_capture_forbids(e->ctx);
    if (r != CUDA_SUCCESS)
        return r;
    if (sg_ctx_fault(e->ctx) != CUDA_SUCCESS)
        return sg_ctx_fault(e->ctx);
    gen = sg_event_newest(e);
    if (!reached(e, gen))
        r = e->shared ? sg_wait_event(e->slot, gen) : sg_wait(e->stream_slot, e->position);
    if (r == CUDA_SUCCESS)
        r = sg_ctx_fault(e->ctx);
    if (r == CUDA_SUCCESS)
        sg_pool_sync();
    /* Work that its context's end dropped is passed, but not recorded. */
    return r == CUDA_SUCCESS && !reached(e, gen) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : r;
}

static CUresult elapsed(float *ms, CUevent a, CUevent b)
{
    struct sg_event_slot *slot = sg_conn.shm->event;

    if (!ms)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_is(a, SG_EVENT) || !sg_is(b, SG_EVENT) || !a->generation || !b->generation ||
        (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    if (a->capture || b->capture)
        return sg_capture_event_used(a->capture ? a : b);
    if (a->ctx->dev != b->ctx->dev)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sg_ctx_fault(a->ctx) != CUDA_SUCCESS)
        return sg_ctx_fault(a->ctx);
    if (!complete(a) || !complete(b))
        return sg_not_ready();
    *ms = (float)((double)(int64_t)(slot[b->slot].time_ns - slot[a->slot].time_ns) / 1e6);
    return CUDA_SUCCESS;
}

SG_API CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
    SG_ENTER();
    return elapsed(ms, a, b);
}

SG_API CUresult cuEventElapsedTime_v2(float *ms, CUevent a, CUevent b)
{
    SG_ENTER();
    return elapsed(ms, a, b);
}

static CUresult wait_event(CUstream h, CUevent e, unsigned flags, bool pt)
{
    bool capturing;
    uint64_t gen;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (!sg_is(e, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_for_work(h, pt, &s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing && flags & CU_EVENT_WAIT_EXTERNAL) {
        union sg_node_params p = {.event = e};

        return sg_capture_add(s, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &p);
    }
    if (capturing || e->capture) {
        r = sg_capture_wait(s, e, &capturing);
        if (r != CUDA_SUCCESS || capturing)
            return r;
    }
    gen = sg_event_newest(e);
    if (reached(e, gen))
        return CUDA_SUCCESS;
    return sg_submit(s, SG_ENTRY_WAIT, sg_event_name(e), gen, NULL);
}

SG_API CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned int flags)
{
    return wait_event(s, e, flags, false);
}

SG_API CUresult cuStreamWaitEvent_ptsz(CUstream s, CUevent e, unsigned int flags)
{
    return wait_event(s, e, flags, true);
}
