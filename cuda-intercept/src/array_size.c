// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The layout of arrays. On a card it is the driver's secret, but it tells the size
// of an array whose memory comes later (CUDA_ARRAY3D_DEFERRED_MAPPING, 11.6), which
// costs nothing: such a twin is made and asked. A driver that cannot be asked is
// believed to use tiles of 64 bytes by 8 rows. Where every allocation is charged by
// itself an array is its elements, which no driver undercuts.

#include "array.h"
#include "attach.h"
#include "block.h"
#include "cuda_hooks.h"
#include "ledger.h"

#define TILE_BYTES 64U
#define TILE_ROWS 8U

// element_bytes is one channel of one element; 0 for a format not known here.
static uint64_t element_bytes(CUarray_format format)
{
	switch ((unsigned int)format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_UNORM_INT8X2:
	case CU_AD_FORMAT_UNORM_INT8X4:
	case CU_AD_FORMAT_SNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT8X2:
	case CU_AD_FORMAT_SNORM_INT8X4:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT16X4:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

static uint64_t at_least_one(uint64_t n)
{
	return n ? n : 1;
}

// half leaves 0, a dimension that the array does not have.
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

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return n > UINT64_MAX - to ? UINT64_MAX : (n + to - 1) / to * to;
}

static uint64_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, bool tiled)
{
	// The widest there is, for a format not known here.
	uint64_t element = element_bytes(d->Format) ? element_bytes(d->Format) : 16;
	uint64_t row = multiply(at_least_one(d->Width), multiply(at_least_one(d->NumChannels), element));
	uint64_t rows = at_least_one(d->Height);

	if (tiled) {
		row = round_up(row, TILE_BYTES);
		rows = d->Height ? round_up(rows, TILE_ROWS) : rows;
	}
	return gs_granule(multiply(row, multiply(rows, at_least_one(d->Depth))));
}

// The driver makes no more levels than halving can.
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	uint64_t n = d->Width > d->Height ? d->Width : d->Height;
	unsigned levels = 1;

	if (!(d->Flags & (GS_ARRAY_LAYERED | GS_ARRAY_CUBEMAP)) && d->Depth > n)
		n = d->Depth;
	for (; n > 1; n /= 2)
		levels++;
	return levels;
}

static uint64_t computed(CUDA_ARRAY3D_DESCRIPTOR d, unsigned levels, bool tiled)
{
	uint64_t bytes = 0;

	if (levels > most_levels(&d))
		levels = most_levels(&d);
	for (unsigned i = 0; i < at_least_one(levels); i++) {
		if (__builtin_add_overflow(bytes, level_bytes(&d, tiled), &bytes))
			return UINT64_MAX;
		d.Width = half(d.Width);
		d.Height = half(d.Height);
		if (!(d.Flags & (GS_ARRAY_LAYERED | GS_ARRAY_CUBEMAP))) // layers and faces stay
			d.Depth = half(d.Depth);
	}
	return bytes;
}

// ---- asking -------------------------------------------------------------------

static CUresult ask_array(const CUDA_ARRAY3D_DESCRIPTOR *twin, CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUdevice dev)
{
	CUarray array = NULL;
	CUresult r;

	if (!gs_cuda_real.cuArray3DCreate_v2 || !gs_cuda_real.cuArrayGetMemoryRequirements || !gs_cuda_real.cuArrayDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = gs_cuda_real.cuArray3DCreate_v2(&array, twin);
	if (r != CUDA_SUCCESS)
		return r;
	r = gs_cuda_real.cuArrayGetMemoryRequirements(ret, array, dev);
	gs_cuda_real.cuArrayDestroy(array);
	return r;
}

static CUresult ask_mipmap(const CUDA_ARRAY3D_DESCRIPTOR *twin, unsigned levels, CUDA_ARRAY_MEMORY_REQUIREMENTS *ret,
			   CUdevice dev)
{
	CUmipmappedArray array = NULL;
	CUresult r;

	if (!gs_cuda_real.cuMipmappedArrayCreate || !gs_cuda_real.cuMipmappedArrayGetMemoryRequirements ||
	    !gs_cuda_real.cuMipmappedArrayDestroy)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = gs_cuda_real.cuMipmappedArrayCreate(&array, twin, levels);
	if (r != CUDA_SUCCESS)
		return r;
	r = gs_cuda_real.cuMipmappedArrayGetMemoryRequirements(ret, array, dev);
	gs_cuda_real.cuMipmappedArrayDestroy(array);
	return r;
}

// told returns what the driver says of the array, 0 if nothing.
static uint64_t told(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUDA_ARRAY_MEMORY_REQUIREMENTS need = {0};
	CUDA_ARRAY3D_DESCRIPTOR twin = *d;
	CUdevice dev;
	CUresult r;

	if (!gs_cuda_real.cuCtxGetDevice || gs_cuda_real.cuCtxGetDevice(&dev) != CUDA_SUCCESS)
		return 0;
	twin.Flags |= GS_ARRAY_DEFERRED;
	// A capture on this thread must not see a call of ours.
	if (gs_cuda_real.cuThreadExchangeStreamCaptureMode)
		gs_cuda_real.cuThreadExchangeStreamCaptureMode(&mode);
	r = levels ? ask_mipmap(&twin, levels, &need, dev) : ask_array(&twin, &need, dev);
	if (gs_cuda_real.cuThreadExchangeStreamCaptureMode)
		gs_cuda_real.cuThreadExchangeStreamCaptureMode(&mode);
	return r == CUDA_SUCCESS ? need.size : 0;
}

struct gs_array_size gs_array_measure(unsigned gpu, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	bool card = gs_block_unit(gpu) > GS_CHARGE_GRANULE;
	struct gs_array_size size = {0};

	if (d->Flags & (GS_ARRAY_SPARSE | GS_ARRAY_DEFERRED))
		return size;
	if (card || !element_bytes(d->Format))
		size.bytes = told(d, levels);
	size.told = size.bytes != 0;
	if (!size.told)
		size.bytes = computed(*d, levels, card);
	return size;
}
