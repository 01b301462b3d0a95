// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What arrays cost: their size, which is the driver's to lay out, and what they
// occupy of the blocks that it takes.

#ifndef GS_ARRAY_H
#define GS_ARRAY_H

#include <stdbool.h>

#include "context.h"
#include "cuda_abi.h"

#define GS_ARRAY_LAYERED 0x01U
#define GS_ARRAY_CUBEMAP 0x04U
#define GS_ARRAY_SPARSE 0x40U
#define GS_ARRAY_DEFERRED 0x80U

// The size of an array. The driver tells it in units of GS_ARRAY_PAGE: then the array
// may be smaller by less than one.
#define GS_ARRAY_PAGE 65536U
struct gs_array_size {
	uint64_t bytes; // 0: it takes no memory when it is made
	bool told;
};

// gs_array_measure returns the size of an array, or of a mipmapped one if levels is
// not 0, that would be made on the GPU by the current context.
struct gs_array_size gs_array_measure(unsigned gpu, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels);

// An array between its charge and its record.
struct gs_array_grant {
	struct gs_place place;
	uint64_t bytes;
	uint64_t link; // of its entry
};

// gs_array_take charges an array. On -ENOMEM nothing is charged.
int gs_array_take(struct gs_array_grant *g, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels);

// gs_array_made says that the driver has made it, gs_array_failed that it has not.
void gs_array_made(const struct gs_array_grant *g);
void gs_array_failed(const struct gs_array_grant *g);

// gs_array_leaving says that the driver is about to be asked to destroy it,
// gs_array_left that it has: its charge comes back.
void gs_array_leaving(const struct gs_entry *entry);
void gs_array_left(const struct gs_entry *entry);

// gs_arrays_forked forgets everything in a forked child.
void gs_arrays_forked(void);

#endif
