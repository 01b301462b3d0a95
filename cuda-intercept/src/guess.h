// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Device memory that a call makes the driver take without saying how much: code,
// executable graphs, local memory. It is charged by a guess until the daemon has
// looked at the driver's own figure; what it found stands in the page's growth, and
// the guess counts no more.

#ifndef GS_GUESS_H
#define GS_GUESS_H

#include <stdbool.h>
#include <stdint.h>

// gs_guess_begin charges bytes of the GPU before the driver is asked. It returns 0,
// or -ENOMEM with nothing charged if that would pass the container's limit; it may
// wait for the daemon's look if what is in the way has not been looked at yet. Each
// success is followed by gs_guess_end, on any thread.
int gs_guess_begin(unsigned gpu, uint64_t bytes);

// gs_guess_end says whether the driver took the memory.
void gs_guess_end(unsigned gpu, uint64_t bytes, bool happened);

// gs_guess_mark names the guesses that have ended by now, for gs_guess_undo.
uint32_t gs_guess_mark(unsigned gpu);

// gs_guess_undo takes a guess back that ended at mark, if nobody has looked since:
// what it was made for is gone. It returns the bytes that another guess, which has not
// ended yet, stands for.
uint64_t gs_guess_undo(unsigned gpu, uint64_t bytes, uint32_t mark);

// gs_guess_given_back asks the daemon for a look: the driver has given memory back
// whose size no call tells.
void gs_guess_given_back(unsigned gpu);

// gs_guess_wait waits for the look that is due, a moment at most and not often. It
// returns whether one came, so that a refusal is worth another try.
bool gs_guess_wait(unsigned gpu);

// gs_guess_forked forgets everything in a forked child.
void gs_guess_forked(void);

#endif
