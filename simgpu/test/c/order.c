// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * order.c: which of several streams goes first. Kernels: ten_ms on one
 * multiprocessor. Argument: how many kernels of a context run at once.
 */
#include "t.h"

static CUevent begin, end[4];

static double at(int i)
{
    float ms;

    OK(cuEventSynchronize(end[i]));
    OK(cuEventElapsedTime(&ms, begin, end[i]));
    return ms;
}

static void is(int i, double want)
{
    double got = at(i);

    if (got < want - 0.01 || got > want + 0.01)
        FAIL("stream %d is done at %.3f ms, want %.3f", i, got, want);
}

int main(int argc, char **argv)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);
    CUfunction ten = function(m, "ten_ms"), lead = function(m, "lead");
    CUstream s[4];
    int most = argc > 1 ? atoi(argv[1]) : 1;

    OK(cuEventCreate(&begin, 0));
    for (int i = 0; i < 4; i++)
        OK(cuEventCreate(&end[i], 0));

    /* Priorities; the first stream holds all back until everything is queued. */
    OK(cuStreamCreateWithPriority(&s[0], CU_STREAM_NON_BLOCKING, 0));
    OK(cuStreamCreateWithPriority(&s[1], CU_STREAM_NON_BLOCKING, 0));
    OK(cuStreamCreateWithPriority(&s[2], CU_STREAM_NON_BLOCKING, -1));
    OK(cuStreamCreateWithPriority(&s[3], CU_STREAM_NON_BLOCKING, -5));
    OK(launch(lead, s[0]));
    OK(cuEventRecord(begin, s[0]));
    for (int i = 1; i < 4; i++) {
        OK(cuStreamWaitEvent(s[i], begin, 0));
        OK(launch(ten, s[i]));
        OK(cuEventRecord(end[i], s[i]));
    }
    for (int i = 1; i < 4; i++)
        is(i, most > 1 ? 10 : 10 * (4 - i));

    /* An older record of an event, in another stream, changes nothing about it. */
    OK(launch(ten, s[1]));
    OK(cuEventRecord(end[1], s[1]));
    OK(cuEventRecord(end[1], s[0]));
    OK(cuStreamSynchronize(s[0]));
    OK(cuStreamSynchronize(s[1]));
    OK(cuEventQuery(end[1]));
    OK(cuEventSynchronize(end[1]));

    /* The default stream waits for blocking ones, and they for it. */
    OK(cuStreamCreate(&s[1], 0));
    OK(cuStreamCreate(&s[2], 0));
    OK(launch(lead, s[0]));
    OK(cuEventRecord(begin, s[0]));
    OK(cuStreamWaitEvent(s[1], begin, 0));
    OK(launch(ten, s[1]));
    OK(cuEventRecord(end[1], s[1]));
    OK(launch(ten, CU_STREAM_LEGACY));
    OK(cuEventRecord(end[0], NULL));
    OK(launch(ten, s[2]));
    OK(cuEventRecord(end[2], s[2]));
    OK(cuStreamWaitEvent(s[3], begin, 0));
    OK(launch(ten, s[3])); /* not ordered, and of the greatest priority */
    OK(cuEventRecord(end[3], s[3]));
    is(3, 10);
    is(1, most > 1 ? 10 : 20);
    is(0, most > 1 ? 20 : 30);
    is(2, most > 1 ? 30 : 40);

    /* The calling thread's default stream is a blocking one of its own. */
    OK(launch(lead, s[0]));
    OK(cuEventRecord(begin, s[0]));
    OK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, begin, 0));
    OK(launch(ten, CU_STREAM_PER_THREAD));
    OK(cuEventRecord(end[1], CU_STREAM_PER_THREAD));
    OK(launch(ten, CU_STREAM_LEGACY));
    OK(cuEventRecord(end[0], NULL));
    is(1, 10);
    is(0, 20);
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
