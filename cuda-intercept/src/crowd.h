// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Crowds: small arrays of one context, which share blocks as small linear
// allocations do but have no address that would tell which. What is known is how
// many blocks they can occupy at most, whichever hole the driver chooses, as long as
// it opens a new block only when no hole is large enough, begins or ends a hole
// with what it puts there, and gives a block up with the last array in it:
//
//   - an array of n bytes opens a block only if all holes are smaller. k blocks
//     with A bytes of arrays have kB - A free bytes, and as many holes as blocks,
//     plus at most one for each array that was freed and for each that lives;
//   - each array occupies one block at most, so those made since some moment add no
//     more blocks to the bound of that moment than they are.
//
// Nothing here asks the driver or the ledger; the caller has a lock.

#ifndef GS_CROWD_H
#define GS_CROWD_H

#include <stdint.h>

#define GS_CROWD_MARKS 16

struct gs_crowd {
	uint64_t unit;	  // bytes of a block
	uint64_t bytes;	  // of the arrays that live or are being made
	uint64_t largest; // being made
	uint32_t live;	  // how many arrays
	uint32_t frees;	  // since there was none
	uint32_t blocks;  // that they occupy at most
	uint32_t serial;  // of the newest
	uint32_t making;  // arrays that the driver has not answered for
	uint32_t begun, grown; // since there was none of those: arrays, and blocks for them
	uint32_t stirred;      // one was being destroyed meanwhile
	uint32_t marks;
	struct {
		uint32_t serial, live, blocks;
	} mark[GS_CROWD_MARKS]; // moments, oldest first: what lives of then, and their bound
};

// gs_crowd_need returns how many blocks one more array of that size may open.
uint32_t gs_crowd_need(struct gs_crowd *c, uint64_t bytes);

// gs_crowd_make adds it, need blocks with it, before the driver is asked. It returns
// its serial number.
uint32_t gs_crowd_make(struct gs_crowd *c, uint64_t bytes, uint32_t need);

// gs_crowd_made says that the driver has made it. It returns how many blocks must
// be added for what was destroyed meanwhile. gs_crowd_failed says that it has not.
uint32_t gs_crowd_made(struct gs_crowd *c);
void gs_crowd_failed(struct gs_crowd *c, uint64_t bytes);

// gs_crowd_leaving says that the driver is about to be asked to destroy an array,
// gs_crowd_left that it has.
void gs_crowd_leaving(struct gs_crowd *c);
void gs_crowd_left(struct gs_crowd *c, uint32_t serial, uint64_t bytes);

#endif
