// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* procs.h: the generated table behind cuGetProcAddress. */
#ifndef SG_PROCS_H
#define SG_PROCS_H

#include <stddef.h>

struct sg_proc {
    const char *base;
    int version;
    unsigned char per_thread;
    unsigned short number; /* in sg_calls */
    int (*symbol)(void);
};

extern const struct sg_proc sg_procs[]; /* by base name */
extern const size_t sg_procs_count;

#endif
