// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// cuGetProcAddress: which of several functions a name means depends on version
// and flags, by rules that are the driver's. So the driver answers, and if its
// answer is the address of a hooked function it is replaced by our wrapper. A
// real driver answers with the exported function itself.

#include "cuda_bodies.h"
#include "cuda_hooks.h"

static void swap(void **fn)
{
	void *const *real = (void *const *)&gs_cuda_real;

	_Static_assert(sizeof(gs_cuda_real) == GS_CUDA_SYMBOLS * sizeof(void *), "an array of pointers");
	for (int i = 0; i < GS_CUDA_HOOKS; i++) {
		if (real[i] == *fn) {
			*fn = gs_cuda_wrappers[i];
			return;
		}
	}
}

CUresult gs_cu_get_proc(GS_FN(cuGetProcAddress) real, const char *name, void **ret_fn, int version, cuuint64_t flags)
{
	CUresult r = real(name, ret_fn, version, flags);

	if (r == CUDA_SUCCESS && ret_fn && *ret_fn)
		swap(ret_fn);
	return r;
}

CUresult gs_cu_get_proc_v2(GS_FN(cuGetProcAddress_v2) real, const char *name, void **ret_fn, int version,
			   cuuint64_t flags, CUdriverProcAddressQueryResult *ret_status)
{
	CUresult r = real(name, ret_fn, version, flags, ret_status);

	if (r == CUDA_SUCCESS && ret_fn && *ret_fn)
		swap(ret_fn);
	return r;
}
