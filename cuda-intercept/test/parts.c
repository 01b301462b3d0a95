// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Small allocations on a card that takes blocks of 2 MiB, in a container that has two
// blocks beside its context: each does what the program says it must. What the ledger
// has is compared with the simulator's account when "check" is printed.

#include "harness.h"

#define BLOCK (2 * MIB)

static CUdeviceptr p[8];
static uint64_t empty;

static uint64_t blocks(void)
{
	return (ledger_sum(0) - empty) / BLOCK;
}

static void want(const char *what, uint64_t n)
{
	char line[16];

	CHECK(blocks() == n && (ledger_sum(0) - empty) % BLOCK == 0, "%s: %llu blocks are charged, want %llu", what,
	      (unsigned long long)blocks(), (unsigned long long)n);
	printf("check %s\n", what);
	if (!fgets(line, sizeof(line), stdin))
		exit(2);
}

int main(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {1000, 100, CU_AD_FORMAT_FLOAT, 1};
	CUcontext c, other;
	CUdeviceptr q = 0x1234;
	size_t pitch = 5;
	CUarray a[4];

	EXPECT(CU(cuInit)(0), 0);
	EXPECT(CU(cuCtxCreate_v2)(&c, 0, 0), 0);
	empty = ledger_sum(0);
	// Four halves are two blocks.
	for (int i = 0; i < 4; i++)
		EXPECT(CU(cuMemAlloc_v2)(&p[i], MIB), 0);
	want("full", 2);
	EXPECT(CU(cuMemAlloc_v2)(&q, 1), 2);
	EXPECT(CU(cuMemAlloc_v2)(&q, BLOCK), 2);
	EXPECT(CU(cuMemAllocPitch_v2)(&q, &pitch, 1, 1, 4), 2);
	CHECK(q == 0x1234 && pitch == 5, "an output was changed");
	want("refused", 2);
	// A hole is as good as new: nothing more is charged, at the limit too.
	EXPECT(CU(cuMemFree_v2)(p[1]), 0);
	want("a hole", 2);
	EXPECT(CU(cuMemAlloc_v2)(&p[1], MIB), 0);
	want("filled", 2);
	EXPECT(CU(cuMemFree_v2)(p[0]), 0);
	for (int i = 4; i < 6; i++)
		EXPECT(CU(cuMemAlloc_v2)(&p[i], MIB / 2), 0);
	EXPECT(CU(cuMemAlloc_v2)(&q, 1), 2);
	want("filled by two", 2);
	// Two holes of half a block are not one of three quarters.
	EXPECT(CU(cuMemFree_v2)(p[1]), 0);
	EXPECT(CU(cuMemFree_v2)(p[2]), 0);
	EXPECT(CU(cuMemAlloc_v2)(&q, BLOCK * 3 / 4), 2);
	EXPECT(CU(cuMemAllocPitch_v2)(&p[1], &pitch, 1000, 1024, 4), 0);
	CHECK(pitch == 1024, "pitch %zu", pitch);
	EXPECT(CU(cuMemAlloc_v2)(&p[2], MIB), 0);
	want("pitched", 2);
	// The last part takes its block with it.
	EXPECT(CU(cuMemFree_v2)(p[4]), 0);
	EXPECT(CU(cuMemFree_v2)(p[5]), 0);
	EXPECT(CU(cuMemFree_v2)(p[1]), 0);
	EXPECT(CU(cuMemFree_v2)(p[2]), 0);
	want("one block", 1);
	EXPECT(CU(cuMemAlloc_v2)(&p[0], BLOCK), 0);
	EXPECT(CU(cuMemAlloc_v2)(&q, MIB + 1), 2);
	EXPECT(CU(cuMemFree_v2)(p[0]), 0);
	EXPECT(CU(cuMemFree_v2)(p[3]), 0);
	want("empty", 0);
	EXPECT(CU(cuMemFree_v2)(p[3]), 1);
	want("freed twice", 0);
	// Small arrays crowd into one block, whatever is beside them.
	for (int i = 0; i < 4; i++)
		EXPECT(CU(cuArrayCreate_v2)(&a[i], &d), 0);
	want("arrays", 1);
	EXPECT(CU(cuMemAlloc_v2)(&p[0], 512), 0);
	want("beside arrays", 2);
	for (int i = 0; i < 4; i++)
		EXPECT(CU(cuArrayDestroy)(a[i]), 0);
	EXPECT(CU(cuMemFree_v2)(p[0]), 0);
	want("no arrays", 0);
	// A context has blocks of its own, which go with it.
	EXPECT(CU(cuMemAlloc_v2)(&p[0], 512), 0);
	EXPECT(CU(cuMemFree_v2)(p[0]), 0);
	EXPECT(CU(cuCtxDestroy_v2)(c), 0);
	EXPECT(CU(cuCtxCreate_v2)(&other, 0, 0), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p[0], 512), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p[1], 512), 0);
	EXPECT(CU(cuArrayCreate_v2)(&a[0], &d), 0);
	want("of a context", 2);
	EXPECT(CU(cuCtxDestroy_v2)(other), 0);
	CHECK(ledger_sum(0) == 0, "%llu bytes stay after the context", (unsigned long long)ledger_sum(0));
	EXPECT(CU(cuMemFree_v2)(p[0]), 201);
	return harness_failures != 0;
}
