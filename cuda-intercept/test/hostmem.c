// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A program that allocates beyond its limit, with and without host memory. What it
// does is its first argument; it prints one line of figures and what went wrong.
//
//	all LIMIT HOST CONTEXT     everything that one process can get, and back
//	fill STEP [hold]           cuMemAlloc of STEP until refused; prints bytes on the
//	                           device and in host memory
//	race P STEP                the same in P processes at once
//	churn MOST                 allocates and frees at random, for ever
//	advice                     tries to bring spilled memory over, with 64 MiB of limit
//	faulty CODE                the driver fails when memory is spilled: the first refusal
//	                           is CODE, and nothing is charged for it
//	calls                      one allocation by each call; prints which were spilled

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define UNTOUCHED 0x5a5a5a5a5a5aULL
#define MOST 4096

static CUdeviceptr pointers[MOST];
static size_t sizes[MOST];
static int count;

static int managed(CUdeviceptr p)
{
	unsigned int is = 0;

	EXPECT(CU(cuPointerGetAttribute)(&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, p), 0);
	return (int)is;
}

static void start(void)
{
	CUcontext c;

	EXPECT(CU(cuInit)(0), 0);
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&c, 0), 0);
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
}

static int take(size_t bytes)
{
	CUdeviceptr p = UNTOUCHED;
	int r = (int)CU(cuMemAlloc_v2)(&p, bytes);

	CHECK((r == 0) == (p != UNTOUCHED), "result %d with the output %llx", r, (unsigned long long)p);
	if (r == 0 && count < MOST) {
		pointers[count] = p;
		sizes[count++] = bytes;
	}
	return r;
}

static void drop(int i)
{
	EXPECT(CU(cuMemFree_v2)(pointers[i]), 0);
	pointers[i] = pointers[--count];
	sizes[i] = sizes[count];
}

static void fill(size_t step, uint64_t sums[2])
{
	sums[0] = sums[1] = 0;
	while (take(step) == 0)
		sums[managed(pointers[count - 1])] += step;
}

// use has the GPU write both ends of an allocation and reads them back.
static void use(CUdeviceptr p, size_t bytes)
{
	unsigned char back[2] = {0};

	EXPECT(CU(cuMemsetD8_v2)(p, 0x11, MIB), 0);
	EXPECT(CU(cuMemsetD8_v2)(p + bytes - MIB, 0x22, MIB), 0);
	EXPECT(CU(cuMemcpyDtoH_v2)(&back[0], p, 1), 0);
	EXPECT(CU(cuMemcpyDtoH_v2)(&back[1], p + bytes - 1, 1), 0);
	CHECK(back[0] == 0x11 && back[1] == 0x22, "%x %x came back", back[0], back[1]);
}

static uint64_t host_bytes(void)
{
	const struct gs_ledger_header *h = (const void *)harness_ledger();
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->slot_high; i++)
		sum += ((const volatile struct gs_slot *)ledger_slot(i))->host_bytes;
	return sum;
}

static void check_info(uint64_t limit)
{
	size_t free_bytes = 0, total = 0;

	EXPECT(CU(cuMemGetInfo_v2)(&free_bytes, &total), 0);
	CHECK(total == limit, "total %zu", total);
	CHECK(total - free_bytes == ledger_sum(0), "%zu used, %llu charged", total - free_bytes, (unsigned long long)ledger_sum(0));
}

// Everything twice: what is freed can be had again, on the device and beside it.
static void all(uint64_t limit, uint64_t host, uint64_t context)
{
	const size_t step = 32 * MIB;
	uint64_t sums[2];

	for (int round = 0; round < 2; round++) {
		fill(step, sums);
		CHECK(sums[0] + context <= limit && limit - sums[0] - context < step, "%llu on the device", (unsigned long long)sums[0]);
		CHECK(sums[1] == host, "%llu in host memory", (unsigned long long)sums[1]);
		CHECK(host_bytes() == host, "%llu charged", (unsigned long long)host_bytes());
		EXPECT(take(step), CUDA_ERROR_OUT_OF_MEMORY);
		for (int i = 0; i < count; i++)
			use(pointers[i], sizes[i]);
		check_info(limit);
		while (count > 1)
			drop(round ? 0 : count - 1);
		drop(0);
		CHECK(host_bytes() == 0 && ledger_sum(0) == context, "left: %llu and %llu", (unsigned long long)host_bytes(),
		      (unsigned long long)ledger_sum(0));
	}
	CHECK(ledger_account(0)->denied == (host ? 4 : 4), "%llu denials", (unsigned long long)ledger_account(0)->denied);
	// To the byte of a page, also where the sum would not fit into 64 bits.
	EXPECT(take(limit - context), 0);
	if (host > 1) {
		EXPECT(take(host), 0);
		EXPECT(take(1), CUDA_ERROR_OUT_OF_MEMORY);
		drop(1);
		EXPECT(take(host + 1), CUDA_ERROR_OUT_OF_MEMORY);
	}
	EXPECT(take(SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(take(SIZE_MAX / 2), CUDA_ERROR_OUT_OF_MEMORY);
	while (count)
		drop(0);
}

static void race(int children, size_t step)
{
	int ready[2], go[2], got[2], done[2];
	uint64_t sums[2], all_of[2] = {0};
	char c = 0;

	if (pipe(ready) || pipe(go) || pipe(got) || pipe(done))
		exit(2);
	for (int i = 0; i < children; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		close(done[1]);
		start();
		if (write(ready[1], &c, 1) < 0 || read(go[0], &c, 1) < 0)
			exit(2);
		fill(step, sums);
		if (write(got[1], sums, sizeof(sums)) < 0 || read(done[0], &c, 1) < 0)
			exit(2);
		_exit(harness_failures != 0);
	}
	for (int i = 0; i < children; i++)
		if (read(ready[0], &c, 1) != 1)
			exit(2);
	close(go[1]);
	for (int i = 0; i < children; i++) {
		if (read(got[0], sums, sizeof(sums)) != sizeof(sums))
			exit(2);
		all_of[0] += sums[0];
		all_of[1] += sums[1];
	}
	printf("race %llu %llu\n", (unsigned long long)all_of[0], (unsigned long long)all_of[1]);
	close(done[1]);
	while (wait(NULL) > 0)
		;
}

// churn takes whole blocks of a card: how less is rounded is not its affair.
static void churn(size_t most)
{
	unsigned int seed = (unsigned int)getpid();

	for (;;) {
		if (count > 8 || (count && rand_r(&seed) % 3 == 0))
			drop(rand_r(&seed) % count);
		take(((size_t)rand_r(&seed) % (most / (2 * MIB)) + 1) * 2 * MIB);
	}
}

static size_t used(void)
{
	size_t free_bytes = 0, total = 0;

	EXPECT(CU(cuMemGetInfo_v2)(&free_bytes, &total), 0);
	return total - free_bytes;
}

// The parent reads the simulator's own account after each line.
static void say(const char *what)
{
	char c;

	puts(what);
	if (read(0, &c, 1) != 1)
		exit(2);
}

static void advice(void)
{
	CUmemLocation gpu = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, cpu = {CU_MEM_LOCATION_TYPE_HOST, 0};
	size_t bytes = 128 * MIB, one = 2 * MIB, first = 0, before = used();
	CUdeviceptr p = 0, own = 0;

	EXPECT(CU(cuMemAllocManaged)(&own, 16 * MIB, 1), 0);
	EXPECT(CU(cuMemAllocManaged)(&p, bytes, 1), 0);
	CHECK(used() - before == 16 * MIB, "%zu charged", used() - before);
	CHECK(host_bytes() == bytes, "%llu in host memory", (unsigned long long)host_bytes());
	say("allocated");
	EXPECT(CU(cuMemPrefetchAsync)(p, bytes, 0, NULL), 0);
	EXPECT(CU(cuMemPrefetchAsync_ptsz)(p + MIB, MIB, 0, NULL), 0);
	say("prefetched");
	EXPECT(CU(cuMemAdvise)(p, bytes, 1, 0), 0); // read mostly
	EXPECT(CU(cuMemAdvise)(p, bytes, 3, 0), 0); // preferred location
	EXPECT(CU(cuMemAdvise)(p, bytes, 4, 0), 0); // none
	EXPECT(CU(cuMemAdvise)(p, bytes, 6, 0), 0); // not accessed by
	EXPECT(CU(cuMemsetD8_v2)(p, 1, bytes), 0);
	say("advised");
	EXPECT(CU(cuMemPrefetchAsync_v2)(p, bytes, gpu, 0, NULL), 0);
	EXPECT(CU(cuMemPrefetchAsync_v2_ptsz)(p, bytes, gpu, 0, NULL), 0);
	EXPECT(CU(cuMemAdvise_v2)(p, bytes, 3, gpu), 0);
	EXPECT(CU(cuMemsetD8_v2)(p, 1, bytes), 0);
	say("by location");
	if (HAS(cuMemPrefetchBatchAsync)) {
		CUstream s;

		EXPECT(CU(cuStreamCreate)(&s, 0), 0);
		EXPECT(CU(cuMemPrefetchBatchAsync)(&p, &one, 1, &gpu, &first, 1, 0, s), 0);
		EXPECT(CU(cuMemPrefetchBatchAsync_ptsz)(&p, &one, 1, &gpu, &first, 1, 0, s), 0);
		EXPECT(CU(cuMemDiscardAndPrefetchBatchAsync)(&p, &one, 1, &gpu, &first, 1, 0, s), 0);
		EXPECT(CU(cuMemDiscardAndPrefetchBatchAsync_ptsz)(&p, &one, 1, &gpu, &first, 1, 0, s), 0);
	}
	say("in batches");
	// To the host it may be sent.
	EXPECT(CU(cuMemPrefetchAsync)(p, bytes, CU_DEVICE_CPU, NULL), 0);
	EXPECT(CU(cuMemAdvise_v2)(p, bytes, 3, cpu), 0);
	EXPECT(CU(cuMemPrefetchAsync_v2)(p, bytes, cpu, 0, NULL), 0);
	// What is charged is the program's own to place.
	EXPECT(CU(cuMemPrefetchAsync)(own, 16 * MIB, 0, NULL), 0);
	say("own");
	EXPECT(CU(cuMemFree_v2)(p), 0);
	EXPECT(CU(cuMemFree_v2)(own), 0);
	CHECK(host_bytes() == 0 && used() == before, "left: %llu and %zu", (unsigned long long)host_bytes(), used() - before);
	say("freed");
}

// Which calls can be served from host memory once the limit is reached.
static void calls(void)
{
	CUDA_ARRAY_DESCRIPTOR array = {1 << 20, 4, CU_AD_FORMAT_FLOAT, 1};
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p = UNTOUCHED, q;
	CUdeviceptr_v1 low = 77;
	size_t pitch = 77, bytes = 16 * MIB;
	CUipcMemHandle ipc;
	unsigned int type;
	CUcontext c;
	CUarray a;

	EXPECT(CU(cuMemAllocPitch_v2)(&p, &pitch, 1000, 4096, 4), 0);
	CHECK(pitch == 1024 && managed(p), "pitch %zu", pitch);
	EXPECT(CU(cuMemsetD2D8_v2)(p, pitch, 3, 1000, 4096), 0);
	EXPECT(CU(cuMemFree_v2)(p), 0);
	CHECK(host_bytes() == 0, "%llu left", (unsigned long long)host_bytes());
	p = UNTOUCHED;
	pitch = 77;
	EXPECT(CU(cuMemAllocPitch_v2)(&p, &pitch, SIZE_MAX / 2, 8, 4), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(p == UNTOUCHED && pitch == 77, "outputs of a refusal");

	EXPECT(CU(cuMemAlloc_v2)(&q, bytes), 0);
	EXPECT(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q), 0);
	CHECK(managed(q) && type == CU_MEMORYTYPE_DEVICE, "memory type %u", type);
	EXPECT(CU(cuIpcGetMemHandle)(&ipc, q), CUDA_ERROR_INVALID_VALUE);
	EXPECT(CU(cuMemFreeAsync)(q, NULL), 0);
	CHECK(host_bytes() == 0, "%llu left", (unsigned long long)host_bytes());
	EXPECT(CU(cuMemFree_v2)(q), CUDA_ERROR_INVALID_VALUE);

	// Never: what others import, what is no linear memory, what a stream orders.
	EXPECT(CU(cuMemCreate)(&handle, bytes, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(CU(cuArrayCreate_v2)(&a, &array), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(CU(cuMemAllocAsync)(&q, bytes, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(CU(cuMemAlloc)(&low, (unsigned int)bytes), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(low == 77 && host_bytes() == 0, "%llu in host memory", (unsigned long long)host_bytes());

	// It goes with its context.
	while (count)
		drop(0);
	EXPECT(CU(cuCtxCreate_v2)(&c, 0, 0), 0);
	while (take(bytes) == 0 && !managed(pointers[count - 1]))
		;
	CHECK(host_bytes() == bytes, "%llu in host memory", (unsigned long long)host_bytes());
	EXPECT(CU(cuCtxDestroy_v2)(c), 0);
	count = 0;
	CHECK(host_bytes() == 0, "%llu left of a context", (unsigned long long)host_bytes());
}

static void faulty(int code)
{
	size_t step = 16 * MIB;
	uint64_t charged;
	int r;

	for (int round = 0; round < 2; round++) {
		while ((r = take(step)) == 0 && !managed(pointers[count - 1]))
			;
		CHECK(r == code, "%d, want %d", r, code);
		CHECK(host_bytes() == 0, "%llu in host memory", (unsigned long long)host_bytes());
		charged = ledger_sum(0);
		EXPECT(take(step), code);
		CHECK(ledger_sum(0) == charged, "%llu charged, were %llu", (unsigned long long)ledger_sum(0), (unsigned long long)charged);
		while (count)
			drop(0);
	}
}

int main(int argc, char **argv)
{
	uint64_t sums[2];
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "race")) { // before CUDA, which no child inherits
		race(atoi(argv[2]), strtoull(argv[3], NULL, 0));
		return harness_failures != 0;
	}
	start();
	if (!strcmp(what, "all")) {
		all(strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0), strtoull(argv[4], NULL, 0));
	} else if (!strcmp(what, "fill")) {
		fill(strtoull(argv[2], NULL, 0), sums);
		printf("fill %llu %llu\n", (unsigned long long)sums[0], (unsigned long long)sums[1]);
		for (int i = 0; i < count; i++)
			use(pointers[i], sizes[i]);
		if (argc > 3)
			say("holding");
	} else if (!strcmp(what, "churn")) {
		churn(strtoull(argv[2], NULL, 0));
	} else if (!strcmp(what, "advice")) {
		advice();
	} else if (!strcmp(what, "faulty")) {
		faulty(atoi(argv[2]));
	} else if (!strcmp(what, "calls")) {
		while (take(MIB) == 0 && !managed(pointers[count - 1]))
			;
		if (count)
			drop(count - 1);
		calls();
	}
	return harness_failures != 0;
}
