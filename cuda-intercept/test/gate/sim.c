// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "sim_world.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gate_os.h"

#define STACK (256 * 1024)

struct sim_world w;

uint64_t sim_now(void)
{
	return w.now;
}

bool sim_over(void)
{
	return w.now >= w.end;
}

struct sim_tenant *sim_tenant(int index)
{
	return &w.tenant[index];
}

// --- the GPU ---------------------------------------------------------------

static void events_pass(int t)
{
	for (int s = 0; s < STREAMS; s++) {
		struct stream *q = &w.stream[t][s];

		while (q->head != q->tail && !q->queue[q->head % QUEUE].left_ns) {
			struct CUevent_st *e = q->queue[q->head % QUEUE].event;

			e->at_ns = w.gpu_now;
			e->pending--;
			q->head++;
		}
	}
}

static struct work *context_next(int t)
{
	struct work *best = NULL;

	events_pass(t);
	for (int s = 0; s < STREAMS; s++) {
		struct stream *q = &w.stream[t][s];

		if (q->head != q->tail && (!best || q->queue[q->head % QUEUE].seq < best->seq))
			best = &q->queue[q->head % QUEUE];
	}
	return best;
}

static void gpu_advance(uint64_t to)
{
	while (w.gpu_now < to) {
		struct work *work = context_next(w.running);
		uint64_t run;

		if (!work || w.gpu_now >= w.slice_end) {
			int next = w.running, i;

			for (i = 1; i <= w.tenants; i++) {
				next = (w.running + i) % w.tenants;
				if (context_next(next))
					break;
			}
			if (i > w.tenants) {
				w.gpu_now = to;
				return;
			}
			w.running = next;
			w.slice_end = w.gpu_now + w.config.slice_ns;
			continue;
		}
		run = to - w.gpu_now;
		if (run > work->left_ns)
			run = work->left_ns;
		if (run > w.slice_end - w.gpu_now)
			run = w.slice_end - w.gpu_now;
		w.gpu_now += run;
		work->left_ns -= run;
		w.tenant[w.running].executed_ns += run;
		if (work->left_ns == 0) {
			for (int s = 0; s < STREAMS; s++) {
				struct stream *q = &w.stream[w.running][s];

				if (q->head != q->tail && work == &q->queue[q->head % QUEUE])
					q->head++;
			}
		}
		events_pass(w.running);
	}
}

static void gpu_submit(int t, int s, uint64_t ns, struct CUevent_st *event)
{
	struct stream *q = &w.stream[t][s];

	gpu_advance(w.now);
	if (q->tail - q->head >= QUEUE) {
		fprintf(stderr, "sim: stream full\n");
		exit(1);
	}
	q->queue[q->tail++ % QUEUE] = (struct work){ .left_ns = ns, .event = event, .seq = w.seq++ };
	events_pass(t);
}

static bool gpu_idle(int t)
{
	gpu_advance(w.now);
	for (int s = 0; s < STREAMS; s++)
		if (w.stream[t][s].head != w.stream[t][s].tail)
			return false;
	return true;
}

// --- coroutines --------------------------------------------------------------

static void yield_until(uint64_t wake_ns, const uint32_t *word, uint32_t value)
{
	struct coroutine *c = &w.coroutine[w.current];

	c->wake_ns = wake_ns;
	c->word = word;
	c->value = value;
	swapcontext(&c->context, &w.scheduler);
}

void sim_sleep(uint64_t ns)
{
	yield_until(w.now + ns, NULL, 0);
}

uint64_t gs_os_now(void)
{
	return w.now;
}

void gs_os_pause(void)
{
	if (w.current >= 0)
		sim_sleep(100);
}

void gs_os_wait(const uint32_t *word, uint32_t value, uint64_t wait_ns)
{
	uint64_t late = w.config.oversleep_ns;

	if (w.config.stall_ns && ++w.sleeps % 500 == 0)
		late += w.config.stall_ns;
	yield_until(w.now + wait_ns + late, word, value);
}

void gs_os_ring(uint32_t kind, uint32_t gpu, uint32_t slot, uint64_t wall_ns)
{
	int c = w.tenant[w.current].container;

	(void)gpu;
	(void)slot;
	w.tenant[w.current].doorbells++;
	if (kind == GS_DOORBELL_DONE) {
		w.finished[c] = true;
		w.asked_ns[c] = 0;
		return;
	}
	if (w.page[c].gpu[0].window)
		return;
	w.asked_ns[c] = w.now;
	w.asked_wall[c] = wall_ns;
}

// --- the driver --------------------------------------------------------------

static int stream_index(CUstream s)
{
	return (int)((uintptr_t)s >> 4) % STREAMS;
}

static CUresult event_create(CUevent *ret, unsigned int flags)
{
	(void)flags;
	*ret = calloc(1, sizeof(**ret));
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent e)
{
	free(e);
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent e, CUstream s)
{
	sim_sleep(w.config.launch_ns / 2);
	e->pending++;
	gpu_submit(w.current, stream_index(s), 0, e);
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent e)
{
	gpu_advance(w.now);
	return e->pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult event_elapsed(float *ret_ms, CUevent a, CUevent b)
{
	*ret_ms = (float)((double)(b->at_ns - a->at_ns) / 1e6);
	return CUDA_SUCCESS;
}

static CUresult stream_query(CUstream s)
{
	struct stream *q = &w.stream[w.current][stream_index(s)];

	gpu_advance(w.now);
	return q->head == q->tail ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult ctx_get(CUcontext *ret)
{
	*ret = (CUcontext)(uintptr_t)(0x1000 + w.current);
	return CUDA_SUCCESS;
}

static CUresult ctx_push(CUcontext c)
{
	(void)c;
	return CUDA_SUCCESS;
}

static CUresult ctx_pop(CUcontext *ret)
{
	return ctx_get(ret);
}

// --- programs ----------------------------------------------------------------

void sim_launch(struct sim_tenant *t, uint64_t shape, uint64_t kernel_ns, int stream)
{
	struct gs_gate_shape s = { .handle = shape, .grid = { 1024, 1, 1 }, .block = { 256, 1, 1 } };
	CUstream handle = (CUstream)(uintptr_t)(stream << 4);
	struct gs_gate_ticket ticket;

	if (t->graph)
		s = (struct gs_gate_shape){ .handle = shape, .graph = 1 };
	t->enter(&ticket, 0, handle, GS_GATE_LEGACY, &s);
	sim_sleep(w.config.launch_ns);
	gpu_submit(t->index, stream, kernel_ns, NULL);
	t->leave(&ticket, CUDA_SUCCESS);
	t->launches++;
}

void sim_sync(struct sim_tenant *t)
{
	while (!gpu_idle(t->index))
		sim_sleep(5000);
	t->poll();
}

void sim_saturate(struct sim_tenant *t)
{
	int streams = t->streams ? t->streams : 1;

	for (uint64_t i = 0; !sim_over(); i++) {
		int s = (int)(i % (uint64_t)streams);

		// A driver's queue holds about a thousand launches.
		while (w.stream[t->index][s].tail - w.stream[t->index][s].head > 1024) {
			sim_sleep(10000);
			gpu_advance(w.now);
		}
		if (t->shapes) {
			uint64_t k = i * 7919 % (uint64_t)t->shapes;

			sim_launch(t, 0x1000 + k, t->kernel_ns + t->kernel_ns * k / (uint64_t)t->shapes, s);
		} else if (t->kernel2_ns && i % 2) {
			sim_launch(t, 0x200, t->kernel2_ns, s);
		} else {
			bool later = t->later_ns && w.now > (w.begin + w.end) / 2;

			sim_launch(t, 0x100, later ? t->later_ns : t->kernel_ns, s);
		}
		if (t->synchronous)
			sim_sync(t);
	}
}

// --- the world ---------------------------------------------------------------

static void coroutine_main(int i)
{
	if (i == SIM_TENANTS)
		sim_daemon();
	else
		w.tenant[i].program(&w.tenant[i]);
	w.coroutine[i].live = false;
	swapcontext(&w.coroutine[i].context, &w.scheduler);
}

static void coroutine_start(int i)
{
	struct coroutine *c = &w.coroutine[i];

	getcontext(&c->context);
	c->stack = malloc(STACK);
	c->context.uc_stack.ss_sp = c->stack;
	c->context.uc_stack.ss_size = STACK;
	c->context.uc_link = NULL;
	c->live = true;
	c->wake_ns = w.now;
	c->word = NULL;
	makecontext(&c->context, (void (*)(void))coroutine_main, 1, i);
}

static void *gate_copy(int i)
{
	char from[4096], to[4096 + 16], command[3 * 4096];
	const char *lib = getenv("GATE_SO");
	void *handle;

	snprintf(from, sizeof(from), "%s", lib ? lib : "./gate_sim.so");
	snprintf(to, sizeof(to), "%s.%d.%d", from, (int)getpid(), i);
	snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
	if (system(command) != 0)
		exit(1);
	handle = dlopen(to, RTLD_NOW | RTLD_LOCAL);
	remove(to);
	if (!handle) {
		fprintf(stderr, "sim: %s\n", dlerror());
		exit(1);
	}
	return handle;
}

static void gate_load(struct sim_tenant *t, uint32_t slot)
{
	void *copy = gate_copy(t->index);

	w.copy[t->index] = copy;
	t->attach = (__typeof__(t->attach))dlsym(copy, "gs_gate_attach");
	t->enter = (__typeof__(t->enter))dlsym(copy, "gs_gate_enter");
	t->leave = (__typeof__(t->leave))dlsym(copy, "gs_gate_leave");
	t->poll = (__typeof__(t->poll))dlsym(copy, "gs_gate_poll");
	t->attach(&(struct gs_gate_env){
		.page = t->page,
		.ledger = t->ledger,
		.slot = slot,
		.driver = { .event_create = event_create,
			    .event_destroy = event_destroy,
			    .event_record = event_record,
			    .event_record_ptsz = event_record,
			    .event_query = event_query,
			    .event_elapsed = event_elapsed,
			    .ctx_get_current = ctx_get,
			    .ctx_push = ctx_push,
			    .ctx_pop = ctx_pop,
			    .stream_query = stream_query,
			    .stream_query_ptsz = stream_query },
	});
}

void sim_start(const struct sim_config *config, int n, const int container[],
	       const uint32_t ceiling_milli[])
{
	memset(&w, 0, sizeof(w));
	w.config = *config;
	w.now = w.gpu_now = SIM_SEC;
	w.tenants = n;
	w.current = -1;
	for (int i = 0; i < n; i++)
		w.containers = container[i] + 1 > w.containers ? container[i] + 1 : w.containers;
	for (int i = 0; i < n; i++) {
		struct sim_tenant *t = &w.tenant[i];
		struct gs_ledger_header *ledger = &w.ledger[container[i]].header;
		uint32_t slot = ledger->slot_high++;

		t->index = i;
		t->container = container[i];
		t->program = sim_saturate;
		t->page = &w.page[container[i]];
		t->page->header.gpu_count = 1;
		t->page->header.generation = 1;
		t->page->header.slot_count = SIM_TENANTS;
		t->page->gpu[0].ceiling_milli = ceiling_milli[i];
		t->page->gpu[0].alone = w.containers == 1;
		t->ledger = ledger;
		w.ledger[container[i]].slot[slot].state = GS_SLOT_USED;
		gate_load(t, slot);
	}
	if (config->arbiter && w.containers > 1)
		coroutine_start(SIM_TENANTS);
}

void sim_run(uint64_t ns)
{
	w.begin = w.now;
	w.end = w.now + ns;
	for (int i = 0; i < w.tenants; i++)
		if (!w.coroutine[i].live)
			coroutine_start(i);
	while (w.now < w.end) {
		int next = -1;

		for (int i = 0; i < COROUTINES; i++) {
			struct coroutine *c = &w.coroutine[i];

			if (!c->live)
				continue;
			// A waker takes a few microseconds to be heard.
			if (c->word && *c->word != c->value && c->wake_ns > w.now + 5000)
				c->wake_ns = w.now + 5000;
			if (next < 0 || c->wake_ns < w.coroutine[next].wake_ns)
				next = i;
		}
		if (next < 0)
			break;
		if (w.coroutine[next].wake_ns > w.now)
			w.now = w.coroutine[next].wake_ns;
		w.current = next;
		swapcontext(&w.scheduler, &w.coroutine[next].context);
		w.current = -1;
	}
	gpu_advance(w.now);
}

void sim_stop(void)
{
	for (int i = 0; i < COROUTINES; i++)
		free(w.coroutine[i].stack);
	for (int i = 0; i < w.tenants; i++)
		dlclose(w.copy[i]);
}
