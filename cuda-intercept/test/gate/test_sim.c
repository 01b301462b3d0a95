// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Shares of the real gate on a virtual clock. Each case prints what the GPU's own
// account says and fails beyond its tolerance.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct tenant_case {
	uint32_t ceiling_milli;
	uint64_t kernel_ns, kernel2_ns;
	bool synchronous, graph;
	int streams, shapes;
	uint64_t later_ns;
	bool same; // another process of the container before it
	double want; // percent of the GPU, of this process
};

struct sim_case {
	const char *name;
	struct tenant_case tenant[SIM_TENANTS];
	double tolerance; // points
	uint64_t run_ns;
	bool no_daemon;
	uint64_t stall_ns;
};

#define US 1000ULL

static const struct sim_case cases[] = {
	{ "alone at 60, 50us", { { 600, 50 * US, .want = 60 } }, 0.5, 5 * SIM_SEC },
	{ "alone at 20, 5ms", { { 200, 5000 * US, .want = 20 } }, 1, 5 * SIM_SEC },
	{ "alone at 60, 5us", { { 600, 5 * US, .want = 60 } }, 1, 3 * SIM_SEC },
	{ "alone at 5, 50ms", { { 50, 50000 * US, .want = 5 } }, 1, 20 * SIM_SEC },
	{ "alone at 95, 5ms", { { 950, 5000 * US, .want = 95 } }, 1, 5 * SIM_SEC },
	{ "alone uncapped, 50us", { { 1000, 50 * US, .want = 100 } }, 2, 3 * SIM_SEC },
	{ "alone at 25, graph 1ms", { { 250, 1000 * US, .graph = true, .want = 25 } }, 0.5, 5 * SIM_SEC },
	{ "alone at 50, synchronous 50us",
	  { { 500, 50 * US, .synchronous = true, .want = 50 } }, 1, 5 * SIM_SEC },
	{ "alone at 40, 4 streams of 200us",
	  { { 400, 200 * US, .streams = 4, .want = 40 } }, 1, 5 * SIM_SEC },
	{ "alone at 30, 10us and 3ms", { { 300, 10 * US, 3000 * US, .want = 30 } }, 1, 5 * SIM_SEC },
	{ "60/20, 50us beside 5ms",
	  { { 600, 50 * US, .want = 60 }, { 200, 5000 * US, .want = 20 } }, 1, 10 * SIM_SEC },
	{ "20/60, 50us beside 5ms",
	  { { 200, 50 * US, .want = 20 }, { 600, 5000 * US, .want = 60 } }, 1, 10 * SIM_SEC },
	{ "60/20 synchronous",
	  { { 600, 50 * US, .synchronous = true, .want = 60 },
	    { 200, 5000 * US, .synchronous = true, .want = 20 } }, 5, 10 * SIM_SEC },
	{ "60/20 graphs",
	  { { 600, 50 * US, .graph = true, .want = 60 },
	    { 200, 5000 * US, .graph = true, .want = 20 } }, 1, 10 * SIM_SEC },
	{ "30/70, 1ms each", { { 300, 1000 * US, .want = 30 }, { 700, 1000 * US, .want = 70 } }, 3,
	  10 * SIM_SEC },
	{ "10/90, 200us each", { { 100, 200 * US, .want = 10 }, { 900, 200 * US, .want = 90 } }, 4,
	  10 * SIM_SEC },
	{ "60/20, 4 streams each",
	  { { 600, 50 * US, .streams = 4, .want = 60 }, { 200, 5000 * US, .streams = 4, .want = 20 } }, 2,
	  10 * SIM_SEC },
	{ "30/20/10/25, mixed",
	  { { 300, 50 * US, 1000 * US, .want = 30 }, { 200, 5000 * US, .want = 20 },
	    { 100, 10 * US, .want = 10 }, { 250, 700 * US, .graph = true, .want = 25 } }, 2,
	  15 * SIM_SEC },
	{ "uncapped beside 20",
	  { { 1000, 50 * US, .want = 80 }, { 200, 5000 * US, .want = 20 } }, 3, 10 * SIM_SEC },
	{ "both uncapped, 50us and 12ms",
	  { { 1000, 50 * US, .want = 50 }, { 1000, 12000 * US, .want = 50 } }, 4, 10 * SIM_SEC },
	{ "both uncapped", { { 1000, 50 * US, .want = 50 }, { 1000, 5000 * US, .want = 50 } }, 3,
	  10 * SIM_SEC },
	{ "80/80, more than there is", { { 800, 50 * US, .want = 50 }, { 800, 5000 * US, .want = 50 } }, 3,
	  10 * SIM_SEC },
	{ "60/20, host stalls of 10ms",
	  { { 600, 50 * US, .want = 60 }, { 200, 5000 * US, .want = 20 } }, 1.5, 10 * SIM_SEC,
	  .stall_ns = 10 * SIM_MS },
	{ "40/20, kernel grows from 50us to 400us",
	  { { 400, 50 * US, .later_ns = 400 * US, .want = 40 }, { 200, 5000 * US, .want = 20 } }, 5,
	  20 * SIM_SEC },
	{ "40/20, 200 shapes beside 5ms",
	  { { 400, 20 * US, .shapes = 200, .want = 40 }, { 200, 5000 * US, .want = 20 } }, 2, 20 * SIM_SEC },
	{ "40/30, two processes of 5ms each",
	  { { 400, 5000 * US, .want = 20 }, { 400, 5000 * US, .same = true, .want = 20 },
	    { 300, 50 * US, .want = 30 } }, 2, 10 * SIM_SEC },
	{ "40 alone, two processes of 5ms",
	  { { 400, 5000 * US, .want = 20 }, { 400, 5000 * US, .same = true, .want = 20 } }, 2,
	  10 * SIM_SEC },
	{ "40 alone, four processes of 50us",
	  { { 400, 50 * US, .want = 10 }, { 400, 50 * US, .same = true, .want = 10 },
	    { 400, 50 * US, .same = true, .want = 10 }, { 400, 50 * US, .same = true, .want = 10 } }, 3,
	  10 * SIM_SEC },
	{ "60/20, no daemon",
	  { { 600, 50 * US, .want = 60 }, { 200, 5000 * US, .want = 20 } }, 60, 10 * SIM_SEC,
	  .no_daemon = true },
};

static int container_of(const struct sim_case *c, int i)
{
	int n = 0;

	for (int k = 1; k <= i; k++)
		n += !c->tenant[k].same;
	return n;
}

static int check(const struct sim_case *c, int i)
{
	struct sim_tenant *t = sim_tenant(i);
	const struct gs_gpu_account *a = &t->ledger->gpu[0];
	double executed = 0, got = 100.0 * (double)t->executed_ns / (double)c->run_ns;
	double charged = 100.0 * (double)a->charged_ns / (double)c->run_ns;
	bool ok = fabs(got - c->tenant[i].want) <= c->tolerance;

	// The container's own account agrees with the GPU's.
	for (int k = 0; k < SIM_TENANTS; k++)
		if (sim_tenant(k)->ledger == t->ledger)
			executed += 100.0 * (double)sim_tenant(k)->executed_ns / (double)c->run_ns;
	ok = ok && (c->no_daemon || fabs(charged - executed) <= (c->tolerance < 3 ? 3 : c->tolerance));
	printf("%s %-40s share %6.2f want %5.1f charged %6.2f launches %lu unpriced %lu "
	       "throttled %4.1f%% doorbells %lu windows %lu\n",
	       ok ? "ok  " : "FAIL", i ? "" : c->name, got, c->tenant[i].want, charged,
	       (unsigned long)a->launches, (unsigned long)a->unpriced,
	       100.0 * (double)a->throttled_ns / (double)c->run_ns, (unsigned long)t->doorbells,
	       (unsigned long)t->windows);
	return !ok;
}

static int run_case(const struct sim_case *c)
{
	struct sim_config config = { 2 * SIM_MS, 60000, 2000, !c->no_daemon, c->stall_ns };
	uint32_t ceiling[SIM_TENANTS];
	int container[SIM_TENANTS];
	int n = 0, bad = 0;

	for (; n < SIM_TENANTS && c->tenant[n].ceiling_milli; n++) {
		ceiling[n] = c->tenant[n].ceiling_milli;
		container[n] = container_of(c, n);
	}
	sim_start(&config, n, container, ceiling);
	for (int i = 0; i < n; i++) {
		struct sim_tenant *t = sim_tenant(i);

		t->kernel_ns = c->tenant[i].kernel_ns;
		t->kernel2_ns = c->tenant[i].kernel2_ns;
		t->later_ns = c->tenant[i].later_ns;
		t->synchronous = c->tenant[i].synchronous;
		t->graph = c->tenant[i].graph;
		t->streams = c->tenant[i].streams;
		t->shapes = c->tenant[i].shapes;
	}
	sim_run(c->run_ns);
	for (int i = 0; i < n; i++)
		bad += check(c, i);
	sim_stop();
	return bad;
}

// A resize is in force within 50 ms: the share from then on is the new one.
static int resize_case(uint32_t from, uint32_t to, uint64_t kernel_ns, double tolerance)
{
	struct sim_config config = { 2 * SIM_MS, 60000, 2000, true, 0 };
	struct sim_tenant *t;
	uint64_t before;
	double got;
	bool ok;

	sim_start(&config, 1, (int[]){ 0 }, &from);
	t = sim_tenant(0);
	t->kernel_ns = kernel_ns;
	sim_run(2 * SIM_SEC);
	sim_resize(t, to);
	sim_run(50 * SIM_MS);
	before = t->executed_ns;
	sim_run(200 * SIM_MS);
	got = 100.0 * (double)(t->executed_ns - before) / (200.0 * (double)SIM_MS);
	ok = fabs(got - to / 10.0) <= tolerance;
	printf("%s resize %u to %u, %lu us: %.2f\n", ok ? "ok  " : "FAIL", from, to,
	       (unsigned long)(kernel_ns / 1000), got);
	sim_stop();
	return !ok;
}

int main(int argc, char **argv)
{
	int bad = 0;

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc < 2 || strstr(cases[i].name, argv[1]))
			bad += run_case(&cases[i]);
	if (argc < 2) {
		bad += resize_case(250, 750, 50 * US, 2);
		bad += resize_case(750, 250, 50 * US, 2);
		bad += resize_case(200, 600, 5000 * US, 3);
		bad += resize_case(600, 200, 5000 * US, 3);
		bad += resize_case(5, 500, 5000 * US, 3); // from a debt of seconds
	}
	printf("%d failed\n", bad);
	return bad != 0;
}
