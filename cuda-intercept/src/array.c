// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Charging arrays. On a card those that are smaller than a block crowd into blocks of
// their context's; each crowd is charged for the blocks that it can occupy.

#include "array.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

#include "attach.h"
#include "crowd.h"
#include "grant.h"
#include "ledger.h"

// A crowd has the arrays of one context on one GPU.
struct group {
	struct gs_crowd crowd;
	struct group *next;
	uint32_t id; // the high half of its arrays' links
	uint32_t ctx;
	uint8_t gpu;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *groups, *spare;
static uint32_t last_id;

// ---- groups: the lock is held ---------------------------------------------------

static struct group *of_context(uint32_t ctx, unsigned gpu)
{
	struct group *g = groups;

	while (g && (g->ctx != ctx || g->gpu != gpu))
		g = g->next;
	return g;
}

static struct group *of_link(uint64_t link)
{
	struct group *g = groups;

	while (g && g->id != link >> 32)
		g = g->next;
	return g;
}

static bool more_spare(void)
{
	size_t n = 16384 / sizeof(struct group);
	int saved = errno;
	struct group *all = mmap(NULL, n * sizeof(*all), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	if (all == MAP_FAILED)
		return false;
	for (size_t i = 0; i < n; i++) {
		all[i].next = spare;
		spare = &all[i];
	}
	return true;
}

static struct group *group_for(uint32_t ctx, unsigned gpu)
{
	struct group *g = of_context(ctx, gpu);

	if (g || (!spare && !more_spare()))
		return g;
	g = spare;
	spare = g->next;
	*g = (struct group){.crowd = {.unit = gs_block_unit(gpu)}, .next = groups, .id = ++last_id, .ctx = ctx, .gpu = (uint8_t)gpu};
	groups = g;
	return g;
}

static void drop_if_empty(struct group *g)
{
	struct group **at = &groups;

	if (g->crowd.live)
		return;
	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	g->next = spare;
	spare = g;
}

// ---- arrays -------------------------------------------------------------------

// join charges the array's place in a crowd.
static int join(struct gs_array_grant *a)
{
	unsigned gpu = a->place.gpu;
	uint64_t unit = gs_block_unit(gpu);
	uint32_t need = 0, have = 0;
	struct group *g;

	for (;;) {
		pthread_mutex_lock(&lock);
		g = group_for(a->place.ctx, gpu);
		need = g ? gs_crowd_need(&g->crowd, a->bytes) : UINT32_MAX;
		if (g && need <= have)
			break;
		if (g)
			drop_if_empty(g);
		pthread_mutex_unlock(&lock);
		if (!g || gs_charge(gpu, (need - have) * unit) < 0) {
			gs_ledger_refund(gpu, have * unit);
			return -ENOMEM;
		}
		have = need; // others may have come meanwhile
	}
	a->link = (uint64_t)g->id << 32 | gs_crowd_make(&g->crowd, a->bytes, need);
	pthread_mutex_unlock(&lock);
	gs_ledger_refund(gpu, (have - need) * unit);
	return 0;
}

int gs_array_take(struct gs_array_grant *g, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	struct gs_array_size size = gs_array_measure(g->place.gpu, d, levels);
	uint64_t unit = gs_block_unit(g->place.gpu);

	g->link = 0;
	g->bytes = size.bytes;
	// What is told to be one block may be less.
	if (size.bytes && unit > GS_CHARGE_GRANULE && size.bytes <= unit - !size.told)
		return join(g);
	g->bytes = gs_whole_blocks(g->place.gpu, size.bytes);
	return gs_charge(g->place.gpu, g->bytes);
}

void gs_array_made(const struct gs_array_grant *a)
{
	uint32_t more = 0;
	struct group *g;

	if (!a->link)
		return;
	pthread_mutex_lock(&lock);
	g = of_link(a->link);
	if (g)
		more = gs_crowd_made(&g->crowd);
	pthread_mutex_unlock(&lock);
	if (more)
		gs_ledger_add(a->place.gpu, more * gs_block_unit(a->place.gpu));
}

// shrunk gives back the blocks that the group needed and does not any more.
static void shrunk(struct group *g, uint32_t before)
{
	uint32_t now = g->crowd.blocks;
	unsigned gpu = g->gpu;

	drop_if_empty(g);
	pthread_mutex_unlock(&lock);
	if (before > now)
		gs_ledger_refund(gpu, (before - now) * gs_block_unit(gpu));
}

void gs_array_failed(const struct gs_array_grant *a)
{
	struct group *g;
	uint32_t before;

	if (!a->link) {
		gs_ledger_refund(a->place.gpu, a->bytes);
		return;
	}
	pthread_mutex_lock(&lock);
	g = of_link(a->link);
	if (!g) {
		pthread_mutex_unlock(&lock);
		return;
	}
	before = g->crowd.blocks;
	gs_crowd_failed(&g->crowd, a->bytes);
	shrunk(g, before);
}

void gs_array_leaving(const struct gs_entry *entry)
{
	struct group *g;

	if (!entry->link)
		return;
	pthread_mutex_lock(&lock);
	g = of_link(entry->link);
	if (g)
		gs_crowd_leaving(&g->crowd);
	pthread_mutex_unlock(&lock);
}

void gs_array_left(const struct gs_entry *entry)
{
	struct group *g;
	uint32_t before;

	pthread_mutex_lock(&lock);
	g = of_link(entry->link);
	if (!g) {
		pthread_mutex_unlock(&lock);
		return;
	}
	before = g->crowd.blocks;
	gs_crowd_left(&g->crowd, (uint32_t)entry->link, entry->bytes);
	shrunk(g, before);
}

void gs_arrays_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	groups = spare = NULL;
}
