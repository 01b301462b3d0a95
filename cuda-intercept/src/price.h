// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What a launch costs: GPU time by shape, learned from samples.
//
// A sample is the time between two events around one launch. It is clean when
// nobody else could use the GPU in between; then it is the launch's own time.
// Otherwise it is wall time, which also holds the neighbours' slices, and only
// bounds the price from above.
//
// The table is fixed storage of GS_PRICE_ENTRIES shapes in sets of GS_PRICE_WAYS.
// Readers take no lock: a sequence number tells them of a replaced entry. A set
// that is full gives up the shape that was not used for longest.

#ifndef GS_PRICE_H
#define GS_PRICE_H

#include <stdbool.h>
#include <stdint.h>

#include "gate.h"

#define GS_PRICE_ENTRIES 4096u
#define GS_PRICE_WAYS 8u
// Clean samples kept, and the number that settles a price whatever their spread.
#define GS_PRICE_SAMPLES 8
// Samples in a row that must agree, to 1/50 and a grain; two of launches that take
// GS_PRICE_LONG_NS and more, since a window holds few of those.
#define GS_PRICE_AGREE 4
#define GS_PRICE_LONG_NS 2000000ULL
#define GS_PRICE_GRAIN_NS 1000
// Busy samples of which the lowest counts, and the price up to which that is
// the launch's own time: it fits into one time slice of the GPU.
#define GS_PRICE_PROBES 8
#define GS_PRICE_SHORT_NS 500000ULL
// A price is measured again after this long, and then ever more rarely while the
// new one agrees.
#define GS_PRICE_FRESH_MIN_NS 5000000000ULL
#define GS_PRICE_FRESH_MAX_NS 60000000000ULL

// The part that every launch reads: one cache line.
struct gs_price_entry {
	uint32_t seq; // even: valid (0: empty), odd: being replaced
	uint32_t lock; // guards the history; 1 while taken
	uint64_t key[5];
	uint64_t price_ns; // 0: not priced
	uint64_t used_ns; // last look-up by gs_price_get
} __attribute__((aligned(64)));

// The samples behind a price, guarded by the entry's lock.
struct gs_price_history {
	uint64_t clean_ns[GS_PRICE_SAMPLES];
	uint64_t wall_ns;	// last sample of any kind
	uint64_t charged_ns;	// charged by wall time so far
	uint64_t stale_ns;	// when to measure again
	uint64_t fresh_ns;	// for how long the next price will count as fresh
	uint32_t charged_count; // launches in charged_ns
	uint32_t seen;		// look-ups by gs_price_get, saturating
	uint64_t probe_ns;	// lowest busy sample of this round
	uint64_t floor_ns;	// that of the first round under this price; 0: not yet
	uint16_t clean_count;	// in this round
	uint16_t low_count;	// unclean samples in a row well below the price
	uint16_t probe_count;	// in this round
};

struct gs_price_table {
	struct gs_price_entry entry[GS_PRICE_ENTRIES];
	struct gs_price_history history[GS_PRICE_ENTRIES];
};

// A reference that stays harmless when the entry is replaced.
struct gs_price_ref {
	uint32_t index;
	uint32_t seq; // 0: no entry
};

// What gs_price_get says of a shape.
struct gs_price_view {
	struct gs_price_ref ref;
	uint64_t price_ns; // 0: not priced
	uint64_t wall_ns;  // last wall time; 0: never finished
	uint32_t seen;	   // launches seen by the slow path
	bool wanted;	   // a clean sample is wanted
};

// What a sample changed.
struct gs_price_change {
	bool settled;	   // the shape has its (new) price
	bool first;	   // and had none before
	uint64_t price_ns; // the price now; 0: none
	// With first: what was charged by wall time too much (negative: too little).
	int64_t refund_ns;
};

static inline uint64_t gs_price_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint32_t gs_price_set(const uint64_t key[5])
{
	uint64_t h = gs_price_fold(key[0] ^ 0x9e3779b97f4a7c15ULL, key[1] ^ 0xbf58476d1ce4e5b9ULL) ^
		     gs_price_fold(key[2] ^ 0x94d049bb133111ebULL, key[3] ^ 0xd6e8feb86659fd93ULL) ^
		     gs_price_fold(key[4] ^ 0xa0761d6478bd642fULL, key[0] ^ 0xe7037ed1a0b428dbULL);

	h ^= h >> 32;
	return (uint32_t)h & (GS_PRICE_ENTRIES - GS_PRICE_WAYS);
}

// gs_price_find returns the price in ns of a shape, 0 if it has none. It takes no
// lock and writes nothing.
static inline uint64_t gs_price_find(const struct gs_price_table *table,
				     const struct gs_gate_shape *shape)
{
	uint64_t key[5];
	const struct gs_price_entry *e;

	_Static_assert(sizeof(*shape) == sizeof(key), "a shape is its own key");
	__builtin_memcpy(key, shape, sizeof(key));
	e = &table->entry[gs_price_set(key)];
	for (uint32_t way = 0; way < GS_PRICE_WAYS; way++, e++) {
		uint32_t seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE);
		uint64_t differ = 0, price;

		if (seq == 0)
			return 0;
		for (int i = 0; i < 5; i++)
			differ |= __atomic_load_n(&e->key[i], __ATOMIC_RELAXED) ^ key[i];
		if (differ)
			continue;
		price = __atomic_load_n(&e->price_ns, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__builtin_expect((seq & 1) || __atomic_load_n(&e->seq, __ATOMIC_RELAXED) != seq, 0))
			return 0; // replaced under our eyes: the slow path sorts it out
		return price;
	}
	return 0;
}

// gs_price_get finds a shape or makes room for it. Its ref has seq 0 if neither
// was possible just now.
void gs_price_get(struct gs_price_table *table, const struct gs_gate_shape *shape, uint64_t now_ns,
		  struct gs_price_view *ret_view);

// gs_price_again brings a view up to date without counting a launch.
void gs_price_again(const struct gs_price_table *table, uint64_t now_ns, struct gs_price_view *view);

// What a sample is worth.
enum gs_price_kind {
	GS_PRICE_WALL, // anything may be in it
	GS_PRICE_BUSY, // wall time behind the process's own work: it began on the engine
	GS_PRICE_CLEAN,
};

// gs_price_observe takes in one sample. charged_ns is what the launch was charged
// by wall time; GS_PRICE_CHARGED if it was charged by price.
#define GS_PRICE_CHARGED UINT64_MAX
void gs_price_observe(struct gs_price_table *table, struct gs_price_ref ref, uint64_t sample_ns,
		      enum gs_price_kind kind, uint64_t charged_ns, uint64_t now_ns,
		      struct gs_price_change *ret_change);

// gs_price_reset_locks frees the locks that other threads held in the parent of a
// forked child.
void gs_price_reset_locks(struct gs_price_table *table);

#endif
