// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "gate_slow.h"

#include <errno.h>
#include <string.h>

#include "gate_os.h"

// Ticket flag.
#define TICKET_TRACKED 1u // sample is a place in the ring

// One launch on its way through the slow path.
struct pass {
	uint32_t gpu;
	CUstream stream;
	enum gs_gate_flavour flavour;
	const struct gs_limits_page *page;
	const struct gs_gpu_limit *limit;
	struct gs_gate_gpu *g;
	struct gs_gpu_account *account;
	struct gs_price_view price;
	uint64_t now_ns;
	uint64_t cost_ns;    // to be charged
	int64_t wall_ns;     // the same under the ceiling
	uint64_t inflight_ns; // to be added to the in-flight sum; 0: not watched
	uint32_t generation;
	uint32_t window;
	uint32_t ceiling;
	bool alone;
	bool self_window;
	bool capped;
	bool funded; // the thread's own budget covers the launch
	uint64_t bound_ns;
	uint64_t quantum_ns;
	// In-flight work without progress.
	uint32_t stall_done;
	uint64_t stall_since_ns;
};

// How the next wait goes.
struct nap {
	const uint32_t *word;
	uint32_t value;
	uint64_t ns;
	bool throttled;
};

static void account_add(uint64_t *word, uint64_t n)
{
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
}

// thread_flush brings the thread's counters into the ledger.
static void thread_flush(struct gs_gate_thread *self)
{
	struct gs_gpu_account *account = &gs_gate.ledger->gpu[self->gpu % GS_MAX_GPUS];

	if (!self->launches)
		return;
	account_add(&account->launches, self->launches);
	account_add(&account->charged_ns, self->charged_ns);
	self->launches = 0;
	self->charged_ns = 0;
}

// thread_drop gives back what the thread has claimed and not spent.
static void thread_drop(struct gs_gate_thread *self, uint64_t now)
{
	thread_flush(self);
	if (self->capped && self->budget_ns > 0)
		gs_pace_charge(&gs_gate.ledger->gpu[self->gpu % GS_MAX_GPUS].paid_ns, now,
			       -self->budget_ns);
	self->budget_ns = 0;
}

// pass_read takes in the limits as they are now.
static void pass_read(struct pass *p)
{
	uint32_t inflight_us = GS_LOAD(p->limit->inflight_us);

	p->generation = __atomic_load_n(&p->page->header.generation, __ATOMIC_ACQUIRE);
	p->window = GS_LOAD(p->limit->window);
	p->alone = GS_LOAD(p->limit->alone) != 0;
	p->ceiling = GS_LOAD(p->limit->ceiling_milli);
	p->capped = p->ceiling < GS_MILLI_GPU;
	p->self_window = p->alone && p->now_ns < GS_LOAD(p->g->self_until_ns);
	if (inflight_us)
		p->bound_ns = (uint64_t)inflight_us * 1000;
	else
		p->bound_ns = p->alone && !p->capped ? GS_GATE_UNBOUND : GS_GATE_INFLIGHT_NS;
	if (!gs_gate.trackable)
		p->bound_ns = GS_GATE_UNBOUND;
	p->quantum_ns = p->bound_ns / GS_GATE_MARKS;
}

static bool pass_measuring(const struct pass *p)
{
	return gs_gate.trackable && (p->window || p->self_window);
}

// pass_cost decides what the launch is charged and whether it will be watched.
static void pass_cost(struct pass *p, const struct gs_gate_thread *self, bool same)
{
	uint64_t unmarked = 0, weight;

	p->cost_ns = p->price.price_ns ? p->price.price_ns : p->price.wall_ns;
	p->wall_ns = gs_pace_wall(p->cost_ns, gs_pace_scale(p->ceiling));
	p->funded = same && !pass_measuring(p) && self->budget_ns >= p->wall_ns &&
		    (self->capped != 0) == p->capped;
	if (same && self->mark_left_ns >= 0 && (uint64_t)self->mark_left_ns <= p->quantum_ns)
		unmarked = p->quantum_ns - (uint64_t)self->mark_left_ns;
	// What has never finished may be long: two such launches fill the bound.
	weight = p->cost_ns ? p->cost_ns : (p->bound_ns == GS_GATE_UNBOUND ? 1 : p->bound_ns / 2);
	p->inflight_ns = 0;
	if (p->bound_ns == GS_GATE_UNBOUND && !pass_measuring(p))
		return;
	if (pass_measuring(p) || !p->price.price_ns || unmarked + weight >= p->quantum_ns)
		p->inflight_ns = (p->bound_ns == GS_GATE_UNBOUND ? 0 : unmarked) + weight;
}

static uint64_t stream_id(const struct pass *p)
{
	// Never 0, which means that there was none.
	return ((uint64_t)(uintptr_t)p->stream ^ (uint64_t)p->flavour << 62) | 1ULL << 63;
}

// inflight_claim adds the launch to the work in flight if there is room. In a
// window nothing else of this process may run beside a sample: only one stream
// may queue up, and another one's turn comes when all is done.
static bool inflight_claim(struct pass *p)
{
	uint64_t measured = 0;
	uint64_t bound = p->bound_ns;
	uint64_t add = p->inflight_ns ? p->inflight_ns : p->cost_ns;
	int64_t old = GS_LOAD(p->g->inflight_ns);

	if (pass_measuring(p)) {
		measured = stream_id(p) * 31 + (p->window ? p->window : GS_LOAD(p->g->self_until_ns));
		if (bound == GS_GATE_UNBOUND)
			bound = GS_GATE_INFLIGHT_NS;
		if (GS_LOAD(p->g->measured) != measured)
			bound = 0;
	}
	if (bound == GS_GATE_UNBOUND)
		return true;
	do {
		if (old > 0 && (uint64_t)old + add > bound)
			return false;
	} while (p->inflight_ns &&
		 !__atomic_compare_exchange_n(&p->g->inflight_ns, &old, old + (int64_t)p->inflight_ns,
					      true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (measured && old <= 0)
		GS_STORE(p->g->measured, measured);
	return true;
}

static bool pass_stalled(struct pass *p, uint64_t oldest_cost)
{
	uint64_t limit = GS_GATE_STALL_NS + 4 * oldest_cost;

	if (limit > GS_GATE_STALL_MAX_NS)
		limit = GS_GATE_STALL_MAX_NS;
	if (p->stall_since_ns == 0 || p->stall_done != GS_LOAD(p->g->done)) {
		p->stall_since_ns = p->now_ns;
		p->stall_done = GS_LOAD(p->g->done);
	}
	return p->now_ns - p->stall_since_ns > limit;
}

// nap_inflight chooses a nap that ends about when the oldest work does.
static uint64_t nap_inflight(struct pass *p)
{
	uint64_t cost, end = gs_track_oldest(p->gpu, &cost), ns = GS_GATE_NAP_MIN_NS;

	if (end == 0 || pass_stalled(p, cost)) {
		// Nothing that could finish, or nothing does: do not stand in the way.
		gs_track_abandon(p->gpu);
		if (end == 0)
			GS_STORE(p->g->inflight_ns, 0);
		p->stall_since_ns = 0;
		return 0;
	}
	if (end > p->now_ns)
		ns = end - p->now_ns;
	else if (end != 1 && p->now_ns - end > 16 * ns)
		ns = (p->now_ns - end) / 16; // late: look ever more rarely
	if (ns < GS_GATE_NAP_MIN_NS)
		ns = GS_GATE_NAP_MIN_NS;
	return ns < GS_GATE_NAP_MAX_NS ? ns : GS_GATE_NAP_MAX_NS;
}

// pass_blocked tells whether the launch has to wait, and how. If it has not, the
// in-flight sum holds it.
static bool pass_blocked(struct pass *p, struct nap *nap)
{
	uint32_t hold = GS_LOAD(p->limit->hold);

	nap->word = &p->limit->hold;
	nap->value = hold;
	nap->throttled = true;
	nap->ns = gs_pace_hold_left(&p->g->hold, hold, p->now_ns);
	if (nap->ns)
		return true;
	nap->word = &p->page->header.generation;
	nap->value = p->generation;
	if (p->capped && !p->funded) {
		nap->ns = gs_pace_wait(&p->account->paid_ns, p->now_ns);
		// A window is dear and short. What runs in it is paid for afterwards.
		if (p->window && p->price.wanted && nap->ns < GS_GATE_ADVANCE_NS)
			nap->ns = 0;
		if (nap->ns)
			return true;
	}
	nap->throttled = false;
	while (!inflight_claim(p)) {
		nap->ns = nap_inflight(p);
		if (nap->ns)
			return true;
	}
	return false;
}

static void nap_take(const struct nap *nap, uint64_t now)
{
	uint64_t ns = nap->ns;

	if (ns <= GS_GATE_SPIN_NS) {
		while (gs_os_now() - now < ns && GS_LOAD(*nap->word) == nap->value)
			gs_os_pause();
		return;
	}
	// Work in flight may settle and change what there is to wait for.
	if (gs_track_any() && ns > 2 * GS_GATE_NAP_MAX_NS)
		ns = 2 * GS_GATE_NAP_MAX_NS;
	gs_os_wait(nap->word, nap->value, ns);
}

// pass_wait returns when the launch may go, charged to the in-flight sum.
static void pass_wait(struct pass *p, struct gs_gate_thread *self, bool same)
{
	uint64_t throttled = 0;
	struct nap nap;

	for (;;) {
		uint64_t before = p->now_ns;

		pass_read(p);
		pass_cost(p, self, same && self->generation == p->generation);
		if (!pass_blocked(p, &nap))
			break;
		nap_take(&nap, before);
		p->now_ns = gs_os_now();
		if (nap.throttled)
			throttled += p->now_ns - before;
		gs_track_poll(p->now_ns);
	}
	if (throttled) {
		account_add(&p->account->throttles, 1);
		account_add(&p->account->throttled_ns, throttled);
	}
}

// pass_pay charges the launch, and claims a slice for those that follow.
static void pass_pay(struct pass *p, struct gs_gate_thread *self)
{
	int64_t slice = p->capped ? GS_GATE_SLICE_NS : GS_GATE_FREE_SLICE_NS;

	if (!p->funded) {
		thread_drop(self, p->now_ns);
		if (pass_measuring(p) || p->wall_ns > slice)
			slice = p->wall_ns;
		if (p->capped)
			gs_pace_charge(&p->account->paid_ns, p->now_ns, slice);
		self->budget_ns = slice;
	}
	if (self->gpu != p->gpu)
		thread_flush(self);
	if (self->gpu != p->gpu || self->generation != p->generation || p->inflight_ns)
		self->mark_left_ns = (int64_t)p->quantum_ns;
	self->gpu = (uint16_t)p->gpu;
	self->generation = p->generation;
	self->scale = gs_pace_scale(p->ceiling);
	self->capped = p->capped;
	self->budget_ns -= p->wall_ns;
	if (!p->inflight_ns)
		self->mark_left_ns -= (int64_t)p->cost_ns;
	self->charged_ns += p->cost_ns;
	self->launches++;
	thread_flush(self);
	if (!p->price.price_ns)
		account_add(&p->account->unpriced, 1);
}

// solo_note keeps track of whether the process uses one stream at a time.
static bool solo_note(struct pass *p)
{
	uint64_t id = stream_id(p);

	if (GS_LOAD(p->g->last_stream) != id) {
		if (GS_LOAD(p->g->last_stream))
			GS_STORE(p->g->switched_ns, p->now_ns);
		GS_STORE(p->g->last_stream, id);
		__atomic_fetch_add(&p->g->switches, 1, __ATOMIC_RELAXED);
	}
	return GS_LOAD(p->g->switched_ns) == 0 ||
	       p->now_ns - GS_LOAD(p->g->switched_ns) > GS_GATE_SOLO_NS;
}

static void pend_turn(struct gs_gate_gpu *g, uint64_t now)
{
	if (now - GS_LOAD(g->pend_ns) < GS_GATE_PEND_NS)
		return;
	GS_STORE(g->pend_ns, now);
	GS_STORE(g->pend[1], GS_LOAD(g->pend[0]));
	GS_STORE(g->pend[0], 0);
}

static void ring(uint32_t kind, uint32_t gpu, uint64_t wall, uint64_t now)
{
	uint64_t next = GS_LOAD(gs_gate.ring_ns);

	if (now >= next &&
	    __atomic_compare_exchange_n(&gs_gate.ring_ns, &next, now + GS_GATE_RING_NS, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		gs_os_ring(kind, gpu, gs_gate.slot, wall);
}

// pass_want sees to it that a shape that wants a price gets its window.
static void pass_want(struct pass *p, bool solo)
{
	uint64_t wall = p->price.wall_ns, length;

	if (p->price.ref.seq == 0)
		return;
	pend_turn(p->g, p->now_ns);
	__atomic_fetch_or(&p->g->pend[0], 1ULL << (p->price.ref.index % 64), __ATOMIC_RELAXED);
	if (pass_measuring(p) || wall == 0 || (p->price.seen < 3 && wall < 1000000))
		return;
	if (!p->alone) {
		ring((uint32_t)GS_DOORBELL_PRICE, p->gpu, wall > GS_GATE_ASK_NS ? wall : GS_GATE_ASK_NS,
		     p->now_ns);
		return;
	}
	if (solo || p->now_ns < GS_LOAD(p->g->self_next_ns))
		return;
	length = 3 * wall;
	if (length < GS_GATE_SELF_MIN_NS)
		length = GS_GATE_SELF_MIN_NS;
	if (length > GS_GATE_SELF_MAX_NS)
		length = GS_GATE_SELF_MAX_NS;
	GS_STORE(p->g->self_next_ns, p->now_ns + GS_GATE_SELF_SHARE * length);
	GS_STORE(p->g->self_until_ns, p->now_ns + length);
}

// pass_sampled tells whether the launch is to be measured.
static bool pass_sampled(struct pass *p, bool solo)
{
	if (!p->price.price_ns)
		return true; // settled by its wall time at least
	if (p->price.wanted && (pass_measuring(p) || (p->alone && solo)))
		return true;
	if (p->alone || p->now_ns < GS_LOAD(p->g->probe_ns))
		return false;
	GS_STORE(p->g->probe_ns, p->now_ns + GS_GATE_PROBE_NS);
	return true;
}

static void pass_track(struct pass *p, struct gs_gate_ticket *ticket, bool sample, bool solo)
{
	struct gs_track_item *item;
	int32_t index = gs_track_begin(p->gpu, p->stream, p->flavour, sample);

	if (index < 0) {
		gs_gate_landed(p->g, (int64_t)p->inflight_ns);
		return;
	}
	item = &p->g->ring.item[index];
	GS_STORE(item->inflight_ns, (int64_t)p->inflight_ns);
	item->ref = p->price.ref;
	item->charged_ns = p->price.price_ns ? GS_PRICE_CHARGED : p->cost_ns;
	item->window = p->window;
	item->alone = !p->alone ? 0 : p->self_window ? 2 : solo;
	item->switches = GS_LOAD(p->g->switches);
	ticket->flags = TICKET_TRACKED;
	ticket->sample = index;
}

void gs_gate_enter_slow(struct gs_gate_ticket *ticket, uint32_t gpu, CUstream stream,
			enum gs_gate_flavour flavour, const struct gs_gate_shape *shape)
{
	struct gs_gate_thread *self = &gs_gate_thread;
	int error = errno;
	bool solo, sample;
	struct pass p = {
		.gpu = gpu,
		.stream = stream,
		.flavour = flavour,
		.page = gs_gate.page,
	};

	if (gpu >= gs_gate.gpu_count)
		return;
	if (GS_LOAD(gs_gate.captures) && gs_gate_capturing(stream, flavour))
		goto out;
	p.limit = &p.page->gpu[gpu];
	p.g = &gs_gate.gpu[gpu];
	p.account = &gs_gate.ledger->gpu[gpu];
	p.now_ns = gs_os_now();
	gs_track_poll(p.now_ns);
	gs_price_get(&gs_gate.prices, shape, p.now_ns, &p.price);
	solo = solo_note(&p);
	pass_wait(&p, self, self->gpu == gpu && self->scale);
	pass_pay(&p, self);
	if (p.price.wanted)
		pass_want(&p, solo);
	sample = pass_sampled(&p, solo);
	if (sample || p.inflight_ns)
		pass_track(&p, ticket, sample, solo);
	ticket->flavour = flavour;
	ticket->stream = stream;
	ticket->cost_ns = p.cost_ns;
	ticket->paid_ns = p.wall_ns;
out:
	errno = error;
}

void gs_gate_leave_slow(struct gs_gate_ticket *ticket, CUresult result)
{
	struct gs_gate_thread *self = &gs_gate_thread;
	int error = errno;

	if (ticket->gpu >= GS_MAX_GPUS || !gs_gate.page)
		return;
	if (result != CUDA_SUCCESS) {
		// A launch that did not happen costs nothing.
		if (self->gpu == ticket->gpu)
			self->budget_ns += ticket->paid_ns;
		account_add(&gs_gate.ledger->gpu[ticket->gpu].charged_ns, -ticket->cost_ns);
		if (ticket->flags & TICKET_TRACKED)
			gs_track_cancel(ticket->gpu, ticket->sample);
	} else if (ticket->flags & TICKET_TRACKED) {
		gs_track_end(ticket->gpu, ticket->sample, ticket->stream,
			     (enum gs_gate_flavour)ticket->flavour);
	}
	errno = error;
}

void gs_gate_settled(uint32_t gpu, const struct gs_track_item *item,
		     const struct gs_price_change *change, uint64_t sample_ns, uint64_t now_ns)
{
	struct gs_gpu_account *account = &gs_gate.ledger->gpu[gpu];
	struct gs_gate_gpu *g = &gs_gate.gpu[gpu];
	uint32_t ceiling = GS_LOAD(gs_gate.page->gpu[gpu].ceiling_milli);
	int64_t delta = 0, wall;

	if (item->charged_ns != GS_PRICE_CHARGED)
		delta = (int64_t)((change->price_ns ? change->price_ns : sample_ns) - item->charged_ns);
	if (change->first)
		delta -= change->refund_ns;
	if (delta) {
		account_add(&account->charged_ns, (uint64_t)delta);
		wall = gs_pace_wall((uint64_t)(delta < 0 ? -delta : delta), gs_pace_scale(ceiling));
		if (ceiling < GS_MILLI_GPU)
			gs_pace_charge(&account->paid_ns, now_ns, delta < 0 ? -wall : wall);
	}
	if (change->settled) {
		uint64_t bit = 1ULL << (item->ref.index % 64);
		uint64_t pend = __atomic_fetch_and(&g->pend[0], ~bit, __ATOMIC_RELAXED) |
				__atomic_fetch_and(&g->pend[1], ~bit, __ATOMIC_RELAXED);

		if (item->window && pend == bit)
			gs_os_ring((uint32_t)GS_DOORBELL_DONE, gpu, gs_gate.slot, sample_ns);
		if (item->alone == 2 && pend == bit)
			GS_STORE(g->self_until_ns, now_ns);
	}
}

void gs_gate_poll(void)
{
	int error = errno;

	if (!__atomic_load_n(&gs_gate.page, __ATOMIC_ACQUIRE) || !gs_track_any())
		return;
	gs_track_poll(gs_os_now());
	errno = error;
}
