// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Old ABIs and rare calls against the stand-in driver: after each, the ledger and
// the driver's own account are the same.

#include "harness.h"

static unsigned long long (*driver_used)(int);

static void same(const char *where)
{
	CHECK(ledger_sum(0) == driver_used(0) && driver_used(0) > 0, "%s: ledger %llu, driver %llu", where,
	      (unsigned long long)ledger_sum(0), driver_used(0));
}

// Each way to make a context, and each way to end one.
static void contexts(void)
{
	CUcontext c;

#define CONTEXT(create, destroy)            \
	do {                                \
		EXPECT(create, 0);          \
		same(#create);              \
		EXPECT(CU(destroy)(c), 0);  \
		same(#create " " #destroy); \
	} while (0)
	CONTEXT(CU(cuCtxCreate)(&c, 0, 0), cuCtxDestroy);
	CONTEXT(CU(cuCtxCreate_v2)(&c, 0, 0), cuCtxDestroy_v2);
	CONTEXT(CU(cuCtxCreate_v3)(&c, NULL, 0, 0, 0), cuCtxDetach);
	CONTEXT(CU(cuCtxCreate_v4)(&c, NULL, 0, 0), cuCtxDestroy_v2);
	CONTEXT(CU(cuGLCtxCreate)(&c, 0, 0), cuCtxDestroy_v2);
	CONTEXT(CU(cuGLCtxCreate_v2)(&c, 0, 0), cuCtxDestroy_v2);
	CONTEXT(CU(cuVDPAUCtxCreate)(&c, 0, 0, 0, NULL), cuCtxDestroy_v2);
	CONTEXT(CU(cuVDPAUCtxCreate_v2)(&c, 0, 0, 0, NULL), cuCtxDestroy_v2);
}

static void primary(void)
{
	CUcontext c;

#define PRIMARY(end)                                           \
	do {                                                   \
		EXPECT(CU(cuDevicePrimaryCtxRetain)(&c, 0), 0); \
		same("retained");                              \
		EXPECT(CU(end)(0), 0);                         \
		same(#end);                                    \
	} while (0)
	PRIMARY(cuDevicePrimaryCtxRelease);
	PRIMARY(cuDevicePrimaryCtxRelease_v2);
	PRIMARY(cuDevicePrimaryCtxReset);
	PRIMARY(cuDevicePrimaryCtxReset_v2);
}

// Pointers of 32 bits.
static void memory(void)
{
	unsigned int pitch;
	CUdeviceptr_v1 p;

	EXPECT(CU(cuMemAlloc)(&p, MIB), 0);
	same("cuMemAlloc");
	EXPECT(CU(cuMemFree)(p), 0);
	same("cuMemFree");
	EXPECT(CU(cuMemAllocPitch)(&p, &pitch, 1000, 1000, 4), 0);
	same("cuMemAllocPitch");
	EXPECT(CU(cuMemFree)(p), 0);
	same("cuMemFree, pitched");
}

// Pools give memory up when they are told to and when they go.
static void pool(void)
{
	CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	cuuint64_t threshold = 0;
	CUmemoryPool p;
	CUdeviceptr a;

	// A device that is not the container's has no pools.
	props.location.id = 1;
	EXPECT(CU(cuMemPoolCreate)(&p, &props), CUDA_ERROR_NO_DEVICE);
	props.location.id = 0;
	EXPECT(CU(cuMemPoolCreate)(&p, &props), 0);
	EXPECT(CU(cuMemAllocFromPoolAsync)(&a, 16 * MIB, p, NULL), 0);
	EXPECT(CU(cuMemFreeAsync)(a, NULL), 0);
	same("the pool keeps");
	EXPECT(CU(cuMemPoolSetAttribute)(p, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold), 0);
	same("the pool gives up");
	EXPECT(CU(cuMemAllocFromPoolAsync)(&a, 16 * MIB, p, NULL), 0);
	EXPECT(CU(cuMemFreeAsync)(a, NULL), 0);
	same("the pool keeps again");
	EXPECT(CU(cuMemPoolTrimTo)(p, 0), 0);
	same("the pool is trimmed");
	EXPECT(CU(cuMemAllocFromPoolAsync)(&a, 16 * MIB, p, NULL), 0);
	EXPECT(CU(cuMemFreeAsync)(a, NULL), 0);
	EXPECT(CU(cuMemPoolDestroy)(p), 0);
	same("the pool is gone");
}

// The host's own pools, by the names of 13.0: nothing of them is the GPU's.
static void host_pools(void)
{
	CUmemLocation where = {CU_MEM_LOCATION_TYPE_HOST, 0};
	CUmemoryPool p[2] = {NULL, NULL};
	uint64_t before = ledger_sum(0);
	CUdeviceptr a;

	EXPECT(CU(cuMemGetDefaultMemPool)(&p[0], &where, 1), 0);
	EXPECT(CU(cuMemGetMemPool)(&p[1], &where, 1), 0);
	for (int i = 0; i < 2; i++) {
		EXPECT(CU(cuMemAllocFromPoolAsync)(&a, 4096 * MIB, p[i], NULL), 0);
		CHECK(ledger_sum(0) == before, "the host's memory is charged");
		EXPECT(CU(cuMemFreeAsync)(a, NULL), 0);
		same("the host's pool");
		p[i] = (CUmemoryPool)77;
	}
	EXPECT(CU(cuMemGetDefaultMemPool)(&p[0], &where, 0), 1);
	EXPECT(CU(cuMemGetMemPool)(&p[1], &where, 0), 1);
	CHECK(p[0] == (CUmemoryPool)77 && p[1] == (CUmemoryPool)77, "an output was changed");
}

// The oldest questions have answers of 32 bits.
static void views(void)
{
	unsigned int free_bytes = 0, total = 0;

	EXPECT(CU(cuDeviceTotalMem)(&total, 0), 0);
	CHECK(total == 1024 * MIB, "total %u", total);
	total = 0;
	EXPECT(CU(cuMemGetInfo)(&free_bytes, &total), 0);
	CHECK(total == 1024 * MIB && free_bytes == 1024 * MIB - ledger_sum(0), "total %u, free %u", total, free_bytes);
}

static int notices;

static void notice(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
	(void)info;
	(void)data;
	(void)handle;
	notices++;
}

// The driver has a budget of the card to notify of.
static void budget(void)
{
	CUasyncCallbackHandle handle = (CUasyncCallbackHandle)7;

	EXPECT(CU(cuDeviceRegisterAsyncNotification)(0, notice, NULL, &handle), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(CU(cuDeviceRegisterAsyncNotification)(0, NULL, NULL, &handle), CUDA_ERROR_INVALID_VALUE);
	EXPECT(CU(cuDeviceRegisterAsyncNotification)(9, notice, NULL, &handle), CUDA_ERROR_INVALID_DEVICE);
	CHECK(handle == (CUasyncCallbackHandle)7 && !notices, "notices of the card");
}

int main(void)
{
	CUcontext c;

	driver_used = (unsigned long long (*)(int))harness_symbol("fake_used");
	EXPECT(CU(cuInit)(0), 0);
	EXPECT(CU(cuCtxCreate_v2)(&c, 0, 0), 0);
	same("start");
	contexts();
	primary();
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	memory();
	pool();
	host_pools();
	views();
	budget();
	return harness_failures ? 1 : 0;
}
