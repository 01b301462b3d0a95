// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "pool.h"

#include <pthread.h>
#include <string.h>

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "ledger.h"

#define POOLS 64

struct pool {
	CUmemoryPool handle; // NULL once destroyed
	bool used;
	bool host; // its memory is not the GPU's
	unsigned gpu;
	uint64_t live;	  // bytes that the program has allocated from it
	uint64_t charged; // never below live
	uint32_t pending; // allocations that the driver has not answered
	uint32_t seq;	  // counts allocations: an older figure may only raise
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool pools[POOLS];

// find returns the pool, adding it if it is new; NULL when there are too many.
static struct pool *find(CUmemoryPool handle, unsigned gpu, bool host)
{
	struct pool *free_place = NULL, *found = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < POOLS && !found; i++) {
		if (pools[i].used && pools[i].handle == handle)
			found = &pools[i];
		else if (!pools[i].used && !free_place)
			free_place = &pools[i];
	}
	if (!found && free_place) {
		found = free_place;
		*found = (struct pool){.handle = handle, .used = true, .host = host, .gpu = gpu};
	}
	pthread_mutex_unlock(&lock);
	return found;
}

// A destroyed pool lives on, in the driver too, while it has allocations.
static void forget_if_empty_locked(struct pool *p)
{
	if (!p->handle && !p->live && !p->pending && !p->charged)
		p->used = false;
}

// settle brings the charge to the driver's figure.
static void settle(struct pool *p)
{
	cuuint64_t reserved = 0;
	uint64_t want, before;
	CUmemoryPool handle;
	bool unknown = false;
	uint32_t seq;
	unsigned gpu;

	pthread_mutex_lock(&lock);
	seq = p->seq;
	handle = p->handle;
	pthread_mutex_unlock(&lock);
	if (handle && gs_cuda_real.cuMemPoolGetAttribute)
		unknown = gs_cuda_real.cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
							     &reserved) != CUDA_SUCCESS;
	if (unknown)
		reserved = 0;
	pthread_mutex_lock(&lock);
	gpu = p->gpu;
	before = p->charged;
	want = reserved > p->live ? reserved : p->live;
	if ((p->pending || p->seq != seq || unknown) && want < before)
		want = before;
	p->charged = want;
	forget_if_empty_locked(p);
	pthread_mutex_unlock(&lock);
	if (want > before)
		gs_ledger_add(gpu, want - before);
	else
		gs_ledger_refund(gpu, before - want);
}

bool gs_pools_trim(unsigned gpu)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	bool any = false;

	for (int i = 0; i < POOLS; i++) {
		CUmemoryPool handle = NULL;
		bool idle;

		pthread_mutex_lock(&lock);
		idle = pools[i].used && pools[i].gpu == gpu && pools[i].charged > pools[i].live;
		if (idle)
			handle = pools[i].handle;
		pthread_mutex_unlock(&lock);
		if (!idle)
			continue;
		any = true;
		// A capture on this thread must not see a call of ours.
		if (gs_cuda_real.cuThreadExchangeStreamCaptureMode)
			gs_cuda_real.cuThreadExchangeStreamCaptureMode(&mode);
		if (handle && gs_cuda_real.cuMemPoolTrimTo)
			gs_cuda_real.cuMemPoolTrimTo(handle, 0);
		if (gs_cuda_real.cuThreadExchangeStreamCaptureMode)
			gs_cuda_real.cuThreadExchangeStreamCaptureMode(&mode);
		settle(&pools[i]);
	}
	return any;
}

// ---- allocating -------------------------------------------------------------

// begin charges bytes that are about to be allocated from p. Only when the GPU
// is full does it count on what the pool keeps in reserve.
static CUresult begin(struct pool *p, uint64_t bytes)
{
	bool ok = gs_ledger_charge(p->gpu, bytes) == 0;

	pthread_mutex_lock(&lock);
	if (ok)
		p->charged += bytes;
	else
		ok = p->charged - p->live >= bytes;
	if (ok) {
		p->live += bytes;
		p->pending++;
		p->seq++;
	}
	pthread_mutex_unlock(&lock);
	if (ok)
		return CUDA_SUCCESS;
	if (gs_charge(p->gpu, bytes) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	p->charged += bytes;
	p->live += bytes;
	p->pending++;
	p->seq++;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static void end(struct pool *p, uint64_t bytes, bool ok)
{
	pthread_mutex_lock(&lock);
	p->pending--;
	if (!ok)
		p->live -= bytes;
	pthread_mutex_unlock(&lock);
	settle(p);
}

// outgrown charges what the driver took for p beyond the bytes that were asked
// for; a pool grows in steps of the driver's choice. It returns true if there is
// no room for it: then the allocation must go again.
static bool outgrown(struct pool *p)
{
	cuuint64_t reserved = 0;
	uint64_t more;

	if (!gs_cuda_real.cuMemPoolGetAttribute ||
	    gs_cuda_real.cuMemPoolGetAttribute(p->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved))
		return false;
	pthread_mutex_lock(&lock);
	more = reserved > p->charged ? reserved - p->charged : 0;
	pthread_mutex_unlock(&lock);
	if (gs_charge(p->gpu, more) < 0)
		return true;
	pthread_mutex_lock(&lock);
	p->charged += more;
	pthread_mutex_unlock(&lock);
	return false;
}

// An allocation from a pool between charge and record.
struct taking {
	struct pool *pool; // NULL: charged by itself
	struct gs_grant grant;
	uint64_t bytes;
};

static CUresult take(struct taking *t, CUmemoryPool handle, uint64_t bytes)
{
	CUresult r = gs_place_current(&t->grant.place);

	if (r != CUDA_SUCCESS)
		return r;
	t->bytes = bytes;
	t->pool = handle ? find(handle, t->grant.place.gpu, false) : NULL;
	if (!t->pool)
		return gs_grant_take_on(&t->grant, t->grant.place.gpu, bytes);
	return t->pool->host ? CUDA_SUCCESS : begin(t->pool, bytes);
}

static CUresult taken(struct taking *t, CUdeviceptr ptr, CUstream stream, CUresult r)
{
	struct pool *p = t->pool;
	bool undone = false;
	struct gs_entry old, e = {
		.key = ptr,
		.bytes = t->bytes,
		.link = p ? (uint64_t)(p - pools) + 1 : 0,
		.gpu = (uint8_t)(p ? p->gpu : t->grant.place.gpu),
		.kind = GS_KIND_POINTER,
	};

	if (p && p->host)
		return r;
	if (r == CUDA_SUCCESS && ((p && outgrown(p)) || gs_registry_put(&e, &old) < 0)) {
		if (gs_cuda_real.cuMemFreeAsync)
			gs_cuda_real.cuMemFreeAsync(ptr, stream);
		r = CUDA_ERROR_OUT_OF_MEMORY;
		undone = true;
	} else if (r == CUDA_SUCCESS && old.kind != GS_KIND_NONE) {
		gs_pool_freed(&old, CUDA_SUCCESS);
	}
	if (p)
		end(p, t->bytes, r == CUDA_SUCCESS);
	else if (r != CUDA_SUCCESS)
		gs_grant_undo(&t->grant);
	if (undone && p)
		gs_pools_trim(p->gpu); // what it grew by
	return r;
}

CUresult gs_cu_alloc_async(GS_FN(cuMemAllocAsync) real, CUdeviceptr *ret_ptr, size_t bytes, CUstream stream)
{
	struct taking t;
	CUmemoryPool handle = NULL;
	CUdeviceptr ptr = 0;
	CUdevice dev;
	CUresult r = CUDA_SUCCESS;

	if (gs_cuda_real.cuCtxGetDevice && gs_cuda_real.cuDeviceGetMemPool) {
		r = gs_cuda_real.cuCtxGetDevice(&dev);
		if (r == CUDA_SUCCESS)
			r = gs_cuda_real.cuDeviceGetMemPool(&handle, dev);
	}
	// From a pool that is not known, what it keeps could not be charged.
	if (r == CUDA_SUCCESS)
		r = take(&t, handle, gs_granule(bytes));
	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ptr ? &ptr : NULL, bytes, stream);
	r = taken(&t, ptr, stream, r);
	if (r == CUDA_SUCCESS)
		*ret_ptr = ptr;
	return r;
}

CUresult gs_cu_alloc_from_pool(GS_FN(cuMemAllocFromPoolAsync) real, CUdeviceptr *ret_ptr, size_t bytes,
			       CUmemoryPool pool, CUstream stream)
{
	struct taking t;
	CUdeviceptr ptr = 0;
	CUresult r = take(&t, pool, gs_granule(bytes));

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_ptr ? &ptr : NULL, bytes, pool, stream);
	r = taken(&t, ptr, stream, r);
	if (r == CUDA_SUCCESS)
		*ret_ptr = ptr;
	return r;
}

CUresult gs_cu_free_async(GS_FN(cuMemFreeAsync) real, CUdeviceptr ptr, CUstream stream)
{
	struct gs_entry e;
	bool known = gs_attached() && gs_registry_take(GS_KIND_POINTER, ptr, &e);
	CUresult r = real(ptr, stream);

	return known ? gs_pool_freed(&e, r) : r;
}

CUresult gs_pool_freed(const struct gs_entry *entry, CUresult r)
{
	struct gs_entry old;

	if (r != CUDA_SUCCESS) {
		gs_registry_put(entry, &old);
		return r;
	}
	if (!entry->link || entry->link == GS_LINK_PART) {
		gs_entry_refund(entry);
		return r;
	}
	pthread_mutex_lock(&lock);
	pools[entry->link - 1].live -= entry->bytes;
	pthread_mutex_unlock(&lock);
	settle(&pools[entry->link - 1]);
	return r;
}

// ---- the pools themselves ---------------------------------------------------

CUresult gs_cu_pool_create(GS_FN(cuMemPoolCreate) real, CUmemoryPool *ret_pool, const CUmemPoolProps *props)
{
	CUresult r;
	unsigned gpu = 0;
	bool host = props && props->location.type != CU_MEM_LOCATION_TYPE_DEVICE;

	if (props && !host) {
		r = gs_place_device(props->location.id, &gpu);
		if (r != CUDA_SUCCESS)
			return r;
	}
	r = real(ret_pool, props);
	if (r == CUDA_SUCCESS)
		find(*ret_pool, gpu, host);
	return r;
}

CUresult gs_cu_pool_destroy(GS_FN(cuMemPoolDestroy) real, CUmemoryPool pool)
{
	struct pool *p = NULL;
	CUresult r;

	// Out of the table before the driver can give the handle away again.
	pthread_mutex_lock(&lock);
	for (int i = 0; i < POOLS && !p; i++)
		if (pools[i].used && pool && pools[i].handle == pool)
			p = &pools[i];
	if (p)
		p->handle = NULL;
	pthread_mutex_unlock(&lock);
	r = real(pool);
	if (p && r != CUDA_SUCCESS) {
		pthread_mutex_lock(&lock);
		p->handle = pool;
		pthread_mutex_unlock(&lock);
	} else if (p) {
		settle(p);
	}
	return r;
}

// settle_handle settles a pool that is known.
static void settle_handle(CUmemoryPool handle)
{
	struct pool *p = NULL;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < POOLS && !p; i++)
		if (pools[i].used && handle && pools[i].handle == handle)
			p = &pools[i];
	pthread_mutex_unlock(&lock);
	if (p && !p->host)
		settle(p);
}

CUresult gs_cu_pool_trim(GS_FN(cuMemPoolTrimTo) real, CUmemoryPool pool, size_t keep)
{
	CUresult r = real(pool, keep);

	if (r == CUDA_SUCCESS)
		settle_handle(pool);
	return r;
}

CUresult gs_cu_pool_set_attribute(GS_FN(cuMemPoolSetAttribute) real, CUmemoryPool pool,
				  CUmemPool_attribute attribute, void *value)
{
	CUresult r = real(pool, attribute, value);

	if (r == CUDA_SUCCESS)
		settle_handle(pool);
	return r;
}

void gs_pools_forked(void)
{
	memset(pools, 0, sizeof(pools));
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}
