// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Blocks: the unit in which the driver takes memory of a card for linear
// allocations. A large allocation is whole blocks. Small ones share a block, which
// lies at a multiple of its size, so that an address tells its block: the block is
// charged with the first part that is seen in it and given back with the last.
//
// A call for a part charges a block in advance, unless a known block of its context
// has room for sure: then it promises itself that room, and the block stays charged
// until the call has returned, also when the driver has given it up meanwhile.

#ifndef GS_BLOCK_H
#define GS_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "region.h"
#include "registry.h"

// gs_block_unit returns the size of a block in bytes; GS_CHARGE_GRANULE where
// every allocation is charged by itself.
uint64_t gs_block_unit(unsigned gpu);

// gs_whole_blocks rounds up to blocks; it saturates.
uint64_t gs_whole_blocks(unsigned gpu, uint64_t bytes);

// gs_is_part tells whether an allocation of that size shares a block with others.
static inline bool gs_is_part(unsigned gpu, uint64_t bytes)
{
	uint64_t unit = gs_block_unit(gpu);

	return unit > GS_CHARGE_GRANULE && bytes && bytes < unit;
}

struct gs_block;

// A part between its charge and its record.
struct gs_part {
	uint64_t bytes;
	uint32_t ctx; // serial number of its context
	unsigned gpu;
	struct gs_block *pin; // where there is room for it
	bool charged;	      // or: a block is charged for it
};

// gs_part_take makes sure that what the driver may take for the part is charged. It
// returns 0 or -ENOMEM.
int gs_part_take(struct gs_part *part);

// gs_part_settle says where the driver has put the part. On -ENOMEM the caller must
// free it and then undo.
int gs_part_settle(struct gs_part *part, uint64_t address);

// gs_part_undo takes the charge of an unsettled part back.
void gs_part_undo(struct gs_part *part);

// gs_part_freed gives a settled part back, after the driver has freed it.
void gs_part_freed(unsigned gpu, uint64_t address, uint64_t bytes);

// gs_block_find finds the entry of the block in which a part lies: GS_KIND_BLOCK
// by its first address. It returns false if there is no block at address.
bool gs_block_find(uint64_t address, struct gs_entry *ret_entry);

// gs_blocks_forked forgets everything in a forked child.
void gs_blocks_forked(void);

#endif
