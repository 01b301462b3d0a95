// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * alloc: takes device memory, says what it got, and holds it.
 *
 *   alloc [--via WAY] [--gpu N] [--entry alloc|pitch|managed|async] [--procs N]
 *         (--fill [--step SIZE] | --take SIZE | --probe) [--hold no|stdin|signal] [--rounds N]
 *         [--fork-hold]
 *
 * --fill allocates in steps, halving the step at each refusal, until not even 512
 * bytes are to be had: the sum is exactly what the device gives this program.
 * --rounds repeats it N times with a hold between, keeping what it has.
 * --procs does so in N processes at once. --fork-hold forks a child after the
 * allocation and ends the parent by SIGKILL, so that the child alone keeps it.
 */
#define _GNU_SOURCE
#include "cu.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_PROCS = 4096 };

static const char *entry = "alloc", *hold = "no", *via;
static size_t step = 1ULL << 30, take;
static int gpu, fill, probe, procs = 1, rounds = 1, fork_hold;

static CUresult allocate(CUdeviceptr *ptr, size_t bytes)
{
    if (!strcmp(entry, "pitch")) {
        size_t pitch;

        return cu.MemAllocPitch(ptr, &pitch, 512, (bytes + 511) / 512, 4);
    }
    if (!strcmp(entry, "managed"))
        return cu.MemAllocManaged(ptr, bytes, CU_MEM_ATTACH_GLOBAL);
    if (!strcmp(entry, "async"))
        return cu.MemAllocAsync(ptr, bytes, NULL);
    return cu.MemAlloc(ptr, bytes);
}

static void report_fill(void)
{
    size_t total = 0, n = step, count = 0;
    CUresult rc = CUDA_SUCCESS;

    while (n >= 512) {
        CUdeviceptr ptr = 0xdead0000;

        rc = allocate(&ptr, n);
        if (rc == CUDA_SUCCESS) {
            total += n;
            count++;
            continue;
        }
        if (rc != CUDA_ERROR_OUT_OF_MEMORY)
            break;
        if (ptr != 0xdead0000)
            printf("changed the output of a refused call\n");
        n /= 2;
    }
    printf("filled %zu bytes in %zu allocations, next: %s (%d)\n", total, count, cu_name(rc), (int)rc);
}

static void report_take(void)
{
    CUdeviceptr ptr = 0;
    CUresult rc = allocate(&ptr, take);

    printf("took %zu bytes: %s (%d)\n", rc == CUDA_SUCCESS ? take : 0, cu_name(rc), (int)rc);
}

static void report_info(CUdevice dev)
{
    size_t free_bytes = 0, total = 0, device = 0;

    cu_must(cu.MemGetInfo(&free_bytes, &total), "cuMemGetInfo");
    cu_must(cu.DeviceTotalMem(&device, dev), "cuDeviceTotalMem");
    printf("info free %zu total %zu device %zu\n", free_bytes, total, device);
}

/* Children meet here: each has a context before the first one fills the device. */
static int ready[2] = { -1, -1 }, go[2] = { -1, -1 };

static void meet(void)
{
    char c;

    if (ready[1] < 0)
        return;
    close(ready[1]);
    close(go[1]);
    while (read(go[0], &c, 1) > 0)
        ;
}

static int work(void)
{
    CUdevice dev;

    cu_load(via);
    dev = cu_open(gpu);
    meet();
    for (;;) {
        if (fill)
            report_fill();
        if (take)
            report_take();
        report_info(dev);
        if (--rounds <= 0)
            break;
        printf("holding pid %d\n", (int)getpid());
        cu_hold(hold);
    }
    if (fork_hold) {
        fflush(stdout);
        if (fork() != 0)
            kill(getpid(), SIGKILL);
        /* The child cannot use CUDA, but it keeps the parent's descriptors. */
    }
    printf("holding pid %d\n", (int)getpid());
    cu_hold(hold);
    return 0;
}

static void usage(const char *bad)
{
    fprintf(stderr, "alloc: do not know \"%s\"\n", bad);
    exit(2);
}

static const char *value(char **argv, int *i)
{
    if (!argv[*i + 1])
        usage(argv[*i]);
    return argv[++*i];
}

int main(int argc, char **argv)
{
    int status, bad = 0;
    pid_t child[MAX_PROCS];

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--via"))
            via = value(argv, &i);
        else if (!strcmp(argv[i], "--gpu"))
            gpu = atoi(value(argv, &i));
        else if (!strcmp(argv[i], "--entry"))
            entry = value(argv, &i);
        else if (!strcmp(argv[i], "--step"))
            step = cu_bytes(value(argv, &i));
        else if (!strcmp(argv[i], "--take"))
            take = cu_bytes(value(argv, &i));
        else if (!strcmp(argv[i], "--fill"))
            fill = 1;
        else if (!strcmp(argv[i], "--probe"))
            probe = 1;
        else if (!strcmp(argv[i], "--procs"))
            procs = atoi(value(argv, &i));
        else if (!strcmp(argv[i], "--rounds"))
            rounds = atoi(value(argv, &i));
        else if (!strcmp(argv[i], "--hold"))
            hold = value(argv, &i);
        else if (!strcmp(argv[i], "--fork-hold"))
            fork_hold = 1;
        else
            usage(argv[i]);
    }
    if (!fill && !take && !probe)
        usage("no --fill, --take or --probe");
    if (!strcmp(hold, "signal"))
        cu_block_signals();
    if (procs == 1)
        return work();
    if (procs < 1 || procs > MAX_PROCS)
        usage("--procs");
    if (pipe(ready) || pipe(go)) {
        perror("alloc: pipe");
        return 1;
    }
    /* Each child starts before the driver is initialised, all at the same time. */
    for (int i = 0; i < procs; i++) {
        pid_t pid = fork();

        if (pid < 0) {
            perror("alloc: fork");
            return 1;
        }
        if (pid == 0)
            exit(work());
        child[i] = pid;
    }
    close(ready[1]);
    while (read(ready[0], &(char){ 0 }, 1) > 0)
        ; /* to the end: every child has a context, or has ended */
    close(go[1]);
    if (!strcmp(hold, "signal")) {
        cu_hold(hold);
        for (int i = 0; i < procs; i++)
            kill(child[i], SIGTERM);
    }
    while (wait(&status) > 0)
        bad |= status;
    return bad ? 1 : 0;
}
