// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// External memory: a descriptor of CUDA's own, or of another driver. What this
// container's processes have exported is charged once already; all other memory is
// charged here with the size that the program says. Buffers mapped from it keep it.

#include "attach.h"
#include "context.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "ledger.h"
#include "share.h"
#include "vmm.h"

// The layout of CUDA_EXTERNAL_MEMORY_HANDLE_DESC, which the header leaves open.
struct memory_desc {
	int type;
	union {
		int fd;
		void *pair[2];
	} handle;
	unsigned long long size;
	unsigned int flags, reserved[16];
};

// The types whose handle is a descriptor.
enum { OPAQUE_FD = 1, DMABUF_FD = 9 };

CUresult gs_cu_external_import(GS_FN(cuImportExternalMemory) real, CUexternalMemory *ret_memory,
			       const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	const struct memory_desc *d = (const struct memory_desc *)(const void *)desc;
	struct gs_entry old, e = {.link = GS_MEMORY_OWN}, object = {.refs = 1, .kind = GS_KIND_EXTERNAL};
	struct gs_grant g = {0};
	CUexternalMemory memory = NULL;
	CUresult r;

	if (!d)
		return real(ret_memory, desc);
	// The driver takes the descriptor over: it is looked at first.
	if (d->type == OPAQUE_FD || d->type == DMABUF_FD)
		e.share = gs_share_of_descriptor(d->handle.fd);
	r = gs_grant_take(&g, e.share ? 0 : gs_granule(d->size));
	if (r == CUDA_SUCCESS)
		r = real(ret_memory ? &memory : NULL, desc);
	else
		g.bytes = 0;
	if (r == CUDA_SUCCESS) {
		e.bytes = g.bytes;
		e.gpu = (uint8_t)(e.share ? gs_share_gpu(e.share) : g.place.gpu);
		object.key = (uintptr_t)memory;
		// Without room for the entries it stays charged to the end.
		if (gs_memory_add(e, &object.link) == 0)
			gs_registry_put(&object, &old);
		*ret_memory = memory;
		return r;
	}
	if (e.share)
		gs_share_drop(e.share);
	else if (g.bytes)
		gs_grant_undo(&g);
	return r;
}

CUresult gs_cu_external_destroy(GS_FN(cuDestroyExternalMemory) real, CUexternalMemory memory)
{
	struct gs_entry e, old;
	bool known = gs_attached() && gs_registry_take(GS_KIND_EXTERNAL, (uintptr_t)memory, &e);
	CUresult r = real(memory);

	if (known && r == CUDA_SUCCESS)
		gs_memory_unref(e.link);
	else if (known)
		gs_registry_put(&e, &old);
	return r;
}

// mapped records what was mapped from external memory; it refers to the memory.
static void mapped(CUexternalMemory memory, uint64_t key)
{
	struct gs_entry object, e, buffer = {.key = key, .refs = 1, .kind = GS_KIND_BUFFER};

	if (!gs_attached() || !gs_registry_get(GS_KIND_EXTERNAL, (uintptr_t)memory, &object) ||
	    !gs_memory_ref(object.link, &e))
		return;
	buffer.link = object.link;
	gs_registry_put(&buffer, &e); // without room it stays charged to the end
}

CUresult gs_cu_external_buffer(GS_FN(cuExternalMemoryGetMappedBuffer) real, CUdeviceptr *ret_ptr,
			       CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	CUdeviceptr ptr = 0;
	CUresult r = real(ret_ptr ? &ptr : NULL, memory, desc);

	if (r != CUDA_SUCCESS)
		return r;
	mapped(memory, ptr);
	*ret_ptr = ptr;
	return r;
}

CUresult gs_cu_external_mipmap(GS_FN(cuExternalMemoryGetMappedMipmappedArray) real, CUmipmappedArray *ret_array,
			       CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
	CUmipmappedArray array = NULL;
	CUresult r = real(ret_array ? &array : NULL, memory, desc);

	if (r != CUDA_SUCCESS)
		return r;
	mapped(memory, (uintptr_t)array);
	*ret_array = array;
	return r;
}

bool gs_buffer_take(uint64_t key, struct gs_entry *ret_buffer)
{
	return gs_attached() && gs_registry_take(GS_KIND_BUFFER, key, ret_buffer);
}

CUresult gs_buffer_freed(const struct gs_entry *buffer, CUresult r)
{
	struct gs_entry old;

	if (r == CUDA_SUCCESS)
		gs_memory_unref(buffer->link);
	else
		gs_registry_put(buffer, &old);
	return r;
}
