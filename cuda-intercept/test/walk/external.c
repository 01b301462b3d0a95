// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// External memory: a descriptor that nobody of the container has made, as another
// container's or another driver's is; here the real library makes it behind our back.

#include "walk.h"

#define UNIT (2 * MIB)

// The layout of CUDA_EXTERNAL_MEMORY_HANDLE_DESC, which the header leaves open.
struct memory_desc {
	int type;
	union {
		int fd;
		void *pair[2];
	} handle;
	unsigned long long size;
	unsigned int flags, reserved[16];
};

static void *real(const char *name)
{
	void *fn = dlsym(dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD), name);

	return fn ?: harness_symbol(name); // which says what a driver lacks
}

#define REAL(name) ((__typeof__(&name))real(#name))

static CUresult take_external(void *out, size_t bytes)
{
	CUmemAllocationProp prop = {.type = 1,
				    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	struct memory_desc d = {.type = 1, .size = (bytes + UNIT - 1) / UNIT * UNIT};
	CUmemGenericAllocationHandle handle;
	CUresult r = REAL(cuMemCreate)(&handle, d.size, &prop, 0);

	if (r != CUDA_SUCCESS)
		return r;
	r = REAL(cuMemExportToShareableHandle)(&d.handle.fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	for (int i = 0; i < 4 && REAL(cuMemRelease)(handle) != CUDA_SUCCESS; i++)
		; // what is left of it nobody of ours knows
	if (r != CUDA_SUCCESS)
		return r;
	r = W(cuImportExternalMemory)(out, (const void *)&d);
	if (r != CUDA_SUCCESS)
		close(d.handle.fd); // else it is the driver's
	return r;
}

static CUresult give_external(void *out)
{
	return W(cuDestroyExternalMemory)(*(CUexternalMemory *)out);
}

WALK(cuDestroyExternalMemory, NULL, take_external, give_external, NULL);
