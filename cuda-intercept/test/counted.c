// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Counts the system calls that a program's thread makes while it takes memory and
// gives it back argv[2] times, in each way there is or the one that argv[1] names.
// A line for each: its name, and each call's number with how often it was made.

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "harness.h"

#define CALLS 512
#define WARM 200

static CUresult ask(size_t bytes, CUdeviceptr *p)
{
	static __typeof__(&cuMemAlloc_v2) alloc;

	if (!alloc)
		alloc = CU(cuMemAlloc_v2);
	return alloc(p, bytes);
}

static int linear(size_t bytes)
{
	static __typeof__(&cuMemFree_v2) release;
	CUdeviceptr p;

	if (!release)
		release = CU(cuMemFree_v2);
	return ask(bytes, &p) || release(p);
}

static int small(void)
{
	return linear(512);
}

static int large(void)
{
	return linear(64 * MIB);
}

static int managed(void)
{
	static __typeof__(&cuMemAllocManaged) alloc;
	static __typeof__(&cuMemFree_v2) release;
	CUdeviceptr p;

	if (!alloc) {
		alloc = CU(cuMemAllocManaged);
		release = CU(cuMemFree_v2);
	}
	return alloc(&p, MIB, 1) || release(p);
}

static int pitch(void)
{
	static __typeof__(&cuMemAllocPitch_v2) alloc;
	static __typeof__(&cuMemFree_v2) release;
	CUdeviceptr p;
	size_t row;

	if (!alloc) {
		alloc = CU(cuMemAllocPitch_v2);
		release = CU(cuMemFree_v2);
	}
	return alloc(&p, &row, 1000, 1000, 4) || release(p);
}

static int vmm(void)
{
	static __typeof__(&cuMemCreate) create;
	static __typeof__(&cuMemRelease) release;
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle h;

	if (!create) {
		create = CU(cuMemCreate);
		release = CU(cuMemRelease);
	}
	return create(&h, 2 * MIB, &prop, 0) || release(h);
}

static int array(void)
{
	static __typeof__(&cuArrayCreate_v2) create;
	static __typeof__(&cuArrayDestroy) destroy;
	CUDA_ARRAY_DESCRIPTOR d = {4096, 64, CU_AD_FORMAT_FLOAT, 1};
	CUarray a;

	if (!create) {
		create = CU(cuArrayCreate_v2);
		destroy = CU(cuArrayDestroy);
	}
	return create(&a, &d) || destroy(a);
}

// More than any limit here; and, in the test of what is refused at the edge, a
// little more than what is left.
static int refused(void)
{
	CUdeviceptr p = 7;

	return ask(1ULL << 45, &p) != CUDA_ERROR_OUT_OF_MEMORY || p != 7;
}

static int edge(void)
{
	static int full;
	CUdeviceptr p = 7;

	while (!full)
		full = ask(MIB, &p) != CUDA_SUCCESS;
	p = 7;
	return ask(MIB, &p) != CUDA_ERROR_OUT_OF_MEMORY || p != 7;
}

static const struct way {
	const char *name;
	int (*run)(void);
} ways[] = {
	{"small", small}, {"large", large}, {"managed", managed}, {"pitch", pitch},
	{"vmm", vmm},	  {"array", array}, {"refused", refused}, {"edge", edge},
};

static void act(const struct way *w, int n)
{
	CUcontext c;
	int bad = 0;

	if (CU(cuInit)(0) || CU(cuDevicePrimaryCtxRetain)(&c, 0) || CU(cuCtxSetCurrent)(c))
		_exit(9);
	for (int i = 0; i < WARM; i++) // the tables of what is held get their memory once
		bad |= w->run();
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (int i = 0; i < n; i++)
		bad |= w->run();
	raise(SIGUSR1);
	_exit(bad);
}

// count returns false if the child failed; it lets it run to the end.
static int count(pid_t pid, unsigned long *seen)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return 0;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD);
	for (;;) {
		struct __ptrace_syscall_info info;

		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) < 0 || waitpid(pid, &status, 0) != pid)
			return 0;
		if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGUSR1)
			break;
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80))
			return 0;
		if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) > 0 &&
		    info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr < CALLS)
			seen[info.entry.nr]++;
	}
	// How the child raises the signal that ends it is not of interest.
	seen[SYS_getpid] = seen[SYS_gettid] = seen[SYS_tgkill] = seen[SYS_rt_sigprocmask] = 0;
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 0, found = 0;

	for (unsigned i = 0; n && i < sizeof(ways) / sizeof(ways[0]); i++) {
		unsigned long seen[CALLS] = {0};
		pid_t pid;

		if (strcmp(argv[1], "all") && strcmp(argv[1], ways[i].name))
			continue;
		found++;
		pid = fork();
		if (!pid)
			act(&ways[i], n);
		CHECK(count(pid, seen), "%s: the child failed", ways[i].name);
		printf("%s", ways[i].name);
		for (int nr = 0; nr < CALLS; nr++)
			if (seen[nr])
				printf(" %d=%lu", nr, seen[nr]);
		printf("\n");
	}
	return harness_failures || !found;
}
