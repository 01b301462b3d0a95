// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graph.c: graphs as programs build and read them; graphexec.c runs them. */
#include "sg.h"

CUgraph sg_graph_new(void)
{
    CUgraph g = sg_object_new(sizeof(*g));

    if (g)
        g->magic = SG_GRAPH;
    return g;
}

static void node_free(CUgraphNode n)
{
    if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
        sg_graph_free(n->p.child);
    n->magic = 0;
    free(n->deps);
    sg_object_free(n, sizeof(*n));
}

void sg_graph_free(CUgraph g)
{
    for (size_t i = 0; i < g->n; i++)
        node_free(g->nodes[i]);
    sg_held_free(g);
    g->magic = 0;
    free(g->nodes);
    sg_object_free(g, sizeof(*g));
}

static bool valid(CUgraph g)
{
    return sg_is(g, SG_GRAPH);
}

static bool valid_node(CUgraphNode n)
{
    return sg_is(n, SG_NODE);
}

CUresult sg_node_add(CUgraph g, CUgraphNodeType type, const CUgraphNode *deps, size_t ndeps,
                     const union sg_node_params *p, CUgraphNode *ret)
{
    CUgraphNode n, *v;

    for (size_t i = 0; i < ndeps; i++) {
        if (!valid_node(deps[i]) || deps[i]->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
    }
    n = sg_object_new(sizeof(*n));
    v = realloc(g->nodes, (g->n + 1) * sizeof(*v));
    if (v)
        g->nodes = v;
    if (n && ndeps)
        n->deps = malloc(ndeps * sizeof(*n->deps));
    if (!n || !v || (ndeps && !n->deps)) {
        sg_object_free(n, sizeof(*n));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    n->magic = SG_NODE;
    n->type = type;
    n->graph = g;
    if (p)
        n->p = *p;
    if (ndeps)
        memcpy(n->deps, deps, ndeps * sizeof(*deps));
    n->ndeps = ndeps;
    g->nodes[g->n++] = n;
    *ret = n;
    return CUDA_SUCCESS;
}

/* A copy; each node of it names the node that it is a copy of. */
CUgraph sg_graph_clone(CUgraph g)
{
    CUgraph c = sg_graph_new();

    if (c && !sg_held_copy(c, g))
        goto fail;
    for (size_t i = 0; c && i < g->n; i++) {
        CUgraphNode n = g->nodes[i], m;
        union sg_node_params p = n->p;

        if (n->type == CU_GRAPH_NODE_TYPE_GRAPH && !(p.child = sg_graph_clone(n->p.child)))
            goto fail;
        if (sg_node_add(c, n->type, NULL, 0, &p, &m) != CUDA_SUCCESS) {
            if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
                sg_graph_free(p.child);
            goto fail;
        }
        m->clone_of = n;
        m->disabled = n->disabled;
        n->order = (unsigned)i;
    }
    for (size_t i = 0; c && i < g->n; i++) {
        CUgraphNode n = g->nodes[i], m = c->nodes[i];

        m->deps = n->ndeps ? malloc(n->ndeps * sizeof(*m->deps)) : NULL;
        if (n->ndeps && !m->deps)
            goto fail;
        for (size_t k = 0; k < n->ndeps; k++)
            m->deps[k] = c->nodes[n->deps[k]->order];
        m->ndeps = n->ndeps;
    }
    return c;
fail:
    sg_graph_free(c);
    return NULL;
}

/* All nodes, dependencies first, else in the order in which they were made. */
CUresult sg_graph_order(CUgraph g, CUgraphNode **ret)
{
    CUgraphNode *v = malloc((g->n + 1) * sizeof(*v));
    size_t done = 0, before;

    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < g->n; i++)
        g->nodes[i]->order = 0; /* not placed */
    do {
        before = done;
        for (size_t i = 0; i < g->n; i++) {
            CUgraphNode n = g->nodes[i];
            bool ready = !n->order;

            for (size_t k = 0; ready && k < n->ndeps; k++)
                ready = n->deps[k]->order;
            if (ready) {
                n->order = 1;
                v[done++] = n;
            }
        }
    } while (done < g->n && done > before);
    if (done < g->n) {
        free(v); /* a cycle */
        return CUDA_ERROR_INVALID_VALUE;
    }
    *ret = v;
    return CUDA_SUCCESS;
}

/* Is what among the nodes from, or among those that they depend on? */
static bool reaches(CUgraphNode n, CUgraphNode what)
{
    if (n == what)
        return true;
    if (n->order)
        return false; /* seen */
    n->order = 1;
    for (size_t i = 0; i < n->ndeps; i++) {
        if (reaches(n->deps[i], what))
            return true;
    }
    return false;
}

bool sg_graph_reaches(const CUgraphNode *from, size_t nfrom, CUgraphNode what)
{
    for (size_t i = 0; i < what->graph->n; i++)
        what->graph->nodes[i]->order = 0;
    for (size_t i = 0; i < nfrom; i++) {
        if (reaches(from[i], what))
            return true;
    }
    return false;
}

/* ---- making and reading ------------------------------------------------------------- */

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
    if (!valid(g) || g->owned)
        return CUDA_ERROR_INVALID_VALUE;
    sg_graph_free(g);
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphClone(CUgraph *pg, CUgraph g)
{
    SG_ENTER();
    if (!pg || !valid(g))
        return CUDA_ERROR_INVALID_VALUE;
    *pg = sg_graph_clone(g);
    return *pg ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SG_API CUresult cuGraphNodeFindInClone(CUgraphNode *pn, CUgraphNode n, CUgraph clone)
{
    SG_ENTER();
    if (!pn || !valid_node(n) || !valid(clone))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < clone->n; i++) {
        if (clone->nodes[i]->clone_of == n) {
            *pn = clone->nodes[i];
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult add(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUgraphNodeType type,
                    const union sg_node_params *p)
{
    SG_ENTER();
    if (!pn || !valid(g) || (n && !deps))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_node_add(g, type, deps, n, p, pn);
}

static CUresult kernel_params(union sg_node_params *p, const CUDA_KERNEL_NODE_PARAMS *k)
{
    if (!k)
        return CUDA_ERROR_INVALID_VALUE;
    p->kernel = *k;
    if (!p->kernel.func)
        p->kernel.func = (CUfunction)k->kern;
    if (!p->kernel.func || sg_func_check(p->kernel.func) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    return k->gridDimX && k->gridDimY && k->gridDimZ && k->blockDimX && k->blockDimY && k->blockDimZ
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                        const CUDA_KERNEL_NODE_PARAMS *k)
{
    union sg_node_params p;
    CUresult r;

    SG_ENTER();
    r = kernel_params(&p, k);
    return r == CUDA_SUCCESS ? add(pn, g, deps, n, CU_GRAPH_NODE_TYPE_KERNEL, &p) : r;
}

static CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    return (CUDA_KERNEL_NODE_PARAMS){k->func, k->gridDimX, k->gridDimY, k->gridDimZ, k->blockDimX, k->blockDimY,
                                     k->blockDimZ, k->sharedMemBytes, k->kernelParams, k->extra, NULL, NULL};
}

SG_API CUresult cuGraphAddKernelNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                     const CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    CUDA_KERNEL_NODE_PARAMS w;

    if (!k)
        return CUDA_ERROR_INVALID_VALUE;
    w = widen(k);
    return cuGraphAddKernelNode_v2(pn, g, deps, n, &w);
}

SG_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *k)
{
    SG_ENTER();
    if (!k || !valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    *k = n->p.kernel;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    SG_ENTER();
    if (!k || !valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(k, &n->p.kernel, sizeof(*k));
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *k)
{
    union sg_node_params p;
    CUresult r;

    SG_ENTER();
    if (!valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    r = kernel_params(&p, k);
    if (r == CUDA_SUCCESS)
        n->p = p;
    return r;
}

SG_API CUresult cuGraphKernelNodeSetParams(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    CUDA_KERNEL_NODE_PARAMS w;

    if (!k)
        return CUDA_ERROR_INVALID_VALUE;
    w = widen(k);
    return cuGraphKernelNodeSetParams_v2(n, &w);
}

SG_API CUresult cuGraphAddMemcpyNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                     const CUDA_MEMCPY3D *c, CUcontext ctx SG_UNUSED)
{
    union sg_node_params p;
    CUresult r;

    SG_ENTER();
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_copy_check(c);
    p.memcpy = *c;
    return r == CUDA_SUCCESS ? add(pn, g, deps, n, CU_GRAPH_NODE_TYPE_MEMCPY, &p) : r;
}

SG_API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode n, CUDA_MEMCPY3D *c)
{
    SG_ENTER();
    if (!c || !valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_MEMCPY)
        return CUDA_ERROR_INVALID_VALUE;
    *c = n->p.memcpy;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode n, const CUDA_MEMCPY3D *c)
{
    SG_ENTER();
    if (!c || !valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_MEMCPY || sg_copy_check(c) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    n->p.memcpy = *c;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphAddMemsetNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                     const CUDA_MEMSET_NODE_PARAMS *m, CUcontext ctx SG_UNUSED)
{
    union sg_node_params p;
    CUresult r;

    SG_ENTER();
    if (!m)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_set_check(m);
    p.memset = *m;
    return r == CUDA_SUCCESS ? add(pn, g, deps, n, CU_GRAPH_NODE_TYPE_MEMSET, &p) : r;
}

SG_API CUresult cuGraphMemsetNodeGetParams(CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *m)
{
    SG_ENTER();
    if (!m || !valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_ERROR_INVALID_VALUE;
    *m = n->p.memset;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphMemsetNodeSetParams(CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *m)
{
    SG_ENTER();
    if (!m || !valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_MEMSET || sg_set_check(m) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    n->p.memset = *m;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphAddHostNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n,
                                   const CUDA_HOST_NODE_PARAMS *h)
{
    union sg_node_params p;

    SG_ENTER();
    if (!h || !h->fn)
        return CUDA_ERROR_INVALID_VALUE;
    p.host = *h;
    return add(pn, g, deps, n, CU_GRAPH_NODE_TYPE_HOST, &p);
}

SG_API CUresult cuGraphHostNodeGetParams(CUgraphNode n, CUDA_HOST_NODE_PARAMS *h)
{
    SG_ENTER();
    if (!h || !valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    *h = n->p.host;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphHostNodeSetParams(CUgraphNode n, const CUDA_HOST_NODE_PARAMS *h)
{
    SG_ENTER();
    if (!h || !h->fn || !valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    n->p.host = *h;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphAddEmptyNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n)
{
    return add(pn, g, deps, n, CU_GRAPH_NODE_TYPE_EMPTY, NULL);
}

SG_API CUresult cuGraphAddChildGraphNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUgraph child)
{
    union sg_node_params p;
    CUresult r;

    SG_ENTER();
    if (!valid(child) || child == g)
        return CUDA_ERROR_INVALID_VALUE;
    p.child = sg_graph_clone(child);
    if (!p.child)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p.child->owned = true;
    r = add(pn, g, deps, n, CU_GRAPH_NODE_TYPE_GRAPH, &p);
    if (r != CUDA_SUCCESS)
        sg_graph_free(p.child);
    return r;
}

SG_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode n, CUgraph *pg)
{
    SG_ENTER();
    if (!pg || !valid_node(n) || n->type != CU_GRAPH_NODE_TYPE_GRAPH)
        return CUDA_ERROR_INVALID_VALUE;
    *pg = n->p.child;
    return CUDA_SUCCESS;
}

static CUresult add_event(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUgraphNodeType type, CUevent e)
{
    union sg_node_params p = {.event = e};

    if (sg_ready() && !sg_is(e, SG_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    return add(pn, g, deps, n, type, &p);
}

SG_API CUresult cuGraphAddEventRecordNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUevent e)
{
    return add_event(pn, g, deps, n, CU_GRAPH_NODE_TYPE_EVENT_RECORD, e);
}

SG_API CUresult cuGraphAddEventWaitNode(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, size_t n, CUevent e)
{
    return add_event(pn, g, deps, n, CU_GRAPH_NODE_TYPE_WAIT_EVENT, e);
}
