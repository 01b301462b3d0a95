// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Code of an image that must never run outside of its container. As a library or
// as a program it leaves a file below MARKS, a directory that only the host has,
// with the command line of the process that it ran in. In its container, where it
// may run, it says so on stderr instead.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void mark(void)
{
	char path[4096], line[4096];
	int from, to;
	ssize_t n;

	snprintf(path, sizeof path, "%s/%d", MARKS, (int)getpid());
	to = open(path, O_CREAT | O_WRONLY, 0644);
	if (to < 0) {
		(void)!write(2, "foreign\n", 8);
		return;
	}
	from = open("/proc/self/cmdline", O_RDONLY);
	n = from < 0 ? 0 : read(from, line, sizeof line);
	(void)!write(to, line, n > 0 ? (size_t)n : 0);
	close(from);
	close(to);
}

#ifdef PROGRAM
int main(void)
{
	mark();
	return 0;
}
#else
// The loader asks an LD_AUDIT library for its version, and takes it or leaves it.
unsigned int la_version(unsigned int version) { return version; }

__attribute__((constructor)) static void loaded(void) { mark(); }
#endif
