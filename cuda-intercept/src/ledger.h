// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Charging device memory. There is no counter that processes share: each adds to
// its own slot's word and then sums the column, so a process that is killed
// between any two instructions takes exactly its own bytes with it.
//
// Why the limit holds: take the charges that stand at one instant, and the one
// of them that was added last. The others were in their words while its sum was
// read, all the time; so the sum was at least their total, and it passed.

#ifndef GS_LEDGER_H
#define GS_LEDGER_H

#include <stdint.h>

// gs_ledger_charge charges bytes of the GPU to this process. It returns 0, or
// -ENOMEM, having charged nothing, if that would pass the container's limit. It
// may wait up to GS_REAP_GRACE and a little when what it needs is held by
// processes that have just died.
int gs_ledger_charge(unsigned gpu, uint64_t bytes);

// gs_ledger_denied counts an allocation that was refused to the program.
void gs_ledger_denied(unsigned gpu, uint64_t bytes);

// gs_ledger_add charges what the driver has already taken.
void gs_ledger_add(unsigned gpu, uint64_t bytes);

// gs_ledger_refund takes bytes off again, after the driver has freed them.
void gs_ledger_refund(unsigned gpu, uint64_t bytes);

// gs_ledger_sum returns the bytes that are charged to the container: what its
// processes hold by themselves or together, what they are about to make the driver
// take unseen, and what it has taken so.
uint64_t gs_ledger_sum(unsigned gpu);

// gs_ledger_living returns the bytes that living processes hold, for a view: what
// the dead still hold comes back to whoever asks for it.
uint64_t gs_ledger_living(unsigned gpu);

// gs_ledger_count_context adds n, 1 or -1, to the number of this process's contexts.
void gs_ledger_count_context(int n);

// gs_granule rounds up to the unit in which linear memory is charged; it
// saturates.
uint64_t gs_granule(uint64_t bytes);

#endif
