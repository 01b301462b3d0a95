// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Start of the NVML library in a process.

#include "attach.h"
#include "nvml_bodies.h"
#include "nvml_depth.h"
#include "nvml_hooks.h"
#include "resolve.h"

#define REAL_LIBRARY "/run/gpushare/driver/nvml.real"

// Ties us to the real library: a dependency without a reference is dropped by
// the linker.
static __typeof__(nvmlSystemGetDriverVersion) *volatile anchor __attribute__((used, retain)) = nvmlSystemGetDriverVersion;

__thread int gs_nvml_depth;

static uintptr_t text_low, text_high;

void *gs_nvml_resolve(int symbol)
{
	return gs_library_symbol(gs_library_open(REAL_LIBRARY), gs_nvml_names[symbol]);
}

static __attribute__((constructor)) void find_real(void)
{
	void *library = gs_library_open(REAL_LIBRARY);
	void **real = (void **)&gs_nvml_real;

	for (int i = 0; i < GS_NVML_SYMBOLS; i++)
		real[i] = gs_library_symbol(library, gs_nvml_names[i]);
	gs_library_hide(gs_nvml_wrappers, real, GS_NVML_HOOKS);
	// Found by the library's own symbol, not by a name that two files may carry.
	gs_library_text((const void *)gs_nvml_real.nvmlInit_v2, &text_low, &text_high);
}

bool gs_nvml_is_inner(const void *address)
{
	uintptr_t at = (uintptr_t)address;

	return gs_nvml_depth > 0 || (at >= text_low && at < text_high);
}

void gs_forked(void)
{
	gs_attach_keep();
}
