// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What keeps physical memory beside handles and mappings: multicast objects and logical
// endpoints, by what is bound to them, and sparse arrays, by their tiles. Each binding
// is a reference to the memory, with its owner's number in place of a context's.

#include <stdatomic.h>

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "vmm.h"

static _Atomic(uint64_t) last_binding;

// A binding: where in its owner, on which device, how many bytes. The registry's key is
// only a number; where and how many go by entries of one owner, which are few.
static int bind(enum gs_kind kind, uint32_t owner, CUdevice dev, uint64_t offset, uint64_t bytes, uint64_t memory)
{
	struct gs_entry old, e = {
		.key = atomic_fetch_add(&last_binding, 1) + 1,
		.bytes = bytes,
		.link = memory,
		.at = offset,
		.ctx = owner,
		.refs = 1,
		.gpu = (uint8_t)dev,
		.kind = (uint8_t)kind,
	};

	return gs_registry_put(&e, &old);
}

static bool is_owners(const struct gs_entry *entry, uint64_t arg)
{
	return entry->kind == (arg >> 32) && entry->ctx == (uint32_t)arg;
}

static void unbind(const struct gs_entry *binding)
{
	struct gs_entry gone;

	if (gs_registry_take((enum gs_kind)binding->kind, binding->key, &gone))
		gs_memory_unref(gone.link);
}

void gs_bindings_drop(enum gs_kind kind, uint32_t owner)
{
	struct gs_entry e;

	while (gs_registry_find(is_owners, (uint64_t)kind << 32 | owner, &e))
		unbind(&e);
}

struct range {
	enum gs_kind kind;
	uint32_t owner;
	CUdevice dev;
	uint64_t offset, bytes;
};

static bool in_range(const struct gs_entry *e, uint64_t arg)
{
	const struct range *r = (const struct range *)(uintptr_t)arg;

	return e->kind == r->kind && e->ctx == r->owner && e->gpu == (uint8_t)r->dev && e->at >= r->offset &&
	       e->bytes <= r->bytes && e->at - r->offset <= r->bytes - e->bytes;
}

static void unbind_range(const struct range *r)
{
	struct gs_entry e;

	while (gs_registry_find(in_range, (uintptr_t)r, &e))
		unbind(&e);
}

// begin takes a reference for a binding that is about to be made.
static bool begin(bool found, const uint64_t *memory)
{
	struct gs_entry e;

	return found && gs_memory_ref(*memory, &e);
}

// end makes it the binding's if the driver has bound it. Without room for the entry
// the memory stays charged to the end.
static CUresult end(bool begun, const struct range *to, uint64_t memory, CUresult r)
{
	if (begun && r != CUDA_SUCCESS)
		gs_memory_unref(memory);
	else if (begun)
		bind(to->kind, to->owner, to->dev, to->offset, to->bytes, memory);
	return r;
}

// ---- multicast objects ----------------------------------------------------------

CUresult gs_cu_multicast_create(GS_FN(cuMulticastCreate) real, CUmemGenericAllocationHandle *ret_handle,
				const CUmulticastObjectProp *prop)
{
	CUmemGenericAllocationHandle handle = 0;
	struct gs_entry e = {.link = GS_MEMORY_OBJECT};
	CUresult r = real(ret_handle ? &handle : NULL, prop);
	uint64_t number;

	if (r != CUDA_SUCCESS)
		return r;
	// Unknown it has no bindings either: what is bound stays charged.
	if (gs_attached() && gs_memory_add(e, &number) == 0 && gs_memory_handle(handle, number) < 0)
		gs_memory_unref(number);
	*ret_handle = handle;
	return r;
}

// to_object fills in where a binding goes; the device is the memory's, which the first
// version of the calls does not tell and the unbinding does.
static bool to_object(struct range *to, CUmemGenericAllocationHandle object, CUdevice dev, uint64_t offset, uint64_t bytes)
{
	uint64_t number;

	if (!gs_memory_of_handle(object, &number))
		return false;
	*to = (struct range){GS_KIND_BINDING, (uint32_t)number, dev, offset, bytes};
	return true;
}

// device_of returns the ordinal of the device that memory lies on, as the driver tells it.
static CUdevice device_of(CUmemGenericAllocationHandle handle)
{
	CUmemAllocationProp prop = {0};

	if (!gs_cuda_real.cuMemGetAllocationPropertiesFromHandle ||
	    gs_cuda_real.cuMemGetAllocationPropertiesFromHandle(&prop, handle) != CUDA_SUCCESS)
		return 0;
	return prop.location.id;
}

CUresult gs_cu_multicast_bind_mem(GS_FN(cuMulticastBindMem) real, CUmemGenericAllocationHandle object, size_t at,
				  CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
				  unsigned long long flags)
{
	struct range to;
	uint64_t memory = 0;
	bool begun = begin(to_object(&to, object, 0, at, bytes) && gs_memory_of_handle(handle, &memory), &memory);

	if (begun)
		to.dev = device_of(handle);
	return end(begun, &to, memory, real(object, at, handle, offset, bytes, flags));
}

CUresult gs_cu_multicast_bind_mem_v2(GS_FN(cuMulticastBindMem_v2) real, CUmemGenericAllocationHandle object,
				     CUdevice dev, size_t at, CUmemGenericAllocationHandle handle, size_t offset,
				     size_t bytes, unsigned long long flags)
{
	struct range to;
	uint64_t memory = 0;
	bool begun = begin(to_object(&to, object, dev, at, bytes) && gs_memory_of_handle(handle, &memory), &memory);

	return end(begun, &to, memory, real(object, dev, at, handle, offset, bytes, flags));
}

// An address may lie in several mappings; the bindings are then as many, each of its
// mapping's part.
static CUresult bind_addresses(const struct range *to, CUdeviceptr ptr, CUresult r)
{
	struct gs_entry e, memory;

	for (uint64_t done = 0; r == CUDA_SUCCESS && done < to->bytes && gs_mapping_at(ptr + done, &e);) {
		uint64_t part = e.key + e.bytes - (ptr + done);

		if (part > to->bytes - done)
			part = to->bytes - done;
		if (gs_memory_ref(e.link, &memory))
			bind(to->kind, to->owner, to->dev, to->offset + done, part, e.link);
		done += part;
	}
	return r;
}

static CUdevice device_at(CUdeviceptr ptr)
{
	CUmemGenericAllocationHandle handle = 0;
	CUdevice dev = 0;

	if (gs_cuda_real.cuMemRetainAllocationHandle &&
	    gs_cuda_real.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)ptr) == CUDA_SUCCESS) {
		dev = device_of(handle);
		if (gs_cuda_real.cuMemRelease)
			gs_cuda_real.cuMemRelease(handle);
	}
	return dev;
}

CUresult gs_cu_multicast_bind_addr(GS_FN(cuMulticastBindAddr) real, CUmemGenericAllocationHandle object, size_t at,
				   CUdeviceptr ptr, size_t bytes, unsigned long long flags)
{
	CUresult r = real(object, at, ptr, bytes, flags);
	struct range to;

	if (r == CUDA_SUCCESS && to_object(&to, object, 0, at, bytes)) {
		to.dev = device_at(ptr);
		bind_addresses(&to, ptr, r);
	}
	return r;
}

CUresult gs_cu_multicast_bind_addr_v2(GS_FN(cuMulticastBindAddr_v2) real, CUmemGenericAllocationHandle object,
				      CUdevice dev, size_t at, CUdeviceptr ptr, size_t bytes,
				      unsigned long long flags)
{
	CUresult r = real(object, dev, at, ptr, bytes, flags);
	struct range to;

	return r == CUDA_SUCCESS && to_object(&to, object, dev, at, bytes) ? bind_addresses(&to, ptr, r) : r;
}

CUresult gs_cu_multicast_unbind(GS_FN(cuMulticastUnbind) real, CUmemGenericAllocationHandle object, CUdevice dev,
				size_t at, size_t bytes)
{
	CUresult r = real(object, dev, at, bytes);
	struct range what;

	if (r == CUDA_SUCCESS && to_object(&what, object, dev, at, bytes))
		unbind_range(&what);
	return r;
}

// ---- logical endpoints ------------------------------------------------------------

CUresult gs_cu_endpoint_bind_mem(GS_FN(cuLogicalEndpointBindMem) real, CUlogicalEndpointId id, CUdevice dev,
				 cuuint64_t at, CUmemGenericAllocationHandle handle, cuuint64_t offset,
				 cuuint64_t bytes, unsigned long long flags)
{
	const struct range to = {GS_KIND_ENDPOINT, id, dev, at, bytes};
	uint64_t memory = 0;
	bool begun = begin(gs_memory_of_handle(handle, &memory), &memory);

	return end(begun, &to, memory, real(id, dev, at, handle, offset, bytes, flags));
}

CUresult gs_cu_endpoint_bind_addr(GS_FN(cuLogicalEndpointBindAddr) real, CUlogicalEndpointId id, CUdevice dev,
				  cuuint64_t at, void *ptr, cuuint64_t bytes, unsigned long long flags)
{
	const struct range to = {GS_KIND_ENDPOINT, id, dev, at, bytes};

	return bind_addresses(&to, (uintptr_t)ptr, real(id, dev, at, ptr, bytes, flags));
}

CUresult gs_cu_endpoint_unbind(GS_FN(cuLogicalEndpointUnbind) real, CUlogicalEndpointId id, CUdevice dev,
			       cuuint64_t at, cuuint64_t bytes)
{
	const struct range what = {GS_KIND_ENDPOINT, id, dev, at, bytes};
	CUresult r = real(id, dev, at, bytes);

	if (r == CUDA_SUCCESS && gs_attached())
		unbind_range(&what);
	return r;
}

CUresult gs_cu_endpoint_destroy(GS_FN(cuLogicalEndpointDestroy) real, CUlogicalEndpointId id)
{
	CUresult r = real(id);

	if (r == CUDA_SUCCESS && gs_attached())
		gs_bindings_drop(GS_KIND_ENDPOINT, id);
	return r;
}

// ---- tiles of sparse arrays -------------------------------------------------------

// The layout of CUarrayMapInfo, which the header leaves open.
struct map_info {
	int resource_type;
	uint64_t array;
	int subresource_type;
	union {
		unsigned int level[8];
		struct {
			unsigned int layer;
			unsigned long long offset, size;
		} tail;
	} where;
	int operation, handle_type;
	CUmemGenericAllocationHandle handle;
	unsigned long long offset;
	unsigned int devices, flags, reserved[2];
};
_Static_assert(sizeof(struct map_info) == 96, "layout of CUarrayMapInfo");

#define OPERATION_MAP 1

static _Atomic(uint32_t) tiles; // of all arrays

static bool is_tile(const struct gs_entry *e, uint64_t arg)
{
	const struct gs_entry *want = (const struct gs_entry *)(uintptr_t)arg;

	return e->kind == GS_KIND_TILE && e->at == want->at && (!want->link || e->link == want->link);
}

void gs_tiles_gone(uint64_t array)
{
	const struct gs_entry of = {.at = array};
	struct gs_entry e;

	// To look costs a walk over all that the process holds.
	if (!atomic_load_explicit(&tiles, memory_order_relaxed))
		return;
	while (gs_registry_find(is_tile, (uintptr_t)&of, &e)) {
		unbind(&e);
		atomic_fetch_sub(&tiles, 1);
	}
}

// When a tile is unmapped the stream has not yet come to it, and nobody tells which tiles
// are left: an array keeps what it was given until it is destroyed.
CUresult gs_cu_map_tiles(GS_FN(cuMemMapArrayAsync) real, CUarrayMapInfo *list, unsigned int n, CUstream stream)
{
	const struct map_info *info = (const struct map_info *)(const void *)list;
	CUresult r = real(list, n, stream);

	for (unsigned int i = 0; r == CUDA_SUCCESS && i < n; i++) {
		struct gs_entry e = {.at = info[i].array}, memory;

		if (info[i].operation == OPERATION_MAP && gs_memory_of_handle(info[i].handle, &e.link) &&
		    !gs_registry_find(is_tile, (uintptr_t)&e, &memory) && gs_memory_ref(e.link, &memory))
			atomic_fetch_add(&tiles, bind(GS_KIND_TILE, 0, 0, e.at, 0, e.link) == 0);
	}
	return r;
}
