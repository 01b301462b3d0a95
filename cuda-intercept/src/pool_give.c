// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What pools give back: freed allocations, what they keep without need, themselves.

#include <errno.h>
#include <sched.h>

#include "attach.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "ledger.h"
#include "pool_in.h"
#include "share.h"

// A capture on this thread must not see a call of ours.
static void exchange_mode(CUstreamCaptureMode *mode)
{
	if (gs_cuda_real.cuThreadExchangeStreamCaptureMode)
		gs_cuda_real.cuThreadExchangeStreamCaptureMode(mode);
}

// ---- trimming -----------------------------------------------------------------

// may_give tells whether a trim could help; the lock is held.
static bool may_give(const struct gs_pool *p, unsigned gpu)
{
	if (p->gpu != gpu || p->charged <= p->coming)
		return false;
	return p->kind == GS_POOL_GRAPH || (p->kind == GS_POOL_DEVICE && p->handle && p->charged - p->coming > p->live);
}

static bool graphs_use_all(const struct gs_pool *p)
{
	cuuint64_t used = 0, reserved = 0;

	return gs_cuda_real.cuDeviceGetGraphMemAttribute &&
	       !gs_cuda_real.cuDeviceGetGraphMemAttribute(p->dev, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used) &&
	       !gs_cuda_real.cuDeviceGetGraphMemAttribute(p->dev, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) &&
	       used >= reserved;
}

static void trim(struct gs_pool *p, CUmemoryPool handle)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (p->kind == GS_POOL_GRAPH && graphs_use_all(p))
		return;
	exchange_mode(&mode);
	if (p->kind == GS_POOL_GRAPH && gs_cuda_real.cuDeviceGraphMemTrim)
		gs_cuda_real.cuDeviceGraphMemTrim(p->dev);
	else if (handle && gs_cuda_real.cuMemPoolTrimTo)
		gs_cuda_real.cuMemPoolTrimTo(handle, 0);
	exchange_mode(&mode);
}

bool gs_pools_may_give(unsigned gpu)
{
	uint32_t high = atomic_load(&gs_pools_high);
	bool may = false;

	pthread_mutex_lock(&gs_pool_lock);
	for (uint32_t i = 0; i < high && !may; i++)
		may = may_give(gs_pool_at(i), gpu);
	pthread_mutex_unlock(&gs_pool_lock);
	return may;
}

bool gs_pools_trim(unsigned gpu)
{
	uint32_t high = atomic_load(&gs_pools_high);
	bool any = false;

	for (uint32_t i = 0; i < high; i++) {
		struct gs_pool *p = gs_pool_at(i);
		CUmemoryPool handle;
		uint64_t before;
		bool may;

		pthread_mutex_lock(&gs_pool_lock);
		may = may_give(p, gpu);
		handle = p->handle;
		before = p->charged;
		p->users += may;
		pthread_mutex_unlock(&gs_pool_lock);
		if (!may)
			continue;
		trim(p, handle);
		gs_pool_settle(p);
		pthread_mutex_lock(&gs_pool_lock);
		p->users--;
		any |= p->charged < before;
		pthread_mutex_unlock(&gs_pool_lock);
	}
	return any;
}

// ---- settling what was waited for ----------------------------------------------

// end_locked takes a pool that is gone out of the table and returns its charge, on
// *ret_gpu: without the lock its place may be another pool's.
static uint64_t end_locked(struct gs_pool *p, unsigned *ret_gpu)
{
	uint64_t bytes = p->charged;

	*ret_gpu = p->gpu;
	p->charged = 0;
	gs_pool_drop(p);
	return bytes;
}

static void settle_each(unsigned gpu, bool all_gpus, uint64_t stream, bool all)
{
	uint32_t high = atomic_load(&gs_pools_high);

	for (uint32_t i = 0; i < high; i++) {
		struct gs_pool *p = gs_pool_at(i);
		uint64_t gone = 0;
		unsigned from = 0;
		bool look;

		pthread_mutex_lock(&gs_pool_lock);
		look = p->kind != GS_POOL_NONE && (all_gpus || p->gpu == gpu);
		if (look) {
			gs_piece_open(p, stream, all);
			if (p->leaving && (all || p->leaves_by == stream))
				gone = end_locked(p, &from);
		}
		look = look && !gone && p->kind == GS_POOL_DEVICE && may_give(p, p->gpu);
		pthread_mutex_unlock(&gs_pool_lock);
		if (gone)
			gs_ledger_refund(from, gone);
		if (look)
			gs_pool_settle(p);
	}
}

void gs_pools_settle(unsigned gpu)
{
	settle_each(gpu, false, GS_STREAM_NONE, false);
}

void gs_pools_waited(uint64_t stream, bool all)
{
	if (gs_attached())
		settle_each(0, true, stream, all);
}

// ---- freeing ------------------------------------------------------------------

// passed tells whether all work of a stream has ended. GS_STREAM_ANY: the free has
// waited.
static bool passed(uint64_t stream)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult r = CUDA_ERROR_NOT_READY;

	if (stream == GS_STREAM_ANY)
		return true;
	if (stream == GS_STREAM_NONE || !gs_cuda_real.cuStreamQuery)
		return false;
	exchange_mode(&mode);
	r = gs_cuda_real.cuStreamQuery((CUstream)(uintptr_t)stream);
	exchange_mode(&mode);
	return r == CUDA_SUCCESS;
}

// freed_last ends a destroyed pool when its last allocation is freed.
static void freed_last(struct gs_pool *p, uint64_t stream)
{
	bool now = passed(stream);
	uint64_t gone = 0;
	unsigned gpu = 0;

	pthread_mutex_lock(&gs_pool_lock);
	if (p->destroyed && !p->live && !p->leaving) {
		if (now)
			gone = end_locked(p, &gpu);
		else
			p->leaving = true;
		p->leaves_by = stream;
	}
	pthread_mutex_unlock(&gs_pool_lock);
	gs_ledger_refund(gpu, gone);
}

// The pool of an entry, NULL for memory of none.
static struct gs_pool *pool_of(const struct gs_entry *entry)
{
	if (!entry->link || entry->link > atomic_load(&gs_pools_high))
		return NULL;
	return gs_pool_at((uint32_t)entry->link - 1);
}

void gs_pool_freeing(struct gs_entry *entry)
{
	struct gs_pool *p = pool_of(entry);

	if (!p)
		return;
	pthread_mutex_lock(&gs_pool_lock);
	entry->refs = p->calls ? 0 : p->granted + 1;
	pthread_mutex_unlock(&gs_pool_lock);
}

CUresult gs_pool_freed_on(const struct gs_entry *entry, CUresult r, uint64_t stream)
{
	struct gs_entry old;
	struct gs_pool *p;
	uint64_t less = 0, steps;
	bool destroyed, last;
	unsigned gpu;

	if (r != CUDA_SUCCESS) {
		gs_registry_put(entry, &old);
		return r;
	}
	p = pool_of(entry);
	if (!p) {
		gs_entry_refund(entry);
		return r;
	}
	// Who has imported it is charged from now on, before the pool is charged less.
	gs_share_drop(entry->share);
	pthread_mutex_lock(&gs_pool_lock);
	gpu = p->gpu;
	steps = gs_pool_steps(gpu);
	p->live -= entry->bytes < p->live ? entry->bytes : p->live;
	destroyed = p->destroyed;
	if (steps && !destroyed && !p->calls && entry->refs == p->granted + 1)
		gs_piece_add(p, entry->key, entry->bytes, stream);
	if (destroyed && !steps) {
		less = p->charged > p->live ? p->charged - p->live : 0;
		p->charged -= less;
	}
	last = destroyed && !p->live;
	pthread_mutex_unlock(&gs_pool_lock);
	gs_ledger_refund(gpu, less);
	if (last)
		freed_last(p, stream);
	else if (!destroyed && (!steps || stream == GS_STREAM_ANY))
		gs_pool_settle(p); // else nothing goes before the program waits
	return r;
}

CUresult gs_pool_freed(const struct gs_entry *entry, CUresult r)
{
	gs_pool_freed_on(entry, r, GS_STREAM_ANY);
	// The free has waited: other pools may have given something back.
	if (r == CUDA_SUCCESS && gs_pools_used())
		gs_pools_waited(GS_STREAM_NONE, false);
	return r;
}

void gs_pool_destroyed(struct gs_pool *pool)
{
	uint64_t gone = 0;
	unsigned gpu = 0;

	pthread_mutex_lock(&gs_pool_lock);
	pool->destroyed = true;
	pool->npieces = 0;
	if (!pool->live && !pool->calls)
		gone = end_locked(pool, &gpu);
	pthread_mutex_unlock(&gs_pool_lock);
	gs_ledger_refund(gpu, gone);
}

// ---- pools that came by ways that are not watched --------------------------------

int gs_pool_move(struct gs_pool_call *call, bool host, unsigned gpu)
{
	struct gs_pool *p = call->pool;
	unsigned from = p->gpu;
	uint64_t bytes;

	pthread_mutex_lock(&gs_pool_lock);
	bytes = p->charged;
	p->guessed = false;
	pthread_mutex_unlock(&gs_pool_lock);
	if (!host && gpu == from)
		return 0;
	if (!host && gs_ledger_charge(gpu, bytes) < 0)
		return -ENOMEM;
	pthread_mutex_lock(&gs_pool_lock);
	if (host) {
		p->kind = GS_POOL_HOST;
		p->charged = p->coming = p->calls = 0;
	} else {
		p->gpu = gpu;
	}
	pthread_mutex_unlock(&gs_pool_lock);
	gs_ledger_refund(from, bytes);
	gs_pool_moved_call(from, gpu, host);
	return 0;
}

void gs_pool_forget(struct gs_pool *pool)
{
	struct gs_entry e;

	pthread_mutex_lock(&gs_pool_lock);
	if (pool->guessed && !pool->live && !pool->calls && !pool->charged) {
		gs_registry_take(GS_KIND_POOL, (uintptr_t)pool->handle, &e);
		gs_pool_drop(pool);
	}
	pthread_mutex_unlock(&gs_pool_lock);
}

void gs_pool_imported(CUmemoryPool pool)
{
	gs_pool_note(pool, GS_POOL_FOREIGN, 0, true);
}
