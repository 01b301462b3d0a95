// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * share.c BYTES: a tenant that is told by letters on its standard input what to do:
 *   r  keep the GPU busy with kernels called k, well ahead
 *   s  stop that, and say "stopped" when nothing is queued
 *   i  say what CUDA and NVML see: "info COUNT FREE TOTAL NVMLFREE NVMLTOTAL SUM",
 *      SUM being what NVML says that the processes on the GPU use
 * It holds BYTES of device memory, and ends with its input.
 */
#include <poll.h>
#include <stdbool.h>

#include "nvml_abi.h"
#include "t.h"

static void info(void)
{
    nvmlProcessInfo_t p[64];
    unsigned n = 64;
    unsigned long long sum = 0;
    nvmlMemory_t m;
    nvmlDevice_t d;
    size_t free_bytes, total;
    int count;

    OK(cuDeviceGetCount(&count));
    OK(cuMemGetInfo_v2(&free_bytes, &total));
    OK(nvmlDeviceGetHandleByIndex_v2(0, &d));
    OK(nvmlDeviceGetMemoryInfo(d, &m));
    OK(nvmlDeviceGetComputeRunningProcesses_v3(d, &n, p));
    for (unsigned i = 0; i < n; i++)
        sum += p[i].usedGpuMemory;
    printf("info %d %zu %zu %llu %llu %llu\n", count, free_bytes, total, m.free, m.total, sum);
}

int main(int argc, char **argv)
{
    CUcontext ctx;
    CUdeviceptr p;
    CUfunction f;
    CUevent e[2];
    bool busy = false;
    int k = 0;
    char c;

    if (argc != 2)
        FAIL("usage: share BYTES");
    f = function(start(&ctx), "k");
    OK(nvmlInit_v2());
    OK(cuMemAlloc_v2(&p, strtoull(argv[1], NULL, 10)));
    for (int i = 0; i < 2; i++)
        OK(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    for (;;) {
        struct pollfd in = {.fd = 0, .events = POLLIN};

        if (poll(&in, 1, busy ? 0 : -1) > 0) {
            if (read(0, &c, 1) != 1)
                return 0;
            if (c == 'r')
                busy = true;
            if (c == 'i')
                info();
            if (c == 's') {
                busy = false;
                OK(cuCtxSynchronize());
                puts("stopped");
            }
            continue;
        }
        for (int i = 0; i < 64; i++)
            OK(launch(f, NULL));
        OK(cuEventRecord(e[k], NULL));
        k ^= 1;
        OK(cuEventSynchronize(e[k])); /* the batch before: one is always queued */
    }
}
