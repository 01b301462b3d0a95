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

// gs_context_opening counts a context that is about to be made and returns what it
// costs; gs_context_closed says that it is gone, or was not made.
uint64_t gs_context_opening(unsigned gpu);
void gs_context_closed(unsigned gpu);

// gs_context_note makes a context known; what is one of GS_CONTEXT_*. The bytes of one
// of its own are already charged and come back when it is destroyed. It returns the
// entry's serial number.
uint32_t gs_context_note(CUcontext ctx, unsigned gpu, uint64_t bytes, unsigned what);

// gs_context_dropped gives back what a context, already taken out, has owned.
void gs_context_dropped(const struct gs_entry *context);

// gs_context_forget is the same for one whose memory has passed to another.
void gs_context_forget(const struct gs_entry *context);

// gs_primary_noticed tells whether ctx, seen for the first time, is the primary
// context of dev, and charges it if nobody has.
bool gs_primary_noticed(CUdevice dev, unsigned gpu, CUcontext ctx);

// gs_primary_begin charges the primary context of dev before the driver is asked for a
// reference to it, gs_primary_end says what the driver has answered; ctx is its handle,
// NULL if not known. The result of the first is what the wrapper must return if it
// is not CUDA_SUCCESS; else the second follows. It returns the serial number of the
// context's entry, 0 if there is none.
CUresult gs_primary_begin(CUdevice dev, unsigned *ret_gpu);
uint32_t gs_primary_end(CUdevice dev, unsigned gpu, CUcontext ctx, CUresult r);

// gs_primary_ending says that the driver is about to be asked to give a reference up,
// gs_primary_ended that it has.
void gs_primary_ending(CUdevice dev);
void gs_primary_ended(CUdevice dev, unsigned gpu);

// gs_primary_handle returns the handle of the primary context of dev, 0 if not known.
uint64_t gs_primary_handle(CUdevice dev);

// gs_green_dropped gives back what green contexts on dev have owned, whose primary
// context is gone.
void gs_green_dropped(CUdevice dev);

// Forget everything in a forked child.
void gs_context_forked(void);
void gs_primary_forked(void);

#endif
