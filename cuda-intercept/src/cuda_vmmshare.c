// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Physical memory between processes: by descriptor, by the bytes of a fabric handle,
// and as a dma-buf.

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "share.h"
#include "vmm.h"

// Bytes of a CUmemFabricHandle.
#define FABRIC_BYTES 64

// refused takes back a descriptor of memory for which there is no record: it could
// outlive this process, and nobody would be charged for what it holds.
static CUresult refused(int fd)
{
	int saved = errno;

	close(fd);
	errno = saved;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

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
	uint64_t number;
	struct gs_entry e;
	// Held meanwhile: another thread may release it, and a descriptor keeps the memory.
	bool known = gs_memory_of_handle(handle, &number) && gs_memory_ref(number, &e);
	CUresult r = real(ret_handle && n ? &out : ret_handle, handle, type, flags);
	uint16_t share;

	if (known && r == CUDA_SUCCESS && n) {
		share = gs_share_entry(GS_KIND_MEMORY, number);
		if (e.link == GS_MEMORY_OBJECT)
			gs_share_object(share);
		if (n != sizeof(int))
			gs_share_name(share, out.bytes, n);
		else if (share != GS_SHARE_PINNED)
			gs_share_mark(share, out.fd);
		else if (e.link != GS_MEMORY_OBJECT)
			r = refused(out.fd);
	}
	if (known)
		gs_memory_unref(number);
	if (r == CUDA_SUCCESS && n)
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

// mark_range marks a descriptor as one of everything that lies in an address range. It
// returns false if there is no record for some of it.
static bool mark_range(CUdeviceptr ptr, size_t bytes, int fd)
{
	uint16_t share = gs_share_pointer(ptr);
	struct gs_entry e;

	if (share)
		gs_share_mark(share, fd);
	for (size_t at = 0; !share && at < bytes && gs_mapping_at(ptr + at, &e); at = e.key + e.bytes - ptr) {
		share = gs_share_entry(GS_KIND_MEMORY, e.link);
		gs_share_mark(share, fd);
		if (share != GS_SHARE_PINNED)
			share = 0;
	}
	return share != GS_SHARE_PINNED;
}

CUresult gs_cu_range_handle(GS_FN(cuMemGetHandleForAddressRange) real, void *ret_handle, CUdeviceptr ptr, size_t bytes,
			    CUmemRangeHandleType type, unsigned long long flags)
{
	int fd = -1; // all of its types are descriptors
	CUresult r = real(ret_handle ? &fd : NULL, ptr, bytes, type, flags);

	if (r != CUDA_SUCCESS)
		return r;
	if (gs_attached() && !mark_range(ptr, bytes, fd))
		return refused(fd);
	*(int *)ret_handle = fd;
	return r;
}
