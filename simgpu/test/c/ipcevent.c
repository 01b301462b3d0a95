// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * ipcevent.c: two processes with the same event. Kernels: ten_ms, stuck (never
 * ends), bad (breaks its context). Argument: which part.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "ipc.h"

#define SHARED (CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING)

/* What both processes see besides. */
static struct {
    int passed, seen;
} *page;

struct gate {
    int end[2];
};

static void at_gate(void *arg)
{
    char c;

    TRUE(read(((struct gate *)arg)->end[0], &c, 1) == 1);
    __atomic_store_n(&page->passed, 1, __ATOMIC_SEQ_CST);
}

static void look(void *arg)
{
    (void)arg;
    __atomic_store_n(&page->seen, 1 + __atomic_load_n(&page->passed, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
}

/* The stream goes on when the gate is opened. */
static void shut(struct gate *g, CUstream s)
{
    page->passed = page->seen = 0;
    TRUE(pipe(g->end) == 0);
    OK(cuLaunchHostFunc(s, at_gate, g));
}

static void open_gate(struct gate *g)
{
    TRUE(write(g->end[1], "", 1) == 1);
}

/* By read and write, in which a thread may wait on a virtual clock. */
static void get(int from, void *data, size_t n)
{
    TRUE(read(from, data, n) == (ssize_t)n);
}

static void say(int to)
{
    tell(to, "", 1, -1);
}

static void listen_to(int from)
{
    char c;

    get(from, &c, 1);
}

static CUevent opened_from(int from)
{
    CUipcEventHandle h;
    CUevent e;

    get(from, &h, sizeof(h));
    OK(cuIpcOpenEventHandle(&e, h));
    return e;
}

static CUevent exported_to(int to)
{
    CUipcEventHandle h;
    CUevent e;

    OK(cuEventCreate(&e, SHARED));
    OK(cuIpcGetEventHandle(&h, e));
    tell(to, &h, sizeof(h), -1);
    return e;
}

/* ---- what is refused ---------------------------------------------------------- */

static void rules_child(int parent)
{
    CUipcEventHandle h, wrong;
    CUevent e, again;
    CUcontext ctx;
    float ms;

    start(&ctx);
    get(parent, &h, sizeof(h));
    memset(&wrong, 7, sizeof(wrong));
    WANT(cuIpcOpenEventHandle(&e, wrong), CUDA_ERROR_INVALID_HANDLE);
    wrong = h;
    wrong.reserved[12] ^= 1; /* in its key */
    WANT(cuIpcOpenEventHandle(&e, wrong), CUDA_ERROR_INVALID_HANDLE);
    WANT(cuIpcOpenEventHandle(NULL, h), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcOpenEventHandle(&e, h));
    OK(cuIpcOpenEventHandle(&again, h));
    TRUE(e != again);
    OK(cuEventQuery(e)); /* never recorded */
    OK(cuEventSynchronize(e));
    WANT(cuIpcGetEventHandle(&wrong, e), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(e, NULL));
    OK(cuEventSynchronize(again));
    WANT(cuEventElapsedTime(&ms, e, again), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventDestroy_v2(e));
    WANT(cuEventDestroy_v2(e), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventQuery(again));
    say(parent);
    listen_to(parent); /* it has destroyed its own */
    OK(cuEventRecord(again, NULL));
    OK(cuEventSynchronize(again));
    OK(cuIpcOpenEventHandle(&e, h)); /* while anybody has it */
    OK(cuEventDestroy_v2(e));
    OK(cuEventDestroy_v2(again));
    WANT(cuIpcOpenEventHandle(&e, h), CUDA_ERROR_INVALID_HANDLE);
}

static void rules(void)
{
    CUipcEventHandle h;
    CUevent e, o, plain;
    CUcontext ctx;
    pid_t child;
    int s = beside(rules_child, &child), yes;

    start(&ctx);
    OK(cuDeviceGetAttribute(&yes, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
    TRUE(yes == 1);
    WANT(cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    WANT(cuIpcGetEventHandle(&h, plain), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventCreate(&e, SHARED));
    WANT(cuIpcGetEventHandle(NULL, e), CUDA_ERROR_INVALID_VALUE);
    OK(cuIpcGetEventHandle(&h, e));
    WANT(cuIpcOpenEventHandle(&o, h), CUDA_ERROR_INVALID_CONTEXT); /* not in the same process */
    tell(s, &h, sizeof(h), -1);
    listen_to(s);
    OK(cuEventQuery(e));
    OK(cuEventDestroy_v2(e));
    say(s);
    ended(child);
    OK(cuCtxDestroy_v2(ctx));
}

/* ---- order -------------------------------------------------------------------- */

static void order_child(int parent)
{
    CUstream s, busy;
    struct gate g;
    CUcontext ctx;
    CUmodule m;
    CUevent e, behind;

    m = start(&ctx);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&behind, 0));
    e = opened_from(parent);

    /* The parent's record is behind a gate. */
    listen_to(parent);
    WANT(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    for (int i = 0; i < 4; i++)
        OK(launch(function(m, "ten_ms"), busy)); /* its turns alternate with the parent's */
    OK(cuStreamWaitEvent(s, e, 0));
    OK(cuLaunchHostFunc(s, look, NULL));
    OK(cuEventRecord(behind, s));
    WANT(cuEventQuery(behind), CUDA_ERROR_NOT_READY);
    say(parent);
    OK(cuEventSynchronize(e));
    TRUE(__atomic_load_n(&page->passed, __ATOMIC_SEQ_CST) == 1);
    OK(cuEventQuery(e));
    OK(cuEventSynchronize(behind));
    TRUE(page->seen == 2); /* the stream had waited for the gate */
    OK(cuStreamSynchronize(busy));

    /* And the other way round. */
    shut(&g, s);
    OK(cuEventRecord(e, s));
    say(parent);
    listen_to(parent);
    open_gate(&g);
    listen_to(parent);

    /* The parent's graph records it. */
    WANT(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    say(parent);
    OK(cuEventSynchronize(e));
    TRUE(page->passed == 1);
    say(parent);

    /* The parent destroys it before its record is complete. */
    listen_to(parent);
    WANT(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    say(parent);
    OK(cuEventSynchronize(e));
    TRUE(page->passed == 1);
    OK(cuEventDestroy_v2(e));
    say(parent);
}

static void order(void)
{
    CUgraphExec exec;
    CUgraph graph;
    CUevent e, next;
    CUstream s, other;
    struct gate g;
    CUcontext ctx;
    CUmodule m;
    pid_t child;
    int c = beside(order_child, &child);

    m = start(&ctx);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    e = exported_to(c);
    shut(&g, s);
    OK(launch(function(m, "ten_ms"), s));
    OK(cuEventRecord(e, s));
    say(c);
    listen_to(c);
    open_gate(&g);
    OK(cuEventSynchronize(e));

    listen_to(c); /* recorded by the child */
    WANT(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    OK(cuStreamWaitEvent(other, e, 0));
    OK(cuLaunchHostFunc(other, look, NULL));
    WANT(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    say(c);
    OK(cuStreamSynchronize(other));
    TRUE(page->seen == 2);
    OK(cuEventQuery(e));

    OK(cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecordWithFlags(e, other, CU_EVENT_RECORD_EXTERNAL));
    OK(cuStreamEndCapture(other, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    shut(&g, s);
    OK(cuGraphLaunch(exec, s));
    say(c);
    listen_to(c);
    open_gate(&g);
    OK(cuStreamSynchronize(s));
    listen_to(c);

    shut(&g, s);
    OK(cuEventRecord(e, s));
    OK(cuEventDestroy_v2(e));
    /* Who has its place has nothing of it. */
    OK(cuEventCreate(&next, 0));
    OK(cuEventQuery(next));
    OK(cuEventRecord(next, s));
    WANT(cuEventQuery(next), CUDA_ERROR_NOT_READY);
    say(c);
    listen_to(c);
    open_gate(&g);
    OK(cuEventSynchronize(next));
    listen_to(c);
    ended(child);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuCtxDestroy_v2(ctx));
}

/* ---- the end of who records ------------------------------------------------------ */

static const char *last_kernel;

/* Records behind last_kernel and says so. */
static void end_child(int parent)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);
    CUevent e = exported_to(parent);

    OK(launch(function(m, last_kernel), NULL));
    OK(cuEventRecord(e, NULL));
    say(parent);
    listen_to(parent);
    WANT(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    WANT(cuEventSynchronize(e), CUDA_ERROR_LAUNCH_FAILED);
    WANT(cuEventRecord(e, NULL), CUDA_ERROR_LAUNCH_FAILED);
    listen_to(parent); /* it lives on */
}

/* Who waits for the record goes on when that can no longer be made. */
static void end(const char *kernel, bool killed)
{
    CUstream s;
    CUcontext ctx;
    pid_t child;
    CUevent e;
    int c, status;

    last_kernel = kernel;
    c = beside(end_child, &child);
    start(&ctx);
    OK(cuStreamCreate(&s, 0));
    e = opened_from(c);
    listen_to(c);
    if (!strcmp(kernel, "stuck"))
        WANT(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    OK(cuStreamWaitEvent(s, e, 0));
    if (killed)
        TRUE(kill(child, SIGKILL) == 0);
    else
        say(c);
    OK(cuEventSynchronize(e));
    OK(cuStreamSynchronize(s));
    OK(cuEventQuery(e));
    if (!killed)
        say(c);
    TRUE(waitpid(child, &status, 0) == child);
    TRUE(killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(cuEventRecord(e, s)); /* it is ours now */
    OK(cuEventSynchronize(e));
    OK(cuCtxDestroy_v2(ctx));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TRUE(page != MAP_FAILED);
    if (!strcmp(what, "rules"))
        rules();
    else if (!strcmp(what, "order"))
        order();
    else if (!strcmp(what, "killed"))
        end("stuck", true);
    else if (!strcmp(what, "broken"))
        end("bad", false);
    else
        FAIL("which part?");
    return 0;
}
