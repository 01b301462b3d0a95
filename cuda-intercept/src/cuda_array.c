// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Arrays and mipmapped arrays.

#include "array.h"
#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "grant.h"
#include "vmm.h"

static CUresult begin(struct gs_array_grant *g, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	CUresult r = gs_place_current(&g->place);

	g->bytes = g->link = 0;
	if (r != CUDA_SUCCESS || !d)
		return r;
	return gs_array_take(g, d, levels) < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

// finish records what was made. It returns false if the caller must destroy it
// again, and then call gs_array_failed.
static bool finish(const struct gs_array_grant *g, enum gs_kind kind, uint64_t key)
{
	struct gs_entry old, e = {
		.key = key,
		.bytes = g->bytes,
		.link = g->link,
		.ctx = g->place.ctx,
		.gpu = (uint8_t)g->place.gpu,
		.kind = (uint8_t)kind,
	};

	if (gs_registry_put(&e, &old) < 0)
		return false;
	gs_array_made(g);
	// Freed by a way that we do not watch, and given anew.
	if (old.kind != GS_KIND_NONE)
		gs_entry_refund(&old);
	return true;
}

static CUresult finish_array(const struct gs_array_grant *g, CUarray array, CUarray *ret_array, CUresult r)
{
	if (r == CUDA_SUCCESS && finish(g, GS_KIND_ARRAY, (uintptr_t)array)) {
		*ret_array = array;
		return r;
	}
	if (r == CUDA_SUCCESS) {
		if (gs_cuda_real.cuArrayDestroy)
			gs_cuda_real.cuArrayDestroy(array);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_array_failed(g);
	return r;
}

// The four interfaces differ in the descriptor and in nothing else.
#define SHAPE(d, depth, flags)                                                                   \
	((CUDA_ARRAY3D_DESCRIPTOR){.Width = (d)->Width, .Height = (d)->Height, .Depth = (depth), \
				   .Format = (d)->Format, .NumChannels = (d)->NumChannels, .Flags = (flags)})

#define ARRAY_BODY(body, symbol, descriptor, depth, flags)                         \
	CUresult body(GS_FN(symbol) real, CUarray *ret_array, const descriptor *d) \
	{                                                                          \
		CUDA_ARRAY3D_DESCRIPTOR shape;                                     \
		struct gs_array_grant g;                                           \
		CUarray array = NULL;                                              \
		CUresult r;                                                        \
                                                                                   \
		if (d)                                                             \
			shape = SHAPE(d, depth, flags);                            \
		r = begin(&g, d ? &shape : NULL, 0);                               \
		if (r != CUDA_SUCCESS)                                             \
			return r;                                                  \
		r = real(ret_array ? &array : NULL, d);                            \
		return finish_array(&g, array, ret_array, r);                      \
	}

ARRAY_BODY(gs_cu_array_create, cuArrayCreate_v2, CUDA_ARRAY_DESCRIPTOR, 0, 0)
ARRAY_BODY(gs_cu_array_create_v1, cuArrayCreate, CUDA_ARRAY_DESCRIPTOR_v1, 0, 0)
ARRAY_BODY(gs_cu_array3d_create, cuArray3DCreate_v2, CUDA_ARRAY3D_DESCRIPTOR, d->Depth, d->Flags)
ARRAY_BODY(gs_cu_array3d_create_v1, cuArray3DCreate, CUDA_ARRAY3D_DESCRIPTOR_v1, d->Depth, d->Flags)

CUresult gs_cu_mipmap_create(GS_FN(cuMipmappedArrayCreate) real, CUmipmappedArray *ret_array,
			     const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels)
{
	CUmipmappedArray array = NULL;
	struct gs_array_grant g;
	CUresult r = begin(&g, levels ? d : NULL, levels);

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_array ? &array : NULL, d, levels);
	if (r == CUDA_SUCCESS && finish(&g, GS_KIND_MIPMAP, (uintptr_t)array)) {
		*ret_array = array;
		return r;
	}
	if (r == CUDA_SUCCESS) {
		if (gs_cuda_real.cuMipmappedArrayDestroy)
			gs_cuda_real.cuMipmappedArrayDestroy(array);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_array_failed(&g);
	return r;
}

static bool destroying(enum gs_kind kind, uint64_t key, struct gs_entry *ret_entry)
{
	if (!gs_attached() || !gs_registry_take(kind, key, ret_entry))
		return false;
	gs_array_leaving(ret_entry);
	return true;
}

// destroyed ends the destruction of an array that was taken out before.
static CUresult destroyed(bool known, const struct gs_entry *e, CUresult r)
{
	struct gs_entry old;

	if (known && r == CUDA_SUCCESS)
		gs_entry_refund(e);
	else if (known)
		gs_registry_put(e, &old);
	return r;
}

CUresult gs_cu_array_destroy(GS_FN(cuArrayDestroy) real, CUarray array)
{
	struct gs_entry e;
	bool known = destroying(GS_KIND_ARRAY, (uintptr_t)array, &e);
	CUresult r = real(array);

	if (r == CUDA_SUCCESS && gs_attached())
		gs_tiles_gone((uintptr_t)array);
	return destroyed(known, &e, r);
}

CUresult gs_cu_mipmap_destroy(GS_FN(cuMipmappedArrayDestroy) real, CUmipmappedArray array)
{
	struct gs_entry e;
	bool known = destroying(GS_KIND_MIPMAP, (uintptr_t)array, &e);
	bool buffer = !known && gs_buffer_take((uintptr_t)array, &e);
	CUresult r = real(array);

	if (r == CUDA_SUCCESS && gs_attached())
		gs_tiles_gone((uintptr_t)array);
	return buffer ? gs_buffer_freed(&e, r) : destroyed(known, &e, r);
}
