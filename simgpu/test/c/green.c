// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * green.c: resources, green contexts, events of whole contexts, and what else a
 * program may keep with the driver. The GPU has compute capability 9.0.
 */
#include "t.h"

struct resource {
    unsigned type;
    char own[92];
    unsigned sms, least, align, flags;
    char room[24];
    void *next;
};
#define R(p) ((CUdevResource *)(void *)(p))

static void resources(void)
{
    struct resource all, half[64], rest, again;
    unsigned n = 0;
    int sms;

    OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    OK(cuDeviceGetDevResource(0, R(&all), 1));
    TRUE(all.type == 1 && all.sms == (unsigned)sms && all.least == 8 && all.align == 8);
    WANT(cuDeviceGetDevResource(0, R(&rest), 5), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    WANT(cuDeviceGetDevResource(9, R(&rest), 1), CUDA_ERROR_INVALID_DEVICE);
    OK(cuDevSmResourceSplitByCount(NULL, &n, R(&all), NULL, 0, 1));
    TRUE(n == (unsigned)sms / 8); /* rounded up to 8 */
    n = 64;
    OK(cuDevSmResourceSplitByCount(R(half), &n, R(&all), R(&rest), 0, 9));
    TRUE(n == (unsigned)sms / 16 && half[0].sms == 16 && half[n - 1].sms == 16);
    TRUE(rest.sms == (unsigned)sms - 16 * n && rest.type == (rest.sms ? 1u : 0u));
    n = 1;
    OK(cuDevSmResourceSplitByCount(R(half), &n, R(&all), R(&rest), 1, 3)); /* without co-scheduling: pairs */
    TRUE(n == 1 && half[0].sms == 4 && rest.sms == (unsigned)sms - 4);
    WANT(cuDevSmResourceSplitByCount(R(&again), &n, R(half), NULL, 0, 8), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    WANT(cuDevSmResourceSplitByCount(R(half), &n, R(&all), NULL, 0, (unsigned)sms + 1),
         CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    WANT(cuDevSmResourceSplitByCount(R(half), &n, R(&all), NULL, 8, 8), CUDA_ERROR_INVALID_VALUE);
    memset(&again, 0, sizeof(again));
    again.type = 1;
    again.sms = 64;
    WANT(cuDevSmResourceSplitByCount(R(half), &n, R(&again), NULL, 0, 8), CUDA_ERROR_INVALID_VALUE); /* made up */
}

static void contexts(void)
{
    struct resource all, part[2], rest, got;
    CUdevResourceDesc desc, bad;
    CUcontext primary, c, c2, was;
    CUgreenCtx g, g2;
    CUstream s, t, low;
    CUevent e, before;
    CUdeviceptr p;
    CUmodule m;
    CUfunction f;
    unsigned n = 2;
    float ms;

    OK(cuDeviceGetDevResource(0, R(&all), 1));
    OK(cuDevSmResourceSplitByCount(R(part), &n, R(&all), R(&rest), 0, 16));
    TRUE(n == 2);
    OK(cuDevResourceGenerateDesc(&desc, R(part), 1));
    OK(cuDevResourceGenerateDesc(&bad, R(part), 2));
    WANT(cuDevResourceGenerateDesc(&bad, R(&all), 0), CUDA_ERROR_INVALID_VALUE);
    part[1] = part[0];
    WANT(cuDevResourceGenerateDesc(&bad, R(part), 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION); /* twice */
    WANT(cuGreenCtxCreate(&g, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(cuGreenCtxCreate(&g, (CUdevResourceDesc)1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuGreenCtxCreate(&g, desc, 0, 1));
    OK(cuGreenCtxCreate(&g2, bad == desc ? desc : bad, 0, 1));
    OK(cuGreenCtxGetDevResource(g, R(&got), 1));
    TRUE(got.sms == 16);
    OK(cuGreenCtxGetDevResource(g2, R(&got), 1));
    TRUE(got.sms == 32);
    n = 1;
    OK(cuDevSmResourceSplitByCount(R(&rest), &n, R(&got), NULL, 0, 16)); /* through a context: again */
    OK(cuCtxFromGreenCtx(&c, g));
    OK(cuCtxFromGreenCtx(&c2, g2));
    OK(cuCtxGetCurrent(&was));
    OK(cuCtxSetCurrent(c));
    OK(cuCtxGetDevResource(c, R(&got), 1));
    TRUE(got.sms == 16);
    WANT(cuGreenCtxStreamCreate(&s, g, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGreenCtxStreamCreate(&s, g, CU_STREAM_NON_BLOCKING, 0));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    {
        CUgreenCtx of = NULL;
        CUcontext ctx = c;

        OK(cuStreamGetGreenCtx(s, &of));
        TRUE(of == g);
        OK(cuStreamGetCtx_v2(t, &ctx, &of));
        TRUE(!ctx && of == g);
    }
    /* A wave of "waves" takes 1 ms and needs 132 multiprocessors: 16 take it in more turns. */
    OK(cuModuleLoadData(&m, "// any code\n"));
    f = function(m, "waves");
    OK(cuEventCreate(&before, 0));
    OK(cuEventCreate(&e, 0));
    for (int i = 0; i < 10; i++)
        OK(launch(f, s));
    OK(cuEventRecord(before, s));
    OK(cuLaunchKernel(f, 16 * 2 * 4, 1, 1, 1024, 1, 1, 0, s, NULL, NULL));
    OK(cuEventRecord(e, s));
    OK(cuEventSynchronize(e));
    OK(cuEventElapsedTime(&ms, before, e));
    if (ms < 3.9f || (ms > 4.1f && exact_clock())) /* 128 blocks of 1024 threads, 2 on each of 16: 4 waves */
        FAIL("%.3f ms in the green context, want 4", ms);
    /* An event of the whole context; a gate before it. */
    OK(launch(f, s));
    OK(launch(f, t));
    OK(cuCtxRecordEvent(c, e));
    if (exact_clock())
        WANT(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    OK(cuEventSynchronize(e));
    OK(cuStreamQuery(s));
    OK(cuStreamQuery(t));
    OK(launch(f, s));
    OK(cuEventRecord(e, s));
    OK(cuGreenCtxWaitEvent(g, e));
    OK(cuStreamCreate(&low, CU_STREAM_NON_BLOCKING)); /* made later, waits as well */
    OK(cuEventRecord(before, low));
    OK(cuEventSynchronize(before));
    OK(cuEventQuery(e));
    OK(cuGreenCtxRecordEvent(g, e));
    OK(cuEventSynchronize(e));
    /* A context that captures has no event of its own. */
    OK(cuStreamBeginCapture_v2(t, CU_STREAM_CAPTURE_MODE_RELAXED));
    WANT(cuGreenCtxRecordEvent(g, e), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    {
        CUgraph graph;

        WANT(cuStreamEndCapture(t, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    /* Memory and streams stay when the green context goes; its handles do not. */
    OK(cuMemAlloc_v2(&p, 4096));
    OK(cuGreenCtxDestroy(g));
    WANT(cuGreenCtxDestroy(g), CUDA_ERROR_INVALID_CONTEXT);
    WANT(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuCtxSetCurrent(primary));
    OK(cuMemsetD8_v2(p, 1, 4096));
    OK(launch(f, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemFree_v2(p));
    OK(cuDevicePrimaryCtxReset_v2(0)); /* ends the other one too */
    WANT(cuCtxSetCurrent(c2), CUDA_ERROR_INVALID_CONTEXT);
    WANT(cuGreenCtxGetDevResource(g2, R(&got), 1), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxSetCurrent(was));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

static void tensor_maps(void)
{
    static char room[256];
    CUtensorMap *m = (CUtensorMap *)(void *)(room + 64 - (uintptr_t)room % 64);
    cuuint64_t dim[2] = {128, 64}, stride[1] = {512}, odd[1] = {500};
    cuuint32_t box[2] = {32, 8}, one[2] = {1, 1};
    CUdeviceptr p;

    OK(cuMemAlloc_v2(&p, 1 << 20));
#define TILED(map, rank, at, st, sw) \
    cuTensorMapEncodeTiled(map, 7, rank, (void *)(uintptr_t)(at), dim, st, box, one, 0, sw, 0, 0)
    OK(TILED(m, 2, p, stride, 3));
    TRUE(room[64] || room[65] || 1);
    OK(cuTensorMapReplaceAddress(m, (void *)(uintptr_t)(p + 4096)));
    WANT(cuTensorMapReplaceAddress(m, (void *)(uintptr_t)(p + 4)), CUDA_ERROR_INVALID_VALUE);
    WANT(TILED((CUtensorMap *)(void *)((char *)m + 16), 2, p, stride, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(TILED(m, 6, p, stride, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(TILED(m, 2, p + 8, stride, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(TILED(m, 2, p, odd, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(TILED(m, 2, p, stride, 1), CUDA_ERROR_INVALID_VALUE); /* 128 bytes do not fit 32 */
    box[0] = 257;
    WANT(TILED(m, 2, p, stride, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(p));
}

static void called(void *arg, unsigned level, char *text, size_t n)
{
    (void)arg, (void)level, (void)text, (void)n;
}

static void settings(void)
{
    char name[512] = "", log[64] = "x";
    CUlogsCallbackHandle h;
    CUlogIterator it = 7;
    size_t n = 1;
    unsigned char on = 7;

    OK(cuCoredumpGetAttributeGlobal(2, &on, &n));
    TRUE(on == 1);
    n = sizeof(name);
    OK(cuCoredumpGetAttributeGlobal(5, name, &n));
    TRUE(!strncmp(name, "core.cuda.", 10) && n == strlen(name) + 1);
    on = 1;
    n = 1;
    OK(cuCoredumpSetAttribute(1, &on, &n));
    on = 0;
    OK(cuCoredumpGetAttribute(1, &on, &n));
    TRUE(on == 1);
    OK(cuCoredumpGetAttributeGlobal(1, &on, &n));
    TRUE(on == 0);
    WANT(cuCoredumpSetAttribute(6, "x", &n), CUDA_ERROR_NOT_PERMITTED);
    WANT(cuCoredumpGetAttributeGlobal(99, &on, &n), CUDA_ERROR_INVALID_VALUE);

    OK(cuLogsRegisterCallback(called, NULL, &h));
    OK(cuLogsCurrent(&it, 0));
    n = sizeof(log);
    OK(cuLogsDumpToMemory(&it, log, &n, 0));
    TRUE(!n && !*log);
    OK(cuLogsUnregisterCallback(h));
    WANT(cuLogsUnregisterCallback(h), CUDA_ERROR_INVALID_VALUE);

    WANT(cuGraphicsMapResources(1, (CUgraphicsResource *)name, NULL), CUDA_ERROR_INVALID_HANDLE);
}

int main(void)
{
    CUcontext ctx;

    start(&ctx);
    resources();
    contexts();
    tensor_maps();
    settings();
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
