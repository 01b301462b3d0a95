// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The driver tells of three processes, of which one is this one. Before it starts
// CUDA it is no process of the container's GPU, and nothing is seen; then itself.

#include <stdbool.h>

#include "harness.h"
#include "nvml_abi.h"

#define OTHER 4000000U
#define ROOM 8U

static void *nvml;

#define NV(name) ((__typeof__(&name))dlsym(nvml, #name))

// lists wants of each list the processes' own elements: own of them, 0 or 1.
static void lists(nvmlDevice_t dev, unsigned int own, int nothing)
{
	nvmlProcessUtilizationSample_t samples[ROOM] = {0};
	nvmlProcessUtilizationInfo_v1_t infos[ROOM] = {0};
	nvmlProcessesUtilizationInfo_t info = {GS_NVML_STRUCT_VERSION(info, 1), ROOM, 77, infos};
	nvmlEncoderSessionInfo_t encoders[ROOM] = {0};
	nvmlFBCSessionInfo_t captures[ROOM] = {0};
	nvmlProcessDetail_v1_t detail[ROOM] = {0};
	nvmlProcessDetailList_t details = {GS_NVML_STRUCT_VERSION(details, 1), 0, ROOM, detail};
	unsigned int pids[ROOM] = {0}, n, me = (unsigned int)getpid();

#define ONLY_OWN(list, field)                                                                           \
	do {                                                                                            \
		CHECK(n == own, #list ": %u", n);                                                       \
		CHECK(!own || (list)[0] field == me, #list ": of %u", (list)[0] field);                 \
		CHECK(!(list)[own] field, #list ": another's %u", (list)[own] field);                   \
	} while (0)
#define ASK(call, list, field, code)                                                                    \
	do {                                                                                            \
		n = ROOM;                                                                               \
		EXPECT(call, code);                                                                     \
		ONLY_OWN(list, field);                                                                  \
	} while (0)
	ASK(NV(nvmlDeviceGetProcessUtilization)(dev, samples, &n, 77), samples, .pid, nothing);
	CHECK(!own || (samples[0].smUtil == 30 && samples[0].timeStamp == 77), "its sample");
	EXPECT(NV(nvmlDeviceGetProcessesUtilizationInfo)(dev, &info), nothing);
	n = info.processSamplesCount;
	ONLY_OWN(infos, .pid);
	CHECK(!own || (infos[0].smUtil == 30 && infos[0].timeStamp == 77), "its new sample");
	ASK(NV(nvmlDeviceGetAccountingPids)(dev, &n, pids), pids, , 0);
	ASK(NV(nvmlDeviceGetEncoderSessions)(dev, &n, encoders), encoders, .pid, 0);
	ASK(NV(nvmlDeviceGetFBCSessions)(dev, &n, captures), captures, .pid, 0);
	EXPECT(NV(nvmlDeviceGetRunningProcessDetailList)(dev, &details), 0);
	n = details.numProcArrayEntries;
	ONLY_OWN(detail, .pid);
	// Without room the number is told.
	n = 0;
	EXPECT(NV(nvmlDeviceGetAccountingPids)(dev, &n, NULL), own ? NVML_ERROR_INSUFFICIENT_SIZE : 0);
	CHECK(n == own, "%u accounted", n);
	n = 0;
	EXPECT(NV(nvmlDeviceGetProcessUtilization)(dev, NULL, &n, 0), own ? NVML_ERROR_INSUFFICIENT_SIZE : nothing);
	CHECK(n == own, "%u sampled", n);
}

static void single(nvmlDevice_t dev, bool started)
{
	unsigned int n, fps, latency, me = (unsigned int)getpid();
	int mine = started ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
	nvmlAccountingStats_t stats = {0};
	nvmlAccountingStats_v2_t v2 = {.pid = OTHER};
	nvmlFBCStats_t captured;
	char name[64] = "";

	EXPECT(NV(nvmlDeviceGetAccountingStats)(dev, me, &stats), mine);
	CHECK(stats.time == (started ? me : 0), "stats of %llu", stats.time);
	stats.time = 0;
	EXPECT(NV(nvmlDeviceGetAccountingStats)(dev, OTHER, &stats), NVML_ERROR_NOT_FOUND);
	EXPECT(NV(nvmlDeviceGetAccountingStats_v2)(dev, &v2), NVML_ERROR_NOT_FOUND);
	CHECK(!stats.time && !v2.time, "another's stats");
	v2.pid = me;
	EXPECT(NV(nvmlDeviceGetAccountingStats_v2)(dev, &v2), mine);
	EXPECT(NV(nvmlSystemGetProcessName)(OTHER, name, sizeof(name)), NVML_ERROR_NOT_FOUND);
	CHECK(!*name, "another's name: %s", name);
	EXPECT(NV(nvmlSystemGetProcessName)(me, name, sizeof(name)), mine);
	CHECK(!started == !*name, "name: %s", name);
	EXPECT(NV(nvmlDeviceGetEncoderStats)(dev, &n, &fps, &latency), 0);
	CHECK(n == started && fps == 30U * started && latency == 60U * started, "encoders: %u, %u, %u", n, fps, latency);
	EXPECT(NV(nvmlDeviceGetFBCStats)(dev, &captured), 0);
	CHECK(captured.sessionsCount == started && captured.averageFPS == 30U * started &&
	      captured.averageLatency == 60U * started, "captures: %u, %u, %u", captured.sessionsCount,
	      captured.averageFPS, captured.averageLatency);
}

int main(void)
{
	nvmlProcessUtilizationSample_t samples[ROOM] = {0};
	nvmlAccountingStats_t stats = {0};
	nvmlDevice_t dev, other;
	unsigned int n = ROOM;
	CUcontext ctx;

	nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!nvml) {
		printf("%s\n", dlerror());
		return 2;
	}
	EXPECT(NV(nvmlInit_v2)(), 0);
	EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(0, &dev), 0);
	EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(1, &other), 0);
	lists(dev, 0, NVML_ERROR_NOT_FOUND);
	single(dev, false);
	EXPECT(CU(cuInit)(0), 0);
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&ctx, 0), 0);
	lists(dev, 1, 0);
	single(dev, true);
	// On a GPU of others there is nothing to see.
	EXPECT(NV(nvmlDeviceGetProcessUtilization)(other, samples, &n, 0), NVML_ERROR_NO_PERMISSION);
	EXPECT(NV(nvmlDeviceGetAccountingStats)(other, (unsigned int)getpid(), &stats), NVML_ERROR_NO_PERMISSION);
	CHECK(n == ROOM && !samples[0].pid && !stats.time, "an output was changed");
	return harness_failures ? 1 : 0;
}
