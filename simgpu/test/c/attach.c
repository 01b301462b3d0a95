// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * attach.c N: N processes wait at a gate and then start the driver and make a
 * primary context, all at once. Prints how long that took: all of them, and the
 * median of one, in microseconds. None ends before all are attached.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "t.h"

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void attach(double *took)
{
    double begin = now_s();
    CUcontext c;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    *took = now_s() - begin;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 64, gate[2], done[2], end[2], status;
    double *took = mmap(NULL, (size_t)n * sizeof(*took), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double begin;
    char b;

    TRUE(took != MAP_FAILED && !pipe(gate) && !pipe(done) && !pipe(end));
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        TRUE(pid >= 0);
        if (pid)
            continue;
        close(gate[1]);
        close(end[1]);
        TRUE(write(done[1], "", 1) == 1);
        TRUE(read(gate[0], &b, 1) == 0);
        attach(&took[i]);
        TRUE(write(done[1], "", 1) == 1);
        TRUE(read(end[0], &b, 1) == 0);
        _exit(0);
    }
    for (int i = 0; i < n; i++) /* all are at the gate */
        TRUE(read(done[0], &b, 1) == 1);
    begin = now_s();
    close(gate[1]);
    for (int i = 0; i < n; i++)
        TRUE(read(done[0], &b, 1) == 1);
    printf("all %.0f us", (now_s() - begin) * 1e6);
    qsort(took, (size_t)n, sizeof(*took), compare);
    printf(" median %.0f us\n", took[n / 2] * 1e6);
    close(end[1]);
    for (int i = 0; i < n; i++) {
        TRUE(wait(&status) > 0);
        TRUE(status == 0);
    }
    return 0;
}
