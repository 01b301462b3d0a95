// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * bench: what driver calls cost, measured from the program's side.
 *
 *   bench --op OP [--count N] [--kernel NAME] [--gpu N] [--via WAY] [--bytes N] [--beside N]
 *
 * OP is one of
 *   alloc    cuMemAlloc of 1 MiB, or --bytes, and cuMemFree, a pair
 *   reject   a cuMemAlloc of 64 TiB, or --bytes, that is refused for want of memory
 *   launch   cuLaunchKernel; drains the stream outside the measured part
 *   info     cuMemGetInfo
 *   start    cuInit to the first context, once
 *   facts    prints the device's UUID and the bytes that a context takes
 * --beside is how many other processes hold 2 MiB without a context and wait meanwhile.
 * The result is one line "OP p50 NS p99 NS mean NS count N".
 */
#define _GNU_SOURCE
#include "cu.h"
#include "nvml_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SAMPLES = 1 << 20, DRAIN_EVERY = 64 };

static unsigned int *samples;
static int taken;

static unsigned long long now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (unsigned long long)ts.tv_sec * 1000000000ULL + (unsigned long long)ts.tv_nsec;
}

static void sample(unsigned long long begin)
{
    unsigned long long took = now_ns() - begin;

    samples[taken++] = took > 0xffffffffULL ? 0xffffffffU : (unsigned int)took;
}

static int by_size(const void *a, const void *b)
{
    unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

    return x < y ? -1 : x > y;
}

static void report(const char *op)
{
    double sum = 0;

    if (!taken)
        return;
    qsort(samples, (size_t)taken, sizeof *samples, by_size);
    for (int i = 0; i < taken; i++)
        sum += samples[i];
    printf("%s p50 %u p99 %u mean %.1f count %d\n", op, samples[taken / 2], samples[(long)taken * 99 / 100], sum / taken,
           taken);
}

static void bench_alloc(int count, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        unsigned long long begin = now_ns();
        CUdeviceptr p;

        cu_must(cu.MemAlloc(&p, bytes), "cuMemAlloc");
        cu_must(cu.MemFree(p), "cuMemFree");
        sample(begin);
    }
}

static void bench_reject(int count, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        unsigned long long begin = now_ns();
        CUdeviceptr p;
        CUresult rc = cu.MemAlloc(&p, bytes);

        sample(begin);
        if (rc != CUDA_ERROR_OUT_OF_MEMORY) {
            fprintf(stderr, "bench: %zu bytes: %s\n", bytes, cu_name(rc));
            exit(4);
        }
    }
}

static void bench_info(int count)
{
    for (int i = 0; i < count; i++) {
        unsigned long long begin = now_ns();
        size_t free_bytes, total;

        cu_must(cu.MemGetInfo(&free_bytes, &total), "cuMemGetInfo");
        sample(begin);
    }
}

static void bench_launch(int count, const char *kernel)
{
    CUfunction f = cu_function(kernel);
    CUstream stream;
    unsigned int rounds = 1;
    void *params[] = { &rounds };

    cu_must(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    for (int i = -DRAIN_EVERY; i < count; i++) {
        unsigned long long begin = now_ns();

        cu_must(cu.LaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), "cuLaunchKernel");
        if (i >= 0)
            sample(begin);
        if (i % DRAIN_EVERY == 0)
            cu_must(cu.StreamSynchronize(stream), "cuStreamSynchronize");
    }
}

/* What NVML says that this process uses, in bytes. */
static unsigned long long own_bytes(int gpu)
{
    void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    nvmlProcessInfo_t procs[256];
    unsigned int n = 256;
    nvmlDevice_t dev;

    if (!lib)
        return 0;
#define NVML(name) ((__typeof__(&name))dlsym(lib, #name))
    if (NVML(nvmlInit_v2)() != NVML_SUCCESS ||
        NVML(nvmlDeviceGetHandleByIndex_v2)((unsigned int)gpu, &dev) != NVML_SUCCESS ||
        NVML(nvmlDeviceGetComputeRunningProcesses_v3)(dev, &n, procs) != NVML_SUCCESS)
        return 0;
    for (unsigned int i = 0; i < n; i++)
        if (procs[i].pid == (unsigned int)getpid())
            return procs[i].usedGpuMemory;
    return 0;
}

static void facts(CUdevice dev, int gpu)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    __typeof__(&cuDeviceGetUuid) get = (__typeof__(&cuDeviceGetUuid))dlsym(lib, "cuDeviceGetUuid");
    char name[256];
    CUuuid uuid;

    cu_must(get(&uuid, dev), "cuDeviceGetUuid");
    cu_must(cu.DeviceGetName(name, sizeof name, dev), "cuDeviceGetName");
    printf("uuid ");
    for (int i = 0; i < 16; i++)
        printf("%02x", (unsigned char)uuid.bytes[i]);
    printf("\ncontext %llu\nname %s\n", own_bytes(gpu), name);
}

/* Starts n processes that hold memory until this one ends. */
static void stand_beside(int n, int gpu, const char *via)
{
    CUmemAllocationProp what = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu},
    };
    CUmemGenericAllocationHandle handle;
    int ready[2], end[2];
    char b;

    if (pipe(ready) || pipe(end))
        exit(1);
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        if (pid < 0)
            exit(1);
        if (pid)
            continue;
        close(end[1]);
        cu_load(via);
        cu_must(cu.Init(0), "cuInit");
        cu_must(cu.MemCreate(&handle, 2 << 20, &what, 0), "cuMemCreate");
        if (write(ready[1], "", 1) != 1 || read(end[0], &b, 1) != 0)
            _exit(1);
        _exit(0);
    }
    close(ready[1]);
    for (int i = 0; i < n; i++)
        if (read(ready[0], &b, 1) != 1)
            exit(1);
}

static const char *value(char **argv, int *i)
{
    if (!argv[*i + 1]) {
        fprintf(stderr, "bench: %s needs a value\n", argv[*i]);
        exit(2);
    }
    return argv[++*i];
}

int main(int argc, char **argv)
{
    const char *op = "launch", *kernel = "bench", *via = NULL;
    unsigned long long begin;
    int count = 10000, gpu = 0, beside = 0;
    size_t bytes = 0;
    CUdevice dev;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--op"))
            op = value(argv, &i);
        else if (!strcmp(argv[i], "--count"))
            count = atoi(value(argv, &i));
        else if (!strcmp(argv[i], "--kernel"))
            kernel = value(argv, &i);
        else if (!strcmp(argv[i], "--gpu"))
            gpu = atoi(value(argv, &i));
        else if (!strcmp(argv[i], "--via"))
            via = value(argv, &i);
        else if (!strcmp(argv[i], "--bytes"))
            bytes = strtoull(value(argv, &i), NULL, 10);
        else if (!strcmp(argv[i], "--beside"))
            beside = atoi(value(argv, &i));
        else {
            fprintf(stderr, "bench: do not know \"%s\"\n", argv[i]);
            return 2;
        }
    }
    if (count < 1 || count > MAX_SAMPLES)
        return 2;
    samples = calloc((size_t)count, sizeof *samples);
    if (!samples)
        return 1;
    stand_beside(beside, gpu, via);
    begin = now_ns();
    cu_load(via);
    dev = cu_open(gpu);
    if (!strcmp(op, "start"))
        sample(begin);
    else if (!strcmp(op, "alloc"))
        bench_alloc(count, bytes ? bytes : 1 << 20);
    else if (!strcmp(op, "reject"))
        bench_reject(count, bytes ? bytes : 1ULL << 46);
    else if (!strcmp(op, "launch"))
        bench_launch(count, kernel);
    else if (!strcmp(op, "info"))
        bench_info(count);
    else if (!strcmp(op, "facts"))
        facts(dev, gpu);
    else
        return 2;
    report(op);
    fflush(stdout);
    _exit(0);
}
