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
// Host time that a launch may take beyond the usual without spoiling its sample.
#define GS_TRACK_GAP_NS 500

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

static struct gs_track_item *item_of(uint32_t gpu, uint32_t index)
{
	return &gs_gate.gpu[gpu].ring.item[index % GS_TRACK_ITEMS];
}

// One thread at a time looks at events; whoever comes second goes on without.
static bool polling_take(void)
{
	return !__atomic_exchange_n(&gs_gate.polling, 1, __ATOMIC_ACQUIRE);
}

static void polling_give(void)
{
	__atomic_store_n(&gs_gate.polling, 0, __ATOMIC_RELEASE);
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

// events_drop destroys the events of a context that the place was last used for.
// That context may be going away in another thread: gs_track_forget takes the
// same flag and leaves none of its events behind, so what is found here lives.
static bool events_drop(struct gs_track_item *item)
{
	if (!polling_take())
		return false;
	if (GS_LOAD(item->context)) {
		gs_gate.driver.event_destroy(item->start);
		gs_gate.driver.event_destroy(item->end);
		GS_STORE(item->context, NULL);
	}
	polling_give();
	return true;
}

static bool events_make(struct gs_track_item *item, CUcontext context, CUcontext current)
{
	const struct gs_gate_driver *d = &gs_gate.driver;
	CUcontext have = GS_LOAD(item->context), popped;
	bool ok;

	if (have == context)
		return true;
	if (have && !events_drop(item))
		return false;
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
		GS_STORE(item->context, context);
	return ok;
}

static bool event_record(CUevent event, CUstream stream, enum gs_gate_flavour flavour)
{
	return (flavour == GS_GATE_PER_THREAD ? gs_gate.driver.event_record_ptsz(event, stream)
					      : gs_gate.driver.event_record(event, stream)) ==
	       CUDA_SUCCESS;
}

// stream_state says whether the stream has unfinished work: CUDA_SUCCESS is no,
// CUDA_ERROR_NOT_READY is yes, anything else is unknown.
static CUresult stream_state(CUstream stream, enum gs_gate_flavour flavour)
{
	__typeof__(gs_gate.driver.stream_query) ask = gs_gate.driver.stream_query;

	if (flavour == GS_GATE_PER_THREAD)
		ask = gs_gate.driver.stream_query_ptsz;
	return ask ? ask(stream) : CUDA_ERROR_UNKNOWN;
}

static int32_t ring_take(uint32_t gpu)
{
	struct gs_track_ring *ring = &gs_gate.gpu[gpu].ring;
	uint32_t head = GS_LOAD(ring->head);

	do {
		if (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) >= GS_TRACK_ITEMS)
			return -1;
	} while (!__atomic_compare_exchange_n(&ring->head, &head, head + 1, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	__atomic_store_n(&item_of(gpu, head)->state, GS_TRACK_FILLING, __ATOMIC_RELEASE);
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
	index = ring_take(gpu);
	if (index < 0)
		return -1;
	item = item_of(gpu, (uint32_t)index);
	item->sample = sample;
	item->ref.seq = 0;
	item->idle_ns = item->gap_ns = item->busy = 0;
	driver_enter(&mode);
	context = context_of(stream, &current);
	ok = context && events_make(item, context, current);
	if (ok && sample) {
		CUresult state = stream_state(stream, flavour);

		ok = event_record(item->start, stream, flavour);
		item->idle_ns = state == CUDA_SUCCESS ? gs_os_now() : 0;
		item->busy = state == CUDA_ERROR_NOT_READY;
	}
	driver_leave(&mode);
	if (ok)
		return index;
	gs_track_cancel(gpu, index);
	return -1;
}

static void item_finish(uint32_t gpu, struct gs_track_item *item)
{
	gs_gate_landed(&gs_gate.gpu[gpu],
		       __atomic_exchange_n(&item->inflight_ns, 0, __ATOMIC_RELAXED));
	__atomic_store_n(&item->state, GS_TRACK_DONE, __ATOMIC_RELEASE);
}

void gs_track_cancel(uint32_t gpu, int32_t index)
{
	item_finish(gpu, item_of(gpu, (uint32_t)index));
}

void gs_track_end(uint32_t gpu, int32_t index, CUstream stream, enum gs_gate_flavour flavour)
{
	struct gs_track_item *item = item_of(gpu, (uint32_t)index);
	CUstreamCaptureMode mode;
	bool ok;

	if (item->idle_ns)
		item->gap_ns = gs_os_now() - item->idle_ns;
	driver_enter(&mode);
	ok = GS_LOAD(item->context) && event_record(item->end, stream, flavour);
	driver_leave(&mode);
	if (!ok) {
		item_finish(gpu, item);
		return;
	}
	GS_STORE(item->submitted_ns, gs_os_now());
	__atomic_store_n(&item->state, GS_TRACK_LIVE, __ATOMIC_RELEASE);
}

// gap_usual tells whether a launch followed its start event as quickly as it can. A
// thread that was interrupted in between, or a launch that had to load its module,
// makes a gap of which nobody knows how much lies before the work began.
// Beside a long launch it does not matter.
static bool gap_usual(struct gs_gate_gpu *g, uint64_t gap, uint64_t sample_ns)
{
	uint64_t least = GS_LOAD(g->gap_ns);

	if (least == 0 || gap < least)
		GS_STORE(g->gap_ns, gap);
	else if (gap > sample_ns / 16 && gap > least + least / 2 + GS_TRACK_GAP_NS) {
		GS_STORE(g->gap_ns, least + least / 64 + 1); // the host may have become slower
		return false;
	}
	return true;
}

// item_sample returns the time between the item's events and what it is worth.
static uint64_t item_sample(uint32_t gpu, const struct gs_track_item *item, float ms, uint64_t now,
			    enum gs_price_kind *ret_kind)
{
	uint64_t sample_ns = (uint64_t)((double)ms * 1e6);

	*ret_kind = gs_gate_clean(gpu, item, now) ? GS_PRICE_CLEAN : item->busy ? GS_PRICE_BUSY : GS_PRICE_WALL;
	if (!item->gap_ns)
		return sample_ns;
	// In an idle stream the start event is over before the launch is made, and
	// the work begins before the launch returns: take the middle.
	if (!gap_usual(&gs_gate.gpu[gpu], item->gap_ns, sample_ns))
		*ret_kind = GS_PRICE_WALL;
	else
		sample_ns -= item->gap_ns < sample_ns ? item->gap_ns / 2 : sample_ns / 2;
	return sample_ns;
}

static void item_settle(uint32_t gpu, struct gs_track_item *item, uint64_t now)
{
	struct gs_price_change change;
	enum gs_price_kind kind;
	uint64_t sample_ns;
	float ms = 0;

	if (!item->sample ||
	    gs_gate.driver.event_elapsed(&ms, item->start, item->end) != CUDA_SUCCESS || !(ms >= 0))
		return;
	sample_ns = item_sample(gpu, item, ms, now, &kind);
	gs_price_observe(&gs_gate.prices, item->ref, sample_ns, kind, item->charged_ns, now, &change);
	gs_gate_settled(gpu, item, &change, sample_ns, now);
}

// item_meter charges a launch of unknown length while it runs. It is waited for no
// longer than any stalled one: what follows must not be free until it has ended.
static void item_meter(uint32_t gpu, struct gs_track_item *item, uint64_t now)
{
	uint64_t from = GS_LOAD(gs_gate.gpu[gpu].last_done_ns);

	if (GS_LOAD(item->submitted_ns) > from)
		from = GS_LOAD(item->submitted_ns);
	if (item->sample && now > from + GS_GATE_STALL_NS / 2 &&
	    gs_gate.driver.event_query(item->start) == CUDA_SUCCESS)
		gs_gate_runs(gpu, item, now - from, now);
}

static void poll_ring(uint32_t gpu, uint64_t now)
{
	struct gs_gate_gpu *g = &gs_gate.gpu[gpu];
	struct gs_track_ring *ring = &g->ring;
	uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	uint32_t tail = GS_LOAD(ring->tail);
	int not_ready = 0, ready = 0;

	for (uint32_t i = tail; i != head && not_ready < POLL_NOT_READY && ready < POLL_READY; i++) {
		struct gs_track_item *item = item_of(gpu, i);
		CUresult result;

		if (__atomic_load_n(&item->state, __ATOMIC_ACQUIRE) != GS_TRACK_LIVE)
			continue;
		result = gs_gate.driver.event_query(item->end);
		if (result == CUDA_ERROR_NOT_READY) {
			if (not_ready++ == 0)
				item_meter(gpu, item, now);
			continue;
		}
		ready++;
		if (result == CUDA_SUCCESS)
			item_settle(gpu, item, now);
		GS_STORE(g->last_done_ns, now);
		__atomic_fetch_add(&g->done, 1, __ATOMIC_RELAXED);
		item_finish(gpu, item);
	}
	while (tail != head &&
	       __atomic_load_n(&item_of(gpu, tail)->state, __ATOMIC_ACQUIRE) == GS_TRACK_DONE) {
		__atomic_store_n(&item_of(gpu, tail)->state, GS_TRACK_FREE, __ATOMIC_RELAXED);
		tail++;
	}
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

static bool ring_used(uint32_t gpu)
{
	const struct gs_track_ring *ring = &gs_gate.gpu[gpu].ring;

	return GS_LOAD(ring->head) != GS_LOAD(ring->tail);
}

void gs_track_poll(uint64_t now_ns)
{
	CUstreamCaptureMode mode;

	if (!gs_track_any() || !polling_take())
		return;
	driver_enter(&mode);
	for (uint32_t gpu = 0; gpu < gs_gate.gpu_count; gpu++)
		if (ring_used(gpu))
			poll_ring(gpu, now_ns);
	driver_leave(&mode);
	polling_give();
}

bool gs_track_any(void)
{
	for (uint32_t gpu = 0; gpu < gs_gate.gpu_count; gpu++)
		if (ring_used(gpu))
			return true;
	return false;
}

uint64_t gs_track_oldest(uint32_t gpu, uint64_t *ret_cost_ns)
{
	const struct gs_track_ring *ring = &gs_gate.gpu[gpu].ring;
	uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	*ret_cost_ns = 0;
	for (uint32_t i = GS_LOAD(ring->tail); i != head; i++) {
		const struct gs_track_item *item = item_of(gpu, i);
		uint32_t state = __atomic_load_n(&item->state, __ATOMIC_ACQUIRE);
		uint64_t from = GS_LOAD(gs_gate.gpu[gpu].last_done_ns);

		if (state == GS_TRACK_FILLING)
			return 1;
		if (state != GS_TRACK_LIVE)
			continue;
		*ret_cost_ns = (uint64_t)GS_LOAD(item->inflight_ns);
		if (GS_LOAD(item->submitted_ns) > from)
			from = GS_LOAD(item->submitted_ns);
		return from + *ret_cost_ns;
	}
	return 0;
}

void gs_track_abandon(uint32_t gpu)
{
	const struct gs_track_ring *ring = &gs_gate.gpu[gpu].ring;
	uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	for (uint32_t i = GS_LOAD(ring->tail); i != head; i++) {
		struct gs_track_item *item = item_of(gpu, i);

		if (__atomic_load_n(&item->state, __ATOMIC_ACQUIRE) == GS_TRACK_LIVE)
			gs_gate_landed(&gs_gate.gpu[gpu],
				       __atomic_exchange_n(&item->inflight_ns, 0, __ATOMIC_RELAXED));
	}
}

static void item_forget(uint32_t gpu, struct gs_track_item *item, CUcontext context)
{
	if (GS_LOAD(item->context) != context)
		return;
	GS_STORE(item->context, NULL); // the events go with it
	if (__atomic_load_n(&item->state, __ATOMIC_ACQUIRE) == GS_TRACK_LIVE)
		item_finish(gpu, item);
}

void gs_track_forget(CUcontext context)
{
	// A look at events takes microseconds; one that takes longer than this
	// belongs to a thread that uses the context while this one destroys it.
	for (int i = 0; i < 100000 && !polling_take(); i++)
		gs_os_pause();
	for (uint32_t gpu = 0; gpu < gs_gate.gpu_count; gpu++)
		for (uint32_t i = 0; i < GS_TRACK_ITEMS; i++)
			item_forget(gpu, &gs_gate.gpu[gpu].ring.item[i], context);
	polling_give();
}
