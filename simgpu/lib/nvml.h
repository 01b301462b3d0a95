// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml.h: what the files of the simulated libnvidia-ml.so.1 share. */
#ifndef SG_NVML_H
#define SG_NVML_H

#include <stdio.h>

#include "nvml_abi.h"
#include "sg.h"

/* The exported function of a name. The real library calls its own exports that
 * way, through the procedure linkage table: an interposer sees it. */
#define SG_PUBLIC(name)                                 \
    ({                                                  \
        extern __typeof__(name) public_##name __asm__(#name); \
        public_##name;                                  \
    })

struct nvmlDevice_st {
    uint32_t magic;
    unsigned gpu; /* the host's index */
    const struct sg_gpu_info *info;
    const struct sg_card *card;
    nvmlDevice_t parent;         /* of a MIG device; NULL: a GPU */
    struct sg_mig_instance part; /* of a MIG device, as it was last listed */
};
#define SG_NVML_DEVICE 0x53474e56u

/* Instances are handles by their numbers: they never move and never end. */
#define SG_MIG_PARTS 8u /* numbers of compute instances in a GPU instance */
#define SG_MIG_MAX 16u  /* numbers of GPU instances, from 1 */
struct nvmlComputeInstance_st {
    nvmlGpuInstance_t in;
    unsigned id;
};
struct nvmlGpuInstance_st {
    nvmlDevice_t dev;
    unsigned id;
    struct nvmlComputeInstance_st part[SG_MIG_PARTS];
};

struct sg_nvml {
    pthread_mutex_t lock;
    unsigned users; /* nvmlInit less nvmlShutdown */
    int pid;        /* that holds the connection */
    unsigned ndev;
    struct nvmlDevice_st dev[SG_MAX_GPUS];
    struct nvmlDevice_st mig[SG_MAX_GPUS * SG_MIG_PARTS];
    struct nvmlGpuInstance_st instance[SG_MAX_GPUS * SG_MIG_MAX];
};
extern struct sg_nvml sg_nvml;

nvmlReturn_t sg_nvml_check(nvmlDevice_t d);
#define SG_NVML_ENTER()                      \
    do {                                     \
        if (!sg_nvml.users)                  \
            return NVML_ERROR_UNINITIALIZED; \
    } while (0)
#define SG_NVML_TRY(call)             \
    do {                              \
        nvmlReturn_t ret_ = (call);   \
        if (ret_ != NVML_SUCCESS)     \
            return ret_;              \
    } while (0)
/* Enters with a device: a GPU that is there, or a MIG device of one. */
#define SG_NVML_DEV(d) SG_NVML_TRY(sg_nvml_check(d))
/* Enters with a GPU; what MIG devices do not have is not supported on them. */
#define SG_NVML_GPU(d)                       \
    do {                                     \
        SG_NVML_DEV(d);                      \
        if ((d)->parent)                     \
            return NVML_ERROR_NOT_SUPPORTED; \
    } while (0)
#define SG_NVML_WANT(cond)                     \
    do {                                       \
        if (!(cond))                           \
            return NVML_ERROR_INVALID_ARGUMENT; \
    } while (0)
#define SG_NVML_NEED(cond)                  \
    do {                                    \
        if (!(cond))                        \
            return NVML_ERROR_NOT_SUPPORTED; \
    } while (0)
#define SG_NVML_HAS(d, flag) SG_NVML_NEED((d)->card->flags & (flag))
/* A structure whose first word says which one it is. */
#define SG_NVML_VERSION(p, type, v)                                \
    do {                                                           \
        SG_NVML_WANT(p);                                           \
        if ((p)->version != GS_NVML_STRUCT_VERSION(type, v))       \
            return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;           \
    } while (0)

/* What the card measures now; d is a GPU. */
nvmlReturn_t sg_nvml_sense(nvmlDevice_t d, struct sg_sensors *s);
#define SG_NVML_SENSE(d, s) SG_NVML_TRY(sg_nvml_sense(d, s))
/* Sets a mode; root only. */
nvmlReturn_t sg_nvml_mode(nvmlDevice_t d, uint32_t mode, uint64_t value);

/* A function with one number as its answer: a fact, or of the sensors s. */
#define SG_NVML_FACT(name, type, cond, value)          \
    SG_API nvmlReturn_t name(nvmlDevice_t d, type *v)  \
    {                                                  \
        SG_NVML_GPU(d);                                \
        SG_NVML_WANT(v);                               \
        SG_NVML_NEED(cond);                            \
        *v = (value);                                  \
        return NVML_SUCCESS;                           \
    }
#define SG_NVML_READING(name, type, cond, value)       \
    SG_API nvmlReturn_t name(nvmlDevice_t d, type *v)  \
    {                                                  \
        struct sg_sensors s;                           \
                                                       \
        SG_NVML_GPU(d);                                \
        SG_NVML_WANT(v);                               \
        SG_NVML_NEED(cond);                            \
        SG_NVML_SENSE(d, &s);                          \
        *v = (value);                                  \
        return NVML_SUCCESS;                           \
    }
/* A function whose call is not supported by any card that is simulated. */
#define SG_NVML_NOT_ON_CARD(name, ...)          \
    SG_API nvmlReturn_t name(nvmlDevice_t d, __VA_ARGS__) \
    {                                           \
        SG_NVML_DEV(d);                         \
        return NVML_ERROR_NOT_SUPPORTED;        \
    }

/* One question to the host process, after a fork or its restart on a new
 * connection. */
nvmlReturn_t sg_nvml_ask(uint32_t op, nvmlDevice_t d, uint64_t a, struct sg_reply *rep, void *out, size_t size,
                         size_t *ret_len);
/* The same with a whole request and data behind it. */
nvmlReturn_t sg_nvml_request(struct sg_request *req, const void *data, struct sg_reply *rep, void *out, size_t size,
                             size_t *ret_len);
nvmlReturn_t sg_nvml_text(char *buf, unsigned int size, const char *text);
/* The GPU of the host's index, NULL if this process may not see it. */
nvmlDevice_t sg_nvml_gpu(unsigned index);
/* ---- MIG (nvml_mig.c) ---- */
#define SG_MIG_LIST ((SG_MAX_MESSAGE - sizeof(struct sg_reply)) / sizeof(struct sg_mig_instance))
nvmlReturn_t sg_mig_list(nvmlDevice_t d, struct sg_mig_instance *v, unsigned *n);
nvmlReturn_t sg_mig_command(nvmlDevice_t d, uint32_t op, uint64_t a, uint64_t b, uint64_t *ret);
/* Enters with a GPU instance and finds what the host says of it. */
nvmlReturn_t sg_mig_enter(nvmlGpuInstance_t g, struct sg_mig_instance *v, unsigned *n, struct sg_mig_instance *self);
/* Finds a shape by its place in the interface or by its number. */
nvmlReturn_t sg_mig_shape_of(nvmlDevice_t d, bool by_index, unsigned which, struct sg_mig_shape *ret);
/* Names the MIG device that p describes. */
nvmlDevice_t sg_mig_handle(nvmlDevice_t d, const struct sg_mig_instance *p);
/* Finds the MIG device with a name; NVML_ERROR_NOT_FOUND. */
nvmlReturn_t sg_nvml_mig_find(const char *uuid, nvmlDevice_t *ret);

#endif
