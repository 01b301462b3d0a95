// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The memory wrappers over the stand-in driver, whose own account is the truth.
// The page gives this container GPU 0 with a limit of 1 GiB and 100 MiB a context;
// GPU 1 is not in it.

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "harness.h"

#define LIMIT (1024 * MIB)
#define CONTEXT (100 * MIB)

static unsigned long long (*driver_used)(int);
static unsigned long long (*driver_high)(int);
static void (*driver_fail)(const char *, int);

static void same(const char *where)
{
	CHECK(ledger_sum(0) == driver_used(0), "%s: ledger %llu, driver %llu", where,
	      (unsigned long long)ledger_sum(0), driver_used(0));
	CHECK(driver_high(0) <= LIMIT, "%s: the driver has held %llu", where, driver_high(0));
}

// Every way to allocate, asked for more than is left: result 2, outputs as they
// were, nothing charged.
static void over_limit(void)
{
	CUDA_ARRAY_DESCRIPTOR d2 = {65536, 65536, CU_AD_FORMAT_FLOAT, 1};
	CUDA_ARRAY_DESCRIPTOR_v1 d2v1 = {65536, 65536, CU_AD_FORMAT_FLOAT, 1};
	CUDA_ARRAY3D_DESCRIPTOR d3 = {65536, 65536, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUDA_ARRAY3D_DESCRIPTOR_v1 d3v1 = {65536, 65536, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	size_t big = LIMIT - CONTEXT + 1, pitch = 7;
	unsigned int big1 = (unsigned int)big, pitch1 = 7;
	CUdeviceptr p = 0x1234;
	CUdeviceptr_v1 p1 = 0x1234;
	CUarray a = (CUarray)0x1234;
	CUmipmappedArray m = (CUmipmappedArray)0x1234;
	CUmemGenericAllocationHandle h = 0x1234;
	CUmemoryPool pool;
	CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	uint64_t denied = ledger_account(0)->denied;

	EXPECT(CU(cuMemPoolCreate)(&pool, &props), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, big), 2);
	EXPECT(CU(cuMemAlloc)(&p1, big1), 2);
	EXPECT(CU(cuMemAllocManaged)(&p, big, 1), 2);
	EXPECT(CU(cuMemAllocPitch_v2)(&p, &pitch, 1024, big / 1024 + 1, 4), 2);
	EXPECT(CU(cuMemAllocPitch)(&p1, &pitch1, 1024, big1 / 1024 + 1, 4), 2);
	EXPECT(CU(cuMemAllocAsync)(&p, big, NULL), 2);
	EXPECT(CU(cuMemAllocAsync_ptsz)(&p, big, NULL), 2);
	EXPECT(CU(cuMemAllocFromPoolAsync)(&p, big, pool, NULL), 2);
	EXPECT(CU(cuMemAllocFromPoolAsync_ptsz)(&p, big, pool, NULL), 2);
	EXPECT(CU(cuMemCreate)(&h, big, &prop, 0), 2);
	EXPECT(CU(cuArrayCreate_v2)(&a, &d2), 2);
	EXPECT(CU(cuArrayCreate)(&a, &d2v1), 2);
	EXPECT(CU(cuArray3DCreate_v2)(&a, &d3), 2);
	EXPECT(CU(cuArray3DCreate)(&a, &d3v1), 2);
	EXPECT(CU(cuMipmappedArrayCreate)(&m, &d3, 4), 2);
	EXPECT(CU(cuMemAlloc_v2)(&p, SIZE_MAX), 2);
	EXPECT(CU(cuMemAllocPitch_v2)(&p, &pitch, SIZE_MAX, SIZE_MAX, 4), 2);
	CHECK(p == 0x1234 && p1 == 0x1234 && a == (CUarray)0x1234 && m == (CUmipmappedArray)0x1234 && h == 0x1234 &&
	      pitch == 7 && pitch1 == 7, "an output was changed");
	CHECK(ledger_account(0)->denied == denied + 17, "%llu denials counted",
	      (unsigned long long)(ledger_account(0)->denied - denied));
	EXPECT(CU(cuMemPoolDestroy)(pool), 0);
	same("over limit");
	EXPECT(CU(cuMemAlloc_v2)(&p, big - 1), 0);
	same("to the limit");
	CHECK(ledger_sum(0) == LIMIT, "not at the limit: %llu", (unsigned long long)ledger_sum(0));
	EXPECT(CU(cuMemFree_v2)(p), 0);
	same("freed");
}

// Where the driver refuses, its code comes back and nothing stays charged.
static void driver_refuses(void)
{
	CUDA_ARRAY3D_DESCRIPTOR d3 = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUdeviceptr p = 5;
	CUarray a;
	CUcontext c;
	CUmemGenericAllocationHandle h;
	size_t pitch;
	uint64_t before = ledger_sum(0);

#define REFUSED(name, ...)                                 \
	do {                                               \
		driver_fail(#name, 719);                   \
		EXPECT(CU(name)(__VA_ARGS__), 719);        \
		CHECK(ledger_sum(0) == before, #name ": %llu stay charged", \
		      (unsigned long long)(ledger_sum(0) - before));        \
	} while (0)
	REFUSED(cuMemAlloc_v2, &p, MIB);
	REFUSED(cuMemAllocManaged, &p, MIB, 1);
	REFUSED(cuMemAllocPitch_v2, &p, &pitch, 100, 100, 4);
	REFUSED(cuMemAllocAsync, &p, MIB, NULL);
	REFUSED(cuMemCreate, &h, MIB, &prop, 0);
	REFUSED(cuArray3DCreate_v2, &a, &d3);
	REFUSED(cuMipmappedArrayCreate, (CUmipmappedArray *)&a, &d3, 3);
	REFUSED(cuCtxCreate_v2, &c, 0, 0);
	REFUSED(cuDevicePrimaryCtxRetain, &c, 0);
	EXPECT(CU(cuMemAlloc_v2)(NULL, MIB), 1);
	EXPECT(CU(cuMemAlloc_v2)(&p, 0), 1);
	CHECK(p == 5, "an output was changed");
	EXPECT(CU(cuMemAlloc_v2)(&p, MIB), 0);
	before = ledger_sum(0);
	REFUSED(cuMemFree_v2, p);
	REFUSED(cuMemFreeAsync, p, NULL);
	EXPECT(CU(cuMemFree_v2)(p), 0);
	EXPECT(CU(cuMemFree_v2)(p), 1); // twice, and foreign
	EXPECT(CU(cuMemFree_v2)(0x999), 1);
	same("driver refuses");
}

static void contexts(void)
{
	CUcontext primary, c;
	CUdeviceptr p;

	for (int i = 0; i < 3; i++)
		EXPECT(CU(cuDevicePrimaryCtxRetain)(&primary, 0), 0);
	EXPECT(CU(cuCtxSetCurrent)(primary), 0);
	same("retained");
	EXPECT(CU(cuMemAlloc_v2)(&p, 10 * MIB), 0);
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), 0);
	EXPECT(CU(cuDevicePrimaryCtxRelease)(0), 0);
	same("released twice");
	CHECK(ledger_sum(0) == 2 * CONTEXT + 10 * MIB, "the primary context is not charged once");
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), 0);
	same("released");
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&primary, 0), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 10 * MIB), 0);
	EXPECT(CU(cuDevicePrimaryCtxReset_v2)(0), 0);
	same("reset");
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), 0);
	same("released after reset");
	EXPECT(CU(cuCtxCreate_v2)(&c, 0, 0), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 3 * MIB), 0);
	same("created");
	EXPECT(CU(cuCtxDestroy_v2)(c), 0);
	same("destroyed");
	EXPECT(CU(cuCtxDestroy_v2)(c), 201);
	same("destroyed twice");
	EXPECT(CU(cuCtxCreate_v3)(&c, NULL, 0, 0, 0), 0);
	EXPECT(CU(cuCtxDestroy)(c), 0);
	EXPECT(CU(cuCtxCreate_v4)(&c, NULL, 0, 0), 0);
	EXPECT(CU(cuCtxDestroy)(c), 0);
	same("other versions");
	EXPECT(CU(cuCtxCreate_v2)(&c, 0, 0), 0);
	EXPECT(CU(cuCtxAttach)(&c, 0), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 3 * MIB), 0);
	EXPECT(CU(cuCtxDetach)(c), 0);
	same("detached once");
	driver_fail("cuCtxDetach", 719);
	EXPECT(CU(cuCtxDetach)(c), 719);
	same("detach refused");
	EXPECT(CU(cuCtxDetach)(c), 0);
	same("detached");
}

static void *user_of_primary(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	CUcontext c;
	CUdeviceptr p;

	for (int i = 0; i < 2000; i++) {
		if (CU(cuDevicePrimaryCtxRetain)(&c, 0) != CUDA_SUCCESS)
			continue;
		CU(cuCtxSetCurrent)(c);
		if (CU(cuMemAlloc_v2)(&p, rand_r(&seed) % 5000 + 1) == CUDA_SUCCESS && rand_r(&seed) % 4)
			CU(cuMemFree_v2)(p);
		CU(cuDevicePrimaryCtxRelease_v2)(0);
	}
	return NULL;
}

// The primary context comes and goes under several threads.
static void threads_of_primary(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, user_of_primary, (void *)(uintptr_t)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	same("threads of the primary context");
}

// A primary context that came about without our seeing it is charged at the first
// allocation in it.
static void unseen_context(void)
{
	void *real = dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD);
	__typeof__(&cuDevicePrimaryCtxRetain) retain =
		(__typeof__(&cuDevicePrimaryCtxRetain))dlsym(real, "cuDevicePrimaryCtxRetain");
	CUcontext c;
	CUdeviceptr p;

	EXPECT(retain(&c, 0), 0);
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, MIB), 0);
	same("unseen context");
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), 0);
	same("unseen context released");
}

static void foreign_device(void)
{
	CUcontext c = (CUcontext)5;
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
	CUmemGenericAllocationHandle h;
	size_t n = 3;

	EXPECT(CU(cuDevicePrimaryCtxRetain)(&c, 1), 100);
	EXPECT(CU(cuCtxCreate_v2)(&c, 0, 1), 100);
	EXPECT(CU(cuDeviceTotalMem_v2)(&n, 1), 100);
	EXPECT(CU(cuMemCreate)(&h, MIB, &prop, 0), 100);
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&c, 9), 101);
	CHECK(c == (CUcontext)5 && n == 3, "an output was changed");
	CHECK(driver_used(1) == 0, "the other GPU is in use");
}

static void no_context(CUcontext back)
{
	CUdeviceptr p;
	size_t a, b;

	EXPECT(CU(cuCtxSetCurrent)(NULL), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, MIB), 201);
	EXPECT(CU(cuMemAllocAsync)(&p, MIB, NULL), 201);
	EXPECT(CU(cuMemGetInfo_v2)(&a, &b), 201);
	EXPECT(CU(cuCtxSetCurrent)(back), 0);
	same("no context");
}

static void views(void)
{
	size_t free_bytes, total, device;
	CUdeviceptr p;

	EXPECT(CU(cuMemAlloc_v2)(&p, 100), 0);
	EXPECT(CU(cuMemGetInfo_v2)(&free_bytes, &total), 0);
	EXPECT(CU(cuDeviceTotalMem_v2)(&device, 0), 0);
	CHECK(total == LIMIT && device == LIMIT, "total %zu, device %zu", total, device);
	CHECK(free_bytes == LIMIT - ledger_sum(0), "free %zu", free_bytes);
	EXPECT(CU(cuMemFree_v2)(p), 0);
}

static void pools(void)
{
	CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemPoolProps host_props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
	CUdeviceptr p[8], q;
	CUmemoryPool pool, host;

	// The pool grows by 4 MiB and keeps it: charged, then given up for others.
	EXPECT(CU(cuMemAllocAsync)(&p[0], MIB, NULL), 0);
	same("pool grown");
	EXPECT(CU(cuMemFreeAsync)(p[0], NULL), 0);
	same("pool keeps");
	CHECK(ledger_sum(0) == CONTEXT + 4 * MIB, "the pool's reserve is not charged");
	EXPECT(CU(cuMemAlloc_v2)(&q, LIMIT - CONTEXT), 0);
	same("pool gave up its reserve");
	EXPECT(CU(cuMemAllocAsync)(&p[0], 512, NULL), 2);
	EXPECT(CU(cuMemFree_v2)(q), 0);
	// The last step of growth does not fit: the allocation is undone.
	EXPECT(CU(cuMemAlloc_v2)(&q, LIMIT - CONTEXT - 2 * MIB), 0);
	p[0] = 77;
	EXPECT(CU(cuMemAllocAsync)(&p[0], MIB, NULL), 2);
	CHECK(p[0] == 77, "an output was changed");
	// What a pool grows by is the driver's choice and known only afterwards.
	CHECK(driver_high(0) <= LIMIT + 4 * MIB && driver_used(0) <= LIMIT, "the driver has held %llu, holds %llu",
	      driver_high(0), driver_used(0));
	driver_fail(NULL, 0); // forget the high-water mark
	EXPECT(CU(cuMemFree_v2)(q), 0);
	for (int i = 0; i < 10000; i++) {
		EXPECT(CU(cuMemAllocAsync)(&q, 64 * MIB, NULL), 0);
		EXPECT(CU(cuMemFreeAsync)(q, NULL), 0);
		if (harness_failures)
			return;
	}
	EXPECT(CU(cuMemPoolCreate)(&pool, &props), 0);
	EXPECT(CU(cuMemPoolCreate)(&host, &host_props), 0);
	for (int i = 0; i < 8; i++)
		EXPECT(CU(cuMemAllocFromPoolAsync)(&p[i], 3 * MIB, pool, NULL), 0);
	same("own pool");
	EXPECT(CU(cuMemFree_v2)(p[0]), 0);
	EXPECT(CU(cuMemPoolTrimTo)(pool, 0), 0);
	same("trimmed");
	EXPECT(CU(cuMemPoolDestroy)(pool), 0);
	for (int i = 1; i < 8; i++)
		EXPECT(CU(cuMemFreeAsync_ptsz)(p[i], NULL), 0);
	CHECK(ledger_sum(0) >= driver_used(0), "a destroyed pool is charged too little");
	// Pools of a size that only reuse makes fit.
	for (int i = 0; i < 3; i++) {
		EXPECT(CU(cuMemAllocAsync)(&q, 800 * MIB, NULL), 0);
		EXPECT(CU(cuMemFreeAsync)(q, NULL), 0);
	}
}

static void vmm(void)
{
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle h, h2;
	CUdeviceptr at = 0x600000000000ULL;
	uint64_t before = ledger_sum(0);

	EXPECT(CU(cuMemCreate)(&h, 2 * MIB, &prop, 0), 0);
	EXPECT(CU(cuMemMap)(at, 2 * MIB, 0, h, 0), 0);
	EXPECT(CU(cuMemRelease)(h), 0);
	CHECK(ledger_sum(0) == before + 2 * MIB, "mapped memory is not charged after its release");
	EXPECT(CU(cuMemRetainAllocationHandle)(&h2, (void *)(uintptr_t)at), 0);
	EXPECT(CU(cuMemUnmap)(at, 2 * MIB), 0);
	CHECK(ledger_sum(0) == before + 2 * MIB, "retained memory is not charged");
	EXPECT(CU(cuMemRelease)(h2), 0);
	CHECK(ledger_sum(0) == before, "memory stays charged");
	// Several mappings go in one call; a refusal changes nothing.
	for (int i = 0; i < 40; i++) {
		EXPECT(CU(cuMemCreate)(&h, 2 * MIB, &prop, 0), 0);
		EXPECT(CU(cuMemMap)(at + 2 * MIB * i, 2 * MIB, 0, h, 0), 0);
		EXPECT(CU(cuMemRelease)(h), 0);
	}
	driver_fail("cuMemUnmap", 719);
	EXPECT(CU(cuMemUnmap)(at, 80 * MIB), 719);
	CHECK(ledger_sum(0) == before + 80 * MIB, "a refused unmap gave memory back");
	EXPECT(CU(cuMemUnmap)(at, 80 * MIB), 0);
	CHECK(ledger_sum(0) == before, "unmapped memory stays charged");
	// Host memory: the location's number is no device, and nothing is charged.
	prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 485797272};
	EXPECT(CU(cuMemCreate)(&h, 2 * MIB, &prop, 0), 0);
	CHECK(ledger_sum(0) == before, "host memory is charged");
	EXPECT(CU(cuMemRelease)(h), 0);
}

static void arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR d2 = {100, 50, CU_AD_FORMAT_FLOAT, 4};
	CUDA_ARRAY3D_DESCRIPTOR d3 = {33, 20, 10, CU_AD_FORMAT_FLOAT, 1, 0};
	CUarray a, b;
	CUmipmappedArray m;

	EXPECT(CU(cuArrayCreate_v2)(&a, &d2), 0);
	EXPECT(CU(cuArray3DCreate_v2)(&b, &d3), 0);
	d3.Depth = 0;
	EXPECT(CU(cuMipmappedArrayCreate)(&m, &d3, 5), 0);
	same("arrays are there");
	EXPECT(CU(cuArrayDestroy)(a), 0);
	EXPECT(CU(cuArrayDestroy)(b), 0);
	EXPECT(CU(cuMipmappedArrayDestroy)(m), 0);
	same("arrays");
}

static void lookup(void)
{
	CUdriverProcAddressQueryResult status;
	void *fn;

	EXPECT(CU(cuGetProcAddress_v2)("cuMemAlloc", &fn, 3020, 0, &status), 0);
	CHECK(fn == (void *)CU(cuMemAlloc_v2), "cuMemAlloc 3020 is not ours");
	EXPECT(CU(cuGetProcAddress_v2)("cuMemAlloc", &fn, 2000, 0, &status), 0);
	CHECK(fn == (void *)CU(cuMemAlloc), "cuMemAlloc 2000 is not ours");
	EXPECT(CU(cuGetProcAddress_v2)("cuMemAllocAsync", &fn, 12000, 2, NULL), 0);
	CHECK(fn == (void *)CU(cuMemAllocAsync_ptsz), "the per-thread form is not ours");
	EXPECT(CU(cuGetProcAddress_v2)("cuGetProcAddress", &fn, 12000, 0, NULL), 0);
	CHECK(fn == (void *)CU(cuGetProcAddress_v2), "cuGetProcAddress is not ours");
	EXPECT(CU(cuGetProcAddress_v2)("cuDriverGetVersion", &fn, 12000, 0, NULL), 0);
	CHECK(fn == (void *)CU(cuDriverGetVersion), "a name that we do not hook is not the driver's");
}

static void *worker(void *arg)
{
	CUdeviceptr p[16] = {0};
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	CU(cuCtxSetCurrent)(arg);
	seed = (unsigned int)getpid() ^ (unsigned int)(uintptr_t)&p;
	for (int i = 0; i < 3000; i++) {
		int at = rand_r(&seed) % 16;

		if (p[at])
			CU(cuMemFree_v2)(p[at]);
		if (CU(cuMemAlloc_v2)(&p[at], (rand_r(&seed) % 200) * MIB + 1))
			p[at] = 0;
	}
	for (int i = 0; i < 16; i++)
		if (p[i])
			CU(cuMemFree_v2)(p[i]);
	return NULL;
}

static void threads(CUcontext c)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, worker, c);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	same("threads");
}

static void child_of_fork(void)
{
	uint64_t before = ledger_sum(0);
	CUdeviceptr p;
	int status;
	pid_t pid = fork();

	if (!pid) {
		int failed = harness_failures;

		EXPECT(CU(cuMemAlloc_v2)(&p, MIB), 3);
		CHECK(ledger_sum(0) == before, "a forked child changed the ledger");
		EXPECT(CU(cuInit)(0), 0); // the stand-in allows it
		EXPECT(CU(cuMemAlloc_v2)(&p, MIB), 0);
		_exit(harness_failures != failed);
	}
	waitpid(pid, &status, 0);
	CHECK(status == 0, "the child failed");
}

int main(void)
{
	CUcontext c;

	setvbuf(stdout, NULL, _IONBF, 0);
	driver_used = (unsigned long long (*)(int))harness_symbol("fake_used");
	driver_high = (unsigned long long (*)(int))harness_symbol("fake_high");
	driver_fail = (void (*)(const char *, int))harness_symbol("fake_fail");
	CHECK((void *)CU(cuMemAlloc_v2) != dlsym(dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD),
						    "cuMemAlloc_v2"), "not hooked");
	EXPECT(CU(cuMemFree_v2)(5), 3); // before cuInit
	errno = 4242;
	EXPECT(CU(cuInit)(0), 0);
	CHECK(errno == 4242, "cuInit changed errno");
	CHECK(ledger_slot(0)->pid == (uint32_t)getpid(), "the slot has pid %u", ledger_slot(0)->pid);
	foreign_device();
	EXPECT(CU(cuCtxCreate_v2)(&c, 0, 0), 0);
	same("first context");
	over_limit();
	driver_refuses();
	contexts();
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	unseen_context();
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	no_context(c);
	views();
	vmm();
	arrays();
	lookup();
	threads(c);
	pools();
	threads_of_primary();
	child_of_fork(); // last: its slot is found dead only later
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	EXPECT(CU(cuCtxDestroy_v2)(c), 0);
	CHECK(ledger_slot(0)->contexts == 0, "%u contexts left", ledger_slot(0)->contexts);
	return harness_failures ? 1 : 0;
}
