// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The driver fails at one of the questions that we ask it, and leaves the answer's
// place alone, at each kind of call in turn: no crash, no wild figure, nothing that
// is held and not charged; and once it answers again, all is as before.

#include "harness.h"

static unsigned long long (*driver_used)(int);
static void (*driver_fail)(const char *, int);

static CUresult linear(void)
{
	CUdeviceptr p = 0;
	CUresult r = CU(cuMemAlloc_v2)(&p, MIB);

	return r ? r : CU(cuMemFree_v2)(p);
}

static CUresult managed(void)
{
	CUdeviceptr p = 0;
	CUresult r = CU(cuMemAllocManaged)(&p, MIB, 1);

	return r ? r : CU(cuMemFree_v2)(p);
}

static CUresult pitched(void)
{
	CUdeviceptr p = 0;
	size_t pitch;
	CUresult r = CU(cuMemAllocPitch_v2)(&p, &pitch, 1000, 100, 4);

	return r ? r : CU(cuMemFree_v2)(p);
}

static CUresult ordered(void)
{
	CUdeviceptr p = 0;
	CUresult r = CU(cuMemAllocAsync)(&p, MIB, NULL);

	return r ? r : CU(cuMemFreeAsync)(p, NULL);
}

static CUresult created(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle h = 0;
	CUresult r = CU(cuMemCreate)(&h, 2 * MIB, &prop, 0);

	return r ? r : CU(cuMemRelease)(h);
}

static CUresult array(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUarray a = NULL;
	CUresult r = CU(cuArray3DCreate_v2)(&a, &d);

	return r ? r : CU(cuArrayDestroy)(a);
}

static CUresult context(void)
{
	CUcontext c = NULL;
	CUresult r = CU(cuCtxCreate_v2)(&c, 0, 0);

	return r ? r : CU(cuCtxDestroy_v2)(c);
}

static CUresult primary(void)
{
	CUcontext c = NULL;
	CUresult r = CU(cuDevicePrimaryCtxRetain)(&c, 0);

	return r ? r : CU(cuDevicePrimaryCtxRelease_v2)(0);
}

static CUresult info(void)
{
	size_t free_bytes = 3, total = 4;
	CUresult r = CU(cuMemGetInfo_v2)(&free_bytes, &total);

	CHECK(r ? free_bytes == 3 && total == 4 : total == 1024 * MIB && free_bytes < total, "info %d: %zu %zu", (int)r,
	      free_bytes, total);
	return r;
}

static CUresult total(void)
{
	size_t bytes = 3;
	CUresult r = CU(cuDeviceTotalMem_v2)(&bytes, 0);

	CHECK(bytes == (r ? 3 : 1024 * MIB), "total %d: %zu", (int)r, bytes);
	return r;
}

int main(void)
{
	static const char *const questions[] = {
		"cuCtxGetCurrent", "cuCtxGetDevice", "cuDeviceGet", "cuDeviceGetCount", "cuDeviceGetUuid",
		"cuDeviceGetUuid_v2", "cuDevicePrimaryCtxGetState", "cuDeviceGetMemPool", "cuMemPoolGetAttribute",
		"cuMemGetInfo_v2", "cuDeviceTotalMem_v2",
	};
	static const struct {
		const char *name;
		CUresult (*call)(void);
	} calls[] = {
		{"linear", linear}, {"managed", managed}, {"pitched", pitched}, {"ordered", ordered},
		{"created", created}, {"array", array}, {"context", context}, {"primary", primary},
		{"info", info}, {"total", total},
	};
	CUcontext c = NULL;
	int failed = 0;

	driver_used = (unsigned long long (*)(int))harness_symbol("fake_used");
	driver_fail = (void (*)(const char *, int))harness_symbol("fake_fail");
	EXPECT(CU(cuInit)(0), 0);
	for (int again = 0; again < 2; again++) { // at the first call of a kind, and later
		for (unsigned q = 0; q < sizeof(questions) / sizeof(questions[0]); q++)
			for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
				CUresult r;

				EXPECT(CU(cuCtxSetCurrent)(c), 0);
				driver_fail(questions[q], 719);
				r = calls[i].call();
				failed += r != CUDA_SUCCESS;
				driver_fail(NULL, 0);
				CHECK(ledger_sum(0) >= driver_used(0), "%s fails at %s: ledger %llu, driver %llu",
				      questions[q], calls[i].name, (unsigned long long)ledger_sum(0), driver_used(0));
			}
		if (!again)
			EXPECT(CU(cuDevicePrimaryCtxRetain)(&c, 0), 0);
	}
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		EXPECT(CU(cuCtxSetCurrent)(c), 0);
		CHECK(calls[i].call() == CUDA_SUCCESS, "%s, afterwards", calls[i].name);
	}
	CHECK(ledger_sum(0) == driver_used(0), "afterwards: ledger %llu, driver %llu", (unsigned long long)ledger_sum(0),
	      driver_used(0));
	CHECK(failed > 20, "only %d calls failed", failed);
	return harness_failures ? 1 : 0;
}
