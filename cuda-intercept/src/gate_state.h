// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The gate's state in one process. Private to gate*.c.

#ifndef GS_GATE_STATE_H
#define GS_GATE_STATE_H

#include <stdbool.h>

#include "gate.h"
#include "gate_pace.h"
#include "price.h"

// Wall time that a thread claims from the container's share at once.
#define GS_GATE_SLICE_NS 250000
// Work between two visits to the slow path where no ceiling applies.
#define GS_GATE_FREE_SLICE_NS 1000000
// In-flight bound where the page gives none and there are neighbours.
#define GS_GATE_INFLIGHT_NS 5000000ULL
// The same alone under a ceiling: enough for a host that is busy, and little enough
// for a new ceiling to take hold.
#define GS_GATE_INFLIGHT_ALONE_NS 20000000ULL
#define GS_GATE_UNBOUND (UINT64_MAX / 4)
// Two launches may be in flight up to this many times the bound.
#define GS_GATE_PAIR 4
// A completion mark is set each time a thread has launched this part of the bound.
#define GS_GATE_MARKS 8
// In-flight work that makes no progress for this long is let go: it may wait for
// something that this very thread does next.
#define GS_GATE_STALL_NS 50000000ULL
#define GS_GATE_STALL_COSTS 30 // and this many times the charge of the oldest
#define GS_GATE_STALL_MAX_NS 500000000ULL
#define GS_GATE_SPIN_NS 20000
#define GS_GATE_NAP_MIN_NS 30000ULL
#define GS_GATE_NAP_MAX_NS 1000000ULL
#define GS_GATE_RING_NS 20000000ULL
// Wall time that a doorbell names at least. A window is three times as long, and a
// third of it is for the neighbours' queues to run dry.
// Windows in which nothing could be settled make the next one longer.
#define GS_GATE_ASK_NS 10000000ULL
#define GS_GATE_ASK_MAX_NS 50000000ULL
#define GS_GATE_PROBE_NS 20000000ULL
// A stream that was left this long ago is taken to have run dry.
#define GS_GATE_SOLO_NS 50000000ULL
// A container alone on its GPU prices in windows of its own: the longest, and
// the part of a process's time that they may take (1/50).
#define GS_GATE_SELF_MAX_NS 150000000ULL
#define GS_GATE_SELF_SHARE 50
// Debt up to which a window lets a shape run that wants a price.
#define GS_GATE_ADVANCE_NS (GS_DEBT_MAX / 2)
#define GS_GATE_PEND_NS 1000000000ULL

#define GS_TRACK_ITEMS 128u

enum gs_track_state {
	GS_TRACK_FREE = 0,
	GS_TRACK_FILLING, // owned by the launching thread
	GS_TRACK_LIVE,	  // its end event is recorded
	GS_TRACK_DONE,	  // waits for the ring's tail to pass
};

// One launch whose completion is watched. Its events stay with the place in the
// ring and are used again.
struct gs_track_item {
	uint32_t state;
	CUcontext context; // of the events; NULL: there are none
	CUevent start;
	CUevent end;
	int64_t inflight_ns; // to take off the GPU's in-flight sum
	uint64_t submitted_ns;
	struct gs_price_ref ref;
	uint64_t charged_ns; // by wall time, or GS_PRICE_CHARGED
	uint32_t sample;     // 1: start is recorded too
	uint32_t window;     // window in which this process launched it; 0: none
	uint64_t window_ns;  // end of that window, if the container opened it itself
	uint32_t solo;	     // 1: launched while alone, the process using one stream
	uint32_t switches;
	uint64_t idle_ns; // when the start event went into an idle stream; 0: it did not
	uint64_t gap_ns;  // host time between that and the launch
	uint32_t busy;	  // 1: the start event went in behind unfinished work
};

// A ring for each GPU: most programs have one context on each, and so keep their
// events.
struct gs_track_ring {
	uint32_t head; // next place to give out
	uint32_t tail; // oldest place in use
	struct gs_track_item item[GS_TRACK_ITEMS];
};

struct gs_gate_gpu {
	int64_t inflight_ns; // work watched and not finished
	int32_t inflight;    // launches in that
	uint64_t gap_ns; // least host time seen between a start event and its launch
	uint64_t credit_ns; // charged too much so far: the next charges come out of it
	uint32_t done;	    // items finished: progress
	uint64_t last_done_ns;
	struct gs_pace_hold hold;
	struct gs_pace_hold aside; // the same for a window in which another process measures
	uint64_t last_stream; // as seen by the slow path
	uint64_t switched_ns;
	uint32_t switches;
	uint64_t self_next_ns;
	uint64_t measured; // the stream, in this very window, that may queue up
	uint64_t probe_ns;
	uint64_t pend[2]; // shapes that want a price, hashed to bits: now, and an epoch ago
	uint64_t pend_ns;
	uint32_t tries; // windows in which this process measured since a price was settled
	struct gs_track_ring ring;
};

struct gs_gate_state {
	const struct gs_limits_page *page; // NULL: the gate is open
	struct gs_ledger_header *ledger;
	uint32_t slot;
	uint32_t captures;
	uint32_t trackable; // the driver has what events need
	uint32_t forked;
	uint32_t gpu_count;
	uint32_t polling; // 1 while a thread looks at events, or destroys some
	uint64_t ring_ns; // no doorbell before
	uint64_t siblings_ns; // when to look again for other processes of the container
	uint32_t siblings;
	struct gs_gate_driver driver;
	struct gs_gate_gpu gpu[GS_MAX_GPUS];
	struct gs_price_table prices;
};

extern struct gs_gate_state gs_gate __attribute__((visibility("hidden")));

#define GS_LOAD(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#define GS_STORE(word, value) __atomic_store_n(&(word), (value), __ATOMIC_RELAXED)

// gs_track_begin takes a place in the GPU's ring for a launch about to be made in
// stream, and records its start event if sample. It returns -1 if that is not
// possible now; the launch then goes unwatched.
int32_t gs_track_begin(uint32_t gpu, CUstream stream, enum gs_gate_flavour flavour, bool sample);

// gs_track_end records the end event and starts to watch it.
void gs_track_end(uint32_t gpu, int32_t index, CUstream stream, enum gs_gate_flavour flavour);

// gs_track_cancel gives the place back; the launch did not happen.
void gs_track_cancel(uint32_t gpu, int32_t index);

// gs_track_poll looks for finished launches and settles them.
void gs_track_poll(uint64_t now_ns);

// gs_track_any tells whether a launch is being watched.
bool gs_track_any(void);

// gs_track_oldest returns when the oldest watched launch of gpu is expected to
// end, 1 if it is just being made, 0 if there is none. Its charge goes to
// ret_cost_ns.
uint64_t gs_track_oldest(uint32_t gpu, uint64_t *ret_cost_ns);

// gs_track_abandon takes all watched work off gpu's in-flight sum.
void gs_track_abandon(uint32_t gpu);

// gs_track_forget drops the events of a context.
void gs_track_forget(CUcontext context);

// gs_gate_account adds to the GPU time charged, or takes back. The account itself
// never goes down: its readers take differences.
void gs_gate_account(uint32_t gpu, int64_t ns);

// gs_gate_landed takes a finished launch off a GPU's work in flight.
static inline void gs_gate_landed(struct gs_gate_gpu *g, int64_t ns)
{
	int64_t left;

	if (ns == 0)
		return;
	__atomic_fetch_sub(&g->inflight, 1, __ATOMIC_RELAXED);
	left = __atomic_sub_fetch(&g->inflight_ns, ns, __ATOMIC_RELAXED);
	// Work that was let go and then ended after all must leave no credit.
	while (left < 0 && !__atomic_compare_exchange_n(&g->inflight_ns, &left, 0, true,
							__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

// gs_gate_capturing tells whether a launch in stream would be captured, or must be
// left alone for another reason that the driver gives.
bool gs_gate_capturing(CUstream stream, enum gs_gate_flavour flavour);

// gs_gate_clean tells whether nothing else can have run beside a launch that has
// just been found finished.
bool gs_gate_clean(uint32_t gpu, const struct gs_track_item *item, uint64_t now_ns);

// gs_gate_runs is called for a launch that has been running for elapsed_ns. What it
// charges is made up for when the launch is settled.
void gs_gate_runs(uint32_t gpu, struct gs_track_item *item, uint64_t elapsed_ns, uint64_t now_ns);

// gs_gate_settled is called by gs_track_poll for each sample taken in.
void gs_gate_settled(uint32_t gpu, const struct gs_track_item *item,
		     const struct gs_price_change *change, uint64_t sample_ns, uint64_t now_ns);

#endif
