// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * clock.h: threads on a virtual clock. Part of libcuda.so.1 and of the time
 * library; without a virtual clock nothing here is called.
 */
#ifndef SG_CLOCK_H
#define SG_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

#define SG_FOREVER UINT64_MAX

struct sg_clock {
    struct sg_waits *waits; /* NULL: the wall clock */
    struct sg_kicks *kicks;
    const struct sg_node *node;
    int fd; /* hangs up when the host process ends */
};
extern struct sg_clock sg_clock;

/* Where a thread's own time lies, if the time library is there: the thread has
 * one, whichever library asks. */
extern uint64_t *simgpu_time_local(void) __attribute__((weak));

static inline bool sg_clock_on(void)
{
    return __builtin_expect(sg_clock.waits != NULL, 0);
}

/* The calling thread's time, ns: the node's, or later by what its own calls took. */
uint64_t sg_clock_now(void);
/* Lets ns pass for the calling thread only. */
void sg_clock_spend(uint64_t ns);
/* Waits until the node's time is the calling thread's, if that is far ahead. */
void sg_clock_catch_up(void);
/* What a look at the clock, and a question answered with "not yet", take. */
void sg_clock_looked(void);
void sg_clock_asked(void);

/*
 * Gives up the turn until what happens, or until until_ns. kind, slot, position
 * and address say what, as in struct sg_waiter. Returns 0 for what was waited
 * for, ETIMEDOUT for the time, EINTR (only if interruptible) for a signal, EIO
 * when the host process is gone.
 */
struct sg_wait {
    uint32_t kind;
    uint32_t slot;
    uint64_t position;
    uint64_t until_ns;
    const void *address;
    bool interruptible;
};
int sg_clock_block(const struct sg_wait *what);
/* The same in steps, for who must do something in between: a thread that has
 * registered cannot miss what it waits for, and still runs until it commits
 * itself, which sleeping does. */
struct sg_waiter *sg_clock_register(const struct sg_wait *what);
void sg_clock_commit(struct sg_waiter *w);
int sg_clock_sleep(struct sg_waiter *w, bool interruptible);
/* Takes back a wait that the thread does not sleep in. */
void sg_clock_unregister(struct sg_waiter *w);
/* Lets up to n threads of this process that wait for address go on, the first
 * to come first; returns how many. */
unsigned sg_clock_poke(const void *address, unsigned n);
/* Makes the host look again. */
void sg_clock_kick(void);
/* A number for a thread that is about to be made, and its taking it. */
uint32_t sg_clock_number(void);
void sg_clock_be(uint32_t number);
/* In a forked child: it is a program of its own, with one thread. */
void sg_clock_forked(void);

#endif
