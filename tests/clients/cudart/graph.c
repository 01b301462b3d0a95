// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graph.c: graphs. The handles are the driver's own; a node's parameters differ where
 * the runtime names a kernel by its host function or leaves out the context. */
#include "rt.h"

RT_PASS_BARE(cudaGraphCreate, cuGraphCreate(g, flags), CUgraph *g, unsigned int flags)
RT_PASS_BARE(cudaGraphDestroy, cuGraphDestroy(g), CUgraph g)
RT_PASS_BARE(cudaGraphClone, cuGraphClone(to, from), CUgraph *to, CUgraph from)
RT_PASS_BARE(cudaGraphDestroyNode, cuGraphDestroyNode(node), CUgraphNode node)
RT_PASS_BARE(cudaGraphGetNodes, cuGraphGetNodes(g, v, n), CUgraph g, CUgraphNode *v, size_t *n)
RT_PASS_BARE(cudaGraphGetRootNodes, cuGraphGetRootNodes(g, v, n), CUgraph g, CUgraphNode *v, size_t *n)
RT_PASS_BARE(cudaGraphNodeGetType, cuGraphNodeGetType(node, type), CUgraphNode node, CUgraphNodeType *type)
RT_PASS_BARE(cudaGraphDebugDotPrint, cuGraphDebugDotPrint(g, path, flags), CUgraph g, const char *path, unsigned int flags)
RT_PASS(cudaGraphInstantiate, cuGraphInstantiateWithFlags(x, g, flags), CUgraphExec *x, CUgraph g, unsigned long long flags)
RT_PASS(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags(x, g, flags), CUgraphExec *x, CUgraph g,
        unsigned long long flags)
RT_PASS(cudaGraphInstantiateWithParams, cuGraphInstantiateWithParams(x, g, p), CUgraphExec *x, CUgraph g,
        CUDA_GRAPH_INSTANTIATE_PARAMS *p)
RT_PASS(cudaGraphExecUpdate, cuGraphExecUpdate(x, g, info), CUgraphExec x, CUgraph g, CUgraphExecUpdateResultInfo *info)
RT_PASS(cudaGraphLaunch, cuGraphLaunch(x, s), CUgraphExec x, CUstream s)
RT_PASS(cudaGraphUpload, cuGraphUpload(x, s), CUgraphExec x, CUstream s)
RT_PASS(cudaGraphExecDestroy, cuGraphExecDestroy(x), CUgraphExec x)
RT_PASS_BARE(cudaUserObjectCreate, cuUserObjectCreate(o, p, fn, n, flags), CUuserObject *o, void *p, CUhostFn fn,
             unsigned int n, unsigned int flags)
RT_PASS_BARE(cudaUserObjectRetain, cuUserObjectRetain(o, n), CUuserObject o, unsigned int n)
RT_PASS_BARE(cudaUserObjectRelease, cuUserObjectRelease(o, n), CUuserObject o, unsigned int n)
RT_PASS_BARE(cudaGraphRetainUserObject, cuGraphRetainUserObject(g, o, n, flags), CUgraph g, CUuserObject o, unsigned int n,
             unsigned int flags)
RT_PASS_BARE(cudaGraphReleaseUserObject, cuGraphReleaseUserObject(g, o, n), CUgraph g, CUuserObject o, unsigned int n)
RT_PASS_BARE(cudaGraphAddEmptyNode, cuGraphAddEmptyNode(node, g, deps, n), CUgraphNode *node, CUgraph g,
             const CUgraphNode *deps, size_t n)
RT_PASS_BARE(cudaGraphAddHostNode, cuGraphAddHostNode(node, g, deps, n, p), CUgraphNode *node, CUgraph g,
             const CUgraphNode *deps, size_t n, const CUDA_HOST_NODE_PARAMS *p)
RT_PASS_BARE(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode(node, g, deps, n, child), CUgraphNode *node, CUgraph g,
             const CUgraphNode *deps, size_t n, CUgraph child)
RT_PASS_BARE(cudaGraphAddEventRecordNode, cuGraphAddEventRecordNode(node, g, deps, n, e), CUgraphNode *node, CUgraph g,
             const CUgraphNode *deps, size_t n, CUevent e)
RT_PASS_BARE(cudaGraphAddEventWaitNode, cuGraphAddEventWaitNode(node, g, deps, n, e), CUgraphNode *node, CUgraph g,
             const CUgraphNode *deps, size_t n, CUevent e)
RT_PASS_BARE(cudaGraphAddMemFreeNode, cuGraphAddMemFreeNode(node, g, deps, n, rt_ptr(p)), CUgraphNode *node, CUgraph g,
             const CUgraphNode *deps, size_t n, void *p)
RT_PASS_BARE(cudaGraphAddMemAllocNode, cuGraphAddMemAllocNode(node, g, deps, n, p), CUgraphNode *node, CUgraph g,
             const CUgraphNode *deps, size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *p)

RT(cudaGraphConditionalHandleCreate, CUgraphConditionalHandle *h, CUgraph g, unsigned int value, unsigned int flags)
{
    CUcontext c;

    RT_ENTER();
    RT_TRY((cudaError_t)rt_drv.cuCtxGetCurrent(&c));
    return RT_DRV(cuGraphConditionalHandleCreate(h, g, c, value, flags));
}

/* The edges' data came with 12.3, and in 13 the forms without them are gone. */
#if RT_MAJOR == 12
RT_PASS_BARE(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies(node, v, NULL, n), CUgraphNode node, CUgraphNode *v,
             size_t *n)
RT_PASS_BARE(cudaGraphNodeGetDependencies_v2, cuGraphNodeGetDependencies(node, v, data, n), CUgraphNode node, CUgraphNode *v,
             CUgraphEdgeData *data, size_t *n)
RT_PASS_BARE(cudaGraphAddDependencies, cuGraphAddDependencies(g, from, to, NULL, n), CUgraph g, const CUgraphNode *from,
             const CUgraphNode *to, size_t n)
RT_PASS_BARE(cudaGraphAddDependencies_v2, cuGraphAddDependencies(g, from, to, data, n), CUgraph g, const CUgraphNode *from,
             const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
RT_PASS_BARE(cudaGraphGetEdges, cuGraphGetEdges(g, from, to, NULL, n), CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n)
#else
RT_PASS_BARE(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies(node, v, data, n), CUgraphNode node, CUgraphNode *v,
             CUgraphEdgeData *data, size_t *n)
RT_PASS_BARE(cudaGraphAddDependencies, cuGraphAddDependencies(g, from, to, data, n), CUgraph g, const CUgraphNode *from,
             const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
RT_PASS_BARE(cudaGraphGetEdges, cuGraphGetEdges(g, from, to, data, n), CUgraph g, CUgraphNode *from, CUgraphNode *to,
             CUgraphEdgeData *data, size_t *n)
#endif

/* ---- nodes' parameters -------------------------------------------------------------------- */

struct kernel_params {
    const void *func;
    dim3 grid, block;
    unsigned int shared;
    void **args, **extra;
};

static cudaError_t kernel_params(const struct kernel_params *p, CUDA_KERNEL_NODE_PARAMS *ret)
{
    CUkernel k;
    cudaError_t e = rt_kernel(p->func, &k);
    CUDA_KERNEL_NODE_PARAMS d = {.gridDimX = p->grid.x, .gridDimY = p->grid.y, .gridDimZ = p->grid.z,
                                 .blockDimX = p->block.x, .blockDimY = p->block.y, .blockDimZ = p->block.z,
                                 .sharedMemBytes = p->shared, .kernelParams = p->args, .extra = p->extra};

    d.kern = e == RT_OK ? k : NULL;
    *ret = d;
    return e;
}

RT(cudaGraphAddKernelNode, CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n, const struct kernel_params *p)
{
    CUDA_KERNEL_NODE_PARAMS d;

    RT_ENTER();
    RT_TRY(p ? kernel_params(p, &d) : RT_INVALID_VALUE);
    return RT_DRV(cuGraphAddKernelNode(node, g, deps, n, &d));
}

RT(cudaGraphKernelNodeSetParams, CUgraphNode node, const struct kernel_params *p)
{
    CUDA_KERNEL_NODE_PARAMS d;

    RT_ENTER();
    RT_TRY(p ? kernel_params(p, &d) : RT_INVALID_VALUE);
    return RT_DRV(cuGraphKernelNodeSetParams(node, &d));
}

RT(cudaGraphExecKernelNodeSetParams, CUgraphExec x, CUgraphNode node, const struct kernel_params *p)
{
    CUDA_KERNEL_NODE_PARAMS d;

    RT_ENTER();
    RT_TRY(p ? kernel_params(p, &d) : RT_INVALID_VALUE);
    return RT_DRV(cuGraphExecKernelNodeSetParams(x, node, &d));
}

RT(cudaGraphAddMemcpyNode, CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n, const struct rt_copy3d *p)
{
    CUDA_MEMCPY3D d;
    CUcontext c;

    RT_ENTER();
    RT_TRY(p ? rt_copy3d(p, &d) : RT_INVALID_VALUE);
    RT_TRY((cudaError_t)rt_drv.cuCtxGetCurrent(&c));
    return RT_DRV(cuGraphAddMemcpyNode(node, g, deps, n, &d, c));
}

/* Pitch and height as the runtime's own structure, which is the driver's. */
RT(cudaGraphAddMemsetNode, CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n, const CUDA_MEMSET_NODE_PARAMS *p)
{
    CUcontext c;

    RT_ENTER();
    RT_TRY((cudaError_t)rt_drv.cuCtxGetCurrent(&c));
    return RT_DRV(cuGraphAddMemsetNode(node, g, deps, n, p, c));
}

/* Nodes by type. The runtime's kernel has a context or, in 13, an execution context
 * where the driver's has its two handles; those of memory have none. */
static cudaError_t add(CUgraphNode *node, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *data, size_t n,
                       CUgraphNodeParams *p)
{
    CUgraphNodeParams d;
    struct rt_copy3d copy;
    CUcontext c;
    cudaError_t e;

    RT_ENTER();
    if (!p)
        return rt_set(RT_INVALID_VALUE);
    RT_TRY((cudaError_t)rt_drv.cuCtxGetCurrent(&c));
    d = *p;
    if (p->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        RT_TRY(kernel_params((const struct kernel_params *)&p->kernel, &d.kernel));
    } else if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        memcpy(&copy, (const char *)&p->memcpy + offsetof(CUDA_MEMCPY_NODE_PARAMS, copyParams), sizeof(copy));
        RT_TRY(rt_copy3d(&copy, &d.memcpy.copyParams));
        d.memcpy.copyCtx = c;
    } else if (p->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        d.memset.ctx = c;
    } else if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
        d.reserved1[3] = (long long)(uintptr_t)c; /* behind handle, type and size, and the bodies */
    }
    e = RT_DRV(cuGraphAddNode(node, g, deps, data, n, &d));
    /* What the driver gives back lies in the same place: an allocation, or the bodies. */
    if (e == RT_OK && p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        p->alloc.dptr = d.alloc.dptr;
    if (e == RT_OK && p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        p->reserved1[2] = d.reserved1[2];
    return e;
}

#if RT_MAJOR == 12
RT(cudaGraphAddNode, CUgraphNode *node, CUgraph g, const CUgraphNode *deps, size_t n, CUgraphNodeParams *p)
{
    return add(node, g, deps, NULL, n, p);
}
RT(cudaGraphAddNode_v2, CUgraphNode *node, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *data, size_t n,
   CUgraphNodeParams *p)
#else
RT(cudaGraphAddNode, CUgraphNode *node, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *data, size_t n,
   CUgraphNodeParams *p)
#endif
{
    return add(node, g, deps, data, n, p);
}
