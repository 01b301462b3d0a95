// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Kills argv[1] of eight processes that take and give back memory, one after the other
// at random moments of their lives, each replaced by a new one. Every fourth leaves a
// forked child that outlives it for a moment. With argv[1] 0 nobody is killed for argv[2]
// milliseconds. Two bystanders take and give back a little that always fits. At the end
// nobody but them is left; once they have freed all they have, "holding" is printed with
// the longest time that a call of theirs was blocked, in nanoseconds; they hold their
// contexts until the end of standard input.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "blocked.h"
#include "harness.h"

#define VICTIMS 8
#define BYSTANDERS 2
#define KEPT 6

static struct shared {
	unsigned long long longest[BYSTANDERS], calls[BYSTANDERS];
	int ready[BYSTANDERS], finish, failed[BYSTANDERS];
} *shared;

static void begin(int kill_with_parent)
{
	CUcontext c;

	if (kill_with_parent)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (CU(cuInit)(0) || CU(cuDevicePrimaryCtxRetain)(&c, 0) || CU(cuCtxSetCurrent)(c))
		_exit(9);
}

static void leave_child(unsigned int *seed)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, 0);
	usleep((unsigned)rand_r(seed) % 30000);
	_exit(0);
}

static void victim(unsigned int seed)
{
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	__typeof__(&cuMemAlloc_v2) alloc = CU(cuMemAlloc_v2);
	__typeof__(&cuMemFree_v2) release = CU(cuMemFree_v2);
	__typeof__(&cuMemAllocAsync) ordered = CU(cuMemAllocAsync);
	__typeof__(&cuMemFreeAsync) release_ordered = CU(cuMemFreeAsync);
	__typeof__(&cuMemCreate) create = CU(cuMemCreate);
	__typeof__(&cuMemRelease) release_handle = CU(cuMemRelease);
	CUmemGenericAllocationHandle h;
	CUdeviceptr kept[KEPT], p;
	int n = 0;

	begin(1);
	if (seed % 4 == 0)
		leave_child(&seed);
	for (unsigned int i = 1;; i++) {
		size_t bytes = (size_t)512 << rand_r(&seed) % 13;

		if (i % 64 == 0)
			usleep(50); // eight of them must not keep the one who kills waiting
		switch (rand_r(&seed) % 8) {
		case 0:
			if (!create(&h, 2 * MIB, &prop, 0))
				release_handle(h);
			break;
		case 1:
			if (!ordered(&p, bytes, NULL))
				release_ordered(p, NULL);
			break;
		default:
			if (n == KEPT || (n && rand_r(&seed) % 2))
				release(kept[--n]);
			else if (!alloc(&kept[n], bytes))
				n++;
		}
	}
}

static void bystander(int number)
{
	__typeof__(&cuMemAlloc_v2) alloc = CU(cuMemAlloc_v2);
	__typeof__(&cuMemFree_v2) release = CU(cuMemFree_v2);
	__typeof__(&cuMemGetInfo_v2) info = CU(cuMemGetInfo_v2);
	unsigned long long calls = 0;

	begin(1);
	shared->ready[number] = 1;
	for (; !__atomic_load_n(&shared->finish, __ATOMIC_SEQ_CST); calls++) {
		struct blocked t = blocked_begin();
		size_t a, b;
		CUdeviceptr p;
		unsigned long long ns;

		if (calls % 3 == 0) {
			shared->failed[number] += info(&a, &b) != CUDA_SUCCESS;
		} else {
			shared->failed[number] += alloc(&p, 4096) || release(p);
		}
		ns = blocked_end(&t);
		if (ns > shared->longest[number])
			shared->longest[number] = ns;
		if (calls % 16 == 0)
			usleep(500); // leaves the processors to the others
	}
	shared->calls[number] = calls;
	shared->ready[number] = 2;
	for (;;)
		pause();
}

static void until(int state)
{
	for (int i = 0; i < BYSTANDERS; i++)
		while (__atomic_load_n(&shared->ready[i], __ATOMIC_SEQ_CST) < state)
			usleep(1000);
}

int main(int argc, char **argv)
{
	pid_t victims[VICTIMS] = {0}, by[BYSTANDERS];
	int kills = argc > 2 ? atoi(argv[1]) : -1, status;
	unsigned int seed = 12345;
	unsigned long long longest = 0, calls = 0, end;
	pid_t pid;
	char c;

	if (kills < 0)
		return 2;
	prctl(PR_SET_CHILD_SUBREAPER, 1); // whose parents are killed
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < BYSTANDERS; i++)
		if (!(by[i] = fork()))
			bystander(i);
	until(1);
	for (int i = 0; i < VICTIMS; i++)
		if (!(victims[i] = fork()))
			victim((unsigned)i);
	end = blocked_clock(CLOCK_MONOTONIC) + (unsigned long long)atol(argv[2]) * 1000000U;
	for (int i = 0; kills ? i < kills : blocked_clock(CLOCK_MONOTONIC) < end; i++) {
		int v = rand_r(&seed) % VICTIMS;

		usleep((unsigned)rand_r(&seed) % 3000);
		if (!kills)
			continue;
		kill(victims[v], SIGKILL);
		waitpid(victims[v], &status, 0);
		CHECK(WIFSIGNALED(status), "a process ended by itself, with status %x", status);
		if (!(victims[v] = fork()))
			victim((unsigned)i);
		while (waitpid(-1, &status, WNOHANG) > 0)
			; // orphans
	}
	for (int i = 0; i < VICTIMS; i++)
		kill(victims[i], SIGKILL);
	__atomic_store_n(&shared->finish, 1, __ATOMIC_SEQ_CST);
	until(2);
	for (int i = 0; i < BYSTANDERS; i++) {
		longest = shared->longest[i] > longest ? shared->longest[i] : longest;
		calls += shared->calls[i];
		CHECK(!shared->failed[i], "%d calls of a bystander failed", shared->failed[i]);
	}
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || usleep(1000) || kill(by[0], 0))
		if (pid <= 0)
			break;
	printf("%llu %llu\nholding\n", longest, calls);
	while (read(0, &c, 1) > 0)
		;
	return harness_failures ? 1 : 0;
}
