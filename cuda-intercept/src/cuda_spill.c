// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Linear memory that may go to the host's memory when the device has no room
// (spill.h). Each wrapper is the plain one until that has refused.

#include <unistd.h>

#include "context.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "ledger.h"
#include "spill.h"

// The unit in which rows of a pitched allocation are laid out: what the driver
// chooses for device memory on every card so far, and a multiple of every alignment
// that textures ask for.
#define PITCH 512

static bool lent(void)
{
	return gs_attached() && gs_spill_limit();
}

// can tells whether the device can use managed memory where it lies. Without
// concurrent access the driver brings all of it over at each launch.
static bool can(CUdevice dev)
{
	int concurrent = 0;

	return gs_cuda_real.cuDeviceGetAttribute && gs_cuda_real.cuMemAllocManaged && gs_cuda_real.cuMemFree_v2 &&
	       (gs_cuda_real.cuMemAdvise || gs_cuda_real.cuMemAdvise_v2) &&
	       gs_cuda_real.cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, dev) ==
		       CUDA_SUCCESS &&
	       concurrent;
}

static CUresult advise(CUdeviceptr ptr, uint64_t bytes, CUmem_advise advice, CUdevice where)
{
	CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = where};

	if (gs_cuda_real.cuMemAdvise)
		return gs_cuda_real.cuMemAdvise(ptr, bytes, advice, where);
	if (where == CU_DEVICE_CPU)
		location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
	return gs_cuda_real.cuMemAdvise_v2(ptr, bytes, advice, location);
}

// keep has the memory lie with the host and mapped to the device. A capture on this
// thread must not see calls of ours.
static CUresult keep(CUdeviceptr ptr, uint64_t bytes, CUdevice dev)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult r;

	if (gs_cuda_real.cuThreadExchangeStreamCaptureMode)
		gs_cuda_real.cuThreadExchangeStreamCaptureMode(&mode);
	r = advise(ptr, bytes, GS_ADVISE_PREFERRED_LOCATION, CU_DEVICE_CPU);
	if (r == CUDA_SUCCESS)
		r = advise(ptr, bytes, GS_ADVISE_ACCESSED_BY, dev);
	if (r != CUDA_SUCCESS)
		gs_cuda_real.cuMemFree_v2(ptr);
	if (gs_cuda_real.cuThreadExchangeStreamCaptureMode)
		gs_cuda_real.cuThreadExchangeStreamCaptureMode(&mode);
	return r;
}

static int record(CUdeviceptr ptr, uint64_t bytes, const struct gs_place *place)
{
	struct gs_entry old, e = {
		.key = ptr,
		.bytes = bytes,
		.ctx = place->ctx,
		.gpu = (uint8_t)place->gpu,
		.kind = GS_KIND_HOST,
	};
	int r = gs_registry_put(&e, &old);

	if (r < 0)
		return r;
	gs_spill_note();
	if (old.kind != GS_KIND_NONE)
		gs_spill_gone(&old); // freed by a way that we do not watch
	return 0;
}

// from_host allocates bytes of host memory.
static CUresult from_host(CUdeviceptr *ret_ptr, uint64_t bytes, unsigned int flags, const struct gs_place *place)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), whole;
	CUdeviceptr ptr = 0;
	CUdevice dev;
	CUresult r;

	if (__builtin_add_overflow(bytes, page - 1, &whole) || !gs_cuda_real.cuCtxGetDevice ||
	    gs_cuda_real.cuCtxGetDevice(&dev) != CUDA_SUCCESS || !can(dev))
		return CUDA_ERROR_OUT_OF_MEMORY;
	whole = whole / page * page;
	if (gs_spill_charge(whole) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = gs_cuda_real.cuMemAllocManaged(&ptr, bytes, flags);
	if (r == CUDA_SUCCESS && keep(ptr, bytes, dev) != CUDA_SUCCESS)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else if (r == CUDA_SUCCESS && record(ptr, whole, place) < 0) {
		gs_cuda_real.cuMemFree_v2(ptr);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS) {
		gs_spill_refund(whole);
		return r == CUDA_ERROR_NOT_SUPPORTED ? CUDA_ERROR_OUT_OF_MEMORY : r;
	}
	*ret_ptr = ptr;
	return CUDA_SUCCESS;
}

// settle ends a call that gs_spill_open began and whose plain wrapper answered r.
// Nothing is spilled without ret_ptr.
static CUresult settle(CUresult r, CUdeviceptr *ret_ptr, uint64_t bytes, unsigned int flags, bool *ret_spilled)
{
	uint64_t denied = gs_spill_close();
	struct gs_place place;

	*ret_spilled = false;
	if (r != CUDA_ERROR_OUT_OF_MEMORY || gs_place_current(&place) != CUDA_SUCCESS)
		return r;
	if (ret_ptr)
		r = from_host(ret_ptr, bytes, flags, &place);
	*ret_spilled = r == CUDA_SUCCESS;
	if (r == CUDA_ERROR_OUT_OF_MEMORY && denied)
		gs_ledger_denied(place.gpu, denied);
	return r;
}

CUresult gs_cu_spill_alloc(GS_FN(cuMemAlloc_v2) real, CUdeviceptr *ret_ptr, size_t bytes)
{
	bool spilled;

	if (!lent())
		return gs_cu_alloc(real, ret_ptr, bytes);
	gs_spill_open();
	return settle(gs_cu_alloc(real, ret_ptr, bytes), ret_ptr, bytes, GS_ATTACH_GLOBAL, &spilled);
}

CUresult gs_cu_spill_managed(GS_FN(cuMemAllocManaged) real, CUdeviceptr *ret_ptr, size_t bytes, unsigned int flags)
{
	bool spilled;

	if (!lent())
		return gs_cu_managed(real, ret_ptr, bytes, flags);
	gs_spill_open();
	return settle(gs_cu_managed(real, ret_ptr, bytes, flags), ret_ptr, bytes, flags, &spilled);
}

CUresult gs_cu_spill_pitch(GS_FN(cuMemAllocPitch_v2) real, CUdeviceptr *ret_ptr, size_t *ret_pitch, size_t width,
			   size_t height, unsigned int element)
{
	size_t pitch = 0, bytes = 0;
	CUdeviceptr *out = ret_ptr;
	bool spilled;
	CUresult r;

	if (!lent())
		return gs_cu_pitch(real, ret_ptr, ret_pitch, width, height, element);
	// What the driver would not take is left to its own answer, or to ours of before.
	if (!ret_pitch || (element != 4 && element != 8 && element != 16) ||
	    __builtin_add_overflow(width, PITCH - 1, &pitch) ||
	    __builtin_mul_overflow(pitch / PITCH * PITCH, height, &bytes) || !bytes)
		out = NULL;
	gs_spill_open();
	r = gs_cu_pitch(real, ret_ptr, ret_pitch, width, height, element);
	r = settle(r, out, bytes, GS_ATTACH_GLOBAL, &spilled);
	if (spilled)
		*ret_pitch = pitch / PITCH * PITCH;
	return r;
}

// ---- freeing ------------------------------------------------------------------

static CUresult freed(const struct gs_entry *e, CUresult r)
{
	struct gs_entry old;

	if (r == CUDA_SUCCESS)
		gs_spill_gone(e);
	else
		gs_registry_put(e, &old);
	return r;
}

CUresult gs_cu_spill_free(GS_FN(cuMemFree_v2) real, CUdeviceptr ptr)
{
	struct gs_entry e;

	if (!gs_spill_held() || !gs_attached() || !gs_registry_take(GS_KIND_HOST, ptr, &e))
		return gs_cu_free(real, ptr);
	return freed(&e, real(ptr));
}

// A program may free by a stream what it did not get by one, if it is device memory.
// For managed memory the driver may have it only the other way, which waits for the
// device.
CUresult gs_cu_spill_free_async(GS_FN(cuMemFreeAsync) real, CUdeviceptr ptr, CUstream stream)
{
	struct gs_entry e;
	CUresult r;

	if (!gs_spill_held() || !gs_attached() || !gs_registry_take(GS_KIND_HOST, ptr, &e))
		return gs_cu_free_async(real, ptr, stream);
	r = real(ptr, stream);
	if (r == CUDA_ERROR_INVALID_VALUE && gs_cuda_real.cuMemFree_v2)
		r = gs_cuda_real.cuMemFree_v2(ptr);
	return freed(&e, r);
}
