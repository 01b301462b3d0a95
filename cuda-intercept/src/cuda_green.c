// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Green contexts. One is the primary context of its device with fewer
// multiprocessors: it holds a reference to that, has no memory of its own, and what was
// made in it stays with the primary context when it is destroyed. While it lives what
// it owns is kept apart, since a driver may keep its blocks apart.

#include "attach.h"
#include "context.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "registry.h"

// note makes a green context known, and the CUcontext by which programs use it.
static void note(CUgreenCtx green, CUdevice dev, unsigned gpu)
{
	CUcontext ctx = NULL;
	struct gs_entry old, e = {
		.key = (uintptr_t)green,
		.refs = (uint32_t)dev + 1,
		.gpu = (uint8_t)gpu,
		.kind = GS_KIND_GREEN,
	};

	if (gs_cuda_real.cuCtxFromGreenCtx && gs_cuda_real.cuCtxFromGreenCtx(&ctx, green) == CUDA_SUCCESS && ctx)
		gs_context_note(ctx, gpu, 0, GS_CONTEXT_GREEN);
	e.link = (uintptr_t)ctx;
	gs_registry_put(&e, &old);
}

CUresult gs_cu_green_create(GS_FN(cuGreenCtxCreate) real, CUgreenCtx *ret_green, CUdevResourceDesc desc, CUdevice dev,
			    unsigned int flags)
{
	CUgreenCtx green = NULL;
	unsigned gpu;
	CUresult r = gs_primary_begin(dev, &gpu);

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_green ? &green : NULL, desc, dev, flags);
	gs_primary_end(dev, gpu, NULL, r);
	if (r != CUDA_SUCCESS)
		return r;
	note(green, dev, gpu);
	*ret_green = green;
	return r;
}

// pass_on makes what a green context owned the primary one's.
static void pass_on(const struct gs_entry *green, CUdevice dev)
{
	struct gs_entry e, primary;

	if (!gs_registry_take(GS_KIND_CONTEXT, green->link, &e))
		return;
	gs_context_forget(&e);
	if (gs_registry_get(GS_KIND_CONTEXT, gs_primary_handle(dev), &primary))
		gs_registry_adopt(e.ctx, primary.ctx);
}

CUresult gs_cu_green_destroy(GS_FN(cuGreenCtxDestroy) real, CUgreenCtx green)
{
	struct gs_entry e, old;
	bool known = gs_attached() && gs_registry_take(GS_KIND_GREEN, (uintptr_t)green, &e);
	CUdevice dev = known ? (CUdevice)e.refs - 1 : 0;
	CUresult r;

	if (known) {
		gs_gate_context_gone((CUcontext)(uintptr_t)e.link);
		gs_primary_ending(dev);
	}
	r = real(green);
	if (known && r == CUDA_SUCCESS) {
		pass_on(&e, dev);
		gs_primary_ended(dev, e.gpu);
	} else if (known) {
		gs_registry_put(&e, &old);
	}
	return r;
}

static bool on_device(const struct gs_entry *entry, uint64_t dev)
{
	return entry->kind == GS_KIND_GREEN && entry->refs == dev + 1;
}

void gs_green_dropped(CUdevice dev)
{
	struct gs_entry green, e;

	while (gs_registry_find(on_device, (uint64_t)dev, &green)) {
		if (!gs_registry_take(GS_KIND_GREEN, green.key, &green))
			continue; // another thread was faster
		if (gs_registry_take(GS_KIND_CONTEXT, green.link, &e))
			gs_context_dropped(&e);
	}
}
