// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Green contexts over the simulator, on a page with two GPUs. Arguments: bytes of a
// context, and the device's place in the page. It prints the ledger's sum on that
// place after each step, and in the end how many launches the place has seen.

#include "harness.h"

#define RESOURCE_BYTES 144
#define RESOURCE_SM 1
#define DEFAULT_STREAM 1

static int gpu;
static CUdevice dev;
static unsigned long long context_bytes;

static void charged(const char *what, unsigned long long want)
{
	CHECK(ledger_sum((unsigned)gpu) == want, "%s: ledger %llu, want %llu", what,
	      (unsigned long long)ledger_sum((unsigned)gpu), want);
	CHECK(ledger_sum((unsigned)!gpu) == 0, "%s: the other GPU is charged %llu", what,
	      (unsigned long long)ledger_sum((unsigned)!gpu));
	printf("%s %llu\n", what, (unsigned long long)ledger_sum((unsigned)gpu));
}

static CUdevResourceDesc describe(void)
{
	static char resource[RESOURCE_BYTES] __attribute__((aligned(8)));
	CUdevResourceDesc d;

	EXPECT(CU(cuDeviceGetDevResource)(dev, (CUdevResource *)(void *)resource, RESOURCE_SM), 0);
	EXPECT(CU(cuDevResourceGenerateDesc)(&d, (CUdevResource *)(void *)resource, 1), 0);
	return d;
}

// Work in a green context, and in a stream of one that is not current, goes through the
// gate of its GPU.
static void launch(CUgreenCtx g)
{
	CUcontext c;
	CUstream s;
	CUmodule m;
	CUfunction f;
	uint64_t before = ledger_account((unsigned)gpu)->launches;

	EXPECT(CU(cuCtxFromGreenCtx)(&c, g), 0);
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	EXPECT(CU(cuModuleLoadData)(&m, "// any code\n"), 0);
	EXPECT(CU(cuModuleGetFunction)(&f, m, "any"), 0);
	EXPECT(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 0);
	EXPECT(CU(cuGreenCtxStreamCreate)(&s, g, CU_STREAM_NON_BLOCKING, 0), 0);
	EXPECT(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL), 0);
	EXPECT(CU(cuCtxSynchronize)(), 0);
	CHECK(ledger_account((unsigned)gpu)->launches == before + 2, "%llu launches on the GPU",
	      (unsigned long long)(ledger_account((unsigned)gpu)->launches - before));
	CHECK(ledger_account((unsigned)!gpu)->launches == 0, "launches on the other GPU");
	EXPECT(CU(cuStreamDestroy_v2)(s), 0);
	EXPECT(CU(cuModuleUnload)(m), 0);
}

int main(int argc, char **argv)
{
	CUgreenCtx g = (CUgreenCtx)5, h;
	CUcontext primary, c;
	CUdeviceptr p, q;
	CUdevResourceDesc d;

	if (argc != 4)
		return 2;
	context_bytes = strtoull(argv[1], NULL, 0);
	dev = atoi(argv[2]);
	gpu = atoi(argv[3]);
	EXPECT(CU(cuInit)(0), 0);
	d = describe();
	charged("start", 0);
	EXPECT(CU(cuGreenCtxCreate)(&g, d, dev, 77), 1);
	CHECK(g == (CUgreenCtx)5, "an output was changed");
	charged("refused", 0);
	// It holds the primary context, which is charged once.
	EXPECT(CU(cuGreenCtxCreate)(&g, d, dev, DEFAULT_STREAM), 0);
	charged("one", context_bytes);
	EXPECT(CU(cuGreenCtxCreate)(&h, d, dev, DEFAULT_STREAM), 0);
	charged("two", context_bytes);
	launch(g);
	EXPECT(CU(cuCtxFromGreenCtx)(&c, g), 0);
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 10 * MIB), 0);
	EXPECT(CU(cuMemAlloc_v2)(&q, 20 * MIB), 0);
	charged("memory", context_bytes + 30 * MIB);
	// What was made in it stays with the primary context.
	EXPECT(CU(cuGreenCtxDestroy)(g), 0);
	charged("destroyed", context_bytes + 30 * MIB);
	EXPECT(CU(cuGreenCtxDestroy)((CUgreenCtx)0x1234), 201);
	charged("no green context", context_bytes + 30 * MIB);
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&primary, dev), 0);
	EXPECT(CU(cuCtxSetCurrent)(primary), 0);
	EXPECT(CU(cuMemFree_v2)(p), 0);
	charged("freed", context_bytes + 20 * MIB);
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(dev), 0);
	charged("released", context_bytes + 20 * MIB);
	EXPECT(CU(cuGreenCtxDestroy)(h), 0);
	charged("gone", 0);
	// A reset takes everything with it.
	EXPECT(CU(cuGreenCtxCreate)(&g, d, dev, DEFAULT_STREAM), 0);
	EXPECT(CU(cuCtxFromGreenCtx)(&c, g), 0);
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 10 * MIB), 0);
	charged("again", context_bytes + 10 * MIB);
	EXPECT(CU(cuDevicePrimaryCtxReset_v2)(dev), 0);
	charged("reset", 0);
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(dev), 0);
	charged("end", 0);
	return harness_failures != 0;
}
