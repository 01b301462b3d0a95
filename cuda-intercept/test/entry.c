// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Every function that the runtime library argv[1] hands out of the driver's, by
// cudaGetDriverEntryPoint and cudaGetDriverEntryPointByVersion, at each version and
// flag: none is the driver's own of a name that has a wrapper. Lines of standard input:
// '+' and the exported name of a wrapper, or '.' and a name to ask for.

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuda_abi.h"

static char hooked[1024][128], asked[2048][128];
static void *real_of[1024], *ours_of[1024];
static int hooks, names, failures, answers, ours;

static void judge(const char *name, unsigned int version, unsigned long long flags, int code, void *fn)
{
	if (code || !fn)
		return;
	answers++;
	for (int i = 0; i < hooks; i++) {
		ours += fn == ours_of[i];
		if (fn == real_of[i]) {
			failures++;
			printf("%s, version %u, flags %llu: the driver's own %s\n", name, version, flags, hooked[i]);
		}
	}
}

int main(int argc, char **argv)
{
	static const unsigned int versions[] = {2000,  3020,  4000,  5000,  6000,  6050,  7000,  8000,  9000,  10000,
						10020, 11000, 11020, 11030, 11040, 11070, 12000, 12010, 12030, 12050,
						12080, 12090, 13000, 13010, 13020, 13030, 13040, 13050};
	void *runtime = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW), *library, *driver;
	int (*plain)(const char *, void **, unsigned long long, unsigned int *);
	int (*by_version)(const char *, void **, unsigned int, unsigned long long, unsigned int *);
	char line[128];

	library = dlopen("libcuda.so.1", RTLD_NOW);
	driver = dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD);
	if (!runtime || !library || !driver) {
		printf("%s\n", dlerror());
		return 2;
	}
	plain = (__typeof__(plain))dlsym(runtime, "cudaGetDriverEntryPoint");
	by_version = (__typeof__(by_version))dlsym(runtime, "cudaGetDriverEntryPointByVersion");
	while (scanf("%120s", line) == 1) {
		if (line[0] == '+' && hooks < 1024) {
			snprintf(hooked[hooks], sizeof(hooked[0]), "%s", line + 1);
			real_of[hooks] = dlsym(driver, line + 1);
			ours_of[hooks] = dlsym(library, line + 1);
			hooks++;
		} else if (names < 2048) {
			snprintf(asked[names++], sizeof(asked[0]), "%s", line + 1);
		}
	}
	for (int i = 0; i < names; i++)
		for (unsigned long long flags = 0; flags < 3; flags++) {
			unsigned int status;
			void *fn = NULL;
			int code = plain ? plain(asked[i], &fn, flags, &status) : 1;

			judge(asked[i], 0, flags, code, fn);
			for (unsigned int v = 0; by_version && v < sizeof(versions) / sizeof(versions[0]); v++) {
				fn = NULL;
				code = by_version(asked[i], &fn, versions[v], flags, &status);
				judge(asked[i], versions[v], flags, code, fn);
			}
		}
	printf("%d names, %d answers, %d ours, %d failures\n", names, answers, ours, failures);
	return failures || !hooks || !ours;
}
