// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Who may measure, and when. A clean sample needs a GPU on which nothing else
// runs: no other container (the daemon's window, or none is placed there), no
// other process of this one (the account's measurer), and no other stream of this
// process (the in-flight sum, see gate_wait.c).

#include "gate_os.h"
#include "gate_pass.h"

#define SIBLING_NS 100000000ULL

// siblings tells whether other processes of the container have the GPU open.
static bool siblings(uint64_t now)
{
	const struct gs_slot *slot =
		(const struct gs_slot *)((const char *)gs_gate.ledger + GS_LEDGER_HEADER_SIZE);
	uint32_t high, found = 0;

	if (now < GS_LOAD(gs_gate.siblings_ns))
		return GS_LOAD(gs_gate.siblings) != 0;
	GS_STORE(gs_gate.siblings_ns, now + SIBLING_NS);
	high = GS_LOAD(gs_gate.ledger->slot_high);
	if (high > gs_gate.page->header.slot_count)
		high = gs_gate.page->header.slot_count;
	for (uint32_t i = 0; i < high && !found; i++)
		found = i != gs_gate.slot && GS_LOAD(slot[i].state) == GS_SLOT_USED;
	GS_STORE(gs_gate.siblings, found);
	return found;
}

void gs_pass_solo(struct gs_pass *p)
{
	struct gs_gate_gpu *g = p->g;
	uint64_t id = gs_pass_stream(p);

	if (GS_LOAD(g->last_stream) != id) {
		if (GS_LOAD(g->last_stream))
			GS_STORE(g->switched_ns, p->now_ns);
		GS_STORE(g->last_stream, id);
		__atomic_fetch_add(&g->switches, 1, __ATOMIC_RELAXED);
	}
	p->steady = GS_LOAD(g->switched_ns) == 0 ||
		    p->now_ns - GS_LOAD(g->switched_ns) > GS_GATE_SOLO_NS;
	p->solo = p->steady && !siblings(p->now_ns);
}

// pending tells whether a shape of this process has lately wanted a price.
static bool pending(const struct gs_pass *p)
{
	const struct gs_gate_gpu *g = p->g;

	return (GS_LOAD(g->pend[0]) | GS_LOAD(g->pend[1])) &&
	       p->now_ns - GS_LOAD(g->pend_ns) < 2 * GS_GATE_PEND_NS;
}

static uint32_t self_window(const struct gs_pass *p, uint64_t *ret_end_ns)
{
	uint64_t end = GS_LOAD(p->account->measure_ns);

	// An end that no process would have set is not obeyed.
	if (!p->alone || end <= p->now_ns || end - p->now_ns > GS_GATE_SELF_MAX_NS)
		return 0;
	*ret_end_ns = end;
	return (uint32_t)end ? (uint32_t)end : 1;
}

void gs_pass_window(struct gs_pass *p)
{
	uint64_t mine, now;

	p->window_ns = 0;
	p->measuring = false;
	p->window = GS_LOAD(p->limit->window);
	if (!p->window)
		p->window = self_window(p, &p->window_ns);
	if (!p->window || !gs_gate.trackable)
		return;
	mine = (uint64_t)(gs_gate.slot + 1) << 32 | p->window;
	now = GS_LOAD(p->account->measurer);
	// Nobody's yet: whoever wants a price takes it, or whoever is the only one.
	if ((uint32_t)now != p->window && (pending(p) || !siblings(p->now_ns)) &&
	    __atomic_compare_exchange_n(&p->account->measurer, &now, mine, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED)) {
		now = mine;
		__atomic_fetch_add(&p->g->tries, 1, __ATOMIC_RELAXED);
	}
	p->measuring = now == mine;
}

static void pend_add(struct gs_pass *p)
{
	struct gs_gate_gpu *g = p->g;

	if (p->now_ns - GS_LOAD(g->pend_ns) >= GS_GATE_PEND_NS) {
		GS_STORE(g->pend_ns, p->now_ns);
		GS_STORE(g->pend[1], GS_LOAD(g->pend[0]));
		GS_STORE(g->pend[0], 0);
	}
	__atomic_fetch_or(&g->pend[0], 1ULL << (p->price.ref.index % 64), __ATOMIC_RELAXED);
}

// window_wall returns a third of the window that the shape needs.
static uint64_t window_wall(const struct gs_pass *p)
{
	uint64_t wall = p->price.wall_ns > GS_GATE_ASK_NS ? p->price.wall_ns : GS_GATE_ASK_NS;

	for (uint32_t i = GS_LOAD(p->g->tries); i > 0 && wall < GS_GATE_ASK_MAX_NS; i--)
		wall *= 2;
	return wall;
}

static void ring(const struct gs_pass *p)
{
	uint64_t next = GS_LOAD(gs_gate.ring_ns);

	if (p->now_ns < next ||
	    !__atomic_compare_exchange_n(&gs_gate.ring_ns, &next, p->now_ns + GS_GATE_RING_NS, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	gs_os_ring((uint32_t)GS_DOORBELL_PRICE, p->gpu, gs_gate.slot, window_wall(p));
}

// self_open gives the container a window of its own, at most one part in
// GS_GATE_SELF_SHARE of this process's time.
static void self_open(struct gs_pass *p)
{
	uint64_t end = GS_LOAD(p->account->measure_ns), length = 3 * window_wall(p);

	if (p->now_ns < GS_LOAD(p->g->self_next_ns) || p->window)
		return;
	if (length > GS_GATE_SELF_MAX_NS)
		length = GS_GATE_SELF_MAX_NS;
	GS_STORE(p->g->self_next_ns, p->now_ns + GS_GATE_SELF_SHARE * length);
	__atomic_compare_exchange_n(&p->account->measure_ns, &end, p->now_ns + length, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void gs_pass_want(struct gs_pass *p)
{
	uint64_t wall = p->price.wall_ns;

	if (!p->price.wanted || p->price.ref.seq == 0)
		return;
	pend_add(p);
	// A launch that comes once or twice is not worth a window.
	if (p->window || wall == 0 || (p->price.seen < 3 && wall < 1000000))
		return;
	if (!p->alone)
		ring(p);
	else if (!p->solo)
		self_open(p);
}

bool gs_pass_sampled(struct gs_pass *p)
{
	if (!p->price.price_ns)
		return true; // settled by its wall time at least
	if (p->price.wanted && (p->measuring || (p->alone && p->solo)))
		return true;
	if (p->alone || p->now_ns < GS_LOAD(p->g->probe_ns))
		return false;
	GS_STORE(p->g->probe_ns, p->now_ns + GS_GATE_PROBE_NS);
	return true;
}

void gs_pass_label(const struct gs_pass *p, struct gs_track_item *item)
{
	item->window = p->measuring ? p->window : 0;
	item->window_ns = p->window_ns;
	item->solo = p->alone && p->solo;
	item->switches = GS_LOAD(p->g->switches);
	if (!p->steady)
		item->busy = 0; // other streams' launches come in between
}

bool gs_gate_clean(uint32_t gpu, const struct gs_track_item *item, uint64_t now_ns)
{
	const struct gs_gpu_limit *limit = &gs_gate.page->gpu[gpu];

	if (item->window && !item->window_ns)
		return GS_LOAD(limit->window) == item->window;
	if (!GS_LOAD(limit->alone))
		return false;
	if (item->window)
		return now_ns < item->window_ns &&
		       GS_LOAD(gs_gate.ledger->gpu[gpu].measure_ns) == item->window_ns;
	return item->solo && GS_LOAD(gs_gate.gpu[gpu].switches) == item->switches;
}

// settled_all ends the window when nothing waits for it any more.
static void settled_all(uint32_t gpu, const struct gs_track_item *item, uint64_t sample_ns)
{
	struct gs_gate_gpu *g = &gs_gate.gpu[gpu];
	uint64_t bit = 1ULL << (item->ref.index % 64);
	uint64_t pend = __atomic_fetch_and(&g->pend[0], ~bit, __ATOMIC_RELAXED) |
			__atomic_fetch_and(&g->pend[1], ~bit, __ATOMIC_RELAXED);
	uint64_t end = item->window_ns;

	GS_STORE(g->tries, 0);
	if (!item->window || pend != bit)
		return;
	if (!end)
		gs_os_ring((uint32_t)GS_DOORBELL_DONE, gpu, gs_gate.slot, sample_ns);
	else
		__atomic_compare_exchange_n(&gs_gate.ledger->gpu[gpu].measure_ns, &end, 0, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// share_late takes GPU time from the share, or gives it back, after the launch.
static void share_late(uint32_t gpu, int64_t delta, uint64_t now_ns)
{
	uint32_t ceiling = GS_LOAD(gs_gate.page->gpu[gpu].ceiling_milli);
	int64_t wall;

	if (!delta)
		return;
	wall = gs_pace_wall((uint64_t)(delta < 0 ? -delta : delta), gs_pace_scale(ceiling));
	if (ceiling < GS_MILLI_GPU)
		gs_pace_charge(&gs_gate.ledger->gpu[gpu].paid_ns, now_ns, delta < 0 ? -wall : wall);
}

void gs_gate_runs(uint32_t gpu, struct gs_track_item *item, uint64_t elapsed_ns, uint64_t now_ns)
{
	if (item->charged_ns == GS_PRICE_CHARGED || elapsed_ns <= item->charged_ns)
		return;
	gs_gate_account(gpu, (int64_t)(elapsed_ns - item->charged_ns));
	share_late(gpu, (int64_t)(elapsed_ns - item->charged_ns), now_ns);
	item->charged_ns = elapsed_ns;
}

void gs_gate_settled(uint32_t gpu, const struct gs_track_item *item,
		     const struct gs_price_change *change, uint64_t sample_ns, uint64_t now_ns)
{
	int64_t delta = 0;

	if (item->charged_ns != GS_PRICE_CHARGED)
		delta = (int64_t)((change->price_ns ? change->price_ns : sample_ns) - item->charged_ns);
	if (delta)
		gs_gate_account(gpu, delta);
	// The account keeps what was charged by wall time before: it never goes down,
	// and would stand still for long. The share gets it back.
	if (change->first)
		delta -= change->refund_ns;
	share_late(gpu, delta, now_ns);
	if (change->settled)
		settled_all(gpu, item, sample_ns);
}
