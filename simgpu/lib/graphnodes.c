// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphnodes.c: what programs ask of a node and change of it. */
#include "sg.h"

SG_API CUresult cuGraphNodeGetType(CUgraphNode n, CUgraphNodeType *type)
{
    SG_ENTER();
    if (!type || !sg_is(n, SG_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    *type = n->type;
    return CUDA_SUCCESS;
}

static CUresult set(CUgraphNode n, CUgraphNodeType type, CUgraphNodeParams *p)
{
    SG_ENTER();
    if (!p || !sg_is(n, SG_NODE) || n->type != type)
        return CUDA_ERROR_INVALID_VALUE;
    p->type = type;
    return sg_params_set(n, p);
}

SG_API CUresult cuGraphNodeSetParams(CUgraphNode n, CUgraphNodeParams *p)
{
    SG_ENTER();
    if (!p || !sg_is(n, SG_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    return sg_params_set(n, p);
}

/* Is n a node of that kind, and is there room for the answer? */
static CUresult ask(CUgraphNode n, CUgraphNodeType type, const void *to)
{
    SG_ENTER();
    return to && sg_is(n, SG_NODE) && n->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* One pair of calls for a kind: the parameters out of, and into, a field. */
#define PAIR(kind, node_type, params, field, get)                              \
    SG_API CUresult cuGraph##kind##NodeGetParams(CUgraphNode n, params *out)    \
    {                                                                           \
        CUresult r = ask(n, node_type, out);                                    \
                                                                                \
        if (r == CUDA_SUCCESS)                                                  \
            memcpy(out, get, sizeof(*out));                                     \
        return r;                                                               \
    }                                                                           \
    SG_API CUresult cuGraph##kind##NodeSetParams(CUgraphNode n, const params *in) \
    {                                                                           \
        CUgraphNodeParams p = {0};                                              \
                                                                                \
        if (in)                                                                 \
            memcpy(field, in, sizeof(*in));                                     \
        return set(n, node_type, in ? &p : NULL);                               \
    }
PAIR(Memcpy, CU_GRAPH_NODE_TYPE_MEMCPY, CUDA_MEMCPY3D, &p.memcpy.copyParams, &n->p.memcpy)
PAIR(Memset, CU_GRAPH_NODE_TYPE_MEMSET, CUDA_MEMSET_NODE_PARAMS, &p.memset, &n->p.memset)
PAIR(Host, CU_GRAPH_NODE_TYPE_HOST, CUDA_HOST_NODE_PARAMS, &p.host, &n->p.host)
PAIR(BatchMemOp, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CUDA_BATCH_MEM_OP_NODE_PARAMS, p.reserved1, &n->p.batch)
PAIR(ExternalSemaphoresSignal, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, p.reserved1,
     &n->p.sems)
PAIR(ExternalSemaphoresWait, CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, CUDA_EXT_SEM_WAIT_NODE_PARAMS, p.reserved1,
     &n->p.sems)

SG_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *k)
{
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_KERNEL, k);

    if (r == CUDA_SUCCESS)
        *k = n->p.kernel;
    return r;
}

SG_API CUresult cuGraphKernelNodeGetParams(CUgraphNode n, CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_KERNEL, k);

    if (r == CUDA_SUCCESS)
        memcpy(k, &n->p.kernel, sizeof(*k));
    return r;
}

SG_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *k)
{
    CUgraphNodeParams p = {0};

    if (k)
        p.kernel = *k;
    return set(n, CU_GRAPH_NODE_TYPE_KERNEL, k ? &p : NULL);
}

SG_API CUresult cuGraphKernelNodeSetParams(CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
    CUgraphNodeParams p = {0};

    if (k)
        memcpy(&p.kernel, k, sizeof(*k));
    return set(n, CU_GRAPH_NODE_TYPE_KERNEL, k ? &p : NULL);
}

#define EVENT(kind, node_type)                                                  \
    SG_API CUresult cuGraphEvent##kind##NodeGetEvent(CUgraphNode n, CUevent *e)  \
    {                                                                           \
        CUresult r = ask(n, node_type, e);                                      \
                                                                                \
        if (r == CUDA_SUCCESS)                                                  \
            *e = n->p.event;                                                    \
        return r;                                                               \
    }                                                                           \
    SG_API CUresult cuGraphEvent##kind##NodeSetEvent(CUgraphNode n, CUevent e)   \
    {                                                                           \
        CUgraphNodeParams p = {.eventRecord = {e}};                             \
                                                                                \
        return set(n, node_type, &p);                                           \
    }
EVENT(Record, CU_GRAPH_NODE_TYPE_EVENT_RECORD)
EVENT(Wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT)

SG_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode n, CUgraph *pg)
{
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_GRAPH, pg);

    if (r == CUDA_SUCCESS)
        *pg = n->p.child;
    return r;
}

SG_API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS *a)
{
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_MEM_ALLOC, a);

    if (r == CUDA_SUCCESS)
        *a = n->p.alloc.params;
    return r;
}

SG_API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode n, CUdeviceptr *p)
{
    CUresult r = ask(n, CU_GRAPH_NODE_TYPE_MEM_FREE, p);

    if (r == CUDA_SUCCESS)
        *p = sg_graph_block_address(n->p.free);
    return r;
}

/* ---- attributes of kernels ------------------------------------------------------------ */

/* Which of the launch attributes a kernel node has. */
static bool known(CUkernelNodeAttrID a)
{
    switch ((int)a) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return true;
    default:
        return false;
    }
}

static bool kernel(CUgraphNode n)
{
    return sg_is(n, SG_NODE) && n->type == CU_GRAPH_NODE_TYPE_KERNEL;
}

SG_API CUresult cuGraphKernelNodeGetAttribute(CUgraphNode n, CUkernelNodeAttrID a, CUkernelNodeAttrValue *v)
{
    SG_ENTER();
    if (!kernel(n) || !v || !known(a))
        return CUDA_ERROR_INVALID_VALUE;
    memset(v, 0, sizeof(*v));
    if (n->attributes)
        *v = n->attributes->value[a];
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphKernelNodeSetAttribute(CUgraphNode n, CUkernelNodeAttrID a, const CUkernelNodeAttrValue *v)
{
    SG_ENTER();
    if (!kernel(n) || !v)
        return CUDA_ERROR_INVALID_VALUE;
    if (a == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        return CUDA_ERROR_NOT_SUPPORTED; /* kernels do nothing, so none can update a node */
    if (!known(a))
        return CUDA_ERROR_INVALID_VALUE;
    if (!n->attributes && !(n->attributes = calloc(1, sizeof(*n->attributes))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    n->attributes->set |= 1u << a;
    n->attributes->value[a] = *v;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    SG_ENTER();
    if (!kernel(dst) || !kernel(src))
        return CUDA_ERROR_INVALID_VALUE;
    if (dst == src)
        return CUDA_SUCCESS;
    if (!src->attributes) {
        free(dst->attributes);
        dst->attributes = NULL;
        return CUDA_SUCCESS;
    }
    if (!dst->attributes && !(dst->attributes = calloc(1, sizeof(*dst->attributes))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *dst->attributes = *src->attributes;
    return CUDA_SUCCESS;
}
