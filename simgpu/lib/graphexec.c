// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graphexec.c: executable graphs. A graph becomes a program of steps in
 * dependency order. Neighbouring kernels and copies are one step that the host
 * process knows as a whole, with the branches that may overlap, so a launch
 * submits few entries however many nodes there are.
 */
#include "sg.h"

#define PARTS_A_MESSAGE ((SG_MAX_MESSAGE - sizeof(struct sg_request)) / sizeof(struct sg_graph_part))
#define BRANCHES 16u /* more nodes side by side than this share one */
#define NOWHERE UINT32_MAX

/* The run of device work that is being collected. */
struct run {
    struct sg_program *to;
    struct sg_graph_part *v;
    size_t n, cap;
    struct sg_move *moves;
    size_t nmoves;
    unsigned branches;
    uint64_t parts[BRANCHES];          /* of each branch so far */
    uint64_t seen[BRANCHES][BRANCHES]; /* parts of another branch that one is behind */
    bool growing; /* the newest part may take in a kernel that is like it */
    CUgraphNode tail[BRANCHES];
    unsigned generation; /* moves at each flush: nodes before it are done */
};

/* Where the nodes of the graph that is compiled have gone. */
struct place {
    uint32_t branch;
    unsigned generation;
    uint64_t end;    /* parts of the branch up to the node */
    unsigned fan;    /* nodes that depend on it */
};

/* Tells the host process about the parts. */
static CUresult define(struct run *x, uint32_t *ret)
{
    uint64_t id = 0;
    CUresult r = CUDA_SUCCESS;

    for (size_t at = 0; at < x->n && r == CUDA_SUCCESS; at += PARTS_A_MESSAGE) {
        size_t k = x->n - at < PARTS_A_MESSAGE ? x->n - at : PARTS_A_MESSAGE;
        struct sg_request req = {.op = at ? SG_OP_GRAPH_APPEND : SG_OP_GRAPH_DEFINE, .a = id};
        struct sg_reply rep;

        req.len = (uint32_t)(k * sizeof(*x->v));
        r = sg_call(&req, x->v + at, &rep, NULL, 0, NULL);
        if (r == CUDA_SUCCESS)
            id = rep.a;
        else if (at)
            sg_rpc(SG_OP_GRAPH_FREE, 0, 0, id, NULL);
    }
    *ret = (uint32_t)id;
    return r;
}

static struct sg_step *step(struct sg_program *p, enum sg_step_kind kind, CUgraphNode n)
{
    struct sg_step *v = realloc(p->steps, (p->n + 1) * sizeof(*v));

    if (!v)
        return NULL;
    p->steps = v;
    v[p->n] = (struct sg_step){.kind = kind, .node = n};
    return &v[p->n++];
}

/* Closes the run: its bytes move first, then its work is submitted. */
static CUresult flush(struct run *x)
{
    CUresult r = CUDA_SUCCESS;
    uint32_t id = 0;
    struct sg_step *s;

    if (x->nmoves) {
        s = step(x->to, SG_STEP_MOVE, NULL);
        if (!s)
            return CUDA_ERROR_OUT_OF_MEMORY;
        s->moves = x->moves;
        s->nmoves = x->nmoves;
        x->moves = NULL;
        x->nmoves = 0;
    }
    if (x->n) {
        r = define(x, &id);
        s = r == CUDA_SUCCESS ? step(x->to, SG_STEP_DEVICE, NULL) : NULL;
        if (s)
            s->device = id;
        else if (r == CUDA_SUCCESS)
            r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    x->n = 0;
    x->branches = 0;
    memset(x->parts, 0, sizeof(x->parts));
    memset(x->seen, 0, sizeof(x->seen));
    memset(x->tail, 0, sizeof(x->tail));
    x->generation++;
    return r;
}

static CUresult part(struct run *x, const struct sg_graph_part *p)
{
    struct sg_graph_part *last = x->n ? &x->v[x->n - 1] : NULL;

    if (last && x->growing && p->kind == SG_PART_KERNEL && last->count < UINT32_MAX) {
        struct sg_graph_part same = *last;

        same.count = 1;
        if (!memcmp(&same, p, sizeof(same))) {
            last->count++;
            return CUDA_SUCCESS;
        }
    }
    if (x->n == x->cap) {
        size_t cap = x->cap ? x->cap * 2 : 64;
        struct sg_graph_part *v = realloc(x->v, cap * sizeof(*v));

        if (!v)
            return CUDA_ERROR_OUT_OF_MEMORY;
        x->v = v;
        x->cap = cap;
    }
    x->v[x->n++] = *p;
    x->growing = true;
    if (p->kind != SG_PART_JOIN)
        x->parts[p->branch]++;
    return CUDA_SUCCESS;
}

/* The branch in which n goes on: that of a dependency that nothing has followed
 * yet, else a new one; it waits for the branches of the other dependencies. */
static CUresult enter(struct run *x, CUgraphNode n, const struct place *at, uint32_t *ret)
{
    uint32_t b = NOWHERE, first = NOWHERE;
    CUresult r = CUDA_SUCCESS;

    for (size_t k = 0; k < n->ndeps; k++) {
        const struct place *d = &at[n->deps[k]->order];

        if (d->generation != x->generation || d->branch == NOWHERE)
            continue;
        if (first == NOWHERE)
            first = d->branch;
        if (b == NOWHERE && x->tail[d->branch] == n->deps[k])
            b = d->branch;
    }
    if (b == NOWHERE)
        b = x->branches < BRANCHES ? x->branches++ : first != NOWHERE ? first : 0;
    x->tail[b] = n;
    for (size_t k = 0; k < n->ndeps && r == CUDA_SUCCESS; k++) {
        const struct place *d = &at[n->deps[k]->order];
        struct sg_graph_part join = {.kind = SG_PART_JOIN, .branch = b};

        if (d->generation != x->generation || d->branch == NOWHERE || d->branch == b ||
            x->seen[b][d->branch] >= d->end)
            continue;
        join.other = d->branch;
        join.bytes = x->seen[b][d->branch] = d->end;
        r = part(x, &join);
    }
    *ret = b;
    return r;
}

static CUresult kernel(struct run *x, CUgraphNode n, uint32_t branch)
{
    const CUDA_KERNEL_NODE_PARAMS *k = &n->p.kernel;
    struct sg_graph_part p = {.kind = SG_PART_KERNEL, .count = 1, .branch = branch};
    CUresult r = sg_func_check(k->func);

    if (r == CUDA_SUCCESS)
        r = sg_func_number(k->func, &p.function);
    if (r == CUDA_SUCCESS) {
        const unsigned d[6] = {k->gridDimX, k->gridDimY, k->gridDimZ, k->blockDimX, k->blockDimY, k->blockDimZ};

        p.shape = sg_shape(k->func, n->ctx ? n->ctx->dev : 0, d, k->sharedMemBytes);
    }
    return r == CUDA_SUCCESS ? part(x, &p) : r;
}

static CUresult move(struct run *x, CUgraphNode n, uint32_t branch)
{
    struct sg_move *v = realloc(x->moves, (x->nmoves + 1) * sizeof(*v));
    struct sg_graph_part p = {.branch = branch, .count = 1};

    if (!v)
        return CUDA_ERROR_OUT_OF_MEMORY;
    x->moves = v;
    memset(&v[x->nmoves], 0, sizeof(*v));
    if (n->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        v[x->nmoves].set = true;
        v[x->nmoves].fill = n->p.memset;
        p.kind = SG_PART_FILL;
        p.bytes = n->p.memset.width * n->p.memset.elementSize * n->p.memset.height;
    } else {
        const CUDA_MEMCPY3D *c = &n->p.memcpy;

        v[x->nmoves].copy = *c;
        p.kind = SG_PART_COPY;
        p.bytes = c->WidthInBytes * c->Height * c->Depth;
        if (p.bytes)
            p.function = sg_copy_way(c).arg;
    }
    x->nmoves++;
    return p.bytes ? part(x, &p) : CUDA_SUCCESS;
}

static CUresult compile(struct run *x, CUgraph g, uint32_t branch);

static CUresult condition(struct run *x, CUgraphNode n)
{
    CUresult r = flush(x);
    struct sg_step *s = r == CUDA_SUCCESS ? step(x->to, SG_STEP_CONDITION, n) : NULL;
    struct sg_program *bodies;

    if (!s)
        return r == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : r;
    bodies = s->bodies = calloc(n->p.cond.size, sizeof(*bodies));
    if (!bodies)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < n->p.cond.size && r == CUDA_SUCCESS; i++) {
        struct run inner = {.to = &bodies[i]};

        r = compile(&inner, n->p.cond.bodies[i], NOWHERE);
        if (r == CUDA_SUCCESS)
            r = flush(&inner);
        free(inner.v);
        free(inner.moves);
    }
    return r;
}

/* Adds the nodes of g. branch: the one that all of them share, in a graph that
 * is a node of another one. */
static CUresult compile(struct run *x, CUgraph g, uint32_t branch)
{
    static const enum sg_step_kind kind_of[] = {
        [CU_GRAPH_NODE_TYPE_HOST] = SG_STEP_HOST,
        [CU_GRAPH_NODE_TYPE_WAIT_EVENT] = SG_STEP_WAIT,
        [CU_GRAPH_NODE_TYPE_EVENT_RECORD] = SG_STEP_RECORD,
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = SG_STEP_SIGNAL,
        [CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = SG_STEP_SEM_WAIT,
        [CU_GRAPH_NODE_TYPE_MEM_ALLOC] = SG_STEP_ALLOC,
        [CU_GRAPH_NODE_TYPE_MEM_FREE] = SG_STEP_FREE,
        [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = SG_STEP_BATCH,
    };
    CUgraphNode *order;
    struct place *at;
    CUresult r = sg_graph_order(g, &order);

    if (r != CUDA_SUCCESS)
        return r;
    at = calloc(g->n + 1, sizeof(*at));
    if (!at)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; at && i < g->n; i++) {
        for (size_t d = 0; d < g->nodes[i]->ndeps; d++)
            at[g->nodes[i]->deps[d]->order].fan++;
    }
    for (size_t i = 0; i < g->n && r == CUDA_SUCCESS; i++) {
        CUgraphNode n = order[i];
        uint32_t b = branch;
        size_t k = n->order;

        if (b == NOWHERE)
            r = enter(x, n, at, &b);
        if (r != CUDA_SUCCESS)
            break;
        at[k].branch = b;
        at[k].generation = x->generation;
        at[k].end = x->parts[b];
        if (n->disabled)
            continue;
        switch (n->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
            r = kernel(x, n, b);
            break;
        case CU_GRAPH_NODE_TYPE_MEMCPY:
        case CU_GRAPH_NODE_TYPE_MEMSET:
            r = move(x, n, b);
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            r = compile(x, n->p.child, b);
            /* Its newest part may lie in a run that began inside it. */
            at[k].generation = x->generation;
            x->tail[b] = n;
            if (x->branches <= b)
                x->branches = b + 1;
            break;
        case CU_GRAPH_NODE_TYPE_EMPTY:
            break;
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            r = condition(x, n);
            break;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
            /* Accounts only, made before all other steps. */
            if (!step(x->to, kind_of[n->type], n))
                r = CUDA_ERROR_OUT_OF_MEMORY;
            break;
        default:
            r = flush(x);
            if (r == CUDA_SUCCESS && !step(x->to, kind_of[n->type], n))
                r = CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (at[k].generation == x->generation)
            at[k].end = x->parts[b];
        x->growing = x->growing && at[k].fan <= 1; /* others wait for this one alone */
    }
    free(at);
    free(order);
    return r;
}

void sg_program_forget(struct sg_program *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct sg_step *s = &p->steps[i];

        if (s->kind == SG_STEP_DEVICE)
            sg_rpc(SG_OP_GRAPH_FREE, 0, 0, s->device, NULL);
        for (unsigned k = 0; s->bodies && k < s->node->p.cond.size; k++)
            sg_program_forget(&s->bodies[k]);
        free(s->bodies);
        free(s->moves);
    }
    free(p->steps);
    *p = (struct sg_program){0};
}

CUresult sg_exec_build(CUgraphExec e)
{
    struct sg_program old = e->program, new = {0};
    struct run x = {.to = &new};
    CUresult r = compile(&x, e->graph, NOWHERE);

    if (r == CUDA_SUCCESS)
        r = flush(&x);
    free(x.v);
    free(x.moves);
    if (r != CUDA_SUCCESS) {
        sg_program_forget(&new);
        return r; /* the old program stands */
    }
    sg_program_forget(&old);
    e->program = new;
    return CUDA_SUCCESS;
}
