// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What this process holds: which handle costs how many bytes of which GPU.
//
// Storage is mapped, never malloc'ed; each of the shards has a mutex that is held
// for a few memory accesses and never across a driver call. An entry is taken out
// before the driver is asked to free it and put back if the driver refuses: once
// the driver has freed it, another thread may be given the same handle.

#ifndef GS_REGISTRY_H
#define GS_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

enum gs_kind {
	GS_KIND_NONE = 0,
	GS_KIND_POINTER, // device pointer
	GS_KIND_ARRAY,
	GS_KIND_MIPMAP,
	GS_KIND_CONTEXT, // ctx is its serial number, link one of GS_CONTEXT_*
	GS_KIND_HANDLE,	 // of cuMemCreate; link is the memory's number
	GS_KIND_MEMORY,	 // what cuMemCreate made, by number
	GS_KIND_MAPPING, // address of cuMemMap; link is the memory's number
	GS_KIND_IPC,	 // address of memory opened by an IPC handle, refs times
	GS_KIND_BINDING, // of memory to a multicast object, ctx its number; link is the memory's
	GS_KIND_ENDPOINT, // of memory to a logical endpoint, ctx its number; link likewise
	GS_KIND_TILE,	 // of memory to the sparse array at; link likewise
	GS_KIND_EXTERNAL, // external memory; link is the memory's number
	GS_KIND_BUFFER,	 // pointer or array mapped from external memory; link likewise
	GS_KIND_CODE,	 // a module or library on a GPU: code.c
	GS_KIND_HEAP,	 // a limit of a context: cuda_limit.c
	GS_KIND_BLOCK,	 // first address of a block that small allocations share
	GS_KIND_GREEN,	 // green context; link is its CUcontext, refs the device plus 1
	GS_KIND_HOST,	 // device pointer to memory of the host (spill.h)
	GS_KIND_POOL,	 // link is 1 + its index in the table of pools
	GS_KIND_GRAPH,	 // executable graph and device: bytes is what a launch takes
	GS_KIND_EXEC,	 // executable graph: bytes is a guess, link its mark
};

// What a context is: nobody else's, a device's primary one, or a green one on it.
enum { GS_CONTEXT_OWN, GS_CONTEXT_PRIMARY, GS_CONTEXT_GREEN };

// The link of a pointer to a part of a block, which is charged, not the part.
#define GS_LINK_PART UINT64_MAX

struct gs_entry {
	uint64_t key;
	uint64_t bytes;
	uint64_t link; // pointer: 1 + index of its pool, GS_LINK_PART, 0 for neither;
		       // array: its place in a crowd, 0 if it is charged by itself
	uint64_t at;   // binding: offset in its owner
	uint32_t ctx;  // serial number of the context that owns it, 0 for none
	uint32_t refs;
	uint8_t gpu;
	uint8_t kind;
	uint16_t share; // its bytes are in that record (share.h), 0: in this process's word
};

// gs_registry_put adds an entry. If its key was there, the old entry is set in
// ret_old (kind GS_KIND_NONE otherwise). It returns 0 or -ENOMEM.
int gs_registry_put(const struct gs_entry *entry, struct gs_entry *ret_old);

// gs_registry_add is put that leaves an entry with that key as it is and then
// returns 1.
int gs_registry_add(const struct gs_entry *entry);

// gs_registry_get and gs_registry_take find an entry; take removes it.
bool gs_registry_get(enum gs_kind kind, uint64_t key, struct gs_entry *ret_entry);
bool gs_registry_take(enum gs_kind kind, uint64_t key, struct gs_entry *ret_entry);

// gs_registry_ref adds n to an entry's references and removes it at 0. ret_entry
// is the entry as it is then. It returns false if there is no such entry.
bool gs_registry_ref(enum gs_kind kind, uint64_t key, int n, struct gs_entry *ret_entry);

// gs_registry_share sets an entry's share to to if it is from. It returns false if there
// is no such entry, or its share is another.
bool gs_registry_share(enum gs_kind kind, uint64_t key, uint16_t from, uint16_t to);

// gs_registry_resize sets an entry's bytes; false if there is no such entry.
bool gs_registry_resize(enum gs_kind kind, uint64_t key, uint64_t bytes);

// gs_registry_drain removes what a context owns, the context itself not, and tells
// gone of each entry.
typedef void gs_gone(const struct gs_entry *entry);
void gs_registry_drain(uint32_t ctx, gs_gone *gone);

// gs_registry_adopt makes what the context from owns another one's.
void gs_registry_adopt(uint32_t from, uint32_t to);

// gs_registry_find returns one entry that match accepts; it looks at all of them.
typedef bool gs_match(const struct gs_entry *entry, uint64_t arg);
bool gs_registry_find(gs_match *match, uint64_t arg, struct gs_entry *ret_entry);

// gs_registry_forked forgets everything in a forked child.
void gs_registry_forked(void);

#endif
