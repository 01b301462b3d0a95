// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// By how much pools grow. The driver says it only afterwards, so it is learnt: from
// a first guess to what growths were seen.

#include <stdatomic.h>

#include "attach.h"
#include "block.h"
#include "pool_in.h"

// What drivers have been seen to take for a small allocation on cards.
#define FIRST_STEP (32ULL << 20)

enum big { UNSEEN = 0, BLOCKS, STEPS };

static struct {
	_Atomic(uint64_t) step; // 0: not learnt
	_Atomic(bool) sure;	// a growth by it was seen
	_Atomic(int) big;	// what allocations larger than a step are rounded to
} learnt[GS_MAX_GPUS];

static uint64_t block(unsigned gpu)
{
	uint64_t bytes = __atomic_load_n(&gs_self.limits->gpu[gpu].block_bytes, __ATOMIC_RELAXED);

	return bytes > GS_CHARGE_GRANULE ? bytes : GS_CHARGE_GRANULE;
}

uint64_t gs_pool_steps(unsigned gpu)
{
	uint64_t step = atomic_load_explicit(&learnt[gpu].step, memory_order_relaxed);

	return step || block(gpu) == GS_CHARGE_GRANULE ? step : FIRST_STEP;
}

uint64_t gs_pool_round(uint64_t bytes, uint64_t unit)
{
	uint64_t rest = bytes % unit, up;

	if (!rest)
		return bytes;
	return __builtin_add_overflow(bytes, unit - rest, &up) ? UINT64_MAX : up;
}

uint64_t gs_pool_bound(const struct gs_pool *pool, uint64_t bytes)
{
	uint64_t step = gs_pool_steps(pool->gpu);

	if (!step || !bytes)
		return bytes;
	if (bytes <= step)
		return step;
	return gs_pool_round(bytes, atomic_load(&learnt[pool->gpu].big) == BLOCKS ? block(pool->gpu) : step);
}

void gs_pool_learn(unsigned gpu, uint64_t bytes, uint64_t grown)
{
	uint64_t step = gs_pool_steps(gpu), bound;

	if (grown < bytes)
		return; // the pool has lost something meanwhile
	bound = gs_pool_bound(&(struct gs_pool){.gpu = gpu}, bytes);
	if (grown > bound && bytes <= step) {
		atomic_store(&learnt[gpu].step, grown);
		atomic_store(&learnt[gpu].sure, true);
	} else if (grown > bound && !step) {
		atomic_store(&learnt[gpu].step, grown);
	} else if (grown > bound && atomic_load(&learnt[gpu].big) == BLOCKS) {
		atomic_store(&learnt[gpu].big, STEPS);
	} else if (grown > bound) {
		atomic_store(&learnt[gpu].step, 2 * step);
	} else if (bytes <= step && !atomic_load(&learnt[gpu].sure)) {
		atomic_store(&learnt[gpu].step, grown);
		atomic_store(&learnt[gpu].sure, true);
	} else if (bytes > step && grown < bound && atomic_load(&learnt[gpu].big) == UNSEEN) {
		atomic_store(&learnt[gpu].big, BLOCKS);
	}
}

uint64_t gs_pool_block(unsigned gpu, uint64_t bytes)
{
	uint64_t step = gs_pool_steps(gpu);

	if (!step)
		return bytes;
	return bytes < step ? step : gs_whole_blocks(gpu, bytes);
}
