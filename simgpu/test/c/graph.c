// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graph.c: streams, their order, capture, graphs. "ms" is the kernel of 1 ms. */
#include "t.h"

static int order[8];
static _Atomic int norder;

static void note(void *arg)
{
    order[norder++] = (int)(intptr_t)arg;
}

static char buf[8] = "before";

static void fill(void *arg)
{
    memcpy(arg, "after", 6);
}

static void callback(CUstream s, CUresult r, void *arg)
{
    TRUE(s && r == CUDA_SUCCESS);
    note(arg);
}

static void between(CUevent a, CUevent b, float lo, float hi)
{
    float ms;

    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&ms, a, b));
    if (exact_clock() && (ms < lo || ms > hi))
        FAIL("%.3f ms between events, want %.1f to %.1f", ms, lo, hi);
}

static void host_functions(CUfunction f, CUfunction slow)
{
    CUdeviceptr p;
    char back[8] = "";
    CUstream s;

    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 20; i++) /* long enough on a busy machine, too */
        OK(launch(slow, s));
    OK(cuLaunchHostFunc(s, note, (void *)1));
    OK(launch(f, s));
    OK(cuStreamAddCallback(s, callback, (void *)2, 0));
    if (exact_clock())
        TRUE(norder == 0);
    OK(cuStreamSynchronize(s));
    TRUE(norder == 2 && order[0] == 1 && order[1] == 2);
    /* A copy behind a host function sees what the function wrote. */
    OK(cuMemAlloc_v2(&p, 8));
    OK(launch(f, s));
    OK(cuLaunchHostFunc(s, fill, buf));
    OK(cuMemcpyHtoDAsync_v2(p, buf, 8, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(back, p, 8));
    TRUE(!strcmp(back, "after"));
    OK(cuMemFree_v2(p));
    OK(cuStreamDestroy_v2(s));
}

static void streams(CUfunction f, CUevent a, CUevent b)
{
    CUstream s, t;
    CUevent e;

    OK(cuStreamCreate(&s, 0));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuEventRecord(a, NULL));
    OK(launch(f, s));
    OK(cuEventRecord(b, NULL)); /* the default stream waits for s */
    between(a, b, 0.9f, 6);
    OK(cuEventRecord(a, t));
    OK(launch(f, s));
    OK(launch(f, s));
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    OK(cuEventRecord(b, t));
    between(a, b, 1.8f, 8);
    OK(cuStreamQuery(s));
    OK(launch(f, s));
    if (exact_clock())
        WANT(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuStreamDestroy_v2(s)); /* its work goes on */
    OK(cuStreamDestroy_v2(t));
    OK(launch(f, CU_STREAM_PER_THREAD));
    OK(cuLaunchKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    if (exact_clock())
        WANT(cuStreamQuery_ptsz(NULL), CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize_ptsz(NULL));
    OK(cuEventDestroy_v2(e));
}

static void capture(CUfunction f, CUevent a, CUevent b)
{
    CUstreamCaptureStatus st;
    CUgraphNodeType type;
    CUgraphNode node[16];
    CUgraphExec exec;
    CUstream s, t;
    CUevent fork, join;
    CUdeviceptr p;
    CUgraph g;
    size_t n = 16, edges = 0;
    int kernels = 0;
    unsigned char back[16] = {0};

    OK(cuMemAlloc_v2(&p, 16));
    OK(cuMemsetD8_v2(p, 1, 16));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(launch(f, s));
    OK(cuEventRecord(fork, s));
    OK(cuStreamWaitEvent(t, fork, 0));
    OK(launch(f, t));
    OK(launch(f, s));
    OK(cuEventRecord(join, t));
    OK(cuStreamWaitEvent(s, join, 0));
    OK(cuMemsetD8Async(p, 5, 16, s));
    OK(launch(f, s));
    OK(cuStreamIsCapturing(s, &st));
    TRUE(st == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(cuStreamEndCapture(s, &g));
    OK(cuStreamIsCapturing(t, &st));
    TRUE(st == CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuMemcpyDtoH_v2(back, p, 16));
    TRUE(back[0] == 1); /* recorded, not done */

    OK(cuGraphGetNodes(g, node, &n));
    TRUE(n == 5);
    for (size_t i = 0; i < n; i++) {
        OK(cuGraphNodeGetType(node[i], &type));
        kernels += type == CU_GRAPH_NODE_TYPE_KERNEL;
    }
    TRUE(kernels == 4);
    OK(cuGraphGetEdges(g, NULL, NULL, &edges));
    TRUE(edges == 5); /* 1-2, 1-3, 2-set, 3-set, set-4 */
    OK(cuGraphInstantiateWithFlags(&exec, g, 0));
    OK(cuGraphDestroy(g));
    OK(cuEventRecord(a, s));
    OK(cuGraphLaunch(exec, s));
    OK(cuGraphLaunch(exec, s));
    OK(cuEventRecord(b, s));
    between(a, b, 8, 16); /* two launches of four kernels */
    OK(cuMemcpyDtoH_v2(back, p, 16));
    TRUE(back[0] == 5 && back[15] == 5);
    OK(cuGraphExecDestroy(exec));

    /* What a capture forbids spoils it. */
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WANT(cuMemAlloc_v2(&p, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    WANT(launch(f, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    WANT(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    WANT(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    WANT(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(launch(f, s));
    OK(cuEventRecord(fork, s));
    OK(cuStreamWaitEvent(t, fork, 0));
    OK(launch(f, t));
    WANT(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    OK(launch(f, s)); /* and all is as before */
    WANT(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cuStreamDestroy_v2(s));
    OK(cuStreamDestroy_v2(t));
    OK(cuEventDestroy_v2(fork));
    OK(cuEventDestroy_v2(join));
    OK(cuMemFree_v2(p));
}

static int destroyed;

static void destroy(void *arg)
{
    (void)arg;
    destroyed++;
}

static void user_objects(void)
{
    CUgraphExec exec;
    CUuserObject o;
    CUgraph g;

    OK(cuGraphCreate(&g, 0));
    OK(cuUserObjectCreate(&o, NULL, destroy, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
    OK(cuUserObjectRelease(o, 1));
    /* The last reference is the graph's. */
    WANT(cuUserObjectRelease(o, 1), CUDA_ERROR_INVALID_VALUE);
    WANT(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphInstantiateWithFlags(&exec, g, 0));
    OK(cuGraphReleaseUserObject(g, o, 1));
    WANT(cuGraphReleaseUserObject(g, o, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(g));
    TRUE(!destroyed); /* the executable graph holds it */
    OK(cuGraphExecDestroy(exec));
    TRUE(destroyed == 1);
}

static void built(CUfunction f, CUfunction g10, CUevent a, CUevent b)
{
    CUDA_KERNEL_NODE_PARAMS k = {.func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
    CUDA_HOST_NODE_PARAMS h = {note, (void *)7};
    CUgraphNode n1, n2, n3, cycle[2];
    CUgraphExec exec, none;
    CUgraph g, child;
    CUstream s;

    norder = 0;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddKernelNode_v2(&n1, child, NULL, 0, &k));
    OK(cuGraphAddKernelNode_v2(&n2, child, &n1, 1, &k));
    OK(cuGraphAddHostNode(&n2, g, NULL, 0, &h));
    OK(cuGraphAddChildGraphNode(&n3, g, &n2, 1, child));
    OK(cuGraphAddKernelNode_v2(&n1, g, &n3, 1, &k));
    OK(cuGraphInstantiate_v2(&exec, g, NULL, NULL, 0));
    OK(cuEventRecord(a, s));
    OK(cuGraphLaunch(exec, s));
    OK(cuEventRecord(b, s));
    between(a, b, 3, 10);
    TRUE(norder == 1 && order[0] == 7);
    k.func = g10;
    OK(cuGraphExecKernelNodeSetParams_v2(exec, n1, &k));
    OK(cuEventRecord(a, s));
    OK(cuGraphLaunch(exec, s));
    OK(cuEventRecord(b, s));
    between(a, b, 12, 20); /* 1 + 1 + 10 */
    cycle[0] = n1;
    OK(cuGraphAddDependencies(g, cycle, &n2, 1));
    WANT(cuGraphInstantiateWithFlags(&none, g, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(child));
    OK(cuStreamDestroy_v2(s));
}

int main(void)
{
    CUfunction f, g10;
    CUcontext ctx;
    CUevent a, b;
    CUmodule m = start(&ctx);

    f = function(m, "ms");
    g10 = function(m, "ten_ms");
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    host_functions(f, g10);
    streams(f, a, b);
    capture(f, a, b);
    built(f, g10, a, b);
    user_objects();
    OK(cuCtxSynchronize());
    OK(cuEventDestroy_v2(a));
    OK(cuEventDestroy_v2(b));
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
