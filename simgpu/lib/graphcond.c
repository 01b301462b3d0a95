// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graphcond.c: conditional nodes. A kernel would set the handle's value, but
 * kernels compute nothing here: the value is asked of the host process at each
 * launch, by the names of the kernels around the node, else the handle's
 * default stands. A loop whose length nobody gave runs at most once.
 */
#include "sg.h"

#define ASSIGN_DEFAULT 1u
#define MOST_NAMES 64u /* kernels asked for at a launch, nearest first */

struct sg_cond {
    CUgraphConditionalHandle handle;
    unsigned deflt, flags;
    bool used;
    struct sg_cond *next;
};
static CUgraphConditionalHandle next_handle;

static struct sg_cond *find(CUgraph g, CUgraphConditionalHandle h)
{
    struct sg_cond *c;

    for (c = g->conds; c && c->handle != h; c = c->next)
        ;
    return c;
}

bool sg_cond_find(CUgraph g, CUgraphConditionalHandle h, unsigned *deflt, unsigned *flags)
{
    struct sg_cond *c = find(g, h);

    if (!c)
        return false;
    *deflt = c->deflt;
    *flags = c->flags;
    c->used = true;
    return true;
}

bool sg_conds_used(CUgraph g)
{
    for (struct sg_cond *c = g->conds; c; c = c->next) {
        if (!c->used)
            return false;
    }
    return true;
}

void sg_conds_free(CUgraph g)
{
    while (g->conds) {
        struct sg_cond *c = g->conds;

        g->conds = c->next;
        free(c);
    }
}

SG_API CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *h, CUgraph g, CUcontext ctx,
                                               unsigned int deflt, unsigned int flags)
{
    struct sg_cond *c;

    SG_ENTER();
    if (!h || !sg_is(g, SG_GRAPH) || flags & ~ASSIGN_DEFAULT)
        return CUDA_ERROR_INVALID_VALUE;
    if (ctx ? !sg_is(ctx, SG_CTX) : !sg_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    c = calloc(1, sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *c = (struct sg_cond){__atomic_add_fetch(&next_handle, 1, __ATOMIC_RELAXED), deflt, flags, false, g->conds};
    g->conds = c;
    *h = c->handle;
    return CUDA_SUCCESS;
}

/* May a node with these parameters be made in g? A handle is for one node. */
CUresult sg_cond_check(CUgraph g, const struct sg_conditional_node_params *p)
{
    struct sg_cond *c = find(g, p->handle);
    bool size = p->type == SG_COND_IF ? p->size == 1 || p->size == 2 : p->type == SG_COND_WHILE ? p->size == 1 : p->size;

    return c && !c->used && p->type <= SG_COND_SWITCH && size && p->size <= 4096 ? CUDA_SUCCESS
                                                                                : CUDA_ERROR_INVALID_VALUE;
}

/* ---- the value at a launch ------------------------------------------------------------ */

struct names {
    uint32_t v[MOST_NAMES];
    unsigned n;
};

static void add(struct names *names, CUgraphNode n)
{
    uint32_t number;

    if (n->type == CU_GRAPH_NODE_TYPE_KERNEL && names->n < MOST_NAMES && !n->disabled &&
        sg_func_check(n->p.kernel.func) == CUDA_SUCCESS && sg_func_number(n->p.kernel.func, &number) == CUDA_SUCCESS)
        names->v[names->n++] = number;
}

static void add_graph(struct names *names, CUgraph g)
{
    for (size_t i = 0; i < g->n && names->n < MOST_NAMES; i++) {
        CUgraphNode n = g->nodes[i];

        add(names, n);
        if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
            add_graph(names, n->p.child);
        for (unsigned k = 0; n->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->p.cond.size; k++)
            add_graph(names, n->p.cond.bodies[k]);
    }
}

/* The kernels that n comes after, nearest first. */
static CUresult add_upstream(struct names *names, CUgraphNode n)
{
    CUgraph g = n->graph;
    CUgraphNode *queue = malloc((g->n + 1) * sizeof(*queue));
    size_t have = 0;

    if (!queue)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < g->n; i++)
        g->nodes[i]->order = 0;
    n->order = 1;
    queue[have++] = n;
    for (size_t i = 0; i < have && names->n < MOST_NAMES; i++) {
        add(names, queue[i]);
        if (queue[i]->type == CU_GRAPH_NODE_TYPE_GRAPH)
            add_graph(names, queue[i]->p.child);
        for (size_t k = 0; k < queue[i]->ndeps; k++) {
            if (!queue[i]->deps[k]->order++)
                queue[have++] = queue[i]->deps[k];
        }
    }
    free(queue);
    return CUDA_SUCCESS;
}

/* The value of n's handle; *ret_given: somebody outside has set it. */
CUresult sg_cond_value(CUgraphNode n, bool *ret_given, uint64_t *ret)
{
    struct sg_request req = {.op = SG_OP_CONDITION};
    struct names names = {.n = 0};
    struct sg_reply rep;
    CUresult r;

    if (n->p.cond.type == SG_COND_WHILE)
        add_graph(&names, n->p.cond.bodies[0]);
    r = add_upstream(&names, n);
    if (r != CUDA_SUCCESS)
        return r;
    req.len = (uint32_t)(names.n * sizeof(*names.v));
    r = sg_call(&req, names.v, &rep, NULL, 0, NULL);
    if (r != CUDA_SUCCESS)
        return r;
    *ret_given = rep.b;
    *ret = rep.b ? rep.a : n->p.cond.flags & ASSIGN_DEFAULT ? n->p.cond.deflt : 0;
    return CUDA_SUCCESS;
}
