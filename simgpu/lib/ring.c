// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * ring.c: submission and waiting. An entry goes into shared memory without a
 * system call; only when the host process sleeps is it woken. A waiting thread
 * says how far its stream must come and sleeps on a word that the host moves.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sg.h"

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *t)
{
    return syscall(SYS_futex, word, op, value, t, NULL, 0);
}

/* Wakes the host's engine thread, which may not be looking at our ring. */
void sg_kick(void)
{
    struct sg_kicks *k = sg_conn.kicks;

    if (!__atomic_load_n(&sg_conn.shm->awake, __ATOMIC_SEQ_CST))
        __atomic_add_fetch(&k->scan, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&k->word, 1, __ATOMIC_SEQ_CST);
    futex(&k->word, FUTEX_WAKE, INT32_MAX, NULL);
}

uint64_t sg_now(void)
{
    struct timespec t;

    if (sg_clock_on())
        return sg_clock_now();
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* After each connection: which clock is it? */
void sg_ring_connected(void)
{
    bool on = sg_conn.node->clock_virtual != 0;

    sg_clock.node = sg_conn.node;
    sg_clock.kicks = sg_conn.kicks;
    sg_clock.fd = sg_conn.fd;
    sg_clock.waits = on ? sg_conn.waits : NULL;
    sg_conn.before_call = on ? sg_clock_catch_up : NULL;
}

/* Waits on the virtual clock. */
static CUresult block_until(uint32_t kind, uint32_t slot, uint64_t position, uint64_t until_ns)
{
    const struct sg_wait w = {.kind = kind, .slot = slot, .position = position, .until_ns = until_ns};

    if (sg_clock_block(&w) != EIO)
        return CUDA_SUCCESS;
    sg_host_gone();
    return CUDA_ERROR_UNKNOWN;
}

CUresult sg_block(uint32_t kind, uint32_t slot, uint64_t position)
{
    return block_until(kind, slot, position, SG_FOREVER);
}

#define PATIENCE_NS 200000000

static bool host_lives(void)
{
    struct pollfd p = {.fd = sg_conn.fd, .events = 0};

    if (!sg_conn.lost && !(poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR))))
        return true;
    sg_host_gone();
    return false;
}

/* What a query says of work that is not done: a program that only asks finds
 * out in this way that the host is gone. */
CUresult sg_not_ready(void)
{
    static int64_t looked;
    int64_t now, before = __atomic_load_n(&looked, __ATOMIC_RELAXED);
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    if (now - before < PATIENCE_NS)
        return CUDA_ERROR_NOT_READY;
    __atomic_store_n(&looked, now, __ATOMIC_RELAXED);
    return host_lives() ? CUDA_ERROR_NOT_READY : CUDA_ERROR_UNKNOWN;
}

/* Sleeps while *word is value; finds out now and then whether the host lives. */
CUresult sg_sleep_on(uint32_t *word, uint32_t value)
{
    const struct timespec patience = {.tv_nsec = PATIENCE_NS};

    if (futex(word, FUTEX_WAIT, value, &patience) != 0 && errno == ETIMEDOUT) {
        if (!host_lives())
            return CUDA_ERROR_UNKNOWN;
        if (word != &sg_conn.shm->host_head)
            sg_kick(); /* should a wake have been lost */
    }
    return CUDA_SUCCESS;
}

static CUresult wait_for_space(struct sg_shared *m, uint64_t head)
{
    CUresult r = CUDA_SUCCESS;

    __atomic_add_fetch(&m->space_waiters, 1, __ATOMIC_SEQ_CST);
    while (r == CUDA_SUCCESS) {
        uint32_t v = __atomic_load_n(&m->tail_futex, __ATOMIC_SEQ_CST);

        if (head - __atomic_load_n(&m->tail, __ATOMIC_SEQ_CST) < SG_RING_ENTRIES)
            break;
        if (sg_clock_on()) {
            r = sg_block(SG_WAIT_SPACE, 0, 0);
            continue;
        }
        if (!__atomic_load_n(&m->awake, __ATOMIC_SEQ_CST))
            sg_kick();
        r = sg_sleep_on(&m->tail_futex, v);
    }
    __atomic_sub_fetch(&m->space_waiters, 1, __ATOMIC_SEQ_CST);
    return r;
}

CUresult sg_submit(CUstream s, uint32_t kind, uint32_t arg, uint64_t arg64, uint64_t *ret_position)
{
    struct sg_shared *m = sg_conn.shm;
    struct sg_entry *e;
    uint64_t head;

    pthread_mutex_lock(&sg_conn.ring_lock);
    head = m->head;
    if (__builtin_expect(head - __atomic_load_n(&m->tail, __ATOMIC_ACQUIRE) >= SG_RING_ENTRIES, 0)) {
        CUresult r = wait_for_space(m, head);

        if (r != CUDA_SUCCESS) {
            pthread_mutex_unlock(&sg_conn.ring_lock);
            return r;
        }
    }
    e = &m->ring[head % SG_RING_ENTRIES];
    if (sg_clock_on())
        sg_clock_spend(sg_clock.node->call_cost_ns);
    e->time_ns = sg_now();
    e->stream = s->slot;
    e->kind = kind;
    e->arg = arg;
    e->arg64 = arg64;
    __atomic_store_n(&s->pushed, s->pushed + 1, __ATOMIC_RELEASE);
    if (ret_position)
        __atomic_store_n(ret_position, s->pushed, __ATOMIC_RELEASE);
    /* The entry must be seen before we look whether the host sleeps. */
    __atomic_store_n(&m->head, head + 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&sg_conn.ring_lock);
    if (__builtin_expect(!__atomic_load_n(&m->awake, __ATOMIC_SEQ_CST), 0) && !sg_clock_on())
        sg_kick();
    return sg_conn.lost ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

/* The order of a host function and a thread that has waited for it goes through
 * the host process, where the thread sanitizer does not see it. */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *p);
void __tsan_release(void *p);

static void before_others(void)
{
    __tsan_release(sg_conn.shm);
}

void sg_after_others(void)
{
    __tsan_acquire(sg_conn.shm);
}
#else
static void before_others(void)
{
}

void sg_after_others(void)
{
}
#endif

bool sg_done(uint32_t slot, uint64_t position)
{
    if (__atomic_load_n(&sg_conn.shm->stream[slot].done, __ATOMIC_SEQ_CST) < position)
        return false;
    sg_after_others();
    return true;
}

bool sg_asked(uint32_t slot, uint64_t position)
{
    if (!sg_clock_on())
        return false;
    sg_clock_asked();
    return sg_done(slot, position);
}

/* Waits until a stream has come to a position. */
CUresult sg_wait(uint32_t slot, uint64_t position)
{
    static pthread_mutex_t wanted_lock = PTHREAD_MUTEX_INITIALIZER;
    struct sg_shared *m = sg_conn.shm;
    struct sg_stream_slot *w = &m->stream[slot];
    CUresult r = CUDA_SUCCESS;

    while (r == CUDA_SUCCESS && !sg_done(slot, position)) {
        uint32_t v = __atomic_load_n(&m->done_futex, __ATOMIC_SEQ_CST);
        uint64_t wanted;
        bool told = true;

        if (sg_clock_on()) {
            r = sg_block(SG_WAIT_STREAM, slot, position);
            continue;
        }
        /* The nearest of several wanted positions stands; its wake makes the
         * others ask again. */
        pthread_mutex_lock(&wanted_lock);
        wanted = w->wanted;
        if (wanted > position || sg_done(slot, wanted)) {
            __atomic_store_n(&w->wanted, position, __ATOMIC_SEQ_CST);
            told = false;
        }
        pthread_mutex_unlock(&wanted_lock);
        if (sg_done(slot, position))
            break;
        if (!told)
            sg_kick();
        r = sg_sleep_on(&m->done_futex, v);
    }
    return r;
}

/* Waits for what the streams of a context hold now. */
static CUresult wait_streams(CUcontext ctx, bool blocking_only)
{
    struct position {
        uint32_t slot;
        uint64_t pushed;
    } few[16], *all = few; /* callers' stacks may be small */
    size_t n = 0, want = 0;
    CUresult r = CUDA_SUCCESS;

    sg_lock();
    for (CUstream s = ctx->streams; s; s = s->next)
        want++;
    if (want > SG_LEN(few) && !(all = malloc(want * sizeof(*all)))) {
        sg_unlock();
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (CUstream s = ctx->streams; s; s = s->next) {
        if (blocking_only && s->kind == SG_STREAM_NONBLOCKING)
            continue;
        all[n].slot = s->slot;
        all[n++].pushed = __atomic_load_n(&s->pushed, __ATOMIC_ACQUIRE);
    }
    sg_unlock();
    while (n-- && r == CUDA_SUCCESS)
        r = sg_wait(all[n].slot, all[n].pushed);
    if (all != few)
        free(all);
    return r == CUDA_SUCCESS ? sg_ctx_fault(ctx) : r;
}

/* Waits for all streams of a context. */
CUresult sg_ctx_wait(CUcontext ctx)
{
    return wait_streams(ctx, false);
}

/* Waits for the streams that the default stream is ordered behind. */
CUresult sg_ctx_wait_blocking(CUcontext ctx)
{
    return wait_streams(ctx, true);
}

/* ---- host functions ------------------------------------------------------ */

struct pending {
    bool (*ready)(void *arg); /* not NULL: the stream waits until it says so */
    uint32_t slot;
    uint64_t position;
    CUhostFn fn;
    CUstreamCallback cb;
    void *arg;
    CUstream stream;
    struct pending *next;
};

static struct {
    pthread_mutex_t lock;
    struct pending *first;
    unsigned unfinished;
    bool running;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct pending *take(uint32_t slot, uint64_t position)
{
    struct pending **p, *f = NULL;

    pthread_mutex_lock(&host.lock);
    for (p = &host.first; *p; p = &(*p)->next) {
        if ((*p)->slot == slot && __atomic_load_n(&(*p)->position, __ATOMIC_ACQUIRE) == position) {
            f = *p;
            *p = f->next;
            break;
        }
    }
    pthread_mutex_unlock(&host.lock);
    return f;
}

static void run(struct pending *f, uint32_t slot, uint64_t position)
{
    if (f && f->fn)
        f->fn(f->arg);
    else if (f && f->cb)
        f->cb(f->stream, CUDA_SUCCESS, f->arg);
    if (f)
        __atomic_sub_fetch(&host.unfinished, 1, __ATOMIC_SEQ_CST);
    free(f);
    before_others();
    sg_tell(SG_OP_HOST_DONE, slot, position);
    /* The host has no answer to that. What follows from it is there at the next turn. */
    if (sg_clock_on())
        sg_block(SG_WAIT_TURN, 0, 0);
}

/* How often memory is looked at that a stream waits for: any processor's store
 * may end the wait. */
#define LOOK_NS 20000

/* Runs what has become ready of the streams that wait. */
static void look(struct pending **waiting)
{
    while (*waiting) {
        struct pending *f = *waiting;

        if (!f->ready(f->arg)) {
            waiting = &f->next;
            continue;
        }
        *waiting = f->next;
        run(f, f->slot, f->position);
    }
}

static void *host_thread(void *arg SG_UNUSED)
{
    struct sg_shared *m = sg_conn.shm;
    struct pending *waiting = NULL;
    uint32_t seen = 0;

    for (;;) {
        uint32_t head = __atomic_load_n(&m->host_head, __ATOMIC_SEQ_CST);

        look(&waiting);
        if (seen == head) {
            const struct timespec soon = {.tv_nsec = LOOK_NS};

            if (sg_clock_on()) {
                if (block_until(SG_WAIT_HOST, 0, head, waiting ? sg_now() + LOOK_NS : SG_FOREVER) != CUDA_SUCCESS)
                    return NULL;
                continue;
            }
            if (waiting && !sg_conn.lost)
                futex(&m->host_head, FUTEX_WAIT, head, &soon);
            else if (sg_sleep_on(&m->host_head, head) != CUDA_SUCCESS)
                return NULL;
            continue;
        }
        for (; seen != head; seen++) {
            uint64_t due = __atomic_load_n(&m->host_due[seen % SG_HOST_SLOTS], __ATOMIC_ACQUIRE);
            uint32_t slot = (uint32_t)(due >> 48);
            uint64_t position = due & ((1ull << 48) - 1);
            struct pending *f = take(slot, position);

            if (f && f->ready && !f->ready(f->arg)) {
                f->next = waiting;
                waiting = f;
                continue;
            }
            run(f, slot, position);
        }
    }
}

/* By its oldest name, and optional, so that the library loads where the threads
 * are in a library of their own that the program did not link. */
#if defined(__x86_64__)
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
#endif
extern __typeof__(pthread_create) pthread_create __attribute__((weak));

static bool start_host_thread(void)
{
    uint64_t all = ~0ull, old;
    pthread_t t;
    int r;

    if (!pthread_create)
        return false;
    /* The program's signals are none of that thread's business. */
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
    r = pthread_create(&t, NULL, host_thread, NULL);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
    return r == 0;
}

/* Runs fn, or cb, on a thread of ours when s has come to it. */
CUresult sg_host_function(CUstream s, CUhostFn fn, void *arg, CUstreamCallback cb)
{
    return sg_host_when(s, NULL, fn, arg, cb);
}

/* The same, but not before ready says so. */
CUresult sg_host_when(CUstream s, bool (*ready)(void *), CUhostFn fn, void *arg, CUstreamCallback cb)
{
    struct pending *f = calloc(1, sizeof(*f)), **p;
    CUresult r;

    if (!f)
        return CUDA_ERROR_OUT_OF_MEMORY;
    f->ready = ready;
    f->fn = fn;
    f->cb = cb;
    f->arg = arg;
    f->stream = s;
    f->slot = s->slot;
    pthread_mutex_lock(&host.lock);
    if (!host.running && !(host.running = start_host_thread())) {
        pthread_mutex_unlock(&host.lock);
        free(f);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    /* In the list before it can be due; the submission, which may have to wait
     * for the functions before it, fills in the position. */
    f->next = host.first;
    host.first = f;
    __atomic_add_fetch(&host.unfinished, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&host.lock);
    r = sg_submit(s, SG_ENTRY_HOST, 0, 0, &f->position);
    if (r == CUDA_SUCCESS)
        return r;
    pthread_mutex_lock(&host.lock);
    for (p = &host.first; *p && *p != f; p = &(*p)->next)
        ;
    if (*p) {
        *p = f->next;
        __atomic_sub_fetch(&host.unfinished, 1, __ATOMIC_SEQ_CST);
        free(f);
    }
    pthread_mutex_unlock(&host.lock);
    return r;
}

bool sg_host_unfinished(void)
{
    return __atomic_load_n(&host.unfinished, __ATOMIC_SEQ_CST) != 0;
}

void sg_host_forget(CUstream s)
{
    pthread_mutex_lock(&host.lock);
    for (struct pending **p = &host.first; *p;) {
        struct pending *f = *p;

        if (f->slot != s->slot) {
            p = &f->next;
            continue;
        }
        *p = f->next;
        __atomic_sub_fetch(&host.unfinished, 1, __ATOMIC_SEQ_CST);
        free(f);
    }
    pthread_mutex_unlock(&host.lock);
}
