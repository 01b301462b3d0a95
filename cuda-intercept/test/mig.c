// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Prints what NVML says of the first MIG instance of the first GPU: its UUID, the
// code of the question for its memory, total, used and free.

#include "harness.h"
#include "nvml_abi.h"

int main(void)
{
	void *l = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	nvmlDevice_t dev, part;
	nvmlMemory_t m = {0};
	char uuid[96] = "";
	int r;

	if (!l) {
		printf("%s\n", dlerror());
		return 2;
	}
#define NV(name) ((__typeof__(&name))dlsym(l, #name))
	EXPECT(NV(nvmlInit_v2)(), 0);
	EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(0, &dev), 0);
	EXPECT(NV(nvmlDeviceGetMigDeviceHandleByIndex)(dev, 0, &part), 0);
	EXPECT(NV(nvmlDeviceGetUUID)(part, uuid, sizeof(uuid)), 0);
	r = (int)NV(nvmlDeviceGetMemoryInfo)(part, &m);
	printf("%s %d %llu %llu %llu\n", uuid, r, m.total, m.used, m.free);
	return harness_failures ? 1 : 0;
}
