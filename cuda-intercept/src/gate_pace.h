// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The arithmetic of the share, on a clock that the caller reads: no system call,
// no driver call, no state of its own.
//
// A container's standing on a GPU is one word, paid_ns: the time up to which it
// has used up its ceiling. A launch is allowed while that time is at most
// GS_BURST_NS ahead of now, so a long kernel overdraws once and is paid for by
// what follows. One word means that a kill between any two instructions leaves a
// valid standing, and that a new ceiling counts from the next launch on.

#ifndef GS_GATE_PACE_H
#define GS_GATE_PACE_H

#include <stdint.h>

#define GS_PACE_SHIFT 16
// Most GPU time in ns that one charge may carry (68 s); keeps products in 63 bits.
#define GS_PACE_COST_MAX (1ULL << 36)

// gs_pace_scale returns 1000/ceiling as a fixed-point number of GS_PACE_SHIFT
// bits. A ceiling of 0 counts as 1, one above 1000 as 1000.
uint32_t gs_pace_scale(uint32_t ceiling_milli);

// gs_pace_wall returns the wall time in ns that cost_ns of GPU time uses up.
static inline int64_t gs_pace_wall(uint64_t cost_ns, uint32_t scale)
{
	if (cost_ns > GS_PACE_COST_MAX)
		cost_ns = GS_PACE_COST_MAX;
	return (int64_t)((cost_ns * scale) >> GS_PACE_SHIFT);
}

// A launch's place in the queue: the wall time it takes, and from when on it may go.
struct gs_pace_turn {
	uint64_t at_ns;
	int64_t wall_ns; // 0: no place taken
};

// gs_pace_take charges wall_ns and gives the launch its turn. Turns come in the
// order in which they are taken, whichever thread or process takes them.
void gs_pace_take(uint64_t *paid_ns, uint64_t now_ns, int64_t wall_ns, struct gs_pace_turn *ret_turn);

// gs_pace_left returns the ns until the turn comes; 0 is now. It comes earlier
// than it was given if others have given back what they had charged.
uint64_t gs_pace_left(const uint64_t *paid_ns, uint64_t now_ns, const struct gs_pace_turn *turn);

// gs_pace_charge moves *paid_ns on by wall_ns, or back if that is negative. The
// result lies between now (idle time is not saved up beyond the burst) and
// GS_DEBT_MAX after it (nor is debt, nor a word that was scribbled over).
void gs_pace_charge(uint64_t *paid_ns, uint64_t now_ns, int64_t wall_ns);

// gs_pace_convert makes what *paid_ns is ahead of now count under a new ceiling;
// *paid_milli says under which one it was charged. A kill in between leaves the
// old lead.
void gs_pace_convert(uint64_t *paid_ns, uint64_t *paid_milli, uint32_t ceiling_milli,
		     uint64_t now_ns);

// How long one value of a hold word has been obeyed.
struct gs_pace_hold {
	uint32_t value;
	uint64_t since_ns;
};

// gs_pace_hold_left returns the ns for which a launch still has to obey value;
// 0 if it is 0 or has been obeyed for GS_HOLD_MAX.
uint64_t gs_pace_hold_left(struct gs_pace_hold *hold, uint32_t value, uint64_t now_ns);

#endif
