// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Loads libraries that each take room for thread-local variables, from argv[2] on,
// until it is used up; all but what argv[1] bytes of it need. Then the driver's library.

#include "harness.h"

int main(int argc, char **argv)
{
	void *all[128];
	int n = 0;

	while (n + 2 < argc && n < 128 && (all[n] = dlopen(argv[n + 2], RTLD_NOW)))
		n++;
	if (!n || n + 2 == argc) {
		printf("the room is not used up by %d libraries\n", n);
		return 1;
	}
	dlclose(all[n - 1]); // one that can go: its room is the last that there is
	printf("%d libraries\n", n);
	printf("init %d\n", (int)CU(cuInit)(0));
	return 0;
}
