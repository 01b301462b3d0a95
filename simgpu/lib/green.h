// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* green.h: device resources and green contexts; layouts that cuda_abi.h leaves open. */
#ifndef SG_GREEN_H
#define SG_GREEN_H

#include "sg.h"

enum { SG_RESOURCE_NONE = 0, SG_RESOURCE_SM = 1, SG_RESOURCE_QUEUE_CONFIG = 1000, SG_RESOURCE_QUEUE = 10000 };

/* What the driver keeps for itself in a resource. */
struct sg_resource_own {
    uint32_t magic;
    uint32_t dev;
    uint32_t first; /* multiprocessor */
    uint32_t split; /* of a split: not to be split again */
};

struct gs_opaque_CUdevResource {
    unsigned int type;
    unsigned char own[92];
    union {
        struct {
            unsigned int count, least, align, flags;
        } sm;
        struct {
            CUdevice dev;
            unsigned int limit, scope;
        } queue;
        unsigned char room[40];
    };
    struct gs_opaque_CUdevResource *next;
};
_Static_assert(sizeof(struct gs_opaque_CUdevResource) == 144, "CUdevResource");

struct CUdevResourceDesc_st {
    uint32_t magic;
    CUdevice dev;
    unsigned first, sms;
};

struct CUgreenCtx_st {
    uint32_t magic;
    unsigned first;
    unsigned long long id;
    struct CUctx_st *ctx; /* what its streams belong to */
    CUgreenCtx next;
};

/* The multiprocessors of a context as a resource. */
void sg_resource_fill(CUdevice dev, unsigned first, unsigned sms, CUdevResource *r);

#endif
