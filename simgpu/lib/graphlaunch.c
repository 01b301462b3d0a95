// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphlaunch.c: one launch of an executable graph. */
#include "sg.h"

#define MOST_ITERATIONS 1000000u /* of a loop whose length is given from outside */

/* ---- memory: taken and given before anything is submitted, all or nothing ------------ */

static CUresult memory(CUgraphExec e)
{
    struct sg_program *p = &e->program;
    CUresult r = CUDA_SUCCESS;
    size_t i;

    if (!e->graph->memory)
        return r;
    for (i = 0; e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH && i < p->n; i++) {
        if (p->steps[i].kind == SG_STEP_ALLOC && sg_graph_block_live(p->steps[i].node->p.alloc.block))
            sg_graph_block_give(p->steps[i].node->p.alloc.block);
    }
    for (i = 0; i < p->n && r == CUDA_SUCCESS; i++) {
        if (p->steps[i].kind == SG_STEP_ALLOC)
            r = sg_graph_block_take(p->steps[i].node->p.alloc.block);
        else if (p->steps[i].kind == SG_STEP_FREE)
            r = sg_graph_block_give(p->steps[i].node->p.free);
    }
    if (r == CUDA_SUCCESS)
        return r;
    for (i--; i-- > 0;) {
        if (p->steps[i].kind == SG_STEP_ALLOC && sg_graph_block_live(p->steps[i].node->p.alloc.block))
            sg_graph_block_give(p->steps[i].node->p.alloc.block);
        else if (p->steps[i].kind == SG_STEP_FREE)
            sg_graph_block_take(p->steps[i].node->p.free);
    }
    return r;
}

/* ---- bytes ---------------------------------------------------------------------------- */

struct moves {
    size_t n;
    struct sg_move v[];
};

static void move_all(const struct sg_move *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        /* What the nodes name may be gone since: then nothing is written, now as
         * behind a host function, which has nobody to tell. */
        if (v[i].set ? sg_set_check(&v[i].fill) : sg_copy_check(&v[i].copy))
            return;
        if (v[i].set)
            sg_set_do(&v[i].fill);
        else
            sg_copy_do(&v[i].copy);
    }
}

static void move_later(void *arg)
{
    struct moves *m = arg;

    move_all(m->v, m->n);
    free(m);
}

/* As with copies outside of graphs: now, or behind host functions that are queued. */
static CUresult move(struct sg_step *t, CUstream s)
{
    struct moves *later;
    CUresult r;

    if (!sg_host_unfinished()) {
        move_all(t->moves, t->nmoves);
        return CUDA_SUCCESS;
    }
    later = malloc(sizeof(*later) + t->nmoves * sizeof(*later->v));
    if (!later)
        return CUDA_ERROR_OUT_OF_MEMORY;
    later->n = t->nmoves;
    memcpy(later->v, t->moves, t->nmoves * sizeof(*later->v));
    r = sg_host_function(s, move_later, later, NULL);
    if (r != CUDA_SUCCESS)
        free(later);
    return r;
}

/* ---- steps ---------------------------------------------------------------------------- */

static CUresult run(struct sg_program *p, CUstream s, uint64_t times);

/* times: how often a loop around the node runs; its bodies hold device work
 * only, so that many times each is as good as one after another. */
static CUresult condition(struct sg_step *t, CUstream s, uint64_t times)
{
    CUgraphNode n = t->node;
    uint64_t value;
    bool given;
    CUresult r = sg_cond_value(n, &given, &value);

    if (r != CUDA_SUCCESS)
        return r;
    switch (n->p.cond.type) {
    case SG_COND_WHILE:
        if (!given)
            value = value != 0;
        if (value > MOST_ITERATIONS)
            value = MOST_ITERATIONS;
        return value ? run(&t->bodies[0], s, times * value > MOST_ITERATIONS ? MOST_ITERATIONS : times * value)
                     : CUDA_SUCCESS;
    case SG_COND_IF:
        value = !value; /* the second body, if any, is the else */
        break;
    default:
        break;
    }
    return value < n->p.cond.size ? run(&t->bodies[value], s, times) : CUDA_SUCCESS;
}

static CUresult run(struct sg_program *p, CUstream s, uint64_t times)
{
    CUresult r = CUDA_SUCCESS;

    for (size_t i = 0; i < p->n && r == CUDA_SUCCESS; i++) {
        struct sg_step *t = &p->steps[i];

        switch (t->kind) {
        case SG_STEP_DEVICE:
            r = sg_submit(s, SG_ENTRY_GRAPH, t->device, times, NULL);
            break;
        case SG_STEP_MOVE:
            r = move(t, s);
            break;
        case SG_STEP_HOST:
            r = sg_host_function(s, t->node->p.host.fn, t->node->p.host.userData, NULL);
            break;
        case SG_STEP_RECORD:
            r = cuEventRecord(t->node->p.event, s);
            break;
        case SG_STEP_WAIT:
            r = cuStreamWaitEvent(s, t->node->p.event, 0);
            break;
        case SG_STEP_SIGNAL:
            r = cuSignalExternalSemaphoresAsync(t->node->p.sems.sems, t->node->p.sems.params, t->node->p.sems.n, s);
            break;
        case SG_STEP_SEM_WAIT:
            r = cuWaitExternalSemaphoresAsync(t->node->p.sems.sems, t->node->p.sems.params, t->node->p.sems.n, s);
            break;
        case SG_STEP_BATCH:
            r = cuStreamBatchMemOp_v2(s, t->node->p.batch.count, t->node->p.batch.ops, t->node->p.batch.flags);
            break;
        case SG_STEP_CONDITION:
            r = condition(t, s, times);
            break;
        case SG_STEP_ALLOC:
        case SG_STEP_FREE:
            break; /* done before */
        }
    }
    return r;
}

/* A launch runs behind the one before it, in whatever streams they are. */
static CUresult behind(CUgraphExec e, CUstream s)
{
    CUcontext c;
    CUresult r;

    if (!e->last_position || e->last_slot == s->slot || sg_done(e->last_slot, e->last_position))
        return CUDA_SUCCESS;
    if (!sg_is(e->last, SG_STREAM) || e->last->slot != e->last_slot || e->last->capture)
        return sg_wait(e->last_slot, e->last_position);
    if (e->order && e->order->ctx != e->last->ctx) {
        cuEventDestroy_v2(e->order);
        e->order = NULL;
    }
    if (!e->order) {
        r = cuCtxPushCurrent_v2(e->last->ctx);
        if (r != CUDA_SUCCESS)
            return r;
        r = cuEventCreate(&e->order, CU_EVENT_DISABLE_TIMING);
        cuCtxPopCurrent_v2(&c);
        if (r != CUDA_SUCCESS)
            return r;
    }
    r = cuEventRecord(e->order, e->last);
    return r == CUDA_SUCCESS ? cuStreamWaitEvent(s, e->order, 0) : r;
}

static CUresult into_capture(CUgraphExec e, CUstream s)
{
    union sg_node_params p;
    CUresult r;

    if (e->graph->memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    memset(&p, 0, sizeof(p));
    p.child = sg_graph_copy(e->graph);
    if (!p.child)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p.child->owned = true;
    r = sg_capture_add(s, CU_GRAPH_NODE_TYPE_GRAPH, &p);
    if (r != CUDA_SUCCESS)
        sg_graph_free(p.child);
    return r;
}

static CUresult launch(CUgraphExec e, CUstream h, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (!sg_is(e, SG_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_for_work(h, pt, &s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return into_capture(e, s);
    r = behind(e, s);
    if (r == CUDA_SUCCESS)
        r = memory(e);
    if (r == CUDA_SUCCESS)
        r = run(&e->program, s, 1);
    e->last = s;
    e->last_slot = s->slot;
    e->last_position = __atomic_load_n(&s->pushed, __ATOMIC_ACQUIRE);
    return r;
}

SG_API CUresult cuGraphLaunch(CUgraphExec e, CUstream s)
{
    return launch(e, s, false);
}

SG_API CUresult cuGraphLaunch_ptsz(CUgraphExec e, CUstream s)
{
    return launch(e, s, true);
}

/* An upload costs nothing: the host process has the graph since it was made. */
static CUresult upload(CUgraphExec e, CUstream h, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (!sg_is(e, SG_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_for_work(h, pt, &s, &capturing);
    return r == CUDA_SUCCESS && capturing ? sg_capture_spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : r;
}

SG_API CUresult cuGraphUpload(CUgraphExec e, CUstream s)
{
    return upload(e, s, false);
}

SG_API CUresult cuGraphUpload_ptsz(CUgraphExec e, CUstream s)
{
    return upload(e, s, true);
}
