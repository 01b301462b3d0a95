// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Starts both libraries and prints their answers; run once over the bare driver
// and once over ours, the lines must be the same. An old driver lacks some names:
// that is printed as NVML_ERROR_FUNCTION_NOT_FOUND, as nvidia-ml-py has it.

#include <dlfcn.h>
#include <stdio.h>

#include "cuda_abi.h"
#include "nvml_abi.h"

int main(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	nvmlDevice_t dev = NULL;
	nvmlMemory_t memory;
	unsigned int n = 0;
	int version = 0;
	CUdeviceptr p = 1;

	if (!cuda || !nvml) {
		printf("%s\n", dlerror());
		return 2;
	}
#define CU(name) ((__typeof__(&name))dlsym(cuda, #name))
#define NV(name) ((__typeof__(&name))dlsym(nvml, #name))
	printf("cuInit %d\n", (int)CU(cuInit)(0));
	printf("cuDriverGetVersion %d", (int)CU(cuDriverGetVersion)(&version));
	printf(" %d\n", version);
	printf("cuMemAlloc %d\n", (int)CU(cuMemAlloc_v2)(&p, 4096));
	printf("nvmlInit %d\n", (int)NV(nvmlInit_v2)());
	printf("nvmlDeviceGetCount %d\n", (int)NV(nvmlDeviceGetCount_v2)(&n));
	printf("nvmlDeviceGetMemoryInfo %d\n", (int)NV(nvmlDeviceGetMemoryInfo)(dev, &memory));
	n = 0;
	printf("processes %d\n", NV(nvmlDeviceGetComputeRunningProcesses_v3)
					 ? (int)NV(nvmlDeviceGetComputeRunningProcesses_v3)(dev, &n, NULL)
					 : NVML_ERROR_FUNCTION_NOT_FOUND);
	printf("nvmlErrorString %s\n", NV(nvmlErrorString)(NVML_ERROR_DRIVER_NOT_LOADED));
	return 0;
}
