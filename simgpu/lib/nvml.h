// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml.h: what the files of the simulated libnvidia-ml.so.1 share. */
#ifndef SG_NVML_H
#define SG_NVML_H

#include <stdio.h>

#include "nvml_abi.h"
#include "sg.h"

struct nvmlDevice_st {
    uint32_t magic;
    unsigned gpu; /* the host's index */
    const struct sg_gpu_info *info;
};
#define SG_NVML_DEVICE 0x53474e56u

struct sg_nvml {
    pthread_mutex_t lock;
    unsigned users; /* nvmlInit less nvmlShutdown */
    int pid;        /* that holds the connection */
    unsigned ndev;
    struct nvmlDevice_st dev[SG_MAX_GPUS];
};
extern struct sg_nvml sg_nvml;

/* The exported function of a name. The real library calls its own exports that
 * way, through the procedure linkage table: an interposer sees it. */
#define SG_PUBLIC(name)                                 \
    ({                                                  \
        extern __typeof__(name) public_##name __asm__(#name); \
        public_##name;                                  \
    })

/* Enters with a device. */
nvmlReturn_t sg_nvml_check(nvmlDevice_t d);
#define SG_NVML_ENTER()                      \
    do {                                     \
        if (!sg_nvml.users)                  \
            return NVML_ERROR_UNINITIALIZED; \
    } while (0)
#define SG_NVML_DEV(d)                          \
    do {                                        \
        nvmlReturn_t ret_ = sg_nvml_check(d);   \
        if (ret_ != NVML_SUCCESS)               \
            return ret_;                        \
    } while (0)

/* One question to the host process, after a fork or its restart on a new
 * connection. */
nvmlReturn_t sg_nvml_ask(uint32_t op, nvmlDevice_t d, uint64_t a, struct sg_reply *rep, void *out, size_t size,
                         size_t *ret_len);
nvmlReturn_t sg_nvml_text(char *buf, unsigned int size, const char *text);

#endif
