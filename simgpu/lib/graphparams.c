// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphparams.c: what a program says about a node, checked and taken over. */
#include "sg.h"

CUresult sg_kernel_params(const CUDA_KERNEL_NODE_PARAMS *k, union sg_node_params *p)
{
    p->kernel = *k;
    if (!p->kernel.func)
        p->kernel.func = (CUfunction)k->kern;
    if (sg_func_check(p->kernel.func) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    return k->gridDimX && k->gridDimY && k->gridDimZ && k->blockDimX && k->blockDimY && k->blockDimZ &&
                   (uint64_t)k->blockDimX * k->blockDimY * k->blockDimZ <= 1024 && !(k->kernelParams && k->extra)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

static CUresult child(CUgraph into, CUgraph g, unsigned ownership, union sg_node_params *p)
{
    if (!sg_is(g, SG_GRAPH) || ownership > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (ownership) { /* the graph itself, from now on the node's */
        if (g->owned || sg_graph_holds(g, into) || sg_capture_into(g))
            return CUDA_ERROR_INVALID_VALUE;
        g->owned = true;
        p->child = g;
        return CUDA_SUCCESS;
    }
    if (g->memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    p->child = sg_graph_copy(g);
    if (!p->child)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->child->owned = true;
    return CUDA_SUCCESS;
}

static CUresult batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *b, union sg_node_params *p)
{
    if (!b->count || b->count > 256 || !b->ops || b->flags)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < b->count; i++) {
        uint32_t op;

        memcpy(&op, (const char *)b->ops + (size_t)i * SG_BATCH_OP_BYTES, sizeof(op));
        if (op < 1 || op > 6) /* wait, write, flush, barrier */
            return CUDA_ERROR_INVALID_VALUE;
    }
    p->batch = *b;
    return CUDA_SUCCESS;
}

static CUresult semaphores(CUexternalSemaphore *v, const void *params, unsigned n, union sg_node_params *p)
{
    if (!n || !v || !params)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        if (!sg_object_ours(v[i]))
            return CUDA_ERROR_INVALID_HANDLE;
    }
    p->sems.sems = v;
    p->sems.params = (void *)(uintptr_t)params;
    p->sems.n = n;
    return CUDA_SUCCESS;
}

static CUresult conditional(const struct sg_conditional_node_params *c, CUgraph g, union sg_node_params *p)
{
    CUresult r = sg_cond_check(g, c);

    if (r != CUDA_SUCCESS)
        return r;
    memset(&p->cond, 0, sizeof(p->cond));
    p->cond.handle = c->handle;
    p->cond.type = c->type;
    p->cond.size = c->size;
    p->cond.ctx = c->ctx;
    sg_cond_find(g, c->handle, &p->cond.deflt, &p->cond.flags);
    p->cond.bodies = calloc(c->size, sizeof(CUgraph));
    for (unsigned i = 0; p->cond.bodies && i < c->size; i++) {
        p->cond.bodies[i] = sg_graph_new();
        if (!p->cond.bodies[i]) {
            sg_params_free(CU_GRAPH_NODE_TYPE_CONDITIONAL, p);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        p->cond.bodies[i]->owned = p->cond.bodies[i]->body = true;
    }
    return p->cond.bodies ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Checks p for a node of g and takes a copy of all that it points to. */
CUresult sg_params_of(CUgraph g, CUgraphNodeParams *p, union sg_node_params *to, CUcontext *ret_ctx)
{
    union sg_node_params given;
    CUresult r = CUDA_SUCCESS;

    memset(to, 0, sizeof(*to));
    *ret_ctx = NULL;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        *ret_ctx = p->kernel.ctx;
        return sg_kernel_params(&p->kernel, to);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (p->memcpy.flags)
            return CUDA_ERROR_INVALID_VALUE;
        to->memcpy = p->memcpy.copyParams;
        *ret_ctx = p->memcpy.copyCtx;
        return sg_copy_check(&to->memcpy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memcpy(&to->memset, &p->memset, sizeof(to->memset));
        *ret_ctx = p->memset.ctx;
        return sg_set_check(&to->memset);
    case CU_GRAPH_NODE_TYPE_HOST:
        to->host = p->host;
        return p->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return p->graph.graph == g ? CUDA_ERROR_INVALID_VALUE : child(g, p->graph.graph, p->graph.ownership, to);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        to->event = p->eventWait.event;
        return sg_is(to->event, SG_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        if (p->alloc.accessDescCount && !p->alloc.accessDescs)
            return CUDA_ERROR_INVALID_VALUE;
        given.alloc.params = p->alloc;
        r = sg_graph_block_new(&given.alloc.params, &given.alloc.block);
        if (r != CUDA_SUCCESS)
            return r;
        p->alloc.dptr = given.alloc.params.dptr;
        r = sg_params_copy(p->type, to, &given);
        sg_graph_block_drop(given.alloc.block);
        return r;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        to->free = sg_graph_block_find(p->free.dptr);
        if (!to->free)
            return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < g->n; i++) {
            if (g->nodes[i]->type == CU_GRAPH_NODE_TYPE_MEM_FREE && g->nodes[i]->p.free == to->free) {
                sg_graph_block_drop(to->free);
                return CUDA_ERROR_INVALID_VALUE; /* twice in one graph */
            }
        }
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: {
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS s; /* what the generic structure has no name for here */

        memcpy(&s, p->reserved1, sizeof(s));
        r = semaphores(s.sems, s.params, s.n, &given);
        return r == CUDA_SUCCESS ? sg_params_copy(p->type, to, &given) : r;
    }
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
        CUDA_BATCH_MEM_OP_NODE_PARAMS b;

        memcpy(&b, p->reserved1, sizeof(b));
        r = batch(&b, &given);
        return r == CUDA_SUCCESS ? sg_params_copy(p->type, to, &given) : r;
    }
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
        struct sg_conditional_node_params c;

        memcpy(&c, p->reserved1, sizeof(c));
        r = conditional(&c, g, to);
        c.bodies = to->cond.bodies;
        if (r == CUDA_SUCCESS)
            memcpy(p->reserved1, &c, sizeof(c));
        return r;
    }
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Gives a node other parameters of its kind. */
CUresult sg_params_set(CUgraphNode n, CUgraphNodeParams *p)
{
    union sg_node_params u;
    CUcontext ctx;
    CUresult r;

    if (p->type != n->type)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        break;
    }
    r = sg_params_of(n->graph, p, &u, &ctx);
    if (r != CUDA_SUCCESS)
        return r;
    sg_params_free(n->type, &n->p);
    n->p = u;
    if (ctx)
        n->ctx = ctx;
    return CUDA_SUCCESS;
}

/* What a node was made with; memory that it points to stays the node's. */
void sg_params_get(CUgraphNode n, CUgraphNodeParams *p)
{
    memset(p, 0, sizeof(*p));
    p->type = n->type;
    switch (n->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        p->kernel = n->p.kernel;
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        p->memcpy.copyParams = n->p.memcpy;
        p->memcpy.copyCtx = n->ctx;
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        memcpy(&p->memset, &n->p.memset, sizeof(n->p.memset));
        p->memset.ctx = n->ctx;
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        p->host = n->p.host;
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        p->graph.graph = n->p.child;
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        p->eventWait.event = n->p.event;
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        p->alloc = n->p.alloc.params;
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        p->free.dptr = sg_graph_block_address(n->p.free);
        break;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: {
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS s = {n->p.sems.sems, n->p.sems.params, n->p.sems.n};

        memcpy(p->reserved1, &s, sizeof(s));
        break;
    }
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        memcpy(p->reserved1, &n->p.batch, sizeof(n->p.batch));
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
        struct sg_conditional_node_params c = {n->p.cond.handle, n->p.cond.type, n->p.cond.size, n->p.cond.bodies,
                                               n->p.cond.ctx};

        memcpy(p->reserved1, &c, sizeof(c));
        break;
    }
    default:
        break;
    }
}
