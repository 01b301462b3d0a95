// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* checkpoint.c: a process takes another one's device memory away and gives it
 * back, and does so with itself. Kernels called slow are long. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "t.h"

#define MIB ((size_t)1 << 20)
enum { RUNNING, LOCKED, CHECKPOINTED };

static CUprocessState state_of(int pid)
{
    CUprocessState s = 99;

    OK(cuCheckpointProcessGetState(pid, &s));
    return s;
}

static size_t room(void)
{
    size_t n, total;

    OK(cuMemGetInfo_v2(&n, &total));
    return n;
}

static void child(int in, int out)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);
    CUdeviceptr p;
    char c, got[2];

    OK(cuMemAlloc_v2(&p, 64 * MIB));
    OK(cuMemsetD8_v2(p, 0x5a, 64 * MIB));
    TRUE(write(out, "r", 1) == 1);
    while (read(in, &c, 1) == 1) {
        if (c == 'k')
            OK(launch(function(m, "slow"), NULL));
        OK(cuMemcpyDtoH_v2(&got[0], p, 1)); /* behind the kernel; waits while locked */
        OK(cuMemcpyDtoH_v2(&got[1], p + 64 * MIB - 1, 1));
        TRUE(got[0] == 0x5a && got[1] == 0x5a);
        TRUE(write(out, "a", 1) == 1);
    }
    exit(0);
}

static bool answers(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char c;

    return poll(&p, 1, ms) == 1 && read(fd, &c, 1) == 1 && (c == 'a' || c == 'r');
}

int main(void)
{
    struct {
        unsigned timeout, zero[15];
    } args = {.timeout = 20};
    void *storage[8] = {0}; /* the arguments of a checkpoint: a place for the caller's own storage, zeros */
    int to[2], from[2], pid, status;
    CUcontext ctx;
    CUdeviceptr all;
    size_t before, without;

    TRUE(!pipe(to) && !pipe(from));
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* locked, it would wait for ever */
        close(to[1]);
        child(to[0], from[1]);
    }
    close(to[0]);
    start(&ctx);
    TRUE(answers(from[0], 60000));
    before = room();
    TRUE(state_of(pid) == RUNNING);
    WANT(cuCheckpointProcessCheckpoint(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    WANT(cuCheckpointProcessRestore(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    WANT(cuCheckpointProcessUnlock(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    WANT(cuCheckpointProcessLock(1 << 30, NULL), CUDA_ERROR_INVALID_VALUE); /* no such process */
    WANT(cuCheckpointProcessLock(0, NULL), CUDA_ERROR_INVALID_VALUE);

    /* Work that was submitted is waited for, and no longer than asked. */
    TRUE(write(to[1], "k", 1) == 1);
    usleep(50000); /* for the kernel to be under way; else the lock below comes first */
    WANT(cuCheckpointProcessLock(pid, (CUcheckpointLockArgs *)&args), CUDA_ERROR_NOT_READY);
    TRUE(state_of(pid) == RUNNING);
    TRUE(answers(from[0], 60000));
    before = room(); /* a first launch can take some */

    OK(cuCheckpointProcessLock(pid, NULL));
    TRUE(state_of(pid) == LOCKED && room() == before);
    WANT(cuCheckpointProcessLock(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);
    TRUE(write(to[1], "c", 1) == 1);
    TRUE(!answers(from[0], 100));
    storage[0] = storage;
    WANT(cuCheckpointProcessCheckpoint(pid, (CUcheckpointCheckpointArgs *)storage), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuCheckpointProcessCheckpoint(pid, NULL));
    without = room();
    TRUE(state_of(pid) == CHECKPOINTED && without >= before + 64 * MIB);
    WANT(cuCheckpointProcessUnlock(pid, NULL), CUDA_ERROR_ILLEGAL_STATE);

    /* Somebody else has it now. */
    OK(cuMemAlloc_v2(&all, without - 32 * MIB));
    WANT(cuCheckpointProcessRestore(pid, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    TRUE(state_of(pid) == CHECKPOINTED);
    OK(cuMemFree_v2(all));
    OK(cuCheckpointProcessRestore(pid, NULL));
    TRUE(state_of(pid) == LOCKED && room() == before);
    TRUE(!answers(from[0], 100));
    OK(cuCheckpointProcessUnlock(pid, NULL));
    TRUE(state_of(pid) == RUNNING && answers(from[0], 60000));

    /* Itself: between the calls none but these may come. */
    OK(cuMemAlloc_v2(&all, 10 * MIB));
    before = room();
    OK(cuCheckpointProcessLock(getpid(), NULL));
    OK(cuCheckpointProcessCheckpoint(getpid(), NULL));
    TRUE(state_of(getpid()) == CHECKPOINTED);
    OK(cuCheckpointProcessRestore(getpid(), NULL));
    OK(cuCheckpointProcessUnlock(getpid(), NULL));
    TRUE(room() == before);
    OK(cuMemFree_v2(all));

    /* It dies while it has nothing: nothing is given back twice. */
    OK(cuCheckpointProcessLock(pid, NULL));
    OK(cuCheckpointProcessCheckpoint(pid, NULL));
    before = room();
    TRUE(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
    TRUE(room() == before);
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
