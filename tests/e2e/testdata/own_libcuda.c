// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// own_libcuda LIBRARY: opens a libcuda as it is told, prints the version that it
// reports, and allocates until it is refused.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int call();

static call *find(void *lib, const char *name)
{
	call *f = (call *)dlsym(lib, name);
	if (!f) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return f;
}

int main(int argc, char **argv)
{
	int version = 0, r;
	unsigned long long p, step = 64ull << 20, total = 0;
	void *context;
	void *lib = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!lib) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "library?");
		return 1;
	}
	if ((r = find(lib, "cuInit")(0)) || (r = find(lib, "cuDriverGetVersion")(&version)) ||
	    (r = find(lib, "cuCtxCreate_v2")(&context, 0, 0))) {
		fprintf(stderr, "error %d\n", r);
		return 1;
	}
	while (step >= 512) {
		r = find(lib, "cuMemAlloc_v2")(&p, (size_t)step);
		if (r)
			step /= 2;
		else
			total += step;
	}
	printf("version %d last %d took %llu\n", version, r, total);
	return 0;
}
