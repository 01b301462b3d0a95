// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Reserve, call, settle: what every allocating wrapper does.

#ifndef GS_GRANT_H
#define GS_GRANT_H

#include "block.h"
#include "context.h"

// gs_charge charges bytes of the GPU. What this process's own memory pools keep
// unused goes first; then it counts a denial. It returns 0 or -ENOMEM.
int gs_charge(unsigned gpu, uint64_t bytes);

// An allocation between its charge and its record.
struct gs_grant {
	struct gs_place place;
	uint64_t bytes;
	bool alone; // never shares a block
	bool part;  // of a block: that is charged, not bytes
	bool settled;
	uint64_t address; // of a settled part
	struct gs_part in;
};

// gs_grant_take charges bytes on the current context's GPU. On any result but
// CUDA_SUCCESS nothing is charged and the wrapper returns that result.
CUresult gs_grant_take(struct gs_grant *ret_grant, uint64_t bytes);

// gs_grant_take_on is the same on a given GPU, for what no context owns.
CUresult gs_grant_take_on(struct gs_grant *ret_grant, unsigned gpu, uint64_t bytes);

// gs_grant_take_linear is gs_grant_take for so many bytes of linear memory: whole
// blocks, or a part of one.
CUresult gs_grant_take_linear(struct gs_grant *ret_grant, uint64_t bytes);

// gs_grant_take_blocks is the same for memory that never shares a block.
CUresult gs_grant_take_blocks(struct gs_grant *ret_grant, uint64_t bytes);

// gs_grant_undo takes the charge back; nothing is allocated.
void gs_grant_undo(struct gs_grant *grant);

// gs_grant_resize changes the charge of linear memory to what the driver has really
// taken. It returns 0, or -ENOMEM with the grant as it was.
int gs_grant_resize(struct gs_grant *grant, uint64_t bytes);

// gs_grant_record notes that the allocation exists. On -ENOMEM the wrapper must
// free it and undo the grant.
int gs_grant_record(struct gs_grant *grant, enum gs_kind kind, uint64_t key);

// gs_entry_refund gives back what an entry was charged, which is out of the registry.
void gs_entry_refund(const struct gs_entry *entry);

// gs_entry_refund gives back what an entry was charged, after the driver has freed it.
void gs_entry_refund(const struct gs_entry *entry);

#endif
