// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* threads.c: many threads submit, wait, allocate and free at once. "k" is short. */
#include <pthread.h>

#include "t.h"

#define THREADS 8
#define ROUNDS 150

static CUcontext ctx;
static CUfunction f;
static CUstream shared;
static int host_calls;

static void count(void *arg)
{
    (void)arg;
    __atomic_add_fetch(&host_calls, 1, __ATOMIC_SEQ_CST);
}

static void *work(void *arg)
{
    intptr_t id = (intptr_t)arg;
    unsigned char back[64];
    CUstream s;
    CUevent a, b;
    float ms;

    OK(cuCtxSetCurrent(ctx));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, CU_EVENT_BLOCKING_SYNC));
    for (int i = 0; i < ROUNDS; i++) {
        CUdeviceptr p;

        OK(cuMemAlloc_v2(&p, 64));
        OK(cuMemsetD8_v2_ptds(p, (unsigned char)(id + i), 64));
        OK(cuEventRecord(a, s));
        OK(launch(f, s));
        OK(launch(f, shared));
        OK(cuLaunchKernel_ptsz(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        OK(cuEventRecord(b, s));
        switch ((i + id) % 4) {
        case 0:
            OK(cuEventSynchronize(b));
            OK(cuEventElapsedTime(&ms, a, b));
            TRUE(ms > 0);
            break;
        case 1:
            OK(cuStreamSynchronize(shared));
            break;
        case 2:
            OK(cuStreamWaitEvent(shared, b, 0));
            OK(cuStreamSynchronize_ptsz(NULL));
            break;
        default:
            OK(cuLaunchHostFunc(s, count, NULL));
            OK(cuStreamSynchronize(s));
        }
        if (i % 5 == 0) { /* streams come and go while others wait for the context */
            CUstream brief;

            OK(cuStreamCreate(&brief, 0));
            for (int k = 0; k < 20; k++)
                OK(launch(f, brief));
            OK(cuStreamDestroy_v2(brief));
            OK(cuCtxSynchronize());
        }
        OK(cuMemcpyDtoH_v2_ptds(back, p, 64));
        TRUE(back[63] == (unsigned char)(id + i));
        OK(cuMemFree_v2(p));
    }
    OK(cuStreamSynchronize(s));
    OK(cuEventDestroy_v2(a));
    OK(cuEventDestroy_v2(b));
    OK(cuStreamDestroy_v2(s));
    return NULL;
}

int main(void)
{
    pthread_t t[THREADS];
    CUmodule m = start(&ctx);

    f = function(m, "k");
    OK(cuStreamCreate(&shared, CU_STREAM_NON_BLOCKING));
    for (intptr_t i = 0; i < THREADS; i++)
        TRUE(pthread_create(&t[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    OK(cuCtxSynchronize());
    TRUE(host_calls == THREADS * ROUNDS / 4 || host_calls > THREADS * (ROUNDS / 4 - 1));
    for (int i = 0; i < 5000; i++) /* far more than the queue holds */
        OK(launch(f, shared));
    OK(cuCtxSynchronize());
    OK(cuStreamQuery(shared));
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
