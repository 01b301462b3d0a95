// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml: prints what libnvidia-ml.so.1 tells a program about each GPU; with --busy how
 * busy it is, in percent, and nothing else. */
#define _GNU_SOURCE
#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(name) ((__typeof__(&name))need(#name))

static void *lib;

static void *need(const char *name)
{
    void *p = dlsym(lib, name);

    if (!p) {
        fprintf(stderr, "nvml: %s\n", dlerror());
        exit(3);
    }
    return p;
}

static void must(nvmlReturn_t rc, const char *what)
{
    if (rc == NVML_SUCCESS)
        return;
    fprintf(stderr, "nvml: %s: %d\n", what, (int)rc);
    exit(4);
}

int main(int argc, char **argv)
{
    int busy = argc > 1 && !strcmp(argv[1], "--busy");
    unsigned int gpus = 0;

    lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!lib) {
        fprintf(stderr, "nvml: %s\n", dlerror());
        return 3;
    }
    must(CALL(nvmlInit_v2)(), "nvmlInit");
    must(CALL(nvmlDeviceGetCount_v2)(&gpus), "nvmlDeviceGetCount");
    for (unsigned int i = 0; i < gpus; i++) {
        nvmlDevice_t dev;
        nvmlMemory_t mem;
        nvmlProcessInfo_t procs[64];
        unsigned int n = 64;
        char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE], uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];

        must(CALL(nvmlDeviceGetHandleByIndex_v2)(i, &dev), "nvmlDeviceGetHandleByIndex");
        if (busy) {
            nvmlUtilization_t u;

            must(CALL(nvmlDeviceGetUtilizationRates)(dev, &u), "nvmlDeviceGetUtilizationRates");
            printf("busy %u\n", u.gpu);
            continue;
        }
        must(CALL(nvmlDeviceGetName)(dev, name, sizeof name), "nvmlDeviceGetName");
        must(CALL(nvmlDeviceGetUUID)(dev, uuid, sizeof uuid), "nvmlDeviceGetUUID");
        must(CALL(nvmlDeviceGetMemoryInfo)(dev, &mem), "nvmlDeviceGetMemoryInfo");
        must(CALL(nvmlDeviceGetComputeRunningProcesses_v3)(dev, &n, procs), "nvmlDeviceGetComputeRunningProcesses");
        printf("gpu %u %s %s\n", i, uuid, name);
        printf("memory total %llu used %llu free %llu\n", mem.total, mem.used, mem.free);
        for (unsigned int k = 0; k < n; k++)
            printf("process %u bytes %llu\n", procs[k].pid, procs[k].usedGpuMemory);
    }
    must(CALL(nvmlShutdown)(), "nvmlShutdown");
    return 0;
}
