// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A stand-in for libnvidia-ml that, like the real one, reaches its own exports
// through its PLT, and so through whoever stands before it. Its card has 80 GiB,
// 10 of them free.

#include <stdio.h>
#include <string.h>

#include "nvml_abi.h"

#define GIB (1ULL << 30)

nvmlReturn_t nvmlInit_v2(void)
{
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int n)
{
	snprintf(version, n, "1.2.3");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *dev)
{
	*dev = (nvmlDevice_t)(unsigned long)(i + 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t dev, char *uuid, unsigned int n)
{
	snprintf(uuid, n, "GPU-fa000000-0000-0000-0000-0000000000%02lx", (unsigned long)dev);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t dev, nvmlMemory_v2_t *m)
{
	(void)dev;
	m->total = 80 * GIB;
	m->reserved = GIB;
	m->free = 10 * GIB;
	m->used = 69 * GIB;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t dev, nvmlMemory_t *m)
{
	nvmlMemory_v2_t v2;
	nvmlReturn_t r = nvmlDeviceGetMemoryInfo_v2(dev, &v2);

	*m = (nvmlMemory_t){.total = v2.total, .free = v2.free, .used = v2.used};
	return r;
}

// Not hooked, and asks its own library: the answer must be the card's.
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t dev, nvmlBAR1Memory_t *m)
{
	nvmlMemory_t inner;
	nvmlProcessInfo_t list[8];
	unsigned int n = 8;
	nvmlReturn_t r = nvmlDeviceGetMemoryInfo(dev, &inner);

	if (r == NVML_SUCCESS)
		r = nvmlDeviceGetComputeRunningProcesses_v3(dev, &n, list);
	m->bar1Total = inner.total;
	m->bar1Free = inner.free;
	m->bar1Used = n;
	return r;
}

// Processes of other tenants.
#define LIST(name, type)                                                  \
	nvmlReturn_t name(nvmlDevice_t dev, unsigned int *n, type *list)  \
	{                                                                 \
		(void)dev;                                                \
		if (list)                                                 \
			memset(list, 0x55, sizeof(*list));                \
		*n = 5;                                                   \
		return NVML_SUCCESS;                                      \
	}
LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
