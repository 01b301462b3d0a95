// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "code.h"

#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "cuda_hooks.h"
#include "guess.h"
#include "heap.h"

// Place of what is known of a module on no GPU in particular.
#define NOWHERE 63U

// Beside an entry's units: the call may have loaded the code, or not.
#define MAYBE (1U << 31)

uint64_t gs_code_seen[GS_CODE_SEEN];

// The entry of a module on a GPU: link is the mark of its newest guess, refs the units
// that were guessed; it goes with its context. NOWHERE: link is the image's size.
static uint64_t key_of(uint64_t owner, unsigned gpu)
{
	return owner ^ (uint64_t)gpu << 58;
}

static uint64_t unit_of(unsigned gpu)
{
	return __atomic_load_n(&gs_self.limits->gpu[gpu].module_bytes, __ATOMIC_RELAXED);
}

static void put(const struct gs_entry *e)
{
	struct gs_entry old;

	// Without room it is a first use again next time.
	gs_registry_put(e, &old);
}

// eager tells whether the driver puts code on the device when it is loaded.
static bool eager(void)
{
	CUmoduleLoadingMode mode = CU_MODULE_EAGER_LOADING;
	const char *asked = getenv("CUDA_MODULE_LOADING");

	// Drivers before 11.7 know no other.
	if (gs_cuda_real.cuModuleGetLoadingMode && gs_cuda_real.cuModuleGetLoadingMode(&mode) != CUDA_SUCCESS)
		return false;
	return mode == CU_MODULE_EAGER_LOADING || (asked && !strcmp(asked, "EAGER"));
}

// charge makes the guess of the use.
static CUresult charge(struct gs_code_use *use)
{
	uint64_t unit = unit_of(use->place.gpu), image = use->image, bytes;
	struct gs_entry e;

	if (!unit)
		return CUDA_SUCCESS;
	// The guess of a call before this one may still stand.
	if (use->owner && gs_registry_get(GS_KIND_CODE, key_of(use->owner, use->place.gpu), &e) &&
	    (!(e.refs & MAYBE) || (!use->loads && e.link > gs_settle_done(use->place.gpu))))
		return CUDA_SUCCESS;
	if (use->owner && gs_registry_get(GS_KIND_CODE, key_of(use->owner, NOWHERE), &e))
		image = e.link;
	if (image <= unit || __builtin_add_overflow(image, unit - 1, &bytes))
		bytes = unit;
	else
		bytes -= bytes % unit;
	if (gs_guess_begin(use->place.gpu, bytes) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	use->bytes = bytes;
	return CUDA_SUCCESS;
}

CUresult gs_code_begin(struct gs_code_use *ret_use, uint64_t owner, bool surely)
{
	*ret_use = (struct gs_code_use){.owner = owner, .loads = surely};
	// Without a context the driver has its own answer, or loads nothing.
	if (gs_place_current(&ret_use->place) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	return charge(ret_use);
}

void gs_code_end(const struct gs_code_use *use, CUresult r)
{
	unsigned gpu = use->place.gpu;
	uint64_t unit, units;
	struct gs_entry e;

	if (!use->bytes)
		return;
	gs_guess_end(gpu, use->bytes, r == CUDA_SUCCESS);
	unit = unit_of(gpu);
	if (r != CUDA_SUCCESS || !use->owner || !unit)
		return;
	units = use->bytes / unit;
	if (gs_registry_get(GS_KIND_CODE, key_of(use->owner, gpu), &e) && e.link > gs_settle_done(gpu))
		units += e.refs & ~MAYBE;
	put(&(struct gs_entry){
		.key = key_of(use->owner, gpu),
		.link = gs_guess_mark(gpu),
		.ctx = use->place.ctx,
		.refs = (uint32_t)units | (use->loads ? 0 : MAYBE),
		.gpu = (uint8_t)gpu,
		.kind = GS_KIND_CODE,
	});
}

CUresult gs_code_load(struct gs_code_use *ret_use, uint64_t image)
{
	*ret_use = (struct gs_code_use){.image = image, .loads = true};
	if (gs_place_current(&ret_use->place) != CUDA_SUCCESS || !eager())
		return CUDA_SUCCESS;
	return charge(ret_use);
}

void gs_code_loaded(struct gs_code_use *use, uint64_t owner, bool library, CUresult r)
{
	if (r == CUDA_SUCCESS) {
		gs_code_gone(owner); // the driver gives a handle anew
		use->owner = owner;
		// A library belongs to no context.
		if (use->image && gs_attached())
			put(&(struct gs_entry){
				.key = key_of(owner, NOWHERE),
				.link = use->image,
				.ctx = library ? 0 : use->place.ctx,
				.kind = GS_KIND_CODE,
			});
	}
	gs_code_end(use, r);
}

void gs_code_gone(uint64_t owner)
{
	struct gs_entry e;
	bool any = false;

	if (!gs_attached())
		return;
	gs_registry_take(GS_KIND_CODE, key_of(owner, NOWHERE), &e);
	for (unsigned gpu = 0; gpu < gs_self.gpus; gpu++) {
		if (!gs_registry_take(GS_KIND_CODE, key_of(owner, gpu), &e))
			continue;
		any = true;
		gs_guess_undo(gpu, (e.refs & ~MAYBE) * unit_of(gpu), (uint32_t)e.link);
		gs_guess_given_back(gpu);
	}
	if (any)
		gs_code_forget();
}

void gs_code_forget(void)
{
	for (unsigned i = 0; i < GS_CODE_SEEN; i++)
		__atomic_store_n(&gs_code_seen[i], 0, __ATOMIC_RELAXED);
}

uint64_t gs_code_owner(CUfunction f)
{
	CUmodule module = NULL;
	CUlibrary library = NULL;

	if (gs_cuda_real.cuFuncGetModule && gs_cuda_real.cuFuncGetModule(&module, f) == CUDA_SUCCESS && module)
		return (uintptr_t)module;
	if (gs_cuda_real.cuKernelGetLibrary &&
	    gs_cuda_real.cuKernelGetLibrary(&library, (CUkernel)(void *)f) == CUDA_SUCCESS && library)
		return (uintptr_t)library;
	return (uintptr_t)f;
}

// ---- launches ---------------------------------------------------------------

CUresult gs_code_first(struct gs_code_use *ret_use, unsigned gpu, CUfunction f)
{
	struct gs_place here;
	CUresult r;

	*ret_use = (struct gs_code_use){.loads = true};
	if (!gs_attached() || gpu >= gs_self.gpus)
		return CUDA_SUCCESS;
	ret_use->place.gpu = gpu;
	if (!unit_of(gpu) && !gs_heap_threads(gpu))
		return CUDA_SUCCESS;
	if (gs_place_current(&here) == CUDA_SUCCESS && here.gpu == gpu)
		ret_use->place = here;
	ret_use->owner = gs_code_owner(f);
	r = charge(ret_use);
	if (r != CUDA_SUCCESS)
		return r;
	// After the code's guess: asking may load it.
	ret_use->local = gs_heap_lacks(gpu, f, &ret_use->need);
	if (gs_guess_begin(gpu, ret_use->local) == 0)
		return CUDA_SUCCESS;
	gs_guess_end(gpu, ret_use->bytes, false);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void gs_code_first_end(const struct gs_code_use *use, unsigned gpu, CUfunction f, CUresult r)
{
	uint64_t word = gs_code_word(gpu, f);

	gs_guess_end(gpu, use->local, r == CUDA_SUCCESS);
	if (use->local && r == CUDA_SUCCESS)
		gs_heap_has(gpu, use->place.ctx, use->need);
	gs_code_end(use, r);
	if (r == CUDA_SUCCESS)
		__atomic_store_n(gs_code_place(word), word, __ATOMIC_RELAXED);
}
