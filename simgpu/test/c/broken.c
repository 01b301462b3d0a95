// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* broken.c: a kernel that fails breaks its context for good, and only that. */
#include "t.h"

static void broken(const char *name, CUresult code)
{
    CUcontext good, bad;
    CUmodule m = start(&good), n;
    CUfunction f = function(m, "short"), g;
    CUdeviceptr p, q;
    CUstream s;
    CUevent e;
    float ms;

    OK(cuMemAlloc_v2(&q, 100));
    OK(cuCtxCreate_v2(&bad, 0, 0));
    OK(cuModuleLoadData(&n, "// any code\n"));
    g = function(n, name);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, 0));
    OK(cuMemAlloc_v2(&p, 100));
    OK(launch(function(n, "short"), s));
    OK(launch(g, s)); /* the launch itself is fine */
    OK(launch(g, s));
    OK(cuEventRecord(e, s));
    WANT(cuEventSynchronize(e), code);
    WANT(cuEventQuery(e), code);
    WANT(cuEventElapsedTime(&ms, e, e), code);
    WANT(cuStreamSynchronize(s), code);
    WANT(cuStreamQuery(s), code);
    WANT(cuCtxSynchronize(), code);
    WANT(launch(g, NULL), code);
    WANT(cuMemAlloc_v2(&p, 100), code);
    WANT(cuMemcpyHtoD_v2(p, &p, 8), code);
    WANT(cuStreamCreate(&s, 0), code);
    /* The neighbour in the same process goes on. */
    OK(cuCtxPushCurrent_v2(good));
    OK(launch(f, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemcpyHtoD_v2(q, &q, 8));
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuCtxDestroy_v2(bad));
    OK(cuCtxSetCurrent(NULL));
    /* And so does a new context. */
    OK(cuCtxCreate_v2(&bad, 0, 0));
    OK(cuMemAlloc_v2(&p, 100));
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy_v2(bad));
    OK(cuCtxDestroy_v2(good));
}

int main(void)
{
    OK(cuInit(0));
    broken("trap", CUDA_ERROR_LAUNCH_FAILED);
    broken("stray", CUDA_ERROR_ILLEGAL_ADDRESS);
    broken("stuck", CUDA_ERROR_LAUNCH_TIMEOUT);
    return 0;
}
