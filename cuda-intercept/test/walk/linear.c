// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Linear memory and arrays.

#include "walk.h"

static CUresult take_alloc(void *out, size_t bytes)
{
	return W(cuMemAlloc_v2)(out, bytes);
}

static CUresult take_alloc_v1(void *out, size_t bytes)
{
	return W(cuMemAlloc)(out, (unsigned int)bytes);
}

static CUresult take_managed(void *out, size_t bytes)
{
	return W(cuMemAllocManaged)(out, bytes, 1);
}

static CUresult give_pointer(void *out)
{
	return W(cuMemFree_v2)(*(CUdeviceptr *)out);
}

static CUresult give_pointer_v1(void *out)
{
	return W(cuMemFree)(*(CUdeviceptr_v1 *)out);
}

WALK(cuMemAlloc_v2, NULL, take_alloc, give_pointer, NULL);
WALK(cuMemAlloc, NULL, take_alloc_v1, give_pointer_v1, NULL);
WALK(cuMemAllocManaged, NULL, take_managed, give_pointer, NULL);
WALK(cuMemFree_v2, NULL, take_alloc, give_pointer, NULL);
WALK(cuMemFree, NULL, take_alloc_v1, give_pointer_v1, NULL);

#define ROW 1000U

struct pitched {
	CUdeviceptr ptr;
	size_t pitch;
};

struct pitched_v1 {
	CUdeviceptr_v1 ptr;
	unsigned int pitch;
};

static CUresult take_pitch(void *out, size_t bytes)
{
	struct pitched *o = out;

	return W(cuMemAllocPitch_v2)(&o->ptr, &o->pitch, ROW, bytes / ROW, 4);
}

static CUresult take_pitch_v1(void *out, size_t bytes)
{
	struct pitched_v1 *o = out;

	return W(cuMemAllocPitch)(&o->ptr, &o->pitch, ROW, (unsigned int)bytes / ROW, 4);
}

WALK(cuMemAllocPitch_v2, NULL, take_pitch, give_pointer, NULL);
WALK(cuMemAllocPitch, NULL, take_pitch_v1, give_pointer_v1, NULL);

// Rows that no rounding changes: what is counted of an array is its content.
#define WIDTH 256U

static CUresult take_array(void *out, size_t bytes)
{
	CUDA_ARRAY_DESCRIPTOR d = {WIDTH, bytes / WIDTH / 4, CU_AD_FORMAT_FLOAT, 1};

	return W(cuArrayCreate_v2)(out, &d);
}

static CUresult take_array_v1(void *out, size_t bytes)
{
	CUDA_ARRAY_DESCRIPTOR_v1 d = {WIDTH, (unsigned int)bytes / WIDTH / 4, CU_AD_FORMAT_FLOAT, 1};

	return W(cuArrayCreate)(out, &d);
}

static CUresult take_array3d(void *out, size_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {WIDTH, 64, bytes / WIDTH / 64 / 4, CU_AD_FORMAT_FLOAT, 1, 0};

	return W(cuArray3DCreate_v2)(out, &d);
}

static CUresult take_array3d_v1(void *out, size_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR_v1 d = {WIDTH, 64, (unsigned int)bytes / WIDTH / 64 / 4, CU_AD_FORMAT_FLOAT, 1, 0};

	return W(cuArray3DCreate)(out, &d);
}

static CUresult take_mipmap(void *out, size_t bytes)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {WIDTH, bytes / WIDTH / 4 / 256 * 256, 0, CU_AD_FORMAT_FLOAT, 1, 0};

	return W(cuMipmappedArrayCreate)(out, &d, 4);
}

static CUresult give_array(void *out)
{
	return W(cuArrayDestroy)(*(CUarray *)out);
}

static CUresult give_mipmap(void *out)
{
	return W(cuMipmappedArrayDestroy)(*(CUmipmappedArray *)out);
}

WALK(cuArrayCreate_v2, NULL, take_array, give_array, NULL);
WALK(cuArrayCreate, NULL, take_array_v1, give_array, NULL);
WALK(cuArray3DCreate_v2, NULL, take_array3d, give_array, NULL);
WALK(cuArray3DCreate, NULL, take_array3d_v1, give_array, NULL);
WALK(cuArrayDestroy, NULL, take_array, give_array, NULL);
WALK(cuMipmappedArrayCreate, NULL, take_mipmap, give_mipmap, NULL);
WALK(cuMipmappedArrayDestroy, NULL, take_mipmap, give_mipmap, NULL);
