// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graph.c: graphs and their nodes as objects: made, copied, put in order. */
#include "sg.h"

static unsigned next_graph_id;
static unsigned long long graph_serial, node_serial; /* nothing else tells an old handle from a new one */

CUgraph sg_graph_new(void)
{
    CUgraph g = sg_object_new(sizeof(*g));

    if (!g)
        return NULL;
    g->id = __atomic_add_fetch(&next_graph_id, 1, __ATOMIC_RELAXED);
    g->serial = __atomic_add_fetch(&graph_serial, 1, __ATOMIC_RELAXED);
    g->magic = SG_GRAPH;
    return g;
}

void sg_node_free(CUgraphNode n)
{
    sg_params_free(n->type, &n->p);
    free(n->deps);
    free(n->edges);
    free(n->attributes);
    sg_object_free(n, sizeof(*n));
}

void sg_graph_free(CUgraph g)
{
    for (size_t i = 0; i < g->n; i++)
        sg_node_free(g->nodes[i]);
    sg_held_free(g);
    sg_conds_free(g);
    free(g->nodes);
    sg_object_free(g, sizeof(*g));
}

/* Is inner g itself, or a graph in a node of it, however deep? */
bool sg_graph_holds(CUgraph g, CUgraph inner)
{
    bool found = g == inner;

    for (size_t i = 0; i < g->n && !found; i++) {
        CUgraphNode n = g->nodes[i];

        if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
            found = sg_graph_holds(n->p.child, inner);
        for (unsigned k = 0; n->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->p.cond.size && !found; k++)
            found = sg_graph_holds(n->p.cond.bodies[k], inner);
    }
    return found;
}

/* Makes handles of g and what is in it those of nothing. */
void sg_graph_hide(CUgraph g)
{
    g->magic = SG_HIDDEN;
    for (size_t i = 0; i < g->n; i++) {
        CUgraphNode n = g->nodes[i];

        n->magic = SG_HIDDEN;
        if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
            sg_graph_hide(n->p.child);
        for (unsigned k = 0; n->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->p.cond.size; k++)
            sg_graph_hide(n->p.cond.bodies[k]);
    }
}

/* Makes a graph that a program has no handle of: an old handle that happens to
 * have its address, or that of a node, names nothing. */
CUgraph sg_graph_copy_hidden(CUgraph g)
{
    CUgraph c = sg_graph_copy(g);

    if (c)
        sg_graph_hide(c);
    return c;
}

/* ---- what nodes point to ------------------------------------------------------------ */

static void *duplicate(const void *p, size_t n)
{
    void *q = malloc(n ? n : 1);

    if (q && n)
        memcpy(q, p, n);
    return q;
}

static void bodies_free(CUgraph *v, unsigned n)
{
    for (unsigned i = 0; v && i < n; i++) {
        if (v[i])
            sg_graph_free(v[i]);
    }
    free(v);
}

CUresult sg_params_copy(CUgraphNodeType type, union sg_node_params *to, const union sg_node_params *from)
{
    *to = *from;
    switch (type) {
    case CU_GRAPH_NODE_TYPE_GRAPH:
        to->child = sg_graph_copy(from->child);
        if (!to->child)
            return CUDA_ERROR_OUT_OF_MEMORY;
        to->child->owned = true;
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        to->cond.bodies = calloc(from->cond.size, sizeof(CUgraph));
        for (unsigned i = 0; to->cond.bodies && i < from->cond.size; i++) {
            to->cond.bodies[i] = sg_graph_copy(from->cond.bodies[i]);
            if (!to->cond.bodies[i]) {
                bodies_free(to->cond.bodies, i);
                to->cond.bodies = NULL;
            } else {
                to->cond.bodies[i]->owned = to->cond.bodies[i]->body = true;
            }
        }
        if (!to->cond.bodies)
            return CUDA_ERROR_OUT_OF_MEMORY;
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        to->sems.sems = duplicate(from->sems.sems, from->sems.n * sizeof(*from->sems.sems));
        to->sems.params = duplicate(from->sems.params, (size_t)from->sems.n * SG_SEM_PARAMS_BYTES);
        if (!to->sems.sems || !to->sems.params) {
            free(to->sems.sems);
            free(to->sems.params);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        to->batch.ops = duplicate(from->batch.ops, (size_t)from->batch.count * SG_BATCH_OP_BYTES);
        if (!to->batch.ops)
            return CUDA_ERROR_OUT_OF_MEMORY;
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        to->alloc.params.accessDescs = duplicate(from->alloc.params.accessDescs,
                                                 from->alloc.params.accessDescCount * sizeof(CUmemAccessDesc));
        if (!to->alloc.params.accessDescs)
            return CUDA_ERROR_OUT_OF_MEMORY;
        sg_graph_block_hold(to->alloc.block);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        sg_graph_block_hold(to->free);
        break;
    default:
        break;
    }
    return CUDA_SUCCESS;
}

void sg_params_free(CUgraphNodeType type, union sg_node_params *p)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_GRAPH:
        sg_graph_free(p->child);
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        bodies_free(p->cond.bodies, p->cond.size);
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        free(p->sems.sems);
        free(p->sems.params);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        free(p->batch.ops);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        free((void *)(uintptr_t)p->alloc.params.accessDescs);
        sg_graph_block_drop(p->alloc.block);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        sg_graph_block_drop(p->free);
        break;
    default:
        break;
    }
}

/* ---- nodes -------------------------------------------------------------------------- */

CUresult sg_edge_add(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *edge)
{
    CUgraphNode *d = realloc(to->deps, (to->ndeps + 1) * sizeof(*d));
    CUgraphEdgeData *e;

    if (!d)
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->deps = d;
    e = realloc(to->edges, (to->ndeps + 1) * sizeof(*e));
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->edges = e;
    d[to->ndeps] = from;
    e[to->ndeps++] = edge ? *edge : (CUgraphEdgeData){0};
    return CUDA_SUCCESS;
}

static bool room(CUgraph g)
{
    CUgraphNode *v;

    if (g->n & (g->n - 1)) /* room grows by doubling, at powers of two */
        return true;
    v = realloc(g->nodes, (g->n ? g->n * 2 : 1) * sizeof(*v));
    if (v)
        g->nodes = v;
    return v;
}

CUresult sg_node_add(CUgraph g, CUgraphNodeType type, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                     size_t ndeps, const union sg_node_params *p, CUgraphNode *ret)
{
    CUresult r = CUDA_SUCCESS;
    CUgraphNode n;

    for (size_t i = 0; i < ndeps; i++) {
        if (!sg_is(deps[i], SG_NODE) || deps[i]->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
        deps[i]->order = 0;
    }
    for (size_t i = 0; i < ndeps; i++) {
        if (deps[i]->order++)
            return CUDA_ERROR_INVALID_VALUE; /* the same one twice */
    }
    n = sg_object_new(sizeof(*n));
    if (!n || !room(g)) {
        sg_object_free(n, sizeof(*n));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    n->type = CU_GRAPH_NODE_TYPE_EMPTY;
    for (size_t i = 0; i < ndeps && r == CUDA_SUCCESS; i++)
        r = sg_edge_add(deps[i], n, edges ? &edges[i] : NULL);
    if (r != CUDA_SUCCESS) {
        sg_node_free(n);
        return r;
    }
    n->type = type;
    n->graph = g;
    n->id = g->next_id++;
    n->serial = __atomic_add_fetch(&node_serial, 1, __ATOMIC_RELAXED);
    if (p)
        n->p = *p;
    g->nodes[g->n++] = n;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        g->memory = true;
    n->magic = SG_NODE;
    *ret = n;
    return CUDA_SUCCESS;
}

/* A copy of a graph, memory nodes and all; each node knows which one it is a
 * copy of. */
CUgraph sg_graph_copy(CUgraph g)
{
    CUgraph c = sg_graph_new();

    if (!c)
        return NULL;
    if (!sg_held_copy(c, g))
        goto fail;
    for (size_t i = 0; i < g->n; i++)
        g->nodes[i]->order = (unsigned)i;
    for (size_t i = 0; i < g->n; i++) {
        CUgraphNode n = g->nodes[i], m;
        union sg_node_params p;

        if (sg_params_copy(n->type, &p, &n->p) != CUDA_SUCCESS)
            goto fail;
        if (sg_node_add(c, n->type, NULL, NULL, 0, &p, &m) != CUDA_SUCCESS) {
            sg_params_free(n->type, &p);
            goto fail;
        }
        m->origin = n->serial;
        m->disabled = n->disabled;
        m->ctx = n->ctx;
        m->id = n->id;
        if (n->attributes && !(m->attributes = duplicate(n->attributes, sizeof(*n->attributes))))
            goto fail;
    }
    for (size_t i = 0; i < g->n; i++) {
        CUgraphNode n = g->nodes[i];

        for (size_t k = 0; k < n->ndeps; k++) {
            if (sg_edge_add(c->nodes[n->deps[k]->order], c->nodes[i], &n->edges[k]) != CUDA_SUCCESS)
                goto fail;
        }
    }
    return c;
fail:
    sg_graph_free(c);
    return NULL;
}

/* All nodes, dependencies first. Where the order in which they were made is
 * already one, as after a capture, it stays. */
CUresult sg_graph_order(CUgraph g, CUgraphNode **ret)
{
    CUgraphNode *v = malloc((g->n + 1) * sizeof(*v));
    size_t *left, *first, *to, edges = 0, done = 0, n = g->n;
    bool sorted = true;

    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n; i++)
        g->nodes[i]->order = (unsigned)i;
    for (size_t i = 0; i < n; i++) {
        v[i] = g->nodes[i];
        edges += v[i]->ndeps;
        for (size_t k = 0; k < v[i]->ndeps; k++)
            sorted = sorted && v[i]->deps[k]->order < i;
    }
    *ret = v;
    if (sorted)
        return CUDA_SUCCESS;
    left = calloc(2 * n + 1 + edges, sizeof(*left)); /* open dependencies; dependents, by node */
    if (!left) {
        free(v);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    first = left + n;
    to = first + n + 1;
    for (size_t i = 0; i < n; i++) {
        left[i] = g->nodes[i]->ndeps;
        for (size_t k = 0; k < left[i]; k++)
            first[g->nodes[i]->deps[k]->order + 1]++;
    }
    for (size_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    for (size_t i = n; i-- > 0;) {
        for (size_t k = 0; k < g->nodes[i]->ndeps; k++) {
            unsigned from = g->nodes[i]->deps[k]->order;

            to[--first[from + 1]] = i;
        }
    }
    /* first[i + 1] is now where the dependents of i begin. */
    for (size_t i = 0, at = 0; i < n; i++) {
        if (!g->nodes[i]->ndeps)
            v[at++] = g->nodes[i];
        done = at;
    }
    for (size_t i = 0; i < done; i++) {
        size_t k = v[i]->order, end = k + 2 <= n ? first[k + 2] : edges;

        for (size_t e = first[k + 1]; e < end; e++) {
            if (!--left[to[e]])
                v[done++] = g->nodes[to[e]];
        }
    }
    free(left);
    if (done == n)
        return CUDA_SUCCESS;
    free(v); /* a cycle */
    return CUDA_ERROR_INVALID_VALUE;
}

/* Is what among the nodes from, or among those that they depend on? */
bool sg_graph_reaches(const CUgraphNode *from, size_t nfrom, CUgraphNode what)
{
    CUgraph g = what->graph;
    CUgraphNode *stack = malloc((g->n + nfrom + 1) * sizeof(*stack));
    size_t n = 0;
    bool found = false;

    if (!stack)
        return true; /* rather let a graph pass than spoil it for want of memory */
    for (size_t i = 0; i < g->n; i++)
        g->nodes[i]->order = 0; /* not seen */
    for (size_t i = 0; i < nfrom; i++) {
        if (!from[i]->order++)
            stack[n++] = from[i];
    }
    while (n && !found) {
        CUgraphNode at = stack[--n];

        found = at == what;
        for (size_t k = 0; k < at->ndeps; k++) {
            if (!at->deps[k]->order++)
                stack[n++] = at->deps[k];
        }
    }
    free(stack);
    return found;
}
