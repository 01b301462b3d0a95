// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Reads requests as runtimes make them on standard input: name, version, flags, the
// symbol that is meant, and which runtimes ask. Asks our library and the real one, in
// both generations of cuGetProcAddress. If the driver has the symbol, it must answer
// with that, and ours with what dlsym finds in ours: our wrapper if it is hooked, else
// the driver's own. If not, the answers must correspond all the same: code, status,
// and an output that is left alone or not. Prints a line for each runtime.

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuda_abi.h"

#define REQUESTS 2048
#define RUNTIMES 32

static struct {
	char name[128], symbol[128], askers[RUNTIMES + 1];
	int version;
	unsigned flags;
} requests[REQUESTS];
static char runtimes[RUNTIMES][16];
static int count, runtime_count, failures;
static struct {
	int asked, wrapped, own, absent;
} tally[RUNTIMES];
static void *ours, *real;

// of returns what ours must answer where the driver answers with function.
static void *of(void *function)
{
	for (int i = 0; function && i < count; i++)
		if (dlsym(real, requests[i].symbol) == function)
			return dlsym(ours, requests[i].symbol);
	return function;
}

struct answer {
	int code;
	void *function;
	CUdriverProcAddressQueryResult status;
};

static void compare(int i, struct answer theirs, struct answer mine)
{
	void *symbol = dlsym(real, requests[i].symbol);

	if (mine.code == theirs.code && mine.status == theirs.status && mine.function == of(theirs.function) &&
	    (!symbol || theirs.function == symbol))
		return;
	failures++;
	printf("%s %d %u: driver %d %p %d, ours %d %p %d, %s is %p\n", requests[i].name, requests[i].version,
	       requests[i].flags, theirs.code, theirs.function, (int)theirs.status, mine.code, mine.function,
	       (int)mine.status, requests[i].symbol, symbol);
}

static void count_for_each_runtime(int i)
{
	void *symbol = dlsym(real, requests[i].symbol);
	int wrapped = symbol && dlsym(ours, requests[i].symbol) != symbol;

	for (int r = 0; r < runtime_count; r++) {
		if (requests[i].askers[r] != 'x')
			continue;
		tally[r].asked++;
		tally[r].wrapped += wrapped;
		tally[r].own += symbol && !wrapped;
		tally[r].absent += !symbol;
	}
}

static void read_requests(void)
{
	char line[512], *word;

	while (count < REQUESTS && fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "#runtimes ", 10)) {
			for (word = strtok(line + 10, " \n"); word && runtime_count < RUNTIMES; word = strtok(NULL, " \n"))
				snprintf(runtimes[runtime_count++], sizeof(*runtimes), "%s", word);
		} else if (line[0] != '#' && sscanf(line, "%127s %d %u %127s %32s", requests[count].name,
						    &requests[count].version, &requests[count].flags,
						    requests[count].symbol, requests[count].askers) == 5) {
			count++;
		}
	}
}

int main(void)
{
	__typeof__(&cuGetProcAddress) real_v1, our_v1;
	__typeof__(&cuGetProcAddress_v2) real_v2, our_v2;
	void *const untouched = (void *)7;

	ours = dlopen("libcuda.so.1", RTLD_NOW);
	real = dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD);
	if (!ours || !real) {
		printf("%s\n", dlerror());
		return 2;
	}
	read_requests();
	real_v1 = (__typeof__(real_v1))dlsym(real, "cuGetProcAddress");
	our_v1 = (__typeof__(our_v1))dlsym(ours, "cuGetProcAddress");
	real_v2 = (__typeof__(real_v2))dlsym(real, "cuGetProcAddress_v2");
	our_v2 = (__typeof__(our_v2))dlsym(ours, "cuGetProcAddress_v2");
	for (int i = 0; i < count; i++) {
		struct answer a = {0, untouched, 77}, b = a;

		if (real_v1) {
			a.code = (int)real_v1(requests[i].name, &a.function, requests[i].version, requests[i].flags);
			b.code = (int)our_v1(requests[i].name, &b.function, requests[i].version, requests[i].flags);
			compare(i, a, b);
		}
		a = b = (struct answer){0, untouched, 77};
		if (real_v2) {
			a.code = (int)real_v2(requests[i].name, &a.function, requests[i].version, requests[i].flags, &a.status);
			b.code = (int)our_v2(requests[i].name, &b.function, requests[i].version, requests[i].flags, &b.status);
			compare(i, a, b);
		}
		count_for_each_runtime(i);
	}
	for (int r = 0; r < runtime_count; r++)
		printf("%s: %d requests, %d answered by our wrapper, %d by the driver's own, %d absent\n", runtimes[r],
		       tally[r].asked, tally[r].wrapped, tally[r].own, tally[r].absent);
	printf("%d different requests, %d failures\n", count, failures);
	return failures || !count || !runtime_count;
}
