// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Physical memory of the driver: what handles, mappings, bindings and tiles refer to.
// It is charged as long as there is a reference, in whatever order they end.

#ifndef GS_VMM_H
#define GS_VMM_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "registry.h"

// What a GS_KIND_MEMORY entry is: its link.
enum gs_memory {
	GS_MEMORY_OWN,	    // made here, charged in full
	GS_MEMORY_IMPORTED, // of others: its size shows when it is mapped
	GS_MEMORY_OBJECT,   // a multicast object: no bytes
};

// gs_memory_add makes a memory's number known, with one reference. Of memory, bytes,
// gpu, share and link count. It returns 0 or -ENOMEM.
int gs_memory_add(struct gs_entry memory, uint64_t *ret_number);

// gs_memory_ref adds a reference; false if there is no such memory.
bool gs_memory_ref(uint64_t number, struct gs_entry *ret_memory);

// gs_memory_unref ends one. With the last the charge is given back, and what is bound to
// a multicast object.
void gs_memory_unref(uint64_t number);

// gs_memory_of_handle and gs_memory_of_address find the memory behind a handle of
// cuMemCreate or an import, and at a mapped address.
bool gs_memory_of_handle(CUmemGenericAllocationHandle handle, uint64_t *ret_number);
bool gs_memory_of_address(uint64_t address, uint64_t *ret_number);

// gs_mapping_at finds the mapping that holds an address.
bool gs_mapping_at(uint64_t address, struct gs_entry *ret_mapping);

// gs_memory_handle records a handle that the driver has given out; one reference to the
// memory becomes the handle's. The driver may give out a handle again, and counts it. It
// returns 0, or -ENOMEM with the reference left to the caller.
int gs_memory_handle(CUmemGenericAllocationHandle handle, uint64_t number);

// gs_bindings_drop ends all bindings that an owner has, by its number and their kind.
void gs_bindings_drop(enum gs_kind kind, uint32_t owner);

// gs_tiles_gone ends what the tiles of a destroyed array have referred to.
void gs_tiles_gone(uint64_t array);

// gs_buffer_take takes out what was mapped from external memory, a pointer or an array,
// before the driver is asked to free it. gs_buffer_freed ends that: the driver answered r,
// which it returns.
bool gs_buffer_take(uint64_t key, struct gs_entry *ret_buffer);
CUresult gs_buffer_freed(const struct gs_entry *buffer, CUresult r);

// gs_share_pointer returns the share of the linear allocation that ptr lies in, which it
// makes if there is none (gs_share_entry). 0: no allocation that is known.
uint16_t gs_share_pointer(CUdeviceptr ptr);

#endif
