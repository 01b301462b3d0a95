// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Finding the real library's functions. Both are DT_NEEDED of ours by absolute
// path, so they are loaded by the time that a constructor of ours runs.

#ifndef GS_RESOLVE_H
#define GS_RESOLVE_H

#include <stddef.h>
#include <stdint.h>

#define GS_EXPORT __attribute__((visibility("default")))

// The real function of a symbol, NULL if the real library lacks it. The late
// look-up serves callers that run before our constructor.
#define GS_REAL(lib, LIB, symbol)                                             \
	(__builtin_expect(gs_##lib##_real.symbol != NULL, 1)                  \
		 ? gs_##lib##_real.symbol                                     \
		 : (__typeof__(&symbol))gs_##lib##_resolve(GS_##LIB##_##symbol))

// gs_cuda_resolve and gs_nvml_resolve look one symbol up, by its number.
void *gs_cuda_resolve(int symbol);
void *gs_nvml_resolve(int symbol);

// gs_library_open returns a handle of the real library at path, which must be
// loaded already, or NULL.
void *gs_library_open(const char *path);

// gs_library_symbol returns the address of name in the library, or NULL.
void *gs_library_symbol(void *library, const char *name);

// gs_library_text sets the bounds of the executable segments of the library
// that holds address. It returns 0, or -1 if there is no such library.
int gs_library_text(const void *address, uintptr_t *ret_low, uintptr_t *ret_high);

// gs_library_hide takes those of our n exported functions out of our symbol table
// whose real one is NULL, so that dlsym finds no more than in the real library. The
// dynamic linker reads the table in place.
void gs_library_hide(void *const *wrappers, void *const *real, int n);

#endif
