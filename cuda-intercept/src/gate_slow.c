// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The slow path: a launch that needs more than its thread holds, or that is to be
// watched.

#include "gate_slow.h"

#include <errno.h>

#include "gate_os.h"
#include "gate_pass.h"

// Ticket flag: ticket.sample is a place in the ring.
#define TICKET_TRACKED 1u

static void account_add(uint64_t *word, uint64_t n)
{
	__atomic_fetch_add(word, n, __ATOMIC_RELAXED);
}

void gs_gate_account(uint32_t gpu, int64_t ns)
{
	struct gs_gate_gpu *g = &gs_gate.gpu[gpu];
	uint64_t credit = GS_LOAD(g->credit_ns), use;

	if (ns < 0) {
		account_add(&g->credit_ns, (uint64_t)-ns);
		return;
	}
	do {
		use = credit < (uint64_t)ns ? credit : (uint64_t)ns;
	} while (use && !__atomic_compare_exchange_n(&g->credit_ns, &credit, credit - use, true,
						     __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	account_add(&gs_gate.ledger->gpu[gpu].charged_ns, (uint64_t)ns - use);
}

// thread_flush brings the thread's counters into the ledger.
static void thread_flush(struct gs_gate_thread *self)
{
	uint32_t gpu = self->gpu % GS_MAX_GPUS;

	if (!self->launches)
		return;
	account_add(&gs_gate.ledger->gpu[gpu].launches, self->launches);
	gs_gate_account(gpu, (int64_t)self->charged_ns);
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

// pass_pay hands what was claimed to the thread and charges the launch to it.
static void pass_pay(struct gs_pass *p, struct gs_gate_thread *self)
{
	if (!p->funded) {
		thread_drop(self, p->now_ns);
		self->budget_ns = p->turn.wall_ns;
		if (!p->capped)
			self->budget_ns = p->wall_ns + (p->measuring ? 0 : GS_GATE_FREE_SLICE_NS);
	}
	if (self->gpu != p->gpu || self->generation != p->generation || p->inflight_ns)
		self->mark_left_ns = (int64_t)p->quantum_ns;
	if (!p->inflight_ns)
		self->mark_left_ns -= (int64_t)p->cost_ns;
	self->gpu = (uint16_t)p->gpu;
	self->generation = p->generation;
	self->scale = gs_pace_scale(p->ceiling);
	self->capped = p->capped;
	self->budget_ns -= p->wall_ns;
	self->charged_ns += p->cost_ns;
	self->launches++;
	thread_flush(self);
	if (!p->price.price_ns)
		account_add(&p->account->unpriced, 1);
}

// pass_track starts to watch the launch.
static void pass_track(struct gs_pass *p, struct gs_gate_ticket *ticket, bool sample)
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
	gs_pass_label(p, item);
	ticket->flags = TICKET_TRACKED;
	ticket->sample = index;
}

void gs_gate_enter_slow(struct gs_gate_ticket *ticket, uint32_t gpu, CUstream stream,
			enum gs_gate_flavour flavour, const struct gs_gate_shape *shape)
{
	struct gs_gate_thread *self = &gs_gate_thread;
	int error = errno;
	bool sample;
	struct gs_pass p = {
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
	gs_pass_solo(&p);
	gs_pass_wait(&p, self);
	pass_pay(&p, self);
	gs_pass_want(&p);
	sample = gs_pass_sampled(&p);
	if (sample || p.inflight_ns)
		pass_track(&p, ticket, sample);
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
		gs_gate_account(ticket->gpu, -(int64_t)ticket->cost_ns);
		if (ticket->flags & TICKET_TRACKED)
			gs_track_cancel(ticket->gpu, ticket->sample);
	} else if (ticket->flags & TICKET_TRACKED) {
		gs_track_end(ticket->gpu, ticket->sample, ticket->stream,
			     (enum gs_gate_flavour)ticket->flavour);
	}
	errno = error;
}

void gs_gate_poll(void)
{
	int error = errno;

	if (!__atomic_load_n(&gs_gate.page, __ATOMIC_ACQUIRE) || !gs_track_any())
		return;
	gs_track_poll(gs_os_now());
	errno = error;
}
