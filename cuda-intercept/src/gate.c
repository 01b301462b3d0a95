// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The way through the gate. A launch of a priced shape takes the fast path: it
// spends what its thread has claimed from the container's share, and touches no
// shared cache line that anybody writes. Everything else is in gate_slow.c.

#include "gate_slow.h"

struct gs_gate_state gs_gate;
__thread struct gs_gate_thread gs_gate_thread __attribute__((tls_model("initial-exec")));

void gs_gate_enter(struct gs_gate_ticket *ret_ticket, uint32_t gpu, CUstream stream,
		   enum gs_gate_flavour flavour, const struct gs_gate_shape *shape)
{
	const struct gs_limits_page *page = __atomic_load_n(&gs_gate.page, __ATOMIC_ACQUIRE);
	struct gs_gate_thread *self = &gs_gate_thread;
	uint64_t cost;
	int64_t wall;

	ret_ticket->flags = 0;
	ret_ticket->gpu = gpu;
	ret_ticket->cost_ns = 0;
	ret_ticket->paid_ns = 0;
	if (__builtin_expect(!page, 0))
		return;
	cost = gs_price_find(&gs_gate.prices, shape);
	wall = gs_pace_wall(cost, self->scale);
	if (__builtin_expect(cost == 0 || self->generation != GS_LOAD(page->header.generation) ||
				     self->gpu != gpu || self->budget_ns < wall ||
				     self->mark_left_ns < (int64_t)cost || GS_LOAD(gs_gate.captures),
			     0)) {
		gs_gate_enter_slow(ret_ticket, gpu, stream, flavour, shape);
		return;
	}
	self->budget_ns -= wall;
	self->mark_left_ns -= (int64_t)cost;
	self->charged_ns += cost;
	self->launches++;
	ret_ticket->cost_ns = cost;
	ret_ticket->paid_ns = wall;
}

void gs_gate_leave(struct gs_gate_ticket *ticket, CUresult result)
{
	if (__builtin_expect(ticket->flags != 0 || result != CUDA_SUCCESS, 0))
		gs_gate_leave_slow(ticket, result);
}
