// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// The allocation walk: each call that takes device memory or gives it back is a row
// here, two small functions; what is done with a row, and what must come of it, is
// tests/intercept/walk_test.go. A row needs no more than a WALK in a C file of this
// folder.

#ifndef WALK_H
#define WALK_H

#include "harness.h"

// What a row's call writes lies in so many bytes, filled with this before.
#define WALK_OUT 512
#define WALK_PATTERN 0x5c

struct walk_row {
	const char *symbol;
	CUresult (*ready)(void);
	CUresult (*take)(void *out, size_t bytes);
	CUresult (*give)(void *out);
	CUresult (*done)(void);
	struct walk_row *next;
};

extern struct walk_row *walk_rows;

// WALK(symbol, ready, take, give, done) is the row of one exported name of class
// charge or release.
//   ready  makes what the call needs (a pool, a file, a graph); NULL: nothing
//   take   takes about that many bytes; all results of the call under test go to out
//          and nothing else does. A fixed cost leaves bytes alone.
//   give   gives back what take got, all of it
//   done   undoes ready
// Each returns the first code that is not 0. Of class charge, take makes the call that
// the row is named for, as the last that can fail; of class release, give does. Calls
// with a wrapper are made by W(name), the others by CU(name). The context walk_context
// is current before each, and need not be afterwards.
#define WALK(name, ready, take, give, done)                                          \
	static struct walk_row walk_row_##name = {#name, ready, take, give, done, NULL}; \
	static __attribute__((constructor)) void walk_add_##name(void)                 \
	{                                                                              \
		walk_row_##name.next = walk_rows;                                      \
		walk_rows = &walk_row_##name;                                          \
	}                                                                              \
	_Static_assert(1, "")

// W(name) is the driver's function of that name, found by the way that is walked, or
// by handle if that way does not lead to it.
#define W(name) ((__typeof__(&name))walk_symbol(#name))

void *walk_symbol(const char *name);

extern CUcontext walk_context;

// walk_launch makes work for the GPU and waits for it (launch.c).
void walk_launch(void);

#endif
