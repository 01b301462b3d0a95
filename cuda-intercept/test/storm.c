// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// argv[1] processes that load the driver's library call cuInit behind a barrier,
// argv[2] times over. For each process a line: CPU time from before the library was
// loaded until it was, CPU time and wall time of cuInit, all in nanoseconds. Then
// how many of their system calls would wait for another process: for a lock of a
// file, a word of shared memory, a semaphore, or some time. Such a call is not made.

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "harness.h"

struct figure {
	unsigned long long load, cpu, wall;
};

static struct shared {
	unsigned long waits;
	long call;
} *shared;

static void waits(int n, siginfo_t *info, void *context)
{
	(void)n;
	(void)context;
	__atomic_fetch_add(&shared->waits, 1, __ATOMIC_SEQ_CST);
	shared->call = info->si_syscall;
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define TRAP BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)
#define PASS BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// watch makes calls that may wait for another process arrive in waits().
static void watch(void)
{
	static struct sock_filter program[] = {
		LOAD(nr),
		IF(SYS_flock, 0, 3), LOAD(args[1]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, LOCK_NB | LOCK_UN, 0, 19), PASS,
		IF(SYS_fcntl, 0, 5), LOAD(args[1]),
		IF(F_SETLKW, 15, 0), IF(38 /* F_OFD_SETLKW */, 14, 0), PASS, PASS,
		IF(SYS_futex, 0, 7), LOAD(args[1]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FUTEX_PRIVATE_FLAG, 4, 0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, FUTEX_CMD_MASK & 0x7f),
		IF(FUTEX_WAIT, 7, 0), IF(FUTEX_WAIT_BITSET, 6, 0), IF(FUTEX_LOCK_PI, 5, 0), PASS,
		IF(SYS_semop, 3, 0), IF(SYS_nanosleep, 2, 0), IF(SYS_clock_nanosleep, 1, 0), PASS,
		TRAP,
	};
	struct sock_fprog filter = {sizeof(program) / sizeof(program[0]), program};
	struct sigaction act = {.sa_sigaction = waits, .sa_flags = SA_SIGINFO};

	sigaction(SIGSYS, &act, NULL);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(8);
}

static unsigned long long now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (unsigned long long)t.tv_sec * 1000000000U + (unsigned long long)t.tv_nsec;
}

static void one(int ready, int go, int out, int stop)
{
	unsigned long long begin = now(CLOCK_PROCESS_CPUTIME_ID), wall;
	__typeof__(&cuInit) init;
	struct figure f;
	char c = 0;

	init = CU(cuInit);
	f.load = now(CLOCK_PROCESS_CPUTIME_ID) - begin;
	watch();
	if (write(ready, &c, 1) != 1 || read(go, &c, 1) < 0)
		_exit(8);
	wall = now(CLOCK_MONOTONIC);
	begin = now(CLOCK_PROCESS_CPUTIME_ID);
	if (init(0))
		_exit(9);
	f.cpu = now(CLOCK_PROCESS_CPUTIME_ID) - begin;
	f.wall = now(CLOCK_MONOTONIC) - wall;
	if (write(out, &f, sizeof(f)) != sizeof(f) || read(stop, &c, 1) < 0)
		_exit(8);
	_exit(0);
}

static void round_of(int n)
{
	int ready[2], go[2], out[2], stop[2], status;
	struct figure f;
	char c;

	if (pipe(ready) || pipe(go) || pipe(out) || pipe(stop))
		exit(2);
	for (int i = 0; i < n; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		close(out[0]);
		close(stop[1]);
		one(ready[1], go[0], out[1], stop[0]);
	}
	close(out[1]);
	close(ready[1]);
	for (int i = 0; i < n; i++)
		if (read(ready[0], &c, 1) != 1)
			break;
	close(go[1]);
	for (int i = 0; i < n && read(out[0], &f, sizeof(f)) == sizeof(f); i++)
		printf("%llu %llu %llu\n", f.load, f.cpu, f.wall);
	close(stop[1]);
	while (wait(&status) > 0)
		CHECK(status == 0, "a process ended with status %x", status);
	close(ready[0]);
	close(go[0]);
	close(out[0]);
	close(stop[0]);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < atoi(argv[2]); i++)
		round_of(atoi(argv[1]));
	printf("waits %lu", shared->waits);
	if (shared->waits)
		printf(" the last of system call %ld", shared->call);
	printf("\n");
	return harness_failures ? 1 : 0;
}
