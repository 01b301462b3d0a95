// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "gate_slow.h"

void gs_gate_attach(const struct gs_gate_env *env)
{
	const struct gs_gate_driver *d = &env->driver;

	if (!env->page || !env->ledger)
		return;
	if (gs_gate.forked) {
		gs_price_reset_locks(&gs_gate.prices);
		memset(gs_gate.gpu, 0, sizeof(gs_gate.gpu));
		gs_gate.polling = 0;
		memset(&gs_gate_thread, 0, sizeof(gs_gate_thread));
		gs_gate.captures = 0;
		gs_gate.ring_ns = 0;
		gs_gate.siblings_ns = 0;
		gs_gate.forked = 0;
	}
	gs_gate.ledger = env->ledger;
	gs_gate.slot = env->slot;
	gs_gate.gpu_count = env->page->header.gpu_count;
	if (gs_gate.gpu_count > GS_MAX_GPUS)
		gs_gate.gpu_count = GS_MAX_GPUS;
	gs_gate.driver = *d;
	gs_gate.trackable = d->event_create && d->event_destroy && d->event_record &&
			    d->event_record_ptsz && d->event_query && d->event_elapsed &&
			    d->ctx_get_current && d->ctx_push && d->ctx_pop;
	__atomic_store_n(&gs_gate.page, env->page, __ATOMIC_RELEASE);
}

void gs_gate_fork_child(void)
{
	// The rest is put in order by attach: most children never come that far.
	gs_gate.page = NULL;
	gs_gate.forked = 1;
}

void gs_gate_context_gone(CUcontext context)
{
	if (!context || !__atomic_load_n(&gs_gate.page, __ATOMIC_ACQUIRE))
		return;
	gs_gate_poll();
	gs_track_forget(context);
}

void gs_gate_capture_begin(void)
{
	__atomic_fetch_add(&gs_gate.captures, 1, __ATOMIC_SEQ_CST);
}

void gs_gate_capture_end(void)
{
	uint32_t n = GS_LOAD(gs_gate.captures);

	// Never below zero: a program may end what it did not begin.
	while (n && !__atomic_compare_exchange_n(&gs_gate.captures, &n, n - 1, true,
						 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}
