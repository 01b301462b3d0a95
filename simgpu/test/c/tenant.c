// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * tenant.c: a program that uses all that depends on time, as its seed says.
 *   tenant SEED STEPS [threads]   kernels of several names, events, waits, host
 *                                 functions, allocations, think time; with
 *                                 threads, three workers that share a lock
 *   tenant launches COUNT         kernels, a wait after every 64, think time
 *   tenant query COUNT            asks for an event until it is there
 *   tenant spin                   says ready and computes for ever
 */
#include <pthread.h>

#include "t.h"

static const char *const names[] = {"short", "middle", "long"};

static uint64_t next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

struct work {
    CUcontext ctx;
    CUfunction f[3];
    uint64_t seed;
    int steps;
    pthread_mutex_t *lock;
    pthread_cond_t *cond;
    int *count;
};

static int called;

static void on_host(void *arg)
{
    (void)arg;
    __atomic_add_fetch(&called, 1, __ATOMIC_SEQ_CST);
}

static void think(uint64_t us)
{
    const struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};

    nanosleep(&t, NULL);
}

static void *work(void *arg)
{
    struct work *w = arg;
    CUdeviceptr mem[8] = {0};
    CUstream s[2];
    CUevent e;
    float ms;
    char buffer[4096] = {0};

    OK(cuCtxSetCurrent(w->ctx));
    OK(cuStreamCreate(&s[0], 0));
    OK(cuStreamCreate(&s[1], CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, 0));
    for (int i = 0; i < w->steps; i++) {
        uint64_t r = next(&w->seed);
        CUstream to = s[r >> 8 & 1];

        for (uint64_t n = r >> 16 & 15; n > 0; n--)
            OK(launch(w->f[next(&w->seed) % 3], to));
        switch (r % 9) {
        case 0:
            OK(cuStreamSynchronize(to));
            break;
        case 1:
            OK(cuLaunchHostFunc(to, on_host, NULL));
            break;
        case 2:
            if (mem[r >> 24 & 7])
                OK(cuMemFree_v2(mem[r >> 24 & 7]));
            OK(cuMemAlloc_v2(&mem[r >> 24 & 7], (r >> 32 & 0xfffff) + 4096));
            OK(cuMemcpyHtoD_v2(mem[r >> 24 & 7], buffer, sizeof(buffer)));
            break;
        case 3:
            think(r >> 20 & 4095);
            break;
        case 4:
            OK(cuEventRecord(e, to));
            OK(cuStreamWaitEvent(s[0], e, 0));
            break;
        case 5:
            OK(cuEventRecord(e, to));
            OK(cuEventSynchronize(e));
            break;
        case 6:
            OK(cuEventRecord(e, to));
            while (cuEventQuery(e) == CUDA_ERROR_NOT_READY)
                ;
            OK(cuEventElapsedTime(&ms, e, e));
            break;
        case 7:
            OK(launch(w->f[0], NULL)); /* ordered against the blocking stream */
            break;
        default:
            pthread_mutex_lock(w->lock);
            ++*w->count;
            if (r & 1 << 20) /* in the GPU's time while others wait for the lock */
                OK(cuStreamSynchronize(to));
            pthread_cond_broadcast(w->cond);
            pthread_mutex_unlock(w->lock);
            break;
        }
    }
    OK(cuCtxSynchronize());
    OK(cuEventDestroy_v2(e));
    OK(cuStreamDestroy_v2(s[0]));
    OK(cuStreamDestroy_v2(s[1]));
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    int count = 0, threads = argc > 3 ? 3 : 1;
    struct work w[3];
    pthread_t t[3];
    CUcontext ctx;
    CUmodule m;

    if (argc < 2)
        FAIL("usage");
    m = start(&ctx);
    puts("ready");
    fflush(stdout);
    if (!strcmp(argv[1], "spin")) {
        for (volatile int i = 0;; i++)
            ;
    }
    if (!strcmp(argv[1], "launches")) {
        CUfunction f = function(m, "short");

        for (int i = 1; i <= atoi(argv[2]); i++) {
            OK(launch(f, NULL));
            if (i % 64 == 0) {
                OK(cuCtxSynchronize());
                think(30000);
            }
        }
        OK(cuCtxSynchronize());
        return 0;
    }
    if (!strcmp(argv[1], "query")) {
        CUfunction f = function(m, "long");
        CUevent e;
        long asked = 0;

        OK(cuEventCreate(&e, 0));
        for (int i = 0; i < atoi(argv[2]); i++) {
            OK(launch(f, NULL));
            OK(cuEventRecord(e, NULL));
            for (; cuEventQuery(e) == CUDA_ERROR_NOT_READY; asked++)
                ;
        }
        printf("%ld\n", asked);
        return 0;
    }
    for (int i = 0; i < threads; i++) {
        w[i] = (struct work){.ctx = ctx, .seed = strtoull(argv[1], NULL, 10) * 1000003 + (uint64_t)i + 1,
                             .steps = atoi(argv[2]), .lock = &lock, .cond = &cond, .count = &count};
        for (int k = 0; k < 3; k++)
            w[i].f[k] = function(m, names[k]);
        if (threads == 1)
            work(&w[0]);
        else if (pthread_create(&t[i], NULL, work, &w[i]) != 0)
            FAIL("no thread");
    }
    for (int i = 0; threads > 1 && i < threads; i++)
        pthread_join(t[i], NULL);
    OK(cuCtxDestroy_v2(ctx));
    printf("%d %d\n", called, count);
    return 0;
}
