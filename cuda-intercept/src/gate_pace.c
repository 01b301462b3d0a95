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

uint64_t gs_pace_wait(const uint64_t *paid_ns, uint64_t now_ns)
{
	uint64_t ahead = clamp(__atomic_load_n(paid_ns, __ATOMIC_RELAXED), now_ns) - now_ns;

	return ahead > GS_BURST_NS ? ahead - GS_BURST_NS : 0;
}

void gs_pace_charge(uint64_t *paid_ns, uint64_t now_ns, int64_t wall_ns)
{
	uint64_t old = __atomic_load_n(paid_ns, __ATOMIC_RELAXED);
	uint64_t next;

	do {
		uint64_t ahead = clamp(old, now_ns) - now_ns;

		if (wall_ns < 0 && (uint64_t)-wall_ns > ahead)
			next = now_ns;
		else
			next = clamp(now_ns + ahead + (uint64_t)wall_ns, now_ns);
	} while (!__atomic_compare_exchange_n(paid_ns, &old, next, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
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
