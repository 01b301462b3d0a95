// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What the test programs share: the driver's functions, found as a program finds
// them, and a look at the container's ledger.

#ifndef HARNESS_H
#define HARNESS_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda_abi.h"
#include "region.h"

#define MIB (1ULL << 20)

static void *harness_library;
static int harness_failures __attribute__((unused));

// CU(name) is the driver's function of that name, typed.
#define CU(name) ((__typeof__(&name))harness_symbol(#name))

static inline void *harness_symbol(const char *name)
{
	void *p;

	if (!harness_library)
		harness_library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!harness_library) {
		printf("%s\n", dlerror());
		exit(2);
	}
	p = dlsym(harness_library, name);
	if (!p) {
		printf("no %s\n", name);
		exit(2);
	}
	return p;
}

// HAS(name) tells whether the driver has a function: programs ask before they call one
// that is newer than the oldest driver.
#define HAS(name) harness_has(#name)

static inline int harness_has(const char *name)
{
	return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name) != NULL;
}

// What a program has said is seen when it crashes, too.
static __attribute__((constructor)) void harness_say_at_once(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

#define CHECK(condition, ...)                                 \
	do {                                                  \
		if (!(condition)) {                           \
			harness_failures++;                   \
			printf("%s:%d: ", __FILE__, __LINE__); \
			printf(__VA_ARGS__);                  \
			printf("\n");                         \
		}                                             \
	} while (0)

// EXPECT(call, code) checks a result.
#define EXPECT(call, code)                                                \
	do {                                                              \
		int harness_r = (int)(call);                              \
		CHECK(harness_r == (int)(code), "%s = %d, want %d", #call, \
		      harness_r, (int)(code));                            \
	} while (0)

static inline const char *harness_ledger(void)
{
	static const char *map;
	struct stat st;
	int fd;

	if (map)
		return map;
	fd = open("/run/gpushare/ledger", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		exit(2);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return map;
}

// The bytes of a GPU that are in records of shares.
static inline uint64_t ledger_shares(unsigned gpu)
{
	const char *map = harness_ledger();
	const struct gs_ledger_header *h = (const void *)map;
	const struct gs_share *share = (const void *)(map + GS_LEDGER_HEADER_SIZE + GS_SLOT_COUNT * GS_SLOT_SIZE +
						      2 * h->gpu_count * GS_SLOT_COUNT * 8);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->share_high; i++)
		if (share[i].state != GS_SHARE_FREE && share[i].gpu == gpu)
			sum += share[i].bytes;
	return sum;
}

// The sum of a GPU's column.
static inline uint64_t ledger_sum(unsigned gpu)
{
	const char *map = harness_ledger();
	const struct gs_ledger_header *h = (const void *)map;
	const volatile uint64_t *column = (const void *)(map + GS_LEDGER_HEADER_SIZE + GS_SLOT_COUNT * GS_SLOT_SIZE);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->slot_high; i++)
		sum += column[gpu * GS_SLOT_COUNT + i];
	return sum + ledger_shares(gpu);
}

static inline const struct gs_gpu_account *ledger_account(unsigned gpu)
{
	return &((const struct gs_ledger_header *)(const void *)harness_ledger())->gpu[gpu];
}

static inline const struct gs_slot *ledger_slot(uint32_t slot)
{
	return (const struct gs_slot *)(const void *)(harness_ledger() + GS_LEDGER_HEADER_SIZE) + slot;
}

#endif
