// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Limits of a context that cost device memory. What they cost beyond the driver's
// default is charged to the context before the driver is asked.

#include <errno.h>

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "heap.h"
#include "ledger.h"

// The registry's names of a context's limits; handles are aligned to more. LOCAL is
// the local memory that launches have made the driver take: no charge, link is its
// bytes.
#define LOCAL 3U

// Stacks are given out in these.
#define STACK_UNIT 512U

uint64_t gs_heap_threads(unsigned gpu)
{
	return __atomic_load_n(&gs_self.limits->gpu[gpu].stack_threads, __ATOMIC_RELAXED);
}

static uint64_t key_of(CUcontext ctx, unsigned limit)
{
	return (uint64_t)(uintptr_t)ctx + limit;
}

static uint64_t beyond(uint64_t value, uint64_t base)
{
	return value > base ? value - base : 0;
}

// stacks returns what stacks of that many bytes take; it saturates.
static uint64_t stacks(unsigned gpu, uint64_t bytes, uint64_t base)
{
	uint64_t up, all;

	if (__builtin_add_overflow(bytes, STACK_UNIT - 1, &up) ||
	    __builtin_mul_overflow(beyond(up - up % STACK_UNIT, base), gs_heap_threads(gpu), &all))
		return UINT64_MAX;
	return all;
}

static uint64_t cost(unsigned gpu, CUlimit limit, uint64_t value, uint64_t base)
{
	return limit == CU_LIMIT_STACK_SIZE ? stacks(gpu, value, base) : beyond(value, base);
}

static uint64_t limit_now(CUlimit limit)
{
	size_t value = 0;

	if (!gs_cuda_real.cuCtxGetLimit || gs_cuda_real.cuCtxGetLimit(&value, limit) != CUDA_SUCCESS)
		return UINT64_MAX; // then nothing is known to be beyond it
	return value;
}

static CUcontext current(void)
{
	CUcontext ctx = NULL;

	if (!gs_cuda_real.cuCtxGetCurrent || gs_cuda_real.cuCtxGetCurrent(&ctx) != CUDA_SUCCESS)
		return NULL;
	return ctx;
}

// take removes a limit's entry, so that whoever sets it at the same time cannot give
// the same bytes back; a new one's link is the driver's default.
static void take(struct gs_entry *ret, CUcontext ctx, CUlimit limit, const struct gs_place *place)
{
	if (gs_registry_take(GS_KIND_HEAP, key_of(ctx, limit), ret))
		return;
	*ret = (struct gs_entry){
		.key = key_of(ctx, limit),
		.link = limit_now(limit),
		.ctx = place->ctx,
		.gpu = (uint8_t)place->gpu,
		.kind = GS_KIND_HEAP,
	};
}

static void put(const struct gs_entry *e)
{
	struct gs_entry old;
	int r = gs_registry_put(e, &old);

	if (r < 0)
		gs_ledger_refund(e->gpu, e->bytes);
	else if (old.kind != GS_KIND_NONE)
		gs_ledger_refund(old.gpu, old.bytes);
}

CUresult gs_cu_ctx_set_limit(GS_FN(cuCtxSetLimit) real, CUlimit limit, size_t value)
{
	struct gs_place place;
	struct gs_entry e;
	CUcontext ctx;
	uint64_t want, more;
	CUresult r;

	if ((limit != CU_LIMIT_STACK_SIZE && limit != CU_LIMIT_PRINTF_FIFO_SIZE && limit != CU_LIMIT_MALLOC_HEAP_SIZE) ||
	    gs_place_current(&place) != CUDA_SUCCESS || !gs_heap_threads(place.gpu))
		return real(limit, value);
	ctx = current();
	take(&e, ctx, limit, &place);
	want = cost(place.gpu, limit, value, e.link);
	more = beyond(want, e.bytes);
	// A value that is no limit at all is the driver's to refuse.
	if (want != UINT64_MAX && gs_charge(place.gpu, more) < 0) {
		put(&e);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = real(limit, value);
	if (r != CUDA_SUCCESS) {
		if (want != UINT64_MAX)
			gs_ledger_refund(place.gpu, more);
		put(&e);
		return r;
	}
	if (want == UINT64_MAX)
		want = e.bytes; // seen in the driver's figure
	gs_ledger_refund(place.gpu, beyond(e.bytes, want));
	e.bytes = want;
	put(&e);
	if (limit == CU_LIMIT_STACK_SIZE)
		gs_registry_take(GS_KIND_HEAP, key_of(ctx, LOCAL), &e);
	return r;
}

// ---- local memory of kernels --------------------------------------------------

uint64_t gs_heap_lacks(unsigned gpu, CUfunction f, uint64_t *ret_need)
{
	struct gs_entry stack, local;
	CUcontext ctx = current();
	uint64_t has = 0, base;
	int bytes = 0;

	*ret_need = 0;
	if (!gs_heap_threads(gpu) || !ctx || !gs_cuda_real.cuFuncGetAttribute ||
	    gs_cuda_real.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f) != CUDA_SUCCESS || bytes <= 0)
		return 0;
	if (gs_registry_get(GS_KIND_HEAP, key_of(ctx, CU_LIMIT_STACK_SIZE), &stack)) {
		base = stack.link;
		has = stack.bytes;
	} else {
		base = limit_now(CU_LIMIT_STACK_SIZE);
	}
	if (gs_registry_get(GS_KIND_HEAP, key_of(ctx, LOCAL), &local) && local.link > has)
		has = local.link;
	*ret_need = stacks(gpu, (uint64_t)bytes, base);
	return beyond(*ret_need, has);
}

void gs_heap_has(unsigned gpu, uint32_t ctx, uint64_t need)
{
	struct gs_entry e = {
		.key = key_of(current(), LOCAL),
		.link = need,
		.ctx = ctx,
		.gpu = (uint8_t)gpu,
		.kind = GS_KIND_HEAP,
	};

	put(&e);
}
