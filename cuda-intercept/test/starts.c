// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Calls NVML's three starts and prints their answers; who goes round in them is ended.

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "nvml_abi.h"

int main(void)
{
	void *l = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*one)(void) = l ? (int (*)(void))dlsym(l, "nvmlInit_v2") : NULL;
	int (*two)(unsigned int) = l ? (int (*)(unsigned int))dlsym(l, "nvmlInitWithFlags") : NULL;
	int (*three)(void) = l ? (int (*)(void))dlsym(l, "nvmlInit") : NULL;
	int (*stop)(void) = l ? (int (*)(void))dlsym(l, "nvmlShutdown") : NULL;
	int a, b, c;

	if (!one || !two || !three || !stop)
		return 2;
	alarm(20);
	a = one();
	stop();
	b = two(0);
	stop();
	c = three();
	printf("%d %d %d\n", a, b, c);
	return 0;
}
