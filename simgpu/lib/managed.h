// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* managed.h: what the files of managed memory share. The lock is held in all. */
#ifndef SG_MANAGED_H
#define SG_MANAGED_H

#include "sg.h"

enum { NOWHERE = -2, CPU = -1 }; /* else a device; -2 is also what attributes say for "none" */

struct part {
    size_t at, size;
    int where;
    bool read_mostly;
    CUmemLocation preferred, prefetched; /* type 0: none */
    uint32_t accessed_by;                /* bit a device, the last one: the processor */
    unsigned long long used;
    struct part *next;
};
#define CPU_BIT (1u << 31)

struct sg_managed {
    uintptr_t base;
    size_t size;
    bool migrates;
    struct part *parts; /* all of it, by address */
    uint64_t handle[SG_MAX_GPUS];
    uint64_t charged[SG_MAX_GPUS];
    unsigned long long uses;
};


/* A location as a device or CPU; NOWHERE: it is none. */
int sg_where_of(const CUmemLocation *l);
CUmemLocation sg_location_of(CUdevice dev);
/* The allocation that holds [p, p+n), if it is managed and n is not 0. */
struct sg_mem *sg_managed_find(CUdeviceptr p, size_t n);
/* Calls f for the parts that make up [p, p+n) of m; false: no memory to split. */
bool sg_managed_apply(struct sg_mem *m, uintptr_t p, size_t n, void (*f)(struct part *, const void *), const void *arg);
/* Moves [p, p+n) of m; prefetch: what is remembered of it, NULL: nothing. */
void sg_managed_place(struct sg_mem *m, uintptr_t p, size_t n, int to, const CUmemLocation *prefetch);
/* Where memory does not migrate: gives the device's back if all of it prefers the
 * processor; it migrates from then on. */
void sg_managed_loosen(struct sg_mem *m);
void sg_managed_join(struct sg_managed *g); /* parts that are alike */

#endif
