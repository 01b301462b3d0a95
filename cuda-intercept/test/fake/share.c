// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What the stand-in driver shares and what keeps its memory beside handles and mappings,
// in one process. A descriptor that it makes holds its memory as long as it is open.

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"

// What refers to a memory for another: an owner's binding, a tile, a buffer, an opened
// pointer, a descriptor.
struct keep {
	struct keep *next;
	int kind, dev;
	unsigned long long owner, at, bytes;
	struct thing *memory;
};

enum { KEEP_BINDING, KEEP_ENDPOINT, KEEP_TILE, KEEP_EXTERNAL, KEEP_BUFFER, KEEP_OPENED, KEEP_FILE };

static struct keep *keeps;
static unsigned long long next_name = 0x5000;

static void keep(int kind, unsigned long long owner, int dev, unsigned long long at, unsigned long long bytes,
		 struct thing *memory)
{
	struct keep *k = calloc(1, sizeof(*k));

	*k = (struct keep){keeps, kind, dev, owner, at, bytes, memory};
	keeps = k;
	memory->refs++;
}

// unkeep ends what an owner keeps in a range; it returns how many there were.
static int unkeep(int kind, unsigned long long owner, int dev, unsigned long long at, unsigned long long bytes)
{
	int n = 0;

	for (struct keep **k = &keeps; *k;) {
		struct keep *gone = *k;

		if (gone->kind != kind || gone->owner != owner || (dev >= 0 && gone->dev != dev) || gone->at < at ||
		    gone->at + gone->bytes > at + bytes) {
			k = &gone->next;
			continue;
		}
		*k = gone->next;
		fake_unref(gone->memory);
		free(gone);
		n++;
	}
	return n;
}

#define EVERYTHING -1, 0, 1ULL << 62

// ---- by descriptor and by bytes --------------------------------------------------

static struct thing *behind(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	for (struct keep *k = keeps; k; k = k->next)
		if (k->kind == KEEP_FILE && k->owner == st.st_ino)
			return k->memory;
	return NULL;
}

static int file_of(struct thing *memory)
{
	int fd = memfd_create("fake", MFD_CLOEXEC);
	struct stat st;

	fstat(fd, &st);
	keep(KEEP_FILE, st.st_ino, 0, 0, 0, memory);
	return fd;
}

// The stand-in is told when a descriptor is closed.
void fake_closed(int fd)
{
	struct stat st;

	fstat(fd, &st);
	close(fd);
	unkeep(KEEP_FILE, st.st_ino, EVERYTHING);
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
				      unsigned long long flags)
{
	struct thing *t = fake_find(THING_MEMORY, handle);

	ENTER();
	if (!t || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		memcpy(memset(out, 0, 64), &t->key, sizeof(t->key));
	else
		*(int *)out = file_of(t);
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *in, CUmemAllocationHandleType type)
{
	unsigned long long key = 0;
	struct thing *t;

	ENTER();
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		memcpy(&key, in, sizeof(key));
	t = type == CU_MEM_HANDLE_TYPE_FABRIC ? fake_find(THING_MEMORY, key) : behind((int)(intptr_t)in);
	if (!t)
		return CUDA_ERROR_INVALID_VALUE;
	t->refs++;
	*handle = t->key;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct thing *t = fake_find(THING_MEMORY, handle);

	ENTER();
	if (!t)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = (CUmemAllocationProp){.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, t->dev}};
	return CUDA_SUCCESS;
}

static struct thing *mapped_at(unsigned long long ptr)
{
	for (struct thing *t = fake_things; t; t = t->next)
		if (t->kind == THING_MAPPING && ptr >= t->key && ptr < t->key + t->bytes)
			return t->memory;
	return NULL;
}

CUresult cuMemGetHandleForAddressRange(void *out, CUdeviceptr ptr, size_t bytes, CUmemRangeHandleType type,
				       unsigned long long flags)
{
	struct thing *t = fake_find(THING_POINTER, ptr);

	ENTER();
	if (!t)
		t = mapped_at(ptr);
	if (!t || !bytes || type != 1 || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)out = file_of(t);
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
	ENTER();
	for (struct thing *t = fake_things; t; t = t->next) {
		if (t->kind != THING_POINTER || ptr < t->key || ptr >= t->key + t->bytes)
			continue;
		*base = t->key;
		*bytes = t->bytes;
		return CUDA_SUCCESS;
	}
	for (struct keep *k = keeps; k; k = k->next) {
		if (k->kind != KEEP_OPENED || ptr != k->owner)
			continue;
		*base = ptr;
		*bytes = k->memory->bytes;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr ptr)
{
	struct thing *t = fake_find(THING_POINTER, ptr);

	ENTER();
	if (!t)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(memset(handle, 0, sizeof(*handle)), &t->key, sizeof(t->key));
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	unsigned long long key;
	struct thing *t;

	ENTER();
	memcpy(&key, &handle, sizeof(key));
	t = fake_find(THING_POINTER, key);
	if (!t || flags != 1)
		return CUDA_ERROR_INVALID_HANDLE;
	*ptr = key + (1ULL << 40);
	keep(KEEP_OPENED, *ptr, 0, 0, 0, t);
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *ptr, CUipcMemHandle handle, unsigned int flags)
{
	return cuIpcOpenMemHandle_v2(ptr, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	ENTER();
	for (struct keep **k = &keeps; *k; k = &(*k)->next) {
		struct keep *gone = *k;

		if (gone->kind != KEEP_OPENED || gone->owner != ptr)
			continue;
		*k = gone->next;
		fake_unref(gone->memory);
		free(gone);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

// ---- external memory ---------------------------------------------------------------

struct memory_desc {
	int type;
	union {
		int fd;
		void *pair[2];
	} handle;
	unsigned long long size;
};

CUresult cuImportExternalMemory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
	const struct memory_desc *d = (const void *)desc;
	struct thing *t;

	ENTER();
	if (!d || !d->size)
		return CUDA_ERROR_INVALID_VALUE;
	t = behind(d->handle.fd);
	if (!t) { // another driver's
		t = fake_add(THING_MEMORY, 0, d->size);
		fake_use(0, (long long)d->size);
		t->refs = 0;
	}
	*out = (CUexternalMemory)(uintptr_t)next_name++;
	keep(KEEP_EXTERNAL, (uintptr_t)*out, 0, 0, 0, t);
	return CUDA_SUCCESS;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
	ENTER();
	return unkeep(KEEP_EXTERNAL, (uintptr_t)memory, EVERYTHING) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult map_external(unsigned long long *key, CUexternalMemory memory)
{
	for (struct keep *k = keeps; k; k = k->next) {
		if (k->kind != KEEP_EXTERNAL || k->owner != (uintptr_t)memory)
			continue;
		*key = next_name++;
		keep(KEEP_BUFFER, *key, 0, 0, 0, k->memory);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *ptr, CUexternalMemory memory,
					 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	ENTER();
	(void)desc;
	return map_external(ptr, memory);
}

CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *array, CUexternalMemory memory,
						 const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
	ENTER();
	(void)desc;
	return map_external((unsigned long long *)array, memory);
}

int fake_unmapped(unsigned long long key)
{
	return unkeep(KEEP_BUFFER, key, EVERYTHING);
}

// ---- bindings ------------------------------------------------------------------------

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *prop)
{
	struct thing *t;

	ENTER();
	(void)prop;
	t = fake_add(THING_MEMORY, -1, 0);
	*handle = t->key;
	return CUDA_SUCCESS;
}

void fake_object_gone(unsigned long long key)
{
	unkeep(KEEP_BINDING, key, EVERYTHING);
}

static CUresult bind(int kind, unsigned long long owner, int dev, unsigned long long at, struct thing *memory,
		     unsigned long long bytes)
{
	if (!memory || memory->dev < 0)
		return CUDA_ERROR_INVALID_VALUE;
	keep(kind, owner, dev, at, bytes, memory);
	return CUDA_SUCCESS;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t at, CUmemGenericAllocationHandle handle,
			    size_t offset, size_t bytes, unsigned long long flags)
{
	ENTER();
	(void)offset;
	(void)flags;
	return bind(KEEP_BINDING, object, 0, at, fake_find(THING_MEMORY, handle), bytes);
}

CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle object, CUdevice dev, size_t at,
			       CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
			       unsigned long long flags)
{
	ENTER();
	(void)offset;
	(void)flags;
	return bind(KEEP_BINDING, object, dev, at, fake_find(THING_MEMORY, handle), bytes);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t at, CUdeviceptr ptr, size_t bytes,
			     unsigned long long flags)
{
	ENTER();
	(void)flags;
	return bind(KEEP_BINDING, object, 0, at, mapped_at(ptr), bytes);
}

CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle object, CUdevice dev, size_t at, CUdeviceptr ptr,
				size_t bytes, unsigned long long flags)
{
	ENTER();
	(void)flags;
	return bind(KEEP_BINDING, object, dev, at, mapped_at(ptr), bytes);
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice dev, size_t at, size_t bytes)
{
	ENTER();
	return unkeep(KEEP_BINDING, object, dev, at, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogicalEndpointBindMem(CUlogicalEndpointId id, CUdevice dev, cuuint64_t at,
				  CUmemGenericAllocationHandle handle, cuuint64_t offset, cuuint64_t bytes,
				  unsigned long long flags)
{
	ENTER();
	(void)offset;
	(void)flags;
	return bind(KEEP_ENDPOINT, id, dev, at, fake_find(THING_MEMORY, handle), bytes);
}

CUresult cuLogicalEndpointBindAddr(CUlogicalEndpointId id, CUdevice dev, cuuint64_t at, void *ptr, cuuint64_t bytes,
				   unsigned long long flags)
{
	ENTER();
	(void)flags;
	return bind(KEEP_ENDPOINT, id, dev, at, mapped_at((uintptr_t)ptr), bytes);
}

CUresult cuLogicalEndpointUnbind(CUlogicalEndpointId id, CUdevice dev, cuuint64_t at, cuuint64_t bytes)
{
	ENTER();
	return unkeep(KEEP_ENDPOINT, id, dev, at, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogicalEndpointDestroy(CUlogicalEndpointId id)
{
	ENTER();
	unkeep(KEEP_ENDPOINT, id, EVERYTHING);
	return CUDA_SUCCESS;
}

struct map_info {
	int resource_type;
	unsigned long long array;
	int subresource_type;
	union {
		unsigned int level[8];
		unsigned long long tail[3];
	} where;
	int operation, handle_type;
	CUmemGenericAllocationHandle handle;
	unsigned long long offset;
	unsigned int devices, flags, reserved[2];
};

CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int n, CUstream stream)
{
	const struct map_info *info = (const void *)list;

	ENTER();
	(void)stream;
	for (unsigned int i = 0; i < n; i++)
		if (info[i].operation == 1)
			bind(KEEP_TILE, info[i].array, 0, 0, fake_find(THING_MEMORY, info[i].handle), 0);
	return CUDA_SUCCESS;
}

CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int n, CUstream stream)
{
	return cuMemMapArrayAsync(list, n, stream);
}

void fake_tiles_gone(unsigned long long array)
{
	unkeep(KEEP_TILE, array, EVERYTHING);
}

CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
	ENTER();
	(void)pid;
	(void)args;
	return CUDA_SUCCESS;
}
