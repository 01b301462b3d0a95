// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * cu.h: how the test clients reach the driver library.
 *
 * A client is an ordinary CUDA driver-API program: it knows nothing of gpushare
 * or of a simulator. It reaches libcuda.so.1 in one of the ways that real
 * programs use: linked at build time, dlopen + dlsym, or cuGetProcAddress.
 */
#ifndef CLIENT_CU_H
#define CLIENT_CU_H

#include "cuda_abi.h"

/* The calls that the clients make: X(field, exported symbol, base name). */
#define CU_CALLS(X) \
    X(Init, cuInit, "cuInit") \
    X(DriverGetVersion, cuDriverGetVersion, "cuDriverGetVersion") \
    X(GetErrorName, cuGetErrorName, "cuGetErrorName") \
    X(DeviceGet, cuDeviceGet, "cuDeviceGet") \
    X(DeviceGetCount, cuDeviceGetCount, "cuDeviceGetCount") \
    X(DeviceGetName, cuDeviceGetName, "cuDeviceGetName") \
    X(DeviceTotalMem, cuDeviceTotalMem_v2, "cuDeviceTotalMem") \
    X(PrimaryRetain, cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain") \
    X(PrimaryRelease, cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease") \
    X(CtxSetCurrent, cuCtxSetCurrent, "cuCtxSetCurrent") \
    X(CtxSynchronize, cuCtxSynchronize, "cuCtxSynchronize") \
    X(MemAlloc, cuMemAlloc_v2, "cuMemAlloc") \
    X(MemAllocPitch, cuMemAllocPitch_v2, "cuMemAllocPitch") \
    X(MemAllocManaged, cuMemAllocManaged, "cuMemAllocManaged") \
    X(MemAllocAsync, cuMemAllocAsync, "cuMemAllocAsync") \
    X(MemFree, cuMemFree_v2, "cuMemFree") \
    X(MemCreate, cuMemCreate, "cuMemCreate") \
    X(MemGetInfo, cuMemGetInfo_v2, "cuMemGetInfo") \
    X(MemcpyHtoD, cuMemcpyHtoD_v2, "cuMemcpyHtoD") \
    X(MemcpyDtoH, cuMemcpyDtoH_v2, "cuMemcpyDtoH") \
    X(MemcpyDtoD, cuMemcpyDtoD_v2, "cuMemcpyDtoD") \
    X(MemsetD8, cuMemsetD8_v2, "cuMemsetD8") \
    X(ModuleLoadData, cuModuleLoadData, "cuModuleLoadData") \
    X(ModuleGetFunction, cuModuleGetFunction, "cuModuleGetFunction") \
    X(LaunchKernel, cuLaunchKernel, "cuLaunchKernel") \
    X(StreamCreate, cuStreamCreate, "cuStreamCreate") \
    X(StreamSynchronize, cuStreamSynchronize, "cuStreamSynchronize") \
    X(StreamBeginCapture, cuStreamBeginCapture_v2, "cuStreamBeginCapture") \
    X(StreamEndCapture, cuStreamEndCapture, "cuStreamEndCapture") \
    X(GraphInstantiate, cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags") \
    X(GraphLaunch, cuGraphLaunch, "cuGraphLaunch")

struct cu {
#define X(field, symbol, base) __typeof__(&symbol) field;
    CU_CALLS(X)
#undef X
};

extern struct cu cu;

/*
 * cu_load fills cu. via is "link", "dlsym", "proc" (cuGetProcAddress) or "proc2"
 * (cuGetProcAddress_v2); NULL is the build's default. Ends the program with
 * status 3 and a line on standard error if the driver cannot be reached so.
 */
void cu_load(const char *via);

/* cu_name is the name of a result, such as "CUDA_ERROR_OUT_OF_MEMORY". */
const char *cu_name(CUresult rc);

/* cu_must ends the program with status 4 unless rc is CUDA_SUCCESS. */
void cu_must(CUresult rc, const char *what);

/* cu_open does cuInit, takes device gpu and makes its primary context current. */
CUdevice cu_open(int gpu);

/* cu_function makes a function called name out of a small PTX module. */
CUfunction cu_function(const char *name);

/* cu_bytes reads a size: digits with an optional KiB, MiB or GiB. */
size_t cu_bytes(const char *text);

/*
 * cu_hold waits as the caller of the program asks: "stdin" for a line or the end
 * of standard input, "signal" for SIGUSR1, SIGTERM or SIGINT (block them early
 * with cu_block_signals), "no" not at all.
 */
void cu_block_signals(void);
void cu_hold(const char *how);

#endif
