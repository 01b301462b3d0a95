// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * edge: processes that take device memory in steps, all at once, until each has been
 * refused.
 *
 *   edge PROCESSES BYTES
 *
 * It prints "obtained BYTES slowest NS": what all of them got together beside their
 * contexts, and the longest call of any. None ends before all have been refused.
 */
#define _GNU_SOURCE
#include "cu.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct result {
    unsigned long long bytes, slowest;
};

static unsigned long long now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (unsigned long long)ts.tv_sec * 1000000000ULL + (unsigned long long)ts.tv_nsec;
}

static void take_all(size_t step, struct result *got)
{
    for (;;) {
        unsigned long long begin = now_ns(), took;
        CUdeviceptr p;
        CUresult rc = cu.MemAlloc(&p, step);

        took = now_ns() - begin;
        if (took > got->slowest)
            got->slowest = took;
        if (rc == CUDA_ERROR_OUT_OF_MEMORY)
            return;
        cu_must(rc, "cuMemAlloc");
        got->bytes += step;
    }
}

static void await(int fd, int n)
{
    char b;

    while (n--)
        if (read(fd, &b, 1) != 1)
            exit(1);
}

int main(int argc, char **argv)
{
    int n, gate[2], done[2], end[2], status, bad = 0;
    struct result *got, all = {0, 0};
    char b;

    if (argc != 3 || (n = atoi(argv[1])) < 1) {
        fprintf(stderr, "edge: want processes and bytes\n");
        return 2;
    }
    got = mmap(NULL, (size_t)n * sizeof *got, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED || pipe(gate) || pipe(done) || pipe(end))
        return 1;
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        if (pid < 0)
            return 1;
        if (pid)
            continue;
        close(gate[1]);
        close(end[1]);
        cu_load(NULL);
        cu_open(0);
        if (write(done[1], "", 1) != 1 || read(gate[0], &b, 1) != 0)
            _exit(1);
        take_all(strtoull(argv[2], NULL, 10), &got[i]);
        if (write(done[1], "", 1) != 1 || read(end[0], &b, 1) != 0)
            _exit(1);
        _exit(0);
    }
    close(done[1]);
    await(done[0], n);
    close(gate[1]);
    await(done[0], n);
    for (int i = 0; i < n; i++) {
        all.bytes += got[i].bytes;
        all.slowest = got[i].slowest > all.slowest ? got[i].slowest : all.slowest;
    }
    close(end[1]);
    for (int i = 0; i < n; i++)
        if (wait(&status) < 0 || status)
            bad = 1;
    if (!bad)
        printf("obtained %llu slowest %llu\n", all.bytes, all.slowest);
    return bad;
}
