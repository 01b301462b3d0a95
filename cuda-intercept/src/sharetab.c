// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "sharetab.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "share.h"
#include "sharetag.h"

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

static bool set_lock(int fd, uint32_t share, short type)
{
	struct flock l = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(GS_SHARE_LOCK_BASE + share),
		.l_len = 1,
	};

	return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

bool gs_sharetab_lock(int fd, uint32_t share)
{
	return set_lock(fd, share, F_WRLCK);
}

void gs_sharetab_unlock(int fd, uint32_t share)
{
	set_lock(fd, share, F_UNLCK);
}

void gs_sharetab_raise(uint32_t *mark, uint32_t to)
{
	uint32_t seen = __atomic_load_n(mark, __ATOMIC_SEQ_CST);

	while (seen < to &&
	       !__atomic_compare_exchange_n(mark, &seen, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

// ---- who holds what -----------------------------------------------------------

static _Atomic(uint64_t) *holder_at(uint32_t word)
{
	return (_Atomic(uint64_t) *)(void *)gs_share_at(GS_SHARE_COUNT) + word;
}

static uint32_t holders_high(void)
{
	uint32_t high = __atomic_load_n(&gs_self.ledger->holder_high, __ATOMIC_SEQ_CST);

	return high < GS_HOLDER_COUNT ? high : (uint32_t)GS_HOLDER_COUNT;
}

static uint64_t holder(uint32_t share, uint32_t slot)
{
	return (uint64_t)(share + 1) << 32 | (slot + 1);
}

bool gs_sharetab_take_word(uint32_t share, uint32_t *ret_word)
{
	uint32_t slot = (uint32_t)gs_self.slot;

	// First: a dead slot is asked for words only if it says that it may have some.
	__atomic_store_n(&gs_slot_at(slot)->shares, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < GS_HOLDER_COUNT; i++) {
		uint64_t none = 0;

		if (atomic_load_explicit(holder_at(i), memory_order_relaxed))
			continue;
		gs_sharetab_raise(&gs_self.ledger->holder_high, i + 1);
		if (atomic_compare_exchange_strong(holder_at(i), &none, holder(share, slot))) {
			*ret_word = i;
			return true;
		}
	}
	return false;
}

void gs_sharetab_give_word(uint32_t share, uint32_t word)
{
	uint64_t mine = holder(share, (uint32_t)gs_self.slot);

	if (word < GS_HOLDER_COUNT)
		atomic_compare_exchange_strong(holder_at(word), &mine, 0);
}

void gs_sharetab_wake(uint32_t share)
{
	uint32_t standby = GS_SHARE_STANDBY;

	__atomic_compare_exchange_n(&gs_share_at(share)->state, &standby, (uint32_t)GS_SHARE_USED, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void gs_shares_forget(uint32_t slot)
{
	uint32_t high = gs_shares_high();

	for (uint32_t i = 0; i < high; i++)
		if (gs_share_at(i)->key[1] == slot + 1)
			gs_sharetab_wake(i);
	high = holders_high();

	for (uint32_t i = 0; i < high; i++) {
		uint64_t h = atomic_load(holder_at(i));

		if ((uint32_t)h == slot + 1)
			atomic_compare_exchange_strong(holder_at(i), &h, 0);
	}
}

// A bit for each share.
struct set {
	uint64_t bits[GS_SHARE_COUNT / 64];
};

static bool in(const struct set *s, uint32_t share)
{
	return s->bits[share / 64] >> share % 64 & 1;
}

static void add(struct set *s, uint32_t share)
{
	s->bits[share / 64] |= 1ULL << share % 64;
}

// held finds the shares that slots hold; in ret_living, unless NULL, those that slots hold
// which are not marked dead.
static void held(struct set *ret_all, struct set *ret_living)
{
	uint32_t high = holders_high();

	memset(ret_all, 0, sizeof(*ret_all));
	if (ret_living)
		memset(ret_living, 0, sizeof(*ret_living));
	for (uint32_t i = 0; i < high; i++) {
		uint64_t h = atomic_load(holder_at(i));
		uint32_t share = (uint32_t)(h >> 32) - 1, slot = (uint32_t)h - 1;

		if (!h || share >= GS_SHARE_COUNT || slot >= gs_self.slots)
			continue;
		add(ret_all, share);
		if (ret_living && !__atomic_load_n(&gs_slot_at(slot)->died_ns, __ATOMIC_RELAXED))
			add(ret_living, share);
	}
}

// ---- giving back ----------------------------------------------------------------

// Most shares that one look at the kernel's locks is for.
#define TAGS 64

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

// end frees a share that no slot holds. died is what its mark was when its descriptors were
// looked for: a new one takes the mark away (gs_share_mark).
static void end(int fd, uint32_t share, uint64_t died)
{
	struct gs_share *s = gs_share_at(share);
	struct set all;

	// While somebody has the lock it is not held for the first time.
	if (!gs_sharetab_lock(fd, share))
		return;
	held(&all, NULL);
	if (!in(&all, share) && __atomic_load_n(&s->died_ns, __ATOMIC_SEQ_CST) == died)
		__atomic_store_n(&s->state, (uint32_t)GS_SHARE_FREE, __ATOMIC_SEQ_CST);
	gs_sharetab_unlock(fd, share);
}

// bury frees a share whose descriptors are closed, once they have been so for a while.
static void bury(int fd, uint32_t share, uint64_t died, bool alive)
{
	uint64_t *mark = &gs_share_at(share)->died_ns, now = now_ns();

	if (alive)
		__atomic_store_n(mark, 0, __ATOMIC_SEQ_CST);
	else if (!died || died > now)
		__atomic_compare_exchange_n(mark, &died, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	else if (now - died >= GS_TAG_GRACE)
		end(fd, share, died);
}

// look_for gives back those of n shares whose descriptors are closed. No lock is held
// meanwhile: it takes long.
static void look_for(int fd, const uint32_t *shares, int n)
{
	struct gs_sharetag tags[TAGS];
	uint64_t died[TAGS];

	for (int i = 0; i < n; i++) {
		const struct gs_share *s = gs_share_at(shares[i]);

		died[i] = __atomic_load_n(&s->died_ns, __ATOMIC_SEQ_CST);
		tags[i] = (struct gs_sharetag){.tag = s->tag};
		if (!(gs_sharetab_flags(shares[i]) & GS_SHARE_ANY_FILE))
			memcpy(tags[i].file, s->file, sizeof(s->file));
	}
	// Where the list of locks is hidden, the daemon looks.
	if (n && gs_sharetag_alive(tags, n))
		for (int i = 0; i < n; i++)
			bury(fd, shares[i], died[i], tags[i].alive);
}

void gs_sharetab_let_go(int fd, uint32_t share)
{
	if (!(gs_sharetab_flags(share) & GS_SHARE_TAGGED))
		end(fd, share, __atomic_load_n(&gs_share_at(share)->died_ns, __ATOMIC_SEQ_CST));
}

void gs_shares_sweep(bool tags)
{
	uint32_t high = gs_shares_high(), tagged[TAGS];
	int n = 0, fd = -1, saved = errno;
	struct set all;

	if (!high)
		return;
	held(&all, NULL);
	for (uint32_t i = 0; i < high; i++) {
		bool has = gs_sharetab_flags(i) & GS_SHARE_TAGGED;

		if (gs_sharetab_state(i) == GS_SHARE_FREE || in(&all, i) || (has && (!tags || n == TAGS)))
			continue;
		if (fd < 0)
			fd = gs_attach_open_ledger();
		if (fd < 0)
			break;
		if (has)
			tagged[n++] = i;
		else
			gs_sharetab_let_go(fd, i);
	}
	if (fd >= 0) {
		look_for(fd, tagged, n);
		close(fd);
	}
	errno = saved;
}

bool gs_shares_dying(unsigned gpu, uint64_t *ret_living, uint64_t *ret_closed)
{
	uint32_t high = gs_shares_high();
	struct set all, living;
	bool dying = false;

	*ret_living = *ret_closed = 0;
	if (!high)
		return false;
	held(&all, &living);
	for (uint32_t i = 0; i < high; i++) {
		const struct gs_share *s = gs_share_at(i);
		uint64_t bytes = __atomic_load_n(&s->bytes, __ATOMIC_RELAXED);
		uint32_t state = gs_sharetab_state(i);

		if (state == GS_SHARE_FREE || state == GS_SHARE_STANDBY || s->gpu != gpu)
			continue;
		if (!in(&all, i) && gs_sharetab_flags(i) & GS_SHARE_TAGGED &&
		    !__atomic_load_n(&s->died_ns, __ATOMIC_RELAXED)) {
			if (__builtin_add_overflow(*ret_closed, bytes, ret_closed))
				*ret_closed = UINT64_MAX;
		} else if (!in(&living, i) || state == GS_SHARE_MOVING) {
			dying = true;
			continue;
		}
		if (__builtin_add_overflow(*ret_living, bytes, ret_living))
			*ret_living = UINT64_MAX;
	}
	return dying;
}

bool gs_shares_unheld(void)
{
	uint32_t high = gs_shares_high();
	struct set all;

	if (!high)
		return false;
	held(&all, NULL);
	for (uint32_t i = 0; i < high; i++) {
		uint32_t state = gs_sharetab_state(i);

		if (state == GS_SHARE_MOVING || (state != GS_SHARE_FREE && !in(&all, i)))
			return true;
	}
	return false;
}

bool gs_shares_due(unsigned gpu)
{
	uint32_t high = gs_shares_high();
	uint64_t now = high ? now_ns() : 0;

	for (uint32_t i = 0; i < high; i++) {
		const struct gs_share *s = gs_share_at(i);
		uint64_t died = __atomic_load_n(&s->died_ns, __ATOMIC_RELAXED);

		if (gs_sharetab_state(i) != GS_SHARE_FREE && s->gpu == gpu && died && died <= now &&
		    now - died >= GS_TAG_GRACE)
			return true;
	}
	return false;
}
