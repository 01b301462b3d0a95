// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The gate's manners: what it asks of the driver and when, on a virtual clock and
// a driver that runs every launch one after another.

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "gate_os.h"
#include "gate_state.h"

int check_failed;

struct CUevent_st {
	uint64_t at_ns;
	CUcontext context;
	struct CUevent_st *next;
};

// The world.
static uint64_t now = 1000000000000ULL, busy_until, waited_ns, limit_ns = UINT64_MAX;
static struct gs_limits_page page;
static struct gs_ledger_header ledger;
static CUcontext current;
static CUresult capture_result;
static CUstreamCaptureStatus capture_status;
static CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static bool stuck, strict;
static int records, records_ptsz, queries, rings[3], asked;
static CUcontext dead;
static struct CUevent_st *all;

uint64_t gs_os_now(void)
{
	errno = 77;
	return now;
}

void gs_os_pause(void)
{
	now += 100;
}

void gs_os_wait(const uint32_t *word, uint32_t value, uint64_t wait_ns)
{
	errno = EINTR;
	if (*word != value)
		return;
	now += wait_ns;
	waited_ns += wait_ns;
	CHECK(waited_ns < limit_ns, "waited %lu ns", (unsigned long)waited_ns);
	if (waited_ns >= limit_ns)
		exit(1);
}

void gs_os_ring(uint32_t kind, uint32_t gpu, uint32_t slot, uint64_t wall_ns)
{
	(void)gpu;
	(void)slot;
	(void)wall_ns;
	rings[kind]++;
}

static void relaxed(void)
{
	CHECK(!strict || mode == CU_STREAM_CAPTURE_MODE_RELAXED, "a call that can break a capture");
}

static CUresult event_create(CUevent *ret, unsigned int flags)
{
	(void)flags;
	relaxed();
	*ret = calloc(1, sizeof(**ret));
	(*ret)->context = current;
	(*ret)->next = all;
	all = *ret;
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent e)
{
	struct CUevent_st **at = &all;

	while (*at && *at != e)
		at = &(*at)->next;
	CHECK(*at != NULL, "an event of a dead context");
	if (*at)
		*at = e->next;
	free(e);
	return CUDA_SUCCESS;
}

// context_die frees a context's events as the driver does; NULL: everybody's.
static void context_die(CUcontext c)
{
	struct CUevent_st **at = &all;

	while (*at) {
		struct CUevent_st *e = *at;

		if (c && e->context != c) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
	}
}

static CUresult event_record(CUevent e, CUstream s)
{
	(void)s;
	relaxed();
	CHECK(e->context == current, "an event of another context");
	e->at_ns = busy_until > now ? busy_until : now;
	records++;
	return CUDA_SUCCESS;
}

static CUresult event_record_ptsz(CUevent e, CUstream s)
{
	records_ptsz++;
	records--;
	return event_record(e, s);
}

static CUresult event_query(CUevent e)
{
	relaxed();
	CHECK(e->context != dead, "an event of a dead context"); // or the sanitizer says so
	queries++;
	return stuck || e->at_ns > now ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult event_elapsed(float *ret_ms, CUevent a, CUevent b)
{
	*ret_ms = (float)((double)(b->at_ns - a->at_ns) / 1e6);
	return CUDA_SUCCESS;
}

static CUresult ctx_get(CUcontext *ret)
{
	*ret = current;
	return CUDA_SUCCESS;
}

static CUresult ctx_push(CUcontext c)
{
	(void)c;
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream s, CUstreamCaptureStatus *ret)
{
	(void)s;
	asked++;
	*ret = capture_status;
	return capture_result;
}

static CUresult exchange(CUstreamCaptureMode *m)
{
	CUstreamCaptureMode old = mode;

	mode = *m;
	*m = old;
	return CUDA_SUCCESS;
}

static void attach(uint32_t ceiling, bool alone)
{
	struct gs_gate_env env = {
		.page = &page,
		.ledger = &ledger,
		.driver = { .event_create = event_create,
			    .event_destroy = event_destroy,
			    .event_record = event_record,
			    .event_record_ptsz = event_record_ptsz,
			    .event_query = event_query,
			    .event_elapsed = event_elapsed,
			    .ctx_get_current = ctx_get,
			    .ctx_push = ctx_push,
			    .ctx_pop = ctx_get,
			    .stream_is_capturing = is_capturing,
			    .stream_is_capturing_ptsz = is_capturing,
			    .exchange_capture_mode = exchange },
	};

	// A new process: fork resets the state as attach finds it, prices apart.
	gs_gate_fork_child();
	memset(&gs_gate.prices, 0, sizeof(gs_gate.prices));
	context_die(NULL);
	memset(&page, 0, sizeof(page));
	memset(&ledger, 0, sizeof(ledger));
	page.header.gpu_count = 2;
	page.header.generation = 1;
	for (int i = 0; i < 2; i++) {
		page.gpu[i].ceiling_milli = ceiling;
		page.gpu[i].alone = alone;
	}
	now += 100000000000ULL;
	busy_until = waited_ns = 0;
	limit_ns = UINT64_MAX;
	records = records_ptsz = queries = asked = 0;
	memset(rings, 0, sizeof(rings));
	stuck = false;
	dead = NULL;
	current = (CUcontext)0x1000;
	capture_result = CUDA_SUCCESS;
	capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
	gs_gate_attach(&env);
}

static void launch_on(uint32_t gpu, CUstream s, enum gs_gate_flavour f, uint64_t handle, uint64_t ns,
		      CUresult result)
{
	struct gs_gate_shape shape = { .handle = handle, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
	struct gs_gate_ticket t;

	memset(&t, 0xa5, sizeof(t));
	errno = 1234;
	gs_gate_enter(&t, gpu, s, f, &shape);
	CHECK(errno == 1234, "enter changed errno to %d", errno);
	if (result == CUDA_SUCCESS)
		busy_until = (busy_until > now ? busy_until : now) + ns;
	gs_gate_leave(&t, result);
	CHECK(errno == 1234, "leave changed errno to %d", errno);
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL, "capture mode was not put back");
}

static void launch(uint64_t handle, uint64_t ns)
{
	launch_on(0, NULL, GS_GATE_LEGACY, handle, ns, CUDA_SUCCESS);
}

static void test_open(void)
{
	gs_gate_fork_child();
	launch(1, 1000);
	gs_gate_poll();
	gs_gate_context_gone(current);
	CHECK(records == 0, "an open gate uses the driver");
	attach(500, true);
	launch_on(5, NULL, GS_GATE_LEGACY, 1, 1000, CUDA_SUCCESS);
	CHECK(records == 0 && ledger.gpu[5].launches == 0, "a GPU that is not in the page");
}

static void test_counts(void)
{
	attach(500, true);
	for (int i = 0; i < 5000; i++)
		launch(1, 20000);
	for (int i = 0; i < 100; i++)
		launch(1, 20000), now += 400000; // each passes the slow path
	CHECK(ledger.gpu[0].launches >= 5090 && ledger.gpu[0].launches <= 5100, "launches %lu",
	      (unsigned long)ledger.gpu[0].launches);
	CHECK(ledger.gpu[0].charged_ns >= 5090 * 20000ULL && ledger.gpu[0].charged_ns <= 5100 * 20000ULL,
	      "charged %lu", (unsigned long)ledger.gpu[0].charged_ns);
	CHECK(ledger.gpu[0].throttles > 0 && ledger.gpu[0].throttled_ns > 0, "never throttled");
	CHECK(rings[1] == 0, "rings while alone");
}

static void test_flavour(void)
{
	attach(500, true);
	for (int i = 0; i < 50; i++)
		launch_on(0, NULL, GS_GATE_PER_THREAD, 1, 1000000, CUDA_SUCCESS);
	CHECK(records == 0 && records_ptsz > 20, "%d legacy, %d per-thread records", records, records_ptsz);
	attach(500, true);
	for (int i = 0; i < 50; i++)
		launch(1, 1000000);
	CHECK(records_ptsz == 0 && records > 20, "%d legacy, %d per-thread records", records, records_ptsz);
}

static void test_capture(void)
{
	uint64_t from;

	attach(1, false); // one thousandth: anything gated would wait for seconds
	for (int i = 0; i < 3; i++)
		launch(1, 5000000);
	from = now;
	records = queries = 0;
	gs_gate_capture_begin();
	capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	for (int i = 0; i < 100; i++)
		launch(1, 0);
	capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
	capture_result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	for (int i = 0; i < 100; i++)
		launch(1, 0);
	CHECK(now == from && records == 0 && queries == 0, "a captured launch was gated");
	CHECK(asked == 200, "asked the driver %d times", asked);
	// Another stream of the same process stays gated, and no call of ours breaks the capture.
	capture_result = CUDA_SUCCESS;
	strict = true;
	launch(1, 5000000);
	strict = false;
	CHECK(now > from, "a launch beside a capture was not gated");
	gs_gate_capture_end();
	gs_gate_capture_end(); // one too many
	asked = 0;
	launch(1, 5000000);
	CHECK(asked == 0, "still asks after the capture");
}

static void test_refund(void)
{
	uint64_t paid, charged;

	attach(100, true);
	for (int i = 0; i < 20; i++)
		launch(1, 100000);
	now += 1000000000;
	launch(1, 100000);
	paid = ledger.gpu[0].paid_ns;
	charged = ledger.gpu[0].charged_ns;
	for (int i = 0; i < 100000; i++)
		launch_on(0, NULL, GS_GATE_LEGACY, 1, 0, CUDA_ERROR_INVALID_VALUE);
	CHECK(ledger.gpu[0].paid_ns <= paid + 10 * GS_GATE_SLICE_NS, "failed launches cost %lu",
	      (unsigned long)(ledger.gpu[0].paid_ns - paid));
	CHECK(ledger.gpu[0].charged_ns <= charged + 1000000, "failed launches are charged %lu",
	      (unsigned long)(ledger.gpu[0].charged_ns - charged));
}

static void test_hold(void)
{
	uint64_t from;

	attach(1000, false);
	launch(1, 1000);
	page.gpu[0].hold = 9;
	page.header.generation++;
	from = now;
	launch(1, 1000);
	CHECK(now - from >= GS_HOLD_MAX && now - from < GS_HOLD_MAX + 1000000, "held for %lu",
	      (unsigned long)(now - from));
	from = now;
	for (int i = 0; i < 100; i++)
		launch(2, 1000);
	CHECK(now - from < 10000000, "a dead daemon's hold still counts");
}

static void test_stuck(void)
{
	attach(600, false);
	for (int i = 0; i < 20; i++)
		launch(1, 50000);
	now += 1000000000;
	gs_gate_poll();
	stuck = true; // everything in flight waits for what this thread does next
	limit_ns = 20000000000ULL;
	for (int i = 0; i < 1000; i++)
		launch(1, 50000);
	CHECK(waited_ns < 5000000000ULL, "stood in the way for %lu ns", (unsigned long)waited_ns);
	CHECK(GS_LOAD(gs_gate.gpu[0].inflight_ns) >= 0, "in flight %ld", (long)gs_gate.gpu[0].inflight_ns);
	stuck = false;
	now += 10000000000ULL;
	gs_gate_poll();
	for (int i = 0; i < 20; i++) // a look takes in a bounded number
		gs_gate_poll();
	CHECK(GS_LOAD(gs_gate.gpu[0].inflight_ns) == 0, "in flight %ld", (long)gs_gate.gpu[0].inflight_ns);
}

static void test_contexts(void)
{
	attach(600, false);
	for (int round = 0; round < 300; round++) {
		current = (CUcontext)(uintptr_t)(0x1000 + 16 * round);
		dead = NULL;
		for (int i = 0; i < 5; i++)
			launch(1, 3000000);
		gs_gate_context_gone(current);
		dead = current;
		context_die(dead);
		current = (CUcontext)(uintptr_t)(0x1000 + 16 * (round + 1));
		launch(1, 3000000);
		gs_gate_poll();
	}
	CHECK(GS_LOAD(gs_gate.gpu[0].inflight_ns) <= 6 * 3000000, "in flight %ld",
	      (long)gs_gate.gpu[0].inflight_ns);
}

static void test_gpus(void)
{
	uint64_t from;

	attach(100, true);
	for (int i = 0; i < 10; i++) {
		launch_on(0, NULL, GS_GATE_LEGACY, 1, 10000, CUDA_SUCCESS);
		launch_on(1, NULL, GS_GATE_LEGACY, 2, 10000, CUDA_SUCCESS);
		now += 1000000;
	}
	// By turns: what is claimed for one and not used must not be lost.
	now += 1000000000;
	from = now;
	for (int i = 0; i < 10000; i++)
		launch_on((uint32_t)i % 2, NULL, GS_GATE_LEGACY, 1 + (uint64_t)i % 2, 10000, CUDA_SUCCESS);
	CHECK(now - from > 450000000 && now - from < 520000000, "5000 of 10 us at a tenth took %lu",
	      (unsigned long)(now - from));
	for (int g = 0; g < 2; g++)
		CHECK(ledger.gpu[g].launches == 5010, "GPU %d: %lu launches", g,
		      (unsigned long)ledger.gpu[g].launches);
}

static void test_doorbell(void)
{
	uint64_t from;

	attach(1000, false);
	from = now;
	while (now - from < 1000000000) {
		launch(1 + now % 7, 40000);
		now += 50000;
	}
	CHECK(rings[1] >= 40 && rings[1] <= 51, "%d doorbells in a second", rings[1]);
	CHECK(ledger.gpu[0].unpriced > 1000, "unpriced %lu", (unsigned long)ledger.gpu[0].unpriced);
	// The window: priced, and the bell that ends it.
	page.gpu[0].window = 3;
	page.header.generation++;
	busy_until = 0;
	for (int i = 0; i < 100; i++) {
		for (uint64_t k = 1; k <= 7; k++)
			launch(k, 40000);
		now += 50000;
	}
	CHECK(rings[2] >= 1 && rings[2] < 8, "%d bells at the end", rings[2]);
	page.gpu[0].window = 0;
	page.header.generation++;
	from = ledger.gpu[0].unpriced;
	for (uint64_t k = 1; k <= 7; k++)
		launch(k, 40000);
	CHECK(ledger.gpu[0].unpriced == from, "unpriced after the window");
}

int main(void)
{
	test_open();
	test_counts();
	test_flavour();
	test_capture();
	test_refund();
	test_hold();
	test_stuck();
	test_contexts();
	test_gpus();
	test_doorbell();
	context_die(NULL);
	printf("gate: %d failed\n", check_failed);
	return check_failed != 0;
}
