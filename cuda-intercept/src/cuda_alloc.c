// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Linear memory.

#include <stdatomic.h>

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "pool.h"
#include "vmm.h"

// finish records a successful allocation, or undoes a failed one.
static CUresult finish(struct gs_grant *g, CUdeviceptr ptr, CUresult r)
{
	if (r == CUDA_SUCCESS && gs_grant_record(g, GS_KIND_POINTER, ptr) == 0)
		return r;
	if (r == CUDA_SUCCESS) {
		if (gs_cuda_real.cuMemFree_v2)
			gs_cuda_real.cuMemFree_v2(ptr);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_grant_undo(g);
	return r;
}

CUresult gs_cu_alloc(GS_FN(cuMemAlloc_v2) real, CUdeviceptr *ret_ptr, size_t bytes)
{
	struct gs_grant g;
	CUdeviceptr ptr = 0;
	CUresult r = gs_grant_take_linear(&g, bytes);

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ptr ? &ptr : NULL, bytes);
	r = finish(&g, ptr, r);
	if (r == CUDA_SUCCESS)
		*ret_ptr = ptr;
	return r;
}

// Addresses of 32 bits come from a place of their own, so their blocks are not
// believed to be shared.
CUresult gs_cu_alloc_v1(GS_FN(cuMemAlloc) real, CUdeviceptr_v1 *ret_ptr, unsigned int bytes)
{
	struct gs_grant g;
	CUdeviceptr_v1 ptr = 0;
	CUresult r = gs_grant_take_blocks(&g, bytes);

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ptr ? &ptr : NULL, bytes);
	r = finish(&g, ptr, r);
	if (r == CUDA_SUCCESS)
		*ret_ptr = ptr;
	return r;
}

// Managed memory is charged in full: its pages may come to the device at any time,
// with nobody to be refused when they do.
CUresult gs_cu_managed(GS_FN(cuMemAllocManaged) real, CUdeviceptr *ret_ptr, size_t bytes, unsigned int flags)
{
	struct gs_grant g;
	CUdeviceptr ptr = 0;
	CUresult r = gs_grant_take_blocks(&g, bytes);

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ptr ? &ptr : NULL, bytes, flags);
	r = finish(&g, ptr, r);
	if (r == CUDA_SUCCESS)
		*ret_ptr = ptr;
	return r;
}

// ---- pitched ------------------------------------------------------------------

#define PITCH_MIN 512U
#define PITCH_MAX 65536U

// What the driver has been seen to round rows up to.
static _Atomic(uint32_t) pitch_align = PITCH_MIN;

static uint64_t pitch_of(uint64_t width, uint64_t align)
{
	return width > UINT64_MAX - align ? UINT64_MAX : (width + align - 1) / align * align;
}

// pitched returns the bytes of height rows; it saturates.
static uint64_t pitched(uint64_t pitch, uint64_t height)
{
	uint64_t bytes;

	return __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_MAX : bytes;
}

static uint64_t expected(uint64_t width, uint64_t height)
{
	return pitched(pitch_of(width, atomic_load_explicit(&pitch_align, memory_order_relaxed)), height);
}

// The pitch is the driver's choice: what it was last is charged, and the rest when it
// is known.
static CUresult finish_pitch(struct gs_grant *g, CUdeviceptr ptr, uint64_t pitch, uint64_t width, uint64_t height,
			     CUresult r)
{
	uint32_t align = atomic_load_explicit(&pitch_align, memory_order_relaxed);

	if (r != CUDA_SUCCESS)
		return finish(g, ptr, r);
	while (align < PITCH_MAX && pitch_of(width, align) < pitch)
		align *= 2;
	atomic_store_explicit(&pitch_align, align, memory_order_relaxed);
	if (gs_grant_resize(g, pitched(pitch, height)) == 0)
		return finish(g, ptr, r);
	if (gs_cuda_real.cuMemFree_v2)
		gs_cuda_real.cuMemFree_v2(ptr);
	return finish(g, ptr, CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult gs_cu_pitch(GS_FN(cuMemAllocPitch_v2) real, CUdeviceptr *ret_ptr, size_t *ret_pitch, size_t width,
		     size_t height, unsigned int element)
{
	struct gs_grant g;
	CUdeviceptr ptr = 0;
	size_t pitch = 0;
	CUresult r = gs_grant_take_linear(&g, expected(width, height));

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ptr ? &ptr : NULL, ret_pitch ? &pitch : NULL, width, height, element);
	r = finish_pitch(&g, ptr, pitch, width, height, r);
	if (r == CUDA_SUCCESS) {
		*ret_ptr = ptr;
		*ret_pitch = pitch;
	}
	return r;
}

CUresult gs_cu_pitch_v1(GS_FN(cuMemAllocPitch) real, CUdeviceptr_v1 *ret_ptr, unsigned int *ret_pitch,
			unsigned int width, unsigned int height, unsigned int element)
{
	struct gs_grant g;
	CUdeviceptr_v1 ptr = 0;
	unsigned int pitch = 0;
	CUresult r = gs_grant_take_blocks(&g, expected(width, height));

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ptr ? &ptr : NULL, ret_pitch ? &pitch : NULL, width, height, element);
	r = finish_pitch(&g, ptr, pitch, width, height, r);
	if (r == CUDA_SUCCESS) {
		*ret_ptr = ptr;
		*ret_pitch = pitch;
	}
	return r;
}

// ---- freeing ------------------------------------------------------------------

CUresult gs_cu_free(GS_FN(cuMemFree_v2) real, CUdeviceptr ptr)
{
	struct gs_entry e;
	bool known = gs_attached() && gs_registry_take(GS_KIND_POINTER, ptr, &e);
	bool buffer = !known && gs_buffer_take(ptr, &e);
	CUresult r = real(ptr);

	if (buffer)
		return gs_buffer_freed(&e, r);
	return known ? gs_pool_freed(&e, r) : r;
}

CUresult gs_cu_free_v1(GS_FN(cuMemFree) real, CUdeviceptr_v1 ptr)
{
	struct gs_entry e;
	bool known = gs_attached() && gs_registry_take(GS_KIND_POINTER, ptr, &e);
	CUresult r;

	if (known)
		gs_pool_freeing(&e);
	r = real(ptr);
	return known ? gs_pool_freed(&e, r) : r;
}
