// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Devices and contexts: on which GPU of the limits page a call works, and for
// which context.

#ifndef GS_CONTEXT_H
#define GS_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "registry.h"

// Most device ordinals of one process.
#define GS_DEVICES 64

// Where a call works.
struct gs_place {
	unsigned gpu; // index in the limits page
	uint32_t ctx; // serial number of the current context
};

// gs_place_device finds the GPU of a device ordinal. It returns what the wrapper
// must return if there is none: the driver's own error, or
// CUDA_ERROR_NO_DEVICE for a GPU that the container does not hold.
CUresult gs_place_device(CUdevice dev, unsigned *ret_gpu);

// gs_place_current finds the GPU of the calling thread's context, and charges the
// context on sight if it came about unseen (the CUDA runtime has a private way).
CUresult gs_place_current(struct gs_place *ret_place);

// gs_place_launch is the GPU for the gate: no error, 0 if unknown.
unsigned gs_place_launch(void);

// gs_place_stream is the same for the context of a stream.
unsigned gs_place_stream(CUstream stream);

// gs_context_serial returns a number that no context of this process has had.
uint32_t gs_context_serial(void);

// gs_context_note makes a context known; bytes are already charged and come back
// when it is destroyed. It returns the entry's serial number.
uint32_t gs_context_note(CUcontext ctx, unsigned gpu, uint64_t bytes, bool primary);

// gs_context_dropped gives back what a context, already taken out, has owned.
void gs_context_dropped(const struct gs_entry *context);

// gs_primary_noticed tells whether ctx, seen for the first time, is the primary
// context of dev, and charges it if nobody has.
bool gs_primary_noticed(CUdevice dev, unsigned gpu, CUcontext ctx);

// Forget everything in a forked child.
void gs_context_forked(void);
void gs_primary_forked(void);

#endif
