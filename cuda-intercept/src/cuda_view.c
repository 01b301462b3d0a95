// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What the program is told of memory: its limit is the whole card.

#include "attach.h"
#include "context.h"
#include "cuda_bodies.h"
#include "ledger.h"
#include "pool.h"

// view replaces the driver's figures by the container's. More than the driver has
// is never promised, neither in all nor now.
static CUresult view(uint64_t *free_bytes, uint64_t *total_bytes)
{
	struct gs_place place;
	CUresult r = gs_place_current(&place);
	uint64_t limit, used, left;

	if (r != CUDA_SUCCESS)
		return r;
	limit = gs_memory_limit(place.gpu);
	*total_bytes = limit < *total_bytes ? limit : *total_bytes;
	gs_pools_settle(place.gpu);
	used = gs_ledger_living(place.gpu);
	left = used < *total_bytes ? *total_bytes - used : 0;
	*free_bytes = left < *free_bytes ? left : *free_bytes;
	return CUDA_SUCCESS;
}

// narrow is the first interface's view of a figure that may not fit in it.
static unsigned int narrow(uint64_t bytes)
{
	return bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)bytes;
}

// wide is what a figure of the first interface stands for.
static uint64_t wide(unsigned int bytes)
{
	return bytes == UINT32_MAX ? UINT64_MAX : bytes;
}

CUresult gs_cu_mem_info(GS_FN(cuMemGetInfo_v2) real, size_t *ret_free, size_t *ret_total)
{
	size_t free_size = 0, total_size = SIZE_MAX;
	uint64_t free_bytes, total_bytes;
	CUresult r = real(ret_free ? &free_size : NULL, ret_total ? &total_size : NULL);

	if (r != CUDA_SUCCESS)
		return r;
	free_bytes = free_size;
	total_bytes = total_size;
	r = view(&free_bytes, &total_bytes);
	if (r == CUDA_SUCCESS && ret_free)
		*ret_free = free_bytes;
	if (r == CUDA_SUCCESS && ret_total)
		*ret_total = total_bytes;
	return r;
}

CUresult gs_cu_mem_info_v1(GS_FN(cuMemGetInfo) real, unsigned int *ret_free, unsigned int *ret_total)
{
	unsigned int free_size = 0, total_size = UINT32_MAX;
	uint64_t free_bytes, total_bytes;
	CUresult r = real(ret_free ? &free_size : NULL, ret_total ? &total_size : NULL);

	if (r != CUDA_SUCCESS)
		return r;
	free_bytes = wide(free_size);
	total_bytes = wide(total_size);
	r = view(&free_bytes, &total_bytes);
	if (r == CUDA_SUCCESS && ret_free)
		*ret_free = narrow(free_bytes);
	if (r == CUDA_SUCCESS && ret_total)
		*ret_total = narrow(total_bytes);
	return r;
}

// at_most is the limit, or the card if that is smaller.
static size_t at_most(unsigned gpu, uint64_t card)
{
	uint64_t limit = gs_memory_limit(gpu);

	return limit < card ? limit : card;
}

CUresult gs_cu_total_mem(GS_FN(cuDeviceTotalMem_v2) real, size_t *ret_bytes, CUdevice dev)
{
	size_t bytes;
	unsigned gpu;
	CUresult r = real(ret_bytes ? &bytes : NULL, dev);

	if (r == CUDA_SUCCESS)
		r = gs_place_device(dev, &gpu);
	if (r == CUDA_SUCCESS)
		*ret_bytes = at_most(gpu, bytes);
	return r;
}

CUresult gs_cu_total_mem_v1(GS_FN(cuDeviceTotalMem) real, unsigned int *ret_bytes, CUdevice dev)
{
	unsigned int bytes, gpu;
	CUresult r = real(ret_bytes ? &bytes : NULL, dev);

	if (r == CUDA_SUCCESS)
		r = gs_place_device(dev, &gpu);
	if (r == CUDA_SUCCESS)
		*ret_bytes = narrow(at_most(gpu, wide(bytes)));
	return r;
}

// What the driver would notify a program of is its budget of the card. A container
// has none beside its limit, which it cannot go over: as where the driver has no
// such notices.
CUresult gs_cu_no_budget(GS_FN(cuDeviceRegisterAsyncNotification) real, CUdevice dev, CUasyncCallback callback,
			 void *data, CUasyncCallbackHandle *ret_handle)
{
	unsigned gpu;
	CUresult r = gs_place_device(dev, &gpu);

	(void)real;
	(void)data;
	if (r != CUDA_SUCCESS)
		return r;
	return callback && ret_handle ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}
