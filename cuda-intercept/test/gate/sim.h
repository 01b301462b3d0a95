// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A world on a virtual clock for the real gate: one GPU that is time-sliced
// between contexts, tenants that are coroutines with a gate each, and the
// daemon's arbiter of pricing windows. The same input gives the same run.

#ifndef GS_TEST_SIM_H
#define GS_TEST_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "gate.h"

#define SIM_TENANTS 6
#define SIM_MS 1000000ULL
#define SIM_SEC 1000000000ULL

struct sim_tenant;

// What a tenant's program does; runs as a coroutine until sim_over says so.
typedef void sim_program(struct sim_tenant *t);

struct sim_config {
	uint64_t slice_ns;	// time slice between contexts
	uint64_t oversleep_ns;	// added to every timed sleep
	uint64_t launch_ns;	// host time of one launch
	bool arbiter;		// the daemon answers doorbells
	uint64_t stall_ns;	// the host stands still for so long, once in 500 sleeps
};

struct sim_tenant {
	int index;
	sim_program *program;
	uint64_t kernel_ns;	// its kernel's own length
	uint64_t kernel2_ns;	// a second kernel's; 0: none
	bool synchronous;	// waits after each launch
	bool graph;		// launches graphs
	int streams;		// used in turn; 0 counts as 1
	int shapes;		// kernels of as many shapes and lengths from kernel_ns to twice that
	uint64_t later_ns;	// kernel_ns from half of the run on; 0: as before
	int container;
	struct gs_limits_page *page;
	struct gs_ledger_header *ledger;
	uint64_t executed_ns;	// by the GPU's own account
	uint64_t launches;
	// The gate's entry points, of this tenant's own copy.
	__typeof__(gs_gate_attach) *attach;
	__typeof__(gs_gate_enter) *enter;
	__typeof__(gs_gate_leave) *leave;
	__typeof__(gs_gate_poll) *poll;
	void *coroutine;
	uint64_t doorbells, windows;
};

// sim_start makes a world of n tenants, each a process of the container of that
// number, with the container's share in milli-GPU. Programs start at sim_run.
void sim_start(const struct sim_config *config, int n, const int container[],
	       const uint32_t ceiling_milli[]);
struct sim_tenant *sim_tenant(int index);

// sim_run lets the world run for ns of virtual time.
void sim_run(uint64_t ns);
void sim_stop(void);

// sim_resize changes a tenant's ceiling, as the daemon does.
void sim_resize(struct sim_tenant *t, uint32_t ceiling_milli);

uint64_t sim_now(void);
bool sim_over(void);
void sim_sleep(uint64_t ns);

// sim_launch launches one kernel through the tenant's gate.
void sim_launch(struct sim_tenant *t, uint64_t shape, uint64_t kernel_ns, int stream);

// sim_sync waits until all the tenant's work is done.
void sim_sync(struct sim_tenant *t);

// sim_saturate is the usual program: launches without end, as the fields say.
sim_program sim_saturate;

#endif
