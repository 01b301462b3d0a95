// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "graph.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "attach.h"
#include "cuda_hooks.h"
#include "guess.h"
#include "ledger.h"
#include "pool_in.h"

// Graphs in graphs deeper than this are not looked into.
#define DEPTH 32

// Devices that any executable graph takes memory of, a bit each.
static _Atomic(uint64_t) devices_used;

// 1 + index of each device's pool, 0 for none.
static _Atomic(uint32_t) pools[GS_DEVICES];

// ---- what a graph needs ---------------------------------------------------------

static uint64_t block(unsigned gpu)
{
	uint64_t bytes = __atomic_load_n(&gs_self.limits->gpu[gpu].block_bytes, __ATOMIC_RELAXED);

	return bytes > GS_CHARGE_GRANULE ? bytes : GS_CHARGE_GRANULE;
}

static void need_of_node(CUgraphNode node, struct gs_graph_need *need)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {0};
	const CUmemLocation *where = &params.poolProps.location;
	uint64_t bytes;
	unsigned gpu;

	if (!gs_cuda_real.cuGraphMemAllocNodeGetParams ||
	    gs_cuda_real.cuGraphMemAllocNodeGetParams(node, &params) != CUDA_SUCCESS) {
		need->unsure = true;
		return;
	}
	if (where->type != CU_MEM_LOCATION_TYPE_DEVICE || where->id < 0 || where->id >= GS_DEVICES ||
	    gs_place_device(where->id, &gpu) != CUDA_SUCCESS)
		return;
	bytes = gs_pool_round(params.bytesize, block(gpu));
	if (__builtin_add_overflow(need->bytes[where->id], bytes, &need->bytes[where->id]))
		need->bytes[where->id] = UINT64_MAX;
	need->devices |= 1ULL << where->id;
}

static void walk(CUgraph graph, struct gs_graph_need *need, int depth)
{
	size_t n = 0, bytes;
	CUgraphNode *nodes;
	int saved = errno;
	bool unsure = need->unsure;

	need->unsure = true;
	if (!depth || !gs_cuda_real.cuGraphGetNodes || !gs_cuda_real.cuGraphNodeGetType ||
	    gs_cuda_real.cuGraphGetNodes(graph, NULL, &n) != CUDA_SUCCESS ||
	    __builtin_mul_overflow(n, sizeof(*nodes), &bytes))
		return;
	need->unsure = unsure;
	need->nodes += n;
	if (!n)
		return;
	nodes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved;
	need->unsure |= nodes == MAP_FAILED;
	if (nodes == MAP_FAILED)
		return;
	if (gs_cuda_real.cuGraphGetNodes(graph, nodes, &n) != CUDA_SUCCESS)
		n = 0;
	for (size_t i = 0; i < n && (i + 1) * sizeof(*nodes) <= bytes; i++) {
		CUgraphNodeType type;
		CUgraph child = NULL;

		if (gs_cuda_real.cuGraphNodeGetType(nodes[i], &type) != CUDA_SUCCESS)
			continue;
		if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			need_of_node(nodes[i], need);
		if (type != CU_GRAPH_NODE_TYPE_GRAPH)
			continue;
		if (gs_cuda_real.cuGraphChildGraphNodeGetGraph &&
		    gs_cuda_real.cuGraphChildGraphNodeGetGraph(nodes[i], &child) == CUDA_SUCCESS && child)
			walk(child, need, depth - 1);
		else
			need->unsure = true;
	}
	munmap(nodes, bytes);
}

void gs_graph_need_of(CUgraph graph, struct gs_graph_need *ret_need)
{
	memset(ret_need, 0, sizeof(*ret_need));
	if (graph && gs_attached())
		walk(graph, ret_need, DEPTH);
}

// ---- executable graphs ------------------------------------------------------------

static uint64_t key_of(CUgraphExec exec, CUdevice dev)
{
	return (uint64_t)(uintptr_t)exec << 6 | (uint64_t)dev;
}

#define EACH_DEVICE(dev, mask) \
	for (uint64_t left_ = (mask); left_; left_ &= left_ - 1) \
		for (CUdevice dev = __builtin_ctzll(left_), once_ = 1; once_; once_ = 0)

static void made(CUgraphExec exec, const struct gs_graph_need *need)
{
	EACH_DEVICE(dev, need->devices) {
		struct gs_entry old, e = {.key = key_of(exec, dev), .bytes = need->bytes[dev], .kind = GS_KIND_GRAPH};

		gs_registry_put(&e, &old);
	}
	// A handle that was another graph's.
	EACH_DEVICE(dev, atomic_load(&devices_used) & ~need->devices) {
		struct gs_entry e;

		gs_registry_take(GS_KIND_GRAPH, key_of(exec, dev), &e);
	}
	atomic_fetch_or(&devices_used, need->devices);
}

// What an executable graph costs beside its nodes, in nodes.
#define OWN_NODES 8

// What this process's executable graphs cost on each GPU by the guess. The driver
// takes it in blocks, so most of them cost nothing more.
static _Atomic(uint64_t) guessed[GS_MAX_GPUS];
static _Atomic(uint64_t) owed[GS_MAX_GPUS]; // of it, to be taken back

static uint64_t cost_of(unsigned gpu, uint64_t nodes)
{
	uint64_t a_node = __atomic_load_n(&gs_self.limits->gpu[gpu].graph_node_bytes, __ATOMIC_RELAXED), bytes;

	return __builtin_mul_overflow(nodes + OWN_NODES, a_node, &bytes) ? UINT64_MAX / 2 : bytes;
}

// blocks returns the blocks, in bytes, by which n changes a cost of at.
static uint64_t blocks(unsigned gpu, uint64_t at, uint64_t n)
{
	uint64_t unit = block(gpu);

	return gs_pool_round(at + n, unit) - gs_pool_round(at, unit);
}

CUresult gs_graph_make_begin(struct gs_graph_making *making, CUgraph graph)
{
	struct gs_place place;
	uint64_t at;
	CUdevice dev;

	gs_graph_need_of(graph, &making->need);
	making->cost = making->bytes = 0;
	making->gpu = 0;
	if (!graph || gs_place_current(&place) != CUDA_SUCCESS)
		return CUDA_SUCCESS; // the driver says what is wrong
	making->gpu = place.gpu;
	// What a launch takes is charged on sight then.
	if (making->need.unsure && gs_cuda_real.cuCtxGetDevice && gs_cuda_real.cuCtxGetDevice(&dev) == CUDA_SUCCESS &&
	    dev >= 0 && dev < GS_DEVICES)
		making->need.devices |= 1ULL << dev;
	making->cost = cost_of(place.gpu, making->need.nodes);
	// Charged before others can count on the block that it begins.
	do {
		if (making->bytes)
			gs_guess_end(place.gpu, making->bytes, false);
		at = atomic_load(&guessed[place.gpu]);
		making->bytes = blocks(place.gpu, at, making->cost);
		if (gs_guess_begin(place.gpu, making->bytes) < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
	} while (!atomic_compare_exchange_strong(&guessed[place.gpu], &at, at + making->cost));
	return CUDA_SUCCESS;
}

// unmake takes a cost back, and the blocks that the others do not need.
static void unmake(unsigned gpu, uint64_t cost, uint32_t mark)
{
	uint64_t left = atomic_fetch_sub(&guessed[gpu], cost) - cost, bytes;

	// What stands in a guess of another thread that has not ended goes with the next.
	bytes = blocks(gpu, left, cost) + atomic_exchange(&owed[gpu], 0);
	atomic_fetch_add(&owed[gpu], gs_guess_undo(gpu, bytes, mark));
}

void gs_graph_make_end(struct gs_graph_making *making, CUgraphExec exec, CUresult r)
{
	struct gs_entry old, e = {
		.key = (uintptr_t)exec,
		.bytes = making->cost,
		.gpu = (uint8_t)making->gpu,
		.kind = GS_KIND_EXEC,
	};

	gs_guess_end(making->gpu, making->bytes, true);
	e.link = gs_guess_mark(making->gpu);
	if (r != CUDA_SUCCESS) {
		unmake(making->gpu, making->cost, (uint32_t)e.link);
		return;
	}
	made(exec, &making->need);
	if (!making->cost || gs_registry_put(&e, &old) < 0)
		return;
	// A handle that was another graph's, which went by a way that is not watched.
	if (old.kind != GS_KIND_NONE)
		unmake(old.gpu, old.bytes, (uint32_t)old.link);
}

// The entries are out before the driver can give the handle to another thread's graph,
// whose own would be lost otherwise.
void gs_graph_end_begin(struct gs_graph_ending *ending, CUgraphExec exec)
{
	unsigned n = 0;

	ending->devices = 0;
	ending->known = gs_attached() && gs_registry_take(GS_KIND_EXEC, (uintptr_t)exec, &ending->exec);
	EACH_DEVICE(dev, atomic_load(&devices_used))
		if (n < GS_MAX_GPUS && gs_registry_take(GS_KIND_GRAPH, key_of(exec, dev), &ending->needs[n])) {
			ending->devices |= 1ULL << dev;
			n++;
		}
}

void gs_graph_end_end(struct gs_graph_ending *ending, CUresult r)
{
	struct gs_entry old;
	unsigned n = 0;

	EACH_DEVICE(dev, ending->devices) {
		if (r == CUDA_SUCCESS)
			gs_graph_settle(dev);
		else
			gs_registry_put(&ending->needs[n++], &old);
	}
	if (ending->known && r != CUDA_SUCCESS)
		gs_registry_put(&ending->exec, &old);
	if (!ending->known || r != CUDA_SUCCESS)
		return;
	unmake(ending->exec.gpu, ending->exec.bytes, (uint32_t)ending->exec.link);
	gs_guess_given_back(ending->exec.gpu);
}

// ---- launches -----------------------------------------------------------------------

static struct gs_pool *pool_of(CUdevice dev)
{
	uint32_t index = atomic_load(&pools[dev]), none = 0;
	struct gs_pool *p;
	unsigned gpu;

	if (index)
		return gs_pool_at(index - 1);
	if (gs_place_device(dev, &gpu) != CUDA_SUCCESS)
		return NULL;
	p = gs_pool_new(GS_POOL_GRAPH, NULL, gpu);
	if (!p)
		return NULL;
	p->dev = dev;
	if (atomic_compare_exchange_strong(&pools[dev], &none, p->index + 1))
		return p;
	pthread_mutex_lock(&gs_pool_lock);
	gs_pool_drop(p); // another thread was faster
	pthread_mutex_unlock(&gs_pool_lock);
	return gs_pool_at(none - 1);
}

// enter charges for one more device; link is the epoch of the graph's last launch.
static CUresult enter(struct gs_graph_call *call, CUdevice dev, uint64_t bytes, const struct gs_entry *e)
{
	struct gs_pool_call *c = &call->calls[__builtin_popcountll(call->devices)];

	*c = (struct gs_pool_call){.pool = pool_of(dev), .bytes = bytes, .bound = bytes, .stream = GS_STREAM_NONE};
	// The last launch on the device was its own, and nothing was given back since.
	if ((!c->pool || !e || !gs_pool_enter_sure(c, (uint32_t)e->link)) && (!c->pool || gs_pool_enter(c) < 0)) {
		gs_graph_leave(call, CUDA_ERROR_OUT_OF_MEMORY);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	call->devices |= 1ULL << dev;
	return CUDA_SUCCESS;
}

CUresult gs_graph_enter(struct gs_graph_call *call, CUgraphExec exec, CUstream stream, bool per_thread)
{
	uint64_t devices = atomic_load_explicit(&devices_used, memory_order_relaxed);

	call->exec = exec;
	call->devices = 0;
	if (__builtin_expect(!devices, 1) || !gs_attached())
		return CUDA_SUCCESS;
	EACH_DEVICE(dev, devices) {
		struct gs_entry e;

		if (!gs_registry_get(GS_KIND_GRAPH, key_of(exec, dev), &e))
			continue;
		if (!call->devices && gs_capturing(stream, per_thread))
			return CUDA_SUCCESS; // becomes a node
		if (enter(call, dev, e.bytes, &e) != CUDA_SUCCESS)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

CUresult gs_graph_enter_need(struct gs_graph_call *call, const struct gs_graph_need *need)
{
	call->exec = NULL;
	call->devices = 0;
	EACH_DEVICE(dev, need->devices)
		if (enter(call, dev, need->bytes[dev], NULL) != CUDA_SUCCESS)
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

void gs_graph_leave(struct gs_graph_call *call, CUresult r)
{
	unsigned n = 0;

	if (__builtin_expect(!call->devices, 1))
		return;
	EACH_DEVICE(dev, call->devices) {
		struct gs_pool_call *c = &call->calls[n++];
		struct gs_entry e, old;

		gs_pool_leave(c, 0, false);
		if (r != CUDA_SUCCESS || !gs_registry_get(GS_KIND_GRAPH, key_of(call->exec, dev), &e))
			continue;
		e.link = c->epoch;
		gs_registry_put(&e, &old);
	}
}

void gs_graph_settle(CUdevice dev)
{
	struct gs_pool *p = dev >= 0 && dev < GS_DEVICES && gs_attached() ? pool_of(dev) : NULL;

	if (!p)
		return;
	pthread_mutex_lock(&gs_pool_lock);
	gs_pool_next_epoch(p);
	pthread_mutex_unlock(&gs_pool_lock);
	gs_pool_settle(p);
}

void gs_graphs_forked(void)
{
	atomic_store(&devices_used, 0);
	for (int i = 0; i < GS_DEVICES; i++)
		atomic_store(&pools[i], 0);
	for (unsigned i = 0; i < GS_MAX_GPUS; i++) {
		atomic_store(&guessed[i], 0);
		atomic_store(&owed[i], 0);
	}
}
