// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The ledger's records of shares and the words that say which slot holds which. A
// record is changed, held for the first time and freed under its lock, a byte of the
// ledger, which the kernel takes back from who dies. All that is read here is the
// container's own word: it is bounded before it is used.

#ifndef GS_SHARETAB_H
#define GS_SHARETAB_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"

static inline uint32_t gs_sharetab_state(uint32_t share)
{
	return __atomic_load_n(&gs_share_at(share)->state, __ATOMIC_SEQ_CST);
}

static inline uint16_t gs_sharetab_flags(uint32_t share)
{
	return __atomic_load_n(&gs_share_at(share)->flags, __ATOMIC_SEQ_CST);
}

// gs_sharetab_lock takes a record's lock through fd, a file description of the
// caller's own; it does not wait.
bool gs_sharetab_lock(int fd, uint32_t share);
void gs_sharetab_unlock(int fd, uint32_t share);

// gs_sharetab_raise raises a high mark of the ledger's header.
void gs_sharetab_raise(uint32_t *mark, uint32_t to);

// gs_sharetab_take_word notes that this process's slot holds the share; false if there
// is no room. give_word ends that.
bool gs_sharetab_take_word(uint32_t share, uint32_t *ret_word);
void gs_sharetab_give_word(uint32_t share, uint32_t word);

// gs_sharetab_wake makes a share count whose bytes were in its owner's word.
void gs_sharetab_wake(uint32_t share);

// gs_sharetab_let_go gives back a share that nobody holds and that never had descriptors.
void gs_sharetab_let_go(int fd, uint32_t share);

#endif
