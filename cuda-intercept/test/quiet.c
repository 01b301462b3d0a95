// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What a program has set up for itself is as it was after the library was loaded,
// started and used: errno, umask, signals, environment, low descriptors, locale.

#include <dirent.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>

#include "harness.h"

extern char **environ;

static void handler(int n)
{
	(void)n;
}

// The numbers of open descriptors below 256, but not the one that looks.
static int low_descriptors(unsigned char seen[256])
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	memset(seen, 0, 256);
	while ((e = readdir(d))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd != dirfd(d) && fd < 256) {
			seen[fd] = 1;
			n++;
		}
	}
	closedir(d);
	return n;
}

int main(void)
{
	struct sigaction before[65], now;
	unsigned char fds_before[256], fds_now[256];
	char **env = environ, *first = environ[0];
	CUcontext c;
	CUdeviceptr p;
	size_t a, b;
	sigset_t mask_before, mask;

	umask(0137);
	signal(SIGUSR1, handler);
	signal(SIGUSR2, SIG_IGN);
	for (int i = 1; i < 65; i++)
		sigaction(i, NULL, &before[i]);
	sigprocmask(SIG_BLOCK, NULL, &mask_before);
	close(0); // and stays closed
	low_descriptors(fds_before);

	errno = 4242;
	EXPECT(CU(cuInit)(0), 0);
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&c, 0), 0);
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	errno = 4242; // the first use of dlsym may set it
	EXPECT(CU(cuMemAlloc_v2)(&p, MIB), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 5000 * MIB), 2);
	EXPECT(CU(cuMemAlloc_v2)(&p, 1024 * MIB), 2);
	EXPECT(CU(cuMemGetInfo_v2)(&a, &b), 0);
	CHECK(errno == 4242, "errno is %d", errno);

	CHECK(umask(0) == 0137, "the umask has changed");
	CHECK(environ == env && environ[0] == first, "the environment has moved");
	CHECK(!strcmp(setlocale(LC_ALL, NULL), "C"), "the locale has changed");
	for (int i = 1; i < 65; i++) {
		if (sigaction(i, NULL, &now) < 0)
			continue; // the C library's own
		CHECK(now.sa_handler == before[i].sa_handler, "signal %d has another handler", i);
	}
	sigprocmask(SIG_BLOCK, NULL, &mask);
	CHECK(!memcmp(&mask, &mask_before, sizeof(mask)), "the signal mask has changed");
	low_descriptors(fds_now);
	CHECK(!memcmp(fds_before, fds_now, 256), "a low descriptor was opened or closed");
	return harness_failures ? 1 : 0;
}
