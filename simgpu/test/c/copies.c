// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* copies.c: on a card whose copies take time. Argument: MB/s between pinned
 * memory and the device, MB/s within the device. */
#include "t.h"

#define N ((size_t)8 << 20)

static CUevent a, b;

static CUfunction slow;

/* The time of what call submits, behind a kernel that runs while bytes move. */
#define BETWEEN(s, call, want)          \
    do {                                \
        OK(launch(slow, s));            \
        OK(cuEventRecord(a, s));        \
        OK(call);                       \
        NEAR(since(s), want);           \
    } while (0)

static double since(CUstream s)
{
    float ms;

    OK(cuEventRecord(b, s));
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&ms, a, b));
    return ms;
}

#define NEAR(got, want)                                                  \
    do {                                                                 \
        double g_ = (got), w_ = (want);                                  \
        if (g_ < w_ * 0.99 || g_ > w_ * 1.01)                            \
            FAIL("%s: %.4f ms, want %.4f", #got, g_, w_);                \
    } while (0)

int main(int argc, char **argv)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);
    CUstream s, t;
    CUdeviceptr d, e;
    char *pinned, *pageable = malloc(N);
    double link, within;
    unsigned u;
    float ms;

    TRUE(argc == 3);
    slow = function(m, "slow");
    link = (double)N / 1e3 / atof(argv[1]) + 0.002; /* ms, and what each copy costs */
    within = (double)N / 1e3 / atof(argv[2]) + 0.0015;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    OK(cuMemAlloc_v2(&d, N));
    OK(cuMemAlloc_v2(&e, N));
    OK(cuMemAllocHost_v2((void **)&pinned, N));
    memset(pinned, 7, N);
    memset(pageable, 9, N);

    OK(cuMemcpyHtoD_v2(d, pinned, N)); /* touches all that later copies touch */
    OK(cuMemcpyDtoD_v2(e, d, N));
    BETWEEN(s, cuMemcpyHtoDAsync_v2(d, pinned, N, s), link);
    BETWEEN(s, cuMemcpyDtoDAsync_v2(e, d, N, s), within);
    BETWEEN(s, cuMemsetD32Async(d, 0x01010101, N / 4, s), within);
    OK(cuMemcpyDtoH_v2(pageable, e, N));
    TRUE(pageable[0] == 7 && pageable[N - 1] == 7);
    OK(cuMemcpyDtoH_v2(&u, d + N - 4, 4));
    TRUE(u == 0x01010101);

    /* Both directions and a kernel at once: as long as the longest. */
    OK(launch(slow, t)); /* so that what follows is queued in time */
    OK(cuEventRecord(a, t));
    OK(cuStreamWaitEvent(s, a, 0));
    OK(launch(slow, t));
    OK(cuMemcpyHtoDAsync_v2(d, pinned, N, s));
    OK(cuEventRecord(b, t));
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&ms, a, b));
    NEAR(ms, 150.0);
    OK(cuStreamQuery(s));

    /* What waits and what does not. */
    OK(launch(slow, s));
    OK(cuMemcpyDtoHAsync_v2(pinned, d, N, s));
    WANT(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(s));
    OK(launch(slow, s));
    OK(cuMemcpyHtoDAsync_v2(d, pageable, 4096, s)); /* staged */
    WANT(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    OK(cuMemcpyDtoHAsync_v2(pageable, d, 4096, s)); /* to pageable memory: waits */
    OK(cuStreamQuery(s));
    OK(launch(slow, NULL));
    OK(cuMemcpyDtoD_v2(e, d, N)); /* within the device: does not wait */
    WANT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    OK(cuMemsetD8_v2(d, 1, N));
    WANT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    OK(cuMemcpyDtoH_v2(pageable, d, 1)); /* to the host: waits */
    OK(cuStreamQuery(NULL));

    /* In order behind a host function, and in time as well. */
    OK(cuMemcpyHtoD_v2(d, pinned, 4096));
    OK(cuMemFreeHost(pinned));
    OK(cuCtxDestroy_v2(ctx));
    free(pageable);
    return 0;
}
