// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "price.h"

#include <string.h>

// A lock is held for some tens of instructions and never across a call: whoever
// cannot have it soon does without.
static bool entry_lock(struct gs_price_entry *e)
{
	for (int i = 0; i < 64; i++)
		if (!__atomic_exchange_n(&e->lock, 1, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

static void entry_unlock(struct gs_price_entry *e)
{
	__atomic_store_n(&e->lock, 0, __ATOMIC_RELEASE);
}

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static bool entry_is(const struct gs_price_entry *e, const uint64_t key[5])
{
	for (int i = 0; i < 5; i++)
		if (load(&e->key[i]) != key[i])
			return false;
	return true;
}

static bool entry_take(struct gs_price_entry *e, struct gs_price_history *h, uint32_t seq,
		       const uint64_t key[5])
{
	if (!entry_lock(e))
		return false;
	if (!__atomic_compare_exchange_n(&e->seq, &seq, seq | 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED)) {
		entry_unlock(e);
		return false;
	}
	store(&e->price_ns, 0);
	for (int i = 0; i < 5; i++)
		store(&e->key[i], key[i]);
	memset(h, 0, sizeof(*h));
	h->fresh_ns = GS_PRICE_FRESH_MIN_NS;
	seq += 2;
	__atomic_store_n(&e->seq, seq ? seq : 2, __ATOMIC_RELEASE);
	entry_unlock(e);
	return true;
}

// entry_find returns the index of the shape's entry, or makes one.
static bool entry_find(struct gs_price_table *table, const uint64_t key[5], uint32_t *ret_index)
{
	uint32_t set = gs_price_set(key);

	for (int attempt = 0; attempt < 4; attempt++) {
		uint32_t victim = set;
		uint64_t oldest = UINT64_MAX;

		for (uint32_t i = set; i < set + GS_PRICE_WAYS; i++) {
			const struct gs_price_entry *e = &table->entry[i];
			uint32_t seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE);

			if (seq == 0) {
				victim = i;
				break;
			}
			if (seq & 1)
				continue;
			if (entry_is(e, key)) {
				*ret_index = i;
				return true;
			}
			if (load(&e->used_ns) < oldest) {
				oldest = load(&e->used_ns);
				victim = i;
			}
		}
		if (entry_take(&table->entry[victim], &table->history[victim],
			       __atomic_load_n(&table->entry[victim].seq, __ATOMIC_ACQUIRE) & ~1u, key)) {
			*ret_index = victim;
			return true;
		}
	}
	return false;
}

void gs_price_get(struct gs_price_table *table, const struct gs_gate_shape *shape, uint64_t now_ns,
		  struct gs_price_view *ret_view)
{
	uint64_t key[5];
	uint32_t index;
	struct gs_price_entry *e;
	struct gs_price_history *h;

	memset(ret_view, 0, sizeof(*ret_view));
	ret_view->wanted = true;
	memcpy(key, shape, sizeof(key));
	if (!entry_find(table, key, &index))
		return;
	e = &table->entry[index];
	h = &table->history[index];
	ret_view->ref.index = index;
	ret_view->ref.seq = __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) & ~1u;
	ret_view->price_ns = load(&e->price_ns);
	ret_view->wall_ns = load(&h->wall_ns);
	store(&e->used_ns, now_ns);
	ret_view->seen = __atomic_load_n(&h->seen, __ATOMIC_RELAXED);
	if (ret_view->seen < UINT32_MAX)
		__atomic_store_n(&h->seen, ++ret_view->seen, __ATOMIC_RELAXED);
	ret_view->wanted = ret_view->price_ns == 0 || now_ns >= load(&h->stale_ns);
}

void gs_price_again(const struct gs_price_table *table, uint64_t now_ns, struct gs_price_view *view)
{
	const struct gs_price_entry *e = &table->entry[view->ref.index];
	const struct gs_price_history *h = &table->history[view->ref.index];

	if (view->ref.seq == 0 || __atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != view->ref.seq)
		return;
	view->price_ns = load(&e->price_ns);
	view->wall_ns = load(&h->wall_ns);
	view->wanted = view->price_ns == 0 || now_ns >= load(&h->stale_ns);
}

static uint64_t last_clean(const struct gs_price_history *h, uint32_t back)
{
	return h->clean_ns[(h->clean_count - 1 - back) % GS_PRICE_SAMPLES];
}

// What a sample holds beside the launch's own time (what a neighbour or another
// stream still had queued) wears off, so the newest samples count, and where they
// agree the lowest of them is right. Where they keep disagreeing the shape's time
// depends on its data, and the mean counts, without the highest.
static bool settle(const struct gs_price_history *h, uint64_t *ret_price_ns)
{
	uint64_t low = UINT64_MAX, high = 0, sum = 0;
	uint32_t need = last_clean(h, 0) >= GS_PRICE_LONG_NS ? 2 : GS_PRICE_AGREE;

	if (h->clean_count < need)
		return false;
	for (uint32_t i = 0; i < need; i++) {
		uint64_t v = last_clean(h, i);

		low = v < low ? v : low;
		high = v > high ? v : high;
	}
	*ret_price_ns = low;
	if (high - low <= low / 50 + GS_PRICE_GRAIN_NS)
		return true;
	if (h->clean_count < GS_PRICE_SAMPLES)
		return false;
	for (uint32_t i = 0; i < GS_PRICE_SAMPLES; i++) {
		sum += h->clean_ns[i];
		high = h->clean_ns[i] > high ? h->clean_ns[i] : high;
	}
	*ret_price_ns = (sum - high) / (GS_PRICE_SAMPLES - 1);
	return true;
}

// priced_first reports what was charged by wall time too much so far.
static void priced_first(struct gs_price_history *h, uint64_t price, struct gs_price_change *change)
{
	change->first = true;
	change->refund_ns = (int64_t)(h->charged_ns - (uint64_t)h->charged_count * price);
	h->charged_ns = h->charged_count = 0;
}

static void observe_clean(struct gs_price_entry *e, struct gs_price_history *h, uint64_t sample_ns,
			  uint64_t wall_ns, uint64_t now_ns, struct gs_price_change *change)
{
	uint64_t old = load(&e->price_ns), price;

	if (old && now_ns < load(&h->stale_ns))
		return; // launched before the price was settled
	h->clean_ns[h->clean_count % GS_PRICE_SAMPLES] = sample_ns;
	h->clean_count++;
	if (!settle(h, &price)) {
		// Windows are rare, and a long launch may see only one end in it. That
		// sample holds until there are two, unless wall time says less.
		if (!old && sample_ns >= GS_PRICE_LONG_NS) {
			price = wall_ns && wall_ns < sample_ns ? wall_ns : sample_ns;
			store(&e->price_ns, price);
			priced_first(h, price, change);
		}
		return;
	}
	if (price == 0)
		price = 1;
	if (old && price <= old + old / 20 && price >= old - old / 20) {
		h->fresh_ns *= 2;
		if (h->fresh_ns > GS_PRICE_FRESH_MAX_NS)
			h->fresh_ns = GS_PRICE_FRESH_MAX_NS;
	} else {
		h->fresh_ns = GS_PRICE_FRESH_MIN_NS;
	}
	h->clean_count = 0;
	h->floor_ns = 0;
	h->probe_count = 0;
	store(&h->stale_ns, now_ns + h->fresh_ns);
	store(&e->price_ns, price);
	change->settled = true;
	if (!old)
		priced_first(h, price, change);
}

// observe_wall looks for signs that a price is wrong: any sample below it proves it
// too high.
static void observe_wall(struct gs_price_history *h, uint64_t price, uint64_t sample_ns,
			 uint64_t now_ns)
{
	h->low_count = sample_ns < price - price / 10 ? h->low_count + 1 : 0;
	if (h->low_count < 3)
		return;
	h->low_count = 0;
	store(&h->stale_ns, now_ns);
}

// observe_busy looks for a price that has become too low. A sample that began on
// the engine holds neighbours' slices only if it was preempted. A launch that fits
// into a slice escapes that now and then, so the lowest of several samples is its
// time; a longer one meets it as often as before, so there the lowest is compared
// with what it was at first, and a window has to tell.
static void observe_busy(struct gs_price_entry *e, struct gs_price_history *h, uint64_t sample_ns,
			 uint64_t now_ns)
{
	uint64_t price = load(&e->price_ns), usual;

	if (h->probe_count == 0 || sample_ns < h->probe_ns)
		h->probe_ns = sample_ns;
	if (++h->probe_count < GS_PRICE_PROBES)
		return;
	h->probe_count = 0;
	if (h->floor_ns == 0)
		h->floor_ns = h->probe_ns > price ? h->probe_ns : price;
	usual = price <= GS_PRICE_SHORT_NS ? price : h->floor_ns;
	if (h->probe_ns <= usual + usual / 2)
		return;
	store(&h->stale_ns, now_ns);
	if (h->probe_ns <= GS_PRICE_SHORT_NS)
		store(&e->price_ns, h->probe_ns);
}

void gs_price_observe(struct gs_price_table *table, struct gs_price_ref ref, uint64_t sample_ns,
		      enum gs_price_kind kind, uint64_t charged_ns, uint64_t now_ns,
		      struct gs_price_change *ret_change)
{
	struct gs_price_entry *e = &table->entry[ref.index % GS_PRICE_ENTRIES];
	struct gs_price_history *h = &table->history[ref.index % GS_PRICE_ENTRIES];
	uint64_t price, wall;

	memset(ret_change, 0, sizeof(*ret_change));
	if (ref.seq == 0 || !entry_lock(e))
		return;
	if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != ref.seq) {
		entry_unlock(e);
		return;
	}
	wall = load(&h->wall_ns);
	store(&h->wall_ns, sample_ns);
	if (kind == GS_PRICE_CLEAN)
		observe_clean(e, h, sample_ns, wall, now_ns, ret_change);
	price = load(&e->price_ns);
	if (price && kind != GS_PRICE_CLEAN)
		observe_wall(h, price, sample_ns, now_ns);
	if (price && kind == GS_PRICE_BUSY)
		observe_busy(e, h, sample_ns, now_ns);
	ret_change->price_ns = price;
	if (!price && charged_ns != GS_PRICE_CHARGED && h->charged_count < 1u << 20) {
		h->charged_ns += sample_ns;
		h->charged_count++;
	}
	entry_unlock(e);
}

void gs_price_reset_locks(struct gs_price_table *table)
{
	for (uint32_t i = 0; i < GS_PRICE_ENTRIES; i++)
		if (__atomic_load_n(&table->entry[i].lock, __ATOMIC_RELAXED))
			entry_unlock(&table->entry[i]);
}
