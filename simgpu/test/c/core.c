// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* core.c: initialisation, devices, contexts, memory and its limit, launches. */
#include "t.h"

int main(void)
{
    CUcontext ctx, got;
    CUevent a, b;
    CUdeviceptr p, q;
    CUmodule m;
    CUfunction f;
    size_t freeb, total, free2;
    int n, v;
    char name[96];
    float ms;
    double t0;

    WANT(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    WANT(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    TRUE(n >= 1);
    OK(cuDriverGetVersion(&v));
    TRUE(v == 12090);
    OK(cuDeviceGetName(name, sizeof(name), 0));
    TRUE(strstr(name, "(SIMULATED)"));
    OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    TRUE(v == 9);
    for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
        OK(cuDeviceGetAttribute(&v, (CUdevice_attribute)i, 0));
    WANT(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);

    m = start(&ctx);
    OK(cuCtxGetCurrent(&got));
    TRUE(got == ctx);
    OK(cuMemGetInfo_v2(&freeb, &total));
    TRUE(total > freeb && freeb > 0);
    OK(cuMemAlloc_v2(&p, 1000));
    OK(cuMemGetInfo_v2(&free2, &total));
    TRUE(freeb - free2 == 1024); /* whole units of 512 */
    OK(cuMemFree_v2(p));
    WANT(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc_v2(&p, freeb));
    WANT(cuMemAlloc_v2(&q, 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree_v2(p));
    WANT(cuMemAlloc_v2(&q, freeb + 1), CUDA_ERROR_OUT_OF_MEMORY);
    WANT(cuMemAlloc_v2(&q, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemAlloc_v2(&q, (size_t)-1), CUDA_ERROR_OUT_OF_MEMORY);

    f = function(m, "slow5ms");
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuEventQuery(a)); /* never recorded: complete */
    OK(cuEventRecord(a, NULL));
    for (int i = 0; i < 20; i++)
        OK(launch(f, NULL));
    OK(cuEventRecord(b, NULL));
    if (exact_clock()) {
        WANT(cuEventQuery(b), CUDA_ERROR_NOT_READY);
        WANT(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY);
    }
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&ms, a, b));
    printf("20 kernels of 5 ms: %.3f ms simulated\n", ms);
    TRUE(ms > 99.999f && (ms < 100.001f || !exact_clock()));
    WANT(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    WANT(cuLaunchKernel(f, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    WANT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);

    f = function(m, "short");
    t0 = now_s();
    for (int i = 0; i < 900; i++)
        OK(launch(f, NULL));
    printf("launch: %.0f ns\n", (now_s() - t0) / 900 * 1e9);
    OK(cuCtxSynchronize());
    t0 = now_s();
    for (int i = 0; i < 200; i++) {
        OK(launch(f, NULL));
        OK(cuCtxSynchronize());
    }
    printf("launch of 10 us and wait: %.1f us\n", (now_s() - t0) / 200 * 1e6);
    t0 = now_s();
    for (int i = 0; i < 500; i++) {
        OK(cuMemAlloc_v2(&p, 4 << 20));
        OK(cuMemFree_v2(p));
    }
    printf("alloc and free: %.1f us\n", (now_s() - t0) / 500 * 1e6);
    OK(cuEventDestroy_v2(a));
    OK(cuEventDestroy_v2(b));
    OK(cuCtxDestroy_v2(ctx));
    WANT(cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
    return 0;
}
