// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Start of the library in a process, and in its forked children.

#include <pthread.h>

#include "array.h"
#include "attach.h"
#include "block.h"
#include "code.h"
#include "context.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "guess.h"
#include "graph.h"
#include "pool.h"
#include "spill.h"
#include "resolve.h"
#include "share.h"

#define REAL_LIBRARY "/run/gpushare/driver/cuda.real"

// Ties us to the real library: a dependency without a reference is dropped by
// the linker.
static __typeof__(cuDriverGetVersion) *volatile anchor __attribute__((used, retain)) = cuDriverGetVersion;

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;

// The driver's state does not survive a fork; neither does ours. The child may
// still hold the parent's device memory, and so its slot: see gs_attach_forget.
void gs_forked(void)
{
	start_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	started = false;
	gs_gate_fork_child();
	gs_context_forked();
	gs_primary_forked();
	gs_blocks_forked();
	gs_arrays_forked();
	gs_pools_forked();
	gs_shares_forked();
	gs_spill_forked();
	gs_graphs_forked();
	gs_registry_forked();
	gs_guess_forked();
	gs_code_forget();
	gs_attach_forget();
}

void *gs_cuda_resolve(int symbol)
{
	return gs_library_symbol(gs_library_open(REAL_LIBRARY), gs_cuda_names[symbol]);
}

static __attribute__((constructor)) void find_real(void)
{
	void *library = gs_library_open(REAL_LIBRARY);
	void **real = (void **)&gs_cuda_real;

	for (int i = 0; i < GS_CUDA_SYMBOLS; i++)
		real[i] = gs_library_symbol(library, gs_cuda_names[i]);
	gs_library_hide(gs_cuda_wrappers, real, GS_CUDA_HOOKS);
}

static void start_gate(void)
{
	struct gs_gate_env env = {
		.page = gs_self.limits,
		.ledger = gs_self.ledger,
		.slot = (uint32_t)gs_self.slot,
		.driver = {
			.event_create = gs_cuda_real.cuEventCreate,
			.event_destroy = gs_cuda_real.cuEventDestroy_v2,
			.event_record = gs_cuda_real.cuEventRecord,
			.event_record_ptsz = gs_cuda_real.cuEventRecord_ptsz,
			.event_query = gs_cuda_real.cuEventQuery,
			.event_elapsed = gs_cuda_real.cuEventElapsedTime,
			.ctx_get_current = gs_cuda_real.cuCtxGetCurrent,
			.ctx_push = gs_cuda_real.cuCtxPushCurrent_v2,
			.ctx_pop = gs_cuda_real.cuCtxPopCurrent_v2,
			.stream_get_ctx = gs_cuda_real.cuStreamGetCtx,
			.stream_is_capturing = gs_cuda_real.cuStreamIsCapturing,
			.stream_is_capturing_ptsz = gs_cuda_real.cuStreamIsCapturing_ptsz,
			.stream_query = gs_cuda_real.cuStreamQuery,
			.stream_query_ptsz = gs_cuda_real.cuStreamQuery_ptsz,
			.exchange_capture_mode = gs_cuda_real.cuThreadExchangeStreamCaptureMode,
		},
	};

	pthread_mutex_lock(&start_lock);
	if (!started)
		gs_gate_attach(&env);
	started = true;
	pthread_mutex_unlock(&start_lock);
}

CUresult gs_cu_init(GS_FN(cuInit) real, unsigned int flags)
{
	CUresult r;

	if (gs_attach(true) < 0)
		return CUDA_ERROR_SYSTEM_NOT_READY;
	gs_export_tables_count();
	r = real(flags);
	if (r == CUDA_SUCCESS)
		start_gate();
	return r;
}
