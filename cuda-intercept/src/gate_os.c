// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "gate_os.h"

#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "region.h"

uint64_t gs_os_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

void gs_os_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void gs_os_wait(const uint32_t *word, uint32_t value, uint64_t wait_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(wait_ns / 1000000000ULL),
		.tv_nsec = (long)(wait_ns % 1000000000ULL),
	};

	// Not FUTEX_PRIVATE: the waker is the daemon. A raw system call is no
	// cancellation point, so a cancelled thread leaves the gate in order.
	syscall(SYS_futex, word, FUTEX_WAIT, value, &ts, NULL, 0);
}

void gs_os_ring(uint32_t kind, uint32_t gpu, uint32_t slot, uint64_t wall_ns)
{
	static const struct sockaddr_un address = {
		.sun_family = AF_UNIX,
		.sun_path = "/run/gpushare/control.sock",
	};
	struct gs_doorbell bell = {
		.magic = (uint32_t)GS_DOORBELL_MAGIC,
		.kind = kind,
		.gpu = gpu,
		.slot = slot,
		.wall_ns = wall_ns,
	};
	// Opened for each ring: a program that closes or reuses descriptors that it
	// does not know must not find its own file at the other end of this send.
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	sendto(fd, &bell, sizeof(bell), MSG_DONTWAIT | MSG_NOSIGNAL,
	       (const struct sockaddr *)&address, sizeof(address));
	close(fd);
}
