// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphdot.c: a graph as a file for graphviz. */
#include <stdio.h>

#include "sg.h"

#define VERBOSE 1u

static const char *const kinds[] = {
    "KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY", "EVENT_WAIT", "EVENT_RECORD", "EXT_SEMAS_SIGNAL",
    "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL",
};

/* A name as it may stand in a label. */
static void escaped(FILE *f, const char *s)
{
    for (; *s; s++) {
        if (strchr("\"\\{}|<>", *s))
            fputc('\\', f);
        fputc(*s, f);
    }
}

static void label(FILE *f, CUgraphNode n, unsigned flags)
{
    fprintf(f, "%s\\nID %u", kinds[n->type], n->id);
    switch (n->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        fputs("\\n", f);
        if (sg_func_check(n->p.kernel.func) == CUDA_SUCCESS)
            escaped(f, n->p.kernel.func->name);
        if (flags & VERBOSE)
            fprintf(f, "\\n(%u,%u,%u) x (%u,%u,%u), %u B", n->p.kernel.gridDimX, n->p.kernel.gridDimY,
                    n->p.kernel.gridDimZ, n->p.kernel.blockDimX, n->p.kernel.blockDimY, n->p.kernel.blockDimZ,
                    n->p.kernel.sharedMemBytes);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (flags & VERBOSE)
            fprintf(f, "\\n%zu x %zu x %zu B", n->p.memcpy.WidthInBytes, n->p.memcpy.Height, n->p.memcpy.Depth);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        if (flags & VERBOSE)
            fprintf(f, "\\n%zu x %zu of %u B, value %u", n->p.memset.width, n->p.memset.height,
                    n->p.memset.elementSize, n->p.memset.value);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        if (flags & VERBOSE)
            fprintf(f, "\\n%zu B", n->p.alloc.params.bytesize);
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        fprintf(f, "\\n%s", ((const char *[]){"IF", "WHILE", "SWITCH"})[n->p.cond.type]);
        break;
    default:
        break;
    }
}

static void graph(FILE *f, CUgraph g, unsigned flags)
{
    fprintf(f, "subgraph cluster_%u {\nlabel=\"graph_%u\" graph[style=\"dashed\"];\n", g->id, g->id);
    for (size_t i = 0; i < g->n; i++) {
        CUgraphNode n = g->nodes[i];

        fprintf(f, "\"graph_%u_node_%u\"[shape=\"%s\" label=\"", g->id, n->id,
                n->type == CU_GRAPH_NODE_TYPE_KERNEL ? "octagon" : "rectangle");
        label(f, n, flags);
        fputs("\"];\n", f);
    }
    for (size_t i = 0; i < g->n; i++) {
        CUgraphNode n = g->nodes[i];

        for (size_t k = 0; k < n->ndeps; k++)
            fprintf(f, "\"graph_%u_node_%u\" -> \"graph_%u_node_%u\"%s;\n", g->id, n->deps[k]->id, g->id, n->id,
                    n->edges[k].type ? "[label=\"programmatic\"]" : "");
    }
    for (size_t i = 0; i < g->n; i++) {
        CUgraphNode n = g->nodes[i];

        if (n->type == CU_GRAPH_NODE_TYPE_GRAPH)
            graph(f, n->p.child, flags);
        for (unsigned k = 0; n->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && k < n->p.cond.size; k++)
            graph(f, n->p.cond.bodies[k], flags);
    }
    fputs("}\n", f);
}

CUresult sg_graph_dot(CUgraph g, const char *path, unsigned flags)
{
    FILE *f = fopen(path, "we");
    bool bad;

    if (!f)
        return CUDA_ERROR_OPERATING_SYSTEM;
    fputs("digraph dot {\n", f);
    graph(f, g, flags);
    fputs("}\n", f);
    bad = ferror(f);
    return fclose(f) || bad ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
