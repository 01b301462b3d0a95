// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A stand-in for libnvidia-ml that, like the real one, reaches its own exports
// through its PLT, and so through whoever stands before it. Its card has 80 GiB,
// 10 of them free.

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t dev, unsigned int *id)
{
	nvmlMemory_t inner;
	nvmlProcessInfo_t list[8];
	unsigned int n = 8;
	nvmlReturn_t r = nvmlDeviceGetMemoryInfo(dev, &inner);

	if (r == NVML_SUCCESS)
		r = nvmlDeviceGetComputeRunningProcesses_v3(dev, &n, list);
	*id = (unsigned int)(inner.total / GIB * 10000 + inner.free / GIB * 100 + n);
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

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t dev, nvmlProcessDetailList_t *list)
{
	(void)dev;
	list->numProcArrayEntries = 5;
	return NVML_SUCCESS;
}

// What is told of single processes: of the asking one and of two others.
static unsigned int pid_of(unsigned int i)
{
	return i == 1 ? (unsigned int)getpid() : 4000000 + i;
}

// The others' figures are larger.
static unsigned int figure(unsigned int i)
{
	return i == 1 ? 30 : 90;
}

#define EACH(list, n, ...)                                             \
	do {                                                           \
		unsigned int room = (list) ? *(n) : 0;                 \
		*(n) = 3;                                              \
		if (room < 3)                                          \
			return NVML_ERROR_INSUFFICIENT_SIZE;           \
		for (unsigned int i = 0; i < 3; i++)                   \
			(list)[i] = __VA_ARGS__;                       \
		return NVML_SUCCESS;                                   \
	} while (0)

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t dev, nvmlProcessUtilizationSample_t *list, unsigned int *n,
					     unsigned long long since)
{
	(void)dev;
	EACH(list, n, (nvmlProcessUtilizationSample_t){.pid = pid_of(i), .smUtil = figure(i), .memUtil = figure(i) + 1,
					       .encUtil = figure(i) + 2, .decUtil = figure(i) + 3,
					       .timeStamp = since});
}

#ifndef STANDIN_OLD // as before 12.4
nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t dev, nvmlProcessesUtilizationInfo_t *info)
{
	(void)dev;
	EACH(info->procUtilArray, &info->processSamplesCount,
	     (nvmlProcessUtilizationInfo_v1_t){.pid = pid_of(i), .smUtil = figure(i), .memUtil = figure(i) + 1,
					       .encUtil = figure(i) + 2, .decUtil = figure(i) + 3,
					       .jpgUtil = figure(i) + 4, .ofaUtil = figure(i) + 5,
					       .timeStamp = info->lastSeenTimeStamp});
}
#endif

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t dev, unsigned int *n, unsigned int *list)
{
	(void)dev;
	EACH(list, n, pid_of(i));
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t dev, unsigned int pid, nvmlAccountingStats_t *stats)
{
	(void)dev;
	stats->time = pid;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAccountingStats_v2(nvmlDevice_t dev, nvmlAccountingStats_v2_t *stats)
{
	(void)dev;
	stats->time = stats->pid;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int n)
{
	snprintf(name, n, "program %u", pid);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t dev, unsigned int *n, nvmlEncoderSessionInfo_t *list)
{
	(void)dev;
	EACH(list, n, (nvmlEncoderSessionInfo_t){.pid = pid_of(i), .averageFps = figure(i), .averageLatency = 2 * figure(i)});
}

nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t dev, unsigned int *n, nvmlFBCSessionInfo_t *list)
{
	(void)dev;
	EACH(list, n, (nvmlFBCSessionInfo_t){.pid = pid_of(i), .averageFPS = figure(i), .averageLatency = 2 * figure(i)});
}

nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t dev, unsigned int *n, unsigned int *fps, unsigned int *latency)
{
	(void)dev;
	*n = 3;
	*fps = 70;
	*latency = 140;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t dev, nvmlFBCStats_t *stats)
{
	(void)dev;
	*stats = (nvmlFBCStats_t){3, 70, 140};
	return NVML_SUCCESS;
}

// Other figures of the card's memory.
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t dev, nvmlDeviceAttributes_t *a)
{
	(void)dev;
	*a = (nvmlDeviceAttributes_t){.multiprocessorCount = 132, .memorySizeMB = 80 * 1024};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t dev, nvmlDeviceAttributes_t *a)
{
	return nvmlDeviceGetAttributes_v2(dev, a);
}

nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t dev, nvmlConfComputeMemSizeInfo_t *m)
{
	(void)dev;
	*m = (nvmlConfComputeMemSizeInfo_t){80 << 20, 1 << 10};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t dev, nvmlMemory_t *m)
{
	(void)dev;
	*m = (nvmlMemory_t){.total = 80 * GIB, .free = 10 * GIB, .used = 70 * GIB};
	return NVML_SUCCESS;
}

// The use of the whole card: others keep it busy.
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t dev, nvmlBAR1Memory_t *m)
{
	(void)dev;
	*m = (nvmlBAR1Memory_t){.bar1Total = 128 * GIB, .bar1Free = 100 * GIB, .bar1Used = 28 * GIB};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t dev, nvmlUtilization_t *u)
{
	(void)dev;
	*u = (nvmlUtilization_t){99, 98};
	return NVML_SUCCESS;
}

#define ENGINE(name)                                                                             \
	nvmlReturn_t name(nvmlDevice_t dev, unsigned int *percent, unsigned int *period)         \
	{                                                                                        \
		(void)dev;                                                                       \
		*percent = 99;                                                                   \
		*period = 167000;                                                                \
		return NVML_SUCCESS;                                                             \
	}
ENGINE(nvmlDeviceGetEncoderUtilization)
ENGINE(nvmlDeviceGetDecoderUtilization)
ENGINE(nvmlDeviceGetJpgUtilization)
ENGINE(nvmlDeviceGetOfaUtilization)

nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t dev, nvmlGpuDynamicPstatesInfo_t *p)
{
	(void)dev;
	p->flags = 1;
	for (int i = 0; i < 8; i++) {
		p->utilization[i].bIsPresent = 1;
		p->utilization[i].percentage = 99;
		p->utilization[i].incThreshold = 7;
	}
	return NVML_SUCCESS;
}

// Four samples, of which two are of the last second.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t dev, nvmlSamplingType_t type, unsigned long long since,
				  nvmlValueType_t *value_type, unsigned int *n, nvmlSample_t *list)
{
	static const unsigned long long at[] = {1000000, 3500000, 3900000, 4400000};

	(void)dev;
	(void)type;
	(void)since;
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	*n = 4;
	for (int i = 0; list && i < 4; i++) {
		list[i].timeStamp = at[i];
		list[i].sampleValue.uiVal = 99;
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t dev, nvmlGpmSupport_t *support)
{
	(void)dev;
	support->isSupportedDevice = 1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t dev, nvmlGpmSample_t sample)
{
	(void)dev;
	*(unsigned int *)sample = 99;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t dev, unsigned int instance, nvmlGpmSample_t sample)
{
	(void)instance;
	return nvmlGpmSampleGet(dev, sample);
}

nvmlReturn_t nvmlDevicePerfMetricsGetSamples_v1(nvmlDevice_t dev, nvmlPerfMetricsSamples_v1_t *samples)
{
	return nvmlGpmSampleGet(dev, (nvmlGpmSample_t)samples);
}
