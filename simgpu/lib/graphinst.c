// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphinst.c: making, and ending, an executable graph. */
#include "sg.h"

enum { RESULT_OK, RESULT_ERROR, RESULT_STRUCTURE, RESULT_OPERATION, RESULT_CONTEXTS, RESULT_HANDLE_UNUSED };

#define ALL_FLAGS 15ull

static unsigned next_exec_id;

/* What a graph that is launched from the device may hold. */
static bool fits_device(CUgraph g, CUgraphNode *ret_bad)
{
    for (size_t i = 0; i < g->n; i++) {
        CUgraphNode n = g->nodes[i];

        if (n->type == CU_GRAPH_NODE_TYPE_KERNEL || n->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
            n->type == CU_GRAPH_NODE_TYPE_MEMSET ||
            (n->type == CU_GRAPH_NODE_TYPE_GRAPH && fits_device(n->p.child, ret_bad)))
            continue;
        *ret_bad = n;
        return false;
    }
    return g->n > 0;
}

static bool handles_used(CUgraph g)
{
    bool ok = sg_conds_used(g);

    for (size_t i = 0; ok && i < g->n; i++) {
        CUgraphNode n = g->nodes[i];

        if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
            ok = handles_used(n->p.child);
        for (unsigned k = 0; ok && n->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->p.cond.size; k++)
            ok = handles_used(n->p.cond.bodies[k]);
    }
    return ok;
}

/* Does g, or a graph in it, hold memory nodes? */
static bool memory(CUgraph g)
{
    for (size_t i = 0; i < g->n; i++) {
        if (g->nodes[i]->type == CU_GRAPH_NODE_TYPE_GRAPH && memory(g->nodes[i]->p.child))
            return true;
    }
    return g->memory;
}

static void release(void *arg)
{
    CUgraphExec e = arg;

    sg_grow_drop(e->ctx, e->charge);
    sg_graph_free(e->graph);
    sg_object_free(e, sizeof(*e));
}

static CUresult instantiate(CUgraphExec *pe, CUgraph g, unsigned long long flags, CUgraphNode *ret_bad,
                            unsigned *ret_result)
{
    CUgraphExec e;
    CUresult r;

    SG_ENTER();
    *ret_bad = NULL;
    *ret_result = RESULT_ERROR;
    if (!pe || !sg_is(g, SG_GRAPH) || flags & ~ALL_FLAGS ||
        (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH && flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH && !fits_device(g, ret_bad)) {
        *ret_result = RESULT_OPERATION;
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!handles_used(g)) {
        *ret_result = RESULT_HANDLE_UNUSED;
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (memory(g) && g->execs)
        return CUDA_ERROR_NOT_SUPPORTED; /* one at a time: the addresses are the graph's */
    e = sg_object_new(sizeof(*e));
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->flags = flags;
    e->id = __atomic_add_fetch(&next_exec_id, 1, __ATOMIC_RELAXED);
    e->source = g;
    e->source_serial = g->serial;
    e->graph = sg_graph_copy_hidden(g);
    r = e->graph ? sg_exec_build(e) : CUDA_ERROR_OUT_OF_MEMORY;
    e->ctx = sg_current();
    if (r == CUDA_SUCCESS && e->ctx && (r = sg_grow_exec(e->ctx, g->n, &e->charge)) != CUDA_SUCCESS)
        sg_program_forget(&e->program);
    if (r != CUDA_SUCCESS) {
        if (r == CUDA_ERROR_INVALID_VALUE)
            *ret_result = RESULT_STRUCTURE;
        if (e->graph)
            sg_graph_free(e->graph);
        sg_object_free(e, sizeof(*e));
        return r;
    }
    g->execs++;
    e->magic = SG_EXEC;
    *pe = e;
    *ret_result = RESULT_OK;
    return CUDA_SUCCESS;
}

#define INSTANTIATE(name)                                                                   \
    SG_API CUresult name(CUgraphExec *pe, CUgraph g, CUgraphNode *bad, char *log, size_t n)  \
    {                                                                                       \
        CUgraphNode node;                                                                   \
        unsigned result;                                                                    \
        CUresult r = instantiate(pe, g, 0, &node, &result);                                 \
                                                                                            \
        if (r != CUDA_ERROR_NOT_INITIALIZED) {                                              \
            if (bad)                                                                        \
                *bad = node;                                                                \
            if (log && n)                                                                   \
                *log = 0;                                                                   \
        }                                                                                   \
        return r;                                                                           \
    }
INSTANTIATE(cuGraphInstantiate)
INSTANTIATE(cuGraphInstantiate_v2)

SG_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *pe, CUgraph g, unsigned long long flags)
{
    CUgraphNode bad;
    unsigned result;

    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) /* needs a stream */
        return sg_ready() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    return instantiate(pe, g, flags, &bad, &result);
}

static CUresult with_params(CUgraphExec *pe, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p, bool pt)
{
    CUresult r = CUDA_SUCCESS;
    CUstream s;

    SG_ENTER();
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
        r = sg_stream_of(p->hUploadStream, pt, &s);
    return r == CUDA_SUCCESS ? instantiate(pe, g, p->flags, &p->hErrNode_out, &p->result_out) : r;
}

SG_API CUresult cuGraphInstantiateWithParams(CUgraphExec *pe, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    return with_params(pe, g, p, false);
}

SG_API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *pe, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    return with_params(pe, g, p, true);
}

/* What is in flight goes on: the host process has its work, queued functions
 * have copies of their parameters. Only what the program's objects are held by
 * stays until then. */
SG_API CUresult cuGraphExecDestroy(CUgraphExec e)
{
    SG_ENTER();
    if (!sg_is(e, SG_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    e->magic = 0;
    if (sg_is(e->source, SG_GRAPH) && e->source->serial == e->source_serial)
        e->source->execs--;
    sg_program_forget(&e->program);
    if (e->order)
        cuEventDestroy_v2(e->order);
    if (e->graph->held && e->last_position && !sg_done(e->last_slot, e->last_position)) {
        if (sg_is(e->last, SG_STREAM) && e->last->slot == e->last_slot &&
            sg_host_function(e->last, release, e, NULL) == CUDA_SUCCESS)
            return CUDA_SUCCESS;
        sg_wait(e->last_slot, e->last_position);
    }
    release(e);
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphExecGetFlags(CUgraphExec e, cuuint64_t *flags)
{
    SG_ENTER();
    if (!sg_is(e, SG_EXEC) || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = e->flags;
    return CUDA_SUCCESS;
}
