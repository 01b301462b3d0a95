// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * probe LIMIT: an ordinary CUDA program that tells whether it is held to LIMIT bytes
 * of device memory. `gpushare install` runs it in a container and believes what it
 * prints on its one line: "denied at the limit …" and status 0, or what is wrong and
 * status 1. It knows nothing of gpushare.
 */
#define _GNU_SOURCE
#include "cuda_abi.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static __typeof__(&cuInit) init;
static __typeof__(&cuDeviceGet) device_get;
static __typeof__(&cuDeviceTotalMem_v2) device_total;
static __typeof__(&cuDevicePrimaryCtxRetain) retain;
static __typeof__(&cuCtxSetCurrent) set_current;
static __typeof__(&cuMemAlloc_v2) alloc;

static void wrong(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void wrong(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    exit(1);
}

static void load(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    static const struct {
        const char *name;
        void *fn;
    } calls[] = {
        { "cuInit", &init },
        { "cuDeviceGet", &device_get },
        { "cuDeviceTotalMem_v2", &device_total },
        { "cuDevicePrimaryCtxRetain", &retain },
        { "cuCtxSetCurrent", &set_current },
        { "cuMemAlloc_v2", &alloc },
    };

    if (!lib)
        wrong("no driver library was put into the container: %s", dlerror());
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        void *found = dlsym(lib, calls[i].name);

        if (!found)
            wrong("the driver library has no %s", calls[i].name);
        *(void **)calls[i].fn = found;
    }
}

static void must(CUresult rc, const char *call)
{
    if (rc != CUDA_SUCCESS)
        wrong("%s failed with error %d", call, (int)rc);
}

int main(int argc, char **argv)
{
    size_t limit, total = 0, taken = 0, step;
    CUdevice device;
    CUcontext context;
    CUdeviceptr ptr;
    CUresult rc = CUDA_SUCCESS;
    char *end;

    if (argc != 2)
        wrong("usage: probe LIMIT");
    limit = strtoull(argv[1], &end, 10);
    if (*end || limit == 0)
        wrong("%s is no number of bytes", argv[1]);
    load();
    must(init(0), "cuInit");
    must(device_get(&device, 0), "cuDeviceGet");
    must(device_total(&total, device), "cuDeviceTotalMem");
    must(retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(set_current(context), "cuCtxSetCurrent");
    if (total != limit)
        wrong("the device has %zu bytes, where the limit of %zu should be seen", total, limit);
    rc = alloc(&ptr, limit + 1);
    if (rc != CUDA_ERROR_OUT_OF_MEMORY)
        wrong("%zu bytes, one more than the limit, were answered with %d, not with out of memory", limit + 1, (int)rc);
    /* All there is, in ever smaller steps; the context's own part is taken already. */
    for (step = limit; step >= 4096; step /= 2) {
        while ((rc = alloc(&ptr, step)) == CUDA_SUCCESS) {
            taken += step;
            if (taken > limit)
                wrong("%zu bytes were taken under a limit of %zu", taken, limit);
        }
        if (rc != CUDA_ERROR_OUT_OF_MEMORY)
            wrong("an allocation of %zu bytes failed with error %d", step, (int)rc);
    }
    if (taken == 0)
        wrong("not a byte could be taken under a limit of %zu", limit);
    printf("denied at the limit of %zu bytes, with %zu taken beside the context\n", limit, taken);
    return 0;
}
