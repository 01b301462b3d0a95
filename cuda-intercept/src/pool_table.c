// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "pool_table.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "registry.h"

#define CHUNK 64
#define CHUNKS 1024

pthread_mutex_t gs_pool_lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic(uint32_t) gs_pools_high;

// Places never move. What is beyond the last chunk is not known: see gs_pool_new.
static _Atomic(struct gs_pool *) chunks[CHUNKS];

struct gs_pool *gs_pool_at(uint32_t index)
{
	return atomic_load(&chunks[index / CHUNK]) + index % CHUNK;
}

static bool add_chunk(uint32_t i)
{
	int saved = errno;
	void *p = mmap(NULL, CHUNK * sizeof(struct gs_pool), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	if (p == MAP_FAILED)
		return false;
	atomic_store(&chunks[i], p);
	return true;
}

struct gs_pool *gs_pool_new(enum gs_pool_kind kind, CUmemoryPool handle, unsigned gpu)
{
	struct gs_pool *p = NULL;
	uint32_t high, i;

	pthread_mutex_lock(&gs_pool_lock);
	high = atomic_load(&gs_pools_high);
	for (i = 0; i < high && gs_pool_at(i)->kind != GS_POOL_NONE; i++)
		;
	if (i < high || (i < CHUNK * CHUNKS && (atomic_load(&chunks[i / CHUNK]) || add_chunk(i / CHUNK))))
		p = gs_pool_at(i);
	if (p) {
		*p = (struct gs_pool){.kind = kind, .handle = handle, .gpu = gpu, .index = i};
		if (i == high)
			atomic_store(&gs_pools_high, high + 1);
	}
	pthread_mutex_unlock(&gs_pool_lock);
	return p;
}

void gs_pool_drop(struct gs_pool *pool)
{
	pool->kind = GS_POOL_NONE;
	pool->handle = NULL;
}

static struct gs_pool *of_entry(const struct gs_entry *e)
{
	return gs_pool_at((uint32_t)e->link - 1);
}

struct gs_pool *gs_pool_find(CUmemoryPool handle)
{
	struct gs_entry e;

	return handle && gs_registry_get(GS_KIND_POOL, (uintptr_t)handle, &e) ? of_entry(&e) : NULL;
}

static void drop(struct gs_pool *p)
{
	pthread_mutex_lock(&gs_pool_lock);
	gs_pool_drop(p);
	pthread_mutex_unlock(&gs_pool_lock);
}

struct gs_pool *gs_pool_note(CUmemoryPool handle, enum gs_pool_kind kind, unsigned gpu, bool fresh)
{
	struct gs_entry old = {0}, e = {.key = (uintptr_t)handle, .kind = GS_KIND_POOL};
	struct gs_pool *gone, *p = gs_pool_new(kind, handle, gpu);
	int r;

	if (!p)
		return NULL;
	e.link = p->index + 1ULL;
	r = fresh ? gs_registry_put(&e, &old) : gs_registry_add(&e);
	if (r != 0) {
		drop(p);
		return r > 0 ? gs_pool_find(handle) : NULL;
	}
	if (old.kind != GS_KIND_NONE) {
		gone = of_entry(&old);
		pthread_mutex_lock(&gs_pool_lock);
		if (gone->handle == handle && gone != p) {
			gone->handle = NULL;
			gone->destroyed = true;
		}
		pthread_mutex_unlock(&gs_pool_lock);
	}
	return p;
}

void gs_pool_table_forked(void)
{
	// The chunks stay mapped; their pools are the parent's.
	atomic_store(&gs_pools_high, 0);
	gs_pool_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

// ---- pieces -------------------------------------------------------------------

void gs_piece_add(struct gs_pool *pool, uint64_t at, uint64_t bytes, uint64_t stream)
{
	struct gs_piece *least = &pool->pieces[0];

	if (!bytes)
		return;
	if (pool->npieces < GS_PIECES) {
		pool->pieces[pool->npieces++] = (struct gs_piece){at, bytes, stream};
		return;
	}
	for (uint32_t i = 1; i < GS_PIECES; i++)
		if (pool->pieces[i].bytes < least->bytes)
			least = &pool->pieces[i];
	if (least->bytes < bytes)
		*least = (struct gs_piece){at, bytes, stream};
}

uint64_t gs_piece_cut(struct gs_pool *pool, uint64_t at, uint64_t bytes)
{
	uint64_t end = at + bytes, cut = 0;

	for (uint32_t i = 0; i < pool->npieces;) {
		struct gs_piece was = pool->pieces[i];

		if (was.at >= end || was.at + was.bytes <= at) {
			i++;
			continue;
		}
		cut += (was.at + was.bytes < end ? was.at + was.bytes : end) - (was.at > at ? was.at : at);
		pool->pieces[i] = pool->pieces[--pool->npieces];
		if (was.at < at)
			gs_piece_add(pool, was.at, at - was.at, was.stream);
		if (was.at + was.bytes > end)
			gs_piece_add(pool, end, was.at + was.bytes - end, was.stream);
		i = 0; // the rests may lie anywhere; they do not overlap
	}
	return cut;
}

bool gs_piece_fits(const struct gs_pool *pool, uint64_t bytes, uint64_t stream)
{
	// The pieces are hints; that so much is free at all is not.
	if (pool->known < pool->live || pool->known - pool->live < bytes)
		return false;
	for (uint32_t i = 0; i < pool->npieces; i++) {
		const struct gs_piece *p = &pool->pieces[i];

		if (p->bytes >= bytes && ((p->stream == GS_STREAM_ANY && !pool->strict) ||
					  (p->stream == stream && stream != GS_STREAM_NONE)))
			return true;
	}
	return false;
}

void gs_piece_open(struct gs_pool *pool, uint64_t stream, bool all)
{
	for (uint32_t i = 0; i < pool->npieces; i++)
		if (all || (pool->pieces[i].stream == stream && stream < GS_STREAM_NONE))
			pool->pieces[i].stream = GS_STREAM_ANY;
}
