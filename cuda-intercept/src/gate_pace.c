// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "gate_pace.h"

#include <stdbool.h>

#include "region.h"

uint32_t gs_pace_scale(uint32_t ceiling_milli)
{
	if (ceiling_milli == 0)
		ceiling_milli = 1;
	if (ceiling_milli > GS_MILLI_GPU)
		ceiling_milli = GS_MILLI_GPU;
	return (uint32_t)((GS_MILLI_GPU << GS_PACE_SHIFT) / ceiling_milli);
}

static uint64_t clamp(uint64_t paid, uint64_t now)
{
	if (paid < now)
		return now;
	if (paid - now > GS_DEBT_MAX)
		return now + GS_DEBT_MAX;
	return paid;
}

// pace_move moves the word and returns where it stood, within its bounds.
static uint64_t pace_move(uint64_t *paid_ns, uint64_t now_ns, int64_t wall_ns)
{
	uint64_t old = __atomic_load_n(paid_ns, __ATOMIC_RELAXED);
	uint64_t base, next;

	do {
		base = clamp(old, now_ns);
		if (wall_ns < 0 && (uint64_t)-wall_ns > base - now_ns)
			next = now_ns;
		else
			next = clamp(base + (uint64_t)wall_ns, now_ns);
	} while (!__atomic_compare_exchange_n(paid_ns, &old, next, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return base;
}

void gs_pace_charge(uint64_t *paid_ns, uint64_t now_ns, int64_t wall_ns)
{
	pace_move(paid_ns, now_ns, wall_ns);
}

void gs_pace_take(uint64_t *paid_ns, uint64_t now_ns, int64_t wall_ns, struct gs_pace_turn *ret_turn)
{
	ret_turn->at_ns = pace_move(paid_ns, now_ns, wall_ns) - GS_BURST_NS;
	ret_turn->wall_ns = wall_ns;
}

uint64_t gs_pace_left(const uint64_t *paid_ns, uint64_t now_ns, const struct gs_pace_turn *turn)
{
	uint64_t paid = clamp(__atomic_load_n(paid_ns, __ATOMIC_RELAXED), now_ns);
	uint64_t before = paid - (uint64_t)turn->wall_ns - GS_BURST_NS; // if nobody came after

	if (turn->at_ns <= now_ns || (int64_t)(before - now_ns) <= 0)
		return 0;
	return (before < turn->at_ns ? before : turn->at_ns) - now_ns;
}

void gs_pace_convert(uint64_t *paid_ns, uint64_t *paid_milli, uint32_t ceiling_milli,
		     uint64_t now_ns)
{
	uint64_t from = __atomic_load_n(paid_milli, __ATOMIC_RELAXED);
	uint64_t old, next;

	if (from == ceiling_milli || !__atomic_compare_exchange_n(paid_milli, &from, ceiling_milli, false,
								  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	if (from == 0 || from > GS_MILLI_GPU || ceiling_milli == 0)
		return; // nothing charged yet, or scribbled over
	old = __atomic_load_n(paid_ns, __ATOMIC_RELAXED);
	do {
		next = clamp(now_ns + (clamp(old, now_ns) - now_ns) * from / ceiling_milli, now_ns);
	} while (!__atomic_compare_exchange_n(paid_ns, &old, next, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
}

uint64_t gs_pace_hold_left(struct gs_pace_hold *hold, uint32_t value, uint64_t now_ns)
{
	uint64_t since;

	if (value == 0)
		return 0;
	// Two threads that see a new value at once both store about the same time.
	if (__atomic_load_n(&hold->value, __ATOMIC_ACQUIRE) != value) {
		__atomic_store_n(&hold->since_ns, now_ns, __ATOMIC_RELAXED);
		__atomic_store_n(&hold->value, value, __ATOMIC_RELEASE);
	}
	since = __atomic_load_n(&hold->since_ns, __ATOMIC_RELAXED);
	if (now_ns < since)
		return GS_HOLD_MAX; // another thread stored a later reading
	return now_ns - since < GS_HOLD_MAX ? GS_HOLD_MAX - (now_ns - since) : 0;
}
