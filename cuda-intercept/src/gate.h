// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The launch gate: holds a container to its share of GPU time.
//
// Every wrapper that puts work on a GPU's compute engine brackets the real call:
//
//	struct gs_gate_ticket t;
//	gs_gate_enter(&t, gpu, stream, GS_GATE_LEGACY, &shape);
//	r = real(...);
//	gs_gate_leave(&t, r);
//
// enter may wait until the container's share allows the launch; it never
// refuses one. leave must follow on the same thread, also when the call failed.
// Both keep errno, allocate nothing and hold no lock across a driver call.
// Before gs_gate_attach, and after it returned without a page, both do nothing.

#ifndef GS_GATE_H
#define GS_GATE_H

#include <stdint.h>

#include "cuda_abi.h"
#include "region.h"

// Flavour of the entry point through which a launch came: what stream handle 0
// means, and so by which twin an event is recorded in it.
enum gs_gate_flavour {
	GS_GATE_LEGACY = 0,
	GS_GATE_PER_THREAD = 1, // the symbol ends in _ptsz
};

// What is launched. Launches of the same shape are taken to cost the same.
struct gs_gate_shape {
	uint64_t handle; // CUfunction (or CUkernel), or CUgraphExec
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_bytes; // dynamic shared memory
	uint32_t graph;	       // 1: handle is a CUgraphExec, the rest is 0
};

// One launch between enter and leave; lives on the wrapper's stack and needs no
// initialisation. Private to the gate.
struct gs_gate_ticket {
	uint32_t flags;
	int32_t sample; // event pair of this launch, -1 for none
	uint32_t gpu;
	uint32_t flavour;
	uint64_t cost_ns; // GPU time charged
	int64_t paid_ns;  // the same as wall time under the ceiling
	CUstream stream;
};

// The real driver's own entry points. From stream_get_ctx on they may be NULL (an
// old driver); if an earlier one is, launches are charged by known prices only.
struct gs_gate_driver {
	__typeof__(cuEventCreate) *event_create;
	__typeof__(cuEventDestroy_v2) *event_destroy;
	__typeof__(cuEventRecord) *event_record;
	__typeof__(cuEventRecord_ptsz) *event_record_ptsz;
	__typeof__(cuEventQuery) *event_query;
	__typeof__(cuEventElapsedTime) *event_elapsed;
	__typeof__(cuCtxGetCurrent) *ctx_get_current;
	__typeof__(cuCtxPushCurrent_v2) *ctx_push;
	__typeof__(cuCtxPopCurrent_v2) *ctx_pop;
	__typeof__(cuStreamGetCtx) *stream_get_ctx;
	__typeof__(cuStreamIsCapturing) *stream_is_capturing;
	__typeof__(cuStreamIsCapturing_ptsz) *stream_is_capturing_ptsz;
	__typeof__(cuStreamQuery) *stream_query;
	__typeof__(cuStreamQuery_ptsz) *stream_query_ptsz;
	__typeof__(cuThreadExchangeStreamCaptureMode) *exchange_capture_mode;
};

// What the gate works on; copied by gs_gate_attach.
struct gs_gate_env {
	const struct gs_limits_page *page; // mapped read-only
	struct gs_ledger_header *ledger;   // mapped read-write
	uint32_t slot;			   // this process's slot
	struct gs_gate_driver driver;
};

// gs_gate_attach starts the gate. Call once, when the process has its slot and
// before its first launch can come (the end of a successful cuInit).
void gs_gate_attach(const struct gs_gate_env *env);

// gs_gate_fork_child forgets the parent's unfinished launches and its events.
// Call from the pthread_atfork child handler. The gate then does nothing until
// the child attaches for itself.
void gs_gate_fork_child(void);

// gs_gate_enter charges one launch, and waits for its turn. gpu is the index in
// the limits page of the GPU of the launch's context (0 without asking when the
// page has one GPU).
void gs_gate_enter(struct gs_gate_ticket *ret_ticket, uint32_t gpu, CUstream stream,
		   enum gs_gate_flavour flavour, const struct gs_gate_shape *shape);

// gs_gate_leave takes the charge back if the launch failed, and records the
// events that tell when the work is done.
void gs_gate_leave(struct gs_gate_ticket *ticket, CUresult result);

// gs_gate_poll settles launches that have finished. Call after a successful
// cuCtxSynchronize, cuStreamSynchronize(_ptsz) or cuEventSynchronize of the real
// driver: a process that launches once and waits is not seen otherwise. Costs
// two loads when nothing is unsettled.
void gs_gate_poll(void);

// gs_gate_context_gone drops the events that live in a context. Call before the
// real driver destroys it (cuCtxDestroy, the primary context's last release or
// its reset): a later look at such an event would read freed memory.
void gs_gate_context_gone(CUcontext context);

// gs_gate_capture_begin and gs_gate_capture_end count stream captures. Call
// begin before the real cuStreamBeginCapture* (every version and flavour) and
// end if that failed, and end after the real cuStreamEndCapture*, whatever it
// returned for a stream that was capturing. While the count is not zero the gate
// asks the driver about each launch's stream and leaves capturing ones alone.
void gs_gate_capture_begin(void);
void gs_gate_capture_end(void);

#endif
