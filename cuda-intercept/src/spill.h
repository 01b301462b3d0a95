// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Host memory for linear allocations that do not fit into the container's limit or
// on the card: managed memory that is told to lie with the host and to be used from
// there. The page says how many bytes; none is the usual case, in which nothing here
// does anything.
//
// Each process counts its own in its slot, as it does device memory: it adds and
// then sums the slots, so that the container never holds more than it may and a
// process that dies takes its own with it.

#ifndef GS_SPILL_H
#define GS_SPILL_H

#include <stdbool.h>
#include <stdint.h>

#include "attach.h"
#include "registry.h"

// Of CUmem_advise and CUmemAttach_flags.
#define GS_ADVISE_READ_MOSTLY 1
#define GS_ADVISE_PREFERRED_LOCATION 3
#define GS_ADVISE_NO_PREFERRED_LOCATION 4
#define GS_ADVISE_ACCESSED_BY 5
#define GS_ATTACH_GLOBAL 1

static inline uint64_t gs_spill_limit(void)
{
	return __atomic_load_n(&gs_self.limits->header.host_memory, __ATOMIC_RELAXED);
}

// gs_spill_charge charges bytes of host memory to this process. It returns 0, or
// -ENOMEM, having charged nothing, if that would pass what the container may have. It
// waits for the memory of processes that have just died, as gs_ledger_charge does.
int gs_spill_charge(uint64_t bytes);

// gs_spill_refund takes them off again, after the driver has freed them.
void gs_spill_refund(uint64_t bytes);

// gs_spill_denied counts an allocation that was refused at the limit, unless the
// calling thread is inside gs_spill_open and gs_spill_close: then that returns its
// bytes, 0 if there was none.
void gs_spill_denied(unsigned gpu, uint64_t bytes);
void gs_spill_open(void);
uint64_t gs_spill_close(void);

// gs_spill_held tells whether this process holds any.
bool gs_spill_held(void);

// gs_spill_note and gs_spill_gone count entries of GS_KIND_HOST.
void gs_spill_note(void);
void gs_spill_gone(const struct gs_entry *entry);

// gs_spill_forked forgets everything in a forked child.
void gs_spill_forked(void);

#endif
