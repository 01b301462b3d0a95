// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Contexts of one process, of which the first costs more than the others, over the
// simulator; "check" is printed for the ledger to be compared with its account.

#include "harness.h"

static void check(const char *what)
{
	char line[16];

	printf("check %s\n", what);
	if (!fgets(line, sizeof(line), stdin))
		exit(2);
}

int main(void)
{
	__typeof__(&cuDevicePrimaryCtxRetain) unseen;
	CUcontext c[3], primary, again;
	CUdeviceptr p;

	EXPECT(CU(cuInit)(0), 0);
	EXPECT(CU(cuCtxCreate_v2)(&c[0], 0, 0), 0);
	check("first");
	EXPECT(CU(cuCtxCreate_v2)(&c[1], 0, 0), 0);
	check("second");
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&primary, 0), 0);
	check("primary");
	EXPECT(CU(cuCtxDestroy_v2)(c[0]), 0);
	check("the first is gone");
	EXPECT(CU(cuCtxCreate_v2)(&c[2], 0, 0), 0);
	check("another");
	// MEM-09: references are counted, by whom does not matter.
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&again, 0), 0);
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&again, 0), 0);
	check("retained three times");
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), 0);
	EXPECT(CU(cuDevicePrimaryCtxRelease)(0), 0);
	check("released twice");
	EXPECT(CU(cuCtxSetCurrent)(primary), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 5 * MIB), 0);
	check("with memory");
	EXPECT(CU(cuDevicePrimaryCtxReset_v2)(0), 0);
	check("reset");
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), 0);
	check("released after reset");
	CHECK(CU(cuDevicePrimaryCtxRelease_v2)(0) != 0, "released once too often");
	check("released once too often");
	EXPECT(CU(cuCtxDestroy_v2)(c[1]), 0);
	EXPECT(CU(cuCtxDestroy_v2)(c[2]), 0);
	check("none");
	// The runtime's private way: nobody sees it until something is allocated in it.
	unseen = (__typeof__(unseen))dlsym(dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD),
					   "cuDevicePrimaryCtxRetain");
	EXPECT(unseen(&primary, 0), 0);
	EXPECT(CU(cuCtxCreate_v2)(&c[0], 0, 0), 0); // unseen is not the first
	EXPECT(CU(cuCtxSetCurrent)(primary), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 5 * MIB), 0);
	check("on sight");
	EXPECT(CU(cuDevicePrimaryCtxRelease_v2)(0), 0);
	EXPECT(CU(cuCtxDestroy_v2)(c[0]), 0);
	check("end");
	return harness_failures != 0;
}
