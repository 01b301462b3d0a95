// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "context.h"

#include <stdatomic.h>
#include <string.h>

#include "attach.h"
#include "code.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "ledger.h"

// Index in the limits page of each device ordinal, plus 1; 0 while unknown.
static _Atomic(uint8_t) device_gpu[GS_DEVICES];

// Context to GPU, for launches: the handle shifted by 8 beside the GPU plus 1.
#define CACHE 64
static _Atomic(uint64_t) gpu_cache[CACHE];

static _Atomic(uint32_t) last_serial;

// Contexts of this process on each GPU that are charged or about to be.
static _Atomic(uint32_t) contexts[GS_MAX_GPUS];

static _Atomic(uint64_t) *cache_place(CUcontext ctx)
{
	return &gpu_cache[((uint64_t)(uintptr_t)ctx >> 4 ^ (uint64_t)(uintptr_t)ctx >> 12) % CACHE];
}

static uint64_t cache_word(CUcontext ctx, unsigned gpu)
{
	return (uint64_t)(uintptr_t)ctx << 8 | (gpu + 1);
}

uint32_t gs_context_serial(void)
{
	return atomic_fetch_add(&last_serial, 1) + 1;
}

CUresult gs_place_device(CUdevice dev, unsigned *ret_gpu)
{
	CUuuid uuid;
	CUresult r;
	int gpu;

	if (!gs_attached())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (dev >= 0 && dev < GS_DEVICES) {
		uint8_t known = atomic_load_explicit(&device_gpu[dev], memory_order_relaxed);

		if (known) {
			*ret_gpu = known - 1U;
			return CUDA_SUCCESS;
		}
	}
	if (!gs_cuda_real.cuDeviceGetUuid)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = gs_cuda_real.cuDeviceGetUuid(&uuid, dev);
	if (r != CUDA_SUCCESS)
		return r;
	gpu = gs_gpu_find((const unsigned char *)uuid.bytes);
	if (gpu < 0)
		return CUDA_ERROR_NO_DEVICE;
	if (dev >= 0 && dev < GS_DEVICES)
		atomic_store_explicit(&device_gpu[dev], (uint8_t)(gpu + 1), memory_order_relaxed);
	*ret_gpu = (unsigned)gpu;
	return CUDA_SUCCESS;
}

uint64_t gs_context_opening(unsigned gpu)
{
	const struct gs_gpu_limit *l = &gs_self.limits->gpu[gpu];
	uint64_t next = __atomic_load_n(&l->next_context_bytes, __ATOMIC_RELAXED);
	uint64_t bytes = gs_context_bytes(gpu);

	if (atomic_fetch_add(&contexts[gpu], 1) && next)
		bytes = next;
	return gs_block_unit(gpu) > GS_CHARGE_GRANULE ? gs_whole_blocks(gpu, bytes) : bytes;
}

void gs_context_closed(unsigned gpu)
{
	atomic_fetch_sub(&contexts[gpu], 1);
}

uint32_t gs_context_note(CUcontext ctx, unsigned gpu, uint64_t bytes, unsigned what)
{
	bool own = what == GS_CONTEXT_OWN;
	struct gs_entry old, e = {
		.key = (uintptr_t)ctx,
		.bytes = bytes,
		.link = what,
		.ctx = gs_context_serial(),
		.refs = 1,
		.gpu = (uint8_t)gpu,
		.kind = GS_KIND_CONTEXT,
	};

	// Others have one handle, and several threads may meet it at once.
	if (!own && gs_registry_add(&e) != 0)
		return gs_registry_get(GS_KIND_CONTEXT, e.key, &old) ? old.ctx : 0;
	if (own && gs_registry_put(&e, &old) < 0)
		return 0; // stays charged until the process ends
	if (own && old.kind != GS_KIND_NONE)
		gs_context_dropped(&old); // the driver has given its handle away again
	atomic_store_explicit(cache_place(ctx), cache_word(ctx, gpu), memory_order_relaxed);
	return e.ctx;
}

void gs_context_forget(const struct gs_entry *context)
{
	uint64_t word = cache_word((CUcontext)(uintptr_t)context->key, context->gpu);

	atomic_compare_exchange_strong(cache_place((CUcontext)(uintptr_t)context->key), &word, 0);
}

void gs_context_dropped(const struct gs_entry *context)
{
	gs_context_forget(context);
	gs_code_forget();
	gs_registry_drain(context->ctx, gs_entry_refund);
	if (context->link != GS_CONTEXT_OWN)
		return;
	gs_ledger_refund(context->gpu, context->bytes);
	gs_context_closed(context->gpu);
	if (context->bytes)
		gs_ledger_count_context(-1);
}

// meet charges a context that came about unseen and is nobody's primary one.
static uint32_t meet(CUcontext ctx, unsigned gpu)
{
	uint64_t bytes = gs_context_opening(gpu);

	if (bytes) {
		gs_ledger_add(gpu, bytes);
		gs_ledger_count_context(1);
	}
	return gs_context_note(ctx, gpu, bytes, GS_CONTEXT_OWN);
}

CUresult gs_place_current(struct gs_place *ret_place)
{
	struct gs_entry e;
	CUcontext ctx = NULL;
	CUdevice dev;
	CUresult r;

	if (!gs_attached())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = gs_cuda_real.cuCtxGetCurrent ? gs_cuda_real.cuCtxGetCurrent(&ctx) : CUDA_ERROR_NOT_SUPPORTED;
	if (r != CUDA_SUCCESS)
		return r;
	if (ctx && gs_registry_get(GS_KIND_CONTEXT, (uintptr_t)ctx, &e)) {
		*ret_place = (struct gs_place){.gpu = e.gpu, .ctx = e.ctx};
		return CUDA_SUCCESS;
	}
	// No context, a destroyed one or an unseen one: the driver knows which.
	r = gs_cuda_real.cuCtxGetDevice ? gs_cuda_real.cuCtxGetDevice(&dev) : CUDA_ERROR_NOT_SUPPORTED;
	if (r != CUDA_SUCCESS)
		return r;
	r = gs_place_device(dev, &ret_place->gpu);
	if (r != CUDA_SUCCESS)
		return r;
	ret_place->ctx = 0;
	if (ctx && gs_primary_noticed(dev, ret_place->gpu, ctx))
		ret_place->ctx = gs_context_note(ctx, ret_place->gpu, 0, GS_CONTEXT_PRIMARY);
	else if (ctx)
		ret_place->ctx = meet(ctx, ret_place->gpu);
	return CUDA_SUCCESS;
}

// asked finds the GPU of a context that came about unseen. It changes the current
// context for a moment if it must.
static unsigned asked(CUcontext ctx)
{
	CUcontext current = NULL;
	unsigned gpu = 0;
	bool other;
	CUdevice dev;
	CUresult r;

	if (!gs_cuda_real.cuCtxGetDevice || !gs_cuda_real.cuCtxGetCurrent)
		return 0;
	other = gs_cuda_real.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != ctx;
	if (other && (!gs_cuda_real.cuCtxPopCurrent_v2 || !gs_cuda_real.cuCtxPushCurrent_v2 ||
		      gs_cuda_real.cuCtxPushCurrent_v2(ctx) != CUDA_SUCCESS))
		return 0;
	r = gs_cuda_real.cuCtxGetDevice(&dev);
	if (other)
		gs_cuda_real.cuCtxPopCurrent_v2(&current);
	if (r != CUDA_SUCCESS || gs_place_device(dev, &gpu) != CUDA_SUCCESS)
		return 0;
	atomic_store_explicit(cache_place(ctx), cache_word(ctx, gpu), memory_order_relaxed);
	return gpu;
}

static unsigned gpu_of(CUcontext ctx)
{
	uint64_t word = atomic_load_explicit(cache_place(ctx), memory_order_relaxed);
	struct gs_entry e;

	if (word >> 8 == ((uint64_t)(uintptr_t)ctx << 8) >> 8 && word & 0xff)
		return (unsigned)(word & 0xff) - 1;
	if (!gs_registry_get(GS_KIND_CONTEXT, (uintptr_t)ctx, &e))
		return asked(ctx);
	atomic_store_explicit(cache_place(ctx), cache_word(ctx, e.gpu), memory_order_relaxed);
	return e.gpu;
}

unsigned gs_place_launch(void)
{
	CUcontext ctx = NULL;

	if (!gs_attached() || gs_self.gpus == 1)
		return 0;
	if (!gs_cuda_real.cuCtxGetCurrent || gs_cuda_real.cuCtxGetCurrent(&ctx) != CUDA_SUCCESS || !ctx)
		return 0;
	return gpu_of(ctx);
}

unsigned gs_place_stream(CUstream stream)
{
	CUcontext ctx = NULL;

	if (!gs_attached() || gs_self.gpus == 1)
		return 0;
	if (!gs_cuda_real.cuStreamGetCtx || gs_cuda_real.cuStreamGetCtx(stream, &ctx) != CUDA_SUCCESS || !ctx)
		return gs_place_launch();
	return gpu_of(ctx);
}

void gs_context_forked(void)
{
	memset(device_gpu, 0, sizeof(device_gpu));
	memset(gpu_cache, 0, sizeof(gpu_cache));
	memset(contexts, 0, sizeof(contexts));
}

// ---- explicit contexts ------------------------------------------------------

// A context that is being made; charged before the driver is asked.
struct making {
	unsigned gpu;
	uint64_t bytes;
};

static CUresult make_begin(struct making *m, CUdevice dev)
{
	CUresult r = gs_place_device(dev, &m->gpu);

	if (r != CUDA_SUCCESS)
		return r;
	m->bytes = gs_context_opening(m->gpu);
	if (gs_charge(m->gpu, m->bytes) == 0)
		return CUDA_SUCCESS;
	gs_context_closed(m->gpu);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult make_end(const struct making *m, const CUcontext *ctx, CUcontext *ret_ctx, CUresult r)
{
	if (r != CUDA_SUCCESS) {
		gs_ledger_refund(m->gpu, m->bytes);
		gs_context_closed(m->gpu);
		return r;
	}
	if (m->bytes)
		gs_ledger_count_context(1);
	gs_context_note(*ctx, m->gpu, m->bytes, GS_CONTEXT_OWN);
	*ret_ctx = *ctx;
	return r;
}

CUresult gs_cu_ctx_create(GS_FN(cuCtxCreate) real, CUcontext *ret_ctx, unsigned int flags, CUdevice dev)
{
	struct making m;
	CUcontext ctx = NULL;
	CUresult r = make_begin(&m, dev);

	if (r == CUDA_SUCCESS)
		r = make_end(&m, &ctx, ret_ctx, real(ret_ctx ? &ctx : NULL, flags, dev));
	return r;
}

CUresult gs_cu_ctx_create_v3(GS_FN(cuCtxCreate_v3) real, CUcontext *ret_ctx, CUexecAffinityParam *params, int n,
			     unsigned int flags, CUdevice dev)
{
	struct making m;
	CUcontext ctx = NULL;
	CUresult r = make_begin(&m, dev);

	if (r == CUDA_SUCCESS)
		r = make_end(&m, &ctx, ret_ctx, real(ret_ctx ? &ctx : NULL, params, n, flags, dev));
	return r;
}

CUresult gs_cu_ctx_create_v4(GS_FN(cuCtxCreate_v4) real, CUcontext *ret_ctx, CUctxCreateParams *params,
			     unsigned int flags, CUdevice dev)
{
	struct making m;
	CUcontext ctx = NULL;
	CUresult r = make_begin(&m, dev);

	if (r == CUDA_SUCCESS)
		r = make_end(&m, &ctx, ret_ctx, real(ret_ctx ? &ctx : NULL, params, flags, dev));
	return r;
}

CUresult gs_cu_ctx_create_vdpau(GS_FN(cuVDPAUCtxCreate) real, CUcontext *ret_ctx, unsigned int flags, CUdevice dev,
				VdpDevice vdp, VdpGetProcAddress *get)
{
	struct making m;
	CUcontext ctx = NULL;
	CUresult r = make_begin(&m, dev);

	if (r == CUDA_SUCCESS)
		r = make_end(&m, &ctx, ret_ctx, real(ret_ctx ? &ctx : NULL, flags, dev, vdp, get));
	return r;
}

// The old way to share a context: a count that starts at 1.
CUresult gs_cu_ctx_attach(GS_FN(cuCtxAttach) real, CUcontext *ret_ctx, unsigned int flags)
{
	struct gs_entry e;
	CUcontext ctx = NULL;
	CUresult r = real(ret_ctx ? &ctx : NULL, flags);

	if (r != CUDA_SUCCESS)
		return r;
	if (gs_attached())
		gs_registry_ref(GS_KIND_CONTEXT, (uintptr_t)ctx, 1, &e);
	*ret_ctx = ctx;
	return r;
}

CUresult gs_cu_ctx_detach(GS_FN(cuCtxDetach) real, CUcontext ctx)
{
	struct gs_entry e, old;
	bool known = gs_attached() && gs_registry_ref(GS_KIND_CONTEXT, (uintptr_t)ctx, -1, &e);
	CUresult r;

	if (known && !e.refs)
		gs_gate_context_gone(ctx);
	r = real(ctx);
	if (!known)
		return r;
	if (r == CUDA_SUCCESS && !e.refs) {
		gs_context_dropped(&e);
	} else if (r != CUDA_SUCCESS && !gs_registry_ref(GS_KIND_CONTEXT, (uintptr_t)ctx, 1, &old)) {
		e.refs = 1;
		gs_registry_put(&e, &old);
	}
	return r;
}

CUresult gs_cu_ctx_destroy(GS_FN(cuCtxDestroy_v2) real, CUcontext ctx)
{
	struct gs_entry e, old;
	bool known = gs_attached() && gs_registry_take(GS_KIND_CONTEXT, (uintptr_t)ctx, &e);
	CUresult r;

	if (known)
		gs_gate_context_gone(ctx);
	r = real(ctx);
	if (known && r == CUDA_SUCCESS)
		gs_context_dropped(&e);
	else if (known)
		gs_registry_put(&e, &old);
	return r;
}
