// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Memory of the stand-in driver that lives as long as its handles and mappings,
// and arrays.

#include "fake.h"

void fake_unref(struct thing *memory)
{
	unsigned long long key = memory->key;

	if (--memory->refs)
		return;
	if (memory->dev >= 0)
		fake_use(memory->dev, -(long long)memory->bytes);
	fake_drop(memory);
	fake_object_gone(key);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
		     unsigned long long flags)
{
	struct thing *t;

	(void)flags;
	ENTER();
	if (!prop || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&fake_lock);
	t = fake_add(THING_MEMORY, prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1,
		     bytes);
	t->ctx = NULL;
	if (t->dev >= 0)
		fake_use(t->dev, (long long)bytes);
	*handle = t->key;
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct thing *t;

	ENTER();
	pthread_mutex_lock(&fake_lock);
	t = fake_find(THING_MEMORY, handle);
	if (t)
		fake_unref(t);
	pthread_mutex_unlock(&fake_lock);
	return t ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	struct thing *t, *m;

	(void)offset;
	(void)flags;
	ENTER();
	pthread_mutex_lock(&fake_lock);
	t = fake_find(THING_MEMORY, handle);
	if (t && !fake_find(THING_MAPPING, ptr)) {
		m = fake_add(THING_MAPPING, t->dev, bytes);
		m->ctx = NULL;
		m->key = ptr;
		m->memory = t;
		t->refs++;
	} else {
		t = NULL;
	}
	pthread_mutex_unlock(&fake_lock);
	return t ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	CUdeviceptr at = ptr;
	struct thing *m;

	ENTER();
	pthread_mutex_lock(&fake_lock);
	while (at - ptr < bytes && (m = fake_find(THING_MAPPING, at))) {
		at += m->bytes;
		fake_unref(m->memory);
		fake_drop(m);
	}
	pthread_mutex_unlock(&fake_lock);
	return at == ptr + bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	struct thing *m;

	ENTER();
	pthread_mutex_lock(&fake_lock);
	m = fake_find(THING_MAPPING, (unsigned long long)(uintptr_t)address);
	if (m) {
		m->memory->refs++;
		*handle = m->memory->key;
	}
	pthread_mutex_unlock(&fake_lock);
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- arrays: their elements are what they take, each level in units of 512 bytes ---

static CUresult make_array(CUarray *array, unsigned long long bytes)
{
	struct thing *t;

	if (!fake_current)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&fake_lock);
	t = fake_add(THING_ARRAY, fake_current->dev, bytes);
	fake_use(t->dev, (long long)bytes);
	*array = (CUarray)(uintptr_t)t->key;
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS;
}

static CUresult unmake_array(CUarray array)
{
	struct thing *t;

	pthread_mutex_lock(&fake_lock);
	fake_tiles_gone((uintptr_t)array);
	t = fake_find(THING_ARRAY, (uintptr_t)array);
	if (t) {
		fake_use(t->dev, -(long long)t->bytes);
		fake_drop(t);
	}
	pthread_mutex_unlock(&fake_lock);
	return t ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Every test uses float elements.
static unsigned long long array_bytes(unsigned long long w, unsigned long long h, unsigned long long d,
				      unsigned int channels)
{
	return fake_round(w * channels * 4 * (h ? h : 1) * (d ? d : 1), 512);
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
	ENTER();
	return make_array(array, array_bytes(d->Width, d->Height, 0, d->NumChannels));
}

CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
	ENTER();
	return make_array(array, array_bytes(d->Width, d->Height, 0, d->NumChannels));
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	ENTER();
	return make_array(array, array_bytes(d->Width, d->Height, d->Depth, d->NumChannels));
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
	ENTER();
	return make_array(array, array_bytes(d->Width, d->Height, d->Depth, d->NumChannels));
}

CUresult cuArrayDestroy(CUarray array)
{
	ENTER();
	return unmake_array(array);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels)
{
	unsigned long long bytes = 0, w = d->Width, h = d->Height;

	ENTER();
	for (unsigned int i = 0; i < levels; i++, w = w > 1 ? w / 2 : 1, h = h > 1 ? h / 2 : h)
		bytes += array_bytes(w, h, d->Depth, d->NumChannels);
	return make_array((CUarray *)array, bytes);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	ENTER();
	if (fake_unmapped((uintptr_t)array))
		return CUDA_SUCCESS;
	return unmake_array((CUarray)array);
}

// ---- look-up: a few names are enough to tell routing by pointer --------------------

CUresult cuGetProcAddress_v2(const char *name, void **fn, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	(void)status;
	*fn = NULL;
	if (!strcmp(name, "cuMemAlloc"))
		*fn = version < 3020 ? (void *)cuMemAlloc : (void *)cuMemAlloc_v2;
	else if (!strcmp(name, "cuMemAllocAsync"))
		*fn = flags & 2 ? (void *)cuMemAllocAsync_ptsz : (void *)cuMemAllocAsync;
	else if (!strcmp(name, "cuGetProcAddress"))
		*fn = (void *)cuGetProcAddress_v2;
	else if (!strcmp(name, "cuDriverGetVersion"))
		*fn = (void *)cuDriverGetVersion;
	else if (!strcmp(name, "cuInit"))
		*fn = (void *)cuInit;
	return CUDA_SUCCESS;
}
