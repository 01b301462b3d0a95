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
	uint64_t bytes = gs_context_bytes(gpu);
	bool need;

	pthread_mutex_lock(&p->lock);
	need = !p->charged;
	pthread_mutex_unlock(&p->lock);
	if (!need)
		return 0;
	if (on_sight)
		gs_ledger_add(gpu, bytes);
	else if (gs_charge(gpu, bytes) < 0)
		return -1;
	pthread_mutex_lock(&p->lock);
	need = !p->charged;
	if (need) {
		p->charged = true;
		p->bytes = bytes;
	}
	pthread_mutex_unlock(&p->lock);
	if (need)
		gs_ledger_count_context(1);
	else
		gs_ledger_refund(gpu, bytes); // another thread was faster
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
	gs_ledger_refund(gpu, bytes);
	gs_ledger_count_context(-1);
}

bool gs_primary_noticed(CUdevice dev, unsigned gpu, CUcontext ctx)
{
	struct primary *p = primary_of(dev);
	bool mine;

	if (!p || !driver_active(dev, true))
		return false;
	pthread_mutex_lock(&p->lock);
	// With its handle known, an unknown context is another one.
	mine = !p->ctx;
	if (mine)
		p->ctx = (uintptr_t)ctx;
	pthread_mutex_unlock(&p->lock);
	if (mine)
		charge(p, gpu, true);
	return mine;
}

CUresult gs_cu_primary_retain(GS_FN(cuDevicePrimaryCtxRetain) real, CUcontext *ret_ctx, CUdevice dev)
{
	struct primary *p = primary_of(dev);
	CUcontext ctx = NULL;
	unsigned gpu;
	CUresult r = gs_place_device(dev, &gpu);

	if (r != CUDA_SUCCESS)
		return r;
	if (!p)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&p->lock);
	p->pending++;
	p->seq++;
	pthread_mutex_unlock(&p->lock);
	r = charge(p, gpu, false) < 0 ? CUDA_ERROR_OUT_OF_MEMORY : real(ret_ctx ? &ctx : NULL, dev);
	if (r == CUDA_SUCCESS)
		gs_context_note(ctx, gpu, 0, true);
	pthread_mutex_lock(&p->lock);
	p->pending--;
	if (r == CUDA_SUCCESS) {
		p->refs++;
		p->ctx = (uintptr_t)ctx;
		*ret_ctx = ctx;
	}
	pthread_mutex_unlock(&p->lock);
	if (r != CUDA_SUCCESS)
		settle(dev, p, gpu);
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

CUresult gs_cu_primary_release(GS_FN(cuDevicePrimaryCtxRelease) real, CUdevice dev)
{
	struct primary *p = primary_of(dev);
	unsigned gpu;
	CUresult r = gs_place_device(dev, &gpu);

	if (r != CUDA_SUCCESS || !p)
		return real(dev);
	before_end(p, false);
	r = real(dev);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&p->lock);
	p->refs -= p->refs > 0;
	pthread_mutex_unlock(&p->lock);
	settle(dev, p, gpu);
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
