// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* start.c: loading the driver, and which device and context a thread works in. */
#include <dlfcn.h>
#include <pthread.h>

#include "rt.h"

struct rt_driver rt_drv;

static __thread int this_device;
static CUcontext primary[RT_MAX_DEVICES];
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult lacking(void)
{
    return (CUresult)RT_NEEDS_NEWER_DRIVER;
}

static const struct {
    const char *base;
    int version;
    size_t offset;
} wanted[] = {
#define D(base, symbol, version) {#base, version, offsetof(struct rt_driver, base)},
#include "driver.def"
#undef D
};

static cudaError_t started = RT_INSUFFICIENT_DRIVER;

static void load(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    __typeof__(&cuGetProcAddress_v2) find = lib ? (__typeof__(find))dlsym(lib, "cuGetProcAddress_v2") : NULL;

    if (!find)
        return;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        CUdriverProcAddressQueryResult why;
        void *fn = NULL;

        if (find(wanted[i].base, &fn, wanted[i].version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &why) || !fn)
            fn = (void *)lacking;
        memcpy((char *)&rt_drv + wanted[i].offset, &fn, sizeof(fn));
    }
    started = (cudaError_t)rt_drv.cuInit(0);
}

cudaError_t rt_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return started;
}

cudaError_t rt_primary(int device, CUcontext *ret)
{
    cudaError_t e = RT_OK;

    if (device < 0 || device >= RT_MAX_DEVICES)
        return RT_INVALID_DEVICE;
    pthread_mutex_lock(&primary_lock);
    if (!primary[device])
        e = (cudaError_t)rt_drv.cuDevicePrimaryCtxRetain(&primary[device], device);
    *ret = primary[device];
    pthread_mutex_unlock(&primary_lock);
    return e;
}

static cudaError_t bind(int device)
{
    CUcontext c;
    cudaError_t e = rt_primary(device, &c);

    return e == RT_OK ? (cudaError_t)rt_drv.cuCtxSetCurrent(c) : e;
}

cudaError_t rt_enter(void)
{
    CUcontext c = NULL;
    cudaError_t e = rt_start();

    if (e != RT_OK)
        return e;
    e = (cudaError_t)rt_drv.cuCtxGetCurrent(&c);
    return e != RT_OK || c ? e : bind(this_device);
}

cudaError_t rt_device(int *ret)
{
    CUcontext c = NULL;
    cudaError_t e = rt_start();

    /* A context that was made current by the driver's own call counts. */
    if (e == RT_OK && rt_drv.cuCtxGetCurrent(&c) == CUDA_SUCCESS && c)
        return (cudaError_t)rt_drv.cuCtxGetDevice(ret);
    *ret = this_device;
    return e;
}

RT(cudaGetDevice, int *device)
{
    if (!device)
        return rt_set(RT_INVALID_VALUE);
    return rt_set(rt_device(device));
}

/* Since CUDA 12 this also makes the device's context. */
RT(cudaSetDevice, int device)
{
    int n;

    RT_START();
    RT_TRY((cudaError_t)rt_drv.cuDeviceGetCount(&n));
    if (device < 0 || device >= n)
        return rt_set(RT_INVALID_DEVICE);
    this_device = device;
    return rt_set(bind(device));
}

RT(cudaInitDevice, int device, unsigned int flags RT_UNUSED, unsigned int which RT_UNUSED)
{
    CUcontext c;

    RT_START();
    return rt_set(rt_primary(device, &c));
}

RT(cudaGetDeviceCount, int *n)
{
    cudaError_t e;

    if (!n)
        return rt_set(RT_INVALID_VALUE);
    e = rt_start();
    *n = 0;
    return rt_set(e == RT_OK ? (cudaError_t)rt_drv.cuDeviceGetCount(n) : e);
}

RT(cudaDeviceReset, void)
{
    cudaError_t e;
    int d;

    RT_TRY(rt_device(&d));
    pthread_mutex_lock(&primary_lock);
    e = primary[d] ? (cudaError_t)rt_drv.cuDevicePrimaryCtxReset(d) : RT_OK;
    if (primary[d])
        rt_drv.cuDevicePrimaryCtxRelease(d);
    primary[d] = NULL;
    pthread_mutex_unlock(&primary_lock);
    rt_drv.cuCtxSetCurrent(NULL);
    return rt_set(e);
}

RT(cudaDriverGetVersion, int *version)
{
    cudaError_t e = rt_start();

    if (!version)
        return rt_set(RT_INVALID_VALUE);
    *version = 0;
    if (e == RT_INSUFFICIENT_DRIVER)
        return RT_OK; /* documented: 0 without a driver */
    return rt_set((cudaError_t)rt_drv.cuDriverGetVersion(version));
}

RT(cudaRuntimeGetVersion, int *version)
{
    if (!version)
        return rt_set(RT_INVALID_VALUE);
    *version = RT_VERSION;
    return RT_OK;
}

static cudaError_t entry_point(const char *symbol, void **fn, int version, unsigned long long flags, unsigned int *status)
{
    CUdriverProcAddressQueryResult why;

    RT_START();
    if (!symbol || !fn)
        return rt_set(RT_INVALID_VALUE);
    RT_TRY((cudaError_t)rt_drv.cuGetProcAddress(symbol, fn, version, flags, &why));
    if (status)
        *status = why;
    /* Only a caller that asked for no status is told by an error. */
    return rt_set(*fn || status ? RT_OK : RT_SYMBOL_NOT_FOUND);
}

RT(cudaGetDriverEntryPoint, const char *symbol, void **fn, unsigned long long flags, unsigned int *status)
{
    return entry_point(symbol, fn, RT_VERSION, flags, status);
}

RT(cudaGetDriverEntryPointByVersion, const char *symbol, void **fn, unsigned int version, unsigned long long flags,
   unsigned int *status)
{
    return entry_point(symbol, fn, (int)version, flags, status);
}
