// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * clock.c: threads on a virtual clock. A thread that waits says in a table
 * shared with the host process for what, and sleeps until the host grants it a
 * turn. Time stands still while any thread of any program runs, so nothing here
 * may sleep in another way. System calls are made directly: the names of the C
 * library may be the time library's.
 */
#include "clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#define PATIENCE_NS 200000000u /* wall clock: how often a sleeper looks whether the host lives */
#define AHEAD_NS 20000u        /* how far a thread that asks or looks may be ahead of the node */

struct sg_clock sg_clock = {.fd = -1};

static _Thread_local uint64_t own_local;
static _Thread_local uint32_t own_number;
static _Thread_local uint32_t own_tid;
static uint32_t numbers;
static uint64_t tickets;

static uint64_t *local(void)
{
    return simgpu_time_local ? simgpu_time_local() : &own_local;
}

static long raw(long n, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long r;

    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

uint64_t sg_clock_now(void)
{
    uint64_t now = __atomic_load_n(&sg_clock.node->now_ns, __ATOMIC_SEQ_CST), own = *local();

    return own > now ? own : now;
}

void sg_clock_spend(uint64_t ns)
{
    if (ns)
        *local() = sg_clock_now() + ns;
}

void sg_clock_catch_up(void)
{
    if (*local() > __atomic_load_n(&sg_clock.node->now_ns, __ATOMIC_SEQ_CST) + AHEAD_NS)
        sg_clock_block(&(struct sg_wait){.kind = SG_WAIT_TIME, .until_ns = *local()});
}

void sg_clock_looked(void)
{
    sg_clock_spend(sg_clock.node->read_cost_ns);
    sg_clock_catch_up();
}

/* Also without a cost, for others to have their turn. */
void sg_clock_asked(void)
{
    sg_clock_block(&(struct sg_wait){.kind = SG_WAIT_TIME, .until_ns = sg_clock_now() + sg_clock.node->query_cost_ns});
}

void sg_clock_kick(void)
{
    struct sg_kicks *k = sg_clock.kicks;

    __atomic_add_fetch(&k->word, 1, __ATOMIC_SEQ_CST);
    raw(SYS_futex, (long)&k->word, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

static struct sg_waiter *claim(void)
{
    struct sg_waits *t = sg_clock.waits;
    uint32_t high;

    if (!own_number)
        own_number = sg_clock_number();
    for (;;) {
        for (uint32_t i = 0; i < SG_WAITERS; i++) {
            uint32_t k = (own_number + i) % SG_WAITERS, unused = SG_WAITER_FREE;

            if (!__atomic_compare_exchange_n(&t->waiter[k].state, &unused, SG_WAITER_CLAIMED, false, __ATOMIC_SEQ_CST,
                                             __ATOMIC_RELAXED))
                continue;
            high = __atomic_load_n(&t->high, __ATOMIC_SEQ_CST);
            while (high <= k && !__atomic_compare_exchange_n(&t->high, &high, k + 1, false, __ATOMIC_SEQ_CST,
                                                             __ATOMIC_SEQ_CST))
                ;
            return &t->waiter[k];
        }
        /* More threads than places: this one counts as running until one is free. */
        raw(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

struct sg_waiter *sg_clock_register(const struct sg_wait *what)
{
    struct sg_waiter *w = claim();

    if (!own_tid)
        own_tid = (uint32_t)raw(SYS_gettid, 0, 0, 0, 0, 0, 0);
    w->tid = own_tid;
    w->kind = what->kind;
    w->thread = own_number;
    w->slot = what->slot;
    w->position = what->kind == SG_WAIT_ADDRESS ? __atomic_add_fetch(&tickets, 1, __ATOMIC_SEQ_CST) : what->position;
    w->until_ns = what->until_ns;
    w->address = (uintptr_t)what->address;
    __atomic_store_n(&w->state, SG_WAITER_PREPARED, __ATOMIC_SEQ_CST);
    return w;
}

void sg_clock_commit(struct sg_waiter *w)
{
    uint32_t prepared = SG_WAITER_PREPARED;

    if (!__atomic_compare_exchange_n(&w->state, &prepared, SG_WAITER_WAITING, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        __atomic_store_n(&w->state, SG_WAITER_READY, __ATOMIC_SEQ_CST);
    sg_clock_kick();
}

void sg_clock_unregister(struct sg_waiter *w)
{
    __atomic_store_n(&w->state, SG_WAITER_FREE, __ATOMIC_SEQ_CST);
}

static bool host_gone(void)
{
    struct pollfd p = {.fd = sg_clock.fd, .events = 0};
    const struct timespec now = {0, 0};

    return raw(SYS_ppoll, (long)&p, 1, (long)&now, 0, 0, 0) == 1 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

int sg_clock_sleep(struct sg_waiter *w, bool interruptible)
{
    uint32_t state;
    int r;

    sg_clock_commit(w);
    while ((state = __atomic_load_n(&w->state, __ATOMIC_SEQ_CST)) != SG_WAITER_GRANTED) {
        struct timespec end = {0, 0};
        long e;

        raw(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&end, 0, 0, 0, 0);
        end.tv_nsec += PATIENCE_NS;
        if (end.tv_nsec >= 1000000000) {
            end.tv_nsec -= 1000000000;
            end.tv_sec++;
        }
        e = raw(SYS_futex, (long)&w->state, FUTEX_WAIT_BITSET, state, (long)&end, 0, SG_WAIT_BITS);
        if (e == -ETIMEDOUT) {
            if (host_gone()) {
                sg_clock_unregister(w);
                return EIO;
            }
            sg_clock_kick(); /* should a wake have been lost */
        }
        if (e == -EINTR && interruptible &&
            __atomic_compare_exchange_n(&w->state, &state, SG_WAITER_CLAIMED, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
            sg_clock_unregister(w);
            return EINTR;
        }
    }
    r = __atomic_load_n(&w->by, __ATOMIC_SEQ_CST) ? ETIMEDOUT : 0;
    sg_clock_unregister(w);
    return r;
}

int sg_clock_block(const struct sg_wait *what)
{
    return sg_clock_sleep(sg_clock_register(what), what->interruptible);
}

unsigned sg_clock_poke(const void *address, unsigned n)
{
    struct sg_waits *t = sg_clock.waits;
    unsigned done = 0;

    while (done < n) {
        uint32_t high = __atomic_load_n(&t->high, __ATOMIC_SEQ_CST), state = 0;
        struct sg_waiter *first = NULL;

        for (uint32_t i = 0; i < high && i < SG_WAITERS; i++) {
            struct sg_waiter *w = &t->waiter[i];
            uint32_t now = __atomic_load_n(&w->state, __ATOMIC_SEQ_CST);

            if ((now == SG_WAITER_WAITING || now == SG_WAITER_PREPARED) && w->kind == SG_WAIT_ADDRESS &&
                w->address == (uintptr_t)address && (!first || w->position < first->position)) {
                first = w;
                state = now;
            }
        }
        if (!first)
            break;
        if (__atomic_compare_exchange_n(&first->state, &state,
                                        state == SG_WAITER_WAITING ? SG_WAITER_READY : SG_WAITER_POKED, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            done++;
    }
    return done;
}

uint32_t sg_clock_number(void)
{
    return __atomic_add_fetch(&numbers, 1, __ATOMIC_SEQ_CST);
}

void sg_clock_be(uint32_t number)
{
    own_number = number;
}

void sg_clock_forked(void)
{
    sg_clock.waits = NULL;
    numbers = 0;
    own_number = 0;
    own_tid = 0;
}
