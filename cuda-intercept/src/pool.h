// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Memory pools. A pool is charged what the driver says it has reserved, and
// never less than what the program has allocated from it. An allocation is
// charged in full before the driver is asked and settled afterwards.

#ifndef GS_POOL_H
#define GS_POOL_H

#include <stdbool.h>

#include "cuda_abi.h"
#include "registry.h"

// gs_pool_freed ends the freeing of any pointer: the entry was taken out before
// the driver was asked, which answered r. It returns r.
CUresult gs_pool_freed(const struct gs_entry *entry, CUresult r);

// gs_pools_trim makes the driver give up what this process's pools on the GPU
// keep without need. It returns whether any was charged for such bytes.
bool gs_pools_trim(unsigned gpu);

// gs_pools_forked forgets everything in a forked child.
void gs_pools_forked(void);

#endif
