// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "attach.h"
#include "ledger.h"
#include "pool.h"
#include "sharetab.h"
#include "sharetag.h"
#include "slots.h"

// This process's holds of each share, and the word of holders that stands for them.
struct hold {
	uint32_t count;
	uint32_t word;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hold holds[GS_SHARE_COUNT];

static uint32_t index_of(uint16_t share)
{
	return share - 1U;
}

static bool real(uint16_t share)
{
	return share && index_of(share) < GS_SHARE_COUNT;
}

static uint64_t random_tag(void)
{
	uint64_t tag = 0;
	struct timespec t;

	// By number: the function is newer than the glibc that we run on.
	if (syscall(SYS_getrandom, &tag, sizeof(tag), 1) != (long)sizeof(tag)) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		tag = ((uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec << 12 ^ (uint64_t)(uintptr_t)&t ^
		       (uint64_t)getpid() << 44) * 0x9e3779b97f4a7c15U;
	}
	return (tag >> 2) | 1ULL << 61; // far from every offset that a program uses
}

// take_free finds a free record and locks it.
static int take_free(int fd)
{
	for (uint32_t i = 0; i < GS_SHARE_COUNT; i++) {
		if (gs_sharetab_state(i) != GS_SHARE_FREE || !gs_sharetab_lock(fd, i))
			continue;
		if (gs_sharetab_state(i) == GS_SHARE_FREE)
			return (int)i;
		gs_sharetab_unlock(fd, i);
	}
	return -1;
}

// make fills a free record; the caller has its lock. Killed before the state is set
// it leaves a free record, afterwards one that only a dead slot holds.
static bool make(uint32_t i, unsigned gpu, uint64_t bytes, bool standby)
{
	struct gs_share *s = gs_share_at(i);

	if (!gs_sharetab_take_word(i, &holds[i].word))
		return false;
	s->tag = random_tag();
	s->died_ns = 0;
	memset(s->key, 0, sizeof(s->key));
	memset(s->file, 0, sizeof(s->file));
	s->gpu = (uint16_t)gpu;
	s->flags = 0;
	__atomic_store_n(&s->bytes, bytes, __ATOMIC_SEQ_CST);
	gs_sharetab_raise(&gs_self.ledger->share_high, i + 1);
	holds[i].count = 1;
	if (standby) {
		s->key[1] = (uint64_t)gs_self.slot + 1;
		__atomic_store_n(&s->state, (uint32_t)GS_SHARE_STANDBY, __ATOMIC_SEQ_CST);
		return true;
	}
	// In the record first: a sum reads the words of slots and then the records.
	__atomic_store_n(&s->state, (uint32_t)GS_SHARE_MOVING, __ATOMIC_SEQ_CST);
	gs_ledger_refund(gpu, bytes);
	__atomic_store_n(&s->state, (uint32_t)GS_SHARE_USED, __ATOMIC_SEQ_CST);
	return true;
}

// join adds bytes to a record that is there, of this process or of another: then they
// stay charged until all that the record stands for has gone. The process's lock is held.
static bool join(int fd, uint32_t i, unsigned gpu, uint64_t bytes)
{
	struct gs_share *s = gs_share_at(i);
	bool mine = holds[i].count, ok;

	if (!mine && !gs_sharetab_lock(fd, i))
		return false;
	ok = gs_sharetab_state(i) == GS_SHARE_USED && s->gpu == gpu && s->bytes &&
	     !(gs_sharetab_flags(i) & GS_SHARE_OBJECT) && s->bytes + bytes > bytes &&
	     (mine || gs_sharetab_take_word(i, &holds[i].word));
	if (ok) {
		holds[i].count++;
		__atomic_fetch_add(&s->bytes, bytes, __ATOMIC_SEQ_CST);
		gs_ledger_refund(gpu, bytes);
	}
	if (!mine)
		gs_sharetab_unlock(fd, i);
	return ok;
}

// join_any is for a table that is full. First those that this process holds.
static uint16_t join_any(int fd, unsigned gpu, uint64_t bytes)
{
	uint32_t high = gs_shares_high();

	for (int mine = 1; mine >= 0; mine--)
		for (uint32_t i = 0; i < high; i++)
			if (!holds[i].count == !mine && gs_sharetab_state(i) == GS_SHARE_USED && join(fd, i, gpu, bytes))
				return (uint16_t)(i + 1);
	return GS_SHARE_PINNED;
}

static uint16_t share_make(unsigned gpu, uint64_t bytes, bool standby)
{
	uint16_t share = GS_SHARE_PINNED;
	int saved = errno, i = -1, fd;

	pthread_mutex_lock(&lock);
	fd = gs_attach_open_ledger();
	if (fd >= 0)
		i = take_free(fd);
	if (i >= 0 && make((uint32_t)i, gpu, bytes, standby))
		share = (uint16_t)(i + 1);
	else if (i >= 0)
		gs_sharetab_unlock(fd, (uint32_t)i);
	if (share == GS_SHARE_PINNED && fd >= 0 && bytes && !standby)
		share = join_any(fd, gpu, bytes);
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return share;
}

// One export at a time: an entry is marked as pinned while its bytes move, so that who
// frees it meanwhile does not give them back a second time.
static pthread_mutex_t moving = PTHREAD_MUTEX_INITIALIZER;

uint16_t gs_share_entry(enum gs_kind kind, uint64_t key)
{
	struct gs_entry e = {0};

	pthread_mutex_lock(&moving);
	if (gs_registry_get(kind, key, &e) && !e.share && gs_registry_share(kind, key, 0, GS_SHARE_PINNED)) {
		// A pool keeps what is freed: its word tells the driver's figure of all of it.
		bool pool = kind == GS_KIND_POINTER && e.link && e.link != GS_LINK_PART;

		e.share = share_make(e.gpu, pool ? gs_pool_block(e.gpu, e.bytes) : e.bytes, pool);
		if (e.share != GS_SHARE_PINNED && !gs_registry_share(kind, key, GS_SHARE_PINNED, e.share)) {
			gs_share_drop(e.share);
			e.share = 0;
		}
	}
	pthread_mutex_unlock(&moving);
	return e.share;
}

void gs_share_object(uint16_t share)
{
	if (real(share))
		__atomic_fetch_or(&gs_share_at(index_of(share))->flags, (uint16_t)GS_SHARE_OBJECT, __ATOMIC_SEQ_CST);
}

bool gs_share_is_object(uint16_t share)
{
	return real(share) && gs_sharetab_flags(index_of(share)) & GS_SHARE_OBJECT;
}

uint64_t gs_share_grow_to(uint16_t share, uint64_t bytes)
{
	uint64_t *word, old;

	if (!real(share))
		return 0;
	word = &gs_share_at(index_of(share))->bytes;
	old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
	do {
		if (old >= bytes)
			return 0;
	} while (!__atomic_compare_exchange_n(word, &old, bytes, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	gs_ledger_refund(gs_share_gpu(share), bytes - old);
	return bytes - old;
}

void gs_share_hold(uint16_t share)
{
	if (!real(share))
		return;
	pthread_mutex_lock(&lock);
	holds[index_of(share)].count++;
	pthread_mutex_unlock(&lock);
}

void gs_share_drop(uint16_t share)
{
	uint32_t i = index_of(share);
	int saved = errno, fd;

	if (!real(share))
		return;
	pthread_mutex_lock(&lock);
	if (holds[i].count && !--holds[i].count) {
		gs_sharetab_give_word(i, holds[i].word);
		// One that had descriptors waits for a sweep: to look for them takes long.
		if (!(gs_sharetab_flags(i) & GS_SHARE_TAGGED) && (fd = gs_attach_open_ledger()) >= 0) {
			gs_sharetab_let_go(fd, i);
			close(fd);
		}
		// What is left of it leaves this process's word.
		if (gs_share_at(i)->key[1] == (uint64_t)gs_self.slot + 1)
			gs_sharetab_wake(i);
	}
	pthread_mutex_unlock(&lock);
	errno = saved;
}

void gs_share_mark(uint16_t share, int fd)
{
	uint32_t i = index_of(share);
	int saved = errno;
	struct gs_share *s;
	uint64_t file, none = 0;

	if (!real(share))
		return;
	s = gs_share_at(i);
	if (!gs_sharetag_put(fd, s->tag)) {
		gs_share_hold(share); // nobody could tell when it is closed: for good
		errno = saved;
		return;
	}
	file = gs_sharetag_file(fd, s->tag);
	if (!file || (!__atomic_compare_exchange_n(&s->file[0], &none, file, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
		      none != file)) {
		none = 0;
		if (!file || (!__atomic_compare_exchange_n(&s->file[1], &none, file, false, __ATOMIC_SEQ_CST,
							    __ATOMIC_SEQ_CST) &&
			      none != file))
			__atomic_fetch_or(&s->flags, (uint16_t)GS_SHARE_ANY_FILE, __ATOMIC_SEQ_CST);
	}
	__atomic_fetch_or(&s->flags, (uint16_t)GS_SHARE_TAGGED, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->died_ns, 0, __ATOMIC_SEQ_CST);
	errno = saved;
}

// name_of hashes what importers are given.
static uint64_t name_of(const void *bytes, uint64_t n)
{
	const unsigned char *p = bytes;
	uint64_t h = 0xcbf29ce484222325U;

	for (uint64_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3U;
	h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9U;
	return (h ^ h >> 32) | 1;
}

void gs_share_name(uint16_t share, const void *bytes, uint64_t n)
{
	uint64_t name = name_of(bytes, n);
	struct gs_share *s;

	if (!real(share))
		return;
	s = gs_share_at(index_of(share));
	for (int i = 0; i < 2; i++) {
		uint64_t old = 0;

		if (__atomic_compare_exchange_n(&s->key[i], &old, name, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
		    old == name)
			return;
	}
}

// What an importer was given: n offsets of locks, one of which may be a tag, or a name.
struct given {
	const uint64_t *offsets;
	int n;
	uint64_t name;
};

static bool is_given(const struct gs_share *s, const struct given *g)
{
	uint32_t state = __atomic_load_n(&s->state, __ATOMIC_SEQ_CST);

	if (state != GS_SHARE_USED && state != GS_SHARE_STANDBY)
		return false;
	if (g->name)
		return s->key[0] == g->name || s->key[1] == g->name;
	if (!(__atomic_load_n(&s->flags, __ATOMIC_RELAXED) & GS_SHARE_TAGGED))
		return false;
	for (int i = 0; i < g->n; i++)
		if (g->offsets[i] == s->tag)
			return true;
	return false;
}

// How long somebody who looks at a record may keep others from it: one that stands
// still there must not keep them for long, so it is then as if nothing had been found.
#define LOCK_TRIES 30
#define LOCK_STEP_NS 1000000

// hold_found holds a record of others; it may be freed up to the moment that it is
// locked. The process's lock is held.
static bool hold_found(int fd, uint32_t i, const struct given *g)
{
	const struct timespec step = {.tv_nsec = LOCK_STEP_NS};
	bool ok;

	if (holds[i].count) {
		holds[i].count++;
		return true;
	}
	for (int tries = 0; !gs_sharetab_lock(fd, i); tries++) {
		if (tries == LOCK_TRIES)
			return false;
		nanosleep(&step, NULL);
	}
	ok = is_given(gs_share_at(i), g) && gs_sharetab_take_word(i, &holds[i].word);
	if (ok)
		holds[i].count = 1;
	gs_sharetab_unlock(fd, i);
	return ok;
}

static uint16_t find(const struct given *g)
{
	uint32_t high = gs_shares_high();
	int saved = errno, fd = -1;
	uint16_t share = 0;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < high && !share; i++) {
		if (!is_given(gs_share_at(i), g))
			continue;
		if (fd < 0)
			fd = gs_attach_open_ledger();
		if (fd >= 0 && hold_found(fd, i, g))
			share = (uint16_t)(i + 1);
	}
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return share;
}

#define OFFSETS 16

uint16_t gs_share_of_descriptor(int fd)
{
	uint64_t offsets[OFFSETS];
	struct given g = {.offsets = offsets};
	int saved = errno;

	if (!gs_attached() || !gs_shares_high())
		return 0;
	g.n = gs_sharetag_read(fd, offsets, OFFSETS);
	errno = saved;
	return g.n > 0 ? find(&g) : 0;
}

uint16_t gs_share_of_name(const void *bytes, uint64_t n)
{
	struct given g = {.name = name_of(bytes, n)};

	return gs_attached() && gs_shares_high() ? find(&g) : 0;
}

unsigned gs_share_gpu(uint16_t share)
{
	unsigned gpu = real(share) ? gs_share_at(index_of(share))->gpu : 0;

	return gpu < gs_self.gpus ? gpu : 0;
}

uint64_t gs_share_bytes(uint16_t share)
{
	return real(share) ? __atomic_load_n(&gs_share_at(index_of(share))->bytes, __ATOMIC_RELAXED) : 0;
}

void gs_shares_forked(void)
{
	memset(holds, 0, sizeof(holds));
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	moving = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
