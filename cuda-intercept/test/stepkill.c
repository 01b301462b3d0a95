// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Kills a process after every single instruction of what it does with the ledger.
//
// A child does one thing (argv[1]: start, context, alloc, free) under ptrace; this
// program steps it K instructions far and kills it, for K from 0 to the end in
// steps of argv[2]. A bystander holds 64 MiB meanwhile. Afterwards its bytes are
// as they were, and once the last dead slots are given back, a new process can
// have all the rest to the byte.

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "harness.h"

#define LIMIT (1024 * MIB)
#define CONTEXT (MIB / 16)
#define PIECE (MIB / 8)
#define HELD (64 * MIB)

static void begin(CUcontext *c)
{
	if (CU(cuInit)(0) || CU(cuDevicePrimaryCtxRetain)(c, 0) || CU(cuCtxSetCurrent)(*c))
		_exit(9);
}

// act is the child: it stops where the stepping is to start and to end.
static void act(const char *what)
{
	__typeof__(&cuInit) init = CU(cuInit);
	__typeof__(&cuDevicePrimaryCtxRetain) retain = CU(cuDevicePrimaryCtxRetain);
	__typeof__(&cuMemAlloc_v2) alloc = CU(cuMemAlloc_v2);
	__typeof__(&cuMemFree_v2) release = CU(cuMemFree_v2);
	CUcontext c;
	CUdeviceptr p = 0;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	if (!strcmp(what, "start")) {
		raise(SIGSTOP);
		init(0);
	} else if (!strcmp(what, "context")) {
		init(0);
		raise(SIGSTOP);
		retain(&c, 0);
	} else if (!strcmp(what, "alloc")) {
		begin(&c);
		alloc(&p, PIECE); // what only the first one does is not of interest
		raise(SIGSTOP);
		alloc(&p, PIECE);
	} else {
		begin(&c);
		if (alloc(&p, PIECE))
			_exit(9);
		raise(SIGSTOP);
		release(p);
	}
	raise(SIGUSR1);
	_exit(0);
}

// step_and_kill returns 1 if the child came to the end before step k.
static int step_and_kill(const char *what, int k)
{
	int status, ended = 0;
	pid_t pid = fork();

	if (!pid)
		act(what);
	waitpid(pid, &status, 0);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) {
		CHECK(0, "%s: the child stopped with status %x", what, status);
		ended = 1;
	}
	for (int i = 0; i < k && !ended; i++) {
		ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
		waitpid(pid, &status, 0);
		ended = !WIFSTOPPED(status) || WSTOPSIG(status) == SIGUSR1;
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return ended;
}

// bury gives the dead child's slot back at once, as the daemon does later: a sum
// must not become longer with every step.
static void bury(void)
{
	static const char zero[GS_SLOT_SIZE];
	int fd = open("/run/gpushare/ledger", O_RDWR | O_CLOEXEC);
	const struct gs_ledger_header *h = (const void *)harness_ledger();

	for (uint32_t slot = 0; slot < h->slot_high; slot++) {
		struct flock lock = {.l_type = F_WRLCK, .l_start = (off_t)(GS_LOCK_BASE + slot), .l_len = 1};

		if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
			continue; // the bystander's
		if (pwrite(fd, zero, 8, (off_t)(GS_LEDGER_HEADER_SIZE + GS_SLOT_COUNT * GS_SLOT_SIZE + slot * 8)) != 8 ||
		    pwrite(fd, zero, GS_SLOT_SIZE, (off_t)(GS_LEDGER_HEADER_SIZE + slot * GS_SLOT_SIZE)) != GS_SLOT_SIZE)
			exit(2);
	}
	close(fd);
	CHECK(ledger_sum(0) == HELD + CONTEXT, "the bystander's bytes are %llu", (unsigned long long)ledger_sum(0));
}

static pid_t bystander(int *ret_stop)
{
	int ready[2], stop[2];
	CUcontext context;
	CUdeviceptr p;
	char c = 0;
	pid_t pid;

	if (pipe(ready) || pipe(stop))
		exit(2);
	pid = fork();
	if (!pid) {
		close(stop[1]);
		begin(&context);
		if (CU(cuMemAlloc_v2)(&p, HELD) || write(ready[1], &c, 1) < 0 || read(stop[0], &c, 1) < 0)
			_exit(9);
		_exit(0);
	}
	if (read(ready[0], &c, 1) < 0)
		exit(2);
	*ret_stop = stop[1];
	return pid;
}

// all_the_rest returns what a new process can have, byte-exact by halves.
static unsigned long long all_the_rest(void)
{
	unsigned long long got = 0;
	CUcontext c;
	CUdeviceptr p;
	int tries = 0;

	begin(&c);
	// The dead are found 64 in 100 ms; wait until a first big piece fits.
	while (CU(cuMemAlloc_v2)(&p, LIMIT - HELD - 2 * CONTEXT) && tries++ < 300)
		usleep(20000);
	if (tries < 300)
		got = LIMIT - HELD - 2 * CONTEXT;
	while (CU(cuMemAlloc_v2)(&p, 512) == CUDA_SUCCESS)
		got += 512;
	return got;
}

int main(int argc, char **argv)
{
	int stop, status, k = 0, stride;
	pid_t by;

	if (argc < 3)
		return 2;
	stride = atoi(argv[2]);
	by = bystander(&stop);
	while (!step_and_kill(argv[1], k)) {
		k += stride;
		bury();
	}
	if (getenv("GS_TEST_VERBOSE"))
		printf("%d steps\n", k);
	CHECK(k > 100, "%s took only %d instructions", argv[1], k);
	by = by ? by : 0;
	if (fork() == 0) {
		unsigned long long got = all_the_rest();

		CHECK(got == LIMIT - HELD - 2 * CONTEXT, "%s: a new process got %llu of %llu", argv[1], got,
		      LIMIT - HELD - 2 * CONTEXT);
		CHECK(ledger_sum(0) == LIMIT, "%s: the ledger says %llu", argv[1], (unsigned long long)ledger_sum(0));
		_exit(harness_failures ? 1 : 0);
	}
	wait(&status);
	CHECK(status == 0, "%s: the new process failed", argv[1]);
	close(stop);
	waitpid(by, &status, 0);
	CHECK(status == 0, "%s: the bystander failed", argv[1]);
	return harness_failures ? 1 : 0;
}
