// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Allocations of memory pools between processes, by 64 bytes of data. Its pool is charged
// for an allocation as long as the exporter has it; then whoever has imported it is.

#include "attach.h"
#include "context.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "pool.h"
#include "share.h"
#include "vmm.h"

CUresult gs_cu_pool_export(GS_FN(cuMemPoolExportPointer) real, CUmemPoolPtrExportData *ret_data, CUdeviceptr ptr)
{
	CUmemPoolPtrExportData data;
	CUresult r = real(ret_data ? &data : NULL, ptr);

	if (r != CUDA_SUCCESS)
		return r;
	if (gs_attached())
		gs_share_name(gs_share_entry(GS_KIND_POINTER, ptr), &data, sizeof(data));
	*ret_data = data;
	return r;
}

// imported records an imported allocation, which is freed as any other; the share's hold
// becomes the entry's. Without a share it is another container's.
static int imported(CUdeviceptr ptr, uint16_t share)
{
	struct gs_entry old, e = {.key = ptr, .share = share, .kind = GS_KIND_POINTER};
	struct gs_place place = {0};
	CUdeviceptr start;
	size_t bytes = 0;
	int r;

	gs_place_current(&place);
	e.gpu = (uint8_t)(share ? gs_share_gpu(share) : place.gpu);
	if (!share) {
		if (gs_cuda_real.cuMemGetAddressRange_v2)
			gs_cuda_real.cuMemGetAddressRange_v2(&start, &bytes, ptr);
		e.bytes = gs_pool_block(e.gpu, bytes);
		if (gs_charge(e.gpu, e.bytes) < 0)
			return -1;
	}
	r = gs_registry_put(&e, &old);
	if (r < 0 || old.kind != GS_KIND_NONE)
		gs_entry_refund(r < 0 ? &e : &old);
	return r;
}

CUresult gs_cu_pool_import(GS_FN(cuMemPoolImportPointer) real, CUdeviceptr *ret_ptr, CUmemoryPool pool,
			   CUmemPoolPtrExportData *data)
{
	// Held before the driver is asked: else its last holder may end in between.
	uint16_t share = data ? gs_share_of_name(data, sizeof(*data)) : 0;
	CUdeviceptr ptr = 0;
	CUresult r = real(ret_ptr ? &ptr : NULL, pool, data);

	if (r != CUDA_SUCCESS) {
		gs_share_drop(share);
		return r;
	}
	if (gs_attached() && imported(ptr, share) < 0) {
		if (gs_cuda_real.cuMemFree_v2)
			gs_cuda_real.cuMemFree_v2(ptr);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_ptr = ptr;
	return r;
}
