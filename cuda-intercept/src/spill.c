// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "spill.h"

#include <errno.h>
#include <sched.h>

#include "ledger.h"
#include "slots.h"

#define ATTEMPTS 24
#define WAIT_STEP_NS 10000000

#define NOTHING_DENIED UINT64_MAX

static _Atomic(uint64_t) last_look;
static _Atomic(uint64_t) held; // entries

// 0 outside a call that may spill.
static __thread uint64_t denied __attribute__((tls_model("initial-exec")));

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t *word(uint32_t slot)
{
	return &gs_slot_at(slot)->host_bytes;
}

static uint64_t host_sum(void)
{
	uint32_t high = gs_slots_high();
	uint64_t sum = 0;

	for (uint32_t slot = 0; slot < high; slot++)
		sum = plus(sum, __atomic_load_n(word(slot), __ATOMIC_SEQ_CST));
	return sum;
}

// dying tells whether any of it is held by processes that are known to be dead.
static bool dying(uint64_t *ret_living)
{
	uint32_t high = gs_slots_high();
	bool any = false;

	*ret_living = 0;
	for (uint32_t slot = 0; slot < high; slot++) {
		uint64_t bytes = __atomic_load_n(word(slot), __ATOMIC_SEQ_CST);

		if (bytes && __atomic_load_n(&gs_slot_at(slot)->died_ns, __ATOMIC_RELAXED))
			any = true;
		else
			*ret_living = plus(*ret_living, bytes);
	}
	return any;
}

void gs_spill_refund(uint64_t bytes)
{
	uint64_t *own = word((uint32_t)gs_self.slot);
	uint64_t old = __atomic_load_n(own, __ATOMIC_SEQ_CST);

	// Never below zero: the file is writable by the program itself.
	while (!__atomic_compare_exchange_n(own, &old, old > bytes ? old - bytes : 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
}

// try_charge charges if it fits. What does not fit because of a neighbour's attempt
// that is about to be taken back is tried again.
static bool try_charge(uint64_t bytes, uint64_t limit)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		uint64_t sum = host_sum();

		if (plus(sum, bytes) <= limit) {
			__atomic_fetch_add(word((uint32_t)gs_self.slot), bytes, __ATOMIC_SEQ_CST);
			if (host_sum() <= limit)
				return true;
			gs_spill_refund(bytes);
		}
		sched_yield();
		if (plus(sum, bytes) > limit && host_sum() == sum)
			return false; // full, and nobody moves
	}
	return false;
}

static __attribute__((cold, noinline)) bool charge_slowly(uint64_t bytes, uint64_t limit)
{
	if (host_sum() > __atomic_load_n(word((uint32_t)gs_self.slot), __ATOMIC_SEQ_CST))
		gs_slots_look(&last_look);
	for (uint64_t waited = 0; waited < GS_REAP_GRACE + 5 * WAIT_STEP_NS; waited += WAIT_STEP_NS) {
		uint64_t living;
		// Before the attempt: what a neighbour gives back after it is free then.
		bool any = dying(&living);

		if (try_charge(bytes, limit))
			return true;
		if (!any || plus(living, bytes) > limit)
			return false;
		gs_slots_sleep(WAIT_STEP_NS);
		gs_slots_reap();
	}
	return try_charge(bytes, limit);
}

int gs_spill_charge(uint64_t bytes)
{
	uint64_t limit = gs_spill_limit();
	int saved = errno;
	bool ok = bytes <= limit && (try_charge(bytes, limit) || charge_slowly(bytes, limit));

	errno = saved;
	return ok ? 0 : -ENOMEM;
}

// ---- what is refused ----------------------------------------------------------

void gs_spill_open(void)
{
	denied = NOTHING_DENIED;
}

uint64_t gs_spill_close(void)
{
	uint64_t bytes = denied == NOTHING_DENIED ? 0 : denied;

	denied = 0;
	return bytes;
}

void gs_spill_denied(unsigned gpu, uint64_t bytes)
{
	if (denied)
		denied = bytes == NOTHING_DENIED ? bytes - 1 : bytes;
	else
		gs_ledger_denied(gpu, bytes);
}

// ---- what this process holds --------------------------------------------------

bool gs_spill_held(void)
{
	return atomic_load_explicit(&held, memory_order_relaxed) != 0;
}

void gs_spill_note(void)
{
	atomic_fetch_add(&held, 1);
}

void gs_spill_gone(const struct gs_entry *entry)
{
	gs_spill_refund(entry->bytes);
	atomic_fetch_sub(&held, 1);
}

void gs_spill_forked(void)
{
	atomic_store(&held, 0);
	denied = 0;
}
