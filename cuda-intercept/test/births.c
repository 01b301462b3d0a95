// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The ways in which a process comes to be, and what of memory is then whose. argv[1]
// names the way; nothing is printed if all is well.

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "harness.h"

extern char **environ;

#define PIECE (100 * MIB)

static CUdeviceptr parents;
static uint64_t before;

static int start(void)
{
	CUcontext c;
	int r = (int)CU(cuInit)(0);

	if (!r)
		r = (int)CU(cuDevicePrimaryCtxRetain)(&c, 0);
	return r ? r : (int)CU(cuCtxSetCurrent)(c);
}

static void hold_some(void)
{
	EXPECT(start(), 0);
	EXPECT(CU(cuMemAlloc_v2)(&parents, PIECE), 0);
	before = ledger_sum(0);
	CHECK(before > PIECE, "the ledger has %llu bytes", (unsigned long long)before);
}

static void ended(pid_t pid, int want)
{
	int status = -1;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == want << 8, "process %d ended with status %x", (int)pid, status);
}

static void unchanged(const char *when)
{
	CHECK(ledger_sum(0) == before, "%s the ledger has %llu bytes, not %llu", when, (unsigned long long)ledger_sum(0),
	      (unsigned long long)before);
}

// What a child of a process that uses CUDA can do with CUDA: nothing that changes
// what the parent holds.
static int meddle(void)
{
	CUdeviceptr p = 7;
	int r = (int)CU(cuMemAlloc_v2)(&p, PIECE);
	int f = (int)CU(cuMemFree_v2)(parents);

	return r == 0 || f == 0 || p != 7 ? 1 : 3;
}

// PROC-06: parent holds, forks, child exits.
static void by_fork(void)
{
	pid_t pid;

	hold_some();
	pid = fork();
	if (!pid)
		_exit(meddle());
	ended(pid, 3);
	unchanged("after a forked child");
	EXPECT(CU(cuMemFree_v2)(parents), 0);
	CHECK(ledger_sum(0) == before - PIECE, "after the free the ledger has %llu", (unsigned long long)ledger_sum(0));
}

// fork as a system call: no handler of the C library runs.
static void by_system_call(void)
{
	pid_t pid;

	hold_some();
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid)
		_exit(meddle());
	ended(pid, 3);
	unchanged("after a child of clone");
}

static void by_vfork(void)
{
	pid_t pid;

	hold_some();
	pid = vfork();
	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	ended(pid, 0);
	unchanged("after a child of vfork");
	pid = vfork();
	if (!pid)
		_exit(4);
	ended(pid, 4);
	unchanged("after a child of vfork that ended");
	EXPECT(CU(cuMemFree_v2)(parents), 0);
	EXPECT(CU(cuMemAlloc_v2)(&parents, PIECE), 0);
	unchanged("at the end");
}

static void by_spawn(void)
{
	char *argv[] = {"sh", "-c", "exit 5", NULL};
	pid_t pid = 0;

	hold_some();
	EXPECT(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	ended(pid, 5);
	unchanged("after a spawned program");
	EXPECT(system("exit 0"), 0);
	unchanged("after system()");
}

static int in_our_memory(void *arg)
{
	CUdeviceptr p;
	CUcontext c = arg;
	int r = (int)CU(cuCtxSetCurrent)(c);

	if (!r)
		r = (int)CU(cuMemAlloc_v2)(&p, PIECE);
	if (!r && ledger_sum(0) != before + PIECE)
		r = 77;
	return r ? r : (int)CU(cuMemFree_v2)(p);
}

// A process that shares the memory of this one: it works with what this one has.
static void by_clone(void)
{
	static char stack[1 << 20] __attribute__((aligned(16)));
	CUcontext c = NULL;
	pid_t pid;

	hold_some();
	EXPECT(CU(cuCtxGetCurrent)(&c), 0);
	pid = clone(in_our_memory, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, c);
	ended(pid, 0);
	unchanged("after a process in our memory");
}

// A child that is the first in a PID namespace, and its child, are processes like
// others; their numbers mean nothing.
static void nested(void)
{
	pid_t pid;

	hold_some();
	if (unshare(CLONE_NEWPID)) {
		printf("unshare: %s\n", strerror(errno));
		exit(1);
	}
	for (int i = 0; i < 3; i++) {
		pid = fork();
		if (!pid) {
			CUdeviceptr p;

			if (getpid() != 1 && i == 0)
				_exit(1);
			execl("/proc/self/exe", "births", "plain", (char *)NULL);
			(void)p;
			_exit(1);
		}
		ended(pid, 0);
		if (i == 0)
			break; // the namespace ends with its first process
	}
}

// As another user without any right, which is the usual case in a container.
static void as_other_user(void)
{
	CHECK(!setgroups(0, NULL) && !setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000), "setuid: %s", strerror(errno));
	hold_some();
	EXPECT(CU(cuMemFree_v2)(parents), 0);
}

// The user changes between two allocations.
static void user_changes(void)
{
	CUdeviceptr p;

	hold_some();
	CHECK(!setresgid(1000, 1000, 1000) && !setresuid(1000, 1000, 1000), "setuid: %s", strerror(errno));
	EXPECT(CU(cuMemAlloc_v2)(&p, PIECE), 0);
	CHECK(ledger_sum(0) == before + PIECE, "as another user: the ledger has %llu", (unsigned long long)ledger_sum(0));
	EXPECT(CU(cuMemAlloc_v2)(&p, 4096 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
}

// A root where no path of ours is: what stands goes on, and the limit with it.
static void other_root(void)
{
	__typeof__(&cuMemAlloc_v2) alloc = CU(cuMemAlloc_v2);
	CUdeviceptr p;

	hold_some();
	CHECK(!chroot("/usr") && !chdir("/"), "chroot: %s", strerror(errno));
	EXPECT(alloc(&p, PIECE), 0);
	CHECK(ledger_sum(0) == before + PIECE, "in another root: the ledger has %llu", (unsigned long long)ledger_sum(0));
	EXPECT(alloc(&p, 4096 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
}

// PROC-05: the library is loaded and not started; a child starts it for itself.
static void loaded_then_forked(void)
{
	pid_t pid;

	CHECK(CU(cuInit) != NULL, "no cuInit");
	pid = fork();
	if (!pid) {
		hold_some();
		for (uint32_t i = 0; i < 8; i++)
			if (ledger_slot(i)->state == GS_SLOT_USED && ledger_slot(i)->pid == (uint32_t)getpid())
				_exit(harness_failures ? 1 : 6);
		_exit(2);
	}
	ended(pid, 6);
}

// bytes_of is what a process is charged by its slot's number.
static uint64_t bytes_of(pid_t pid)
{
	const struct gs_ledger_header *h = (const void *)harness_ledger();

	for (uint32_t i = 0; i < h->slot_high; i++)
		if (ledger_slot(i)->state == GS_SLOT_USED && ledger_slot(i)->pid == (uint32_t)pid)
			return ((const uint64_t *)(const void *)(harness_ledger() + GS_LEDGER_HEADER_SIZE + GS_SLOT_COUNT * GS_SLOT_SIZE))[i];
	return 0;
}

// A driver that lets a forked child start: what the child takes is the child's.
static void own_slot(void)
{
	pid_t pid, parent = getpid();

	hold_some();
	pid = fork();
	if (!pid) {
		CUdeviceptr p;
		uint64_t mine;

		EXPECT(start(), 0);
		EXPECT(CU(cuMemAlloc_v2)(&p, 2 * PIECE), 0);
		mine = bytes_of(getpid());
		CHECK(mine >= 2 * PIECE, "the child has %llu bytes", (unsigned long long)mine);
		CHECK(bytes_of(parent) == before, "the parent has %llu bytes beside a child", (unsigned long long)bytes_of(parent));
		_exit(harness_failures ? 1 : 8);
	}
	ended(pid, 8);
	CHECK(bytes_of(parent) == before, "the parent has %llu bytes at the end", (unsigned long long)bytes_of(parent));
}

// A child that is forked by a process with CUDA and starts a program with CUDA.
static void fork_and_exec(void)
{
	pid_t pid;

	hold_some();
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", "births", "plain", (char *)NULL);
		_exit(1);
	}
	ended(pid, 0);
}

static _Atomic(int) stop;

static void *busy(void *arg)
{
	__typeof__(&cuMemAlloc_v2) alloc = CU(cuMemAlloc_v2);
	__typeof__(&cuMemFree_v2) release = CU(cuMemFree_v2);
	CUdeviceptr p;

	CU(cuCtxSetCurrent)(arg);
	while (!stop) {
		if (!alloc(&p, 4096))
			release(p);
		usleep(200);
	}
	return NULL;
}

// forks is bar 27: many forks of a process whose 32 threads are in the library; the
// children start CUDA themselves where the driver lets them, and end.
static void forks(int n)
{
	pthread_t threads[32];
	CUcontext c = NULL;

	hold_some();
	CU(cuCtxGetCurrent)(&c);
	for (int i = 0; i < 32; i++)
		if (pthread_create(&threads[i], NULL, busy, c))
			exit(1);
	for (int i = 0; i < n; i++) {
		int status;
		pid_t pid = fork();

		if (!pid) {
			alarm(10); // SIGALRM ends it
			CU(cuInit)(0);
			CU(cuMemAlloc_v2)(&parents, 4096);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0, "fork %d: the child ended with status %x", i, status);
	}
	stop = 1;
	for (int i = 0; i < 32; i++)
		pthread_join(threads[i], NULL);
	unchanged("after the forks");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {
		{"plain", hold_some},	      {"fork", by_fork},	    {"clone", by_system_call},
		{"vfork", by_vfork},	      {"spawn", by_spawn},	    {"shared", by_clone},
		{"pidns", nested},	      {"user", as_other_user},	    {"user-changes", user_changes},
		{"chroot", other_root},	      {"loaded", loaded_then_forked}, {"fork-exec", fork_and_exec},
		{"own-slot", own_slot},
	};

	if (argc > 2 && !strcmp(argv[1], "forks")) {
		forks(atoi(argv[2]));
		return harness_failures ? 1 : 0;
	}
	for (unsigned i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(argv[1], ways[i].name)) {
			ways[i].run();
			return harness_failures ? 1 : 0;
		}
	return 2;
}
