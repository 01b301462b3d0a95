// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graphoverlap.c: branches of a graph overlap where the GPU lets them. To be run
 * on a card whose copies take time and that runs several kernels at once.
 */
#include "graphs.h"

static CUDA_MEMCPY3D up, down;

static CUgraphNode copy(CUgraph g, CUgraphNode dep, CUDA_MEMCPY3D *c)
{
    CUgraphNode n;

    OK(cuGraphAddMemcpyNode(&n, g, &dep, dep ? 1 : 0, c, NULL));
    return n;
}

static CUfunction cover; /* long enough to queue a launch behind it, bytes and all */

static float measure(CUgraph g)
{
    CUgraphExec e = ready(g);
    float t;

    OK(launch(cover, s));
    OK(cuEventRecord(a, s));
    OK(cuGraphLaunch(e, s));
    OK(cuEventRecord(b, s));
    WANT(cuEventQuery(a), CUDA_ERROR_NOT_READY); /* else the machine was too busy for a measurement */
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&t, a, b));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    return t;
}

static void about(const char *what, float got, float want)
{
    printf("%s: %.3f ms\n", what, got);
    if (got < want - 0.05f || got > want + 0.05f)
        FAIL("%s took %.3f ms, want %.3f", what, got, want);
}

static CUgraph new(void)
{
    CUgraph g;

    OK(cuGraphCreate(&g, 0));
    return g;
}

int main(void)
{
    size_t n = 64u << 20;
    CUgraphNode k, x, y, join[2];
    float in, out;
    CUdeviceptr d;
    CUgraph g;
    void *h;

    cover = function(start_graphs(), "cover");
    OK(cuMemAlloc_v2(&d, n));
    OK(cuMemHostAlloc(&h, n, 0));
    memset(h, 1, n); /* the pages of both are there */
    OK(cuMemcpyHtoD_v2(d, h, n));
    up = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = h, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = d, .WidthInBytes = n, .Height = 1, .Depth = 1};
    down = (CUDA_MEMCPY3D){.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = h, .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = d, .WidthInBytes = n, .Height = 1, .Depth = 1};
    g = new();
    copy(g, NULL, &up);
    in = measure(g);
    g = new();
    copy(g, NULL, &down);
    out = measure(g);
    printf("in %.3f ms, out %.3f ms\n", in, out);
    TRUE(in > 0.5f && in < 9 && out > 0.5f && out < 9);

    g = new();
    k = kernel(g, NULL, ten_ms);
    copy(g, k, &up);
    about("a kernel, then a copy", measure(g), 10 + in);

    g = new();
    kernel(g, NULL, ten_ms);
    copy(g, NULL, &up);
    about("a kernel beside a copy", measure(g), in > 10 ? in : 10);

    g = new();
    copy(g, NULL, &up);
    copy(g, NULL, &down);
    about("both directions at once", measure(g), in > out ? in : out);

    g = new();
    kernel(g, NULL, ten_ms);
    kernel(g, NULL, ten_ms);
    about("two small kernels side by side", measure(g), 10);

    g = new();
    k = kernel(g, NULL, ten_ms);
    kernel(g, k, ten_ms);
    about("two kernels, one behind the other", measure(g), 20);

    /* A diamond: 1 ms, then copy and kernel side by side, then 10 ms behind both. */
    g = new();
    k = kernel(g, NULL, ms);
    x = copy(g, k, &up);
    y = kernel(g, k, ms);
    join[0] = x;
    join[1] = y;
    k = kernel(g, NULL, ten_ms);
    OK(cuGraphAddDependencies(g, join, (CUgraphNode[]){k, k}, 2));
    about("a diamond", measure(g), 1 + (in > 1 ? in : 1) + 10);
    return 0;
}
