// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// partstorm THREADS N: threads that each take or give back memory smaller than a block N
// times, at random, at the limit. Prints how many calls were refused.

#include <pthread.h>
#include <stdatomic.h>

#include "harness.h"

#define PLACES 256

static CUcontext ctx;
static _Atomic(long) refused;
static long times;

static void *ride(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	CUdeviceptr held[PLACES] = {0};

	EXPECT(CU(cuCtxSetCurrent)(ctx), 0);
	for (long i = 0; i < times + PLACES; i++) {
		int at = i < times ? rand_r(&seed) % PLACES : (int)(i - times);
		CUresult r;

		if (held[at]) {
			EXPECT(CU(cuMemFree_v2)(held[at]), 0);
			held[at] = 0;
		} else if (i < times) {
			r = CU(cuMemAlloc_v2)(&held[at], (size_t)rand_r(&seed) % (2 * MIB - 1) + 1);
			if (r) {
				EXPECT(r, CUDA_ERROR_OUT_OF_MEMORY);
				held[at] = 0;
				atomic_fetch_add(&refused, 1);
			}
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int n = argc > 2 ? atoi(argv[1]) : 0;

	times = argc > 2 ? atol(argv[2]) : 0;
	EXPECT(CU(cuInit)(0), 0);
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&ctx, 0), 0);
	for (int i = 0; i < n && i < 64; i++)
		pthread_create(&threads[i], NULL, ride, (void *)(uintptr_t)(i + 1));
	for (int i = 0; i < n && i < 64; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", atomic_load(&refused));
	return harness_failures != 0;
}
