// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The table of memory pools: what the library knows of each. Graph memory of a
// device is one more pool, without a handle.

#ifndef GS_POOL_TABLE_H
#define GS_POOL_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"

#define GS_PIECES 32

// The stream of a piece that any stream may use.
#define GS_STREAM_ANY UINT64_MAX
// The stream of a piece that none surely may: of a default stream of a thread.
#define GS_STREAM_NONE (UINT64_MAX - 1)

// Memory that a pool has got from the driver and the program does not use.
struct gs_piece {
	uint64_t at, bytes;
	uint64_t stream; // may use it without a wait
};

enum gs_pool_kind {
	GS_POOL_NONE = 0,
	GS_POOL_DEVICE,
	GS_POOL_HOST,	 // not charged: its memory is not a GPU's
	GS_POOL_FOREIGN, // not charged here: made by another process
	GS_POOL_GRAPH,	 // what graphs of dev have got
};

// All under gs_pool_lock. In the ledger stands charged; the driver has at most
// that while calls are under way, and just that when none are.
struct gs_pool {
	CUmemoryPool handle; // NULL: destroyed, or of graphs
	enum gs_pool_kind kind;
	uint32_t index; // in the table
	CUdevice dev; // of graphs
	unsigned gpu;
	bool destroyed;
	bool leaving; // destroyed and empty, the last free not yet passed
	bool guessed; // its GPU is not known for sure
	bool capped;  // has a maximum: the last growth may be smaller
	bool strict;  // only the stream that freed a piece may use it
	bool unsure;  // it grew where a piece should have done
	bool stale;   // known is older than the last allocation
	uint64_t live;	  // bytes that the program has allocated from it
	uint64_t charged;
	uint64_t coming;  // most that the calls under way can add
	uint64_t known;	  // the driver's newest figure
	uint64_t claimed; // bytes that a call under way takes from a piece, uncharged
	uint32_t calls;	  // under way
	uint32_t users;	  // threads in a driver call of ours with its handle
	uint32_t answers; // counts changes of charged by the driver's figure
	uint32_t granted; // counts allocations
	uint32_t epoch;	  // of graphs: counts launches and trims
	uint32_t npieces;
	uint64_t leaves_by; // the stream of the last free of a destroyed pool
	struct gs_piece pieces[GS_PIECES];
};

extern pthread_mutex_t gs_pool_lock;

// gs_pools_high is one more than the highest index in use.
extern _Atomic(uint32_t) gs_pools_high;

static inline bool gs_pools_used(void)
{
	return atomic_load_explicit(&gs_pools_high, memory_order_relaxed) > 0;
}

// gs_pool_at returns the pool of an index below gs_pools_high; its kind may be
// GS_POOL_NONE.
struct gs_pool *gs_pool_at(uint32_t index);

// gs_pool_new adds a pool; NULL when there is no memory for it.
struct gs_pool *gs_pool_new(enum gs_pool_kind kind, CUmemoryPool handle, unsigned gpu);

// gs_pool_find returns the pool of a handle, NULL if it is not known.
struct gs_pool *gs_pool_find(CUmemoryPool handle);

// gs_pool_note makes a handle known. Fresh: a pool that was known by it is gone;
// else that one is returned. NULL: there is no memory for it.
struct gs_pool *gs_pool_note(CUmemoryPool handle, enum gs_pool_kind kind, unsigned gpu, bool fresh);

// gs_pool_drop frees the place of a pool. The lock is held.
void gs_pool_drop(struct gs_pool *pool);

// gs_pool_next_epoch makes every graph's own one an old one. The lock is held.
static inline uint32_t gs_pool_next_epoch(struct gs_pool *pool)
{
	return pool->epoch += pool->epoch + 1 ? 1 : 2; // never 0
}

// Pieces; the lock is held.
void gs_piece_add(struct gs_pool *pool, uint64_t at, uint64_t bytes, uint64_t stream);
// gs_piece_cut takes a range out and returns how much of it was in pieces.
uint64_t gs_piece_cut(struct gs_pool *pool, uint64_t at, uint64_t bytes);
bool gs_piece_fits(const struct gs_pool *pool, uint64_t bytes, uint64_t stream);
void gs_piece_open(struct gs_pool *pool, uint64_t stream, bool all);

void gs_pool_table_forked(void);

#endif
