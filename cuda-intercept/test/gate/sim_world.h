// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The state of the world of sim.h, shared by the files that make it up.

#ifndef GS_TEST_SIM_WORLD_H
#define GS_TEST_SIM_WORLD_H

#include <ucontext.h>

#include "sim.h"

#define QUEUE 65536u
#define STREAMS 8
#define COROUTINES (SIM_TENANTS + 1)

struct work {
	uint64_t left_ns; // 0 for an event
	struct CUevent_st *event;
	uint64_t seq;
};

// The driver's handles are pointers to incomplete types; the world completes one.
struct CUevent_st {
	bool recorded, done;
	uint64_t at_ns;
	uint64_t pending; // records not yet done
};

struct stream {
	struct work queue[QUEUE];
	uint32_t head, tail;
};

struct coroutine {
	ucontext_t context;
	void *stack;
	bool live;
	uint64_t wake_ns;
	const uint32_t *word; // wakes early when this is no longer value
	uint32_t value;
};

struct sim_world {
	struct sim_config config;
	uint64_t now, end;
	int tenants;
	struct sim_tenant tenant[SIM_TENANTS];
	struct stream stream[SIM_TENANTS][STREAMS];
	uint64_t seq, sleeps, begin;
	int running;	    // context on the engine
	uint64_t slice_end; // of it
	uint64_t gpu_now;   // simulated up to here
	struct coroutine coroutine[COROUTINES];
	ucontext_t scheduler;
	int current; // coroutine, -1 in the scheduler
	void *copy[SIM_TENANTS];
	// Per container.
	int containers;
	struct gs_limits_page page[SIM_TENANTS];
	struct {
		struct gs_ledger_header header;
		struct gs_slot slot[SIM_TENANTS];
	} ledger[SIM_TENANTS];
	// The arbiter, per container.
	uint64_t asked_ns[SIM_TENANTS], asked_wall[SIM_TENANTS];
	bool finished[SIM_TENANTS];
	uint32_t window;
};

extern struct sim_world w;

// sim_daemon is the coroutine of the daemon: it gives windows. It never returns.
void sim_daemon(void);

#endif
