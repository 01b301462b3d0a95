// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// How busy the card is, with others that keep it busy: the container's own share of
// that, which its page says is 37 %, and of the other engines this process's own.

#include "harness.h"
#include "nvml_abi.h"

#define GIB (1024 * MIB)

static void *nvml;
static int old; // a driver that tells of two engines of each process

#define NV(name) ((__typeof__(&name))dlsym(nvml, #name))

// engines wants the own process's figures: figure and one more for each.
static void engines(nvmlDevice_t dev, unsigned int figure)
{
	nvmlUtilization_t u = {0};
	nvmlGpuDynamicPstatesInfo_t p = {0};
	unsigned int percent, period;

	EXPECT(NV(nvmlDeviceGetUtilizationRates)(dev, &u), 0);
	CHECK(u.gpu == 37 && u.memory == (figure ? figure + 1 : 0), "rates: %u, %u", u.gpu, u.memory);
#define ENGINE(name, more)                                                                              \
	do {                                                                                            \
		percent = period = 0;                                                                   \
		EXPECT(NV(name)(dev, &percent, &period), 0);                                            \
		CHECK(percent == (figure ? figure + more : 0), #name ": %u", percent);                  \
		CHECK(period == 167000, #name ": every %u us", period);                                 \
	} while (0)
	ENGINE(nvmlDeviceGetEncoderUtilization, 2);
	ENGINE(nvmlDeviceGetDecoderUtilization, 3);
	if (old)
		figure = 0; // nobody says whose it is
	ENGINE(nvmlDeviceGetJpgUtilization, 4);
	ENGINE(nvmlDeviceGetOfaUtilization, 5);
	if (old)
		figure = u.memory ? u.memory - 1 : 0;
	EXPECT(NV(nvmlDeviceGetDynamicPstatesInfo)(dev, &p), 0);
	CHECK(p.flags == 1 && p.utilization[0].percentage == 37 && p.utilization[0].incThreshold == 7,
	      "domain of the GPU: %u", p.utilization[0].percentage);
	CHECK(p.utilization[1].percentage == u.memory && p.utilization[2].percentage == (figure ? figure + 3 : 0),
	      "domains: %u, %u", p.utilization[1].percentage, p.utilization[2].percentage);
	for (int i = 3; i < 8; i++)
		CHECK(!p.utilization[i].bIsPresent && !p.utilization[i].percentage, "domain %d", i);
}

// samples wants of a kind n samples, all of that figure.
static void samples(nvmlDevice_t dev, unsigned int kind, unsigned int n, unsigned int figure)
{
	nvmlSample_t list[8] = {0};
	nvmlValueType_t type = 7;
	unsigned int got = 8;

	EXPECT(NV(nvmlDeviceGetSamples)(dev, kind, 0, &type, &got, list), 0);
	CHECK(got == n && type == NVML_VALUE_TYPE_UNSIGNED_INT, "kind %u: %u samples of type %u", kind, got, type);
	for (unsigned int i = 0; i < got && i < 8; i++)
		CHECK(list[i].sampleValue.uiVal == figure, "kind %u: %u", kind, list[i].sampleValue.uiVal);
	CHECK(list[got - 1].timeStamp == 4400000, "kind %u: ends at %llu", kind, list[got - 1].timeStamp);
	got = 0;
	EXPECT(NV(nvmlDeviceGetSamples)(dev, kind, 0, &type, &got, NULL), 0);
	CHECK(got == 4, "kind %u: room for %u", kind, got);
}

static void none_of_others(nvmlDevice_t dev, nvmlDevice_t other)
{
	nvmlBAR1Memory_t bar = {0};
	nvmlUtilization_t u = {3, 3};
	nvmlSample_t list[8] = {0};
	nvmlGpmSupport_t support = {.isSupportedDevice = 3};
	nvmlValueType_t type;
	unsigned int sample = 5, n = 8, percent = 5, period = 5;

	EXPECT(NV(nvmlDeviceGetBAR1MemoryInfo)(dev, &bar), 0);
	CHECK(bar.bar1Total == GIB && bar.bar1Free == GIB && !bar.bar1Used, "aperture: %llu %llu %llu", bar.bar1Total,
	      bar.bar1Free, bar.bar1Used);
	EXPECT(NV(nvmlGpmQueryDeviceSupport)(dev, &support), 0);
	CHECK(!support.isSupportedDevice, "counters are there");
	EXPECT(NV(nvmlGpmSampleGet)(dev, (nvmlGpmSample_t)&sample), NVML_ERROR_NOT_SUPPORTED);
	EXPECT(NV(nvmlGpmMigSampleGet)(dev, 1, (nvmlGpmSample_t)&sample), NVML_ERROR_NOT_SUPPORTED);
	EXPECT(NV(nvmlDevicePerfMetricsGetSamples_v1)(dev, (void *)&sample), NVML_ERROR_NOT_SUPPORTED);
	EXPECT(NV(nvmlDeviceGetSamples)(dev, 10, 0, &type, &n, list), NVML_ERROR_NOT_SUPPORTED);
	// A card that is not the container's.
	EXPECT(NV(nvmlDeviceGetUtilizationRates)(other, &u), NVML_ERROR_NO_PERMISSION);
	EXPECT(NV(nvmlDeviceGetSamples)(other, 1, 0, &type, &n, list), NVML_ERROR_NO_PERMISSION);
	EXPECT(NV(nvmlDeviceGetEncoderUtilization)(other, &percent, &period), NVML_ERROR_NO_PERMISSION);
	EXPECT(NV(nvmlGpmSampleGet)(other, (nvmlGpmSample_t)&sample), NVML_ERROR_NO_PERMISSION);
	EXPECT(NV(nvmlDeviceGetBAR1MemoryInfo)(other, &bar), NVML_ERROR_NO_PERMISSION);
	CHECK(sample == 5 && n == 8 && u.gpu == 3 && percent == 5 && period == 5 && !list[0].timeStamp && bar.bar1Total == GIB,
	      "an output was changed");
}

int main(void)
{
	nvmlDevice_t dev, other;
	CUcontext ctx;

	nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!nvml) {
		printf("%s\n", dlerror());
		return 2;
	}
	old = !NV(nvmlDeviceGetProcessesUtilizationInfo);
	EXPECT(NV(nvmlInit_v2)(), 0);
	EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(0, &dev), 0);
	EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(1, &other), 0);
	engines(dev, 0); // no process of the container has started CUDA
	EXPECT(CU(cuInit)(0), 0);
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&ctx, 0), 0);
	engines(dev, 30);
	samples(dev, 1, 3, 37);
	samples(dev, 2, 3, 31);
	samples(dev, 3, 3, 32);
	samples(dev, 4, 3, 33);
	samples(dev, 8, 3, old ? 0 : 34);
	samples(dev, 9, 3, old ? 0 : 35);
	samples(dev, 0, 4, 99); // power and clocks are the card's
	samples(dev, 5, 4, 99);
	none_of_others(dev, other);
	return harness_failures ? 1 : 0;
}
