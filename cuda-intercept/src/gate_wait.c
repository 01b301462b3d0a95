// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// When a launch may go: the daemon's hold, the container's share, the bound on
// work in flight, in this order.

#include "gate_os.h"
#include "gate_pass.h"

// How the next wait goes.
struct nap {
	const uint32_t *word; // it ends when this is no longer value
	uint32_t value;
	uint64_t ns;
	bool throttled; // counts as time that the share made the launch wait
};

static void pass_read(struct gs_pass *p)
{
	uint32_t inflight_us = GS_LOAD(p->limit->inflight_us);

	p->generation = __atomic_load_n(&p->page->header.generation, __ATOMIC_ACQUIRE);
	p->ceiling = GS_LOAD(p->limit->ceiling_milli);
	p->capped = p->ceiling < GS_MILLI_GPU;
	p->alone = GS_LOAD(p->limit->alone) != 0;
	if (inflight_us)
		p->bound_ns = (uint64_t)inflight_us * 1000;
	else if (p->alone)
		p->bound_ns = p->capped ? GS_GATE_INFLIGHT_ALONE_NS : GS_GATE_UNBOUND;
	else
		p->bound_ns = GS_GATE_INFLIGHT_NS;
	if (!gs_gate.trackable)
		p->bound_ns = GS_GATE_UNBOUND;
	p->quantum_ns = p->bound_ns / GS_GATE_MARKS;
	gs_pass_window(p);
	gs_pace_convert(&p->account->paid_ns, &p->account->paid_milli, p->ceiling, p->now_ns);
}

// pass_weigh decides what the launch is charged and whether it will be watched.
static void pass_weigh(struct gs_pass *p, const struct gs_gate_thread *self)
{
	bool same = self->gpu == p->gpu && self->scale && self->generation == p->generation;
	bool bound = p->bound_ns != GS_GATE_UNBOUND;
	uint64_t unmarked = 0, weight;

	p->cost_ns = p->price.price_ns ? p->price.price_ns : p->price.wall_ns;
	p->wall_ns = gs_pace_wall(p->cost_ns, gs_pace_scale(p->ceiling));
	// Nobody knows what an unpriced launch will take: it waits until the share is
	// paid up, or a program of ever new shapes would never wait.
	p->funded = same && p->cost_ns && !p->measuring && self->budget_ns >= p->wall_ns &&
		    (self->capped != 0) == p->capped;
	p->inflight_ns = 0;
	if (!bound && !p->measuring)
		return;
	if (bound && same && self->mark_left_ns >= 0 && (uint64_t)self->mark_left_ns <= p->quantum_ns)
		unmarked = p->quantum_ns - (uint64_t)self->mark_left_ns;
	// What has never finished may be long: two such launches at most.
	weight = p->cost_ns ? p->cost_ns : bound ? p->bound_ns : 1;
	if (p->measuring || !p->price.price_ns || unmarked + weight >= p->quantum_ns)
		p->inflight_ns = unmarked + weight;
}

// inflight_claim adds the launch to the work in flight if there is room. In a
// window nothing else of this process may run beside a sample: only one stream
// may queue up, and another one's turn comes when all is done.
static bool inflight_claim(struct gs_pass *p)
{
	uint64_t measured = 0, bound = p->bound_ns;
	int64_t old = GS_LOAD(p->g->inflight_ns);

	if (p->measuring) {
		measured = gs_pass_stream(p) * 31 + p->window;
		if (bound == GS_GATE_UNBOUND)
			bound = GS_GATE_INFLIGHT_NS;
		if (!p->steady && GS_LOAD(p->g->measured) != measured)
			bound = 0;
	}
	if (bound == GS_GATE_UNBOUND)
		return true;
	do {
		// A queue that runs empty between long launches loses its turn on the
		// engine each time: one may wait behind another.
		if (old > 0 && (uint64_t)old > bound &&
		    ((uint64_t)old > bound * GS_GATE_PAIR || GS_LOAD(p->g->inflight) > 1))
			return false;
	} while (p->inflight_ns &&
		 !__atomic_compare_exchange_n(&p->g->inflight_ns, &old, old + (int64_t)p->inflight_ns,
					      true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (p->inflight_ns)
		__atomic_fetch_add(&p->g->inflight, 1, __ATOMIC_RELAXED);
	if (measured && old <= 0)
		GS_STORE(p->g->measured, measured);
	return true;
}

static bool pass_stalled(struct gs_pass *p, uint64_t oldest_cost)
{
	uint64_t limit = GS_GATE_STALL_NS + GS_GATE_STALL_COSTS * oldest_cost;

	if (limit > GS_GATE_STALL_MAX_NS)
		limit = GS_GATE_STALL_MAX_NS;
	if (p->stall_since_ns == 0 || p->stall_done != GS_LOAD(p->g->done)) {
		p->stall_since_ns = p->now_ns;
		p->stall_done = GS_LOAD(p->g->done);
	}
	return p->now_ns - p->stall_since_ns > limit;
}

// nap_inflight chooses a nap that ends about when the oldest work does; 0 if the
// work is no longer to be waited for.
static uint64_t nap_inflight(struct gs_pass *p)
{
	uint64_t cost, end = gs_track_oldest(p->gpu, &cost), ns = GS_GATE_NAP_MIN_NS;

	if (end == 0 || pass_stalled(p, cost)) {
		// Nothing that could finish, or nothing does: do not stand in the way.
		gs_track_abandon(p->gpu);
		if (end == 0) {
			GS_STORE(p->g->inflight_ns, 0);
			GS_STORE(p->g->inflight, 0);
		}
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

// pass_held tells whether the daemon, or a process of the same container that
// measures, keeps this one off the GPU.
static bool pass_held(struct gs_pass *p, struct nap *nap)
{
	uint32_t hold = GS_LOAD(p->limit->hold);

	nap->word = &p->limit->hold;
	nap->value = hold;
	nap->ns = gs_pace_hold_left(&p->g->hold, hold, p->now_ns);
	if (nap->ns)
		return true;
	if (!p->window || p->measuring)
		return false;
	nap->word = &p->page->header.generation;
	nap->value = p->generation;
	nap->ns = gs_pace_hold_left(&p->g->aside, p->window, p->now_ns);
	if (p->window_ns && nap->ns > p->window_ns - p->now_ns)
		nap->ns = p->window_ns - p->now_ns;
	return nap->ns != 0;
}

// pass_turn returns the ns until the launch's turn under the ceiling. A slice is
// claimed for the launches that follow, too, except in a window.
static uint64_t pass_turn(struct gs_pass *p)
{
	int64_t wall = p->wall_ns;

	if (p->turn.wall_ns && p->turn_generation != p->generation) {
		gs_pace_charge(&p->account->paid_ns, p->now_ns, -p->turn.wall_ns);
		p->turn.wall_ns = 0;
	}
	if (!p->capped || p->funded)
		return 0;
	if (!p->turn.wall_ns) {
		if (wall < GS_GATE_SLICE_NS && !p->measuring)
			wall = GS_GATE_SLICE_NS;
		gs_pace_take(&p->account->paid_ns, p->now_ns, wall ? wall : 1, &p->turn);
		p->turn_generation = p->generation;
	}
	return gs_pace_left(&p->account->paid_ns, p->now_ns, &p->turn);
}

// pass_blocked tells whether the launch has to wait, and how. If it has not, the
// in-flight sum holds it.
static bool pass_blocked(struct gs_pass *p, struct nap *nap)
{
	nap->throttled = true;
	if (pass_held(p, nap))
		return true;
	nap->word = &p->page->header.generation;
	nap->value = p->generation;
	nap->ns = pass_turn(p);
	// A window is dear and short. What runs in it is paid for afterwards.
	if (p->measuring && p->price.wanted && nap->ns < GS_GATE_ADVANCE_NS)
		nap->ns = 0;
	if (nap->ns)
		return true;
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

void gs_pass_wait(struct gs_pass *p, const struct gs_gate_thread *self)
{
	uint64_t throttled = 0;
	struct nap nap;

	for (;;) {
		uint64_t before = p->now_ns;

		pass_read(p);
		pass_weigh(p, self);
		if (!pass_blocked(p, &nap))
			break;
		nap_take(&nap, before);
		p->now_ns = gs_os_now();
		if (nap.throttled)
			throttled += p->now_ns - before;
		gs_track_poll(p->now_ns);
		gs_price_again(&gs_gate.prices, p->now_ns, &p->price);
	}
	if (throttled) {
		__atomic_fetch_add(&p->account->throttles, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&p->account->throttled_ns, throttled, __ATOMIC_RELAXED);
	}
}
