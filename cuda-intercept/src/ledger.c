// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "ledger.h"

#include <errno.h>
#include <sched.h>

#include "share.h"
#include "slots.h"

// Attempts while other processes' words move, and their pauses in rounds of a
// spin loop: doubling, different in each slot so that two do not keep step.
#define ATTEMPTS 24
#define PAUSE_MAX 4096

#define WAIT_STEP_NS 10000000

// When this process last had a sweep made before it refused.
static _Atomic(uint64_t) last_look;

uint64_t gs_granule(uint64_t bytes)
{
	uint64_t up;

	if (__builtin_add_overflow(bytes, GS_CHARGE_GRANULE - 1, &up))
		return UINT64_MAX;
	return up & ~(GS_CHARGE_GRANULE - 1);
}

// A damaged word must not wrap to a small sum.
static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

// beside_slots is what is charged and is in no slot: what the driver took unseen,
// and what several processes hold.
static uint64_t beside_slots(unsigned gpu)
{
	uint32_t high = gs_shares_high();
	uint64_t sum = gs_growth(gpu);

	for (uint32_t i = 0; i < high; i++) {
		const struct gs_share *s = gs_share_at(i);
		uint32_t state = __atomic_load_n(&s->state, __ATOMIC_SEQ_CST);

		if ((state == GS_SHARE_USED || state == GS_SHARE_MOVING) && s->gpu == gpu)
			sum = plus(sum, __atomic_load_n(&s->bytes, __ATOMIC_SEQ_CST));
	}
	return sum;
}

static uint64_t guesses(unsigned gpu, uint32_t done)
{
	uint32_t high = gs_slots_high();
	uint64_t sum = 0;

	for (uint32_t slot = 0; slot < high; slot++)
		sum = plus(sum, gs_slot_guessed(gpu, slot, done));
	return sum;
}

// A word from here on is nobody's bytes: the file is writable by the program.
#define DAMAGED (UINT64_MAX / GS_SLOT_COUNT)

// used_by_all sums a column. It is what an allocation waits for, so the words are read
// one after the other without a check each: no sum of sound ones can wrap.
static uint64_t used_by_all(unsigned gpu)
{
	const _Atomic(uint64_t) *word = gs_slot_used(gpu, 0), *end = word + gs_slots_high();
	uint64_t sum[4] = {0}, all = 0;

	// The caller's own addition comes before the reads: see ledger.h.
	atomic_thread_fence(memory_order_seq_cst);
	for (; word + 3 < end; word += 4) {
		uint64_t a = atomic_load_explicit(word, memory_order_relaxed);
		uint64_t b = atomic_load_explicit(word + 1, memory_order_relaxed);
		uint64_t c = atomic_load_explicit(word + 2, memory_order_relaxed);
		uint64_t d = atomic_load_explicit(word + 3, memory_order_relaxed);

		sum[0] += a;
		sum[1] += b;
		sum[2] += c;
		sum[3] += d;
		all |= a | b | c | d;
	}
	for (; word < end; word++) {
		uint64_t a = atomic_load_explicit(word, memory_order_relaxed);

		sum[0] += a;
		all |= a;
	}
	return all >= DAMAGED ? UINT64_MAX : sum[0] + sum[1] + sum[2] + sum[3];
}

uint64_t gs_ledger_sum(unsigned gpu)
{
	// Before the growth that contains the guesses which it ends.
	uint32_t done = gs_settle_done(gpu);
	uint64_t sum = used_by_all(gpu);

	if (gs_guesses_stand(done))
		sum = plus(sum, guesses(gpu, done));
	return plus(sum, beside_slots(gpu));
}

static _Atomic(uint64_t) *own_word(unsigned gpu)
{
	return gs_slot_used(gpu, (uint32_t)gs_self.slot);
}

static void raise_peak(unsigned gpu, uint64_t sum)
{
	uint64_t *peak = &gs_self.ledger->gpu[gpu].peak;
	uint64_t seen = __atomic_load_n(peak, __ATOMIC_RELAXED);

	while (sum > seen && !__atomic_compare_exchange_n(peak, &seen, sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

void gs_ledger_refund(unsigned gpu, uint64_t bytes)
{
	_Atomic(uint64_t) *word = own_word(gpu);
	uint64_t old = atomic_load(word);

	// Never below zero: the file is writable by the program itself.
	while (!atomic_compare_exchange_weak(word, &old, old > bytes ? old - bytes : 0))
		;
}

void gs_ledger_add(unsigned gpu, uint64_t bytes)
{
	atomic_fetch_add(own_word(gpu), bytes);
	raise_peak(gpu, gs_ledger_sum(gpu));
}

static bool fits(uint64_t sum, uint64_t bytes, uint64_t limit)
{
	return sum <= limit && bytes <= limit - sum;
}

static bool add_and_check(unsigned gpu, uint64_t bytes, uint64_t limit)
{
	uint64_t sum;

	atomic_fetch_add(own_word(gpu), bytes);
	sum = gs_ledger_sum(gpu);
	if (sum > limit) {
		gs_ledger_refund(gpu, bytes);
		return false;
	}
	raise_peak(gpu, sum);
	return true;
}

static void pause_rounds(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
#if defined(__x86_64__)
		__builtin_ia32_pause();
#else
		__asm__ volatile("" ::: "memory");
#endif
}

// others_hold tells whether any of sum is other processes'.
static bool others_hold(unsigned gpu, uint64_t sum)
{
	return sum > plus(atomic_load(own_word(gpu)), gs_growth(gpu));
}

// try_charge charges if it fits. What does not fit because of a neighbour's
// attempt that is about to be taken back is tried again.
static bool try_charge(unsigned gpu, uint64_t bytes, uint64_t limit)
{
	unsigned pause = 4 + (unsigned)gs_self.slot % 13;

	for (int i = 0; i < ATTEMPTS; i++) {
		uint64_t sum = gs_ledger_sum(gpu);

		if (fits(sum, bytes, limit)) {
			if (add_and_check(gpu, bytes, limit))
				return true;
		} else {
			if (!others_hold(gpu, sum))
				return false;
			pause_rounds(4);
			if (gs_ledger_sum(gpu) == sum)
				return false; // full, and nobody moves
		}
		pause_rounds(pause);
		pause = pause < PAUSE_MAX ? pause * 2 : pause;
		if (i > ATTEMPTS / 2)
			sched_yield(); // the neighbour may be waiting for this CPU
	}
	return false;
}

// hopeless tells whether looking for the dead would find nothing, so that a full GPU is
// refused at once.
static bool hopeless(unsigned gpu)
{
	return !others_hold(gpu, gs_ledger_sum(gpu)) ||
	       (gs_slots_looked(&last_look) && gs_slots_settled() && !gs_shares_unheld());
}

// soon tells whether something on gpu is about to come back. It sets ret_living to
// the bytes that are not, and ret_closed to how much of them nobody may hold any more.
static bool soon(unsigned gpu, uint64_t *ret_living, uint64_t *ret_closed)
{
	uint64_t shared;
	bool slots = gs_slots_dying(gpu, ret_living), shares = gs_shares_dying(gpu, &shared, ret_closed);

	*ret_living = plus(plus(*ret_living, shared), gs_growth(gpu));
	return slots || shares;
}

// dying is soon that looks whether the descriptors of memory which nobody else holds
// are closed, if that is what is in the way; asked is how many such bytes there were
// when it last did.
static bool dying(unsigned gpu, uint64_t bytes, uint64_t limit, uint64_t *ret_living, uint64_t *asked)
{
	uint64_t closed;
	bool any = soon(gpu, ret_living, &closed);

	// Those that were found closed are looked at once more, after a while.
	if ((closed > *asked && closed <= *ret_living && fits(*ret_living - closed, bytes, limit)) || gs_shares_due(gpu)) {
		gs_shares_sweep(true);
		any = soon(gpu, ret_living, &closed);
	}
	*asked = closed;
	return any;
}

// charge_slowly is for a full GPU: look for the dead, and wait for those whose
// memory the driver is still taking back.
static __attribute__((cold, noinline)) bool charge_slowly(unsigned gpu, uint64_t bytes, uint64_t limit)
{
	uint64_t asked = 0;

	if (others_hold(gpu, gs_ledger_sum(gpu)))
		gs_slots_look(&last_look);
	sched_yield();
	for (uint64_t waited = 0; waited < GS_REAP_GRACE + GS_TAG_GRACE + 8 * WAIT_STEP_NS; waited += WAIT_STEP_NS) {
		uint64_t living;
		// Before the attempt: what a neighbour gives back after it is free then.
		bool wait = dying(gpu, bytes, limit, &living, &asked);

		if (try_charge(gpu, bytes, limit))
			return true;
		if (!wait || !fits(living, bytes, limit))
			return false;
		gs_slots_sleep(WAIT_STEP_NS);
		gs_slots_reap();
	}
	return try_charge(gpu, bytes, limit);
}

uint64_t gs_ledger_living(unsigned gpu)
{
	uint64_t living, closed;

	gs_slots_sweep(GS_SWEEP_INTERVAL);
	if (gs_slots_settled() && !gs_shares_unheld())
		return gs_ledger_sum(gpu);
	soon(gpu, &living, &closed);
	return living;
}

int gs_ledger_charge(unsigned gpu, uint64_t bytes)
{
	uint64_t limit = gs_memory_limit(gpu);
	int saved = errno;
	bool ok;

	if (!bytes)
		return 0;
	ok = bytes <= limit && (try_charge(gpu, bytes, limit) || (!hopeless(gpu) && charge_slowly(gpu, bytes, limit)));
	errno = saved;
	return ok ? 0 : -ENOMEM;
}

void gs_ledger_denied(unsigned gpu, uint64_t bytes)
{
	struct gs_gpu_account *account = &gs_self.ledger->gpu[gpu];

	__atomic_fetch_add(&account->denied, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&account->denied_bytes, bytes, __ATOMIC_RELAXED);
}

void gs_ledger_count_context(int n)
{
	__atomic_fetch_add(&gs_slot_at((uint32_t)gs_self.slot)->contexts, (uint32_t)n, __ATOMIC_RELAXED);
}
