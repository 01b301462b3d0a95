// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphupdate.c: an executable graph takes over a graph of the same shape. */
#include "sg.h"

static bool same_edges(CUgraphNode a, CUgraphNode b)
{
    if (a->ndeps != b->ndeps)
        return false;
    for (size_t k = 0; k < a->ndeps; k++) {
        if (a->deps[k]->order != b->deps[k]->order || memcmp(&a->edges[k], &b->edges[k], sizeof(*a->edges)))
            return false;
    }
    return true;
}

static bool same_attribute(CUgraphNode a, CUgraphNode b, int which)
{
    static const struct sg_attributes none;
    const struct sg_attributes *x = a->attributes ? a->attributes : &none, *y = b->attributes ? b->attributes : &none;

    return !memcmp(&x->value[which], &y->value[which], sizeof(x->value[which]));
}

static CUgraphExecUpdateResult node_difference(CUgraphNode a, CUgraphNode b, CUgraphNode *bad, CUgraphNode *from)
{
    CUgraphNodeParams p;

    switch (a->type) {
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return sg_graph_difference(a->p.child, b->p.child, bad, from);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return a->type == CU_GRAPH_NODE_TYPE_MEM_FREE ? a->p.free == b->p.free : a->p.alloc.block == b->p.alloc.block
                   ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                   : CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        if (a->p.cond.type != b->p.cond.type || a->p.cond.size != b->p.cond.size)
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        for (unsigned k = 0; k < a->p.cond.size; k++) {
            CUgraphExecUpdateResult r = sg_graph_difference(a->p.cond.bodies[k], b->p.cond.bodies[k], bad, from);

            if (r != CU_GRAPH_EXEC_UPDATE_SUCCESS)
                return r;
        }
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (!same_attribute(a, b, CU_LAUNCH_ATTRIBUTE_COOPERATIVE) ||
            !same_attribute(a, b, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION))
            return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
        sg_params_get(b, &p);
        return sg_exec_may_change(a, &p) == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                         : CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    default:
        sg_params_get(b, &p);
        return sg_exec_may_change(a, &p) == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                         : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }
}

/* Why b cannot take the place of a; *bad is b's node, *from, for an edge, where
 * it comes from. Nodes correspond by the order in which they were made. */
CUgraphExecUpdateResult sg_graph_difference(CUgraph a, CUgraph b, CUgraphNode *bad, CUgraphNode *from)
{
    CUgraphExecUpdateResult r;

    *bad = *from = NULL;
    if (a->n != b->n) {
        if (b->n > a->n)
            *bad = b->nodes[a->n];
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    for (size_t i = 0; i < a->n; i++)
        a->nodes[i]->order = b->nodes[i]->order = (unsigned)i;
    for (size_t i = 0; i < a->n; i++) {
        *bad = b->nodes[i];
        if (a->nodes[i]->type != b->nodes[i]->type)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (!same_edges(a->nodes[i], b->nodes[i])) {
            *from = b->nodes[i]->ndeps ? b->nodes[i]->deps[0] : NULL;
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        }
    }
    for (size_t i = 0; i < a->n; i++) {
        CUgraphNode inner = NULL, inner_from = NULL;

        r = node_difference(a->nodes[i], b->nodes[i], &inner, &inner_from);
        if (r != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
            *bad = inner ? inner : b->nodes[i];
            *from = inner_from;
            return r;
        }
    }
    *bad = NULL;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    CUgraph old, copy;
    CUresult r;

    *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    SG_ENTER();
    if (!sg_is(e, SG_EXEC) || !sg_is(g, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    old = e->graph;
    info->result = sg_graph_difference(old, g, &info->errorNode, &info->errorFromNode);
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    copy = sg_graph_copy_hidden(g);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < copy->n; i++) {
        /* Nodes are still named by the graph that the first instantiation saw,
         * and what was switched off stays off. */
        copy->nodes[i]->origin = old->nodes[i]->origin;
        copy->nodes[i]->disabled = old->nodes[i]->disabled;
    }
    e->graph = copy;
    r = sg_exec_build(e);
    if (r != CUDA_SUCCESS)
        e->graph = old;
    sg_graph_free(r == CUDA_SUCCESS ? old : copy);
    return r;
}

SG_API CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    CUgraphExecUpdateResultInfo i;
    CUresult r = update(e, g, &i);

    if (info)
        *info = i;
    return r;
}

SG_API CUresult cuGraphExecUpdate(CUgraphExec e, CUgraph g, CUgraphNode *bad, CUgraphExecUpdateResult *result)
{
    CUgraphExecUpdateResultInfo i;
    CUresult r = update(e, g, &i);

    if (bad)
        *bad = i.errorNode;
    if (result)
        *result = i.result;
    return r;
}
