// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Charging memory pools, and what devices keep for graphs.
//
// A pool is charged the driver's figure of what it holds. It grows by steps of the
// driver's choice, so before the driver is asked for an allocation the most that it
// can take for it is charged, and what it did not take is given back afterwards. An
// allocation that surely fits in what the pool has (a piece that its stream has
// freed, the rest of a new block) is not charged in advance: near the limit there is
// no room for a step, and none is taken. If the driver takes one all the same, the
// allocation is undone.

#ifndef GS_POOL_H
#define GS_POOL_H

#include <stdbool.h>

#include "cuda_abi.h"
#include "pool_table.h"
#include "registry.h"

// An allocation of a pool, or a launch, between its charge and its account.
struct gs_pool_call {
	struct gs_pool *pool;
	unsigned gpu;	 // when there is no pool
	uint64_t bytes;	 // that the program gets
	uint64_t bound;	 // most that the driver can take for them
	uint64_t stream; // see gs_piece
	uint64_t known, charged;
	uint32_t answers;
	uint32_t epoch; // of graphs, set by gs_pool_leave: 0 if others launched meanwhile
	bool claim, alone;
};

// gs_pool_bound returns the most by which a pool can grow for an allocation.
uint64_t gs_pool_bound(const struct gs_pool *pool, uint64_t bytes);

// gs_pool_enter charges the call, which has pool, bytes, bound and stream set. It
// returns 0, or -ENOMEM with nothing charged and a denial counted.
int gs_pool_enter(struct gs_pool_call *call);

// gs_pool_enter_sure is the same, uncharged, for a call that takes nothing if epoch is
// still the pool's and no call is under way; else it returns false.
bool gs_pool_enter_sure(struct gs_pool_call *call, uint32_t epoch);

// gs_pool_leave brings the pool to the driver's figure. ptr is what was allocated, 0
// for nothing. With undoable it may return -ENOMEM, with the call still under way:
// the driver took more than fits. Then the caller frees ptr and leaves with 0.
int gs_pool_leave(struct gs_pool_call *call, CUdeviceptr ptr, bool undoable);

// gs_pool_move is for a pool whose place was guessed and is known now: memory of the
// host, or of a GPU. It moves the charges, those of the call, too. It returns 0, or
// -ENOMEM if they do not fit there.
int gs_pool_move(struct gs_pool_call *call, bool host, unsigned gpu);

// gs_pool_forget drops a pool that the driver has refused to allocate from, if it came
// by a way that is not watched: its handle may be none.
void gs_pool_forget(struct gs_pool *pool);

// gs_pool_settle brings a pool to the driver's figure.
void gs_pool_settle(struct gs_pool *pool);

// gs_pool_freed ends the freeing of any pointer: the entry was taken out before the
// driver was asked, which answered r. It returns r. stream is as in gs_piece.
CUresult gs_pool_freed(const struct gs_entry *entry, CUresult r);
// gs_pool_freeing is called before the driver is asked: what is freed can be used again
// if nobody was given memory meanwhile.
void gs_pool_freeing(struct gs_entry *entry);
CUresult gs_pool_freed_on(const struct gs_entry *entry, CUresult r, uint64_t stream);

// gs_pools_charge is the last resort of gs_charge: it waits for what other threads
// are about to give back, makes the pools give up what they do not need, and tries
// again. It returns 0 or -ENOMEM.
int gs_pools_charge(unsigned gpu, uint64_t bytes);

// gs_pools_trim makes the driver give up what this process's pools on the GPU keep
// without need. It returns whether any gave something.
bool gs_pools_trim(unsigned gpu);

// gs_pools_settle brings those of the GPU that may keep something to the driver's
// figure, for a view.
void gs_pools_settle(unsigned gpu);

// gs_pools_waited is called after the program has waited for a stream, or for all:
// then pools give up what is above their threshold.
void gs_pools_waited(uint64_t stream, bool all);

// gs_pool_destroyed ends a pool that the driver has just destroyed.
void gs_pool_destroyed(struct gs_pool *pool);

// gs_pool_imported makes a pool known whose memory is not charged here.
void gs_pool_imported(CUmemoryPool pool);

// gs_pool_notice makes a pool known that the program has got by a way that is not
// watched. It is guessed to be of gpu unless a device says that it is its own. NULL:
// there is no memory for it.
struct gs_pool *gs_pool_notice(CUmemoryPool handle, unsigned gpu);

// gs_stream_key is a stream's name in a gs_piece.
uint64_t gs_stream_key(CUstream stream, bool per_thread);

// gs_capturing tells whether a stream is being captured: then nothing is charged.
bool gs_capturing(CUstream stream, bool per_thread);

// gs_pool_block returns the most that the block of a pool takes which an allocation of that
// size lies in: it is shared whole.
uint64_t gs_pool_block(unsigned gpu, uint64_t bytes);

// gs_pools_forked forgets everything in a forked child.
void gs_pools_forked(void);

#endif
