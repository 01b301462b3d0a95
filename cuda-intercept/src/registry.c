// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "registry.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define SHARDS 16
#define FIRST_CAPACITY 128

// An open-addressing table with linear probing; a removal shifts entries back,
// so there are no tombstones.
struct shard {
	pthread_mutex_t lock;
	struct gs_entry *entries;
	uint64_t capacity; // a power of two, 0 before the first entry
	uint64_t count;
} __attribute__((aligned(64)));

static struct shard shards[SHARDS];

static uint64_t hash(enum gs_kind kind, uint64_t key)
{
	uint64_t h = key ^ (uint64_t)kind << 58;

	h ^= h >> 31;
	h *= 0x9e3779b97f4a7c15U;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9U;
	return h ^ h >> 32;
}

static struct shard *shard_of(uint64_t h)
{
	return &shards[h % SHARDS];
}

static uint64_t home(const struct shard *s, uint64_t h)
{
	return (h / SHARDS) & (s->capacity - 1);
}

// seek returns the entry's place, or the free place where it would go.
static struct gs_entry *seek(struct shard *s, enum gs_kind kind, uint64_t key, uint64_t h)
{
	for (uint64_t i = home(s, h);; i = (i + 1) & (s->capacity - 1)) {
		struct gs_entry *e = &s->entries[i];

		if (e->kind == GS_KIND_NONE || (e->kind == kind && e->key == key))
			return e;
	}
}

static void *map(uint64_t bytes)
{
	int saved = errno;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = saved;
	return p == MAP_FAILED ? NULL : p;
}

// grow keeps at least a third of the places free.
static int grow(struct shard *s)
{
	struct shard bigger = {.capacity = s->capacity ? 2 * s->capacity : FIRST_CAPACITY};

	if (3 * (s->count + 1) <= 2 * s->capacity)
		return 0;
	bigger.entries = map(bigger.capacity * sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	for (uint64_t i = 0; i < s->capacity; i++) {
		const struct gs_entry *e = &s->entries[i];

		if (e->kind != GS_KIND_NONE)
			*seek(&bigger, e->kind, e->key, hash(e->kind, e->key)) = *e;
	}
	if (s->entries)
		munmap(s->entries, s->capacity * sizeof(*s->entries));
	s->entries = bigger.entries;
	s->capacity = bigger.capacity;
	return 0;
}

static void drop(struct shard *s, struct gs_entry *gone)
{
	uint64_t mask = s->capacity - 1, hole = (uint64_t)(gone - s->entries);

	for (uint64_t i = (hole + 1) & mask; s->entries[i].kind != GS_KIND_NONE; i = (i + 1) & mask) {
		const struct gs_entry *e = &s->entries[i];
		uint64_t want = home(s, hash(e->kind, e->key));

		// Move e into the hole unless its home lies behind the hole.
		if (((i - want) & mask) >= ((i - hole) & mask)) {
			s->entries[hole] = *e;
			hole = i;
		}
	}
	s->entries[hole].kind = GS_KIND_NONE;
	s->count--;
}

int gs_registry_put(const struct gs_entry *entry, struct gs_entry *ret_old)
{
	uint64_t h = hash(entry->kind, entry->key);
	struct shard *s = shard_of(h);
	struct gs_entry *place;
	int r;

	pthread_mutex_lock(&s->lock);
	r = grow(s);
	if (r == 0) {
		place = seek(s, entry->kind, entry->key, h);
		*ret_old = *place;
		s->count += place->kind == GS_KIND_NONE;
		*place = *entry;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

int gs_registry_add(const struct gs_entry *entry)
{
	uint64_t h = hash(entry->kind, entry->key);
	struct shard *s = shard_of(h);
	struct gs_entry *place;
	int r;

	pthread_mutex_lock(&s->lock);
	r = grow(s);
	if (r == 0) {
		place = seek(s, entry->kind, entry->key, h);
		r = place->kind != GS_KIND_NONE;
		if (!r) {
			*place = *entry;
			s->count++;
		}
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

// look finds an entry and changes its references by n; with take, or when they
// come to 0, it removes it.
static bool look(enum gs_kind kind, uint64_t key, bool take, int n, struct gs_entry *ret_entry)
{
	uint64_t h = hash(kind, key);
	struct shard *s = shard_of(h);
	struct gs_entry *place = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->capacity)
		place = seek(s, kind, key, h);
	if (place && place->kind == GS_KIND_NONE)
		place = NULL;
	if (place) {
		place->refs += (uint32_t)n;
		*ret_entry = *place;
		if (take || (n && !place->refs))
			drop(s, place);
	}
	pthread_mutex_unlock(&s->lock);
	return place != NULL;
}

bool gs_registry_get(enum gs_kind kind, uint64_t key, struct gs_entry *ret_entry)
{
	return look(kind, key, false, 0, ret_entry);
}

bool gs_registry_take(enum gs_kind kind, uint64_t key, struct gs_entry *ret_entry)
{
	return look(kind, key, true, 0, ret_entry);
}

bool gs_registry_ref(enum gs_kind kind, uint64_t key, int n, struct gs_entry *ret_entry)
{
	return look(kind, key, false, n, ret_entry);
}

// with returns an entry's place with its shard locked, or NULL with nothing locked.
static struct gs_entry *with(enum gs_kind kind, uint64_t key, struct shard **ret_shard)
{
	uint64_t h = hash(kind, key);
	struct shard *s = shard_of(h);
	struct gs_entry *place = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->capacity)
		place = seek(s, kind, key, h);
	if (place && place->kind != GS_KIND_NONE) {
		*ret_shard = s;
		return place;
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

bool gs_registry_share(enum gs_kind kind, uint64_t key, uint16_t from, uint16_t to)
{
	struct shard *s;
	struct gs_entry *place = with(kind, key, &s);
	bool ok;

	if (!place)
		return false;
	ok = place->share == from;
	if (ok)
		place->share = to;
	pthread_mutex_unlock(&s->lock);
	return ok;
}

bool gs_registry_resize(enum gs_kind kind, uint64_t key, uint64_t bytes)
{
	struct shard *s;
	struct gs_entry *place = with(kind, key, &s);

	if (!place)
		return false;
	place->bytes = bytes;
	pthread_mutex_unlock(&s->lock);
	return true;
}

static bool owned(const struct gs_entry *e, uint32_t ctx)
{
	// Of a binding, ctx is another owner.
	return e->kind != GS_KIND_NONE && e->kind != GS_KIND_CONTEXT && e->kind != GS_KIND_BINDING &&
	       e->kind != GS_KIND_ENDPOINT && e->ctx == ctx;
}

// take_owned removes up to BATCH entries that ctx owns from a shard.
#define BATCH 32

static unsigned take_owned(struct shard *s, uint32_t ctx, struct gs_entry *ret_taken)
{
	unsigned n = 0;

	pthread_mutex_lock(&s->lock);
	for (uint64_t j = 0; j < s->capacity && n < BATCH;) {
		struct gs_entry *e = &s->entries[j];

		if (!owned(e, ctx)) {
			j++;
			continue;
		}
		ret_taken[n++] = *e;
		drop(s, e); // may bring another entry to this place
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}

void gs_registry_drain(uint32_t ctx, gs_gone *gone)
{
	struct gs_entry taken[BATCH];
	unsigned n;

	for (int i = 0; i < SHARDS; i++) {
		do {
			n = take_owned(&shards[i], ctx, taken);
			for (unsigned k = 0; k < n; k++)
				gone(&taken[k]);
		} while (n == BATCH);
	}
}

void gs_registry_adopt(uint32_t from, uint32_t to)
{
	for (int i = 0; i < SHARDS; i++) {
		struct shard *s = &shards[i];

		pthread_mutex_lock(&s->lock);
		for (uint64_t j = 0; j < s->capacity; j++)
			if (owned(&s->entries[j], from))
				s->entries[j].ctx = to;
		pthread_mutex_unlock(&s->lock);
	}
}

bool gs_registry_find(gs_match *match, uint64_t arg, struct gs_entry *ret_entry)
{
	bool found = false;

	for (int i = 0; i < SHARDS && !found; i++) {
		struct shard *s = &shards[i];

		pthread_mutex_lock(&s->lock);
		for (uint64_t j = 0; j < s->capacity && !found; j++) {
			found = s->entries[j].kind != GS_KIND_NONE && match(&s->entries[j], arg);
			if (found)
				*ret_entry = s->entries[j];
		}
		pthread_mutex_unlock(&s->lock);
	}
	return found;
}

void gs_registry_forked(void)
{
	// A thread that does not exist here may have held a lock, its shard half
	// changed. The tables belong to the parent's handles; leave them mapped.
	memset(shards, 0, sizeof(shards));
}
