// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * saturate: keeps the GPU as busy as it is allowed to.
 *
 *   saturate --kernel NAME [--mode async|sync|graph|vary] [--seconds T] [--launches N]
 *            [--grid N] [--rounds N] [--nodes N] [--via WAY] [--gpu N]
 *
 * Launches one kernel, always with the same grid, until T seconds have passed, N
 * launches are done, or SIGTERM, SIGINT or SIGUSR1 arrives. "async" never waits
 * for a kernel itself, "sync" waits after each, "graph" launches a captured graph
 * of eight kernels, or of as many as --nodes says; "vary" gives each launch another
 * grid, as programs do whose input varies. Says "running" after the first one has ended, and at the end
 * how many kernels were launched.
 */
#define _GNU_SOURCE
#include "cu.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop;
static unsigned int grid = 128, rounds = 1000, nodes = 8;
static CUfunction function;
static CUstream stream;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

static double seconds_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void launch(void)
{
    void *params[] = { &rounds };

    cu_must(cu.LaunchKernel(function, grid, 1, 1, 256, 1, 1, 0, stream, params, NULL), "cuLaunchKernel");
}

static CUgraphExec capture(void)
{
    CUgraph graph;
    CUgraphExec exec;

    cu_must(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    for (unsigned int i = 0; i < nodes; i++)
        launch();
    cu_must(cu.StreamEndCapture(stream, &graph), "cuStreamEndCapture");
    cu_must(cu.GraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
    return exec;
}

static const char *value(char **argv, int *i)
{
    if (!argv[*i + 1]) {
        fprintf(stderr, "saturate: %s needs a value\n", argv[*i]);
        exit(2);
    }
    return argv[++*i];
}

int main(int argc, char **argv)
{
    const char *kernel = "spin", *mode = "async", *via = NULL;
    double seconds = 0, until;
    unsigned long long most = 0, count = 0;
    int gpu = 0, sync, graph, vary;
    CUgraphExec exec = NULL;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--kernel"))
            kernel = value(argv, &i);
        else if (!strcmp(argv[i], "--mode"))
            mode = value(argv, &i);
        else if (!strcmp(argv[i], "--seconds"))
            seconds = atof(value(argv, &i));
        else if (!strcmp(argv[i], "--launches"))
            most = strtoull(value(argv, &i), NULL, 10);
        else if (!strcmp(argv[i], "--grid"))
            grid = (unsigned int)atoi(value(argv, &i));
        else if (!strcmp(argv[i], "--nodes"))
            nodes = (unsigned int)atoi(value(argv, &i));
        else if (!strcmp(argv[i], "--rounds"))
            rounds = (unsigned int)atoi(value(argv, &i));
        else if (!strcmp(argv[i], "--via"))
            via = value(argv, &i);
        else if (!strcmp(argv[i], "--gpu"))
            gpu = atoi(value(argv, &i));
        else {
            fprintf(stderr, "saturate: do not know \"%s\"\n", argv[i]);
            return 2;
        }
    }
    sync = !strcmp(mode, "sync");
    graph = !strcmp(mode, "graph");
    vary = !strcmp(mode, "vary");
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    signal(SIGUSR1, on_signal);

    cu_load(via);
    cu_open(gpu);
    function = cu_function(kernel);
    cu_must(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (graph)
        exec = capture();
    launch();
    cu_must(cu.StreamSynchronize(stream), "cuStreamSynchronize");
    printf("running pid %d\n", (int)getpid());
    fflush(stdout);
    until = seconds > 0 ? seconds_now() + seconds : 0;
    while (!stop && (!most || count < most) && (until <= 0 || seconds_now() < until)) {
        if (graph) {
            cu_must(cu.GraphLaunch(exec, stream), "cuGraphLaunch");
            count += nodes;
        } else {
            grid += (unsigned int)vary;
            launch();
            count++;
        }
        if (sync)
            cu_must(cu.StreamSynchronize(stream), "cuStreamSynchronize");
    }
    printf("launched %llu kernels\n", count);
    fflush(stdout);
    _exit(0); /* what is still queued is dropped with the process, as for any program that ends */
}
