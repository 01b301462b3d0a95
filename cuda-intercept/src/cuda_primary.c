// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Primary contexts. The driver counts references, also some that are taken
// through its private tables; so whether the context still exists is asked of
// the driver, not counted here.

#include <pthread.h>
#include <string.h>

#include "attach.h"
#include "context.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "ledger.h"

struct primary {
	pthread_mutex_t lock;
	uint32_t pending; // retains between their charge and the driver's answer
	uint32_t seq;	  // counts retains: an answer older than the last one is void
	uint32_t refs;	  // retains that we saw and nobody released
	bool charged;
	uint64_t bytes;
	uint64_t ctx; // handle, 0 if not known
};

static struct primary primaries[GS_DEVICES];

static struct primary *primary_of(CUdevice dev)
{
	return dev >= 0 && dev < GS_DEVICES ? &primaries[dev] : NULL;
}

// charge charges the context unless that is done. With on_sight the context
// exists already. It returns 0 or -ENOMEM.
static int charge(struct primary *p, unsigned gpu, bool on_sight)
{
	uint64_t bytes;
	bool need;

	pthread_mutex_lock(&p->lock);
	need = !p->charged;
	pthread_mutex_unlock(&p->lock);
	if (!need)
		return 0;
	bytes = gs_context_opening(gpu);
	if (on_sight) {
		gs_ledger_add(gpu, bytes);
	} else if (gs_charge(gpu, bytes) < 0) {
		gs_context_closed(gpu);
		return -1;
	}
	pthread_mutex_lock(&p->lock);
	need = !p->charged;
	if (need) {
		p->charged = true;
		p->bytes = bytes;
	} else if (bytes > p->bytes) {
		// Another thread was faster, and believed it a further context.
		uint64_t less = p->bytes;

		p->bytes = bytes;
		bytes = less;
	}
	pthread_mutex_unlock(&p->lock);
	if (need) {
		gs_ledger_count_context(1);
	} else {
		gs_ledger_refund(gpu, bytes);
		gs_context_closed(gpu);
	}
	return 0;
}

// driver_active asks the driver; unknown is the answer if it has none.
static bool driver_active(CUdevice dev, bool unknown)
{
	unsigned int flags;
	int active = 1;

	if (!gs_cuda_real.cuDevicePrimaryCtxGetState ||
	    gs_cuda_real.cuDevicePrimaryCtxGetState(dev, &flags, &active) != CUDA_SUCCESS)
		return unknown;
	return active != 0;
}

// settle gives the context back if the driver has none any more.
static void settle(CUdevice dev, struct primary *p, unsigned gpu)
{
	struct gs_entry context = {0};
	uint64_t bytes = 0;
	uint32_t seq;
	bool gone, existed, known = false;

	pthread_mutex_lock(&p->lock);
	gone = p->charged && !p->pending;
	// A driver that has lost the GPU may not answer; what was only asked for is not there.
	existed = p->refs || p->ctx;
	seq = p->seq;
	pthread_mutex_unlock(&p->lock);
	if (!gone || driver_active(dev, existed))
		return;
	pthread_mutex_lock(&p->lock);
	gone = p->charged && !p->pending && p->seq == seq;
	if (gone) {
		p->charged = false;
		p->refs = 0;
		bytes = p->bytes;
		// Under the lock: a retain that follows must meet an unknown context.
		known = gs_registry_take(GS_KIND_CONTEXT, p->ctx, &context);
		p->ctx = 0;
	}
	pthread_mutex_unlock(&p->lock);
	if (!gone)
		return;
	if (known)
		gs_context_dropped(&context);
	gs_green_dropped(dev);
	gs_ledger_refund(gpu, bytes);
	gs_context_closed(gpu);
	gs_ledger_count_context(-1);
}

// handle_of asks for the handle of a primary context that exists, NULL if that
// fails.
static CUcontext handle_of(CUdevice dev)
{
	CUcontext ctx = NULL;

	if (!gs_cuda_real.cuDevicePrimaryCtxRetain || !gs_cuda_real.cuDevicePrimaryCtxRelease_v2 ||
	    gs_cuda_real.cuDevicePrimaryCtxRetain(&ctx, dev) != CUDA_SUCCESS)
		return NULL;
	gs_cuda_real.cuDevicePrimaryCtxRelease_v2(dev);
	return ctx;
}

uint64_t gs_primary_handle(CUdevice dev)
{
	struct primary *p = primary_of(dev);
	uint64_t ctx = 0;

	if (!p)
		return 0;
	pthread_mutex_lock(&p->lock);
	ctx = p->ctx;
	pthread_mutex_unlock(&p->lock);
	return ctx;
}

bool gs_primary_noticed(CUdevice dev, unsigned gpu, CUcontext ctx)
{
	struct primary *p = primary_of(dev);
	uint64_t known;

	if (!p || !driver_active(dev, true))
		return false;
	pthread_mutex_lock(&p->lock);
	known = p->ctx;
	pthread_mutex_unlock(&p->lock);
	if (!known)
		known = (uintptr_t)handle_of(dev);
	// A driver that does not tell its handle: an unknown context is likely this one.
	if (known && known != (uintptr_t)ctx)
		return false;
	pthread_mutex_lock(&p->lock);
	p->ctx = (uintptr_t)ctx;
	pthread_mutex_unlock(&p->lock);
	charge(p, gpu, true);
	return true;
}

CUresult gs_primary_begin(CUdevice dev, unsigned *ret_gpu)
{
	struct primary *p = primary_of(dev);
	CUresult r = gs_place_device(dev, ret_gpu);

	if (r != CUDA_SUCCESS)
		return r;
	if (!p)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&p->lock);
	p->pending++;
	p->seq++;
	pthread_mutex_unlock(&p->lock);
	if (charge(p, *ret_gpu, false) == 0)
		return CUDA_SUCCESS;
	gs_primary_end(dev, *ret_gpu, NULL, CUDA_ERROR_OUT_OF_MEMORY);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

uint32_t gs_primary_end(CUdevice dev, unsigned gpu, CUcontext ctx, CUresult r)
{
	struct primary *p = primary_of(dev);
	uint32_t serial = 0;

	if (r == CUDA_SUCCESS && !ctx)
		ctx = handle_of(dev);
	if (r == CUDA_SUCCESS && ctx)
		serial = gs_context_note(ctx, gpu, 0, GS_CONTEXT_PRIMARY);
	pthread_mutex_lock(&p->lock);
	p->pending--;
	if (r == CUDA_SUCCESS) {
		p->refs++;
		if (ctx)
			p->ctx = (uintptr_t)ctx;
	}
	pthread_mutex_unlock(&p->lock);
	if (r != CUDA_SUCCESS)
		settle(dev, p, gpu);
	return serial;
}

CUresult gs_cu_primary_retain(GS_FN(cuDevicePrimaryCtxRetain) real, CUcontext *ret_ctx, CUdevice dev)
{
	CUcontext ctx = NULL;
	unsigned gpu;
	CUresult r = gs_primary_begin(dev, &gpu);

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ctx ? &ctx : NULL, dev);
	gs_primary_end(dev, gpu, ctx, r);
	if (r == CUDA_SUCCESS)
		*ret_ctx = ctx;
	return r;
}

// before_end tells the gate that the context may be about to go.
static void before_end(struct primary *p, bool surely)
{
	CUcontext ctx = NULL;

	pthread_mutex_lock(&p->lock);
	if (surely || p->refs <= 1)
		ctx = (CUcontext)(uintptr_t)p->ctx;
	pthread_mutex_unlock(&p->lock);
	if (ctx)
		gs_gate_context_gone(ctx);
}

void gs_primary_ending(CUdevice dev)
{
	struct primary *p = primary_of(dev);

	if (p)
		before_end(p, false);
}

void gs_primary_ended(CUdevice dev, unsigned gpu)
{
	struct primary *p = primary_of(dev);

	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->refs -= p->refs > 0;
	pthread_mutex_unlock(&p->lock);
	settle(dev, p, gpu);
}

CUresult gs_cu_primary_release(GS_FN(cuDevicePrimaryCtxRelease) real, CUdevice dev)
{
	struct primary *p = primary_of(dev);
	unsigned gpu;
	CUresult r = gs_place_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !p)
		return real(dev);
	before_end(p, false);
	r = real(dev);
	if (r == CUDA_SUCCESS)
		gs_primary_ended(dev, gpu);
	return r;
}

CUresult gs_cu_primary_reset(GS_FN(cuDevicePrimaryCtxReset) real, CUdevice dev)
{
	struct primary *p = primary_of(dev);
	unsigned gpu;
	CUresult r = gs_place_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !p)
		return real(dev);
	before_end(p, true);
	r = real(dev);
	if (r == CUDA_SUCCESS)
		settle(dev, p, gpu);
	return r;
}

void gs_primary_forked(void)
{
	memset(primaries, 0, sizeof(primaries));
}
