// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Slots of the ledger: taking one, and finding those whose process is gone.
//
// A slot belongs to whoever holds the write lock on byte GS_LOCK_BASE+slot. Only
// under that lock are its words zeroed; only its holder adds to them.

#ifndef GS_SLOTS_H
#define GS_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attach.h"

static inline struct gs_slot *gs_slot_at(uint32_t slot)
{
	return (struct gs_slot *)((char *)gs_self.ledger + GS_LEDGER_HEADER_SIZE) + slot;
}

// The word that counts the bytes of slot on gpu.
static inline _Atomic(uint64_t) *gs_slot_used(unsigned gpu, uint32_t slot)
{
	char *columns = (char *)gs_self.ledger + GS_LEDGER_HEADER_SIZE + GS_SLOT_COUNT * GS_SLOT_SIZE;

	return (_Atomic(uint64_t) *)columns + (uint64_t)gpu * GS_SLOT_COUNT + slot;
}

// The word that counts the bytes that slot has charged on gpu in advance of the
// driver's figure.
static inline _Atomic(uint64_t) *gs_slot_guess(unsigned gpu, uint32_t slot)
{
	return gs_slot_used(gs_self.gpus + gpu, slot);
}

static inline struct gs_share *gs_share_at(uint32_t share)
{
	return (struct gs_share *)(void *)gs_slot_used(2 * gs_self.gpus, 0) + share;
}

// One more than the highest share ever taken.
static inline uint32_t gs_shares_high(void)
{
	uint32_t high = __atomic_load_n(&gs_self.ledger->share_high, __ATOMIC_SEQ_CST);

	return high < GS_SHARE_COUNT ? high : (uint32_t)GS_SHARE_COUNT;
}

// One more than the highest slot ever taken.
static inline uint32_t gs_slots_high(void)
{
	uint32_t high = __atomic_load_n(&gs_self.ledger->slot_high, __ATOMIC_SEQ_CST);

	return high < gs_self.slots ? high : gs_self.slots;
}

// gs_slots_take takes a slot for this process, with all its words zero. It
// returns 0, or a negative errno: -ENOSPC when every slot is in use.
int gs_slots_take(void);

// gs_slots_sweep looks for dead slots that hold bytes, at most GS_SWEEP_MAX of them and
// once per interval (nanoseconds) in the container; GS_SWEEP_INTERVAL unless something
// waits for it. A dead slot is marked at first and given back after GS_REAP_GRACE. It
// returns 0, or the time in nanoseconds until a sweep is due if it did nothing.
uint64_t gs_slots_sweep(uint64_t interval);

// gs_slot_held tells whether a process holds the slot's lock; true if in doubt.
bool gs_slot_held(int ledger_fd, uint32_t slot);

// gs_guesses_stand tells whether there may be a guess that look number done does not
// contain.
static inline bool gs_guesses_stand(uint32_t done)
{
	// In this order: a guess that ends raises the mark first.
	return __atomic_load_n(&gs_self.ledger->guessing, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(&gs_self.ledger->guess_mark, __ATOMIC_SEQ_CST) > done;
}

// gs_slot_guessed returns what slot has charged on gpu in advance, as long as the
// driver's figure of look number done does not contain it.
uint64_t gs_slot_guessed(unsigned gpu, uint32_t slot, uint32_t done);

// gs_slots_reap gives marked slots back whose grace is over.
void gs_slots_reap(void);

// gs_slots_look sweeps for who is about to refuse; before the container's turn only if
// the process has not done so for a second. last is when it did, 0 at first.
void gs_slots_look(_Atomic(uint64_t) *last);

// gs_slots_looked tells whether it has done so within the last second.
bool gs_slots_looked(const _Atomic(uint64_t) *last);

// gs_slots_sleep sleeps for that many nanoseconds.
void gs_slots_sleep(uint64_t ns);

// gs_slots_settled tells whether there is nobody to look for: a sweep is not due,
// and no slot is known to be dying.
bool gs_slots_settled(void);

// gs_slots_dying tells whether slots that are marked dead hold bytes on gpu. It
// sets ret_living to the bytes of the others, guesses included.
bool gs_slots_dying(unsigned gpu, uint64_t *ret_living);

#endif
