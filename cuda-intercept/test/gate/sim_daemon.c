// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The daemon of the simulated world: resizes, and the arbiter of windows.

#include "sim_world.h"

static void page_bump(struct gs_limits_page *page)
{
	page->header.generation++;
}

void sim_resize(struct sim_tenant *t, uint32_t ceiling_milli)
{
	t->page->gpu[0].ceiling_milli = ceiling_milli;
	page_bump(t->page);
}

static void hold_others(int except, uint32_t value)
{
	for (int c = 0; c < w.containers; c++)
		if (c != except) {
			w.page[c].gpu[0].hold = value;
			page_bump(&w.page[c]);
		}
}

// The daemon's rules: a window is three times the wall time that was asked for, of
// which a third is for the others' queues to run dry; 1 ms to 150 ms; 2 % of the
// time, of which 200 ms can be saved up; then as much rest as it took.
#define WINDOW_MIN (1 * SIM_MS)
#define WINDOW_MAX (150 * SIM_MS)
#define WINDOW_BURST 200e6
#define ASK_LIFE (2 * SIM_SEC)

static uint64_t window_length(int i)
{
	uint64_t length = 3 * w.asked_wall[i];

	return length < WINDOW_MIN ? WINDOW_MIN : length > WINDOW_MAX ? WINDOW_MAX : length;
}

static uint64_t window_run(int i)
{
	struct gs_limits_page *page = &w.page[i];
	uint64_t length = window_length(i), from = w.now;

	w.window++;
	for (int j = 0; j < w.tenants; j++)
		w.tenant[j].windows += w.tenant[j].container == i;
	w.asked_ns[i] = 0;
	w.finished[i] = false;
	hold_others(i, w.window);
	while (w.now < from + length / 3 && !w.finished[i])
		sim_sleep(100000);
	if (!w.finished[i]) {
		page->gpu[0].window = w.window;
		page_bump(page);
	}
	while (w.now < from + length && !w.finished[i])
		sim_sleep(100000);
	page->gpu[0].window = 0;
	page_bump(page);
	hold_others(i, 0);
	return w.now - from > WINDOW_MIN ? w.now - from : WINDOW_MIN;
}

void sim_daemon(void)
{
	double balance = WINDOW_BURST;
	uint64_t last = w.now, spent[SIM_TENANTS] = { 0 };

	for (;;) {
		int best = -1;
		uint64_t took;

		sim_sleep(500000);
		balance += (double)(w.now - last) * 0.02;
		balance = balance > WINDOW_BURST ? WINDOW_BURST : balance;
		last = w.now;
		for (int i = 0; i < w.containers; i++)
			if (w.asked_ns[i] && w.now - w.asked_ns[i] < ASK_LIFE &&
			    (best < 0 || spent[i] < spent[best]))
				best = i;
		if (best < 0 || balance < (double)window_length(best))
			continue;
		took = window_run(best);
		balance -= (double)took;
		spent[best] += took;
		sim_sleep(took);
	}
}
