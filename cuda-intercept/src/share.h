// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Device memory that several processes hold, or that only a descriptor holds. Its
// bytes are in a record of the ledger and in no slot, so it is charged once whoever
// of its holders lives longest (docs/design/0009-memory-held-by-several.md).
//
// In this process a share is known by its number plus 1; 0 is none. Each object that
// keeps the memory has a hold of its own.

#ifndef GS_SHARE_H
#define GS_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "registry.h"

// A share that is none: there was no way to take a record. The bytes stay in this
// process's word until it ends, whatever is freed meanwhile; what may outlive it, a
// descriptor, must not be given out. (Where only the table is full, the bytes are added
// to a record that is there.)
#define GS_SHARE_PINNED 0xffff

// gs_share_entry returns the share of an entry of the registry, which it makes if there
// is none: the bytes leave this process's word. The share stays the entry's: it ends with
// gs_entry_refund. 0: no such entry. A pool's allocation stays in the word, with the pool,
// until gs_share_drop, which must come before the pool is charged less.
uint16_t gs_share_entry(enum gs_kind kind, uint64_t key);

// gs_share_object says that the share is no memory: its mappings are not charged.
// gs_share_is_object tells.
void gs_share_object(uint16_t share);
bool gs_share_is_object(uint16_t share);

// gs_share_grow_to raises the share's bytes; what is added comes out of this process's
// word. It returns how many bytes it took.
uint64_t gs_share_grow_to(uint16_t share, uint64_t bytes);

// gs_share_hold adds a hold to a share that this process holds.
void gs_share_hold(uint16_t share);

// gs_share_drop ends one hold. Memory that nobody holds any more is given back; if
// descriptors were made of it, once the last of them is seen to be closed.
void gs_share_drop(uint16_t share);

// gs_share_mark marks a descriptor as one of the share's: it keeps the record alive
// in whatever process and message it is.
void gs_share_mark(uint16_t share, int fd);

// gs_share_name makes the share known by n bytes that importers will be given.
void gs_share_name(uint16_t share, const void *bytes, uint64_t n);

// gs_share_of_descriptor and gs_share_of_name find the container's share behind what
// a process was given, and hold it. 0: none, or it could not be held.
uint16_t gs_share_of_descriptor(int fd);
uint16_t gs_share_of_name(const void *bytes, uint64_t n);

// gs_share_gpu and gs_share_bytes tell of a share that this process holds.
unsigned gs_share_gpu(uint16_t share);
uint64_t gs_share_bytes(uint16_t share);

// gs_shares_forget takes a dead slot off all shares. The caller holds its lock.
void gs_shares_forget(uint32_t slot);

// gs_shares_sweep gives back what nobody holds any more. With tags it looks, too, whether
// the descriptors are closed of what nobody else holds, which may take some 10 ms.
void gs_shares_sweep(bool tags);

// gs_shares_dying tells whether shares on gpu are about to be given back, and sets
// ret_living to the bytes of the others. ret_closed is how much of that may be held
// by nobody: it had descriptors, which may be closed by now.
bool gs_shares_dying(unsigned gpu, uint64_t *ret_living, uint64_t *ret_closed);

// gs_shares_due tells whether there are shares on gpu whose descriptors were found closed
// long enough ago to be given back.
bool gs_shares_due(unsigned gpu);

// gs_shares_unheld tells whether there is a share that no slot holds, or one on its way
// from a slot's word into its record.
bool gs_shares_unheld(void);

// gs_shares_forked forgets everything in a forked child.
void gs_shares_forked(void);

#endif
