// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Memory of graphs. A node that allocates takes nothing by itself: a launch or an
// upload of the executable graph does, and the device keeps it for graphs until it is
// trimmed. Before, the sum of the nodes is charged; afterwards, what the driver says
// that the device keeps (a pool of kind GS_POOL_GRAPH, one a device).

#ifndef GS_GRAPH_H
#define GS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "context.h"
#include "cuda_abi.h"
#include "pool.h"
#include "region.h"

// What a graph holds, its child graphs included.
struct gs_graph_need {
	uint64_t nodes;
	uint64_t bytes[GS_DEVICES]; // that alloc nodes take, by device
	uint64_t devices;	    // a bit for each that has any
	bool unsure;		    // the driver did not tell all
};

// gs_graph_need_of walks a graph. What the driver does not tell is not in it.
void gs_graph_need_of(CUgraph graph, struct gs_graph_need *ret_need);

// A launch or an upload under way.
struct gs_graph_call {
	CUgraphExec exec;
	uint64_t devices;
	struct gs_pool_call calls[GS_MAX_GPUS]; // one for each bit of devices, in order
};

// gs_graph_enter charges what a launch of exec can take. It returns CUDA_SUCCESS, or
// what the wrapper must return.
CUresult gs_graph_enter(struct gs_graph_call *call, CUgraphExec exec, CUstream stream, bool per_thread);

// gs_graph_enter_need is the same for an instantiation that uploads.
CUresult gs_graph_enter_need(struct gs_graph_call *call, const struct gs_graph_need *need);

// gs_graph_leave brings the charge to the driver's figure.
void gs_graph_leave(struct gs_graph_call *call, CUresult r);

// gs_graph_make_begin charges what an executable graph costs beside the memory of its
// nodes, by a guess: the driver does not tell. On any result but CUDA_SUCCESS the
// wrapper returns that. gs_graph_make_end notes the executable graph if the driver has
// made one.
struct gs_graph_making {
	struct gs_graph_need need;
	unsigned gpu;
	uint64_t cost, bytes;
};
CUresult gs_graph_make_begin(struct gs_graph_making *making, CUgraph graph);
void gs_graph_make_end(struct gs_graph_making *making, CUgraphExec exec, CUresult r);

// An executable graph is forgotten before the driver is asked to destroy it, and noted
// again by gs_graph_end_end if it did not.
struct gs_graph_ending {
	struct gs_entry exec;
	struct gs_entry needs[GS_MAX_GPUS]; // one for each bit of devices, in order
	uint64_t devices;
	bool known; // exec is set
};
void gs_graph_end_begin(struct gs_graph_ending *ending, CUgraphExec exec);
void gs_graph_end_end(struct gs_graph_ending *ending, CUresult r);

// gs_graph_settle brings a device's charge to the driver's figure, after a trim.
void gs_graph_settle(CUdevice dev);

void gs_graphs_forked(void);

#endif
