// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Physical memory.

#include "walk.h"

#define UNIT (2 * MIB)

static CUdeviceptr at;
static size_t reserved;

static size_t whole(size_t bytes)
{
	return (bytes + UNIT - 1) / UNIT * UNIT;
}

static CUresult take_create(void *out, size_t bytes)
{
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

	return W(cuMemCreate)(out, whole(bytes), &prop, 0);
}

static CUresult give_handle(void *out)
{
	return W(cuMemRelease)(*(CUmemGenericAllocationHandle *)out);
}

WALK(cuMemCreate, NULL, take_create, give_handle, NULL);
WALK(cuMemRelease, NULL, take_create, give_handle, NULL);

static CUresult reserve(void)
{
	reserved = 64 * UNIT;
	return CU(cuMemAddressReserve)(&at, reserved, 0, 0, 0);
}

static CUresult unreserve(void)
{
	return CU(cuMemAddressFree)(at, reserved);
}

static size_t mapped;

// Memory whose only holder is its mapping.
static CUresult take_map(void *out, size_t bytes)
{
	CUmemGenericAllocationHandle *handle = out;
	CUresult r = take_create(out, bytes), again;

	if (r != CUDA_SUCCESS)
		return r;
	mapped = whole(bytes);
	r = W(cuMemMap)(at, mapped, 0, *handle, 0);
	again = W(cuMemRelease)(*handle);
	return r ?: again;
}

static CUresult give_unmap(void *out __attribute__((unused)))
{
	return W(cuMemUnmap)(at, mapped);
}

WALK(cuMemUnmap, reserve, take_map, give_unmap, unreserve);
