// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* cudafault.c: which GPU a call that may fail is about, and what a call waits by. */
#include <errno.h>
#include <time.h>

#include "clock.h"
#include "fault.h"
#include "sg.h"

const uint32_t sg_fault_kind = SG_KIND_CUDA;

uint32_t sg_fault_gpu(const struct sg_frame *f, const struct sg_call_info *c)
{
    CUcontext ctx = sg_current();
    struct sg_device *d = NULL;

    if (c->device >= 0)
        d = sg_dev((CUdevice)sg_frame_arg(f, (unsigned)c->device));
    else if (ctx)
        d = sg_dev(ctx->dev);
    return d ? d->index : SG_FAULT_ANY_GPU;
}

/* What needs no GPU goes on when it is lost; everything else repeats the error
 * until the process ends, as the documentation of such errors has it. */
static bool without_gpu(const char *name)
{
    static const char *const prefixes[] = {
        "cuInit", "cuDriverGetVersion", "cuGetError", "cuGetProcAddress", "cuGetExportTable", "cuDeviceGet",
        "cuDeviceTotalMem", "cuDeviceComputeCapability", "cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxSetCurrent",
        "cuCtxPushCurrent", "cuCtxPopCurrent", "cuCtxGetApiVersion"};

    for (size_t i = 0; i < SG_LEN(prefixes); i++) {
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    }
    return false;
}

/* Every call of a locked process waits, but those that unlock it. */
static void wait_unlocked(const char *name)
{
    uint32_t *word = &sg_conn.shm->locked;

    if (!strncmp(name, "cuCheckpoint", 12) || !strncmp(name, "cuGetError", 10))
        return;
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) && sg_sleep_on(word, 1) == CUDA_SUCCESS)
        ;
}

uint32_t sg_fault_dead(const struct sg_call_info *c)
{
    uint32_t code = sg_ready() ? __atomic_load_n(&sg_conn.shm->dead, __ATOMIC_ACQUIRE) : 0;

    if (!code && sg_ready() && __atomic_load_n(&sg_conn.shm->locked, __ATOMIC_ACQUIRE))
        wait_unlocked(c->name);
    return code && !without_gpu(c->name) ? code : 0;
}

void sg_fault_pause(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

    if (sg_clock_on()) {
        sg_clock_spend(ns);
        sg_clock_catch_up();
        return;
    }
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}
