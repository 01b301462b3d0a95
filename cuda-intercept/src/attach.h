// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The process's hold on its container's limits page and ledger.

#ifndef GS_ATTACH_H
#define GS_ATTACH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "region.h"

// Set once by gs_attach; cleared in a forked child.
struct gs_self {
	_Atomic(bool) attached;
	const struct gs_limits_page *limits;
	struct gs_ledger_header *ledger;
	uint32_t gpus;
	uint32_t slots;
	int32_t slot;	    // this process's slot, -1 for a reader without one
	dev_t ledger_dev;   // the file that was mapped
	ino_t ledger_ino;
};

extern struct gs_self gs_self;

// gs_attach maps the limits page and the ledger and, if with_slot, takes a slot.
// It returns 0, or a negative errno: then nothing may be granted to the program.
// It may be called again, from any thread.
int gs_attach(bool with_slot);

// gs_forked is called in a forked child of a process that has attached. Each
// library has its own; it calls one of the next two.
void gs_forked(void);

// gs_attach_forget drops the parent's attachment: the child must attach for
// itself. The inherited lock stays held, because the child's copies of the
// driver's descriptors keep the parent's device memory alive.
void gs_attach_forget(void);

// gs_attach_keep keeps it, for a library without a slot.
void gs_attach_keep(void);

static inline bool gs_attached(void)
{
	return atomic_load_explicit(&gs_self.attached, memory_order_acquire);
}

// gs_attach_open_ledger opens the ledger anew, read-write: a file description of
// its own for locks that must not be shared. It returns -1 if that fails.
int gs_attach_open_ledger(void);

// The limits page's fields that change while the process runs.
static inline uint64_t gs_memory_limit(unsigned gpu)
{
	return __atomic_load_n(&gs_self.limits->gpu[gpu].memory_limit, __ATOMIC_RELAXED);
}

static inline uint64_t gs_context_bytes(unsigned gpu)
{
	return __atomic_load_n(&gs_self.limits->gpu[gpu].context_bytes, __ATOMIC_RELAXED);
}

// gs_busy_milli is the GPU time that the container used over the last second, milli-GPU.
static inline uint32_t gs_busy_milli(unsigned gpu)
{
	return __atomic_load_n(&gs_self.limits->gpu[gpu].busy_milli, __ATOMIC_RELAXED);
}

// gs_settle_done is the number of the newest look at the driver's figure whose
// result is gs_growth; read it first.
static inline uint32_t gs_settle_done(unsigned gpu)
{
	return __atomic_load_n(&gs_self.limits->gpu[gpu].settle_done, __ATOMIC_ACQUIRE);
}

static inline uint64_t gs_growth(unsigned gpu)
{
	return __atomic_load_n(&gs_self.limits->gpu[gpu].growth, __ATOMIC_ACQUIRE);
}

// gs_gpu_find returns the index of the GPU with that UUID in the limits page, or
// -1 if the container does not hold it.
int gs_gpu_find(const unsigned char uuid[16]);

#endif
