// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Stream-ordered memory. What a pool keeps after a free, it keeps until the stream is
// waited for.

#include "walk.h"

static CUmemoryPool pool;

static CUresult make_pool(void)
{
	CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

	return W(cuMemPoolCreate)(&pool, &props);
}

// A pool that keeps what it has.
static CUresult make_keeping_pool(void)
{
	cuuint64_t all = UINT64_MAX;

	return make_pool() ?: W(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
}

static CUresult end_pool(void)
{
	return W(cuMemPoolDestroy)(pool);
}

static CUresult take_async(void *out, size_t bytes)
{
	return W(cuMemAllocAsync)(out, bytes, NULL);
}

static CUresult take_async_ptsz(void *out, size_t bytes)
{
	return W(cuMemAllocAsync_ptsz)(out, bytes, NULL);
}

static CUresult take_from_pool(void *out, size_t bytes)
{
	return W(cuMemAllocFromPoolAsync)(out, bytes, pool, NULL);
}

static CUresult take_from_pool_ptsz(void *out, size_t bytes)
{
	return W(cuMemAllocFromPoolAsync_ptsz)(out, bytes, pool, NULL);
}

static CUresult give_async(void *out)
{
	return W(cuMemFreeAsync)(*(CUdeviceptr *)out, NULL) ?: W(cuStreamSynchronize)(NULL);
}

static CUresult give_async_ptsz(void *out)
{
	return W(cuMemFreeAsync_ptsz)(*(CUdeviceptr *)out, NULL) ?: W(cuStreamSynchronize_ptsz)(NULL);
}

WALK(cuMemAllocAsync, NULL, take_async, give_async, NULL);
WALK(cuMemAllocAsync_ptsz, NULL, take_async_ptsz, give_async_ptsz, NULL);
WALK(cuMemAllocFromPoolAsync, make_pool, take_from_pool, give_async, end_pool);
WALK(cuMemAllocFromPoolAsync_ptsz, make_pool, take_from_pool_ptsz, give_async_ptsz, end_pool);
WALK(cuMemFreeAsync, NULL, take_async, give_async, NULL);
WALK(cuMemFreeAsync_ptsz, NULL, take_async_ptsz, give_async_ptsz, NULL);

// What the pool keeps when all of it is free.
static CUresult take_kept(void *out, size_t bytes)
{
	return take_from_pool(out, bytes) ?: give_async(out);
}

static CUresult give_trim(void *out __attribute__((unused)))
{
	return W(cuMemPoolTrimTo)(pool, 0);
}

static CUresult take_in_new_pool(void *out, size_t bytes)
{
	return make_keeping_pool() ?: take_kept(out, bytes);
}

static CUresult give_pool(void *out __attribute__((unused)))
{
	return end_pool();
}

WALK(cuMemPoolTrimTo, make_keeping_pool, take_kept, give_trim, end_pool);
WALK(cuMemPoolDestroy, NULL, take_in_new_pool, give_pool, NULL);
