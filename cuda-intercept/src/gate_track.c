// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Watches launches through events of the real driver. No thread of our own: it
// is looked at when the program enters the gate, waits in it, or waits for its
// GPU.

#include <stdbool.h>

#include "gate_os.h"
#include "gate_state.h"

// Bounds what one look costs a launch.
#define POLL_NOT_READY 4
#define POLL_READY 16

// While any thread captures in global mode, the driver fails that capture if
// another thread makes a call such as cuEventQuery. A thread in relaxed mode is
// exempt, so every call of ours is made in it.
static void driver_enter(CUstreamCaptureMode *mode)
{
	*mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	if (gs_gate.driver.exchange_capture_mode)
		gs_gate.driver.exchange_capture_mode(mode);
}

static void driver_leave(CUstreamCaptureMode *mode)
{
	if (gs_gate.driver.exchange_capture_mode)
		gs_gate.driver.exchange_capture_mode(mode);
}

bool gs_gate_capturing(CUstream stream, enum gs_gate_flavour flavour)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	__typeof__(gs_gate.driver.stream_is_capturing) ask = gs_gate.driver.stream_is_capturing;

	if (flavour == GS_GATE_PER_THREAD && gs_gate.driver.stream_is_capturing_ptsz)
		ask = gs_gate.driver.stream_is_capturing_ptsz;
	// An error is the driver's word that the stream must not be touched now
	// (the legacy stream beside a capture).
	return !ask || ask(stream, &status) != CUDA_SUCCESS ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static struct gs_track_item *item_of(uint32_t index)
{
	return &gs_gate.ring.item[index % GS_TRACK_ITEMS];
}

static CUcontext context_of(CUstream stream, CUcontext *ret_current)
{
	CUcontext context = NULL;

	if (gs_gate.driver.ctx_get_current(ret_current) != CUDA_SUCCESS)
		return NULL;
	if ((uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD || !gs_gate.driver.stream_get_ctx)
		return *ret_current;
	if (gs_gate.driver.stream_get_ctx(stream, &context) != CUDA_SUCCESS)
		return NULL;
	return context;
}

static bool events_make(struct gs_track_item *item, CUcontext context, CUcontext current)
{
	const struct gs_gate_driver *d = &gs_gate.driver;
	CUcontext popped;
	bool ok;

	if (item->context == context)
		return true;
	if (item->context) {
		d->event_destroy(item->start);
		d->event_destroy(item->end);
		item->context = NULL;
	}
	if (context != current && d->ctx_push(context) != CUDA_SUCCESS)
		return false;
	ok = d->event_create(&item->start, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
	if (ok && d->event_create(&item->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
		d->event_destroy(item->start);
		ok = false;
	}
	if (context != current)
		d->ctx_pop(&popped);
	if (ok)
		item->context = context;
	return ok;
}

static bool event_record(CUevent event, CUstream stream, enum gs_gate_flavour flavour)
{
	return (flavour == GS_GATE_PER_THREAD ? gs_gate.driver.event_record_ptsz(event, stream)
					      : gs_gate.driver.event_record(event, stream)) ==
	       CUDA_SUCCESS;
}

static bool stream_idle(CUstream stream, enum gs_gate_flavour flavour)
{
	__typeof__(gs_gate.driver.stream_query) ask = gs_gate.driver.stream_query;

	if (flavour == GS_GATE_PER_THREAD)
		ask = gs_gate.driver.stream_query_ptsz;
	return ask && ask(stream) == CUDA_SUCCESS;
}

static int32_t ring_take(void)
{
	struct gs_track_ring *ring = &gs_gate.ring;
	uint32_t head = GS_LOAD(ring->head);

	do {
		if (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) >= GS_TRACK_ITEMS)
			return -1;
	} while (!__atomic_compare_exchange_n(&ring->head, &head, head + 1, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	__atomic_store_n(&item_of(head)->state, GS_TRACK_FILLING, __ATOMIC_RELEASE);
	return (int32_t)(head % GS_TRACK_ITEMS);
}

int32_t gs_track_begin(uint32_t gpu, CUstream stream, enum gs_gate_flavour flavour, bool sample)
{
	CUstreamCaptureMode mode;
	CUcontext context, current = NULL;
	struct gs_track_item *item;
	int32_t index;
	bool ok;

	if (!gs_gate.trackable)
		return -1;
	index = ring_take();
	if (index < 0)
		return -1;
	item = item_of((uint32_t)index);
	item->gpu = gpu;
	item->sample = sample;
	item->inflight_ns = 0;
	item->ref.seq = 0;
	item->idle_ns = item->gap_ns = 0;
	driver_enter(&mode);
	context = context_of(stream, &current);
	ok = context && events_make(item, context, current);
	if (ok && sample) {
		bool idle = stream_idle(stream, flavour);

		ok = event_record(item->start, stream, flavour);
		item->idle_ns = idle ? gs_os_now() : 0;
	}
	driver_leave(&mode);
	if (ok)
		return index;
	gs_track_cancel(index);
	return -1;
}

static void item_finish(struct gs_track_item *item)
{
	gs_gate_landed(&gs_gate.gpu[item->gpu],
		       __atomic_exchange_n(&item->inflight_ns, 0, __ATOMIC_RELAXED));
	__atomic_store_n(&item->state, GS_TRACK_DONE, __ATOMIC_RELEASE);
}

void gs_track_cancel(int32_t index)
{
	item_finish(item_of((uint32_t)index));
}

void gs_track_end(int32_t index, CUstream stream, enum gs_gate_flavour flavour)
{
	struct gs_track_item *item = item_of((uint32_t)index);
	CUstreamCaptureMode mode;
	bool ok;

	if (item->idle_ns)
		item->gap_ns = gs_os_now() - item->idle_ns;
	driver_enter(&mode);
	ok = item->context && event_record(item->end, stream, flavour);
	driver_leave(&mode);
	if (!ok) {
		item_finish(item);
		return;
	}
	item->submitted_ns = gs_os_now();
	__atomic_store_n(&item->state, GS_TRACK_LIVE, __ATOMIC_RELEASE);
}

static bool item_clean(const struct gs_track_item *item)
{
	const struct gs_gpu_limit *limit = &gs_gate.page->gpu[item->gpu];

	if (item->window)
		return GS_LOAD(limit->window) == item->window;
	if (!item->alone || !GS_LOAD(limit->alone))
		return false;
	return item->alone == 2 || GS_LOAD(gs_gate.gpu[item->gpu].switches) == item->switches;
}

static void item_settle(struct gs_track_item *item, uint64_t now)
{
	struct gs_price_change change;
	uint64_t sample_ns;
	float ms = 0;

	if (!item->sample ||
	    gs_gate.driver.event_elapsed(&ms, item->start, item->end) != CUDA_SUCCESS || ms < 0)
		return;
	sample_ns = (uint64_t)((double)ms * 1e6);
	// In an idle stream the start event is over before the launch is made: what
	// lies between is the host's time, not the GPU's.
	if (item->gap_ns)
		sample_ns = item->gap_ns < sample_ns - sample_ns / 4 ? sample_ns - item->gap_ns
								     : sample_ns / 4;
	gs_price_observe(&gs_gate.prices, item->ref, sample_ns, item_clean(item), item->charged_ns,
			 now, &change);
	gs_gate_settled(item, &change, sample_ns, now);
}

static void poll_items(uint64_t now)
{
	struct gs_track_ring *ring = &gs_gate.ring;
	uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	uint32_t tail = GS_LOAD(ring->tail);
	int not_ready = 0, ready = 0;

	for (uint32_t i = tail; i != head && not_ready < POLL_NOT_READY && ready < POLL_READY; i++) {
		struct gs_track_item *item = item_of(i);
		struct gs_gate_gpu *g;
		CUresult result;

		if (__atomic_load_n(&item->state, __ATOMIC_ACQUIRE) != GS_TRACK_LIVE)
			continue;
		result = gs_gate.driver.event_query(item->end);
		if (result == CUDA_ERROR_NOT_READY) {
			not_ready++;
			continue;
		}
		ready++;
		if (result == CUDA_SUCCESS)
			item_settle(item, now);
		g = &gs_gate.gpu[item->gpu];
		GS_STORE(g->last_done_ns, now);
		__atomic_fetch_add(&g->done, 1, __ATOMIC_RELAXED);
		item_finish(item);
	}
	while (tail != head && __atomic_load_n(&item_of(tail)->state, __ATOMIC_ACQUIRE) == GS_TRACK_DONE) {
		__atomic_store_n(&item_of(tail)->state, GS_TRACK_FREE, __ATOMIC_RELAXED);
		tail++;
	}
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

void gs_track_poll(uint64_t now_ns)
{
	CUstreamCaptureMode mode;

	// Whoever comes second leaves it to the first: nobody waits here.
	if (!gs_track_any() || __atomic_exchange_n(&gs_gate.ring.polling, 1, __ATOMIC_ACQUIRE))
		return;
	driver_enter(&mode);
	poll_items(now_ns);
	driver_leave(&mode);
	__atomic_store_n(&gs_gate.ring.polling, 0, __ATOMIC_RELEASE);
}

bool gs_track_any(void)
{
	return GS_LOAD(gs_gate.ring.head) != GS_LOAD(gs_gate.ring.tail);
}

uint64_t gs_track_oldest(uint32_t gpu, uint64_t *ret_cost_ns)
{
	uint32_t head = __atomic_load_n(&gs_gate.ring.head, __ATOMIC_ACQUIRE);

	for (uint32_t i = GS_LOAD(gs_gate.ring.tail); i != head; i++) {
		const struct gs_track_item *item = item_of(i);
		uint32_t state = __atomic_load_n(&item->state, __ATOMIC_ACQUIRE);
		uint64_t from = GS_LOAD(gs_gate.gpu[gpu].last_done_ns), cost;

		if ((state != GS_TRACK_LIVE && state != GS_TRACK_FILLING) || item->gpu != gpu)
			continue;
		cost = (uint64_t)GS_LOAD(item->inflight_ns);
		if (state == GS_TRACK_FILLING) {
			*ret_cost_ns = cost;
			return 1;
		}
		if (GS_LOAD(item->submitted_ns) > from)
			from = GS_LOAD(item->submitted_ns);
		*ret_cost_ns = cost;
		return from + cost;
	}
	*ret_cost_ns = 0;
	return 0;
}

void gs_track_abandon(uint32_t gpu)
{
	uint32_t head = __atomic_load_n(&gs_gate.ring.head, __ATOMIC_ACQUIRE);

	for (uint32_t i = GS_LOAD(gs_gate.ring.tail); i != head; i++) {
		struct gs_track_item *item = item_of(i);

		if (__atomic_load_n(&item->state, __ATOMIC_ACQUIRE) == GS_TRACK_LIVE && item->gpu == gpu)
			gs_gate_landed(&gs_gate.gpu[gpu],
				       __atomic_exchange_n(&item->inflight_ns, 0, __ATOMIC_RELAXED));
	}
}

void gs_track_forget(CUcontext context)
{
	struct gs_track_ring *ring = &gs_gate.ring;

	// A look at the events takes microseconds; one that takes longer belongs to
	// a thread that uses the context while this one destroys it.
	for (int i = 0; context && i < 20000; i++) {
		if (!__atomic_exchange_n(&ring->polling, 1, __ATOMIC_ACQUIRE))
			break;
		gs_os_pause();
	}
	for (uint32_t i = 0; i < GS_TRACK_ITEMS; i++) {
		struct gs_track_item *item = &ring->item[i];
		uint32_t state = __atomic_load_n(&item->state, __ATOMIC_ACQUIRE);

		if (context && item->context != context)
			continue;
		item->context = NULL; // the events go with it
		if (!context) {
			item->inflight_ns = 0;
			item->state = GS_TRACK_FREE;
		} else if (state == GS_TRACK_LIVE) {
			item_finish(item);
		}
	}
	if (!context)
		ring->head = ring->tail = 0;
	__atomic_store_n(&ring->polling, 0, __ATOMIC_RELEASE);
}
