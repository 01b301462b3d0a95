// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// How long a thread was blocked in a call: the time that passed, without that in which
// it ran and that in which it could have run, had there been a processor free. So a
// busy machine does not count.

#ifndef BLOCKED_H
#define BLOCKED_H

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct blocked {
	unsigned long long wall, cpu, queued;
};

static inline unsigned long long blocked_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (unsigned long long)t.tv_sec * 1000000000U + (unsigned long long)t.tv_nsec;
}

static inline unsigned long long blocked_queued(void)
{
	static __thread int fd = -1;
	unsigned long long ran, queued = 0;
	char text[128];
	ssize_t n;

	if (fd < 0)
		fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = 0;
	sscanf(text, "%llu %llu", &ran, &queued);
	return queued;
}

static inline struct blocked blocked_begin(void)
{
	struct blocked b = {.queued = blocked_queued()};

	b.wall = blocked_clock(CLOCK_MONOTONIC);
	b.cpu = blocked_clock(CLOCK_THREAD_CPUTIME_ID);
	return b;
}

// blocked_end returns nanoseconds.
static inline unsigned long long blocked_end(const struct blocked *b)
{
	unsigned long long cpu = blocked_clock(CLOCK_THREAD_CPUTIME_ID) - b->cpu;
	unsigned long long wall = blocked_clock(CLOCK_MONOTONIC) - b->wall;
	unsigned long long queued = blocked_queued() - b->queued;

	return wall > cpu + queued ? wall - cpu - queued : 0;
}

#endif
