// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Reads lines of names on standard input. Asks the real driver and our library
// for each name, at many versions and with many flags, in both generations of
// cuGetProcAddress: where the driver answers with a function that we hook, ours
// must answer with our function of that symbol, and else with the driver's.
// Also: every name is found by dlsym, in our library if it is hooked and in the
// real one otherwise. Hooked names are marked by a leading '+'; names that only
// cuGetProcAddress knows by a leading '.'; names that the driver lacks, and so dlsym
// must not find, by a leading '-'.

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cuda_abi.h"

#define NAMES 4096

static char names[NAMES][128];
static char marks[NAMES];
static void *ours_of[NAMES], *real_of[NAMES];
static int count, failures, questions, swapped;

static const int versions[] = {0,     2000,  3000,  3010,  3020,  4000,  4010,  5000,  5050,  6000,  6050,
			       7000,  7050,  8000,  9000,  9020,  10000, 10010, 10020, 11000, 11010, 11020,
			       11030, 11040, 11050, 11060, 11070, 11080, 12000, 12010, 12020, 12030, 12040,
			       12050, 12060, 12080, 12090, 13000, 13010, 13020, 13030, 13040, 13050, 99999, -1,
			       INT_MIN, INT_MAX};

// The valid ones, and some that are not.
static const cuuint64_t all_flags[] = {0, 1, 2, 3, 4, 7, 16, 1ULL << 32};

// want is what ours must answer where the driver answers with real.
static void *want(void *real)
{
	for (int i = 0; i < count; i++)
		if (marks[i] == '+' && real_of[i] == real)
			return ours_of[i];
	return real;
}

static void compare(const char *name, int version, cuuint64_t flags, void *real, int real_code, void *mine, int my_code)
{
	questions++;
	if (real_code != my_code || mine != want(real)) {
		failures++;
		printf("%s, version %d, flags %llu: driver %d %p, ours %d %p, want %p\n", name, version,
		       (unsigned long long)flags, real_code, real, my_code, mine, want(real));
	}
	swapped += mine != real;
}

int main(void)
{
	void *ours = dlopen("libcuda.so.1", RTLD_NOW);
	void *real = dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD);
	__typeof__(&cuGetProcAddress) real_v1, our_v1;
	__typeof__(&cuGetProcAddress_v2) real_v2, our_v2;
	char line[160];

	if (!ours || !real) {
		printf("%s\n", dlerror());
		return 2;
	}
	while (count < NAMES && scanf("%159s", line) == 1) {
		int marked = line[0] == '+' || line[0] == '.' || line[0] == '-';

		marks[count] = marked ? line[0] : ' ';
		snprintf(names[count], sizeof(names[count]), "%s", line + marked);
		ours_of[count] = dlsym(ours, names[count]);
		real_of[count] = dlsym(real, names[count]);
		if (marks[count] == '+' && ours_of[count] == real_of[count]) {
			failures++;
			printf("%s is not ours\n", names[count]);
		}
		if (marks[count] == '-' && (ours_of[count] || real_of[count])) {
			failures++;
			printf("%s is found\n", names[count]);
		}
		if (marks[count] == ' ' && (!real_of[count] || ours_of[count] != real_of[count])) {
			failures++;
			printf("%s does not fall through\n", names[count]);
		}
		count++;
	}
	if (count < NAMES)
		marks[count++] = '.'; // newer runtimes ask for the empty name, too
	real_v1 = (__typeof__(real_v1))dlsym(real, "cuGetProcAddress");
	our_v1 = (__typeof__(our_v1))dlsym(ours, "cuGetProcAddress");
	real_v2 = (__typeof__(real_v2))dlsym(real, "cuGetProcAddress_v2");
	our_v2 = (__typeof__(our_v2))dlsym(ours, "cuGetProcAddress_v2");
	for (int i = 0; i < count; i++) {
		for (unsigned v = 0; v < sizeof(versions) / sizeof(versions[0]); v++) {
			for (unsigned f = 0; f < sizeof(all_flags) / sizeof(all_flags[0]); f++) {
				cuuint64_t flags = all_flags[f];
				CUdriverProcAddressQueryResult s1 = 77, s2 = 77;
				void *a = (void *)7, *b = (void *)7;
				int ra, rb;

				if (real_v1) {
					ra = (int)real_v1(names[i], &a, versions[v], flags);
					rb = (int)our_v1(names[i], &b, versions[v], flags);
					compare(names[i], versions[v], flags, a, ra, b, rb);
				}
				if (!real_v2)
					continue;
				a = b = (void *)7;
				ra = (int)real_v2(names[i], &a, versions[v], flags, &s1);
				rb = (int)our_v2(names[i], &b, versions[v], flags, &s2);
				compare(names[i], versions[v], flags, a, ra, b, rb);
				if (s1 != s2) {
					failures++;
					printf("%s: status %d, ours %d\n", names[i], (int)s1, (int)s2);
				}
				// The runtime asks without a place for the status.
				a = b = (void *)7;
				ra = (int)real_v2(names[i], &a, versions[v], flags, NULL);
				rb = (int)our_v2(names[i], &b, versions[v], flags, NULL);
				compare(names[i], versions[v], flags, a, ra, b, rb);
			}
		}
	}
	printf("%d names, %d questions, %d answers are ours, %d failures\n", count, questions, swapped, failures);
	return failures ? 1 : 0;
}
