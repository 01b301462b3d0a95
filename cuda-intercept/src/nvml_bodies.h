// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Bodies of the wrappers of libnvidia-ml.so.1.

#ifndef GS_NVML_BODIES_H
#define GS_NVML_BODIES_H

#include <stdbool.h>

#include "nvml_abi.h"

#define GS_FN(symbol) __typeof__(symbol) *

// gs_nvml_is_inner tells whether a call that returns to address comes from the
// real library, which calls its own exports through the PLT and so through us, or
// is made within a call of ours.
bool gs_nvml_is_inner(const void *address);

nvmlReturn_t gs_nv_memory_info(GS_FN(nvmlDeviceGetMemoryInfo) real, nvmlDevice_t dev, nvmlMemory_t *ret_info);
nvmlReturn_t gs_nv_memory_info_v2(GS_FN(nvmlDeviceGetMemoryInfo_v2) real, nvmlDevice_t dev,
				  nvmlMemory_v2_t *ret_info);
nvmlReturn_t gs_nv_compute_processes_v1(GS_FN(nvmlDeviceGetComputeRunningProcesses) real, nvmlDevice_t dev,
					unsigned int *count, nvmlProcessInfo_v1_t *ret_infos);
nvmlReturn_t gs_nv_compute_processes(GS_FN(nvmlDeviceGetComputeRunningProcesses_v3) real, nvmlDevice_t dev,
				     unsigned int *count, nvmlProcessInfo_t *ret_infos);
nvmlReturn_t gs_nv_other_processes_v1(GS_FN(nvmlDeviceGetGraphicsRunningProcesses) real, nvmlDevice_t dev,
				      unsigned int *count, nvmlProcessInfo_v1_t *ret_infos);
nvmlReturn_t gs_nv_other_processes(GS_FN(nvmlDeviceGetGraphicsRunningProcesses_v3) real, nvmlDevice_t dev,
				   unsigned int *count, nvmlProcessInfo_t *ret_infos);

#endif
