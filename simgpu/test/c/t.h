// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* t.h: what the C test programs share. A program ends with 0 or says why not. */
#ifndef SG_TEST_H
#define SG_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda_abi.h"

#define FAIL(...)                                              \
    do {                                                       \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);        \
        fprintf(stderr, __VA_ARGS__);                          \
        fputc('\n', stderr);                                   \
        exit(1);                                               \
    } while (0)
#define WANT(call, code)                                       \
    do {                                                       \
        int got_ = (int)(call), want_ = (int)(code);           \
        if (got_ != want_)                                     \
            FAIL("%s gave %d, want %d", #call, got_, want_);   \
    } while (0)
#define OK(call) WANT(call, 0)
#define TRUE(cond)                                             \
    do {                                                       \
        if (!(cond))                                           \
            FAIL("not true: %s", #cond);                       \
    } while (0)

/*
 * Whether what is not over yet, and when something was, may be looked at: on a
 * clock that stands while a program computes. On the machine's, where SIMGPU_WALL
 * is set, a busy machine has its say.
 */
static inline int exact_clock(void)
{
    return !getenv("SIMGPU_WALL");
}

static inline double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A context on device 0 with a module of any code. */
static inline CUmodule start(CUcontext *ctx)
{
    CUmodule m;

    OK(cuInit(0));
    OK(cuCtxCreate_v2(ctx, 0, 0));
    OK(cuModuleLoadData(&m, "// any code\n"));
    return m;
}

static inline CUfunction function(CUmodule m, const char *name)
{
    CUfunction f;

    OK(cuModuleGetFunction(&f, m, name));
    return f;
}

static inline CUresult launch(CUfunction f, CUstream s)
{
    return cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, NULL, NULL);
}

#endif
