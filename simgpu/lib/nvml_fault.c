// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml_fault.c: which GPU a call that may fail is about. */
#include <errno.h>
#include <time.h>

#include "fault.h"
#include "nvml.h"

const uint32_t sg_fault_kind = SG_KIND_NVML;

uint32_t sg_fault_gpu(const struct sg_frame *f, const struct sg_call_info *c)
{
    uint64_t d = c->device >= 0 ? sg_frame_arg(f, (unsigned)c->device) : 0;

    for (unsigned i = 0; i < sg_nvml.ndev; i++) {
        if (d == (uintptr_t)&sg_nvml.dev[i])
            return sg_nvml.dev[i].gpu;
    }
    return SG_FAULT_ANY_GPU;
}

uint32_t sg_fault_dead(const struct sg_call_info *c SG_UNUSED)
{
    return 0; /* the calls themselves know that a GPU is lost */
}

void sg_fault_pause(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}
