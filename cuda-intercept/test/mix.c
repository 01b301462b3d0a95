// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Threads that allocate and free linear, pitched and managed memory, arrays and
// mipmapped arrays of all sizes at random in several contexts. Arguments: seed, rounds,
// operations a round and thread, threads. After each round nothing is under way; then it
// prints
//	check CONTEXTS MANAGED SMALL
// (contexts that there are, bytes of managed memory in whole blocks, arrays that may be
// smaller than a block) and goes on after a line on its standard input. A context is
// destroyed with all that is in it after every third round. In the end everything is
// freed and it prints "counts" with how many calls were granted and refused.

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "harness.h"

#define CONTEXTS 4 // the primary one, two explicit ones, a green one
#define HELD 96	   // by each thread at most
#define THREADS 16
#define BLOCK (2 * MIB)
#define LAYERED 1U
#define CUBEMAP 4U

enum what { NOTHING, LINEAR, LOW, PITCHED, MANAGED, ARRAY, MIPMAP };

struct held {
	enum what what;
	int context;
	uint64_t handle;
	uint64_t bytes;
};

struct worker {
	pthread_t thread;
	unsigned int seed;
	struct held held[HELD];
};

static struct worker workers[THREADS];
static CUcontext contexts[CONTEXTS];
static CUgreenCtx green;
static int nthreads, operations;
static pthread_barrier_t barrier;
static bool over;
static _Atomic(long) granted, refused;

static unsigned int dice(struct worker *w, unsigned int n)
{
	return (unsigned int)rand_r(&w->seed) % n;
}

// size is of any magnitude from 1 byte to 64 MiB.
static size_t size(struct worker *w)
{
	size_t most = 1UL << dice(w, 27);

	return 1 + (size_t)((double)rand_r(&w->seed) / RAND_MAX * (double)(most - 1));
}

static CUresult take_array(struct worker *w, struct held *h)
{
	size_t bytes = size(w) / 4 + 1, side = 1;
	CUDA_ARRAY3D_DESCRIPTOR d = {.Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUarray a = NULL;
	CUmipmappedArray m = NULL;
	CUresult r;

	while (side * side < bytes && side < 2048)
		side *= 2;
	switch (dice(w, 5)) {
	case 0:
		d.Width = bytes < 65536 ? bytes : 65536; // one dimension
		break;
	case 1:
		d.Width = side;
		d.Height = bytes / side + 1;
		break;
	case 2:
		d.Width = d.Height = side / 4 + 1;
		d.Depth = 7;
		break;
	case 3:
		d.Width = side / 2 + 1;
		d.Height = dice(w, 2) ? side / 4 + 1 : 0;
		d.Depth = 5;
		d.Flags = LAYERED;
		break;
	default:
		d.Width = d.Height = side / 4 + 1;
		d.Depth = 6;
		d.Flags = CUBEMAP;
	}
	if (h->what == MIPMAP) {
		r = CU(cuMipmappedArrayCreate)(&m, &d, 1 + dice(w, 12));
		h->handle = (uintptr_t)m;
	} else {
		r = CU(cuArray3DCreate_v2)(&a, &d);
		h->handle = (uintptr_t)a;
	}
	// With room for tiles and levels: what may be small counts as small.
	h->bytes = d.Width * 4 * (d.Height ? d.Height : 1) * (d.Depth ? d.Depth : 1);
	return r;
}

static CUresult take(struct worker *w, struct held *h)
{
	CUdeviceptr p = 0;
	CUdeviceptr_v1 low = 0;
	unsigned int kind = dice(w, 20);
	size_t n = size(w), pitch;
	CUresult r;

	h->context = (int)dice(w, CONTEXTS);
	h->bytes = n;
	EXPECT(CU(cuCtxSetCurrent)(contexts[h->context]), 0);
	if (kind < 10) {
		h->what = LINEAR;
		r = CU(cuMemAlloc_v2)(&p, n);
	} else if (kind < 11) {
		h->what = LOW;
		r = CU(cuMemAlloc)(&low, (unsigned int)(n / 16 + 1));
		p = low;
	} else if (kind < 13) {
		h->what = PITCHED;
		r = CU(cuMemAllocPitch_v2)(&p, &pitch, n / 100 + 1, 1 + dice(w, 100), 4);
	} else if (kind < 14) {
		h->what = MANAGED;
		r = CU(cuMemAllocManaged)(&p, n, 1);
		if (r == CUDA_SUCCESS && dice(w, 2))
			EXPECT(CU(cuMemsetD8_v2)(p, 0, n), 0); // comes to the device
	} else {
		h->what = kind < 18 ? ARRAY : MIPMAP;
		r = take_array(w, h);
		p = h->handle;
	}
	h->handle = p;
	if (r != CUDA_SUCCESS)
		h->what = NOTHING;
	CHECK(r == 0 || r == 2, "%d of kind %u, %zu bytes", r, kind, n);
	atomic_fetch_add(r ? &refused : &granted, 1);
	return r;
}

static void give(struct worker *w, struct held *h)
{
	EXPECT(CU(cuCtxSetCurrent)(contexts[h->context]), 0);
	if (h->what == ARRAY)
		EXPECT(CU(cuArrayDestroy)((CUarray)(uintptr_t)h->handle), 0);
	else if (h->what == MIPMAP)
		EXPECT(CU(cuMipmappedArrayDestroy)((CUmipmappedArray)(uintptr_t)h->handle), 0);
	else if (h->what == LOW)
		EXPECT(CU(cuMemFree)((CUdeviceptr_v1)h->handle), 0);
	else if (dice(w, 3) || CU(cuMemFreeAsync)(h->handle, NULL) != CUDA_SUCCESS) // which the simulator refuses
		EXPECT(CU(cuMemFree_v2)(h->handle), 0);
	h->what = NOTHING;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		pthread_barrier_wait(&barrier);
		if (over)
			return NULL;
		for (int i = 0; i < operations; i++) {
			struct held *h = &w->held[dice(w, HELD)];

			if (h->what != NOTHING)
				give(w, h);
			else
				take(w, h);
			if (!dice(w, 50))
				EXPECT(CU(cuMemFree_v2)(0x123456789000ULL), 1); // nobody's
		}
		pthread_barrier_wait(&barrier);
	}
}

static void open_context(int i)
{
	static char resource[144] __attribute__((aligned(8)));
	CUdevResourceDesc d;

	if (i == 0) {
		EXPECT(CU(cuDevicePrimaryCtxRetain)(&contexts[i], 0), 0);
	} else if (i < CONTEXTS - 1) {
		EXPECT(CU(cuCtxCreate_v2)(&contexts[i], 0, 0), 0);
	} else {
		EXPECT(CU(cuDeviceGetDevResource)(0, (CUdevResource *)(void *)resource, 1), 0);
		EXPECT(CU(cuDevResourceGenerateDesc)(&d, (CUdevResource *)(void *)resource, 1), 0);
		EXPECT(CU(cuGreenCtxCreate)(&green, d, 0, 1), 0);
		EXPECT(CU(cuCtxFromGreenCtx)(&contexts[i], green), 0);
	}
}

// close_context ends one; what a green one has passes to the primary one.
static void close_context(int i)
{
	for (int t = 0; t < nthreads; t++) {
		for (int k = 0; k < HELD; k++) {
			struct held *h = &workers[t].held[k];

			if (h->what == NOTHING || h->context != i)
				continue;
			if (i == CONTEXTS - 1)
				h->context = 0;
			else
				h->what = NOTHING;
		}
	}
	if (i < CONTEXTS - 1)
		EXPECT(CU(cuCtxDestroy_v2)(contexts[i]), 0);
	else
		EXPECT(CU(cuGreenCtxDestroy)(green), 0);
}

static void check(void)
{
	uint64_t managed = 0;
	char line[16];
	int small = 0;

	for (int t = 0; t < nthreads; t++) {
		for (int k = 0; k < HELD; k++) {
			const struct held *h = &workers[t].held[k];

			if (h->what == MANAGED)
				managed += (h->bytes + BLOCK - 1) / BLOCK * BLOCK;
			if (h->what == ARRAY || h->what == MIPMAP)
				small += h->bytes < BLOCK + 65536;
		}
	}
	printf("check %d %llu %d\n", CONTEXTS - 1, (unsigned long long)managed, small);
	if (!fgets(line, sizeof(line), stdin))
		exit(2);
}

int main(int argc, char **argv)
{
	int rounds;

	if (argc != 5)
		return 2;
	rounds = atoi(argv[2]);
	operations = atoi(argv[3]);
	nthreads = atoi(argv[4]);
	EXPECT(CU(cuInit)(0), 0);
	for (int i = 0; i < CONTEXTS; i++)
		open_context(i);
	pthread_barrier_init(&barrier, NULL, (unsigned)nthreads + 1);
	for (int t = 0; t < nthreads; t++) {
		workers[t].seed = (unsigned)atoi(argv[1]) * 100 + (unsigned)t;
		pthread_create(&workers[t].thread, NULL, work, &workers[t]);
	}
	for (int round = 1; round <= rounds; round++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		check();
		if (round % 3 == 0) {
			int i = 1 + round / 3 % (CONTEXTS - 1);

			close_context(i);
			check();
			open_context(i);
		}
	}
	over = true;
	pthread_barrier_wait(&barrier);
	for (int t = 0; t < nthreads; t++)
		pthread_join(workers[t].thread, NULL);
	for (int t = 0; t < nthreads; t++)
		for (int k = 0; k < HELD; k++)
			if (workers[t].held[k].what != NOTHING)
				give(&workers[t], &workers[t].held[k]);
	check();
	for (int i = CONTEXTS - 1; i > 0; i--)
		close_context(i);
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), 0);
	printf("counts %ld %ld\n", atomic_load(&granted), atomic_load(&refused));
	check();
	return harness_failures != 0;
}
