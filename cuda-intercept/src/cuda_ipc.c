// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Memory between processes by the 64 bytes of an IPC handle. Whoever opens one holds
// the memory until it closes it as often, or its context is gone.

#include "attach.h"
#include "block.h"
#include "context.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "share.h"
#include "vmm.h"

// base finds where the allocation starts that ptr lies in.
static CUdeviceptr base(CUdeviceptr ptr, size_t *ret_bytes)
{
	CUdeviceptr start = ptr;

	*ret_bytes = 0;
	if (gs_cuda_real.cuMemGetAddressRange_v2 &&
	    gs_cuda_real.cuMemGetAddressRange_v2(&start, ret_bytes, ptr) != CUDA_SUCCESS)
		start = ptr;
	return start;
}

uint16_t gs_share_pointer(CUdeviceptr ptr)
{
	struct gs_entry e;
	size_t bytes;

	if (!gs_registry_get(GS_KIND_POINTER, ptr, &e)) {
		ptr = base(ptr, &bytes);
		if (!gs_registry_get(GS_KIND_POINTER, ptr, &e))
			return 0;
	}
	// Small allocations share a block, and with it goes all of it.
	if (e.link == GS_LINK_PART)
		return gs_block_find(ptr, &e) ? gs_share_entry(GS_KIND_BLOCK, e.key) : 0;
	return gs_share_entry(GS_KIND_POINTER, ptr);
}

CUresult gs_cu_ipc_get(GS_FN(cuIpcGetMemHandle) real, CUipcMemHandle *ret_handle, CUdeviceptr ptr)
{
	CUipcMemHandle handle;
	CUresult r = real(ret_handle ? &handle : NULL, ptr);

	if (r != CUDA_SUCCESS)
		return r;
	if (gs_attached())
		gs_share_name(gs_share_pointer(ptr), &handle, sizeof(handle));
	*ret_handle = handle;
	return r;
}

// opened records what was opened; the share's hold becomes the entry's. Without a share
// it is another container's, and charged here in full.
static int opened(CUdeviceptr ptr, uint16_t share)
{
	struct gs_entry old, e = {.key = ptr, .refs = 1, .share = share, .kind = GS_KIND_IPC};
	struct gs_place place = {0};
	size_t bytes = 0;
	int r;

	if (gs_registry_ref(GS_KIND_IPC, ptr, 1, &old)) {
		gs_share_drop(share); // the driver counts, and so do we
		return 0;
	}
	gs_place_current(&place);
	e.ctx = place.ctx;
	e.gpu = (uint8_t)(share ? gs_share_gpu(share) : place.gpu);
	if (!share) {
		base(ptr, &bytes);
		e.bytes = gs_whole_blocks(e.gpu, bytes);
		if (gs_charge(e.gpu, e.bytes) < 0)
			return -1;
	}
	r = gs_registry_put(&e, &old);
	if (r < 0)
		gs_entry_refund(&e);
	return r;
}

static CUresult finish(CUdeviceptr *ret_ptr, CUdeviceptr ptr, uint16_t share, CUresult r)
{
	if (r != CUDA_SUCCESS) {
		gs_share_drop(share);
		return r;
	}
	if (gs_attached() && opened(ptr, share) < 0) {
		if (gs_cuda_real.cuIpcCloseMemHandle)
			gs_cuda_real.cuIpcCloseMemHandle(ptr);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_ptr = ptr;
	return r;
}

CUresult gs_cu_ipc_open(GS_FN(cuIpcOpenMemHandle_v2) real, CUdeviceptr *ret_ptr, CUipcMemHandle handle,
			unsigned int flags)
{
	// Held before the driver is asked: else its last holder may end in between.
	uint16_t share = gs_share_of_name(&handle, sizeof(handle));
	CUdeviceptr ptr = 0;
	CUresult r = real(ret_ptr ? &ptr : NULL, handle, flags);

	return finish(ret_ptr, ptr, share, r);
}

CUresult gs_cu_ipc_close(GS_FN(cuIpcCloseMemHandle) real, CUdeviceptr ptr)
{
	struct gs_entry e, old;
	bool known = gs_attached() && gs_registry_ref(GS_KIND_IPC, ptr, -1, &e);
	CUresult r = real(ptr);

	if (!known)
		return r;
	if (r == CUDA_SUCCESS && !e.refs) {
		gs_entry_refund(&e);
	} else if (r != CUDA_SUCCESS && !gs_registry_ref(GS_KIND_IPC, ptr, 1, &old)) {
		e.refs = 1;
		gs_registry_put(&e, &old);
	}
	return r;
}
