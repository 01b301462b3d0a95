// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Launches, through the gate; waits and captures, which the gate must know of.

#include <stdbool.h>

#include "attach.h"
#include "code.h"
#include "context.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "graph.h"
#include "pool.h"

// Most GPUs of one multi-device launch.
#define MULTI_MAX 16

static struct gs_gate_shape kernel(CUfunction f)
{
	return (struct gs_gate_shape){.handle = (uintptr_t)f, .grid = {1, 1, 1}};
}

// A launch on its way through the gate. The first one of a function may make the
// driver put code on the device.
struct launch {
	struct gs_gate_ticket ticket;
	struct gs_code_use use;
	CUfunction function;
	unsigned gpu;
	bool first;
};

static CUresult launch_begin(struct launch *l, unsigned gpu, CUfunction f, CUstream stream,
			     enum gs_gate_flavour flavour, const struct gs_gate_shape *shape)
{
	CUresult r;

	l->function = f;
	l->gpu = gpu;
	l->first = !gs_code_launched(gpu, f);
	gs_gate_enter(&l->ticket, gpu, stream, flavour, shape);
	if (__builtin_expect(!l->first, 1))
		return CUDA_SUCCESS;
	r = gs_code_first(&l->use, gpu, f);
	if (r != CUDA_SUCCESS)
		gs_gate_leave(&l->ticket, r);
	return r;
}

static void launch_end(struct launch *l, CUresult r)
{
	if (__builtin_expect(l->first, 0))
		gs_code_first_end(&l->use, l->gpu, l->function, r);
	gs_gate_leave(&l->ticket, r);
}

CUresult gs_cu_launch_kernel(GS_FN(cuLaunchKernel) real, enum gs_gate_flavour flavour, CUfunction f, unsigned int gx,
			     unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
			     unsigned int shared_bytes, CUstream stream, void **params, void **extra)
{
	struct gs_gate_shape shape = {
		.handle = (uintptr_t)f,
		.grid = {gx, gy, gz},
		.block = {bx, by, bz},
		.shared_bytes = shared_bytes,
	};
	struct launch l;
	CUresult r;

	r = launch_begin(&l, gs_place_launch(), f, stream, flavour, &shape);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(f, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, extra);
	launch_end(&l, r);
	return r;
}

CUresult gs_cu_launch_kernel_ex(GS_FN(cuLaunchKernelEx) real, enum gs_gate_flavour flavour,
				const CUlaunchConfig *config, CUfunction f, void **params, void **extra)
{
	struct launch l;
	struct gs_gate_shape shape;
	CUresult r;

	if (!config)
		return real(config, f, params, extra);
	shape = (struct gs_gate_shape){
		.handle = (uintptr_t)f,
		.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
		.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
		.shared_bytes = config->sharedMemBytes,
	};
	r = launch_begin(&l, gs_place_launch(), f, config->hStream, flavour, &shape);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(config, f, params, extra);
	launch_end(&l, r);
	return r;
}

CUresult gs_cu_launch_cooperative(GS_FN(cuLaunchCooperativeKernel) real, enum gs_gate_flavour flavour, CUfunction f,
				  unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				  unsigned int by, unsigned int bz, unsigned int shared_bytes, CUstream stream,
				  void **params)
{
	struct gs_gate_shape shape = {
		.handle = (uintptr_t)f,
		.grid = {gx, gy, gz},
		.block = {bx, by, bz},
		.shared_bytes = shared_bytes,
	};
	struct launch l;
	CUresult r;

	r = launch_begin(&l, gs_place_launch(), f, stream, flavour, &shape);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(f, gx, gy, gz, bx, by, bz, shared_bytes, stream, params);
	launch_end(&l, r);
	return r;
}

CUresult gs_cu_launch_multi(GS_FN(cuLaunchCooperativeKernelMultiDevice) real, enum gs_gate_flavour flavour,
			    CUDA_LAUNCH_PARAMS *list, unsigned int n, unsigned int flags)
{
	struct launch l[MULTI_MAX];
	unsigned int gated = n < MULTI_MAX ? n : MULTI_MAX;
	CUresult r = CUDA_SUCCESS;
	unsigned int begun = 0;

	if (!list)
		gated = 0;
	for (; begun < gated && r == CUDA_SUCCESS; begun += r == CUDA_SUCCESS) {
		const CUDA_LAUNCH_PARAMS *p = &list[begun];
		struct gs_gate_shape shape = {
			.handle = (uintptr_t)p->function,
			.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
			.block = {p->blockDimX, p->blockDimY, p->blockDimZ},
			.shared_bytes = p->sharedMemBytes,
		};

		r = launch_begin(&l[begun], gs_place_stream(p->hStream), p->function, p->hStream, flavour, &shape);
	}
	if (r == CUDA_SUCCESS)
		r = real(list, n, flags);
	for (unsigned int i = 0; i < begun; i++)
		launch_end(&l[i], r);
	return r;
}

CUresult gs_cu_launch(GS_FN(cuLaunch) real, enum gs_gate_flavour flavour, CUfunction f)
{
	struct gs_gate_shape shape = kernel(f);
	struct launch l;
	CUresult r;

	r = launch_begin(&l, gs_place_launch(), f, NULL, flavour, &shape);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(f);
	launch_end(&l, r);
	return r;
}

CUresult gs_cu_launch_grid(GS_FN(cuLaunchGrid) real, enum gs_gate_flavour flavour, CUfunction f, int width, int height)
{
	struct gs_gate_shape shape = kernel(f);
	struct launch l;
	CUresult r;

	shape.grid[0] = (uint32_t)width;
	shape.grid[1] = (uint32_t)height;
	r = launch_begin(&l, gs_place_launch(), f, NULL, flavour, &shape);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(f, width, height);
	launch_end(&l, r);
	return r;
}

CUresult gs_cu_launch_grid_async(GS_FN(cuLaunchGridAsync) real, enum gs_gate_flavour flavour, CUfunction f, int width,
				 int height, CUstream stream)
{
	struct gs_gate_shape shape = kernel(f);
	struct launch l;
	CUresult r;

	shape.grid[0] = (uint32_t)width;
	shape.grid[1] = (uint32_t)height;
	r = launch_begin(&l, gs_place_launch(), f, stream, flavour, &shape);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(f, width, height, stream);
	launch_end(&l, r);
	return r;
}

CUresult gs_cu_graph_launch(GS_FN(cuGraphLaunch) real, enum gs_gate_flavour flavour, CUgraphExec graph, CUstream stream)
{
	struct gs_gate_shape shape = {.handle = (uintptr_t)graph, .graph = 1};
	struct gs_gate_ticket t;
	struct gs_graph_call memory;
	CUresult r;

	gs_gate_enter(&t, gs_place_launch(), stream, flavour, &shape);
	r = gs_graph_enter(&memory, graph, stream, flavour == GS_GATE_PER_THREAD);
	if (r == CUDA_SUCCESS) {
		r = real(graph, stream);
		gs_graph_leave(&memory, r);
	}
	gs_gate_leave(&t, r);
	return r;
}

// ---- waits ------------------------------------------------------------------

// stream is as gs_pools_waited wants it.
static CUresult waited(CUresult r, uint64_t stream, bool all)
{
	if (r == CUDA_SUCCESS) {
		gs_gate_poll();
		if (gs_pools_used())
			gs_pools_waited(stream, all);
	}
	return r;
}

CUresult gs_cu_ctx_sync(GS_FN(cuCtxSynchronize) real, enum gs_gate_flavour flavour)
{
	(void)flavour;
	return waited(real(), GS_STREAM_NONE, true);
}

CUresult gs_cu_ctx_sync_v2(GS_FN(cuCtxSynchronize_v2) real, enum gs_gate_flavour flavour, CUcontext ctx)
{
	(void)flavour;
	return waited(real(ctx), GS_STREAM_NONE, true);
}

CUresult gs_cu_stream_sync(GS_FN(cuStreamSynchronize) real, enum gs_gate_flavour flavour, CUstream stream)
{
	return waited(real(stream), gs_stream_key(stream, flavour == GS_GATE_PER_THREAD), false);
}

CUresult gs_cu_event_sync(GS_FN(cuEventSynchronize) real, enum gs_gate_flavour flavour, CUevent event)
{
	(void)flavour;
	return waited(real(event), GS_STREAM_NONE, false);
}

// ---- captures ---------------------------------------------------------------

static CUresult begun(CUresult r)
{
	if (r != CUDA_SUCCESS)
		gs_gate_capture_end();
	return r;
}

CUresult gs_cu_capture_begin(GS_FN(cuStreamBeginCapture) real, enum gs_gate_flavour flavour, CUstream stream)
{
	(void)flavour;
	gs_gate_capture_begin();
	return begun(real(stream));
}

CUresult gs_cu_capture_begin_v2(GS_FN(cuStreamBeginCapture_v2) real, enum gs_gate_flavour flavour, CUstream stream,
				CUstreamCaptureMode mode)
{
	(void)flavour;
	gs_gate_capture_begin();
	return begun(real(stream, mode));
}

CUresult gs_cu_capture_begin_to_graph(GS_FN(cuStreamBeginCaptureToGraph) real, enum gs_gate_flavour flavour,
				      CUstream stream, CUgraph graph, const CUgraphNode *nodes,
				      const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode)
{
	(void)flavour;
	gs_gate_capture_begin();
	return begun(real(stream, graph, nodes, edges, n, mode));
}

CUresult gs_cu_capture_end(GS_FN(cuStreamEndCapture) real, enum gs_gate_flavour flavour, CUstream stream,
			   CUgraph *ret_graph)
{
	bool was = gs_capturing(stream, flavour == GS_GATE_PER_THREAD);
	CUresult r = real(stream, ret_graph);

	if (was)
		gs_gate_capture_end();
	return r;
}
