// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Code on the device: which modules and libraries have theirs there, and what the
// first use of one is charged.
//
// A driver loads code late: when a kernel is first launched, or a function or a
// global variable is asked for. What it takes then no call tells, so it is a guess
// (guess.h) of the page's module_bytes, or of the image's size where the image tells
// it. Where the page has none, code costs nothing.

#ifndef GS_CODE_H
#define GS_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "context.h"

// A use of code around the driver's call.
struct gs_code_use {
	struct gs_place place;
	uint64_t owner; // handle of the module or library, 0 while it has none
	uint64_t image; // its size, where it has no handle
	uint64_t bytes; // of the code, 0 if it is there
	uint64_t local; // of local memory
	uint64_t need;	// what all threads' local memory takes then
	bool loads;	// the call puts the code on the device, surely
};

// gs_code_begin charges what the first use of a module or library may take, on the
// current context's GPU. With surely the call loads the code; else it may, and the
// next use counts as a first one again. On any result but CUDA_SUCCESS the wrapper
// returns that result. gs_code_end follows.
CUresult gs_code_begin(struct gs_code_use *ret_use, uint64_t owner, bool surely);
void gs_code_end(const struct gs_code_use *use, CUresult r);

// gs_code_owner finds the module or library of a function or kernel; the function
// itself stands for one that the driver does not tell of.
uint64_t gs_code_owner(CUfunction f);

// gs_code_load is gs_code_begin of what is being loaded, for gs_code_loaded after the
// driver has answered, which gives it its handle.
CUresult gs_code_load(struct gs_code_use *ret_use, uint64_t image);
void gs_code_loaded(struct gs_code_use *use, uint64_t owner, bool library, CUresult r);

// gs_code_gone forgets one that the driver has unloaded.
void gs_code_gone(uint64_t owner);

// gs_code_forget has each function looked at anew at its next launch: a context has
// gone, or code has.
void gs_code_forget(void);

// gs_code_image and gs_code_file return the bytes that an image takes on the device,
// as far as its own header tells: 0 for what the driver compiles or chooses from.
uint64_t gs_code_image(const void *image);
uint64_t gs_code_file(const char *path);

// ---- launches ---------------------------------------------------------------

#define GS_CODE_SEEN 1024

// Functions that have been launched: their code is there. A place is the function's
// handle and its GPU.
extern uint64_t gs_code_seen[GS_CODE_SEEN];

static inline uint64_t gs_code_word(unsigned gpu, CUfunction f)
{
	return (uint64_t)(uintptr_t)f ^ (uint64_t)gpu << 58;
}

static inline uint64_t *gs_code_place(uint64_t word)
{
	return &gs_code_seen[(word >> 4 ^ word >> 14) % GS_CODE_SEEN];
}

// gs_code_launched tells whether a function has been launched on a GPU, and nothing
// has gone since.
static inline bool gs_code_launched(unsigned gpu, CUfunction f)
{
	uint64_t word = gs_code_word(gpu, f);

	return __atomic_load_n(gs_code_place(word), __ATOMIC_RELAXED) == word;
}

// gs_code_first charges what the first launch of a function may take: its code, and
// local memory. It is followed by gs_code_first_end with the driver's result; on any
// result of its own but CUDA_SUCCESS it is not, and the launch must not be made.
CUresult gs_code_first(struct gs_code_use *ret_use, unsigned gpu, CUfunction f);
void gs_code_first_end(const struct gs_code_use *use, unsigned gpu, CUfunction f, CUresult r);

#endif
