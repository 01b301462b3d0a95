// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* graphs.h: what the tests of graphs share. "ms" runs 1 ms, "ten_ms" 10. */
#ifndef SG_TEST_GRAPHS_H
#define SG_TEST_GRAPHS_H

#include "t.h"

static CUfunction ms, ten_ms;
static CUstream s;
static CUevent a, b;

static inline CUDA_KERNEL_NODE_PARAMS of(CUfunction f)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32,
                                     .blockDimY = 1, .blockDimZ = 1};
}

static inline CUgraphNode kernel(CUgraph g, CUgraphNode dep, CUfunction f)
{
    CUDA_KERNEL_NODE_PARAMS k = of(f);
    CUgraphNode n;

    OK(cuGraphAddKernelNode_v2(&n, g, &dep, dep ? 1 : 0, &k));
    return n;
}

static inline CUgraphExec ready(CUgraph g)
{
    CUgraphExec e;

    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    return e;
}

/* How long a launch takes, in simulated milliseconds. All of it is queued behind
 * other work, so that it does not matter how fast this program gets on. */
static inline float length(CUgraphExec e)
{
    float t;

    for (int i = 0; i < 4; i++)
        OK(launch(ten_ms, s));
    OK(cuEventRecord(a, s));
    OK(cuGraphLaunch(e, s));
    OK(cuEventRecord(b, s));
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&t, a, b));
    return t;
}

static inline void takes(CUgraphExec e, float want)
{
    float t = length(e);

    if (t < want - 0.5f || t > want + 0.5f)
        FAIL("a launch took %.3f ms, want %.3f", t, want);
}

/* A context, and the things above in it. */
static inline CUmodule start_graphs(void)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);

    ms = function(m, "ms");
    ten_ms = function(m, "ten_ms");
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    return m;
}

#endif
