// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A process with a second copy of the library: in a namespace of its own (argv[1]
// "namespace"), or from the file argv[1]. Each copy charges what is taken through it;
// both stand under the one limit of 512 MiB.

#include "harness.h"

#define IN(library, name) ((__typeof__(&name))dlsym(library, #name))

static void start(void *library)
{
	CUcontext c;

	EXPECT(IN(library, cuInit)(0), 0);
	EXPECT(IN(library, cuDevicePrimaryCtxRetain)(&c, 0), 0);
	EXPECT(IN(library, cuCtxSetCurrent)(c), 0);
}

int main(int argc, char **argv)
{
	void *one = dlopen("libcuda.so.1", RTLD_NOW), *two;
	CUdeviceptr a, b, c = 7;
	uint64_t before;
	int slots = 0;

	if (argc < 2 || !one)
		return 2;
	two = strcmp(argv[1], "namespace") ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
	if (!two) {
		printf("%s\n", dlerror());
		return 2;
	}
	CHECK(dlsym(one, "cuInit") != dlsym(two, "cuInit"), "there is one copy");
	start(one);
	start(two);
	before = ledger_sum(0);
	EXPECT(IN(one, cuMemAlloc_v2)(&a, 200 * MIB), 0);
	EXPECT(IN(two, cuMemAlloc_v2)(&b, 200 * MIB), 0);
	CHECK(ledger_sum(0) == before + 400 * MIB, "the ledger has %llu", (unsigned long long)ledger_sum(0));
	EXPECT(IN(one, cuMemAlloc_v2)(&c, 200 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(IN(two, cuMemAlloc_v2)(&c, 200 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(c == 7, "an output was changed");
	EXPECT(IN(two, cuMemFree_v2)(b), 0);
	EXPECT(IN(one, cuMemFree_v2)(a), 0);
	CHECK(ledger_sum(0) == before, "at the end the ledger has %llu", (unsigned long long)ledger_sum(0));
	for (uint32_t i = 0; i < 8; i++)
		slots += ledger_slot(i)->state == GS_SLOT_USED && ledger_slot(i)->pid == (uint32_t)getpid();
	CHECK(slots == 2, "%d slots", slots);
	return harness_failures ? 1 : 0;
}
