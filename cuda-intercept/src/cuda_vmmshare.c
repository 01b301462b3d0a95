// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Physical memory between processes: by descriptor, by the bytes of a fabric handle,
// and as a dma-buf.

#include <string.h>

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "share.h"
#include "vmm.h"

// Bytes of a CUmemFabricHandle.
#define FABRIC_BYTES 64

CUresult gs_cu_mem_export(GS_FN(cuMemExportToShareableHandle) real, void *ret_handle,
			  CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags)
{
	size_t n = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? sizeof(int)
		   : type == CU_MEM_HANDLE_TYPE_FABRIC		    ? FABRIC_BYTES
								    : 0;
	union {
		int fd;
		unsigned char bytes[FABRIC_BYTES];
	} out = {0};
	CUresult r = real(ret_handle && n ? &out : ret_handle, handle, type, flags);
	struct gs_entry e;
	uint64_t number;
	uint16_t share;

	if (r != CUDA_SUCCESS || !n)
		return r;
	if (gs_memory_of_handle(handle, &number) && gs_registry_get(GS_KIND_MEMORY, number, &e)) {
		share = gs_share_entry(GS_KIND_MEMORY, number);
		if (e.link == GS_MEMORY_OBJECT)
			gs_share_object(share);
		if (n == sizeof(int))
			gs_share_mark(share, out.fd);
		else
			gs_share_name(share, out.bytes, n);
	}
	memcpy(ret_handle, &out, n);
	return r;
}

// on_device tells on which GPU imported memory lies; false for host memory.
static bool on_device(CUmemGenericAllocationHandle handle, unsigned *ret_gpu)
{
	CUmemAllocationProp prop = {0};

	*ret_gpu = 0;
	if (!gs_cuda_real.cuMemGetAllocationPropertiesFromHandle ||
	    gs_cuda_real.cuMemGetAllocationPropertiesFromHandle(&prop, handle) != CUDA_SUCCESS)
		return true; // in doubt it is charged
	if (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return false;
	gs_place_device(prop.location.id, ret_gpu);
	return true;
}

// add_imported records an imported handle; the share's hold becomes the memory's.
static int add_imported(CUmemGenericAllocationHandle handle, uint16_t share)
{
	struct gs_entry e = {
		.share = share,
		.link = gs_share_is_object(share) ? GS_MEMORY_OBJECT : GS_MEMORY_IMPORTED,
	};
	unsigned gpu = gs_share_gpu(share);
	uint64_t number;
	int r;

	if (!share && !on_device(handle, &gpu))
		return 0;
	e.gpu = (uint8_t)gpu;
	r = gs_memory_add(e, &number);
	if (r < 0) {
		gs_share_drop(share);
		return r;
	}
	r = gs_memory_handle(handle, number);
	if (r < 0)
		gs_memory_unref(number);
	return r;
}

CUresult gs_cu_mem_import(GS_FN(cuMemImportFromShareableHandle) real, CUmemGenericAllocationHandle *ret_handle,
			  void *os_handle, CUmemAllocationHandleType type)
{
	CUmemGenericAllocationHandle handle = 0;
	uint16_t share = 0;
	CUresult r;

	// Held before the driver is asked: else its last holder may end in between.
	if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		share = gs_share_of_descriptor((int)(intptr_t)os_handle);
	else if (type == CU_MEM_HANDLE_TYPE_FABRIC && os_handle)
		share = gs_share_of_name(os_handle, FABRIC_BYTES);
	r = real(ret_handle ? &handle : NULL, os_handle, type);
	if (r != CUDA_SUCCESS) {
		gs_share_drop(share);
		return r;
	}
	if (gs_attached() && add_imported(handle, share) < 0) {
		if (gs_cuda_real.cuMemRelease)
			gs_cuda_real.cuMemRelease(handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_handle = handle;
	return r;
}

// mark_range marks a descriptor as one of everything that lies in an address range.
static void mark_range(CUdeviceptr ptr, size_t bytes, int fd)
{
	uint16_t share = gs_share_pointer(ptr);
	struct gs_entry e;

	if (share) {
		gs_share_mark(share, fd);
		return;
	}
	for (size_t at = 0; at < bytes && gs_mapping_at(ptr + at, &e); at = e.key + e.bytes - ptr)
		gs_share_mark(gs_share_entry(GS_KIND_MEMORY, e.link), fd);
}

CUresult gs_cu_range_handle(GS_FN(cuMemGetHandleForAddressRange) real, void *ret_handle, CUdeviceptr ptr, size_t bytes,
			    CUmemRangeHandleType type, unsigned long long flags)
{
	int fd = -1; // all of its types are descriptors
	CUresult r = real(ret_handle ? &fd : NULL, ptr, bytes, type, flags);

	if (r != CUDA_SUCCESS)
		return r;
	if (gs_attached())
		mark_range(ptr, bytes, fd);
	*(int *)ret_handle = fd;
	return r;
}
