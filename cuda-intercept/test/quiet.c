// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What a program has set up for itself is as it was after the library was loaded,
// started and used: errno, umask, signals, timers, environment, descriptors, limits,
// locale, directory, name, priority, processors, threads. argv[1] is what cuInit must
// answer (0 if left out), argv[2] the code to exit with if all is well. The program
// writes a line to each of its outputs, and nobody else does.

#include <dirent.h>
#include <errno.h>
#include <fenv.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "harness.h"

extern char **environ;

static void handler(int n)
{
	(void)n;
}

// The open descriptors below 256, the ledger's among them if a test has it open, and
// how many there are in all; not the one that looks.
static int descriptors(unsigned char seen[256])
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	memset(seen, 0, 256);
	while ((e = readdir(d))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] == '.' || fd == dirfd(d))
			continue;
		n++;
		if (fd < 256)
			seen[fd] = 1;
	}
	closedir(d);
	return n;
}

static int threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

// The rest of what is set for a process, as one block to compare.
static struct state {
	struct rlimit limits[RLIM_NLIMITS];
	struct itimerval timers[3];
	cpu_set_t processors;
	stack_t stack;
	char directory[256], name[16];
	int priority, scheduler, dumpable, rounding, exceptions, threads, no_new_privileges, parents_death;
	uid_t uid, gid;
} before, now;

static void look(struct state *s)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < RLIM_NLIMITS; i++)
		getrlimit((__rlimit_resource_t)i, &s->limits[i]);
	for (int i = 0; i < 3; i++)
		getitimer((__itimer_which_t)i, &s->timers[i]);
	sched_getaffinity(0, sizeof(s->processors), &s->processors);
	sigaltstack(NULL, &s->stack);
	if (!getcwd(s->directory, sizeof(s->directory)))
		s->directory[0] = 0;
	prctl(PR_GET_NAME, s->name);
	prctl(PR_GET_PDEATHSIG, &s->parents_death);
	s->priority = getpriority(PRIO_PROCESS, 0);
	s->scheduler = sched_getscheduler(0);
	s->dumpable = prctl(PR_GET_DUMPABLE);
	s->no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	s->rounding = fegetround();
	s->exceptions = fetestexcept(FE_ALL_EXCEPT);
	s->threads = threads();
	s->uid = geteuid();
	s->gid = getegid();
}

static void use(int started)
{
	CUdeviceptr p;
	CUcontext c;
	size_t a, b;

	EXPECT(CU(cuInit)(0), started);
	if (started)
		return;
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&c, 0), 0);
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	errno = 4242; // the first use of dlsym may set it
	EXPECT(CU(cuMemAlloc_v2)(&p, MIB), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 5000 * MIB), 2);
	EXPECT(CU(cuMemAlloc_v2)(&p, 1024 * MIB), 2);
	EXPECT(CU(cuMemGetInfo_v2)(&a, &b), 0);
	CHECK(errno == 4242, "errno is %d", errno);
}

int main(int argc, char **argv)
{
	struct sigaction old[65], act;
	unsigned char fds_before[256], fds_now[256];
	char **env = environ, *first = environ[0];
	sigset_t mask_before, mask;
	int many;

	umask(0137);
	signal(SIGUSR1, handler);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	setpriority(PRIO_PROCESS, 0, 3);
	fesetround(FE_DOWNWARD);
	for (int i = 1; i < 65; i++)
		sigaction(i, NULL, &old[i]);
	sigprocmask(SIG_BLOCK, NULL, &mask_before);
	close(0); // and stays closed
	many = descriptors(fds_before);
	feclearexcept(FE_ALL_EXCEPT);
	look(&before);

	use(argc > 1 ? atoi(argv[1]) : 0);

	look(&now);
	CHECK(!memcmp(&before, &now, sizeof(now)), "limits, timers, processors, directory or the like have changed");
	CHECK(umask(0) == 0137, "the umask has changed");
	CHECK(environ == env && environ[0] == first, "the environment has moved");
	CHECK(!strcmp(setlocale(LC_ALL, NULL), "C"), "the locale has changed");
	for (int i = 1; i < 65; i++) {
		if (sigaction(i, NULL, &act) < 0)
			continue; // the C library's own
		CHECK(act.sa_handler == old[i].sa_handler, "signal %d has another handler", i);
	}
	sigprocmask(SIG_BLOCK, NULL, &mask);
	CHECK(!memcmp(&mask, &mask_before, sizeof(mask)), "the signal mask has changed");
	CHECK(descriptors(fds_now) == many, "a descriptor was opened or closed");
	CHECK(!memcmp(fds_before, fds_now, 256), "a low descriptor was opened or closed");
	if (argc > 2 && !harness_failures) {
		puts("out");
		fputs("err\n", stderr);
		return atoi(argv[2]);
	}
	return harness_failures ? 1 : 0;
}
