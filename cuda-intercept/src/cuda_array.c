// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// CUDA arrays. Their layout is the driver's secret: what is charged is their
// content, each row rounded up, which no driver undercuts.

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "ledger.h"

// Take no device memory when they are made.
#define SPARSE 0x40U
#define DEFERRED_MAPPING 0x80U

#define ROW_ALIGN 32U

struct shape {
	uint64_t width, height, depth, channels;
	CUarray_format format;
	unsigned int flags;
};

// element_bytes is one channel of one element; the widest there is for a format
// not known here.
static uint64_t element_bytes(CUarray_format format)
{
	switch ((unsigned int)format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 16;
	}
}

static uint64_t at_least_one(uint64_t n)
{
	return n ? n : 1;
}

static uint64_t half(uint64_t n)
{
	return n > 1 ? n / 2 : n;
}

// multiply saturates.
static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t level_bytes(const struct shape *s)
{
	uint64_t row = multiply(at_least_one(s->width), multiply(at_least_one(s->channels), element_bytes(s->format)));

	row = row > UINT64_MAX - ROW_ALIGN ? UINT64_MAX : (row + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
	return multiply(row, multiply(at_least_one(s->height), at_least_one(s->depth)));
}

static uint64_t shape_bytes(struct shape s, unsigned int levels)
{
	uint64_t bytes = 0;

	if (s.flags & (SPARSE | DEFERRED_MAPPING))
		return 0;
	for (unsigned int i = 0; i < levels && i < 32; i++) {
		if (__builtin_add_overflow(bytes, level_bytes(&s), &bytes))
			return UINT64_MAX;
		s.width = half(s.width);
		s.height = half(s.height);
		if (!(s.flags & 1U)) // of a layered array the layers stay
			s.depth = half(s.depth);
	}
	return gs_granule(bytes);
}

static CUresult finish_array(const struct gs_grant *g, CUarray array, CUresult r)
{
	if (r == CUDA_SUCCESS && gs_grant_record(g, GS_KIND_ARRAY, (uintptr_t)array) < 0) {
		if (gs_cuda_real.cuArrayDestroy)
			gs_cuda_real.cuArrayDestroy(array);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS)
		gs_grant_undo(g);
	return r;
}

static struct shape shape_2d(const CUDA_ARRAY_DESCRIPTOR *d)
{
	return (struct shape){d->Width, d->Height, 0, d->NumChannels, d->Format, 0};
}

static struct shape shape_2d_v1(const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	return (struct shape){d->Width, d->Height, 0, d->NumChannels, d->Format, 0};
}

static struct shape shape_3d(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return (struct shape){d->Width, d->Height, d->Depth, d->NumChannels, d->Format, d->Flags};
}

static struct shape shape_3d_v1(const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	return (struct shape){d->Width, d->Height, d->Depth, d->NumChannels, d->Format, d->Flags};
}

// The four interfaces differ in the descriptor and in nothing else.
#define ARRAY_BODY(body, symbol, descriptor, shape)                                            \
	CUresult body(GS_FN(symbol) real, CUarray *ret_array, const descriptor *d)             \
	{                                                                                      \
		struct gs_grant g;                                                             \
		CUarray array = NULL;                                                          \
		CUresult r = gs_grant_take(&g, d ? shape_bytes(shape(d), 1) : 0);              \
                                                                                               \
		if (r != CUDA_SUCCESS)                                                         \
			return r;                                                              \
		r = real(ret_array ? &array : NULL, d);                                        \
		r = finish_array(&g, array, r);                                                \
		if (r == CUDA_SUCCESS)                                                         \
			*ret_array = array;                                                    \
		return r;                                                                      \
	}

ARRAY_BODY(gs_cu_array_create, cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR, shape_2d)
ARRAY_BODY(gs_cu_array_create_v1, cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1, shape_2d_v1)
ARRAY_BODY(gs_cu_array3d_create, cuArray3DCreate_v2, CUDA_ARRAY3D_DESCRIPTOR, shape_3d)
ARRAY_BODY(gs_cu_array3d_create_v1, cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, shape_3d_v1)

CUresult gs_cu_mipmap_create(GS_FN(cuMipmappedArrayCreate) real, CUmipmappedArray *ret_array,
			     const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels)
{
	struct gs_grant g;
	CUmipmappedArray array = NULL;
	CUresult r = gs_grant_take(&g, d ? shape_bytes(shape_3d(d), levels) : 0);

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_array ? &array : NULL, d, levels);
	if (r == CUDA_SUCCESS && gs_grant_record(&g, GS_KIND_MIPMAP, (uintptr_t)array) < 0) {
		if (gs_cuda_real.cuMipmappedArrayDestroy)
			gs_cuda_real.cuMipmappedArrayDestroy(array);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS)
		gs_grant_undo(&g);
	else
		*ret_array = array;
	return r;
}

// destroyed ends the destruction of an array that was taken out before.
static CUresult destroyed(bool known, const struct gs_entry *e, CUresult r)
{
	struct gs_entry old;

	if (known && r == CUDA_SUCCESS)
		gs_ledger_refund(e->gpu, e->bytes);
	else if (known)
		gs_registry_put(e, &old);
	return r;
}

CUresult gs_cu_array_destroy(GS_FN(cuArrayDestroy) real, CUarray array)
{
	struct gs_entry e;
	bool known = gs_attached() && gs_registry_take(GS_KIND_ARRAY, (uintptr_t)array, &e);

	return destroyed(known, &e, real(array));
}

CUresult gs_cu_mipmap_destroy(GS_FN(cuMipmappedArrayDestroy) real, CUmipmappedArray array)
{
	struct gs_entry e;
	bool known = gs_attached() && gs_registry_take(GS_KIND_MIPMAP, (uintptr_t)array, &e);

	return destroyed(known, &e, real(array));
}
