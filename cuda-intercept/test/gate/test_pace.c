// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The arithmetic of the share: burst, debt, resize, hold.

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "gate_pace.h"
#include "region.h"

int check_failed;

static const uint64_t start = 1000000000000ULL;

static void test_scale(void)
{
	for (uint32_t c = 1; c <= 1000; c++) {
		double want = 5000000.0 * 1000 / c;
		double got = (double)gs_pace_wall(5000000, gs_pace_scale(c));

		CHECK(got <= want && got >= want * 0.9995, "ceiling %u: %f for %f", c, got, want);
	}
	CHECK(gs_pace_scale(0) == gs_pace_scale(1), "a ceiling of 0");
	CHECK(gs_pace_scale(5000) == gs_pace_scale(1000), "a ceiling above the whole");
	CHECK(gs_pace_wall(UINT64_MAX, gs_pace_scale(1)) > 0, "overflow");
}

static void test_burst(void)
{
	uint64_t paid = 0, now = start;
	struct gs_pace_turn turn;
	int allowed = 0;

	// After any idle time a container may be the burst ahead and one launch more.
	for (;;) {
		gs_pace_take(&paid, now, 1000000, &turn);
		if (gs_pace_left(&paid, now, &turn))
			break;
		allowed++;
	}
	CHECK(allowed == 21, "%d launches of 1 ms of wall time", allowed);
	CHECK(gs_pace_left(&paid, now, &turn) == 1000000, "left %lu",
	      (unsigned long)gs_pace_left(&paid, now, &turn));
	now += 1000000;
	CHECK(gs_pace_left(&paid, now, &turn) == 0, "not allowed after its wait");
}

// Turns come in the order in which they were taken, and early if others give back.
static void test_turns(void)
{
	uint64_t paid = start + GS_BURST_NS, now = start;
	struct gs_pace_turn a, b, c;

	gs_pace_take(&paid, now, 5000000, &a);
	gs_pace_take(&paid, now, 1000000, &b);
	gs_pace_take(&paid, now, 1000000, &c);
	CHECK(gs_pace_left(&paid, now, &a) == 0 && gs_pace_left(&paid, now, &b) == 5000000 &&
		      gs_pace_left(&paid, now, &c) == 6000000,
	      "%lu %lu %lu", (unsigned long)gs_pace_left(&paid, now, &a),
	      (unsigned long)gs_pace_left(&paid, now, &b), (unsigned long)gs_pace_left(&paid, now, &c));
	gs_pace_charge(&paid, now, -5000000); // a's launch failed
	CHECK(gs_pace_left(&paid, now, &c) == 1000000, "left %lu",
	      (unsigned long)gs_pace_left(&paid, now, &c));
	gs_pace_charge(&paid, now, -60000000);
	CHECK(gs_pace_left(&paid, now, &c) == 0 && gs_pace_left(&paid, now, &b) == 0, "all given back");
}

static void test_rate(void)
{
	static const uint32_t ceilings[] = { 1, 50, 200, 333, 600, 950, 999 };
	static const uint64_t costs[] = { 3000, 50000, 1000000, 5000000, 80000000 };

	for (unsigned int i = 0; i < sizeof(ceilings) / sizeof(ceilings[0]); i++)
		for (unsigned int j = 0; j < sizeof(costs) / sizeof(costs[0]); j++) {
			uint64_t paid = 0, now = start, used = 0, span = 400000000000ULL, wait;
			int64_t wall = gs_pace_wall(costs[j], gs_pace_scale(ceilings[i]));
			struct gs_pace_turn turn;
			double share, slack;

			if ((uint64_t)wall > GS_DEBT_MAX)
				continue; // the bound on debt gives such a launch a discount
			while (now < start + span) {
				gs_pace_take(&paid, now, wall, &turn);
				wait = gs_pace_left(&paid, now, &turn);
				// Sleeps are late by up to 10 ms now and then: nothing may be lost.
				if (wait)
					now += wait + (used % 7 == 0 ? 10000000 : 50000);
				used += costs[j];
			}
			share = 1000.0 * (double)used / (double)span;
			slack = 0.002 * ceilings[i] + 2000.0 * (double)costs[j] / (double)span;
			CHECK(share <= ceilings[i] + slack && share >= ceilings[i] - slack,
			      "ceiling %u, cost %lu: %f", ceilings[i], (unsigned long)costs[j], share);
		}
}

static void test_debt(void)
{
	uint64_t paid = start, now = start;
	struct gs_pace_turn turn;

	gs_pace_charge(&paid, now, 60000000000LL);
	CHECK(paid == now + GS_DEBT_MAX, "debt %lu", (unsigned long)(paid - now));
	gs_pace_charge(&paid, now, -4000000000LL);
	CHECK(paid == now + GS_DEBT_MAX - 4000000000ULL, "debt %lu", (unsigned long)(paid - now));
	gs_pace_charge(&paid, now, -60000000000LL);
	CHECK(paid == now, "credit beyond now");
	paid = UINT64_MAX - 5; // scribbled over, or from before a reboot
	gs_pace_take(&paid, now, 1, &turn);
	CHECK(gs_pace_left(&paid, now, &turn) <= GS_DEBT_MAX - GS_BURST_NS, "left %lu",
	      (unsigned long)gs_pace_left(&paid, now, &turn));
	CHECK(paid == now + GS_DEBT_MAX, "scribbled word %lu", (unsigned long)paid);
}

static void test_convert(void)
{
	uint64_t now = start, paid = now + 4000000000ULL, milli = 0;

	gs_pace_convert(&paid, &milli, 20, now);
	CHECK(milli == 20 && paid == now + 4000000000ULL, "the first ceiling");
	gs_pace_convert(&paid, &milli, 500, now);
	CHECK(milli == 500 && paid == now + 160000000ULL, "raised: %lu", (unsigned long)(paid - now));
	gs_pace_convert(&paid, &milli, 500, now);
	CHECK(paid == now + 160000000ULL, "converted twice");
	gs_pace_convert(&paid, &milli, 20, now);
	CHECK(paid == now + 4000000000ULL, "lowered: %lu", (unsigned long)(paid - now));
	gs_pace_convert(&paid, &milli, 1, now);
	CHECK(paid == now + GS_DEBT_MAX, "lowered beyond the bound: %lu", (unsigned long)(paid - now));
	milli = 1ULL << 40; // scribbled over
	gs_pace_convert(&paid, &milli, 1000, now);
	CHECK(milli == 1000 && paid == now + GS_DEBT_MAX, "scribbled ceiling");
}

static void test_hold(void)
{
	struct gs_pace_hold hold = { 0 };
	uint64_t now = start;

	CHECK(gs_pace_hold_left(&hold, 0, now) == 0, "no hold");
	CHECK(gs_pace_hold_left(&hold, 7, now) == GS_HOLD_MAX, "a new hold");
	CHECK(gs_pace_hold_left(&hold, 7, now + 1000) == GS_HOLD_MAX - 1000, "a hold going on");
	CHECK(gs_pace_hold_left(&hold, 7, now + GS_HOLD_MAX) == 0, "the daemon died in a hold");
	CHECK(gs_pace_hold_left(&hold, 7, now + 50 * GS_HOLD_MAX) == 0, "long after that");
	CHECK(gs_pace_hold_left(&hold, 8, now + 50 * GS_HOLD_MAX) == GS_HOLD_MAX, "the next hold");
}

#define THREADS 4
#define ROUNDS 200000

static uint64_t shared;

static void *charge_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		gs_pace_charge(&shared, start, i % 2 ? 3000 : -1000);
	return NULL;
}

static void test_threads(void)
{
	pthread_t t[THREADS];

	shared = start + 1000 * ROUNDS; // far from both ends: no clamp hides a loss
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, charge_many, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(shared == start + 1000 * ROUNDS + (uint64_t)THREADS * ROUNDS * 1000, "%lu lost",
	      (unsigned long)(start + 1000 * ROUNDS + (uint64_t)THREADS * ROUNDS * 1000 - shared));
}

int main(void)
{
	test_scale();
	test_burst();
	test_turns();
	test_rate();
	test_debt();
	test_convert();
	test_hold();
	test_threads();
	printf("pace: %d failed\n", check_failed);
	return check_failed != 0;
}
