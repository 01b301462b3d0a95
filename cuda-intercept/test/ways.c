// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Each way in which a program or a library of it reaches a name that has a wrapper
// leads to the wrapper. names.c, written by the test, lists the names as a linker
// binds them. With PLUGIN defined this is a library that the program opens.
//
//	ways SONAME REAL PLUGIN <names without a wrapper

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct way {
	const char *name;
	void *linked;
};

extern const struct way ways_names[];

#ifdef PLUGIN

// A library whose names begin like the driver's.
int cudnnCreate(void);
int cudnnCreate(void)
{
	return 1234;
}

void *ways_bound(int i);
void *ways_bound(int i)
{
	return ways_names[i].linked;
}

void *ways_next(const char *name);
void *ways_next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#else

static int failures;

static void expect(const char *name, const char *how, void *got, void *want)
{
	Dl_info at = {0};

	if (got == want)
		return;
	failures++;
	if (got)
		dladdr(got, &at);
	printf("%s by %s: %p of %s, want %p\n", name, how, got, at.dli_fname ? at.dli_fname : "nothing", want);
}

// No library here has versions of its names, so none of that version is found.
static void versions(void *library, const char *name, void *want)
{
	static const char *const some[] = {"GLIBC_2.2.5", "libcuda.so.1"};

	for (unsigned i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		void *got = dlvsym(library, name, some[i]);

		if (got)
			expect(name, "dlvsym", got, want);
	}
}

int main(int argc, char **argv)
{
	void *ours = dlopen(argc > 3 ? argv[1] : "", RTLD_NOW), *real, *plugin, *deep, *apart, *by_path;
	void *(*bound)(int), *(*next)(const char *);
	int (*create)(void);
	char other[160];
	Dl_info at;
	int n = 0;

	real = ours ? dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD) : NULL;
	plugin = real ? dlopen(argv[3], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
	if (!plugin || !dladdr(dlsym(ours, ways_names[0].name), &at)) {
		printf("%s\n", dlerror());
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	by_path = dlopen(at.dli_fname, RTLD_NOW);
	apart = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
	deep = dlopen(argv[1], RTLD_LAZY | RTLD_DEEPBIND);
	if (!by_path || !apart || !deep) {
		printf("%s\n", dlerror());
		return 2;
	}
	bound = (void *(*)(int))dlsym(plugin, "ways_bound");
	next = (void *(*)(const char *))dlsym(plugin, "ways_next");
	create = (int (*)(void))dlsym(plugin, "cudnnCreate");
	if (!create || create() != 1234 || dlsym(ours, "cudnnCreate")) {
		failures++;
		printf("cudnnCreate is not the library's own\n");
	}
	for (; ways_names[n].name; n++) {
		const char *name = ways_names[n].name;
		void *want = dlsym(ours, name), *copy = dlsym(apart, name);
		Dl_info copy_at = {0};

		if (!want || want == dlsym(real, name)) {
			failures++;
			printf("%s is not ours\n", name);
		}
		expect(name, "linking", ways_names[n].linked, want);
		expect(name, "RTLD_DEFAULT", dlsym(RTLD_DEFAULT, name), want);
		expect(name, "RTLD_NEXT", dlsym(RTLD_NEXT, name), want);
		expect(name, "its path", dlsym(by_path, name), want);
		expect(name, "RTLD_DEEPBIND", dlsym(deep, name), want);
		expect(name, "a library's linking, RTLD_DEEPBIND", bound(n), want);
		expect(name, "a library's RTLD_NEXT", next(name), want);
		versions(ours, name, want);
		versions(RTLD_DEFAULT, name, want);
		versions(RTLD_NEXT, name, want);
		// A namespace of its own has a copy of ours.
		if (!copy || !dladdr(copy, &copy_at) || strcmp(copy_at.dli_fname, at.dli_fname)) {
			failures++;
			printf("%s by dlmopen: of %s\n", name, copy_at.dli_fname ? copy_at.dli_fname : "nothing");
		}
	}
	// Names without a wrapper, from standard input, fall through.
	while (scanf("%159s", other) == 1) {
		expect(other, "falling through", dlsym(ours, other), dlsym(real, other));
		n++;
	}
	printf("%d names, %d failures\n", n, failures);
	return failures || !n;
}

#endif
