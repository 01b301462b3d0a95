// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * fork.c: who keeps device memory alive. Modes:
 *   fork   forks a child that sleeps, then dies by SIGKILL
 *   exec   forks a child that executes sleep, then ends
 *   before forks before cuInit; parent and child both use the GPU
 * The first line of output is "ready"; then the parent is gone, but for before.
 */
#include <signal.h>
#include <sys/wait.h>

#include "t.h"

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    CUcontext ctx;
    CUdeviceptr p;
    int count, status;
    pid_t child;

    if (!strcmp(mode, "before")) {
        child = fork();
        start(&ctx);
        OK(cuMemAlloc_v2(&p, 1 << 20));
        OK(cuMemsetD8_v2(p, 1, 1 << 20));
        OK(cuCtxSynchronize());
        if (!child)
            return 0;
        TRUE(waitpid(child, &status, 0) == child);
        TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        puts("ready");
        return 0;
    }
    start(&ctx);
    OK(cuMemAlloc_v2(&p, 64 << 20));
    child = fork();
    if (!child) {
        /* The driver is not usable in a forked child. */
        WANT(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
        WANT(cuMemAlloc_v2(&p, 1), CUDA_ERROR_NOT_INITIALIZED);
        WANT(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
        WANT(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
        WANT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_NOT_INITIALIZED);
        printf("child %d\n", getpid());
        fflush(stdout);
        if (!strcmp(mode, "exec"))
            execlp("sleep", "sleep", "60", NULL);
        sleep(60);
        return 0;
    }
    sleep(1);
    puts("ready");
    fflush(stdout);
    if (!strcmp(mode, "fork"))
        raise(SIGKILL);
    return 0;
}
