// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * checkpoint.c: locks a process, takes its device memory away and gives it back.
 * The host process keeps the state. The bytes never leave the process's memory,
 * so only the account moves; storage of the caller's own and other GPUs than
 * before are not supported.
 */
#include <time.h>

#include "sg.h"

struct lock_args {
    unsigned timeout_ms, reserved0;
    uint64_t reserved1[7];
};
struct save_args {
    void *storage;
    char reserved[56];
};
struct gpu_pair {
    CUuuid before, after;
};
struct restore_args {
    const struct gpu_pair *pairs;
    unsigned n, padding;
    void *storage;
    char reserved[40];
};
_Static_assert(sizeof(struct lock_args) == 64 && sizeof(struct save_args) == 64 && sizeof(struct restore_args) == 64,
               "arguments of checkpoint calls");

static CUresult act(int pid, uint64_t what, uint64_t *ret_state)
{
    struct sg_request req = {.op = SG_OP_CHECKPOINT, .a = (uint64_t)(unsigned)pid, .b = what};
    struct sg_reply rep;
    CUresult r;

    SG_ENTER();
    if (pid <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_call(&req, NULL, &rep, NULL, 0, NULL);
    if (r == CUDA_SUCCESS && ret_state)
        *ret_state = rep.a;
    return r;
}

static bool zero(const void *p, size_t n)
{
    const char *c = p;

    while (n && !*c) {
        c++;
        n--;
    }
    return !n;
}

SG_API CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
    uint64_t now;
    CUresult r;

    SG_ENTER();
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    r = act(pid, SG_CHECKPOINT_STATE, &now);
    if (r == CUDA_SUCCESS)
        *state = (CUprocessState)now;
    return r;
}

/* Asks until what the process has submitted is done. */
SG_API CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    const struct lock_args *a = (const struct lock_args *)args;
    const struct timespec pause = {.tv_nsec = 1000000};
    struct timespec t;
    uint64_t end = 0;
    CUresult r;

    SG_ENTER();
    if (a && (a->reserved0 || !zero(a->reserved1, sizeof(a->reserved1))))
        return CUDA_ERROR_INVALID_VALUE;
    for (;;) {
        r = act(pid, SG_CHECKPOINT_LOCK, NULL);
        if (r != CUDA_ERROR_NOT_READY)
            return r;
        clock_gettime(CLOCK_MONOTONIC, &t);
        if (!end)
            end = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 + (a ? a->timeout_ms : 0);
        else if (a && a->timeout_ms && (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 >= end)
            break;
        nanosleep(&pause, NULL);
    }
    act(pid, SG_CHECKPOINT_UNLOCK, NULL);
    return r;
}

SG_API CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
    const struct save_args *a = (const struct save_args *)args;

    SG_ENTER();
    if (a && !zero(a->reserved, sizeof(a->reserved)))
        return CUDA_ERROR_INVALID_VALUE;
    return a && a->storage ? CUDA_ERROR_NOT_SUPPORTED : act(pid, SG_CHECKPOINT_SAVE, NULL);
}

SG_API CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
    const struct restore_args *a = (const struct restore_args *)args;

    SG_ENTER();
    if (a && (!zero(a->reserved, sizeof(a->reserved)) || (a->n && !a->pairs)))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; a && i < a->n && i < SG_MAX_GPUS; i++) {
        if (memcmp(&a->pairs[i].before, &a->pairs[i].after, sizeof(CUuuid)) != 0)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return a && a->storage ? CUDA_ERROR_NOT_SUPPORTED : act(pid, SG_CHECKPOINT_RESTORE, NULL);
}

SG_API CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
    SG_ENTER();
    if (args && !zero(args, 64))
        return CUDA_ERROR_INVALID_VALUE;
    return act(pid, SG_CHECKPOINT_UNLOCK, NULL);
}
