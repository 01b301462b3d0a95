// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphnodes.c: nodes by their generic structure, lists of nodes and edges. */
#include "sg.h"

static bool valid(CUgraph g)
{
    return sg_is(g, SG_GRAPH);
}

static bool valid_node(CUgraphNode n)
{
    return sg_is(n, SG_NODE);
}

static CUresult add_node(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUgraphNodeParams *p)
{
    CUDA_MEMSET_NODE_PARAMS m;

    SG_ENTER();
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return cuGraphAddKernelNode_v2(pn, g, deps, n, &p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return cuGraphAddMemcpyNode(pn, g, deps, n, &p->memcpy.copyParams, p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memcpy(&m, &p->memset, sizeof(m));
        return cuGraphAddMemsetNode(pn, g, deps, n, &m, p->memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST:
        return cuGraphAddHostNode(pn, g, deps, n, &p->host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return cuGraphAddChildGraphNode(pn, g, deps, n, p->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return cuGraphAddEmptyNode(pn, g, deps, n);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return cuGraphAddEventWaitNode(pn, g, deps, n, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return cuGraphAddEventRecordNode(pn, g, deps, n, p->eventRecord.event);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

SG_API CUresult cuGraphAddNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUgraphNodeParams *p)
{
    return add_node(pn, g, deps, n, p);
}

SG_API CUresult cuGraphAddNode_v2(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps,
                                  const CUgraphEdgeData *e SG_UNUSED, size_t n, CUgraphNodeParams *p)
{
    return add_node(pn, g, deps, n, p);
}

SG_API CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType *type)
{
    SG_ENTER();
    if (!type || !valid_node(n))
        return CUDA_ERROR_INVALID_VALUE;
    *type = n->type;
    return CUDA_SUCCESS;
}

/* Lists: v NULL asks for the number; else *n is room in and number out, and
 * what is beyond the list is NULL. */
static CUresult list(CUgraphNode *v, size_t *n, CUgraphNode const *from, size_t have)
{
    if (!v) {
        *n = have;
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < *n; i++)
        v[i] = i < have ? from[i] : NULL;
    if (*n > have)
        *n = have;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *v, size_t *n)
{
    SG_ENTER();
    if (!n || !valid(g))
        return CUDA_ERROR_INVALID_VALUE;
    return list(v, n, g->nodes, g->n);
}

SG_API CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *v, size_t *n)
{
    CUgraphNode *roots;
    size_t have = 0;
    CUresult r;

    SG_ENTER();
    if (!n || !valid(g))
        return CUDA_ERROR_INVALID_VALUE;
    roots = malloc((g->n + 1) * sizeof(*roots));
    if (!roots)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < g->n; i++) {
        if (!g->nodes[i]->ndeps)
            roots[have++] = g->nodes[i];
    }
    r = list(v, n, roots, have);
    free(roots);
    return r;
}

SG_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *v, size_t *n)
{
    SG_ENTER();
    if (!n || !valid_node(node))
        return CUDA_ERROR_INVALID_VALUE;
    return list(v, n, node->deps, node->ndeps);
}

SG_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *v, size_t *n)
{
    CUgraphNode *out;
    size_t have = 0;
    CUresult r;

    SG_ENTER();
    if (!n || !valid_node(node))
        return CUDA_ERROR_INVALID_VALUE;
    out = malloc((node->graph->n + 1) * sizeof(*out));
    if (!out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < node->graph->n; i++) {
        CUgraphNode o = node->graph->nodes[i];

        for (size_t k = 0; k < o->ndeps; k++) {
            if (o->deps[k] == node) {
                out[have++] = o;
                break;
            }
        }
    }
    r = list(v, n, out, have);
    free(out);
    return r;
}

SG_API CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    size_t have = 0;

    SG_ENTER();
    if (!n || !valid(g) || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->n; i++) {
        for (size_t k = 0; k < g->nodes[i]->ndeps; k++, have++) {
            if (from && have < *n) {
                from[have] = g->nodes[i]->deps[k];
                to[have] = g->nodes[i];
            }
        }
    }
    for (size_t i = have; from && i < *n; i++)
        from[i] = to[i] = NULL;
    if (!from || *n > have)
        *n = have;
    return CUDA_SUCCESS;
}

static CUresult connect(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    SG_ENTER();
    if (!valid(g) || (n && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (!valid_node(from[i]) || !valid_node(to[i]) || from[i]->graph != g || to[i]->graph != g || from[i] == to[i])
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < n; i++) {
        CUgraphNode *v = realloc(to[i]->deps, (to[i]->ndeps + 1) * sizeof(*v));

        if (!v)
            return CUDA_ERROR_OUT_OF_MEMORY;
        to[i]->deps = v;
        v[to[i]->ndeps++] = from[i];
    }
    return CUDA_SUCCESS;
}

static CUresult disconnect(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    SG_ENTER();
    if (!valid(g) || (n && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        size_t kept = 0;

        if (!valid_node(to[i]) || to[i]->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t k = 0; k < to[i]->ndeps; k++) {
            if (to[i]->deps[k] != from[i])
                to[i]->deps[kept++] = to[i]->deps[k];
        }
        if (kept == to[i]->ndeps)
            return CUDA_ERROR_INVALID_VALUE;
        to[i]->ndeps = kept;
    }
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return connect(g, from, to, n);
}

SG_API CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                          const CUgraphEdgeData *e SG_UNUSED, size_t n)
{
    return connect(g, from, to, n);
}

SG_API CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return disconnect(g, from, to, n);
}

SG_API CUresult cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                             const CUgraphEdgeData *e SG_UNUSED, size_t n)
{
    return disconnect(g, from, to, n);
}

SG_API CUresult cuGraphDestroyNode(CUgraphNode n)
{
    CUgraph g;
    size_t kept = 0;

    SG_ENTER();
    if (!valid_node(n))
        return CUDA_ERROR_INVALID_VALUE;
    g = n->graph;
    for (size_t i = 0; i < g->n; i++) {
        CUgraphNode o = g->nodes[i];
        size_t deps = 0;

        for (size_t k = 0; k < o->ndeps; k++) {
            if (o->deps[k] != n)
                o->deps[deps++] = o->deps[k];
        }
        o->ndeps = deps;
        if (o != n)
            g->nodes[kept++] = o;
    }
    g->n = kept;
    if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
        sg_graph_free(n->p.child);
    n->magic = 0;
    free(n->deps);
    sg_object_free(n, sizeof(*n));
    return CUDA_SUCCESS;
}
