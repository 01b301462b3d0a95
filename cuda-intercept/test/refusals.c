// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Reads names of NVML functions on standard input, calls each with arguments of
// zero and prints its name and its answer. The argument "start" starts NVML first.
// A real library that counts is asked for its count, and to call itself.

#include <stdint.h>

#include "harness.h"
#include "nvml_abi.h"

typedef nvmlReturn_t function(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

int main(int argc, char **argv)
{
	void *ours = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	void *real = dlopen("/run/gpushare/driver/nvml.real", RTLD_NOW | RTLD_NOLOAD);
	char name[128];
	int *calls, (*inner)(void);

	if (!ours || !real) {
		printf("%s\n", dlerror());
		return 2;
	}
	if (argc > 1 && !strcmp(argv[1], "start"))
		EXPECT(((__typeof__(&nvmlInit_v2))dlsym(ours, "nvmlInit_v2"))(), 0);
	while (scanf("%127s", name) == 1) {
		function *f = (function *)dlsym(ours, name);

		if (f)
			printf("%s %d\n", name, (int)f(0, 0, 0, 0, 0, 0));
		else
			printf("%s absent\n", name);
	}
	calls = dlsym(real, "standin_calls");
	inner = (int (*)(void))dlsym(real, "standin_inner");
	if (calls)
		printf("calls %d\n", *calls);
	if (calls && inner)
		printf("inner %d\n", inner());
	return harness_failures > 0;
}
