// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Reads rows on standard input: name, symbol, version and 0 or 1 for the per-thread
// flavour. Asks the bare driver for each symbol that it has: from that version on,
// and not one before it, that flavour of the name means that symbol; a symbol with
// version 0 is not to be had.

#include <dlfcn.h>
#include <stdio.h>

#include "cuda_abi.h"

static void *ask(__typeof__(&cuGetProcAddress) f, const char *name, int version, int per_thread)
{
	void *p = NULL;

	return f(name, &p, version, per_thread ? 2 : 1) == CUDA_SUCCESS ? p : NULL;
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	__typeof__(&cuGetProcAddress) f;
	char name[128], symbol[128];
	int version, per_thread, checked = 0, failures = 0;

	f = driver ? (__typeof__(f))dlsym(driver, "cuGetProcAddress") : NULL;
	if (!f) {
		printf("%s\n", dlerror());
		return 2;
	}
	while (scanf("%127s %127s %d %d", name, symbol, &version, &per_thread) == 4) {
		void *want = dlsym(driver, symbol);
		void *at, *before;

		if (!want)
			continue;
		checked++;
		at = ask(f, name, version ? version : 99999, per_thread);
		before = version ? ask(f, name, version - 1, per_thread) : at;
		if (version ? at != want || before == want : at == want) {
			failures++;
			printf("%s is not what %s means from version %d on\n", symbol, name, version);
		}
	}
	printf("%d names, %d failures\n", checked, failures);
	return failures || checked < 400;
}
