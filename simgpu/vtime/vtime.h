// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * vtime.h: what the files of libsimgpu-time.so share. Preloaded into a program
 * of a node with a virtual clock, it gives the program that clock: the names of
 * the C library that tell time or wait are defined here. On any other node, and
 * without one, each passes on to the C library.
 */
#ifndef VTIME_H
#define VTIME_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "clock.h"

#define VT_API __attribute__((visibility("default")))
#define VT_SECOND 1000000000ull

/* The C library's function behind a name of ours. */
void *vt_find(const char *name, void **cache);
#define REAL(name)                                          \
    ({                                                      \
        static void *found_;                                \
        (__typeof__(&name))vt_find(#name, &found_);         \
    })

static inline uint64_t vt_ns(const struct timespec *t)
{
    if (t->tv_sec < 0)
        return 0;
    return (uint64_t)t->tv_sec > UINT64_MAX / VT_SECOND / 2 ? SG_FOREVER - 1
                                                            : (uint64_t)t->tv_sec * VT_SECOND + (uint64_t)t->tv_nsec;
}

static inline struct timespec vt_spec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / VT_SECOND), .tv_nsec = (long)(ns % VT_SECOND)};
}

/* The virtual moment of a time on one of the system's clocks. */
uint64_t vt_moment(clockid_t clock, const struct timespec *t);
bool vt_is_date(clockid_t clock);
bool vt_is_ours(clockid_t clock);
uint64_t vt_after(uint64_t ns); /* now + ns, or as late as can be */

/* Sleeps until then; returns 0 or EINTR. */
int vt_sleep(uint64_t until_ns);
/* Goes on when it is this thread's turn. */
void vt_turn(void);

#endif
