// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Prints the driver's word for a debugger before and after a stop, and calls the
// function that a debugger stops at.

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	volatile unsigned *flag = cuda ? dlsym(cuda, "cudbgIpcFlag") : NULL;
	void (*report)(void) = cuda ? (void (*)(void))dlsym(cuda, "cudbgReportDriverApiError") : NULL;

	if (!flag || !report)
		return 2;
	printf("flag %u\n", *flag);
	fflush(stdout);
	getppid();
	printf("flag %u\n", *flag);
	fflush(stdout);
	report();
	printf("end\n");
	return 0;
}
