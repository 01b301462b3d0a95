// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What the files of the pools share.

#ifndef GS_POOL_IN_H
#define GS_POOL_IN_H

#include "pool.h"

enum gs_answer {
	GS_ANSWER_NONE = 0, // this time
	GS_ANSWER_FIGURE,
	GS_ANSWER_NEVER, // the driver has no such figure
};

// gs_pool_ask asks the driver for a pool's figure. handle is the pool's, as it was
// under the lock.
enum gs_answer gs_pool_ask(const struct gs_pool *pool, CUmemoryPool handle, uint64_t *ret_bytes);

// gs_pool_steps returns the least by which pools of the GPU grow; 0 if each allocation
// is taken by itself and goes when it is freed.
uint64_t gs_pool_steps(unsigned gpu);

// gs_pool_round rounds up to a multiple of unit; it saturates.
uint64_t gs_pool_round(uint64_t bytes, uint64_t unit);

// gs_pool_learn is told that a pool without a maximum grew by so much for an
// allocation that was alone.
void gs_pool_learn(unsigned gpu, uint64_t bytes, uint64_t grown);

// gs_pools_may_give tells whether gs_pools_trim could help.
bool gs_pools_may_give(unsigned gpu);

// gs_pool_moved_call counts a call under way on another GPU, or no more.
void gs_pool_moved_call(unsigned from, unsigned to, bool gone);

#endif
