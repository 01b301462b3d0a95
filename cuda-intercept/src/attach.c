// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "attach.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slots.h"

#define LIMITS_PATH "/run/gpushare/limits"
#define LEDGER_PATH "/run/gpushare/ledger"

struct gs_self gs_self = {.slot = -1};
static pthread_mutex_t attach_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

// What pthread_atfork calls. That one is a different kind of symbol in each
// generation of glibc; this one has stayed.
extern int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void), void *library);
extern void *__dso_handle;

static void watch_forks(void)
{
	__register_atfork(NULL, NULL, gs_forked, __dso_handle);
}

// map_file maps size bytes of an open regular file that is at least that long.
static int map_file(int fd, uint64_t size, int protection, struct stat *ret_stat, void **ret_map)
{
	void *map;

	if (fstat(fd, ret_stat) < 0)
		return -errno;
	// Behind the end of the file a mapping is SIGBUS.
	if (!S_ISREG(ret_stat->st_mode) || (uint64_t)ret_stat->st_size < size)
		return -EINVAL;
	map = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*ret_map = map;
	return 0;
}

static int open_map(const char *path, int flags, uint64_t size, struct stat *ret_stat, void **ret_map)
{
	int protection = PROT_READ | ((flags & O_ACCMODE) == O_RDWR ? PROT_WRITE : 0);
	int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int r;

	if (fd < 0)
		return -errno;
	r = map_file(fd, size, protection, ret_stat, ret_map);
	close(fd);
	return r;
}

static uint64_t ledger_size(uint32_t gpus)
{
	return GS_LEDGER_HEADER_SIZE + GS_SLOT_COUNT * GS_SLOT_SIZE + 2 * (uint64_t)gpus * GS_SLOT_COUNT * 8 +
	       GS_SHARE_COUNT * GS_SHARE_SIZE + GS_HOLDER_COUNT * 8;
}

static bool limits_valid(const struct gs_limits_page *page)
{
	const struct gs_limits_header *h = &page->header;

	return h->magic == GS_LIMITS_MAGIC && h->version == GS_VERSION && h->size == GS_LIMITS_SIZE &&
	       h->gpu_count > 0 && h->gpu_count <= GS_MAX_GPUS && h->slot_count == GS_SLOT_COUNT &&
	       h->ledger_size == ledger_size(h->gpu_count);
}

static bool ledger_valid(const struct gs_ledger_header *h, const struct gs_limits_header *limits)
{
	return h->magic == GS_LEDGER_MAGIC && h->version == GS_VERSION && h->size == limits->ledger_size &&
	       h->gpu_count == limits->gpu_count && h->slot_count == limits->slot_count;
}

// map_region maps both files into s.
static int map_region(struct gs_self *s)
{
	struct stat st;
	void *limits, *ledger;
	int r = open_map(LIMITS_PATH, O_RDONLY, GS_LIMITS_SIZE, &st, &limits);

	if (r < 0)
		return r;
	s->limits = limits;
	if (!limits_valid(s->limits)) {
		munmap(limits, GS_LIMITS_SIZE);
		return -EINVAL;
	}
	r = open_map(LEDGER_PATH, O_RDWR, s->limits->header.ledger_size, &st, &ledger);
	if (r < 0) {
		munmap(limits, GS_LIMITS_SIZE);
		return r;
	}
	s->ledger = ledger;
	s->ledger_dev = st.st_dev;
	s->ledger_ino = st.st_ino;
	if ((uint64_t)st.st_size != s->limits->header.ledger_size ||
	    !ledger_valid(s->ledger, &s->limits->header)) {
		munmap(ledger, s->limits->header.ledger_size);
		munmap(limits, GS_LIMITS_SIZE);
		return -EINVAL;
	}
	s->gpus = s->limits->header.gpu_count;
	s->slots = s->limits->header.slot_count;
	return 0;
}

static void unmap_region(void)
{
	munmap(gs_self.ledger, gs_self.limits->header.ledger_size);
	munmap((void *)(uintptr_t)gs_self.limits, GS_LIMITS_SIZE);
	gs_self.ledger = NULL;
	gs_self.limits = NULL;
}

int gs_attach(bool with_slot)
{
	int saved = errno, r = 0;

	if (gs_attached())
		return 0;
	pthread_once(&fork_once, watch_forks);
	pthread_mutex_lock(&attach_lock);
	if (!gs_attached()) {
		r = map_region(&gs_self);
		if (r == 0 && with_slot) {
			r = gs_slots_take();
			if (r < 0)
				unmap_region();
		}
		if (r == 0)
			atomic_store_explicit(&gs_self.attached, true, memory_order_release);
	}
	pthread_mutex_unlock(&attach_lock);
	errno = saved;
	return r;
}

void gs_attach_keep(void)
{
	// Another thread of the parent may have held it.
	attach_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

void gs_attach_forget(void)
{
	gs_attach_keep();
	gs_self = (struct gs_self){.slot = -1};
}

int gs_attach_open_ledger(void)
{
	int fd = open(LEDGER_PATH, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -1;
	// After a chroot the same path is another file.
	if (fstat(fd, &st) < 0 || st.st_dev != gs_self.ledger_dev || st.st_ino != gs_self.ledger_ino) {
		close(fd);
		return -1;
	}
	return fd;
}

int gs_gpu_find(const unsigned char uuid[16])
{
	for (uint32_t i = 0; i < gs_self.gpus; i++)
		if (!memcmp(gs_self.limits->gpu[i].uuid, uuid, 16))
			return (int)i;
	return -1;
}
