// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "pool.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "attach.h"
#include "cuda_hooks.h"
#include "guess.h"
#include "ledger.h"
#include "pool_in.h"

// How often a thread gives way to others before it goes on without what it waits for.
#define YIELDS 4000
// How often the driver's figure is asked again because another thread had changed it.
#define ASKS 8

enum gs_answer gs_pool_ask(const struct gs_pool *pool, CUmemoryPool handle, uint64_t *ret_bytes)
{
	cuuint64_t bytes = 0;
	CUresult r = CUDA_ERROR_NOT_SUPPORTED;

	if (pool->kind == GS_POOL_GRAPH) {
		if (gs_cuda_real.cuDeviceGetGraphMemAttribute)
			r = gs_cuda_real.cuDeviceGetGraphMemAttribute(pool->dev, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
								      &bytes);
	} else if (!handle) {
		return GS_ANSWER_NONE;
	} else if (gs_cuda_real.cuMemPoolGetAttribute) {
		r = gs_cuda_real.cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
	}
	*ret_bytes = bytes;
	if (r == CUDA_SUCCESS)
		return GS_ANSWER_FIGURE;
	// 11.2 has pools and not yet this figure.
	return r == CUDA_ERROR_NOT_SUPPORTED || r == CUDA_ERROR_INVALID_VALUE ? GS_ANSWER_NEVER : GS_ANSWER_NONE;
}

// stand_in is what a pool is charged when the driver never says what it holds: what
// was allocated from it, or of graphs the largest launch until a trim. The lock is held.
static uint64_t stand_in(const struct gs_pool *p, uint64_t more)
{
	if (p->kind == GS_POOL_GRAPH)
		return more > p->known ? more : p->known;
	return p->live + more;
}

// note_figure keeps the driver's figure; the lock is held. When it falls, nobody
// knows which pieces went.
static void note_figure(struct gs_pool *p, uint64_t figure)
{
	if (figure < p->known) {
		p->npieces = 0;
		p->epoch++;
	}
	p->known = figure;
	p->stale = false;
}

// ---- under pressure -----------------------------------------------------------

// While a thread finds out whether there is room, those that would charge for a step
// which they mostly do not take wait; and it waits for those who have.
static _Atomic(bool) pressed[GS_MAX_GPUS];
static _Atomic(uint32_t) under_way[GS_MAX_GPUS];

static bool press(unsigned gpu)
{
	for (int i = 0; i < YIELDS; i++) {
		if (!atomic_exchange(&pressed[gpu], true))
			return true;
		sched_yield();
	}
	return false;
}

static void wait_for_press(unsigned gpu)
{
	for (int i = 0; i < YIELDS && atomic_load(&pressed[gpu]); i++)
		sched_yield();
}

// wait_idle returns true if calls were under way and have ended.
static bool wait_idle(unsigned gpu)
{
	int i;

	if (!atomic_load(&under_way[gpu]))
		return false;
	for (i = 0; i < YIELDS && atomic_load(&under_way[gpu]); i++)
		sched_yield();
	return i < YIELDS;
}

// charge_anyhow is for a full GPU, after press.
static int charge_anyhow(unsigned gpu, uint64_t bytes, bool waited)
{
	int r = waited ? gs_ledger_charge(gpu, bytes) : -ENOMEM;

	if (r < 0 && gs_pools_trim(gpu))
		r = gs_ledger_charge(gpu, bytes);
	return r;
}

int gs_pools_charge(unsigned gpu, uint64_t bytes)
{
	bool mine;
	int r;

	if (!gs_pools_used() || bytes > gs_memory_limit(gpu) ||
	    (!atomic_load(&under_way[gpu]) && !gs_pools_may_give(gpu)))
		return -ENOMEM;
	mine = press(gpu);
	r = charge_anyhow(gpu, bytes, wait_idle(gpu));
	if (mine)
		atomic_store(&pressed[gpu], false);
	return r;
}

// ---- calls --------------------------------------------------------------------

static void join_locked(struct gs_pool_call *c, uint64_t charged)
{
	struct gs_pool *p = c->pool;

	c->charged = charged;
	c->alone = p->calls == 0 && !p->stale;
	c->known = p->known;
	c->answers = p->answers;
	p->charged += charged;
	p->coming += charged;
	p->calls++;
	if (c->claim)
		p->claimed = c->bound;
	atomic_fetch_add(&under_way[p->gpu], 1);
}

// claim lets the call go uncharged if a piece serves it.
static bool claim(struct gs_pool_call *c)
{
	struct gs_pool *p = c->pool;
	CUmemoryPool handle = NULL;
	uint64_t figure = 0;
	bool fits;

	if (p->kind != GS_POOL_DEVICE)
		return false;
	pthread_mutex_lock(&gs_pool_lock);
	fits = !p->calls && !p->unsure && gs_piece_fits(p, c->bytes, c->stream);
	if (fits) {
		c->claim = true;
		handle = p->handle;
		join_locked(c, 0);
	}
	pthread_mutex_unlock(&gs_pool_lock);
	if (!fits)
		return false;
	// What went away unseen took pieces with it.
	if (gs_pool_ask(p, handle, &figure) == GS_ANSWER_FIGURE && figure >= c->known)
		return true;
	pthread_mutex_lock(&gs_pool_lock);
	p->npieces = 0;
	p->claimed = 0;
	p->calls--;
	c->claim = false;
	pthread_mutex_unlock(&gs_pool_lock);
	atomic_fetch_sub(&under_way[p->gpu], 1);
	return false;
}

// join begins a call that is charged. It returns false if a call that is not charged
// is under way, and this one, being given the other's piece, could make it grow by
// more than the charge.
static bool join(struct gs_pool_call *c, uint64_t charged)
{
	struct gs_pool *p = c->pool;
	bool ok;

	pthread_mutex_lock(&gs_pool_lock);
	ok = p->claimed <= charged;
	if (ok)
		join_locked(c, charged);
	pthread_mutex_unlock(&gs_pool_lock);
	return ok;
}

static uint64_t claimed_of(struct gs_pool *p)
{
	uint64_t bytes;

	pthread_mutex_lock(&gs_pool_lock);
	bytes = p->claimed;
	pthread_mutex_unlock(&gs_pool_lock);
	return bytes;
}

// need is what must be charged for a call: see join.
static uint64_t need(const struct gs_pool_call *c)
{
	uint64_t other = claimed_of(c->pool);

	return c->bound > other ? c->bound : other;
}

// wait_need is need once the claim that makes it more than the bound has ended.
static uint64_t wait_need(const struct gs_pool_call *c)
{
	uint64_t bytes = need(c);

	for (int i = 0; i < YIELDS && bytes > c->bound; i++) {
		sched_yield();
		bytes = need(c);
	}
	return bytes;
}

static int charge_under_pressure(struct gs_pool_call *c, uint64_t bytes, bool waited)
{
	unsigned gpu = c->pool->gpu;
	int r = charge_anyhow(gpu, bytes, waited);

	return r < 0 && gs_guess_wait(gpu) ? gs_ledger_charge(gpu, bytes) : r;
}

static int enter_under_pressure(struct gs_pool_call *c)
{
	unsigned gpu = c->pool->gpu;
	bool mine = press(gpu), waited = wait_idle(gpu);
	int r = -ENOMEM;

	for (int i = 0; i < YIELDS; i++) {
		uint64_t bytes;

		r = 0;
		if (claim(c))
			break;
		bytes = wait_need(c);
		r = charge_under_pressure(c, bytes, waited || i);
		if (r < 0 || join(c, bytes))
			break;
		gs_ledger_refund(gpu, bytes);
		r = -ENOMEM;
	}
	if (mine)
		atomic_store(&pressed[gpu], false);
	if (r < 0)
		gs_ledger_denied(gpu, c->bytes);
	return r;
}

int gs_pool_enter(struct gs_pool_call *call)
{
	struct gs_pool *p = call->pool;

	call->claim = false;
	if (call->bytes > gs_memory_limit(p->gpu)) {
		gs_ledger_denied(p->gpu, call->bytes);
		return -ENOMEM;
	}
	for (int i = 0;; i++) {
		uint64_t charged = need(call);

		wait_for_press(p->gpu);
		if (claim(call))
			return 0;
		if (i > YIELDS || call->bound > gs_memory_limit(p->gpu) || gs_ledger_charge(p->gpu, charged) < 0)
			return enter_under_pressure(call);
		if (join(call, charged))
			return 0;
		gs_ledger_refund(p->gpu, charged);
		sched_yield();
	}
}

bool gs_pool_enter_sure(struct gs_pool_call *call, uint32_t epoch)
{
	struct gs_pool *p = call->pool;

	pthread_mutex_lock(&gs_pool_lock);
	call->claim = epoch && !p->calls && p->epoch == epoch;
	if (call->claim)
		join_locked(call, 0);
	pthread_mutex_unlock(&gs_pool_lock);
	return call->claim;
}

// ---- afterwards ---------------------------------------------------------------

// lower returns what of a pool's charge the driver's figure does not need. What the
// calls under way can add stays. The lock is held.
static uint64_t lower_locked(struct gs_pool *p, uint64_t figure, uint64_t others)
{
	uint64_t want = figure + others, less;

	if (p->claimed || p->charged <= want)
		return 0;
	less = p->charged - want;
	p->charged = want;
	return less;
}

// shortage charges what the driver took beyond the charge. It returns 0, or -ENOMEM.
static int shortage(struct gs_pool *p, uint64_t more, bool undoable)
{
	int r = gs_ledger_charge(p->gpu, more);

	if (r < 0)
		r = charge_anyhow(p->gpu, more, false);
	if (r < 0 && undoable)
		return r;
	if (r < 0)
		gs_ledger_add(p->gpu, more); // the driver has it
	pthread_mutex_lock(&gs_pool_lock);
	p->charged += more;
	pthread_mutex_unlock(&gs_pool_lock);
	return 0;
}

// ended is what a call that was alone tells of how the pool grows. The lock is held.
static void ended_locked(struct gs_pool_call *c, CUdeviceptr ptr, uint64_t figure)
{
	struct gs_pool *p = c->pool;
	uint64_t grown = figure > c->known ? figure - c->known : 0;

	if (grown && p->kind == GS_POOL_DEVICE && !p->capped)
		gs_pool_learn(p->gpu, c->bytes, grown);
	if (grown && c->claim)
		p->unsure = true;
	// The rest of a new block.
	if (grown > c->bytes && p->kind == GS_POOL_DEVICE && gs_pool_steps(p->gpu))
		gs_piece_add(p, ptr + c->bytes, grown - c->bytes, GS_STREAM_ANY);
}

// given_locked keeps the pieces true. What was not given out of them, nor grown for, may
// stand in for a block that another thread's wait or trim gave back unseen: the figure is
// what it was, and the pieces in that block are gone. The lock is held.
static void given_locked(struct gs_pool_call *c, CUdeviceptr ptr, bool alone, uint64_t figure)
{
	struct gs_pool *p = c->pool;
	bool grown = alone && !p->capped && figure > c->known && figure - c->known >= c->bytes;

	if (gs_piece_cut(p, ptr, c->bytes) < c->bytes && !grown)
		p->npieces = 0;
	if (alone)
		ended_locked(c, ptr, figure);
}

int gs_pool_leave(struct gs_pool_call *call, CUdeviceptr ptr, bool undoable)
{
	struct gs_pool *p = call->pool;
	uint64_t figure, less = 0;

	for (int i = 0;; i++) {
		uint64_t more = 0;
		CUmemoryPool handle;
		enum gs_answer answer;
		uint32_t answers;
		bool told, alone;

		pthread_mutex_lock(&gs_pool_lock);
		answers = p->answers;
		handle = p->handle;
		pthread_mutex_unlock(&gs_pool_lock);
		answer = gs_pool_ask(p, handle, &figure);
		pthread_mutex_lock(&gs_pool_lock);
		told = answer != GS_ANSWER_NONE;
		if (answer == GS_ANSWER_NEVER)
			figure = stand_in(p, ptr || p->kind == GS_POOL_GRAPH ? call->bytes : 0);
		if (told && p->answers != answers && i < ASKS) {
			pthread_mutex_unlock(&gs_pool_lock);
			continue;
		}
		if (told && figure > p->charged)
			more = figure - p->charged;
		if (!more) {
			p->calls--;
			p->coming -= call->charged;
			if (call->claim)
				p->claimed = 0;
			if (ptr) {
				p->live += call->bytes;
				p->granted++;
			}
			told = told && p->answers == answers;
			alone = told && call->alone && !p->calls && answers == call->answers;
			if (ptr)
				given_locked(call, ptr, answer == GS_ANSWER_FIGURE && alone, figure);
			if (told) {
				less = lower_locked(p, figure, p->coming);
				note_figure(p, figure);
			} else {
				p->stale = true;
			}
			if (p->kind == GS_POOL_GRAPH)
				call->epoch = gs_pool_next_epoch(p);
			if (!alone)
				call->epoch = 0;
			p->answers++;
		}
		pthread_mutex_unlock(&gs_pool_lock);
		if (!more)
			break;
		if (shortage(p, more, undoable) < 0) {
			pthread_mutex_lock(&gs_pool_lock);
			if (call->alone && p->calls == 1 && !p->capped && p->kind == GS_POOL_DEVICE &&
			    p->answers == call->answers)
				gs_pool_learn(p->gpu, call->bytes, figure > call->known ? figure - call->known : 0);
			p->unsure |= call->claim;
			pthread_mutex_unlock(&gs_pool_lock);
			return -ENOMEM;
		}
	}
	atomic_fetch_sub(&under_way[p->gpu], 1);
	if (less)
		gs_ledger_refund(p->gpu, less);
	return 0;
}

void gs_pool_settle(struct gs_pool *pool)
{
	uint64_t figure, less = 0, more = 0;
	CUmemoryPool handle;
	enum gs_answer answer;
	uint32_t answers;
	bool told;

	for (int i = 0; i < ASKS; i++) {
		pthread_mutex_lock(&gs_pool_lock);
		answers = pool->answers;
		handle = pool->handle;
		pool->users++;
		pthread_mutex_unlock(&gs_pool_lock);
		answer = gs_pool_ask(pool, handle, &figure);
		pthread_mutex_lock(&gs_pool_lock);
		pool->users--;
		told = answer != GS_ANSWER_NONE;
		if (answer == GS_ANSWER_NEVER)
			figure = pool->kind == GS_POOL_GRAPH ? 0 : pool->live; // it was trimmed
		if (!told || (pool->answers != answers && i < ASKS - 1)) {
			pthread_mutex_unlock(&gs_pool_lock);
			if (told)
				continue;
			return;
		}
		if (pool->answers == answers) {
			less = lower_locked(pool, figure, pool->coming);
			if (figure > pool->charged) {
				more = figure - pool->charged;
				pool->charged += more;
			}
			note_figure(pool, figure);
			pool->answers++;
		}
		pthread_mutex_unlock(&gs_pool_lock);
		break;
	}
	if (more)
		gs_ledger_add(pool->gpu, more); // grown by a way that is not watched
	if (less)
		gs_ledger_refund(pool->gpu, less);
}

void gs_pool_moved_call(unsigned from, unsigned to, bool gone)
{
	if (!gone)
		atomic_fetch_add(&under_way[to], 1);
	atomic_fetch_sub(&under_way[from], 1);
}

void gs_pools_forked(void)
{
	gs_pool_table_forked();
	for (unsigned i = 0; i < GS_MAX_GPUS; i++) {
		atomic_store(&pressed[i], false);
		atomic_store(&under_way[i], 0);
	}
}
