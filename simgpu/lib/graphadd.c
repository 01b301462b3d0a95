// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphadd.c: graphs as programs make them: the graph, and a call for each kind of node. */
#include "sg.h"

SG_API CUresult cuGraphCreate(CUgraph *pg, unsigned int flags)
{
    SG_ENTER();
    if (!pg || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *pg = sg_graph_new();
    return *pg ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SG_API CUresult cuGraphDestroy(CUgraph g)
{
    SG_ENTER();
    if (!sg_is(g, SG_GRAPH) || g->owned || sg_capture_into(g))
        return CUDA_ERROR_INVALID_VALUE;
    sg_graph_free(g);
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphClone(CUgraph *pg, CUgraph g)
{
    SG_ENTER();
    if (!pg || !sg_is(g, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (g->memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    *pg = sg_graph_copy(g);
    return *pg ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SG_API CUresult cuGraphNodeFindInClone(CUgraphNode *pn, CUgraphNode n, CUgraph clone)
{
    SG_ENTER();
    if (!pn || !sg_is(n, SG_NODE) || !sg_is(clone, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < clone->n; i++) {
        if (clone->nodes[i]->origin == n->serial) {
            *pn = clone->nodes[i];
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/* An edge may leave a kernel by other ports than its end. */
bool sg_edges_valid(const CUgraphNode *from, const CUgraphEdgeData *e, size_t n)
{
    static const unsigned char zero[sizeof(e->reserved)];

    for (size_t i = 0; e && i < n; i++) {
        if (e[i].type > 1 || e[i].from_port > 2 || e[i].to_port || memcmp(e[i].reserved, zero, sizeof(zero)))
            return false;
        if (!sg_edge_plain(&e[i]) && (!sg_is(from[i], SG_NODE) || from[i]->type != CU_GRAPH_NODE_TYPE_KERNEL))
            return false;
    }
    return true;
}

/* What a body of a conditional node may hold. */
static bool fits_body(CUgraphNodeType type, const union sg_node_params *p)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return true;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        for (size_t i = 0; i < p->child->n; i++) {
            if (!fits_body(p->child->nodes[i]->type, &p->child->nodes[i]->p))
                return false;
        }
        return true;
    default:
        return false;
    }
}

CUresult sg_graph_add(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n,
                      CUgraphNodeParams *p)
{
    union sg_node_params u;
    CUcontext ctx;
    CUresult r;

    SG_ENTER();
    if (!pn || !p || !sg_is(g, SG_GRAPH) || (n && !deps) || !sg_edges_valid(deps, edges, n))
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_params_of(g, p, &u, &ctx);
    if (r != CUDA_SUCCESS)
        return r;
    if (g->body && !fits_body(p->type, &u))
        r = CUDA_ERROR_NOT_SUPPORTED;
    else
        r = sg_node_add(g, p->type, deps, edges, n, &u, pn);
    if (r == CUDA_SUCCESS)
        (*pn)->ctx = ctx ? ctx : sg_current();
    else if (p->type == CU_GRAPH_NODE_TYPE_GRAPH && p->graph.ownership)
        u.child->owned = false; /* stays the program's */
    else
        sg_params_free(p->type, &u);
    return r;
}

SG_API CUresult cuGraphAddNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUgraphNodeParams *p)
{
    return sg_graph_add(pn, g, deps, NULL, n, p);
}

SG_API CUresult cuGraphAddNode_v2(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *e,
                                  size_t n, CUgraphNodeParams *p)
{
    return sg_graph_add(pn, g, deps, e, n, p);
}

/* ---- one call a kind ------------------------------------------------------------------ */

SG_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                        const CUDA_KERNEL_NODE_PARAMS *k)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    if (k)
        p.kernel = *k;
    return sg_graph_add(pn, g, deps, NULL, n, k ? &p : NULL);
}

SG_API CUresult cuGraphAddKernelNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                     const CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    if (k)
        memcpy(&p.kernel, k, sizeof(*k)); /* the newer form only adds fields */
    return sg_graph_add(pn, g, deps, NULL, n, k ? &p : NULL);
}

SG_API CUresult cuGraphAddMemcpyNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                     const CUDA_MEMCPY3D *c, CUcontext ctx)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    if (c)
        p.memcpy.copyParams = *c;
    p.memcpy.copyCtx = ctx;
    return sg_graph_add(pn, g, deps, NULL, n, c ? &p : NULL);
}

SG_API CUresult cuGraphAddMemsetNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                     const CUDA_MEMSET_NODE_PARAMS *m, CUcontext ctx)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    if (m)
        memcpy(&p.memset, m, sizeof(*m));
    p.memset.ctx = ctx;
    return sg_graph_add(pn, g, deps, NULL, n, m ? &p : NULL);
}

SG_API CUresult cuGraphAddHostNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                   const CUDA_HOST_NODE_PARAMS *h)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST};

    if (h)
        p.host = *h;
    return sg_graph_add(pn, g, deps, NULL, n, h ? &p : NULL);
}

SG_API CUresult cuGraphAddEmptyNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};

    return sg_graph_add(pn, g, deps, NULL, n, &p);
}

SG_API CUresult cuGraphAddChildGraphNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUgraph c)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = c}};

    return sg_graph_add(pn, g, deps, NULL, n, &p);
}

SG_API CUresult cuGraphAddEventRecordNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUevent e)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {e}};

    return sg_graph_add(pn, g, deps, NULL, n, &p);
}

SG_API CUresult cuGraphAddEventWaitNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUevent e)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {e}};

    return sg_graph_add(pn, g, deps, NULL, n, &p);
}

SG_API CUresult cuGraphAddMemAllocNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                       CUDA_MEM_ALLOC_NODE_PARAMS *a)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUresult r;

    if (a)
        p.alloc = *a;
    r = sg_graph_add(pn, g, deps, NULL, n, a ? &p : NULL);
    if (r == CUDA_SUCCESS)
        a->dptr = p.alloc.dptr;
    return r;
}

SG_API CUresult cuGraphAddMemFreeNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUdeviceptr d)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {d}};

    return sg_graph_add(pn, g, deps, NULL, n, &p);
}

/* A structure that lies in the generic one without a name of its own here. */
static CUresult add_inside(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUgraphNodeType type,
                           const void *s, size_t size)
{
    CUgraphNodeParams p = {.type = type};

    if (s)
        memcpy(p.reserved1, s, size);
    return sg_graph_add(pn, g, deps, NULL, n, s ? &p : NULL);
}

SG_API CUresult cuGraphAddBatchMemOpNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                         const CUDA_BATCH_MEM_OP_NODE_PARAMS *b)
{
    return add_inside(pn, g, deps, n, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, b, sizeof(*b));
}

SG_API CUresult cuGraphAddExternalSemaphoresSignalNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                                       const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *s)
{
    return add_inside(pn, g, deps, n, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, s, sizeof(*s));
}

SG_API CUresult cuGraphAddExternalSemaphoresWaitNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                                     const CUDA_EXT_SEM_WAIT_NODE_PARAMS *s)
{
    return add_inside(pn, g, deps, n, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, s, sizeof(*s));
}
