// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Threads that launch while contexts come and go and the daemon changes the page,
// on the real clock. Made for the sanitizers; on its own it shows that nobody
// hangs and that no launch is lost from the account.

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <linux/futex.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "gate_os.h"
#include "gate_state.h"

#define THREADS 4
#define EVENTS 4096
#define RUN_NS 3000000000ULL

int check_failed;

struct CUevent_st {
	uint64_t at_ns;
};

static struct gs_limits_page page;
static struct gs_ledger_header ledger;
static struct CUevent_st pool[EVENTS];
static uint32_t pool_next;
static uint64_t engine_ns;
static uint64_t launched;
static uint32_t over;
static __thread CUcontext current;

static CUresult event_create(CUevent *ret, unsigned int flags)
{
	(void)flags;
	*ret = &pool[__atomic_fetch_add(&pool_next, 1, __ATOMIC_RELAXED) % EVENTS];
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent e)
{
	(void)e;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent e, CUstream s)
{
	uint64_t now = gs_os_now(), end = GS_LOAD(engine_ns);

	(void)s;
	GS_STORE(e->at_ns, end > now ? end : now);
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent e)
{
	return GS_LOAD(e->at_ns) > gs_os_now() ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult event_elapsed(float *ret_ms, CUevent a, CUevent b)
{
	*ret_ms = (float)((double)(int64_t)(GS_LOAD(b->at_ns) - GS_LOAD(a->at_ns)) / 1e6);
	return CUDA_SUCCESS;
}

static CUresult ctx_get(CUcontext *ret)
{
	*ret = current;
	return CUDA_SUCCESS;
}

static CUresult ctx_push(CUcontext c)
{
	current = c;
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream s, CUstreamCaptureStatus *ret)
{
	(void)s;
	*ret = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static void engine_run(uint64_t ns)
{
	uint64_t now = gs_os_now(), old = GS_LOAD(engine_ns);

	while (!__atomic_compare_exchange_n(&engine_ns, &old, (old > now ? old : now) + ns, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void *launcher(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg * 7919, n = 0;

	current = (CUcontext)(0x1000 + 16 * (uintptr_t)arg);
	while (!GS_LOAD(over)) {
		struct gs_gate_shape s = { .handle = 1 + (seed >> 40) % 50 };
		struct gs_gate_ticket t;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		gs_gate_enter(&t, (uint32_t)(seed >> 60) % 2, (CUstream)(uintptr_t)(((seed >> 50) % 3) << 8),
			      (seed >> 20) % 2 ? GS_GATE_LEGACY : GS_GATE_PER_THREAD, &s);
		if ((seed >> 30) % 16 == 0) {
			gs_gate_leave(&t, CUDA_ERROR_INVALID_VALUE);
			continue;
		}
		engine_run(s.handle * 300);
		gs_gate_leave(&t, CUDA_SUCCESS);
		n++;
		if (n % 512 == 0)
			gs_gate_poll();
		if (n % 4096 == 0) {
			gs_gate_context_gone(current);
			current = (CUcontext)((uintptr_t)current + 0x10000);
		}
	}
	__atomic_fetch_add(&launched, n, __ATOMIC_RELAXED);
	return NULL;
}

static void change(uint32_t *word, uint32_t value)
{
	GS_STORE(*word, value);
	__atomic_fetch_add(&page.header.generation, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
	syscall(SYS_futex, &page.header.generation, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

static void daemon_run(void)
{
	uint64_t start = gs_os_now();
	struct timespec nap = { .tv_nsec = 3000000 };

	for (uint32_t i = 1; gs_os_now() - start < RUN_NS; i++) {
		struct gs_gpu_limit *l = &page.gpu[i % 2];

		nanosleep(&nap, NULL);
		switch (i % 7) {
		case 0:
			change(&l->hold, i);
			nanosleep(&nap, NULL);
			change(&l->hold, 0);
			break;
		case 1:
			change(&l->window, i);
			nanosleep(&nap, NULL);
			change(&l->window, 0);
			break;
		case 2:
			change(&l->ceiling_milli, 100 + i % 10 * 100);
			break;
		case 3:
			change(&l->alone, i / 7 % 2);
			break;
		case 4:
			gs_gate_capture_begin();
			nanosleep(&nap, NULL);
			gs_gate_capture_end();
			break;
		default:
			change(&l->inflight_us, i % 3 * 500);
		}
	}
}

int main(void)
{
	pthread_t t[THREADS];
	uint64_t counted;

	page.header.gpu_count = 2;
	page.gpu[0].ceiling_milli = page.gpu[1].ceiling_milli = 700;
	gs_gate_attach(&(struct gs_gate_env){
		.page = &page,
		.ledger = &ledger,
		.driver = { .event_create = event_create,
			    .event_destroy = event_destroy,
			    .event_record = event_record,
			    .event_record_ptsz = event_record,
			    .event_query = event_query,
			    .event_elapsed = event_elapsed,
			    .ctx_get_current = ctx_get,
			    .ctx_push = ctx_push,
			    .ctx_pop = ctx_get,
			    .stream_is_capturing = is_capturing },
	});
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, launcher, (void *)(i + 1));
	daemon_run();
	GS_STORE(over, 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	// Launches that failed are counted too, captured ones are not, and each thread
	// may keep some of its last slice to itself.
	counted = ledger.gpu[0].launches + ledger.gpu[1].launches;
	CHECK(launched > 1000, "%lu launches", (unsigned long)launched);
	CHECK(counted > launched / 2 && counted < launched * 2, "%lu counted of %lu",
	      (unsigned long)counted, (unsigned long)launched);
	CHECK(GS_LOAD(gs_gate.gpu[0].inflight_ns) >= 0, "in flight %ld", (long)gs_gate.gpu[0].inflight_ns);
	printf("race: %lu launches, %d failed\n", (unsigned long)launched, check_failed);
	return check_failed != 0;
}
