// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The program sees the container's slice of 1 GiB; the real NVML, asking itself
// through us, sees the card.

#include "harness.h"
#include "nvml_abi.h"

#define GIB (1024 * MIB)

int main(void)
{
	void *l = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	nvmlConfComputeMemSizeInfo_t size;
	nvmlDeviceAttributes_t a;
	nvmlMemory_t m;
	nvmlMemory_v2_t m2 = {.version = 7};
	nvmlProcessInfo_t list[8];
	unsigned int n = 8, id;
	nvmlDevice_t dev, other;

	if (!l) {
		printf("%s\n", dlerror());
		return 2;
	}
#define NV(name) ((__typeof__(&name))dlsym(l, #name))
	EXPECT(NV(nvmlInit_v2)(), 0);
	EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(0, &dev), 0);
	EXPECT(NV(nvmlDeviceGetMemoryInfo)(dev, &m), 0);
	CHECK(m.total == GIB && m.free == GIB && m.used == 0, "v1: %llu %llu %llu", m.total, m.free, m.used);
	EXPECT(NV(nvmlDeviceGetMemoryInfo_v2)(dev, &m2), 0);
	CHECK(m2.total == GIB && m2.free == GIB && m2.used == 0 && m2.version == 7, "v2: %llu %llu %llu", m2.total,
	      m2.free, m2.used);
	EXPECT(NV(nvmlDeviceGetComputeRunningProcesses_v3)(dev, &n, list), 0);
	CHECK(n == 0, "%u processes", n);
#define LIST(name)                                                                  \
	do {                                                                        \
		n = 8;                                                              \
		EXPECT(NV(name)(dev, &n, (void *)list), 0);                         \
		CHECK(n == 0, #name ": %u processes", n);                           \
	} while (0)
	LIST(nvmlDeviceGetComputeRunningProcesses);
	LIST(nvmlDeviceGetComputeRunningProcesses_v2);
	LIST(nvmlDeviceGetGraphicsRunningProcesses);
	LIST(nvmlDeviceGetGraphicsRunningProcesses_v2);
	LIST(nvmlDeviceGetGraphicsRunningProcesses_v3);
	LIST(nvmlDeviceGetMPSComputeRunningProcesses);
	LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2);
	LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3);
	EXPECT(NV(nvmlDeviceGetAttributes)(dev, &a), 0);
	CHECK(a.memorySizeMB == 1024 && a.multiprocessorCount == 132, "attributes: %llu", a.memorySizeMB);
	EXPECT(NV(nvmlDeviceGetAttributes_v2)(dev, &a), 0);
	CHECK(a.memorySizeMB == 1024 && a.multiprocessorCount == 132, "attributes, v2: %llu", a.memorySizeMB);
	EXPECT(NV(nvmlDeviceGetConfComputeMemSizeInfo)(dev, &size), 0);
	CHECK(size.protectedMemSizeKib == 1 << 20 && size.unprotectedMemSizeKib == 1 << 10, "protected: %llu and %llu",
	      size.protectedMemSizeKib, size.unprotectedMemSizeKib);
	EXPECT(NV(nvmlDeviceGetConfComputeProtectedMemoryUsage)(dev, &m), 0);
	CHECK(m.total == GIB && m.free == GIB && m.used == 0, "protected: %llu %llu %llu", m.total, m.free, m.used);
	EXPECT(NV(nvmlDeviceGetBoardId)(dev, &id), 0);
	CHECK(id == 801005, "inside: %u", id);
	// What the real library lacks, and a card that is not the container's.
	CHECK(!NV(nvmlDeviceSetComputeMode), "a name that the real library lacks");
	EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(1, &other), 0);
	m.total = 3;
	EXPECT(NV(nvmlDeviceGetMemoryInfo)(other, &m), NVML_ERROR_NO_PERMISSION);
	EXPECT(NV(nvmlDeviceGetComputeRunningProcesses_v3)(other, &n, list), NVML_ERROR_NO_PERMISSION);
	EXPECT(NV(nvmlDeviceGetAttributes_v2)(other, &a), NVML_ERROR_NO_PERMISSION);
	EXPECT(NV(nvmlDeviceGetConfComputeMemSizeInfo)(other, &size), NVML_ERROR_NO_PERMISSION);
	CHECK(m.total == 3, "an output was changed");
	return harness_failures ? 1 : 0;
}
