// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Virtual memory management. The memory that cuMemCreate makes lives until its
// last handle is released and its last mapping is gone, in any order, as with the
// driver; so it is an entry of its own, with references from both.

#include "vmm.h"

#include <pthread.h>
#include <stdatomic.h>

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "ledger.h"
#include "share.h"

static _Atomic(uint64_t) last_memory;

int gs_memory_add(struct gs_entry memory, uint64_t *ret_number)
{
	struct gs_entry old;

	memory.key = atomic_fetch_add(&last_memory, 1) + 1;
	memory.kind = GS_KIND_MEMORY;
	memory.refs = 1;
	*ret_number = memory.key;
	return gs_registry_put(&memory, &old);
}

bool gs_memory_ref(uint64_t number, struct gs_entry *ret_memory)
{
	return gs_registry_ref(GS_KIND_MEMORY, number, 1, ret_memory);
}

void gs_memory_unref(uint64_t number)
{
	struct gs_entry e;

	if (!gs_registry_ref(GS_KIND_MEMORY, number, -1, &e) || e.refs)
		return;
	gs_entry_refund(&e);
	if (e.link == GS_MEMORY_OBJECT)
		gs_bindings_drop(GS_KIND_BINDING, (uint32_t)number);
}

bool gs_memory_of_handle(CUmemGenericAllocationHandle handle, uint64_t *ret_number)
{
	struct gs_entry e;

	if (!gs_attached() || !gs_registry_get(GS_KIND_HANDLE, handle, &e))
		return false;
	*ret_number = e.link;
	return true;
}

static bool holds_address(const struct gs_entry *entry, uint64_t address)
{
	return entry->kind == GS_KIND_MAPPING && address >= entry->key && address - entry->key < entry->bytes;
}

bool gs_mapping_at(uint64_t address, struct gs_entry *ret_mapping)
{
	return gs_attached() && gs_registry_find(holds_address, address, ret_mapping);
}

bool gs_memory_of_address(uint64_t address, uint64_t *ret_number)
{
	struct gs_entry mapping;

	if (!gs_mapping_at(address, &mapping))
		return false;
	*ret_number = mapping.link;
	return true;
}

int gs_memory_handle(CUmemGenericAllocationHandle handle, uint64_t number)
{
	struct gs_entry memory, old, e = {.key = handle, .link = number, .refs = 1, .kind = GS_KIND_HANDLE};

	if (!gs_registry_ref(GS_KIND_HANDLE, handle, 1, &old))
		return gs_registry_put(&e, &old);
	if (old.link != number && gs_memory_ref(old.link, &memory))
		gs_memory_unref(number);
	return 0;
}

// add_memory records new memory with one handle.
static int add_memory(const struct gs_grant *g, CUmemGenericAllocationHandle handle)
{
	struct gs_entry old, e = {.bytes = g->bytes, .gpu = (uint8_t)g->place.gpu};
	struct gs_entry h = {.key = handle, .refs = 1, .kind = GS_KIND_HANDLE};
	int r = gs_memory_add(e, &h.link);

	if (r < 0)
		return r;
	r = gs_registry_put(&h, &old);
	if (r < 0)
		gs_registry_take(GS_KIND_MEMORY, h.link, &old);
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
		return r; // host memory
	if (r == CUDA_SUCCESS) {
		gs_memory_unref(e.link);
	} else if (!gs_registry_ref(GS_KIND_HANDLE, handle, 1, &old)) {
		e.refs = 1;
		gs_registry_put(&e, &old);
	}
	return r;
}

CUresult gs_cu_mem_retain(GS_FN(cuMemRetainAllocationHandle) real, CUmemGenericAllocationHandle *ret_handle,
			  void *address)
{
	CUmemGenericAllocationHandle handle = 0;
	struct gs_entry e;
	uint64_t number;
	// Before the driver is asked: another thread may end the mapping and the last handle.
	bool known = gs_memory_of_address((uintptr_t)address, &number) && gs_memory_ref(number, &e);
	CUresult r = real(ret_handle ? &handle : NULL, address);

	if (known && r != CUDA_SUCCESS)
		gs_memory_unref(number);
	if (r != CUDA_SUCCESS)
		return r;
	// Without an entry for the handle the memory stays charged.
	if (known)
		gs_memory_handle(handle, number);
	*ret_handle = handle;
	return r;
}

// ---- mappings -----------------------------------------------------------------

static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;

static uint64_t charged_for(const struct gs_entry *memory)
{
	return memory->share && memory->share != GS_SHARE_PINNED ? gs_share_bytes(memory->share) : memory->bytes;
}

// grow says that the memory has been found to be of at least that many bytes, and that
// more have been charged for it; what is too much of them is taken back.
static void grow(uint64_t number, uint64_t bytes, uint64_t more)
{
	struct gs_entry e;
	uint64_t taken = 0;

	pthread_mutex_lock(&growing);
	if (gs_registry_get(GS_KIND_MEMORY, number, &e)) {
		if (e.share && e.share != GS_SHARE_PINNED) {
			taken = gs_share_grow_to(e.share, bytes);
		} else if (bytes > e.bytes) {
			taken = bytes - e.bytes;
			gs_registry_resize(GS_KIND_MEMORY, number, bytes);
		}
		if (taken > more)
			gs_ledger_add(e.gpu, taken - more);
		else
			gs_ledger_refund(e.gpu, more - taken);
	}
	pthread_mutex_unlock(&growing);
}

CUresult gs_cu_mem_map(GS_FN(cuMemMap) real, CUdeviceptr ptr, size_t bytes, size_t offset,
		       CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	uint64_t number, size, more = 0;
	struct gs_entry memory, old;
	bool known = gs_memory_of_handle(handle, &number) && gs_memory_ref(number, &memory);
	CUresult r;

	// Memory of another container is charged here, too, and nothing else tells how large
	// it is.
	if (known && memory.link == GS_MEMORY_IMPORTED) {
		if (__builtin_add_overflow(bytes, offset, &size))
			size = UINT64_MAX;
		size = gs_granule(size);
		if (size > charged_for(&memory))
			more = size - charged_for(&memory);
		if (gs_charge(memory.gpu, more) < 0) {
			gs_memory_unref(number);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	r = real(ptr, bytes, offset, handle, flags);
	if (!known)
		return r;
	if (r == CUDA_SUCCESS) {
		struct gs_entry mapping = {.key = ptr, .bytes = bytes, .link = number, .kind = GS_KIND_MAPPING};

		if (more)
			grow(number, size, more);
		// Without room for the entry the memory stays charged to the end.
		gs_registry_put(&mapping, &old);
	} else {
		gs_ledger_refund(memory.gpu, more);
		gs_memory_unref(number);
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
				gs_memory_unref(taken[i].link);
			else
				gs_registry_put(&taken[i], &old);
		}
		if (r != CUDA_SUCCESS || at - ptr >= bytes)
			return r;
	}
	return real(ptr, bytes);
}
