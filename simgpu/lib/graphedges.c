// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graphedges.c: lists of nodes and edges. Every call that lists edges exists
 * with and without their data; the one without refuses to lose any.
 */
#include "sg.h"

/* A list on its way to the program: up to room entries into nodes and data, of
 * which either may be NULL; the rest of the room becomes NULL. */
struct list {
    CUgraphNode *nodes, *to;
    CUgraphEdgeData *data;
    size_t room, have;
    bool loses; /* an edge has data that nobody asked for */
};

static void put(struct list *l, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *e)
{
    if (l->nodes && l->have < l->room) {
        l->nodes[l->have] = from;
        if (l->to)
            l->to[l->have] = to;
        if (l->data)
            l->data[l->have] = e ? *e : (CUgraphEdgeData){0};
        l->loses |= !l->data && !sg_edge_plain(e);
    }
    l->have++;
}

static CUresult finish(struct list *l, size_t *n)
{
    if (l->nodes && l->loses)
        return CUDA_ERROR_LOSSY_QUERY;
    for (size_t i = l->have; l->nodes && i < l->room; i++) {
        l->nodes[i] = NULL;
        if (l->to)
            l->to[i] = NULL;
        if (l->data)
            l->data[i] = (CUgraphEdgeData){0};
    }
    if (!l->nodes || *n > l->have)
        *n = l->have;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *v, size_t *n)
{
    struct list l = {.nodes = v, .room = n ? *n : 0};

    SG_ENTER();
    if (!n || !sg_is(g, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->n; i++)
        put(&l, g->nodes[i], NULL, NULL);
    return finish(&l, n);
}

SG_API CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *v, size_t *n)
{
    struct list l = {.nodes = v, .room = n ? *n : 0};

    SG_ENTER();
    if (!n || !sg_is(g, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->n; i++) {
        if (!g->nodes[i]->ndeps)
            put(&l, g->nodes[i], NULL, NULL);
    }
    return finish(&l, n);
}

static CUresult dependencies(CUgraphNode node, CUgraphNode *v, CUgraphEdgeData *e, size_t *n)
{
    struct list l = {.nodes = v, .data = e, .room = n ? *n : 0};

    SG_ENTER();
    if (!n || !sg_is(node, SG_NODE) || (e && !v))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < node->ndeps; i++)
        put(&l, node->deps[i], NULL, &node->edges[i]);
    return finish(&l, n);
}

static CUresult dependents(CUgraphNode node, CUgraphNode *v, CUgraphEdgeData *e, size_t *n)
{
    struct list l = {.nodes = v, .data = e, .room = n ? *n : 0};

    SG_ENTER();
    if (!n || !sg_is(node, SG_NODE) || (e && !v))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < node->graph->n; i++) {
        CUgraphNode o = node->graph->nodes[i];

        for (size_t k = 0; k < o->ndeps; k++) {
            if (o->deps[k] == node)
                put(&l, o, NULL, &o->edges[k]);
        }
    }
    return finish(&l, n);
}

static CUresult edges(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *e, size_t *n)
{
    struct list l = {.nodes = from, .to = to, .data = e, .room = n ? *n : 0};

    SG_ENTER();
    if (!n || !sg_is(g, SG_GRAPH) || !from != !to || (e && !from))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < g->n; i++) {
        for (size_t k = 0; k < g->nodes[i]->ndeps; k++)
            put(&l, g->nodes[i]->deps[k], g->nodes[i], &g->nodes[i]->edges[k]);
    }
    return finish(&l, n);
}

SG_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *v, size_t *n)
{
    return dependencies(node, v, NULL, n);
}

SG_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *v, CUgraphEdgeData *e, size_t *n)
{
    return dependencies(node, v, e, n);
}

SG_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *v, size_t *n)
{
    return dependents(node, v, NULL, n);
}

SG_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *v, CUgraphEdgeData *e, size_t *n)
{
    return dependents(node, v, e, n);
}

SG_API CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    return edges(g, from, to, NULL, n);
}

SG_API CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *e, size_t *n)
{
    return edges(g, from, to, e, n);
}

/* ---- changes -------------------------------------------------------------------------- */

static size_t find(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *e)
{
    for (size_t k = 0; k < to->ndeps; k++) {
        if (to->deps[k] == from && (!e || !memcmp(&to->edges[k], e, sizeof(*e))))
            return k;
    }
    return SIZE_MAX;
}

static void cut(CUgraphNode n, size_t k)
{
    n->ndeps--;
    memmove(n->deps + k, n->deps + k + 1, (n->ndeps - k) * sizeof(*n->deps));
    memmove(n->edges + k, n->edges + k + 1, (n->ndeps - k) * sizeof(*n->edges));
}

static bool both_in(CUgraph g, CUgraphNode from, CUgraphNode to)
{
    return sg_is(from, SG_NODE) && sg_is(to, SG_NODE) && from->graph == g && to->graph == g && from != to;
}

static CUresult connect(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *e, size_t n)
{
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    if (!sg_is(g, SG_GRAPH) || (n && (!from || !to)) || !sg_edges_valid(from, e, n))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        static const CUgraphEdgeData plain;

        if (!both_in(g, from[i], to[i]) || find(from[i], to[i], e ? &e[i] : &plain) != SIZE_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++)
        r = sg_edge_add(from[i], to[i], e ? &e[i] : NULL);
    return r;
}

static CUresult disconnect(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *e,
                           size_t n)
{
    SG_ENTER();
    if (!sg_is(g, SG_GRAPH) || (n && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    if (g->memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < n; i++) {
        size_t k = both_in(g, from[i], to[i]) ? find(from[i], to[i], NULL) : SIZE_MAX;

        if (k == SIZE_MAX)
            return CUDA_ERROR_INVALID_VALUE;
        if (!e && !sg_edge_plain(&to[i]->edges[k]))
            return CUDA_ERROR_LOSSY_QUERY;
        if (e && (k = find(from[i], to[i], &e[i])) == SIZE_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < n; i++) {
        size_t k = find(from[i], to[i], e ? &e[i] : NULL);

        if (k == SIZE_MAX)
            return CUDA_ERROR_INVALID_VALUE; /* the same edge twice in the list */
        cut(to[i], k);
    }
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return connect(g, from, to, NULL, n);
}

SG_API CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                          const CUgraphEdgeData *e, size_t n)
{
    return connect(g, from, to, e, n);
}

SG_API CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return disconnect(g, from, to, NULL, n);
}

SG_API CUresult cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                             const CUgraphEdgeData *e, size_t n)
{
    return disconnect(g, from, to, e, n);
}

SG_API CUresult cuGraphDestroyNode(CUgraphNode n)
{
    CUgraph g;
    size_t kept = 0;

    SG_ENTER();
    if (!sg_is(n, SG_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    g = n->graph;
    if (g->memory || sg_capture_into(g))
        return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < g->n; i++) {
        CUgraphNode o = g->nodes[i];
        size_t k;

        while ((k = find(n, o, NULL)) != SIZE_MAX)
            cut(o, k);
        if (o != n)
            g->nodes[kept++] = o;
    }
    g->n = kept;
    sg_node_free(n);
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphDebugDotPrint(CUgraph g, const char *path, unsigned int flags)
{
    SG_ENTER();
    return path && sg_is(g, SG_GRAPH) ? sg_graph_dot(g, path, flags) : CUDA_ERROR_INVALID_VALUE;
}
