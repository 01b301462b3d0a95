// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "block.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "attach.h"
#include "grant.h"
#include "ledger.h"

#define BUCKETS 4096
#define GRANULES 4096 // of a block, at most
#define WORDS (GRANULES / 64)
#define YIELDS 4000 // for a call that has charged nothing
#define NEWEST 8 // blocks that are looked at before one is charged
#define UNIT_MIN (64ULL << 10)
#define UNIT_MAX (1ULL << 30)

struct gs_block {
	uint64_t number;       // address / unit
	struct gs_block *next; // of its bucket, or of the free ones
	struct gs_block *newer, *older;
	uint32_t ctx;
	uint32_t refs;	   // parts, and calls that count on room in it
	uint32_t reserved; // granules promised to such calls
	uint32_t high;	   // one more than the highest granule ever used
	uint32_t run;	   // longest run of free granules, if known
	uint8_t gpu;
	bool run_known;
	bool doubt; // the driver has not used room that was there
	uint64_t used[WORDS];
	// Used twice, and three times: the driver gives freed memory away again before
	// its last user has said here that it is free.
	uint64_t twice[WORDS], thrice[WORDS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gs_block *buckets[BUCKETS], *newest, *spare;
static _Atomic(uint64_t) units[GS_MAX_GPUS];

// Per GPU: no block has a longer run of free granules than that.
static uint32_t longest[GS_MAX_GPUS];

// Calls under way that have charged nothing, and blocks that others charged which
// may have taken the room of one of those: theirs until the last of them is back.
static uint32_t uncharged[GS_MAX_GPUS], credit[GS_MAX_GPUS];

uint64_t gs_block_unit(unsigned gpu)
{
	uint64_t unit = atomic_load_explicit(&units[gpu], memory_order_relaxed), none = 0;

	if (unit)
		return unit;
	unit = __atomic_load_n(&gs_self.limits->gpu[gpu].block_bytes, __ATOMIC_RELAXED);
	if (unit < UNIT_MIN || unit > UNIT_MAX || unit & (unit - 1))
		return GS_CHARGE_GRANULE; // not known yet
	// For good: blocks are known by their numbers.
	return atomic_compare_exchange_strong(&units[gpu], &none, unit) ? unit : none;
}

uint64_t gs_whole_blocks(unsigned gpu, uint64_t bytes)
{
	uint64_t unit = gs_block_unit(gpu), up;

	return __builtin_add_overflow(bytes, unit - 1, &up) ? UINT64_MAX : up & ~(unit - 1);
}

static uint64_t granule_of(uint64_t unit)
{
	return unit / GRANULES > GS_CHARGE_GRANULE ? unit / GRANULES : GS_CHARGE_GRANULE;
}

static uint32_t granules(unsigned gpu, uint64_t bytes)
{
	uint64_t g = granule_of(gs_block_unit(gpu));

	return (uint32_t)((bytes + g - 1) / g);
}

static uint32_t all_granules(unsigned gpu)
{
	uint64_t unit = gs_block_unit(gpu);

	return (uint32_t)(unit / granule_of(unit));
}

// ---- room: the lock is held ---------------------------------------------------

static void mark(struct gs_block *b, uint64_t address, uint64_t bytes, bool use)
{
	uint64_t unit = gs_block_unit(b->gpu), g = granule_of(unit), offset = address & (unit - 1);
	uint32_t at = (uint32_t)(offset / g), to = (uint32_t)((offset + bytes + g - 1) / g);

	if (to > unit / g)
		to = (uint32_t)(unit / g);
	if (use && to > b->high)
		b->high = to;
	while (at < to) {
		uint32_t n = 64 - at % 64 < to - at ? 64 - at % 64 : to - at;
		uint64_t bits = (n == 64 ? UINT64_MAX : (1ULL << n) - 1) << at % 64;

		if (use) {
			b->thrice[at / 64] |= b->twice[at / 64] & bits;
			b->twice[at / 64] |= b->used[at / 64] & bits;
			b->used[at / 64] |= bits;
		} else {
			b->used[at / 64] = (b->used[at / 64] & ~bits) | (b->twice[at / 64] & bits);
			b->twice[at / 64] = (b->twice[at / 64] & ~bits) | (b->thrice[at / 64] & bits);
			b->thrice[at / 64] &= ~bits;
		}
		at += n;
	}
	b->run_known = false;
	if (!use) {
		b->doubt = false;
		longest[b->gpu] = UINT32_MAX;
	}
}

static uint32_t run_of(struct gs_block *b)
{
	uint32_t run = 0, best = 0, words = all_granules(b->gpu) / 64;

	if (b->run_known)
		return b->run;
	for (uint32_t w = 0; w < words; w++) {
		for (unsigned at = 0; at < 64;) {
			uint64_t rest = b->used[w] >> at;
			unsigned n = rest ? (unsigned)__builtin_ctzll(rest) : 64 - at;

			run += n;
			at += n;
			best = run > best ? run : best;
			if (at == 64)
				break;
			rest = ~(b->used[w] >> at);
			at += rest ? (unsigned)__builtin_ctzll(rest) : 64;
			run = 0;
		}
	}
	b->run = best;
	b->run_known = true;
	return best;
}

// Into a run that is long enough for all, whatever order the driver has them in.
static bool has_room(struct gs_block *b, uint32_t n)
{
	if (b->doubt)
		return false;
	return all_granules(b->gpu) - b->high >= b->reserved + n || run_of(b) >= b->reserved + n;
}

// search returns a block of the part's context with room for n granules; all:
// not only among the newest.
static struct gs_block *search(const struct gs_part *part, uint32_t n, bool all)
{
	unsigned left = all ? UINT32_MAX : NEWEST;
	uint32_t best = 0;

	if (n > longest[part->gpu])
		return NULL;
	for (struct gs_block *b = newest; b && left; b = b->older, left--) {
		if (b->gpu != part->gpu)
			continue;
		if (b->ctx == part->ctx && has_room(b, n))
			return b;
		if (all && run_of(b) > best)
			best = run_of(b);
	}
	if (all)
		longest[part->gpu] = best;
	return NULL;
}

// pin promises the part room in a block; one call at a time, for the driver may open a
// block all the same. all: the GPU is full, so it is worth to wait for the other.
static bool pin(struct gs_part *part, bool all)
{
	uint32_t n = granules(part->gpu, part->bytes);
	struct gs_block *b;

	pthread_mutex_lock(&lock);
	for (int i = 0; all && uncharged[part->gpu] && i < YIELDS; i++) {
		pthread_mutex_unlock(&lock);
		sched_yield();
		pthread_mutex_lock(&lock);
	}
	b = uncharged[part->gpu] ? NULL : search(part, n, all);
	if (b) {
		b->refs++;
		b->reserved += n;
		uncharged[part->gpu]++;
	}
	pthread_mutex_unlock(&lock);
	part->pin = b;
	return b != NULL;
}

// ---- blocks: the lock is held ---------------------------------------------------

static struct gs_block *find(uint64_t number)
{
	struct gs_block *b = buckets[number % BUCKETS];

	while (b && b->number != number)
		b = b->next;
	return b;
}

static bool more_spare(void)
{
	size_t n = (256U << 10) / sizeof(struct gs_block);
	int saved = errno;
	struct gs_block *all = mmap(NULL, n * sizeof(*all), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	if (all == MAP_FAILED)
		return false;
	for (size_t i = 0; i < n; i++) {
		all[i].next = spare;
		spare = &all[i];
	}
	return true;
}

static struct gs_block *open_block(const struct gs_part *part, uint64_t number)
{
	struct gs_block *b, **bucket = &buckets[number % BUCKETS];

	if (!spare && !more_spare())
		return NULL;
	b = spare;
	spare = b->next;
	*b = (struct gs_block){.number = number, .next = *bucket, .older = newest, .ctx = part->ctx, .gpu = (uint8_t)part->gpu};
	*bucket = b;
	if (newest)
		newest->newer = b;
	newest = b;
	longest[part->gpu] = UINT32_MAX;
	return b;
}

static void close_block(struct gs_block *b)
{
	struct gs_block **at = &buckets[b->number % BUCKETS];

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	*(b->newer ? &b->newer->older : &newest) = b->older;
	if (b->older)
		b->older->newer = b->newer;
	b->next = spare;
	spare = b;
}

// What is to be given back once the lock is free.
struct back {
	uint64_t closed; // number of a block; 0: none
	uint64_t blocks;
};

static void unref(struct gs_block *b, struct back *back)
{
	if (--b->refs)
		return;
	back->closed = b->number;
	close_block(b);
}

static void unpin(const struct gs_part *part, struct back *back)
{
	part->pin->reserved -= granules(part->gpu, part->bytes);
	unref(part->pin, back);
	if (--uncharged[part->gpu])
		return;
	back->blocks += credit[part->gpu];
	credit[part->gpu] = 0;
}

static void give_back(unsigned gpu, const struct back *back)
{
	uint64_t unit = gs_block_unit(gpu);
	struct gs_entry e;

	if (back->blocks)
		gs_ledger_refund(gpu, back->blocks * unit);
	if (!back->closed)
		return;
	if (gs_registry_take(GS_KIND_BLOCK, back->closed * unit, &e))
		gs_entry_refund(&e);
	else
		gs_ledger_refund(gpu, unit); // opened anew at once; its entry went with the old one
}

// ---- parts --------------------------------------------------------------------

int gs_part_take(struct gs_part *part)
{
	uint64_t unit = gs_block_unit(part->gpu);

	part->charged = false;
	if (pin(part, false))
		return 0;
	part->charged = gs_ledger_charge(part->gpu, unit) == 0;
	if (part->charged || pin(part, true))
		return 0;
	part->charged = gs_charge(part->gpu, unit) == 0;
	return part->charged ? 0 : -ENOMEM;
}

// find_charge looks for the charge of a block that the driver has opened although
// the part counted on room in another one. The lock is held.
static void find_charge(struct gs_part *part, struct back *back)
{
	struct gs_block *b = part->pin;

	if (b->refs == 1) {
		unpin(part, back); // given up by the driver: its charge passes on
	} else if (credit[part->gpu]) {
		credit[part->gpu]--;
		unpin(part, back);
		part->charged = true;
	} else {
		b->doubt = true;
		return;
	}
	part->pin = NULL;
}

// pass_on makes a closed block's charge the part's.
static void pass_on(struct gs_part *part, struct back *back)
{
	struct gs_entry e;

	if (!back->closed)
		return;
	if (gs_registry_take(GS_KIND_BLOCK, back->closed * gs_block_unit(part->gpu), &e) && e.share)
		gs_entry_refund(&e); // charged elsewhere
	else
		part->charged = true;
	back->closed = 0;
}

int gs_part_settle(struct gs_part *part, uint64_t address)
{
	uint64_t unit = gs_block_unit(part->gpu), number = address / unit;
	struct gs_entry e = {.key = number * unit, .bytes = unit, .refs = 1, .gpu = (uint8_t)part->gpu, .kind = GS_KIND_BLOCK};
	struct back back = {0};
	struct gs_block *b;

	pthread_mutex_lock(&lock);
	b = find(number);
	if (!b) {
		if (!part->charged)
			find_charge(part, &back);
		pthread_mutex_unlock(&lock);
		pass_on(part, &back);
		if (!part->charged)
			part->charged = gs_charge(part->gpu, unit) == 0;
		gs_registry_add(&e); // without it the block cannot be shared, no more
		pthread_mutex_lock(&lock);
		b = find(number);
		if (!b && part->charged && (b = open_block(part, number)))
			part->charged = false;
	}
	if (b) {
		b->refs++;
		mark(b, address, part->bytes, true);
		if (part->pin)
			unpin(part, &back);
		if (part->charged && uncharged[part->gpu])
			credit[part->gpu]++; // it may have taken their room
		else if (part->charged)
			back.blocks++;
		part->pin = NULL;
		part->charged = false;
	}
	pthread_mutex_unlock(&lock);
	if (!b)
		gs_registry_take(GS_KIND_BLOCK, e.key, &e);
	give_back(part->gpu, &back);
	return b ? 0 : -ENOMEM;
}

void gs_part_undo(struct gs_part *part)
{
	struct back back = {.blocks = part->charged};

	pthread_mutex_lock(&lock);
	if (part->pin)
		unpin(part, &back);
	pthread_mutex_unlock(&lock);
	give_back(part->gpu, &back);
}

void gs_part_freed(unsigned gpu, uint64_t address, uint64_t bytes)
{
	struct back back = {0};
	struct gs_block *b;

	pthread_mutex_lock(&lock);
	b = find(address / gs_block_unit(gpu));
	if (b) {
		mark(b, address, bytes, false);
		unref(b, &back);
	}
	pthread_mutex_unlock(&lock);
	give_back(gpu, &back);
}

bool gs_block_find(uint64_t address, struct gs_entry *ret_entry)
{
	for (unsigned gpu = 0; gpu < gs_self.gpus; gpu++) {
		uint64_t unit = gs_block_unit(gpu);
		struct gs_block *b;

		pthread_mutex_lock(&lock);
		b = find(address / unit);
		if (b && b->gpu != gpu)
			b = NULL;
		pthread_mutex_unlock(&lock);
		if (b)
			return gs_registry_get(GS_KIND_BLOCK, address & ~(unit - 1), ret_entry);
	}
	return false;
}

void gs_blocks_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	memset(buckets, 0, sizeof(buckets));
	memset(longest, 0, sizeof(longest));
	memset(uncharged, 0, sizeof(uncharged));
	memset(credit, 0, sizeof(credit));
	newest = spare = NULL;
}
