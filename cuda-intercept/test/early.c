// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Programs and libraries that look for functions at odd moments: from a constructor
// that runs before ours, from an IFUNC resolver, through a function of the same name
// (as OpenMP's ompt_start_tool), and in a process whose room for thread-local
// variables is used up. With PLUGIN defined this is the library that comes early; with
// ROOM defined one that takes so many bytes of that room. The program is linked to the
// driver's library first, so that the constructors of the plugin run before ours.

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cuda_abi.h"

#if defined(ROOM)

__thread char room_used[ROOM] __attribute__((tls_model("initial-exec")));
char *room(void);
char *room(void)
{
	return room_used;
}

#elif defined(PLUGIN)

int early_codes[3];

static __attribute__((constructor)) void early(void)
{
	__typeof__(&cuDriverGetVersion) version = (__typeof__(version))dlsym(RTLD_DEFAULT, "cuDriverGetVersion");
	__typeof__(&cuMemAlloc_v2) alloc = (__typeof__(alloc))dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	__typeof__(&cuMemFree_v2) release = (__typeof__(release))dlsym(RTLD_DEFAULT, "cuMemFree_v2");
	CUdeviceptr p = 7;
	int n = 0;

	early_codes[0] = version ? (int)version(&n) : -1;
	early_codes[1] = alloc ? (int)alloc(&p, 4096) : -1;
	early_codes[2] = release ? (int)release(4096) : -1;
}

// Finds the next function of its own name, of which there is none.
__attribute__((weak)) void *ompt_start_tool(unsigned int version, const char *name);
__attribute__((weak)) void *ompt_start_tool(unsigned int version, const char *name)
{
	void *(*next)(unsigned int, const char *) = (void *(*)(unsigned int, const char *))dlsym(RTLD_NEXT, "ompt_start_tool");

	return next ? next(version, name) : NULL;
}

#else

extern int early_codes[3];
void *ompt_start_tool(unsigned int version, const char *name);

static int plain(void)
{
	return 5;
}

// Runs while the program is being linked, before any constructor.
static int (*resolve(void))(void)
{
	return dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") ? plain : NULL;
}

int resolved(void) __attribute__((ifunc("resolve")));

int main(void)
{
	__typeof__(&cuCtxSetCurrent) set = (__typeof__(set))dlsym(RTLD_DEFAULT, "cuCtxSetCurrent"); // no wrapper of ours
	CUcontext c;
	CUdeviceptr p;

	alarm(20); // whoever spins is ended
	printf("early %d %d %d\n", early_codes[0], early_codes[1], early_codes[2]);
	printf("resolved %d\n", resolved());
	printf("tool %d\n", ompt_start_tool(1, "x") != NULL);
	printf("init %d\n", (int)cuInit(0));
	printf("alloc %d\n", !set || cuDevicePrimaryCtxRetain(&c, 0) || set(c) || cuMemAlloc_v2(&p, 4096));
	return 0;
}

#endif
