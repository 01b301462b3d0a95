// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Advice about managed memory. What lies in the host's memory because the limit had
// no room for it (spill.h) must not be brought over: then the container would hold
// device memory that is not charged. Advice and prefetching are hints, so for such a
// range they are taken and nothing is done. Other managed memory is charged in full,
// wherever it lies, and is the program's own to place.

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "spill.h"

struct range {
	uint64_t begin, end;
};

static bool meets(const struct gs_entry *e, uint64_t arg)
{
	const struct range *r = (const struct range *)(uintptr_t)arg;

	return e->kind == GS_KIND_HOST && e->key < r->end && e->bytes > 0 && r->begin < e->key + e->bytes;
}

// spilled tells whether any of a range lies in the host's memory on our account.
static bool spilled(CUdeviceptr ptr, uint64_t bytes)
{
	struct range r = {.begin = ptr};
	struct gs_entry e;

	if (!gs_spill_held() || !gs_attached())
		return false;
	if (__builtin_add_overflow(ptr, bytes, &r.end))
		r.end = UINT64_MAX;
	return gs_registry_find(meets, (uintptr_t)&r, &e);
}

// moves tells whether advice can make the driver give a range device memory.
static bool moves(CUmem_advise advice, bool device)
{
	switch (advice) {
	case GS_ADVISE_READ_MOSTLY: // a copy for each reader
	case GS_ADVISE_NO_PREFERRED_LOCATION:
		return true;
	case GS_ADVISE_PREFERRED_LOCATION:
		return device;
	default:
		return false;
	}
}

CUresult gs_cu_advise(GS_FN(cuMemAdvise) real, CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice dev)
{
	if (moves(advice, dev != CU_DEVICE_CPU) && spilled(ptr, bytes))
		return CUDA_SUCCESS;
	return real(ptr, bytes, advice, dev);
}

CUresult gs_cu_advise_v2(GS_FN(cuMemAdvise_v2) real, CUdeviceptr ptr, size_t bytes, CUmem_advise advice,
			 CUmemLocation where)
{
	if (moves(advice, where.type == CU_MEM_LOCATION_TYPE_DEVICE) && spilled(ptr, bytes))
		return CUDA_SUCCESS;
	return real(ptr, bytes, advice, where);
}

CUresult gs_cu_prefetch(GS_FN(cuMemPrefetchAsync) real, CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream)
{
	if (dev != CU_DEVICE_CPU && spilled(ptr, bytes))
		return CUDA_SUCCESS;
	return real(ptr, bytes, dev, stream);
}

CUresult gs_cu_prefetch_v2(GS_FN(cuMemPrefetchAsync_v2) real, CUdeviceptr ptr, size_t bytes, CUmemLocation where,
			   unsigned int flags, CUstream stream)
{
	if (where.type == CU_MEM_LOCATION_TYPE_DEVICE && spilled(ptr, bytes))
		return CUDA_SUCCESS;
	return real(ptr, bytes, where, flags, stream);
}

// A batch is left out as a whole: its other ranges lose a hint.
CUresult gs_cu_prefetch_batch(GS_FN(cuMemPrefetchBatchAsync) real, CUdeviceptr *ptrs, size_t *sizes, size_t count,
			      CUmemLocation *where, size_t *first, size_t wheres, unsigned long long flags,
			      CUstream stream)
{
	bool device = false, any = false;

	if (gs_spill_held() && ptrs && sizes && where) {
		for (size_t i = 0; i < wheres && !device; i++)
			device = where[i].type == CU_MEM_LOCATION_TYPE_DEVICE;
		for (size_t i = 0; i < count && device && !any; i++)
			any = spilled(ptrs[i], sizes[i]);
	}
	return any ? CUDA_SUCCESS : real(ptrs, sizes, count, where, first, wheres, flags, stream);
}
