// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// cuGetProcAddress: which of several functions a name means depends on version
// and flags, by rules that are the driver's. So the driver answers, and if its
// answer is the address of a hooked function it is replaced by our wrapper. A
// real driver answers with the exported function itself.

#include <string.h>

#include "attach.h"
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

// ---- private tables ---------------------------------------------------------

// The driver's tables of unnamed functions. The runtime cannot start without some,
// so all pass. These are the ones whose use by runtimes and libraries is known.
static const unsigned char known[][16] = {
	{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9}, // the runtime's own interface
	{0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66}, // hooks for tools
	{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc}, // thread storage for tools
	{0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93}, // storage of contexts
	{0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e}, // checks of contexts
	{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2}, // asked for by runtime 13.5
	{0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9}, // asked for by numba
	{0xda, 0x91, 0x51, 0xd3, 0x3a, 0xe6, 0xcc, 0x41, 0xa5, 0xc0, 0x4f, 0x26, 0xd5, 0x33, 0xe3, 0x28}, // asked for by cuda.core
};

static _Atomic(uint64_t) uncounted;

static bool is_known(const CUuuid *id)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!memcmp(known[i], id->bytes, sizeof(known[i])))
			return true;
	return false;
}

CUresult gs_cu_export_table(GS_FN(cuGetExportTable) real, const void **ret_table, const CUuuid *id)
{
	CUresult r = real(ret_table, id);

	if (r != CUDA_SUCCESS || !id || is_known(id))
		return r;
	atomic_fetch_add_explicit(&uncounted, 1, memory_order_relaxed);
	if (gs_attached())
		gs_export_tables_count();
	return r;
}

void gs_export_tables_count(void)
{
	uint64_t n = atomic_exchange_explicit(&uncounted, 0, memory_order_relaxed);

	if (n)
		__atomic_fetch_add(&gs_self.ledger->export_tables, n, __ATOMIC_RELAXED);
}
