// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Every launching entry point passes the gate once, on both sides of the driver's
// call, with its shape, stream and flavour; waits poll it, captures are counted.
// The exported wrappers and cuda_launch.c, with a gate and a driver made here.

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "code.h"
#include "cuda_hooks.h"
#include "gate.h"
#include "graph.h"

static int failures;
static int entered, left, called, polls, captures, order_wrong;
static struct gs_gate_shape shape;
static CUstream stream;
static enum gs_gate_flavour flavour;
static CUresult told, answer;
static unsigned gpu;
static CUstreamCaptureStatus status;

#define CHECK(c)                                                     \
	do {                                                         \
		if (!(c)) {                                          \
			failures++;                                  \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #c); \
		}                                                    \
	} while (0)

// ---- memory -------------------------------------------------------------------

static int charged, settled, pool_waits;
static CUresult room;

CUresult gs_graph_enter(struct gs_graph_call *c, CUgraphExec g, CUstream s, bool per_thread)
{
	(void)c, (void)g, (void)s, (void)per_thread;
	charged++;
	return room;
}

void gs_graph_leave(struct gs_graph_call *c, CUresult r)
{
	(void)c, (void)r;
	settled++;
}

_Atomic(uint32_t) gs_pools_high = 1;

void gs_pools_waited(uint64_t s, bool all)
{
	(void)s, (void)all;
	pool_waits++;
}

uint64_t gs_stream_key(CUstream s, bool per_thread)
{
	(void)per_thread;
	return (uintptr_t)s;
}

bool gs_capturing(CUstream s, bool per_thread)
{
	(void)s, (void)per_thread;
	return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// ---- the gate -----------------------------------------------------------------

void gs_gate_enter(struct gs_gate_ticket *t, uint32_t g, CUstream s, enum gs_gate_flavour f,
		   const struct gs_gate_shape *sh)
{
	(void)t;
	order_wrong |= called > 0;
	entered++;
	shape = *sh;
	stream = s;
	flavour = f;
	gpu = g;
}

void gs_gate_leave(struct gs_gate_ticket *t, CUresult r)
{
	(void)t;
	order_wrong |= called != 1;
	left++;
	told = r;
}

void gs_gate_poll(void)
{
	polls++;
}

void gs_gate_capture_begin(void)
{
	captures++;
}

void gs_gate_capture_end(void)
{
	captures--;
}

unsigned gs_place_launch(void);
unsigned gs_place_stream(CUstream s);

unsigned gs_place_launch(void)
{
	return 3;
}

unsigned gs_place_stream(CUstream s)
{
	return (unsigned)(uintptr_t)s;
}

// ---- code ---------------------------------------------------------------------

uint64_t gs_code_seen[GS_CODE_SEEN];
static int firsts, lasts;
static CUresult lasting;

CUresult gs_code_first(struct gs_code_use *use, unsigned g, CUfunction f)
{
	(void)use;
	(void)f;
	order_wrong |= called > 0 || entered == 0;
	firsts++;
	gpu = g;
	return room;
}

void gs_code_first_end(const struct gs_code_use *use, unsigned g, CUfunction f, CUresult r)
{
	(void)use;
	order_wrong |= called != 1;
	lasts++;
	lasting = r;
	if (r == CUDA_SUCCESS)
		*gs_code_place(gs_code_word(g, f)) = gs_code_word(g, f);
}

void *gs_cuda_resolve(int symbol);

void *gs_cuda_resolve(int symbol)
{
	(void)symbol;
	return NULL;
}

// ---- the driver: any function of any parameters ----------------------------------

static CUresult driver(void)
{
	called++;
	return answer;
}

static void reset(CUresult a)
{
	entered = left = called = order_wrong = firsts = lasts = 0;
	memset(&shape, 0, sizeof(shape));
	told = 999;
	answer = a;
}

static bool shaped(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared)
{
	return shape.grid[0] == gx && shape.grid[1] == gy && shape.grid[2] == gz && shape.block[0] == bx &&
	       shape.block[1] == by && shape.block[2] == bz && shape.shared_bytes == shared && !shape.graph;
}

#define F ((CUfunction)0x77)
#define S ((CUstream)0x99)

// GATED runs one launch, that succeeds and that fails.
#define GATED(call, want_flavour, want_stream, shape_is)                              \
	do {                                                                          \
		for (int code = 0; code < 720; code += 719) {                         \
			reset((CUresult)code);                                        \
			CHECK((int)(call) == code);                                   \
			CHECK(entered == 1 && left == 1 && called == 1 && !order_wrong); \
			CHECK((int)told == code && gpu == 3);                         \
			CHECK(flavour == (want_flavour) && stream == (want_stream));  \
			CHECK(shape_is);                                              \
		}                                                                     \
	} while (0)

static void launches(void)
{
	CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 2, .gridDimZ = 3, .blockDimX = 4, .blockDimY = 5,
				 .blockDimZ = 6, .sharedMemBytes = 7, .hStream = S};
	CUDA_LAUNCH_PARAMS list[2] = {
		{.function = F, .gridDimX = 1, .hStream = (CUstream)1},
		{.function = F, .gridDimX = 2, .hStream = (CUstream)2},
	};

	GATED(cuLaunchKernel(F, 1, 2, 3, 4, 5, 6, 7, S, NULL, NULL), GS_GATE_LEGACY, S, shaped(1, 2, 3, 4, 5, 6, 7));
	CHECK(shape.handle == 0x77);
	GATED(cuLaunchKernel_ptsz(F, 1, 2, 3, 4, 5, 6, 7, NULL, NULL, NULL), GS_GATE_PER_THREAD, NULL,
	      shaped(1, 2, 3, 4, 5, 6, 7));
	GATED(cuLaunchKernelEx(&config, F, NULL, NULL), GS_GATE_LEGACY, S, shaped(1, 2, 3, 4, 5, 6, 7));
	GATED(cuLaunchKernelEx_ptsz(&config, F, NULL, NULL), GS_GATE_PER_THREAD, S, shaped(1, 2, 3, 4, 5, 6, 7));
	GATED(cuLaunchCooperativeKernel(F, 1, 2, 3, 4, 5, 6, 7, S, NULL), GS_GATE_LEGACY, S,
	      shaped(1, 2, 3, 4, 5, 6, 7));
	GATED(cuLaunchCooperativeKernel_ptsz(F, 1, 2, 3, 4, 5, 6, 7, S, NULL), GS_GATE_PER_THREAD, S,
	      shaped(1, 2, 3, 4, 5, 6, 7));
	GATED(cuLaunch(F), GS_GATE_LEGACY, NULL, shaped(1, 1, 1, 0, 0, 0, 0));
	GATED(cuLaunchGrid(F, 8, 9), GS_GATE_LEGACY, NULL, shaped(8, 9, 1, 0, 0, 0, 0));
	GATED(cuLaunchGridAsync(F, 8, 9, S), GS_GATE_LEGACY, S, shaped(8, 9, 1, 0, 0, 0, 0));
	GATED(cuGraphLaunch((CUgraphExec)0x55, S), GS_GATE_LEGACY, S, shape.graph && shape.handle == 0x55);
	GATED(cuGraphLaunch_ptsz((CUgraphExec)0x55, S), GS_GATE_PER_THREAD, S, shape.graph && shape.handle == 0x55);

	// A graph's memory is charged around the launch; without room there is none.
	CHECK(charged == 4 && settled == 4);
	reset(CUDA_SUCCESS);
	room = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK(cuGraphLaunch((CUgraphExec)0x55, S) == room && called == 0 && settled == 4);
	CHECK(entered == 1 && left == 1 && told == room);
	room = CUDA_SUCCESS;

	reset(CUDA_SUCCESS);
	CHECK(cuLaunchCooperativeKernelMultiDevice(list, 2, 0) == CUDA_SUCCESS);
	CHECK(entered == 2 && left == 2 && called == 1 && !order_wrong && gpu == 2 && stream == (CUstream)2);
	reset(CUDA_ERROR_INVALID_VALUE);
	CHECK(cuLaunchKernelEx(NULL, F, NULL, NULL) == CUDA_ERROR_INVALID_VALUE && entered == 0);
	CHECK(cuLaunchCooperativeKernelMultiDevice(NULL, 2, 0) == CUDA_ERROR_INVALID_VALUE && entered == 0);
}

// FIRST makes a launch of a function not seen before: once without room for its code,
// once where the driver fails, then for good.
#define FIRST(call)                                                                           \
	do {                                                                                  \
		memset(gs_code_seen, 0, sizeof(gs_code_seen));                                \
		reset(CUDA_SUCCESS);                                                          \
		room = CUDA_ERROR_OUT_OF_MEMORY;                                              \
		CHECK((call) == CUDA_ERROR_OUT_OF_MEMORY && called == 0 && lasts == 0);       \
		CHECK(entered == left && left > 0 && told == CUDA_ERROR_OUT_OF_MEMORY);       \
		reset(CUDA_ERROR_LAUNCH_FAILED);                                              \
		room = CUDA_SUCCESS;                                                          \
		CHECK((call) == CUDA_ERROR_LAUNCH_FAILED && firsts == 1 && lasts == 1);       \
		CHECK(lasting == CUDA_ERROR_LAUNCH_FAILED && !order_wrong);                   \
		reset(CUDA_SUCCESS);                                                          \
		CHECK((call) == CUDA_SUCCESS && firsts == 1 && lasting == CUDA_SUCCESS);      \
		CHECK((call) == CUDA_SUCCESS && firsts == 1 && lasts == 1);                   \
	} while (0)

static void firsts_of_functions(void)
{
	CUlaunchConfig config = {.gridDimX = 1, .hStream = S};
	CUDA_LAUNCH_PARAMS list[1] = {{.function = F, .gridDimX = 1, .hStream = (CUstream)1}};

	FIRST(cuLaunchKernel(F, 1, 1, 1, 1, 1, 1, 0, S, NULL, NULL));
	FIRST(cuLaunchKernelEx(&config, F, NULL, NULL));
	FIRST(cuLaunchCooperativeKernel(F, 1, 1, 1, 1, 1, 1, 0, S, NULL));
	FIRST(cuLaunchCooperativeKernelMultiDevice(list, 1, 0));
	FIRST(cuLaunch(F));
	FIRST(cuLaunchGrid(F, 8, 9));
	FIRST(cuLaunchGridAsync(F, 8, 9, S));
}

static void waits(void)
{
	reset(CUDA_SUCCESS);
	CHECK(cuCtxSynchronize() == 0 && cuStreamSynchronize(S) == 0 && cuStreamSynchronize_ptsz(S) == 0 &&
	      cuEventSynchronize(NULL) == 0);
	CHECK(polls == 4 && called == 4 && pool_waits == 4);
	CHECK(cuCtxSynchronize_v2(NULL) == 0 && polls == 5 && called == 5 && pool_waits == 5);
	reset(CUDA_ERROR_LAUNCH_FAILED);
	CHECK(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED && polls == 5 && pool_waits == 5);
}

static void capture(void)
{
	CUgraph g;

	reset(CUDA_SUCCESS);
	CHECK(cuStreamBeginCapture(S) == 0 && cuStreamBeginCapture_ptsz(S) == 0 && cuStreamBeginCapture_v2(S, 0) == 0 &&
	      cuStreamBeginCapture_v2_ptsz(S, 0) == 0 && cuStreamBeginCaptureToGraph(S, NULL, NULL, NULL, 0, 0) == 0 &&
	      cuStreamBeginCaptureToGraph_ptsz(S, NULL, NULL, NULL, 0, 0) == 0);
	CHECK(captures == 6);
	answer = CUDA_ERROR_ILLEGAL_STATE;
	CHECK(cuStreamBeginCapture_v2(S, 0) == CUDA_ERROR_ILLEGAL_STATE && captures == 6);
	// An end that the driver refuses still ends a capture, if there was one.
	status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	CHECK(cuStreamEndCapture(S, &g) == CUDA_ERROR_ILLEGAL_STATE && captures == 5);
	status = CU_STREAM_CAPTURE_STATUS_NONE;
	CHECK(cuStreamEndCapture(S, &g) == CUDA_ERROR_ILLEGAL_STATE && captures == 5);
	status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	answer = CUDA_SUCCESS;
	CHECK(cuStreamEndCapture_ptsz(S, &g) == CUDA_SUCCESS && captures == 4);
}

int main(void)
{
	void **real = (void **)&gs_cuda_real;

	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(cuLaunchKernel(F, 1, 2, 3, 4, 5, 6, 7, S, NULL, NULL) == CUDA_ERROR_NOT_SUPPORTED); // a driver without it
	for (int i = 0; i < GS_CUDA_SYMBOLS; i++)
		real[i] = (void *)driver;
	launches();
	firsts_of_functions();
	waits();
	capture();
	return failures ? 1 : 0;
}
