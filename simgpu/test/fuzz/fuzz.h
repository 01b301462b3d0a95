// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* fuzz.h: where the arguments of random calls come from. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "nvml_abi.h"

struct call {
    const char *name;
    int (*make)(void *function);
};
extern const struct call cuda_calls[], nvml_calls[];
extern const unsigned cuda_calls_count, nvml_calls_count;

enum kind {
    K_CUcontext, K_CUmodule, K_CUfunction, K_CUlibrary, K_CUkernel, K_CUarray, K_CUmipmappedArray, K_CUtexref,
    K_CUsurfref, K_CUevent, K_CUstream, K_CUgraphicsResource, K_CUexternalMemory, K_CUexternalSemaphore, K_CUgraph,
    K_CUgraphNode, K_CUgraphExec, K_CUmemoryPool, K_CUuserObject, K_CUgraphDeviceNode, K_CUasyncCallbackHandle,
    K_CUgreenCtx, K_CUlinkState, K_CUdevResourceDesc, K_CUlogsCallbackHandle, K_CUmemGenericAllocationHandle,
    K_CUtexObject, K_CUsurfObject, K_CUgraphConditionalHandle, K_CUdeviceptr, K_nvmlDevice_t, K_nvmlUnit_t,
    K_nvmlEventSet_t, K_nvmlGpuInstance_t, K_nvmlComputeInstance_t, K_nvmlGpmSample_t, KINDS
};

/* A handle that a call returned: mostly of this kind and living, now and then
 * one that is gone, of another kind, NULL, or a small number. */
uint64_t a_handle(enum kind k);
const void *a_list(enum kind k); /* many of them, in memory that no call writes */
void *a_result(enum kind k);     /* where a call puts one */
void keep(enum kind k);          /* the call has succeeded */
void *a_function(void);
const char *a_text(void);
void *a_buffer(void);            /* host memory for bytes */
const void *a_struct(const char *type); /* only read by calls */
void *an_output(void);           /* zeroed, written by calls */
void *some_limits(void);
void *a_value(void);             /* of a number or structure passed by value */
int a_device(void);
long long a_number(void);

#endif
