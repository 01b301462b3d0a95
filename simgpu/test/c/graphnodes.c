// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphnodes.c: nodes, edges, changes and launches of executable graphs. */
#include "graphs.h"

/* ---- edges ---------------------------------------------------------------------- */

static void edges(void)
{
    CUgraphEdgeData prog = {.from_port = 1, .type = 1}, data[4];
    CUgraphNode n1, n2, n3, from[4], to[4];
    size_t n = 4;
    CUgraph g, c;

    OK(cuGraphCreate(&g, 0));
    n1 = kernel(g, NULL, ms);
    n2 = kernel(g, n1, ms);
    OK(cuGraphAddEmptyNode(&n3, g, &n2, 1));
    WANT(cuGraphAddDependencies(g, &n1, &n2, 1), CUDA_ERROR_INVALID_VALUE); /* is there */
    OK(cuGraphAddDependencies_v2(g, &n1, &n3, &prog, 1));
    WANT(cuGraphGetEdges(g, from, to, &n), CUDA_ERROR_LOSSY_QUERY);
    OK(cuGraphGetEdges_v2(g, from, to, data, &n));
    TRUE(n == 3 && from[2] == n1 && to[2] == n3 && data[2].type == 1 && !data[1].type);
    n = 4;
    WANT(cuGraphNodeGetDependencies(n3, from, &n), CUDA_ERROR_LOSSY_QUERY);
    OK(cuGraphNodeGetDependencies_v2(n3, from, data, &n));
    TRUE(n == 2 && from[0] == n2 && from[1] == n1 && data[1].from_port == 1);
    n = 4;
    OK(cuGraphNodeGetDependentNodes_v2(n1, from, data, &n));
    TRUE(n == 2 && !from[2]);
    prog.to_port = 1;
    WANT(cuGraphAddDependencies_v2(g, &n2, &n3, &prog, 1), CUDA_ERROR_INVALID_VALUE);
    prog.to_port = 0;
    WANT(cuGraphRemoveDependencies(g, &n1, &n3, 1), CUDA_ERROR_LOSSY_QUERY);
    OK(cuGraphClone(&c, g));
    OK(cuGraphNodeFindInClone(&from[0], n3, c));
    WANT(cuGraphNodeFindInClone(&from[0], from[0], c), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphRemoveDependencies_v2(g, &n1, &n3, &prog, 1));
    n = 0;
    OK(cuGraphGetEdges(g, NULL, NULL, &n));
    TRUE(n == 2);
    OK(cuGraphGetEdges(c, NULL, NULL, &n));
    TRUE(n == 3); /* a copy is its own */
    OK(cuGraphDestroyNode(n2));
    OK(cuGraphGetEdges(g, NULL, NULL, &n));
    TRUE(n == 0);
    WANT(cuGraphNodeFindInClone(&from[0], n2, c), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(c));
    OK(cuGraphDestroy(g));
}

/* ---- parameters, enabling, updates ------------------------------------------------ */

static void changes(void)
{
    CUkernelNodeAttrValue v = {.priority = -3}, w;
    CUgraphExecUpdateResultInfo info;
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    CUgraphNode n1, n2, m1, h;
    CUgraph g, other;
    CUgraphExec e;
    unsigned on;

    OK(cuGraphCreate(&g, 0));
    n1 = kernel(g, NULL, ms);
    n2 = kernel(g, n1, ten_ms);
    e = ready(g);
    takes(e, 11);
    OK(cuGraphNodeSetEnabled(e, n2, 0));
    OK(cuGraphNodeGetEnabled(e, n2, &on));
    TRUE(!on);
    takes(e, 1);
    OK(cuGraphNodeSetEnabled(e, n2, 1));
    p.kernel = of(ms);
    OK(cuGraphExecNodeSetParams(e, n2, &p));
    takes(e, 2);
    OK(cuGraphKernelNodeGetParams_v2(n2, &k));
    TRUE(k.func == ten_ms); /* the graph itself is as it was */
    OK(cuGraphNodeSetParams(n2, &p));
    p.type = CU_GRAPH_NODE_TYPE_HOST;
    WANT(cuGraphNodeSetParams(n2, &p), CUDA_ERROR_INVALID_VALUE);
    k = of(ms);
    k.blockDimX = 1025;
    WANT(cuGraphKernelNodeSetParams_v2(n2, &k), CUDA_ERROR_INVALID_VALUE);

    OK(cuGraphKernelNodeSetAttribute(n1, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    OK(cuGraphKernelNodeCopyAttributes(n2, n1));
    OK(cuGraphKernelNodeGetAttribute(n2, CU_LAUNCH_ATTRIBUTE_PRIORITY, &w));
    TRUE(w.priority == -3);
    WANT(cuGraphKernelNodeSetAttribute(n1, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &v),
         CUDA_ERROR_NOT_SUPPORTED);

    OK(cuGraphCreate(&other, 0));
    m1 = kernel(other, NULL, ten_ms);
    WANT(cuGraphExecUpdate_v2(e, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && !info.errorNode);
    OK(cuGraphAddEmptyNode(&h, other, &m1, 1));
    WANT(cuGraphExecUpdate_v2(e, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == h);
    OK(cuGraphDestroyNode(h));
    h = kernel(other, NULL, ten_ms);
    WANT(cuGraphExecUpdate_v2(e, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && info.errorNode == h);
    OK(cuGraphAddDependencies(other, &m1, &h, 1));
    takes(e, 2); /* what failed changed nothing */
    OK(cuGraphExecUpdate_v2(e, other, &info));
    TRUE(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && !info.errorNode);
    takes(e, 20);
    k = of(ms);
    OK(cuGraphExecKernelNodeSetParams_v2(e, n1, &k)); /* by the first graph's nodes still */
    takes(e, 11);
    WANT(cuGraphExecKernelNodeSetParams_v2(e, m1, &k), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(other));
    OK(cuGraphDestroy(g));
    takes(e, 11);
    OK(cuGraphExecDestroy(e));
    WANT(cuGraphLaunch(e, s), CUDA_ERROR_INVALID_VALUE);
}

/* ---- bytes, in order with host functions ------------------------------------------- */

static unsigned char seen[4];
static CUdeviceptr word;

static void look(void *arg)
{
    memcpy(&seen[(intptr_t)arg], (void *)(uintptr_t)word, 1);
}

static void bytes(void)
{
    CUDA_MEMSET_NODE_PARAMS fill = {.elementSize = 1, .width = 16, .height = 1, .value = 7};
    CUDA_HOST_NODE_PARAMS h0 = {look, (void *)0}, h1 = {look, (void *)1}, h2 = {look, (void *)2};
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .WidthInBytes = 16,
                       .Height = 1, .Depth = 1};
    CUresult r;
    unsigned char src[16];
    CUgraphNode n, set, copy;
    CUgraphExec e;
    CUgraph g;

    memset(src, 9, sizeof(src));
    OK(cuMemAlloc_v2(&word, 16));
    OK(cuMemsetD8_v2(word, 1, 16));
    fill.dst = c.dstDevice = word;
    c.srcHost = src;
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddHostNode(&n, g, NULL, 0, &h0));
    OK(cuGraphAddMemsetNode(&set, g, &n, 1, &fill, NULL));
    OK(cuGraphAddHostNode(&n, g, &set, 1, &h1));
    OK(cuGraphAddMemcpyNode(&copy, g, &n, 1, &c, NULL));
    OK(cuGraphAddHostNode(&n, g, &copy, 1, &h2));
    e = ready(g);
    OK(cuGraphLaunch(e, s));
    OK(cuStreamSynchronize(s));
    TRUE(seen[0] == 1 && seen[1] == 7 && seen[2] == 9);
    fill.value = 8;
    OK(cuGraphExecMemsetNodeSetParams(e, set, &fill, NULL));
    fill.height = 2;
    fill.width = 8;
    fill.pitch = 8;
    WANT(cuGraphExecMemsetNodeSetParams(e, set, &fill, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphNodeSetEnabled(e, copy, 0));
    OK(cuGraphLaunch(e, s));
    OK(cuStreamSynchronize(s));
    TRUE(seen[0] == 9 && seen[1] == 8 && seen[2] == 8);
    OK(cuMemFree_v2(word));
    word = (uintptr_t)src;
    /* What its nodes name is gone: nothing is written there. Whether the launch says
     * so depends on whether host functions are still queued before it. */
    r = cuGraphLaunch(e, s);
    TRUE(r == CUDA_SUCCESS || r == CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuStreamSynchronize(s));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
}

/* ---- events ------------------------------------------------------------------------- */

static void events(void)
{
    CUgraphNode k1, k2, rec, wait;
    CUevent mid, gate, got;
    CUgraphExec e;
    CUstream t;
    CUgraph g;
    float first, rest;

    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&mid, 0));
    OK(cuEventCreate(&gate, 0));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddEventWaitNode(&wait, g, NULL, 0, gate));
    k1 = kernel(g, wait, ms);
    OK(cuGraphAddEventRecordNode(&rec, g, &k1, 1, gate));
    k2 = kernel(g, rec, ten_ms);
    (void)k2;
    OK(cuGraphEventRecordNodeGetEvent(rec, &got));
    TRUE(got == gate);
    e = ready(g);
    OK(cuGraphExecEventRecordNodeSetEvent(e, rec, mid));
    for (int i = 0; i < 4; i++)
        OK(launch(ten_ms, t));
    OK(cuEventRecord(a, t));
    OK(launch(ten_ms, t));
    OK(cuEventRecord(gate, t));
    OK(cuGraphLaunch(e, s));
    OK(cuEventRecord(b, s));
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&first, a, mid));
    OK(cuEventElapsedTime(&rest, mid, b));
    if (exact_clock() && (first < 9 || first > 13)) /* the gate, then 1 ms */
        FAIL("%.3f ms to the record in the middle", first);
    if (exact_clock() && (rest < 9.5f || rest > 10.5f))
        FAIL("%.3f ms behind it", rest);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuEventDestroy_v2(mid));
    OK(cuEventDestroy_v2(gate));
    OK(cuStreamDestroy_v2(t));
}

/* ---- the whole ------------------------------------------------------------------------- */

static int destroyed;

static void destroy(void *arg)
{
    (void)arg;
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static void order(void)
{
    CUgraphNode n;
    CUgraphExec e;
    CUuserObject o;
    CUstream t;
    CUgraph g;
    float gap;

    /* A second launch, in another stream, is behind the first. */
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuGraphCreate(&g, 0));
    n = kernel(g, NULL, ten_ms);
    OK(cuGraphAddHostNode(&n, g, &n, 1, &(CUDA_HOST_NODE_PARAMS){look, (void *)3}));
    OK(cuMemAlloc_v2(&word, 16));
    kernel(g, n, ten_ms);
    OK(cuUserObjectCreate(&o, NULL, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
    e = ready(g);
    OK(cuEventRecord(a, s));
    OK(cuGraphLaunch(e, s));
    OK(cuGraphLaunch(e, t));
    OK(cuEventRecord(b, t));
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&gap, a, b));
    TRUE(gap > 39.5f);
    /* Destroyed in flight: it runs on, and holds the program's object till then. */
    OK(cuGraphLaunch(e, s));
    OK(cuGraphDestroy(g));
    OK(cuGraphExecDestroy(e));
    if (exact_clock()) {
        WANT(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
        TRUE(!__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST));
    }
    OK(cuStreamSynchronize(s));
    TRUE(__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST) == 1);
    OK(cuMemFree_v2(word));
    OK(cuStreamDestroy_v2(t));
}

static void dot(void)
{
    char path[] = "/tmp/simgpu-dot-XXXXXX", text[8192];
    CUgraph g, c;
    CUgraphNode n;
    size_t len;
    FILE *f;
    int fd = mkstemp(path);

    TRUE(fd >= 0);
    close(fd);
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphCreate(&c, 0));
    n = kernel(c, NULL, ten_ms);
    kernel(c, n, ms);
    n = kernel(g, NULL, ms);
    OK(cuGraphAddChildGraphNode(&n, g, &n, 1, c));
    OK(cuGraphDebugDotPrint(g, path, 1));
    WANT(cuGraphDebugDotPrint(g, "/nonexistent/x", 0), CUDA_ERROR_OPERATING_SYSTEM);
    f = fopen(path, "r");
    TRUE(f);
    len = fread(text, 1, sizeof(text) - 1, f);
    text[len] = 0;
    fclose(f);
    unlink(path);
    TRUE(!strncmp(text, "digraph", 7) && strstr(text, "ten_ms") && strstr(text, "GRAPH") && strstr(text, " -> "));
    OK(cuGraphDestroy(c));
    OK(cuGraphDestroy(g));
}

/* The host's side of a launch does not grow with the graph's nodes. */
static void cheap(void)
{
    double many = 1e9;
    CUgraphExec e;
    CUgraphNode n = NULL;
    CUgraph g;

    OK(cuGraphCreate(&g, 0));
    for (int i = 0; i < 20000; i++)
        n = kernel(g, i % 7 ? n : NULL, i % 2 ? ms : ten_ms);
    e = ready(g);
    OK(cuStreamSynchronize(s));
    for (int k = 0; k < 5; k++) {
        double t = now_s();

        OK(cuGraphLaunch(e, s));
        t = now_s() - t;
        many = t < many ? t : many;
    }
    printf("launch of 20000 kernels: %.1f us of the host\n", many * 1e6);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
}

int main(void)
{
    start_graphs();
    edges();
    changes();
    bytes();
    events();
    order();
    dot();
    cheap();
    return 0;
}
