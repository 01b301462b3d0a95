// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Pools of the stand-in driver: they grow in steps and keep what is freed.

#include <stdlib.h>

#include "fake.h"

static struct CUmemPoolHandle_st default_pools[DEVICES] = {{.dev = 0}, {.dev = 1}};
static struct CUmemPoolHandle_st host_pool = {.dev = -1};

static void use(const struct CUmemPoolHandle_st *pool, long long bytes)
{
	if (pool->dev >= 0)
		fake_use(pool->dev, bytes);
}

void fake_shrink(struct CUmemPoolHandle_st *pool, unsigned long long keep)
{
	unsigned long long want = fake_round(pool->live, POOL_STEP);

	want = want > keep ? want : keep;
	if (pool->reserved > want) {
		use(pool, -(long long)(pool->reserved - want));
		pool->reserved = want;
	}
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	ENTER();
	*pool = &default_pools[dev];
	return CUDA_SUCCESS;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	ENTER();
	if (type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*pool = where->type == CU_MEM_LOCATION_TYPE_DEVICE ? &default_pools[where->id] : &host_pool;
	return CUDA_SUCCESS;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	// Another one, so that each of the two calls has to be seen.
	static struct CUmemPoolHandle_st current = {.dev = -1};

	ENTER();
	if (type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*pool = where->type == CU_MEM_LOCATION_TYPE_DEVICE ? &default_pools[where->id] : &current;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	ENTER();
	*pool = calloc(1, sizeof(**pool));
	(*pool)->dev = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id : -1;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	ENTER();
	pthread_mutex_lock(&fake_lock);
	pool->destroyed = 1;
	fake_shrink(pool, 0);
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS; // leaked: handles stay different
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	ENTER();
	pthread_mutex_lock(&fake_lock);
	fake_shrink(pool, keep);
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ENTER();
	if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&fake_lock);
	pool->threshold = *(cuuint64_t *)value;
	fake_shrink(pool, pool->threshold);
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ENTER();
	if (attribute != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
		return CUDA_ERROR_NOT_SUPPORTED;
	*(cuuint64_t *)value = pool->reserved;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	struct thing *t;

	(void)stream;
	ENTER();
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	bytes = fake_round(bytes, 512);
	pthread_mutex_lock(&fake_lock);
	t = fake_add(THING_POINTER, pool->dev, bytes);
	t->pool = pool;
	t->ctx = NULL;
	pool->live += bytes;
	if (pool->live > pool->reserved) {
		unsigned long long more = fake_round(pool->live, POOL_STEP) - pool->reserved;

		pool->reserved += more;
		use(pool, (long long)more);
	}
	*ptr = t->key;
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	ENTER();
	if (!fake_current)
		return CUDA_ERROR_INVALID_CONTEXT;
	return cuMemAllocFromPoolAsync(ptr, bytes, &default_pools[fake_current->dev], stream);
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	(void)stream;
	ENTER();
	return fake_release(ptr);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *ptr, size_t bytes, CUstream stream)
{
	return cuMemAllocAsync(ptr, bytes, stream);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	return cuMemAllocFromPoolAsync(ptr, bytes, pool, stream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream)
{
	return cuMemFreeAsync(ptr, stream);
}
