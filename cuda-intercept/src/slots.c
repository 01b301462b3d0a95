// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "slots.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "share.h"

#ifndef F_OFD_SETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

// Dead slots without bytes that a starting process tries before it takes a new
// one: keeps slot_high, and with it the cost of a sum, near the processes alive.
#define TRY_EMPTY 4

// How often a process has a sweep made before it refuses, though none is due: a
// process that has just died may be what is in the way, and one refusal ends many a
// program. The container makes no more of those than one per SOON_NS.
#define PATIENCE_NS 1000000000
#define SOON_NS 2000000

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static bool set_lock(int fd, uint32_t slot, short type)
{
	struct flock lock = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(GS_LOCK_BASE + slot),
		.l_len = 1,
	};

	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool gs_slot_held(int ledger_fd, uint32_t slot)
{
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(GS_LOCK_BASE + slot),
		.l_len = 1,
	};

	return fcntl(ledger_fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static bool holds_bytes(uint32_t slot)
{
	for (unsigned gpu = 0; gpu < gs_self.gpus; gpu++)
		if (atomic_load_explicit(gs_slot_used(gpu, slot), memory_order_relaxed) ||
		    atomic_load_explicit(gs_slot_guess(gpu, slot), memory_order_relaxed))
			return true;
	return __atomic_load_n(&gs_slot_at(slot)->host_bytes, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&gs_slot_at(slot)->shares, __ATOMIC_RELAXED);
}

uint64_t gs_slot_guessed(unsigned gpu, uint32_t slot, uint32_t done)
{
	if (__atomic_load_n(&gs_slot_at(slot)->guess_mark, __ATOMIC_SEQ_CST) <= done)
		return 0;
	return atomic_load(gs_slot_guess(gpu, slot));
}

static uint32_t state_of(uint32_t slot)
{
	return __atomic_load_n(&gs_slot_at(slot)->state, __ATOMIC_RELAXED);
}

// forget_guess takes a process that died in a guess out of their number.
static void forget_guess(struct gs_slot *s)
{
	uint32_t *guessing = &gs_self.ledger->guessing, n = __atomic_load_n(guessing, __ATOMIC_SEQ_CST);
	uint32_t mark = __atomic_exchange_n(&s->guess_mark, 0, __ATOMIC_SEQ_CST);

	while (mark == GS_GUESS_PENDING && n &&
	       !__atomic_compare_exchange_n(guessing, &n, n - 1, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

// clear empties a slot; the caller holds its lock. The state goes last: a kill
// in between leaves a dead slot that the next sweep finds.
static void clear(uint32_t slot)
{
	struct gs_slot *s = gs_slot_at(slot);

	// First: what others hold of its bytes counts from now on in records.
	if (__atomic_load_n(&s->shares, __ATOMIC_SEQ_CST))
		gs_shares_forget(slot);
	for (unsigned gpu = 0; gpu < gs_self.gpus; gpu++) {
		atomic_store(gs_slot_used(gpu, slot), 0);
		atomic_store(gs_slot_guess(gpu, slot), 0);
	}
	s->shares = 0;
	s->host_bytes = 0;
	forget_guess(s);
	s->pid = 0;
	s->contexts = 0;
	__atomic_store_n(&s->died_ns, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&s->state, (uint32_t)GS_SLOT_FREE, __ATOMIC_SEQ_CST);
}

// visit looks at one slot of another process through fd, a file description of
// the caller's own: a description shared with another thread or a forked
// process would find that process's locks to be its own.
static void visit(int fd, uint32_t slot)
{
	struct gs_slot *s = gs_slot_at(slot);
	uint64_t died, now;

	if (!set_lock(fd, slot, F_WRLCK))
		return;
	died = __atomic_load_n(&s->died_ns, __ATOMIC_RELAXED);
	now = now_ns();
	if (!holds_bytes(slot) || (died && died <= now && now - died >= GS_REAP_GRACE))
		clear(slot);
	else if (!died || died > now) {
		__atomic_store_n(&s->died_ns, now, __ATOMIC_SEQ_CST);
		__atomic_store_n(&gs_self.ledger->dying_ns, now, __ATOMIC_SEQ_CST);
	}
	set_lock(fd, slot, F_UNLCK);
}

// ---- taking a slot ----------------------------------------------------------

// claim tries to make slot ours; what a dead process left in it and the driver
// may not have freed yet is left alone.
static bool claim(int fd, uint32_t slot)
{
	struct gs_slot *s;
	uint32_t high;

	if (!set_lock(fd, slot, F_WRLCK))
		return false;
	if (holds_bytes(slot)) {
		set_lock(fd, slot, F_UNLCK);
		return false;
	}
	clear(slot);
	s = gs_slot_at(slot);
	s->pid = (uint32_t)getpid();
	s->library = GS_VERSION;
	// Before the first charge: a sum that comes after it must see the slot.
	high = __atomic_load_n(&gs_self.ledger->slot_high, __ATOMIC_SEQ_CST);
	while (high < slot + 1 &&
	       !__atomic_compare_exchange_n(&gs_self.ledger->slot_high, &high, slot + 1, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	__atomic_store_n(&s->state, (uint32_t)GS_SLOT_USED, __ATOMIC_SEQ_CST);
	gs_self.slot = (int32_t)slot;
	return true;
}

static bool search(int fd)
{
	uint32_t high = gs_slots_high(), tries = TRY_EMPTY;
	uint32_t slot, from;

	for (slot = 0; slot < high; slot++)
		if (state_of(slot) == GS_SLOT_FREE && claim(fd, slot))
			return true;
	// Each of many processes that start at once looks somewhere else, so that
	// they do not queue up at the same slot.
	from = __atomic_fetch_add(&gs_self.ledger->sweep_next, TRY_EMPTY, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < high && tries; i++) {
		slot = (from + i) % high;
		if (holds_bytes(slot))
			continue;
		tries--;
		if (claim(fd, slot))
			return true;
	}
	while ((slot = __atomic_load_n(&gs_self.ledger->slot_hint, __ATOMIC_RELAXED)) < gs_self.slots) {
		slot = __atomic_fetch_add(&gs_self.ledger->slot_hint, 1, __ATOMIC_RELAXED);
		if (slot < gs_self.slots && claim(fd, slot))
			return true;
	}
	for (uint32_t i = 0; i < gs_self.slots; i++)
		if (claim(fd, (from + i) % gs_self.slots))
			return true;
	return false;
}

// The lock lives as long as the file description that took it, which a mapping
// holds, and no descriptor: a program that closes, duplicates over or unlocks what
// it does not know must not free memory that the driver still holds. fork inherits
// the mapping, exec drops it, and at a process's end it is the last thing that is
// closed, after the driver's descriptors (docs/design/0003-what-holds-a-slot.md).
int gs_slots_take(void)
{
	int fd = gs_attach_open_ledger();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *hold;

	if (fd < 0)
		return -EACCES;
	hold = mmap(NULL, page, PROT_NONE, MAP_SHARED, fd, 0);
	if (hold == MAP_FAILED) {
		close(fd);
		return -ENOMEM;
	}
	gs_slots_sweep(GS_SWEEP_INTERVAL);
	if (!search(fd)) {
		munmap(hold, page);
		close(fd);
		return -ENOSPC;
	}
	close(fd);
	return 0;
}

// ---- finding dead slots -----------------------------------------------------

// all_given_back notes that no slot is dying, unless one was found since dying was
// read.
static void all_given_back(uint64_t dying)
{
	if (dying)
		__atomic_compare_exchange_n(&gs_self.ledger->dying_ns, &dying, 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
}

static bool is_dying(uint32_t slot)
{
	return __atomic_load_n(&gs_slot_at(slot)->died_ns, __ATOMIC_RELAXED) != 0;
}

uint64_t gs_slots_sweep(uint64_t interval)
{
	struct gs_ledger_header *h = gs_self.ledger;
	uint64_t dying = __atomic_load_n(&h->dying_ns, __ATOMIC_SEQ_CST);
	bool any = false;
	uint64_t last = __atomic_load_n(&h->swept_ns, __ATOMIC_RELAXED);
	uint64_t now = now_ns();
	uint32_t high = gs_slots_high(), slot, left = GS_SWEEP_MAX;
	int fd, saved = errno;

	if (last <= now && now - last < interval)
		return last + interval - now;
	if (!__atomic_compare_exchange_n(&h->swept_ns, &last, now, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return interval;
	fd = gs_attach_open_ledger();
	if (fd < 0 || !high) {
		if (fd >= 0)
			close(fd);
		errno = saved;
		return 0;
	}
	slot = __atomic_load_n(&h->sweep_next, __ATOMIC_RELAXED) % high;
	for (uint32_t i = 0; i < high && left; i++, slot = (slot + 1) % high) {
		if ((int32_t)slot == gs_self.slot || !holds_bytes(slot))
			continue;
		visit(fd, slot);
		any |= is_dying(slot);
		left--;
	}
	if (left && !any)
		all_given_back(dying);
	__atomic_store_n(&h->sweep_next, slot, __ATOMIC_RELAXED);
	close(fd);
	gs_shares_sweep(false);
	errno = saved;
	return 0;
}

void gs_slots_sleep(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

	nanosleep(&t, NULL);
}

bool gs_slots_looked(const _Atomic(uint64_t) *last)
{
	uint64_t at = atomic_load_explicit(last, memory_order_relaxed);

	return at && now_ns() - at < PATIENCE_NS;
}

void gs_slots_look(_Atomic(uint64_t) *last)
{
	uint64_t due = gs_slots_sweep(GS_SWEEP_INTERVAL), at = atomic_load(last);

	if (!due || gs_slots_looked(last) || !atomic_compare_exchange_strong(last, &at, now_ns()))
		return;
	due = gs_slots_sweep(SOON_NS);
	if (!due)
		return;
	gs_slots_sleep(due);
	// Several wake up for the same sweep. Whoever comes second must not judge by
	// marks that the first has not made yet.
	if (gs_slots_sweep(SOON_NS))
		gs_slots_sleep(SOON_NS / 2);
}

bool gs_slots_settled(void)
{
	uint64_t last = __atomic_load_n(&gs_self.ledger->swept_ns, __ATOMIC_RELAXED), now = now_ns();

	return !__atomic_load_n(&gs_self.ledger->dying_ns, __ATOMIC_SEQ_CST) && last <= now && now - last < GS_SWEEP_INTERVAL;
}

void gs_slots_reap(void)
{
	uint64_t dying = __atomic_load_n(&gs_self.ledger->dying_ns, __ATOMIC_SEQ_CST);
	uint32_t high = gs_slots_high();
	bool any = false;
	int fd = -1, saved = errno;

	for (uint32_t slot = 0; slot < high; slot++) {
		if ((int32_t)slot == gs_self.slot || !is_dying(slot))
			continue;
		if (fd < 0)
			fd = gs_attach_open_ledger();
		if (fd < 0)
			break;
		visit(fd, slot);
		any |= is_dying(slot);
	}
	if (fd >= 0)
		close(fd);
	if (!any)
		all_given_back(dying);
	gs_shares_sweep(false);
	errno = saved;
}

bool gs_slots_dying(unsigned gpu, uint64_t *ret_living)
{
	uint32_t high = gs_slots_high(), done = gs_settle_done(gpu);
	bool guesses = gs_guesses_stand(done);
	uint64_t living = 0;
	bool dying = false;

	for (uint32_t slot = 0; slot < high; slot++) {
		uint64_t used = atomic_load_explicit(gs_slot_used(gpu, slot), memory_order_relaxed);

		if (guesses && __builtin_add_overflow(used, gs_slot_guessed(gpu, slot, done), &used))
			used = UINT64_MAX;
		if (!used)
			continue;
		if (__atomic_load_n(&gs_slot_at(slot)->died_ns, __ATOMIC_RELAXED))
			dying = true;
		else if (__builtin_add_overflow(living, used, &living))
			living = UINT64_MAX;
	}
	*ret_living = living;
	return dying;
}
