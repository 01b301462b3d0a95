// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graphexec.c: executable graphs. A graph becomes a list of steps in dependency
 * order; neighbouring kernels are one step that the host process knows as a
 * whole, so a launch submits few entries however many nodes there are.
 */
#include "sg.h"

enum step_kind { STEP_KERNELS, STEP_COPY, STEP_SET, STEP_HOST, STEP_RECORD, STEP_WAIT };

struct step {
    enum step_kind kind;
    uint32_t kernels; /* the host's graph */
    CUgraphNode node; /* of the copy that the executable graph owns */
};

struct CUgraphExec_st {
    uint32_t magic;
    CUgraph graph;
    struct step *steps;
    size_t n;
    unsigned long long flags;
};

struct parts {
    struct sg_graph_part *v;
    size_t n;
};

#define PARTS_A_MESSAGE 512u

/* Tells the host process about a run of kernels; empties it. */
static CUresult define(struct parts *p, uint32_t *ret)
{
    uint64_t id = 0;
    CUresult r = CUDA_SUCCESS;

    for (size_t at = 0; at < p->n && r == CUDA_SUCCESS; at += PARTS_A_MESSAGE) {
        size_t k = p->n - at < PARTS_A_MESSAGE ? p->n - at : PARTS_A_MESSAGE;
        struct sg_request req = {.op = at ? SG_OP_GRAPH_APPEND : SG_OP_GRAPH_DEFINE, .a = id};
        struct sg_reply rep;

        req.len = (uint32_t)(k * sizeof(*p->v));
        r = sg_call(&req, p->v + at, &rep, NULL, 0, NULL);
        if (r == CUDA_SUCCESS)
            id = rep.a;
    }
    p->n = 0;
    *ret = (uint32_t)id;
    return r;
}

static struct step *step(CUgraphExec e, enum step_kind kind, CUgraphNode n)
{
    struct step *v = realloc(e->steps, (e->n + 1) * sizeof(*v));

    if (!v)
        return NULL;
    e->steps = v;
    v[e->n] = (struct step){.kind = kind, .node = n};
    return &v[e->n++];
}

static CUresult flush(CUgraphExec e, struct parts *p)
{
    struct step *s;

    if (!p->n)
        return CUDA_SUCCESS;
    s = step(e, STEP_KERNELS, NULL);
    return s ? define(p, &s->kernels) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_kernel(struct parts *p, CUfunction f)
{
    struct sg_graph_part *v;
    uint32_t number;
    CUresult r = sg_func_number(f, &number);

    if (r != CUDA_SUCCESS)
        return r;
    if (p->n && p->v[p->n - 1].function == number) {
        p->v[p->n - 1].count++;
        return r;
    }
    v = realloc(p->v, (p->n + 1) * sizeof(*v));
    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->v = v;
    v[p->n++] = (struct sg_graph_part){number, 1};
    return r;
}

static CUresult compile(CUgraphExec e, CUgraph g, struct parts *p)
{
    static const enum step_kind of[] = {
        [CU_GRAPH_NODE_TYPE_MEMCPY] = STEP_COPY,        [CU_GRAPH_NODE_TYPE_MEMSET] = STEP_SET,
        [CU_GRAPH_NODE_TYPE_HOST] = STEP_HOST,          [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = STEP_RECORD,
        [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = STEP_WAIT,
    };
    CUgraphNode *order;
    CUresult r = sg_graph_order(g, &order);

    if (r != CUDA_SUCCESS)
        return r;
    for (size_t i = 0; i < g->n && r == CUDA_SUCCESS; i++) {
        CUgraphNode n = order[i];

        if (n->disabled)
            continue;
        switch (n->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            r = add_kernel(p, n->p.kernel.func);
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            r = compile(e, n->p.child, p);
            break;
        case CU_GRAPH_NODE_TYPE_EMPTY:
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
        case CU_GRAPH_NODE_TYPE_MEMSET:
            /* Bytes move without GPU time, so the kernels around stay one step. */
            if (!step(e, of[n->type], n))
                r = CUDA_ERROR_OUT_OF_MEMORY;
            break;
        default:
            r = flush(e, p);
            if (r == CUDA_SUCCESS && !step(e, of[n->type], n))
                r = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    free(order);
    return r;
}

static void forget_steps(CUgraphExec e)
{
    for (size_t i = 0; i < e->n; i++) {
        if (e->steps[i].kind == STEP_KERNELS)
            sg_rpc(SG_OP_GRAPH_FREE, 0, 0, e->steps[i].kernels, NULL);
    }
    free(e->steps);
    e->steps = NULL;
    e->n = 0;
}

/* Makes the steps anew from the owned graph. */
static CUresult build(CUgraphExec e)
{
    struct parts p = {0};
    CUresult r;

    forget_steps(e);
    r = compile(e, e->graph, &p);
    if (r == CUDA_SUCCESS)
        r = flush(e, &p);
    free(p.v);
    return r;
}

static CUresult instantiate(CUgraphExec *pe, CUgraph g, unsigned long long flags)
{
    CUgraphExec e;
    CUresult r;

    SG_ENTER();
    if (!pe || !sg_is(g, SG_GRAPH) || flags & ~15ull)
        return CUDA_ERROR_INVALID_VALUE;
    e = sg_object_new(sizeof(*e));
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->magic = SG_EXEC;
    e->flags = flags;
    e->graph = sg_graph_clone(g);
    r = e->graph ? build(e) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS) {
        forget_steps(e);
        if (e->graph)
            sg_graph_free(e->graph);
        sg_object_free(e, sizeof(*e));
        return r;
    }
    *pe = e;
    return CUDA_SUCCESS;
}

#define INSTANTIATE(name)                                                                             \
    SG_API CUresult name(CUgraphExec *pe, CUgraph g, CUgraphNode *bad, char *log, size_t n)           \
    {                                                                                                 \
        if (bad)                                                                                      \
            *bad = NULL;                                                                              \
        if (log && n)                                                                                 \
            *log = 0;                                                                                 \
        return instantiate(pe, g, 0);                                                                 \
    }
INSTANTIATE(cuGraphInstantiate)
INSTANTIATE(cuGraphInstantiate_v2)

SG_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *pe, CUgraph g, unsigned long long flags)
{
    return instantiate(pe, g, flags);
}

static CUresult with_params(CUgraphExec *pe, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    CUresult r;

    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    r = instantiate(pe, g, p->flags);
    p->hErrNode_out = NULL;
    p->result_out = r == CUDA_SUCCESS ? 0 : 1;
    return r;
}

SG_API CUresult cuGraphInstantiateWithParams(CUgraphExec *pe, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    return with_params(pe, g, p);
}

SG_API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *pe, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p)
{
    return with_params(pe, g, p);
}

static bool valid(CUgraphExec e)
{
    return sg_is(e, SG_EXEC);
}

SG_API CUresult cuGraphExecDestroy(CUgraphExec e)
{
    SG_ENTER();
    if (!valid(e))
        return CUDA_ERROR_INVALID_VALUE;
    e->magic = 0;
    forget_steps(e);
    sg_graph_free(e->graph);
    sg_object_free(e, sizeof(*e));
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphExecGetFlags(CUgraphExec e, cuuint64_t *flags)
{
    SG_ENTER();
    if (!valid(e) || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = e->flags;
    return CUDA_SUCCESS;
}

/* ---- launch ------------------------------------------------------------------------- */

static CUresult launch(CUgraphExec e, CUstream h, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (!valid(e))
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_of(h, pt, &s);
    if (r == CUDA_SUCCESS)
        r = sg_capturing(s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing) {
        union sg_node_params p = {.child = sg_graph_clone(e->graph)};

        if (!p.child)
            return CUDA_ERROR_OUT_OF_MEMORY;
        p.child->owned = true;
        r = sg_capture_add(s, CU_GRAPH_NODE_TYPE_GRAPH, &p);
        if (r != CUDA_SUCCESS)
            sg_graph_free(p.child);
        return r;
    }
    for (size_t i = 0; i < e->n && r == CUDA_SUCCESS; i++) {
        struct step *t = &e->steps[i];

        switch (t->kind) {
        case STEP_KERNELS:
            r = sg_submit(s, SG_ENTRY_GRAPH, t->kernels, 0, NULL);
            break;
        case STEP_COPY:
            r = sg_copy_async(&t->node->p.memcpy, s, pt);
            break;
        case STEP_SET:
            r = sg_set_async(&t->node->p.memset, s, pt);
            break;
        case STEP_HOST:
            r = sg_host_function(s, t->node->p.host.fn, t->node->p.host.userData, NULL);
            break;
        case STEP_RECORD:
            r = cuEventRecord(t->node->p.event, s);
            break;
        case STEP_WAIT:
            r = cuStreamWaitEvent(s, t->node->p.event, 0);
            break;
        }
    }
    return r;
}

SG_API CUresult cuGraphLaunch(CUgraphExec e, CUstream s)
{
    return launch(e, s, false);
}

SG_API CUresult cuGraphLaunch_ptsz(CUgraphExec e, CUstream s)
{
    return launch(e, s, true);
}

static CUresult upload(CUgraphExec e, CUstream h, bool pt)
{
    CUstream s;

    SG_ENTER();
    return valid(e) ? sg_stream_of(h, pt, &s) : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuGraphUpload(CUgraphExec e, CUstream s)
{
    return upload(e, s, false);
}

SG_API CUresult cuGraphUpload_ptsz(CUgraphExec e, CUstream s)
{
    return upload(e, s, true);
}

/* ---- change -------------------------------------------------------------------------- */

/* The executable graph's copy of a node of the graph that it was made of. */
static CUgraphNode own(CUgraphExec e, CUgraphNode n, CUgraphNodeType type)
{
    for (size_t i = 0; n && i < e->graph->n; i++) {
        if (e->graph->nodes[i]->clone_of == n && (e->graph->nodes[i]->type == type))
            return e->graph->nodes[i];
    }
    return NULL;
}

/* One call for a kind of node: find the copy, set it, make the steps anew. */
#define SET(name, node_type, params, setter)                                \
    SG_API CUresult name(CUgraphExec e, CUgraphNode n, const params *p)     \
    {                                                                       \
        CUgraphNode m;                                                      \
        CUresult r;                                                         \
                                                                            \
        SG_ENTER();                                                         \
        if (!valid(e) || !p || !(m = own(e, n, node_type)))                 \
            return CUDA_ERROR_INVALID_VALUE;                                \
        r = setter(m, p);                                                   \
        return r == CUDA_SUCCESS ? build(e) : r;                            \
    }
SET(cuGraphExecKernelNodeSetParams, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS_v1, cuGraphKernelNodeSetParams)
SET(cuGraphExecKernelNodeSetParams_v2, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS, cuGraphKernelNodeSetParams_v2)
SET(cuGraphExecHostNodeSetParams, CU_GRAPH_NODE_TYPE_HOST, CUDA_HOST_NODE_PARAMS, cuGraphHostNodeSetParams)

SG_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec e, CUgraphNode n, const CUDA_MEMCPY3D *p,
                                               CUcontext ctx SG_UNUSED)
{
    CUgraphNode m;

    SG_ENTER();
    if (!valid(e) || !p || !(m = own(e, n, CU_GRAPH_NODE_TYPE_MEMCPY)))
        return CUDA_ERROR_INVALID_VALUE;
    return cuGraphMemcpyNodeSetParams(m, p);
}

SG_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec e, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p,
                                               CUcontext ctx SG_UNUSED)
{
    CUgraphNode m;

    SG_ENTER();
    if (!valid(e) || !p || !(m = own(e, n, CU_GRAPH_NODE_TYPE_MEMSET)))
        return CUDA_ERROR_INVALID_VALUE;
    return cuGraphMemsetNodeSetParams(m, p);
}

SG_API CUresult cuGraphNodeSetEnabled(CUgraphExec e, CUgraphNode n, unsigned int enabled)
{
    CUgraphNode m;

    SG_ENTER();
    if (!valid(e) || !sg_is(n, SG_NODE) || !(m = own(e, n, n->type)))
        return CUDA_ERROR_INVALID_VALUE;
    m->disabled = !enabled;
    return build(e);
}

SG_API CUresult cuGraphNodeGetEnabled(CUgraphExec e, CUgraphNode n, unsigned int *enabled)
{
    CUgraphNode m;

    SG_ENTER();
    if (!valid(e) || !enabled || !sg_is(n, SG_NODE) || !(m = own(e, n, n->type)))
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = !m->disabled;
    return CUDA_SUCCESS;
}

/* Takes over a graph of the same shape. */
static CUgraphExecUpdateResult same_shape(CUgraph a, CUgraph b, CUgraphNode *bad)
{
    if (a->n != b->n)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < a->n; i++) {
        *bad = b->nodes[i];
        if (a->nodes[i]->type != b->nodes[i]->type)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (a->nodes[i]->ndeps != b->nodes[i]->ndeps)
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    *bad = NULL;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static CUresult update(CUgraphExec e, CUgraph g, CUgraphNode *bad, CUgraphExecUpdateResult *result)
{
    CUgraphNode node = NULL;
    CUgraph copy;

    SG_ENTER();
    if (!valid(e) || !sg_is(g, SG_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *result = same_shape(e->graph, g, &node);
    if (bad)
        *bad = node;
    if (*result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    copy = sg_graph_clone(g);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* Nodes are still named by the graph that the first instantiation saw. */
    for (size_t i = 0; i < copy->n; i++)
        copy->nodes[i]->clone_of = e->graph->nodes[i]->clone_of;
    sg_graph_free(e->graph);
    e->graph = copy;
    return build(e);
}

SG_API CUresult cuGraphExecUpdate(CUgraphExec e, CUgraph g, CUgraphNode *bad, CUgraphExecUpdateResult *result)
{
    CUgraphExecUpdateResult r = CU_GRAPH_EXEC_UPDATE_ERROR;
    CUresult ret = update(e, g, bad, &r);

    if (result)
        *result = r;
    return ret;
}

SG_API CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    CUgraphExecUpdateResult r = CU_GRAPH_EXEC_UPDATE_ERROR;
    CUgraphNode bad = NULL;
    CUresult ret = update(e, g, &bad, &r);

    if (info)
        *info = (CUgraphExecUpdateResultInfo){.result = r, .errorNode = bad};
    return ret;
}

/* Memory nodes are not simulated, so nothing is held for graphs. */
SG_API CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
    SG_ENTER();
    return sg_dev(dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute a SG_UNUSED, void *value)
{
    SG_ENTER();
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    *(cuuint64_t *)value = 0;
    return CUDA_SUCCESS;
}
