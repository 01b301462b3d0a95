// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What users of other systems ran into (docs/reference/cases.md), one by name:
//
//	again      10,000 stream-ordered allocations, each freed
//	pool       an allocation of a pool of the program's own; a pointer of nobody
//	locations  memory in places that are no device
//	random     allocations, frees and mistakes at random
//
// Over the real library by itself it says the same, but for what it calls "ledger".

#include "harness.h"

static __typeof__(&cuMemGetInfo_v2) real_info; // NULL over the real library by itself

static uint64_t charged(void)
{
	return real_info ? ledger_sum(0) : 0;
}

static uint64_t driver_used(void)
{
	size_t free_bytes = 0, total = 0;

	EXPECT(real_info(&free_bytes, &total), 0);
	return total - free_bytes;
}

static void same(const char *where, int step)
{
	uint64_t driver, ledger = charged();

	if (!real_info)
		return;
	driver = driver_used();
	CHECK(ledger == driver, "%s, step %d: ledger %llu, driver %llu", where, step, (unsigned long long)ledger,
	      (unsigned long long)driver);
}

static void again(void)
{
	CUdeviceptr p;

	for (int i = 0; i < 10000 && !harness_failures; i++) {
		EXPECT(CU(cuMemAllocAsync)(&p, 64 * MIB, NULL), 0);
		EXPECT(CU(cuMemFreeAsync)(p, NULL), 0);
	}
	EXPECT(CU(cuStreamSynchronize)(NULL), 0);
}

static void pool(void)
{
	CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	uint64_t before = charged();
	CUmemoryPool own;
	CUdeviceptr p;

	EXPECT(CU(cuMemPoolCreate)(&own, &props), 0);
	EXPECT(CU(cuMemAllocFromPoolAsync)(&p, 10 * MIB, own, NULL), 0);
	CHECK(!real_info || charged() == before + 10 * MIB, "counted %llu", (unsigned long long)(charged() - before));
	EXPECT(CU(cuMemFreeAsync)(p, NULL), 0);
	EXPECT(CU(cuStreamSynchronize)(NULL), 0);
	same("freed", 0);
	EXPECT(CU(cuMemPoolDestroy)(own), 0);
	printf("foreign %d %d\n", (int)CU(cuMemFreeAsync)(0x12345600, NULL), (int)CU(cuMemFree_v2)(0x12345600));
}

static void locations(void)
{
	static const int types[] = {0, 1, 2, 3, 4, 5, 99, -1};

	for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (int id = 0; id < 2; id++) {
			CUmemAllocationProp prop = {.type = 1, .location = {(CUmemLocationType)types[i], id ? 485797272 : 0}};
			CUmemGenericAllocationHandle h = 0x5c5c;
			uint64_t before = charged(), after;
			int r = (int)CU(cuMemCreate)(&h, 2 * MIB, &prop, 0);

			after = charged();
			printf("location %d %d: %d %s\n", types[i], prop.location.id, r, h == 0x5c5c ? "untouched" : "made");
			CHECK(!real_info || after - before == (r == 0 && types[i] == 1 ? 2 * MIB : 0),
			      "location %d: charged %llu", types[i], (unsigned long long)(after - before));
			if (r == 0)
				EXPECT(CU(cuMemRelease)(h), 0);
		}
}

#define PIECES 32

static void at_random(CUcontext base)
{
	CUdeviceptr p[PIECES] = {0}, gone = 0;
	int ordered[PIECES] = {0};
	unsigned int seed = 4711;
	CUcontext other;

	for (int i = 0; i < 4000 && !harness_failures; i++) {
		int at = rand_r(&seed) % PIECES;
		size_t bytes = rand_r(&seed) % (24 * MIB) + 1, pitch;

		switch (rand_r(&seed) % 12) {
		case 0: // twice, unless somebody has the address again
			for (at = 0; at < PIECES && p[at] != gone; at++)
				;
			if (at == PIECES)
				CU(cuMemFree_v2)(gone);
			break;
		case 1:
			CU(cuMemFree_v2)(rand_r(&seed)); // nobody's
			break;
		case 2:
			CU(cuMemFreeAsync)(rand_r(&seed), NULL);
			break;
		case 3: // with its context
			EXPECT(CU(cuCtxCreate_v2)(&other, 0, 0) % 2, 0);
			if (CU(cuMemAlloc_v2)(&gone, bytes) == CUDA_SUCCESS)
				same("in another context", i);
			if (CU(cuCtxGetCurrent)(&other) == CUDA_SUCCESS && other != base)
				EXPECT(CU(cuCtxDestroy_v2)(other), 0);
			EXPECT(CU(cuCtxSetCurrent)(base), 0);
			break;
		default:
			if (p[at]) {
				gone = p[at];
				if (ordered[at] && rand_r(&seed) % 2)
					EXPECT(CU(cuMemFreeAsync)(gone, NULL), 0);
				else
					EXPECT(CU(cuMemFree_v2)(gone), 0);
				p[at] = 0;
				ordered[at] = 0;
			} else if (rand_r(&seed) % 3) {
				CU(cuMemAlloc_v2)(&p[at], bytes);
			} else if (rand_r(&seed) % 2) {
				CU(cuMemAllocPitch_v2)(&p[at], &pitch, 1000, bytes / 1000 + 1, 4);
			} else {
				ordered[at] = CU(cuMemAllocAsync)(&p[at], bytes, NULL) == CUDA_SUCCESS;
			}
		}
		same("random", i);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	CUcontext c;
	void *real;

	EXPECT(CU(cuInit)(0), 0);
	real = dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD);
	real_info = (__typeof__(real_info))(real ? dlsym(real, "cuMemGetInfo_v2") : NULL);
	EXPECT(CU(cuCtxCreate_v2)(&c, 0, 0), 0);
	if (!strcmp(what, "again"))
		again();
	else if (!strcmp(what, "pool"))
		pool();
	else if (!strcmp(what, "locations"))
		locations();
	else if (!strcmp(what, "random"))
		at_random(c);
	else
		return 2;
	same("at the end", 0);
	return harness_failures != 0;
}
