// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What a context's limits make the driver take: stacks of all threads that the GPU
// can hold, and the buffers of printf and malloc.

#ifndef GS_HEAP_H
#define GS_HEAP_H

#include <stdint.h>

#include "cuda_abi.h"

// gs_heap_threads is how many bytes one byte of stack more costs on the GPU; 0 where
// limits cost nothing, or it is not known.
uint64_t gs_heap_threads(unsigned gpu);

// gs_heap_lacks returns how many bytes of local memory the first launch of a function
// in the current context takes beyond what that context has; ret_need is what it has
// then.
uint64_t gs_heap_lacks(unsigned gpu, CUfunction f, uint64_t *ret_need);

// gs_heap_has notes that the current context, with that serial number, has need bytes
// of local memory.
void gs_heap_has(unsigned gpu, uint32_t ctx, uint64_t need);

#endif
