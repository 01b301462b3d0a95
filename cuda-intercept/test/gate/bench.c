// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Added time per launch, with a driver whose launch does nothing: percentiles over
// batches of 64, one thread and two, at a ceiling that never throttles.

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gate.h"

#define BATCH 64
#define BATCHES 20000

struct CUevent_st {
	int unused;
};

static struct gs_limits_page page;
static struct gs_ledger_header ledger;

static CUresult event_create(CUevent *ret, unsigned int flags)
{
	(void)flags;
	*ret = calloc(1, sizeof(**ret));
	return CUDA_SUCCESS;
}

static CUresult event_any(CUevent e)
{
	(void)e;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent e, CUstream s)
{
	(void)e;
	(void)s;
	return CUDA_SUCCESS;
}

// Each launch is said to take 1 us, so that claims come as often as they do for
// the shortest kernels.
static CUresult event_elapsed(float *ret_ms, CUevent a, CUevent b)
{
	(void)a;
	(void)b;
	*ret_ms = 0.001f;
	return CUDA_SUCCESS;
}

static CUresult ctx_get(CUcontext *ret)
{
	*ret = (CUcontext)0x1000;
	return CUDA_SUCCESS;
}

static CUresult ctx_push(CUcontext c)
{
	(void)c;
	return CUDA_SUCCESS;
}

static CUresult __attribute__((noinline)) launch_nothing(void)
{
	__asm__ volatile("");
	return CUDA_SUCCESS;
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct thread {
	pthread_t id;
	bool gated;
	int shapes;
	double ns[BATCHES];
};

static void *run(void *arg)
{
	struct thread *t = arg;
	uint64_t k = 0;

	for (int b = 0; b < BATCHES; b++) {
		double from = now_ns();

		for (int i = 0; i < BATCH; i++) {
			struct gs_gate_shape s = { .handle = 0x1000 + 64 * (k++ % (uint64_t)t->shapes),
						   .grid = { 1024, 1, 1 },
						   .block = { 256, 1, 1 } };
			struct gs_gate_ticket ticket;

			if (t->gated)
				gs_gate_enter(&ticket, 0, NULL, GS_GATE_LEGACY, &s);
			launch_nothing();
			if (t->gated)
				gs_gate_leave(&ticket, CUDA_SUCCESS);
		}
		t->ns[b] = (now_ns() - from) / BATCH;
	}
	qsort(t->ns, BATCHES, sizeof(t->ns[0]), compare);
	return NULL;
}

static void measure(const char *name, bool gated, int threads, int shapes, uint32_t ceiling, bool alone)
{
	static struct thread t[2];

	memset(&ledger, 0, sizeof(ledger));
	page.gpu[0].ceiling_milli = ceiling;
	page.gpu[0].alone = alone;
	page.gpu[0].inflight_us = 4000000; // nothing waits: the cost of passing alone counts
	page.header.generation++;
	for (int i = 0; i < threads; i++) {
		t[i].gated = gated;
		t[i].shapes = shapes;
		pthread_create(&t[i].id, NULL, run, &t[i]);
	}
	for (int i = 0; i < threads; i++)
		pthread_join(t[i].id, NULL);
	printf("%-44s p50 %6.1f  p90 %6.1f  p99 %6.1f ns, throttled %.1f ms\n", name,
	       t[0].ns[BATCHES / 2], t[0].ns[BATCHES * 9 / 10], t[0].ns[BATCHES * 99 / 100],
	       (double)ledger.gpu[0].throttled_ns / 1e6);
}

int main(void)
{
	page.header.gpu_count = 1;
	page.gpu[0].alone = 1;
	gs_gate_attach(&(struct gs_gate_env){
		.page = &page,
		.ledger = &ledger,
		.driver = { .event_create = event_create,
			    .event_destroy = event_any,
			    .event_record = event_record,
			    .event_record_ptsz = event_record,
			    .event_query = event_any,
			    .event_elapsed = event_elapsed,
			    .ctx_get_current = ctx_get,
			    .ctx_push = ctx_push,
			    .ctx_pop = ctx_get },
	});
	measure("no gate", false, 1, 1, 1000, true);
	measure("alone, no ceiling, 1 shape", true, 1, 1, 1000, true);
	measure("alone, no ceiling, 500 shapes", true, 1, 500, 1000, true);
	measure("neighbours, no ceiling, 1 shape", true, 1, 1, 1000, false);
	measure("neighbours, no ceiling, 500 shapes", true, 1, 500, 1000, false);
	measure("neighbours, no ceiling, 2 threads", true, 2, 1, 1000, false);
	measure("ceiling 999, 1 shape (throttles: p50 only)", true, 1, 1, 999, false);
	return 0;
}
