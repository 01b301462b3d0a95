// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Virtual memory management. The memory that cuMemCreate makes lives until its
// last handle is released and its last mapping is gone, in any order, as with the
// driver; so it is an entry of its own, with references from both.

#include <stdatomic.h>

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "ledger.h"

static _Atomic(uint64_t) last_memory;

static void unref_memory(uint64_t memory)
{
	struct gs_entry e;

	if (gs_registry_ref(GS_KIND_MEMORY, memory, -1, &e) && !e.refs)
		gs_ledger_refund(e.gpu, e.bytes);
}

static int put_handle(CUmemGenericAllocationHandle handle, uint64_t memory)
{
	struct gs_entry old, e = {.key = handle, .link = memory, .refs = 1, .kind = GS_KIND_HANDLE};

	return gs_registry_put(&e, &old);
}

// add_memory records new memory with one handle.
static int add_memory(const struct gs_grant *g, CUmemGenericAllocationHandle handle)
{
	struct gs_entry old, e = {
		.key = atomic_fetch_add(&last_memory, 1) + 1,
		.bytes = g->bytes,
		.refs = 1,
		.gpu = (uint8_t)g->place.gpu,
		.kind = GS_KIND_MEMORY,
	};
	int r = gs_registry_put(&e, &old);

	if (r == 0) {
		r = put_handle(handle, e.key);
		if (r < 0)
			gs_registry_take(GS_KIND_MEMORY, e.key, &old);
	}
	return r;
}

CUresult gs_cu_mem_create(GS_FN(cuMemCreate) real, CUmemGenericAllocationHandle *ret_handle, size_t bytes,
			  const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUmemGenericAllocationHandle handle = 0;
	struct gs_grant g;
	unsigned gpu;
	CUresult r;

	if (!gs_attached())
		return CUDA_ERROR_NOT_INITIALIZED;
	// For host memory the location's number is no device.
	if (!prop || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return real(ret_handle, bytes, prop, flags);
	r = gs_place_device(prop->location.id, &gpu);
	if (r == CUDA_SUCCESS)
		r = gs_grant_take_on(&g, gpu, gs_granule(bytes));
	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_handle ? &handle : NULL, bytes, prop, flags);
	if (r == CUDA_SUCCESS && add_memory(&g, handle) < 0) {
		if (gs_cuda_real.cuMemRelease)
			gs_cuda_real.cuMemRelease(handle);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS)
		gs_grant_undo(&g);
	else
		*ret_handle = handle;
	return r;
}

CUresult gs_cu_mem_release(GS_FN(cuMemRelease) real, CUmemGenericAllocationHandle handle)
{
	struct gs_entry e, old;
	bool known = gs_attached() && gs_registry_ref(GS_KIND_HANDLE, handle, -1, &e);
	CUresult r = real(handle);

	if (!known)
		return r; // imported, or host memory
	if (r == CUDA_SUCCESS) {
		unref_memory(e.link);
	} else if (!gs_registry_ref(GS_KIND_HANDLE, handle, 1, &old)) {
		e.refs = 1;
		gs_registry_put(&e, &old);
	}
	return r;
}

static bool holds_address(const struct gs_entry *entry, uint64_t address)
{
	return entry->kind == GS_KIND_MAPPING && address >= entry->key && address - entry->key < entry->bytes;
}

CUresult gs_cu_mem_retain(GS_FN(cuMemRetainAllocationHandle) real, CUmemGenericAllocationHandle *ret_handle,
			  void *address)
{
	struct gs_entry mapping, e;
	CUresult r = real(ret_handle, address);

	if (r != CUDA_SUCCESS || !gs_registry_find(holds_address, (uintptr_t)address, &mapping))
		return r;
	if (!gs_registry_ref(GS_KIND_MEMORY, mapping.link, 1, &e))
		return r;
	if (!gs_registry_ref(GS_KIND_HANDLE, *ret_handle, 1, &e))
		put_handle(*ret_handle, mapping.link); // without it the memory stays charged
	return r;
}

CUresult gs_cu_mem_map(GS_FN(cuMemMap) real, CUdeviceptr ptr, size_t bytes, size_t offset,
		       CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct gs_entry e, memory, old;
	bool known = gs_attached() && gs_registry_get(GS_KIND_HANDLE, handle, &e) &&
		     gs_registry_ref(GS_KIND_MEMORY, e.link, 1, &memory);
	CUresult r = real(ptr, bytes, offset, handle, flags);

	if (!known)
		return r;
	if (r == CUDA_SUCCESS) {
		struct gs_entry mapping = {.key = ptr, .bytes = bytes, .link = e.link, .kind = GS_KIND_MAPPING};

		// Without room for the entry the memory stays charged to the end.
		gs_registry_put(&mapping, &old);
	} else {
		unref_memory(e.link);
	}
	return r;
}

// Most mappings that one unmapping takes back if the driver refuses it; a refusal
// of more leaves them charged.
#define UNMAP_MAX 32

CUresult gs_cu_mem_unmap(GS_FN(cuMemUnmap) real, CUdeviceptr ptr, size_t bytes)
{
	CUdeviceptr at = ptr;
	CUresult r;

	// Whole mappings only, says the driver: each call of ours takes some of
	// them, then the driver takes the same.
	while (gs_attached()) {
		struct gs_entry taken[UNMAP_MAX], old;
		CUdeviceptr start = at;
		int n = 0;

		while (n < UNMAP_MAX && at - ptr < bytes && gs_registry_take(GS_KIND_MAPPING, at, &taken[n])) {
			at += taken[n].bytes;
			n++;
		}
		if (n < UNMAP_MAX)
			at = ptr + bytes;
		r = real(start, at - start);
		for (int i = 0; i < n; i++) {
			if (r == CUDA_SUCCESS)
				unref_memory(taken[i].link);
			else
				gs_registry_put(&taken[i], &old);
		}
		if (r != CUDA_SUCCESS || at - ptr >= bytes)
			return r;
	}
	return real(ptr, bytes);
}
