// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* capture.c: what a stream capture allows, and what spoils it. */
#include <pthread.h>

#include "t.h"

static CUfunction f;
static CUstream s, t;  /* do not wait for the default stream */
static CUstream block; /* does */
static CUevent e, j;

static void begin(CUstreamCaptureMode mode)
{
    OK(cuStreamBeginCapture_v2(s, mode));
    OK(launch(f, s));
}

static void spoilt(CUstream x)
{
    CUstreamCaptureStatus st;
    CUgraph g = (CUgraph)1;

    OK(cuStreamIsCapturing(x, &st));
    TRUE(st == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    WANT(launch(f, x), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    WANT(cuStreamEndCapture(x, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    TRUE(!g);
    OK(cuStreamIsCapturing(x, &st));
    TRUE(st == CU_STREAM_CAPTURE_STATUS_NONE);
    OK(launch(f, x));
    OK(cuStreamSynchronize(x));
}

static void good(CUstream x, size_t nodes)
{
    size_t n = 0;
    CUgraph g;

    OK(cuStreamEndCapture(x, &g));
    OK(cuGraphGetNodes(g, NULL, &n));
    TRUE(n == nodes);
    OK(cuGraphDestroy(g));
}

static void forbidden(void)
{
    CUdeviceptr p, q;
    char buf[8] = "";
    void *h;
    float ms;

    OK(cuMemAlloc_v2(&q, 64));
    OK(cuEventRecord(j, t));
    OK(cuStreamSynchronize(t));
#define SPOILS(call, code)                        \
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);         \
    WANT(call, code);                             \
    spoilt(s)
    SPOILS(cuMemAlloc_v2(&p, 8), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SPOILS(cuMemFree_v2(q), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SPOILS(cuMemHostAlloc(&h, 8, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SPOILS(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SPOILS(cuMemcpyHtoD_v2(q, buf, 8), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SPOILS(cuMemsetD8_v2(q, 0, 8), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SPOILS(cuEventQuery(j), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SPOILS(cuStreamQuery(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    SPOILS(cuStreamAttachMemAsync(s, q, 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    /* The thread's own mode. */
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    {
        CUstreamCaptureMode m = CU_STREAM_CAPTURE_MODE_RELAXED;

        OK(cuThreadExchangeStreamCaptureMode(&m));
        TRUE(m == CU_STREAM_CAPTURE_MODE_GLOBAL);
        OK(cuMemAlloc_v2(&p, 8));
        OK(cuMemFree_v2(p));
        OK(cuEventQuery(j));
        OK(cuThreadExchangeStreamCaptureMode(&m));
        TRUE(m == CU_STREAM_CAPTURE_MODE_RELAXED);
    }
    good(s, 1);
    /* A captured event is nobody's to look at, whatever the mode. */
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuEventRecord(e, s));
    WANT(cuEventQuery(e), CUDA_ERROR_CAPTURED_EVENT);
    spoilt(s);
    WANT(cuEventElapsedTime(&ms, j, e), CUDA_ERROR_INVALID_HANDLE); /* no time is kept of them */
    OK(cuMemFree_v2(q));
}

static void isolation(void)
{
    CUstream u;
    CUgraph g;

    OK(cuStreamCreate(&u, CU_STREAM_NON_BLOCKING));
    /* From outside. */
    OK(cuEventRecord(e, t));
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    WANT(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    spoilt(s);
    /* The event of a capture that has ended is from outside, too. */
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK(cuEventRecord(e, s));
    good(s, 1);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    WANT(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    spoilt(s);
    /* Two captures do not become one. */
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK(cuEventRecord(e, s));
    OK(cuStreamBeginCapture_v2(t, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    WANT(cuStreamWaitEvent(t, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    spoilt(s);
    WANT(cuStreamEndCapture(t, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    /* Forked and not joined; ended where it did not begin. */
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    OK(launch(f, t));
    WANT(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    OK(launch(f, t));
    OK(cuStreamSynchronize(t));
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    WANT(cuStreamEndCapture(t, &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    spoilt(s);
    WANT(cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
    /* A stream that forked and went away takes its work along, joined or not. */
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(u, e, 0));
    OK(cuStreamDestroy_v2(u));
    spoilt(s);
}

static void legacy(void)
{
    CUstreamCaptureStatus st;
    CUgraph g;

    WANT(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(cuStreamBeginCapture_v2(block, CU_STREAM_CAPTURE_MODE_RELAXED));
    WANT(cuStreamBeginCapture_v2(block, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_ILLEGAL_STATE);
    WANT(cuStreamIsCapturing(NULL, &st), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT); /* a look spoils nothing */
    OK(launch(f, block));
    OK(launch(f, s));
    OK(cuStreamEndCapture(block, &g));
    OK(cuGraphDestroy(g));
    OK(cuStreamBeginCapture_v2(block, CU_STREAM_CAPTURE_MODE_RELAXED));
    WANT(launch(f, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    spoilt(block);
    OK(cuStreamBeginCapture_v2(block, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(e, block));
    WANT(cuStreamWaitEvent(NULL, e, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    spoilt(block);
    /* Streams that do not wait for it leave it alone. */
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(launch(f, NULL));
    OK(cuStreamSynchronize(NULL));
    good(s, 1);
}

static void *other_thread(void *want)
{
    CUdeviceptr p;
    CUcontext c;
    CUgraph g;

    OK(cuStreamGetCtx(s, &c));
    OK(cuCtxSetCurrent(c));
    WANT(cuMemAlloc_v2(&p, 8), (intptr_t)want);
    if (!want) {
        WANT(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        OK(cuMemFree_v2(p));
    }
    return NULL;
}

static void in_thread(void *(*fn)(void *), int arg)
{
    pthread_t x;

    TRUE(!pthread_create(&x, NULL, fn, (void *)(intptr_t)arg));
    TRUE(!pthread_join(x, NULL));
}

static void threads(void)
{
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    in_thread(other_thread, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(s);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    in_thread(other_thread, 0);
    good(s, 1);
}

static void info(void)
{
    CUgraphEdgeData data[2] = {{.from_port = 1, .type = 1}};
    const CUgraphEdgeData *edges;
    const CUgraphNode *deps;
    CUstreamCaptureStatus st;
    CUgraphNode first, node[4];
    cuuint64_t id = 0, id2 = 0;
    CUgraph g = NULL, same;
    size_t n;

    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuStreamGetCaptureInfo_v2(s, &st, &id, &g, &deps, &n));
    TRUE(st == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && g && n == 1);
    first = deps[0];
    WANT(cuGraphDestroy(g), CUDA_ERROR_INVALID_VALUE); /* the capture's */
    /* A node by hand, behind which the next one goes. */
    OK(cuGraphAddEmptyNode(&node[0], g, &first, 1));
    OK(cuStreamUpdateCaptureDependencies(s, &node[0], 1, 1));
    OK(launch(f, s));
    OK(cuStreamGetCaptureInfo_v3(s, &st, &id2, NULL, &deps, &edges, &n));
    TRUE(id2 == id && n == 1 && !edges[0].type);
    node[1] = deps[0];
    n = 2;
    OK(cuGraphNodeGetDependencies(node[1], node + 2, &n));
    TRUE(n == 1 && node[2] == node[0] && !node[3]);
    /* An edge with data is not lost silently. */
    node[0] = node[1];
    OK(cuStreamUpdateCaptureDependencies_v2(s, node, data, 1, 1));
    WANT(cuStreamGetCaptureInfo_v2(s, &st, &id, NULL, &deps, &n), CUDA_ERROR_LOSSY_QUERY);
    OK(cuStreamGetCaptureInfo_v3(s, &st, &id, NULL, &deps, &edges, &n));
    TRUE(n == 1 && edges[0].from_port == 1 && edges[0].type == 1);
    WANT(cuStreamUpdateCaptureDependencies(t, node, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
    OK(launch(f, s));
    OK(cuStreamEndCapture(s, &same));
    TRUE(same == g);
    /* Into a graph of one's own, behind a node of it; a spoilt capture leaves it. */
    n = 1;
    OK(cuGraphGetRootNodes(g, node, &n));
    OK(cuStreamBeginCaptureToGraph(s, g, node, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
    WANT(cuStreamBeginCaptureToGraph(t, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_INVALID_VALUE);
    OK(launch(f, s));
    WANT(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    WANT(cuStreamEndCapture(s, &same), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    n = 0;
    OK(cuGraphGetNodes(g, NULL, &n));
    TRUE(n == 5);
    OK(cuGraphDestroy(g));
    WANT(cuGraphDestroy(g), CUDA_ERROR_INVALID_VALUE);
}

/* A capture whose stream, or context, ends before it. */
static void abandoned(void)
{
    CUcontext c;
    CUstream x;
    CUgraph g;

    OK(cuStreamCreate(&x, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(x, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(launch(f, x));
    OK(cuStreamDestroy_v2(x));
    OK(cuCtxCreate_v2(&c, 0, 0));
    OK(cuStreamCreate(&x, CU_STREAM_NON_BLOCKING));
    OK(cuGraphCreate(&g, 0));
    OK(cuStreamBeginCaptureToGraph(x, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuCtxDestroy_v2(c));
    OK(cuGraphDestroy(g));
}

/* A stream of another GPU joins and is replayed with the rest. */
static void devices(CUcontext here)
{
    CUstream x;
    CUcontext c;
    CUfunction k;
    CUmodule m;
    CUevent back;
    int n;

    OK(cuDeviceGetCount(&n));
    if (n < 2) {
        printf("one GPU only: no capture over two\n");
        return;
    }
    OK(cuCtxCreate_v2(&c, 0, 1));
    OK(cuStreamCreate(&x, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&back, CU_EVENT_DISABLE_TIMING));
    OK(cuModuleLoadData(&m, "// any code\n"));
    OK(cuModuleGetFunction(&k, m, "ms"));
    OK(cuCtxSetCurrent(here));
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(x, e, 0));
    OK(launch(k, x));
    OK(cuEventRecord(back, x));
    OK(cuStreamWaitEvent(s, back, 0));
    good(s, 2);
    OK(launch(k, x)); /* out of the capture with the others */
    OK(cuCtxDestroy_v2(c));
    OK(cuCtxSetCurrent(here));
}

int main(void)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);

    f = function(m, "ms");
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&block, 0));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&j, CU_EVENT_DISABLE_TIMING));
    forbidden();
    isolation();
    legacy();
    threads();
    info();
    abandoned();
    devices(ctx);
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
