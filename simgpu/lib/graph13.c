// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graph13.c: what CUDA 13 adds to graphs and contexts. A driver of an older
 * release does not export these names. cuda_abi.h ends before them.
 */
#include "sg.h"

CUresult cuGraphGetId(CUgraph, unsigned int *);
SG_API CUresult cuGraphGetId(CUgraph g, unsigned int *id)
{
    SG_ENTER();
    if (!id || !sg_is(g, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *id = g->id;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecGetId(CUgraphExec, unsigned int *);
SG_API CUresult cuGraphExecGetId(CUgraphExec e, unsigned int *id)
{
    SG_ENTER();
    if (!id || !sg_is(e, SG_EXEC))
        return CUDA_ERROR_INVALID_VALUE;
    *id = e->id;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetContainingGraph(CUgraphNode, CUgraph *);
SG_API CUresult cuGraphNodeGetContainingGraph(CUgraphNode n, CUgraph *g)
{
    SG_ENTER();
    if (!g || !sg_is(n, SG_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    *g = n->graph;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetLocalId(CUgraphNode, unsigned int *);
SG_API CUresult cuGraphNodeGetLocalId(CUgraphNode n, unsigned int *id)
{
    SG_ENTER();
    if (!id || !sg_is(n, SG_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    *id = n->id;
    return CUDA_SUCCESS;
}

/* The graph's and the node's in one number, as tools show them. */
CUresult cuGraphNodeGetToolsId(CUgraphNode, unsigned long long *);
SG_API CUresult cuGraphNodeGetToolsId(CUgraphNode n, unsigned long long *id)
{
    SG_ENTER();
    if (!id || !sg_is(n, SG_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    *id = (unsigned long long)n->graph->id << 32 | n->id;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetParams(CUgraphNode, CUgraphNodeParams *);
SG_API CUresult cuGraphNodeGetParams(CUgraphNode n, CUgraphNodeParams *p)
{
    SG_ENTER();
    if (!p || !sg_is(n, SG_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    sg_params_get(n, p);
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext);
SG_API CUresult cuCtxSynchronize_v2(CUcontext c)
{
    CUcontext old;
    CUresult r;

    SG_ENTER();
    if (!c)
        return cuCtxSynchronize();
    r = cuCtxPushCurrent_v2(c);
    if (r != CUDA_SUCCESS)
        return r;
    r = cuCtxSynchronize();
    cuCtxPopCurrent_v2(&old);
    return r;
}

CUresult cuCtxGetDevice_v2(CUdevice *, CUcontext);
SG_API CUresult cuCtxGetDevice_v2(CUdevice *dev, CUcontext c)
{
    SG_ENTER();
    if (!c)
        return cuCtxGetDevice(dev);
    if (!sg_is(c, SG_CTX) || !c->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!dev)
        return CUDA_ERROR_INVALID_VALUE;
    *dev = c->dev;
    return CUDA_SUCCESS;
}

/* A kernel's module and the context named with it belong to one device, from 13.4. */
static CUresult same_device(const CUgraphNodeParams *p)
{
    CUfunction f;

    if (!p || p->type != CU_GRAPH_NODE_TYPE_KERNEL || !p->kernel.func || !p->kernel.ctx)
        return CUDA_SUCCESS;
    f = p->kernel.func;
    if (!sg_is(f, SG_FUNC) || !sg_is(p->kernel.ctx, SG_CTX))
        return CUDA_SUCCESS; /* refused later, as such */
    return f->module->ctx && f->module->ctx->dev != p->kernel.ctx->dev ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult cuGraphAddNode_v3(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
                           CUgraphNodeParams *);
SG_API CUresult cuGraphAddNode_v3(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *e, size_t n,
                                  CUgraphNodeParams *p)
{
    CUresult r;

    SG_ENTER();
    r = same_device(p);
    return r == CUDA_SUCCESS ? sg_graph_add(pn, g, deps, e, n, p) : r;
}

CUresult cuGraphNodeSetParams_v2(CUgraphNode, CUgraphNodeParams *);
SG_API CUresult cuGraphNodeSetParams_v2(CUgraphNode n, CUgraphNodeParams *p)
{
    CUresult r;

    SG_ENTER();
    r = same_device(p);
    return r == CUDA_SUCCESS ? cuGraphNodeSetParams(n, p) : r;
}
