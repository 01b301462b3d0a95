// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Stream-ordered memory and the pools that it comes from.

#include <errno.h>
#include <sched.h>

#include "attach.h"
#include "context.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "ledger.h"
#include "pool.h"

// How long a pool's destroyer gives way to threads that use its handle.
#define YIELDS 100000

bool gs_capturing(CUstream stream, bool per_thread)
{
	__typeof__(cuStreamIsCapturing) *ask = per_thread ? gs_cuda_real.cuStreamIsCapturing_ptsz
							  : gs_cuda_real.cuStreamIsCapturing;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return ask && ask(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

uint64_t gs_stream_key(CUstream stream, bool per_thread)
{
	uintptr_t handle = (uintptr_t)stream;

	if (handle == 2 || (!handle && per_thread))
		return GS_STREAM_NONE;
	return handle ? handle : 1;
}

// device_of is the device of a stream, which the allocation is made on.
static CUresult device_of(CUstream stream, CUdevice *ret_dev)
{
	CUcontext ctx = NULL, current = NULL;
	CUresult r;
	bool pushed = false;

	if (!gs_cuda_real.cuCtxGetDevice)
		return CUDA_ERROR_NOT_SUPPORTED;
	if ((uintptr_t)stream > 2 && gs_self.gpus > 1 && gs_cuda_real.cuStreamGetCtx && gs_cuda_real.cuCtxGetCurrent &&
	    gs_cuda_real.cuStreamGetCtx(stream, &ctx) == CUDA_SUCCESS &&
	    gs_cuda_real.cuCtxGetCurrent(&current) == CUDA_SUCCESS && ctx && ctx != current)
		pushed = gs_cuda_real.cuCtxPushCurrent_v2 && gs_cuda_real.cuCtxPushCurrent_v2(ctx) == CUDA_SUCCESS;
	r = gs_cuda_real.cuCtxGetDevice(ret_dev);
	if (pushed && gs_cuda_real.cuCtxPopCurrent_v2)
		gs_cuda_real.cuCtxPopCurrent_v2(&ctx);
	return r;
}

struct gs_pool *gs_pool_notice(CUmemoryPool handle, unsigned gpu)
{
	struct gs_pool *p = gs_pool_find(handle);
	bool found = false;
	int n = 0, reuse = 1;

	if (p)
		return p;
	if (gs_cuda_real.cuDeviceGetCount && gs_cuda_real.cuDeviceGetCount(&n) != CUDA_SUCCESS)
		n = 0;
	for (CUdevice dev = 0; dev < n && dev < GS_DEVICES && !found; dev++) {
		CUmemoryPool own = NULL, current = NULL;
		unsigned place;

		if (gs_cuda_real.cuDeviceGetDefaultMemPool)
			gs_cuda_real.cuDeviceGetDefaultMemPool(&own, dev);
		if (gs_cuda_real.cuDeviceGetMemPool)
			gs_cuda_real.cuDeviceGetMemPool(&current, dev);
		found = (own == handle || current == handle) && gs_place_device(dev, &place) == CUDA_SUCCESS;
		if (found)
			gpu = place;
	}
	p = gs_pool_note(handle, GS_POOL_DEVICE, gpu, false);
	if (!p)
		return NULL;
	if (gs_cuda_real.cuMemPoolGetAttribute &&
	    gs_cuda_real.cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse) != CUDA_SUCCESS)
		reuse = 1;
	pthread_mutex_lock(&gs_pool_lock);
	p->guessed = !found;
	p->strict = !reuse;
	pthread_mutex_unlock(&gs_pool_lock);
	return p;
}

// ---- allocating ---------------------------------------------------------------

// locate makes sure of which memory a pool is whose GPU was guessed, by an allocation
// of it. The call is under way.
static CUresult locate(struct gs_pool_call *c, CUdeviceptr ptr)
{
	struct gs_pool *p = c->pool;
	unsigned int type = 2, gpu = p->gpu;
	int dev = -1;
	bool guessed;

	pthread_mutex_lock(&gs_pool_lock);
	guessed = p->guessed;
	pthread_mutex_unlock(&gs_pool_lock);
	if (!guessed || !gs_cuda_real.cuPointerGetAttribute)
		return CUDA_SUCCESS;
	if (gs_cuda_real.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	if (type == 2 && (gs_cuda_real.cuPointerGetAttribute(&dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, ptr) ||
			  gs_place_device(dev, &gpu) != CUDA_SUCCESS))
		return CUDA_ERROR_OUT_OF_MEMORY; // of a GPU that is not the container's
	return gs_pool_move(c, type != 2, gpu) < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

// begin charges an allocation. *ret_plain: it is none of the GPU's memory.
static CUresult begin(struct gs_pool_call *c, CUmemoryPool handle, size_t bytes, CUstream stream, bool per_thread,
		      bool *ret_plain)
{
	struct gs_place place;
	CUresult r = gs_place_current(&place);
	CUdevice dev;

	if (r == CUDA_SUCCESS && !handle) {
		r = device_of(stream, &dev);
		if (r == CUDA_SUCCESS)
			r = gs_place_device(dev, &place.gpu);
		if (r == CUDA_SUCCESS && gs_cuda_real.cuDeviceGetMemPool)
			r = gs_cuda_real.cuDeviceGetMemPool(&handle, dev);
	}
	if (r != CUDA_SUCCESS)
		return r;
	*c = (struct gs_pool_call){.bytes = gs_granule(bytes), .stream = gs_stream_key(stream, per_thread)};
	*ret_plain = false;
	if (!handle) { // the driver cannot be asked: the allocation is charged by itself
		c->gpu = place.gpu;
		return gs_charge(place.gpu, c->bytes) < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
	}
	c->pool = gs_pool_notice(handle, place.gpu);
	if (!c->pool)
		return CUDA_ERROR_OUT_OF_MEMORY; // what it keeps could not be charged
	*ret_plain = c->pool->kind != GS_POOL_DEVICE;
	if (*ret_plain)
		return CUDA_SUCCESS;
	c->bound = gs_pool_bound(c->pool, c->bytes);
	return gs_pool_enter(c) < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static int record(const struct gs_pool_call *c, CUdeviceptr ptr)
{
	struct gs_entry old, e = {
		.key = ptr,
		.bytes = c->bytes,
		.link = c->pool ? c->pool->index + 1ULL : 0,
		.gpu = (uint8_t)(c->pool ? c->pool->gpu : c->gpu),
		.kind = GS_KIND_POINTER,
	};
	int r = gs_registry_put(&e, &old);

	if (r == 0 && old.kind != GS_KIND_NONE)
		gs_pool_freed(&old, CUDA_SUCCESS);
	return r;
}

static CUresult undo(struct gs_pool_call *c, CUdeviceptr ptr, CUstream stream, bool per_thread)
{
	__typeof__(cuMemFreeAsync) *give = per_thread ? gs_cuda_real.cuMemFreeAsync_ptsz : gs_cuda_real.cuMemFreeAsync;
	struct gs_entry e;

	gs_registry_take(GS_KIND_POINTER, ptr, &e);
	if (give)
		give(ptr, stream);
	if (!c->pool) {
		gs_ledger_refund(c->gpu, c->bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_pools_trim(c->pool->gpu); // what it grew by
	gs_pool_leave(c, 0, false);
	gs_ledger_denied(c->pool->gpu, c->bytes);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult end(struct gs_pool_call *c, CUdeviceptr ptr, CUstream stream, bool per_thread, CUresult r)
{
	if (!c->pool) {
		if (r == CUDA_SUCCESS)
			return record(c, ptr) < 0 ? undo(c, ptr, stream, per_thread) : r;
		gs_ledger_refund(c->gpu, c->bytes);
		return r;
	}
	if (r != CUDA_SUCCESS) {
		gs_pool_leave(c, 0, false);
		gs_pool_forget(c->pool);
		return r;
	}
	if (locate(c, ptr) != CUDA_SUCCESS)
		return undo(c, ptr, stream, per_thread);
	if (c->pool->kind != GS_POOL_DEVICE)
		return CUDA_SUCCESS; // it turned out to be the host's
	if (record(c, ptr) < 0 || gs_pool_leave(c, ptr, true) < 0)
		return undo(c, ptr, stream, per_thread);
	return CUDA_SUCCESS;
}

CUresult gs_cu_alloc_async(GS_FN(cuMemAllocAsync) real, CUdeviceptr *ret_ptr, size_t bytes, CUstream stream)
{
	bool per_thread = real == gs_cuda_real.cuMemAllocAsync_ptsz, plain;
	struct gs_pool_call c;
	CUdeviceptr ptr = 0;
	CUresult r;

	// A node of a graph: charged when the graph is launched.
	if (gs_capturing(stream, per_thread))
		return real(ret_ptr, bytes, stream);
	r = begin(&c, NULL, bytes, stream, per_thread, &plain);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ptr ? &ptr : NULL, bytes, stream);
	if (!plain)
		r = end(&c, ptr, stream, per_thread, r);
	if (r == CUDA_SUCCESS)
		*ret_ptr = ptr;
	return r;
}

CUresult gs_cu_alloc_from_pool(GS_FN(cuMemAllocFromPoolAsync) real, CUdeviceptr *ret_ptr, size_t bytes,
			       CUmemoryPool pool, CUstream stream)
{
	bool per_thread = real == gs_cuda_real.cuMemAllocFromPoolAsync_ptsz, plain;
	struct gs_pool_call c;
	CUdeviceptr ptr = 0;
	CUresult r;

	if (!pool || gs_capturing(stream, per_thread))
		return real(ret_ptr, bytes, pool, stream);
	r = begin(&c, pool, bytes, stream, per_thread, &plain);
	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ptr ? &ptr : NULL, bytes, pool, stream);
	if (!plain)
		r = end(&c, ptr, stream, per_thread, r);
	if (r == CUDA_SUCCESS)
		*ret_ptr = ptr;
	return r;
}

CUresult gs_cu_free_async(GS_FN(cuMemFreeAsync) real, CUdeviceptr ptr, CUstream stream)
{
	bool per_thread = real == gs_cuda_real.cuMemFreeAsync_ptsz;
	struct gs_entry e;
	bool known = gs_attached() && gs_registry_take(GS_KIND_POINTER, ptr, &e);
	CUresult r;

	if (known)
		gs_pool_freeing(&e);
	r = real(ptr, stream);
	return known ? gs_pool_freed_on(&e, r, gs_stream_key(stream, per_thread)) : r;
}

// ---- the pools themselves -----------------------------------------------------

// made notes a pool of the program's; bytes of its memory are the GPU's unless its
// place is the host. Managed memory may go to the GPU from anywhere.
static void made(CUmemoryPool pool, const CUmemLocation *where, bool managed, bool capped, bool fresh)
{
	bool device = where->type == CU_MEM_LOCATION_TYPE_DEVICE;
	struct gs_place place = {0};
	struct gs_pool *p;

	if (device && gs_place_device(where->id, &place.gpu) != CUDA_SUCCESS)
		return;
	if (!device && managed && gs_place_current(&place) != CUDA_SUCCESS)
		return;
	p = gs_pool_note(pool, device || managed ? GS_POOL_DEVICE : GS_POOL_HOST, place.gpu, fresh);
	if (!p || !fresh)
		return;
	pthread_mutex_lock(&gs_pool_lock);
	p->capped = capped;
	pthread_mutex_unlock(&gs_pool_lock);
}

CUresult gs_cu_pool_create(GS_FN(cuMemPoolCreate) real, CUmemoryPool *ret_pool, const CUmemPoolProps *props)
{
	CUmemoryPool pool = NULL;
	unsigned gpu;
	CUresult r;

	if (props && props->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
		r = gs_place_device(props->location.id, &gpu);
		if (r != CUDA_SUCCESS)
			return r;
	}
	r = real(ret_pool ? &pool : NULL, props);
	if (r != CUDA_SUCCESS)
		return r;
	made(pool, &props->location, props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED, props->maxSize != 0, true);
	*ret_pool = pool;
	return r;
}

// The default and the current pool of a place, which may be the host.
CUresult gs_cu_pool_located(GS_FN(cuMemGetMemPool) real, CUmemoryPool *ret_pool, CUmemLocation *where,
			    CUmemAllocationType type)
{
	CUmemoryPool pool = NULL;
	CUresult r = real(ret_pool ? &pool : NULL, where, type);

	if (r != CUDA_SUCCESS)
		return r;
	if (gs_attached() && pool && where)
		made(pool, where, type != CU_MEM_ALLOCATION_TYPE_PINNED, false, false);
	*ret_pool = pool;
	return r;
}

CUresult gs_cu_pool_destroy(GS_FN(cuMemPoolDestroy) real, CUmemoryPool pool)
{
	struct gs_entry e, old;
	struct gs_pool *p = NULL;
	CUresult r;

	// Out of the table before the driver can give the handle away again, and out of
	// everybody's hands before it is gone.
	if (gs_attached() && gs_registry_take(GS_KIND_POOL, (uintptr_t)pool, &e))
		p = gs_pool_at((uint32_t)e.link - 1);
	if (p) {
		pthread_mutex_lock(&gs_pool_lock);
		p->handle = NULL;
		for (int i = 0; p->users && i < YIELDS; i++) {
			pthread_mutex_unlock(&gs_pool_lock);
			sched_yield();
			pthread_mutex_lock(&gs_pool_lock);
		}
		pthread_mutex_unlock(&gs_pool_lock);
	}
	r = real(pool);
	if (p && r == CUDA_SUCCESS) {
		gs_pool_destroyed(p);
	} else if (p) {
		pthread_mutex_lock(&gs_pool_lock);
		p->handle = pool;
		pthread_mutex_unlock(&gs_pool_lock);
		gs_registry_put(&e, &old);
	}
	return r;
}

static void settle_handle(CUmemoryPool handle)
{
	struct gs_pool *p = gs_attached() ? gs_pool_find(handle) : NULL;

	if (p && p->kind == GS_POOL_DEVICE)
		gs_pool_settle(p);
}

CUresult gs_cu_pool_trim(GS_FN(cuMemPoolTrimTo) real, CUmemoryPool pool, size_t keep)
{
	CUresult r = real(pool, keep);

	if (r == CUDA_SUCCESS)
		settle_handle(pool);
	return r;
}

CUresult gs_cu_pool_set_attribute(GS_FN(cuMemPoolSetAttribute) real, CUmemoryPool pool,
				  CUmemPool_attribute attribute, void *value)
{
	CUresult r = real(pool, attribute, value);
	struct gs_pool *p;

	if (r != CUDA_SUCCESS)
		return r;
	p = gs_attached() ? gs_pool_find(pool) : NULL;
	if (p && attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC) {
		pthread_mutex_lock(&gs_pool_lock);
		p->strict = !*(const int *)value;
		pthread_mutex_unlock(&gs_pool_lock);
	}
	settle_handle(pool);
	return r;
}
