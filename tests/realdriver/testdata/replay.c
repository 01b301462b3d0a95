// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Reads requests as runtimes make them on standard input: name, version, flags and
// the symbol that is meant. Asks our library and the real one, in both generations
// of cuGetProcAddress. If the driver has the symbol, it must answer with that, and
// ours with what dlsym finds in ours: our wrapper if it is hooked, else the
// driver's own. If not, the answers must correspond all the same.

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuda_abi.h"

#define REQUESTS 2048

static struct {
	char name[128], symbol[128];
	int version;
	unsigned flags;
} requests[REQUESTS];
static int count, failures, exact, wrapped, newer;
static void *ours, *real;

// of returns what ours must answer where the driver answers with function.
static void *of(void *function)
{
	for (int i = 0; function && i < count; i++)
		if (dlsym(real, requests[i].symbol) == function)
			return dlsym(ours, requests[i].symbol);
	return function;
}

static void compare(int i, void *theirs, int their_code, void *mine, int my_code)
{
	void *symbol = dlsym(real, requests[i].symbol);

	if (my_code != their_code || mine != of(theirs) || (symbol && theirs != symbol)) {
		failures++;
		printf("%s %d %u: driver %d %p, ours %d %p, %s is %p\n", requests[i].name, requests[i].version,
		       requests[i].flags, their_code, theirs, my_code, mine, requests[i].symbol, symbol);
		return;
	}
	if (!symbol)
		newer++;
	else
		exact++;
	wrapped += mine != theirs;
}

int main(void)
{
	__typeof__(&cuGetProcAddress) real_v1, our_v1;
	__typeof__(&cuGetProcAddress_v2) real_v2, our_v2;
	char line[512];

	ours = dlopen("libcuda.so.1", RTLD_NOW);
	real = dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD);
	if (!ours || !real) {
		printf("%s\n", dlerror());
		return 2;
	}
	while (count < REQUESTS && fgets(line, sizeof(line), stdin))
		if (line[0] != '#' && sscanf(line, "%127s %d %u %127s", requests[count].name, &requests[count].version,
					     &requests[count].flags, requests[count].symbol) == 4)
			count++;
	real_v1 = (__typeof__(real_v1))dlsym(real, "cuGetProcAddress");
	our_v1 = (__typeof__(our_v1))dlsym(ours, "cuGetProcAddress");
	real_v2 = (__typeof__(real_v2))dlsym(real, "cuGetProcAddress_v2");
	our_v2 = (__typeof__(our_v2))dlsym(ours, "cuGetProcAddress_v2");
	for (int i = 0; i < count; i++) {
		CUdriverProcAddressQueryResult status;
		void *a = NULL, *b = NULL;
		int ra, rb;

		if (real_v1) {
			ra = (int)real_v1(requests[i].name, &a, requests[i].version, requests[i].flags);
			rb = (int)our_v1(requests[i].name, &b, requests[i].version, requests[i].flags);
			compare(i, a, ra, b, rb);
		}
		a = b = NULL;
		if (real_v2) {
			ra = (int)real_v2(requests[i].name, &a, requests[i].version, requests[i].flags, &status);
			rb = (int)our_v2(requests[i].name, &b, requests[i].version, requests[i].flags, &status);
			compare(i, a, ra, b, rb);
		}
	}
	printf("%d requests: %d exact, %d for what this driver lacks, %d answers are wrappers, %d failures\n", count, exact,
	       newer, wrapped, failures);
	return failures || !exact || !wrapped;
}
