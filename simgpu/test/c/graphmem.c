// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graphmem.c: memory nodes, and conditional nodes. "loop" makes a while run 5
 * times, "yes" an if true, "third" a switch take its third body.
 */
#include "graphs.h"

struct conditional { /* as it lies in CUgraphNodeParams */
    CUgraphConditionalHandle handle;
    unsigned type, size;
    CUgraph *bodies;
    CUcontext ctx;
};

static void nothing(void *arg)
{
    (void)arg;
}

/* ---- memory --------------------------------------------------------------------------- */

static uint64_t graph_mem(CUgraphMem_attribute at)
{
    cuuint64_t v;

    OK(cuDeviceGetGraphMemAttribute(0, at, &v));
    return v;
}

static size_t used(void)
{
    size_t left, total;

    OK(cuMemGetInfo_v2(&left, &total));
    return total - left;
}

static CUDA_MEM_ALLOC_NODE_PARAMS mib(size_t n)
{
    return (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
        .bytesize = n << 20};
}

static void memory(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS m = mib(64), get;
    size_t before = used();
    CUgraphNode n1, n2, n3;
    CUgraphExec e, e2;
    CUgraph g, c;
    CUdeviceptr p;

    /* Freed in the graph: the bytes stay with the device until they are trimmed. */
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddMemAllocNode(&n1, g, NULL, 0, &m));
    n2 = kernel(g, n1, ms);
    OK(cuGraphAddMemFreeNode(&n3, g, &n2, 1, m.dptr));
    WANT(cuGraphAddMemFreeNode(&n3, g, &n2, 1, m.dptr), CUDA_ERROR_INVALID_VALUE);
    WANT(cuGraphAddMemFreeNode(&n3, g, &n2, 1, m.dptr + 512), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphMemAllocNodeGetParams(n1, &get));
    TRUE(get.dptr == m.dptr && get.bytesize == m.bytesize);
    OK(cuGraphMemFreeNodeGetParams(n3, &p));
    TRUE(p == m.dptr);
    WANT(cuGraphClone(&c, g), CUDA_ERROR_NOT_SUPPORTED);
    WANT(cuGraphDestroyNode(n2), CUDA_ERROR_NOT_SUPPORTED);
    WANT(cuGraphRemoveDependencies(g, &n1, &n2, 1), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuGraphCreate(&c, 0));
    WANT(cuGraphAddChildGraphNode(&n1, c, NULL, 0, g), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuGraphDestroy(c));
    e = ready(g);
    WANT(cuGraphInstantiateWithFlags(&e2, g, 0), CUDA_ERROR_NOT_SUPPORTED);
    TRUE(used() == before);
    for (int i = 0; i < 3; i++)
        OK(cuGraphLaunch(e, s));
    OK(cuStreamSynchronize(s));
    TRUE(used() == before + (64u << 20));
    TRUE(graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0 && graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == 64u << 20);
    TRUE(graph_mem(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 64u << 20);
    OK(cuDeviceGraphMemTrim(0));
    TRUE(used() == before && graph_mem(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0);
    OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &(cuuint64_t){0}));
    WANT(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &(cuuint64_t){1}), CUDA_ERROR_INVALID_VALUE);
    TRUE(graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) == 0);
    OK(cuGraphExecDestroy(e));
    e = ready(g);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));

    /* Not freed in the graph: the program's, after the launch; a second launch
     * needs it freed, unless told to see to it. */
    OK(cuGraphCreate(&g, 0));
    m = mib(8);
    OK(cuGraphAddMemAllocNode(&n1, g, NULL, 0, &m));
    e = ready(g);
    OK(cuGraphLaunch(e, s));
    OK(cuMemsetD8_v2(m.dptr, 3, 8u << 20));
    WANT(cuGraphLaunch(e, s), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(m.dptr, s));
    WANT(cuMemFree_v2(m.dptr), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphLaunch(e, s));
    OK(cuMemFree_v2(m.dptr));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphInstantiateWithFlags(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    OK(cuGraphLaunch(e, s));
    OK(cuGraphLaunch(e, s));
    TRUE(graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 8u << 20);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuMemsetD8_v2(m.dptr, 4, 8u << 20)); /* outlives its graph */
    OK(cuMemFree_v2(m.dptr));
    OK(cuDeviceGraphMemTrim(0));
    TRUE(used() == before);

    /* Too much: nothing is taken, nothing runs. */
    OK(cuGraphCreate(&g, 0));
    m = mib(1 << 20);
    get = mib(16);
    OK(cuGraphAddMemAllocNode(&n1, g, NULL, 0, &get));
    OK(cuGraphAddMemAllocNode(&n2, g, &n1, 1, &m));
    e = ready(g);
    WANT(cuGraphLaunch(e, s), CUDA_ERROR_OUT_OF_MEMORY);
    TRUE(graph_mem(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuDeviceGraphMemTrim(0));

    /* Captured: stream-ordered calls become nodes. */
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemAllocAsync(&p, 1 << 20, s));
    OK(cuMemsetD8Async(p, 5, 1 << 20, s));
    OK(launch(ms, s));
    OK(cuMemFreeAsync(p, s));
    OK(cuStreamEndCapture(s, &g));
    {
        CUgraphNodeType type;
        CUgraphNode v[8];
        size_t n = 8;

        OK(cuGraphGetNodes(g, v, &n));
        TRUE(n == 4);
        OK(cuGraphNodeGetType(v[0], &type));
        TRUE(type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
        OK(cuGraphNodeGetType(v[3], &type));
        TRUE(type == CU_GRAPH_NODE_TYPE_MEM_FREE);
    }
    e = ready(g);
    takes(e, 1);
    takes(e, 1);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuDeviceGraphMemTrim(0));
    TRUE(used() == before);
}

/* ---- conditions ------------------------------------------------------------------------ */

/* A graph: the kernel before, then a conditional node with an "ms" in each body. */
static float conditional(CUfunction before, unsigned type, unsigned size, unsigned deflt, unsigned flags)
{
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    struct conditional c = {.type = type, .size = size};
    CUDA_HOST_NODE_PARAMS h = {nothing, NULL};
    CUgraphNode n, m;
    CUgraphExec e;
    CUgraph g;
    float t;

    OK(cuGraphCreate(&g, 0));
    OK(cuGraphConditionalHandleCreate(&c.handle, g, NULL, deflt, flags));
    WANT(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_ERROR_INVALID_VALUE); /* a handle without a node */
    n = kernel(g, NULL, before);
    memcpy(p.reserved1, &c, sizeof(c));
    OK(cuGraphAddNode(&n, g, &n, 1, &p));
    memcpy(&c, p.reserved1, sizeof(c));
    WANT(cuGraphAddNode(&m, g, &n, 1, &p), CUDA_ERROR_INVALID_VALUE); /* one node a handle */
    for (unsigned i = 0; i < size; i++) {
        for (unsigned k = 0; k <= i; k++)
            kernel(c.bodies[i], NULL, ms);
    }
    WANT(cuGraphAddHostNode(&m, c.bodies[0], NULL, 0, &h), CUDA_ERROR_NOT_SUPPORTED);
    WANT(cuGraphDestroy(c.bodies[0]), CUDA_ERROR_INVALID_VALUE);
    e = ready(g);
    t = length(e);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    return t;
}

static void near(float got, float want)
{
    if (got < want - 0.3f || got > want + 0.3f)
        FAIL("%.3f ms, want %.3f", got, want);
}

static void conditions(CUmodule m)
{
    CUfunction loop = function(m, "loop"), yes = function(m, "yes"), third = function(m, "third"),
               plain = function(m, "plain");

    /* By the kernel's name: kernels that are not named run 0.01 ms. */
    near(conditional(loop, 1, 1, 0, 0), 5);
    near(conditional(yes, 0, 1, 0, 0), 1);
    near(conditional(plain, 0, 1, 0, 0), 0);
    near(conditional(plain, 0, 2, 0, 0), 2); /* else */
    near(conditional(yes, 0, 2, 0, 0), 1);
    near(conditional(third, 2, 4, 0, 0), 3);
    near(conditional(third, 2, 2, 0, 0), 0); /* no such body */
    /* By the default, and never without end. */
    near(conditional(plain, 1, 1, 1, 1), 1);
    near(conditional(plain, 1, 1, 1, 0), 0);
    near(conditional(plain, 2, 3, 1, 1), 2);
}

int main(void)
{
    CUmodule m = start_graphs();

    memory();
    conditions(m);
    return 0;
}
