// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Reads names on standard input and prints those that dlsym finds in the library
// given as argument.

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	char name[160];

	if (!library) {
		printf("%s\n", dlerror());
		return 2;
	}
	while (scanf("%159s", name) == 1)
		if (dlsym(library, name))
			printf("%s\n", name);
	return 0;
}
