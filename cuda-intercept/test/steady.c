// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A program that launches kernels for so many seconds of its own clock, two rounds
// ahead, and prints how many it could.

#include <stdbool.h>
#include <time.h>

#include "harness.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) : 1;
	CUcontext ctx;
	CUmodule m;
	CUfunction f;
	CUevent e[2];
	long n = 0;

	if (CU(cuInit)(0) || CU(cuCtxCreate_v2)(&ctx, 0, 0) || CU(cuModuleLoadData)(&m, "// any code\n") ||
	    CU(cuModuleGetFunction)(&f, m, "steady") || CU(cuEventCreate)(&e[0], CU_EVENT_DISABLE_TIMING) ||
	    CU(cuEventCreate)(&e[1], CU_EVENT_DISABLE_TIMING))
		CHECK(false, "no start\n");
	end += now();
	for (int k = 0; now() < end && !harness_failures; k ^= 1) {
		for (int i = 0; i < 8; i++, n++)
			CHECK(!CU(cuLaunchKernel)(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "launch %ld\n", n);
		CHECK(!CU(cuEventRecord)(e[k], NULL) && !CU(cuEventSynchronize)(e[k ^ 1]), "event %ld\n", n);
	}
	CHECK(!CU(cuCtxSynchronize)(), "wait\n");
	printf("%ld\n", n);
	return harness_failures != 0;
}
