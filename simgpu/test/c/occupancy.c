// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* occupancy.c: what fits on a multiprocessor, and what a launch may ask for, on
 * a card of capability 9.0 with 132 multiprocessors. */
#include "t.h"

static CUfunction f;

static int blocks(int threads, size_t shared)
{
    int n;

    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, threads, shared));
    return n;
}

static CUresult go(unsigned grid, unsigned block, unsigned shared)
{
    return cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, NULL, NULL, NULL);
}

static CUresult together(unsigned grid, unsigned block, unsigned shared)
{
    return cuLaunchCooperativeKernel(f, grid, 1, 1, block, 1, 1, shared, NULL, NULL);
}

static CUresult with(CUlaunchAttributeID id, unsigned x, unsigned y, unsigned z, unsigned grid)
{
    CUlaunchAttribute a = {.id = id};
    CUlaunchConfig c = {.gridDimX = grid, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 256, .blockDimY = 1,
                        .blockDimZ = 1, .attrs = &a, .numAttrs = 1};

    a.value.clusterDim.x = x;
    a.value.clusterDim.y = y;
    a.value.clusterDim.z = z;
    return cuLaunchKernelEx(&c, f, NULL, NULL);
}

int main(void)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);
    CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {4, 1, 1}};
    CUlaunchConfig c = {.gridDimX = 8, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1024, .blockDimY = 1, .blockDimZ = 1,
                        .attrs = &a, .numAttrs = 1};
    int n, grid, block, least, greatest;
    CUstreamAttrValue v = {0};
    CUstream s;
    CUevent e;
    size_t bytes;

    f = function(m, "k");
    TRUE(blocks(32, 0) == 32 && blocks(256, 0) == 8 && blocks(1024, 0) == 2 && blocks(1025, 0) == 0);
    TRUE(blocks(33, 0) == 32 && blocks(768, 0) == 2);
    TRUE(blocks(32, 100 << 10) == 2 && blocks(32, 232448) == 1 && blocks(32, 232449) == 0);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
    TRUE(block == 1024 && grid == 2 * 132);
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 100));
    TRUE(block == 64 && grid == 32 * 132);
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, 256));
    TRUE(bytes == 115712); /* half of 228 KiB less the system's 1 KiB */
    OK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    TRUE(n == 1024);

    OK(go(1u << 30, 1024, 0));
    OK(go(1, 32, 49152));
    WANT(go(1, 32, 49153), CUDA_ERROR_INVALID_VALUE); /* needs the attribute */
    WANT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    OK(go(1, 32, 100000));
    WANT(go(1, 32, 100001), CUDA_ERROR_INVALID_VALUE);
    WANT(go(1, 1025, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    WANT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);

    OK(together(8 * 132, 256, 0));
    WANT(together(8 * 132 + 1, 256, 0), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    WANT(together(2 * 132 + 1, 256, 100000), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    OK(with(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1, 0, 0, 8 * 132));
    WANT(with(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1, 0, 0, 8 * 132 + 1), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);

    OK(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4, 1, 1, 8));
    WANT(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 3, 1, 1, 8), CUDA_ERROR_INVALID_VALUE);
    WANT(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 16, 1, 1, 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
    OK(with(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 16, 1, 1, 16));
    OK(cuOccupancyMaxPotentialClusterSize(&n, f, &c));
    TRUE(n == 16);
    OK(cuOccupancyMaxActiveClusters(&n, f, &c));
    TRUE(n == 2 * 132 / 4);
    OK(with(CU_LAUNCH_ATTRIBUTE_PRIORITY, 0, 0, 0, 1));
    OK(with(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1, 0, 0, 1));
    OK(with(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 0, 0, 0, 1));
    WANT(with((CUlaunchAttributeID)99, 0, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);

    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    TRUE(least == 0 && greatest == -5);
    OK(cuStreamCreateWithPriority(&s, 0, -100));
    OK(cuStreamGetPriority(s, &n));
    TRUE(n == greatest);
    v.priority = -2;
    OK(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    OK(cuStreamGetPriority(s, &n));
    TRUE(n == -2);
    v.syncPolicy = 3;
    OK(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
    v.syncPolicy = 0;
    OK(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v));
    TRUE(v.syncPolicy == 3);
    WANT(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v), CUDA_ERROR_INVALID_VALUE);

    /* An event of a launch is recorded, and may not have times. */
    OK(cuEventCreate(&e, 0));
    a.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    a.value.launchCompletionEvent.event = e;
    c.blockDimX = 32;
    c.hStream = s;
    WANT(cuLaunchKernelEx(&c, f, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventDestroy_v2(e));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    a.value.launchCompletionEvent.event = e;
    OK(cuLaunchKernelEx(&c, f, NULL, NULL));
    OK(cuEventSynchronize(e));
    OK(cuStreamQuery(s));
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
