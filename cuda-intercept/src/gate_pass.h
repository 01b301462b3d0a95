// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// One launch on its way through the slow path. Private to gate_slow.c,
// gate_wait.c and gate_measure.c.

#ifndef GS_GATE_PASS_H
#define GS_GATE_PASS_H

#include "gate_slow.h"

struct gs_pass {
	uint32_t gpu;
	CUstream stream;
	enum gs_gate_flavour flavour;
	const struct gs_limits_page *page;
	const struct gs_gpu_limit *limit;
	struct gs_gate_gpu *g;
	struct gs_gpu_account *account;
	struct gs_price_view price;
	bool steady; // the process has used one stream for a while
	bool solo;   // and is the only one of its container
	uint64_t now_ns;

	// The limits, as of now_ns.
	uint32_t generation;
	uint32_t ceiling;
	bool capped;
	bool alone;
	uint64_t bound_ns;   // of work in flight
	uint64_t quantum_ns; // of work between completion marks
	uint32_t window;     // id of the pricing window that is open; 0: none
	uint64_t window_ns;  // its end, if this container opened it itself; else 0
	bool measuring;	     // and this process is the one that runs in it

	// The launch's weight.
	uint64_t cost_ns;     // GPU time to be charged
	int64_t wall_ns;      // the same under the ceiling
	uint64_t inflight_ns; // to be added to the in-flight sum; 0: not watched
	bool funded;	      // the thread's own budget covers it
	struct gs_pace_turn turn; // else what it has claimed of the share
	uint32_t turn_generation; // of the limits page then

	// In-flight work without progress.
	uint32_t stall_done;
	uint64_t stall_since_ns;
};

// gs_pass_stream names the stream; never 0, which means that there was none.
static inline uint64_t gs_pass_stream(const struct gs_pass *p)
{
	return ((uint64_t)(uintptr_t)p->stream ^ (uint64_t)p->flavour << 62) | 1ULL << 63;
}

// gs_pass_wait returns when the launch may go. Its weight is then in the in-flight
// sum if it is to be watched.
void gs_pass_wait(struct gs_pass *p, const struct gs_gate_thread *self);

// gs_pass_solo takes note of the launch's stream and sets p->steady and p->solo.
void gs_pass_solo(struct gs_pass *p);

// gs_pass_window finds out which pricing window is open and whose it is.
void gs_pass_window(struct gs_pass *p);

// gs_pass_want sees to it that a shape that wants a price gets its window.
void gs_pass_want(struct gs_pass *p);

// gs_pass_sampled tells whether the launch is to be measured.
bool gs_pass_sampled(struct gs_pass *p);

// gs_pass_label says in the item under which circumstances it was launched.
void gs_pass_label(const struct gs_pass *p, struct gs_track_item *item);

#endif
