// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* semaphores.c: semaphores, and futexes through syscall(). */
#include "vtime.h"

#include <linux/futex.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Who shares a word with another process hears of it this late at most. */
#define SLICE_NS 1000000u

/* glibc keeps whether a semaphore is shared behind its value. */
static bool shared_sem(const sem_t *s)
{
    int v;

    memcpy(&v, (const char *)s + 8, sizeof(v));
    return v != 0;
}

static int fail(int e)
{
    errno = e;
    return -1;
}

static int wait_sem(sem_t *s, uint64_t until)
{
    struct sg_wait wait = {.kind = SG_WAIT_ADDRESS, .address = s, .interruptible = true};

    while (REAL(sem_trywait)(s) != 0) {
        uint64_t now = sg_clock_now();
        struct sg_waiter *w;
        int r;

        if (errno != EAGAIN)
            return -1;
        if (now >= until)
            return fail(ETIMEDOUT);
        wait.until_ns = shared_sem(s) && until > now + SLICE_NS ? now + SLICE_NS : until;
        w = sg_clock_register(&wait);
        if (REAL(sem_trywait)(s) == 0) {
            sg_clock_unregister(w);
            return 0;
        }
        r = sg_clock_sleep(w, true);
        if (r == EINTR)
            return fail(EINTR);
    }
    return 0;
}

VT_API int sem_wait(sem_t *s)
{
    int r;

    if (!sg_clock_on())
        return REAL(sem_wait)(s);
    if (!shared_sem(s))
        return wait_sem(s, SG_FOREVER);
    if (REAL(sem_trywait)(s) == 0)
        return 0;
    r = REAL(sem_wait)(s);
    vt_turn();
    return r;
}

VT_API int sem_timedwait(sem_t *restrict s, const struct timespec *restrict t)
{
    return sg_clock_on() ? wait_sem(s, vt_moment(CLOCK_REALTIME, t)) : REAL(sem_timedwait)(s, t);
}

VT_API int sem_clockwait(sem_t *restrict s, clockid_t c, const struct timespec *restrict t)
{
    return sg_clock_on() ? wait_sem(s, vt_moment(c, t)) : REAL(sem_clockwait)(s, c, t);
}

VT_API int sem_post(sem_t *s)
{
    int r = REAL(sem_post)(s);

    if (sg_clock_on())
        sg_clock_poke(s, 1);
    return r;
}

/* ---- futexes ---------------------------------------------------------------------- */

static long wait_futex(uint32_t *word, uint32_t value, uint64_t until, bool shared)
{
    struct sg_wait wait = {.kind = SG_WAIT_ADDRESS, .address = word, .interruptible = true};

    for (;;) {
        uint64_t now = sg_clock_now();
        struct sg_waiter *w;
        int r;

        wait.until_ns = shared && until > now + SLICE_NS ? now + SLICE_NS : until;
        w = sg_clock_register(&wait);
        if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) {
            sg_clock_unregister(w);
            return fail(EAGAIN);
        }
        r = sg_clock_sleep(w, true);
        if (r != ETIMEDOUT)
            return r ? fail(r) : 0;
        if (sg_clock_now() >= until)
            return fail(ETIMEDOUT);
        if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value)
            return 0;
    }
}

static long on_futex(long a[6])
{
    uint32_t *word = (uint32_t *)a[0];
    int op = (int)a[1] & FUTEX_CMD_MASK;
    const struct timespec *t = (const struct timespec *)a[3];
    clockid_t c = (int)a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    bool shared = !((int)a[1] & FUTEX_PRIVATE_FLAG);
    uint64_t until = SG_FOREVER;
    unsigned n;
    long r;

    switch (op) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        if (t)
            until = op == FUTEX_WAIT ? vt_after(vt_ns(t)) : vt_moment(c, t);
        if (!shared || t)
            return wait_futex(word, (uint32_t)a[2], until, shared);
        r = REAL(syscall)(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
        vt_turn();
        return r;
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
        n = sg_clock_poke(word, (unsigned)a[2]);
        r = REAL(syscall)(SYS_futex, a[0], a[1], a[2] - (long)n, a[3], a[4], a[5]);
        return r < 0 ? r : r + (long)n;
    default:
        return REAL(syscall)(SYS_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

VT_API long syscall(long nr, ...)
{
    long a[6];
    va_list v;

    va_start(v, nr);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(v, long);
    va_end(v);
    if (sg_clock_on()) {
        switch (nr) {
        case SYS_futex:
            return on_futex(a);
        case SYS_clock_gettime:
            return clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
        case SYS_nanosleep:
            return nanosleep((const struct timespec *)a[0], (struct timespec *)a[1]);
        default:
            break;
        }
    }
    return REAL(syscall)(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
