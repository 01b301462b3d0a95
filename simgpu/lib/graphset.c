// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graphset.c: changes of single nodes of an executable graph. A node is named
 * by the one in the graph that it was made of. Launches in flight keep what
 * they were launched with.
 */
#include "sg.h"

CUgraphNode sg_exec_node(CUgraphExec e, CUgraphNode n)
{
    for (size_t i = 0; i < e->graph->n; i++) {
        if (e->graph->nodes[i]->origin == n->serial)
            return e->graph->nodes[i];
    }
    return NULL;
}

/* Checks handles; the executable graph's own node. */
static CUgraphNode own(CUgraphExec e, CUgraphNode n)
{
    return sg_is(e, SG_EXEC) && sg_is(n, SG_NODE) ? sg_exec_node(e, n) : NULL;
}

static CUcontext context(CUfunction f)
{
    return f->module ? f->module->ctx : NULL;
}

/* What an executable graph cannot change of a node. */
CUresult sg_exec_may_change(CUgraphNode n, CUgraphNodeParams *p)
{
    const CUDA_MEMCPY3D *c = &n->p.memcpy, *d = &p->memcpy.copyParams;

    if (n->type != p->type)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUfunction f = p->kernel.func ? p->kernel.func : (CUfunction)p->kernel.kern;

        if (sg_func_check(f) != CUDA_SUCCESS)
            return CUDA_ERROR_INVALID_HANDLE;
        /* The new function must be of the same context; a library's is of any. */
        return sg_func_check(n->p.kernel.func) != CUDA_SUCCESS || !context(f) || !context(n->p.kernel.func) ||
                       context(f) == context(n->p.kernel.func)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return c->srcMemoryType == d->srcMemoryType && c->dstMemoryType == d->dstMemoryType &&
                       c->Height == d->Height && c->Depth == d->Depth
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return n->p.memset.height <= 1 && p->memset.height <= 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: {
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS s;

        memcpy(&s, p->reserved1, sizeof(s));
        return s.n == n->p.sems.n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
        CUDA_BATCH_MEM_OP_NODE_PARAMS b;

        memcpy(&b, p->reserved1, sizeof(b));
        return b.count == n->p.batch.count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    default:
        return CUDA_SUCCESS;
    }
}

static CUresult set_child(CUgraphExec e, CUgraphNode m, CUgraph g)
{
    CUgraph old = m->p.child, copy;
    CUgraphNode bad, from;
    CUresult r;

    if (!sg_is(g, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_graph_difference(old, g, &bad, &from) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    copy = sg_graph_copy_hidden(g);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    copy->owned = true;
    m->p.child = copy;
    r = sg_exec_build(e);
    if (r != CUDA_SUCCESS)
        m->p.child = old;
    sg_graph_free(r == CUDA_SUCCESS ? old : copy);
    return r;
}

static CUresult set(CUgraphExec e, CUgraphNode n, CUgraphNodeType type, CUgraphNodeParams *p)
{
    CUgraphNode m;
    CUresult r;

    SG_ENTER();
    m = own(e, n);
    if (!m || !p || m->type != type)
        return CUDA_ERROR_INVALID_VALUE;
    p->type = type;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH)
        return set_child(e, m, p->graph.graph);
    r = sg_exec_may_change(m, p);
    if (r == CUDA_SUCCESS)
        r = sg_params_set(m, p);
    return r == CUDA_SUCCESS ? sg_exec_build(e) : r;
}

SG_API CUresult cuGraphExecNodeSetParams(CUgraphExec e, CUgraphNode n, CUgraphNodeParams *p)
{
    return p ? set(e, n, p->type, p) : sg_ready() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
}

#define SET(name, node_type, params, field)                              \
    SG_API CUresult name(CUgraphExec e, CUgraphNode n, const params *in) \
    {                                                                    \
        CUgraphNodeParams p = {0};                                       \
                                                                         \
        if (in)                                                          \
            memcpy(field, in, sizeof(*in));                              \
        return set(e, n, node_type, in ? &p : NULL);                     \
    }
SET(cuGraphExecKernelNodeSetParams, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS_v1, &p.kernel)
SET(cuGraphExecKernelNodeSetParams_v2, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS, &p.kernel)
SET(cuGraphExecHostNodeSetParams, CU_GRAPH_NODE_TYPE_HOST, CUDA_HOST_NODE_PARAMS, &p.host)
SET(cuGraphExecBatchMemOpNodeSetParams, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CUDA_BATCH_MEM_OP_NODE_PARAMS, p.reserved1)
SET(cuGraphExecExternalSemaphoresSignalNodeSetParams, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, p.reserved1)
SET(cuGraphExecExternalSemaphoresWaitNodeSetParams, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    p.reserved1)

SG_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec e, CUgraphNode n, const CUDA_MEMCPY3D *c, CUcontext ctx)
{
    CUgraphNodeParams p = {.memcpy = {.copyCtx = ctx}};

    if (c)
        p.memcpy.copyParams = *c;
    return set(e, n, CU_GRAPH_NODE_TYPE_MEMCPY, c ? &p : NULL);
}

SG_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec e, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *m,
                                               CUcontext ctx)
{
    CUgraphNodeParams p = {0};

    if (m)
        memcpy(&p.memset, m, sizeof(*m));
    p.memset.ctx = ctx;
    return set(e, n, CU_GRAPH_NODE_TYPE_MEMSET, m ? &p : NULL);
}

SG_API CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec e, CUgraphNode n, CUevent event)
{
    CUgraphNodeParams p = {.eventRecord = {event}};

    return set(e, n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &p);
}

SG_API CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec e, CUgraphNode n, CUevent event)
{
    CUgraphNodeParams p = {.eventWait = {event}};

    return set(e, n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &p);
}

SG_API CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec e, CUgraphNode n, CUgraph child)
{
    CUgraphNodeParams p = {.graph = {.graph = child}};

    return set(e, n, CU_GRAPH_NODE_TYPE_GRAPH, &p);
}

/* Only kernels, copies and fills can be switched off. */
static CUgraphNode switchable(CUgraphExec e, CUgraphNode n)
{
    CUgraphNode m = own(e, n);

    return m && (m->type == CU_GRAPH_NODE_TYPE_KERNEL || m->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                 m->type == CU_GRAPH_NODE_TYPE_MEMSET)
               ? m
               : NULL;
}

SG_API CUresult cuGraphNodeSetEnabled(CUgraphExec e, CUgraphNode n, unsigned int enabled)
{
    CUgraphNode m;

    SG_ENTER();
    m = switchable(e, n);
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    m->disabled = !enabled;
    return sg_exec_build(e);
}

SG_API CUresult cuGraphNodeGetEnabled(CUgraphExec e, CUgraphNode n, unsigned int *enabled)
{
    CUgraphNode m;

    SG_ENTER();
    m = switchable(e, n);
    if (!m || !enabled)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = !m->disabled;
    return CUDA_SUCCESS;
}
