// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * threads.c: waiting for other threads. Of all threads on the clock one runs at
 * a time, so a lock is tried, and who does not get it gives up the turn until
 * the holder says that it is free. What is shared between processes is left to
 * the C library, and the turn is taken afterwards.
 */
#include "vtime.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHARED_MUTEX 0x80 /* PTHREAD_MUTEX_PSHARED_BIT of glibc */

/* A thread that was made here and has not been joined. */
struct made {
    pthread_t thread;
    void *(*fn)(void *);
    void *arg;
    uint32_t number;
    bool over, detached, known;
    struct made *next;
};

static struct made *first_made;
static uint32_t made_lock;

/* Held for some instructions only, so who finds it taken tries again. */
static void made_enter(void)
{
    while (__atomic_exchange_n(&made_lock, 1, __ATOMIC_ACQUIRE))
        REAL(sched_yield)();
}

static void made_leave(void)
{
    __atomic_store_n(&made_lock, 0, __ATOMIC_RELEASE);
}

/* The lock is held. */
static void made_drop(struct made *m)
{
    struct made **p = &first_made;

    while (*p && *p != m)
        p = &(*p)->next;
    if (*p)
        *p = m->next;
    free(m);
}

/* The lock is held. */
static struct made *made_find(pthread_t t)
{
    struct made *m = first_made;

    while (m && !(m->known && pthread_equal(m->thread, t)))
        m = m->next;
    return m;
}

/* However the thread ends. */
static void finish(void *arg)
{
    struct made *m = arg;

    made_enter();
    m->over = true;
    if (m->detached)
        made_drop(m);
    made_leave();
    sg_clock_poke(m, UINT_MAX); /* only its address */
}

static void *begin(void *arg)
{
    struct made *m = arg;
    void *r;

    made_enter();
    m->thread = pthread_self();
    m->known = true;
    made_leave();
    sg_clock_be(m->number);
    vt_turn();
    pthread_cleanup_push(finish, m);
    r = m->fn(m->arg);
    pthread_cleanup_pop(1);
    return r;
}

VT_API int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
    struct made *m;
    int r, state = PTHREAD_CREATE_JOINABLE;

    if (!sg_clock_on())
        return REAL(pthread_create)(t, a, fn, arg);
    m = calloc(1, sizeof(*m));
    if (!m)
        return EAGAIN;
    m->fn = fn;
    m->arg = arg;
    m->number = sg_clock_number();
    if (a)
        REAL(pthread_attr_getdetachstate)(a, &state);
    m->detached = state == PTHREAD_CREATE_DETACHED;
    made_enter();
    m->next = first_made;
    first_made = m;
    made_leave();
    r = REAL(pthread_create)(t, a, begin, m);
    made_enter();
    if (r) {
        made_drop(m);
    } else if (!m->known && !m->detached) { /* it has not begun yet */
        m->thread = *t;
        m->known = true;
    }
    made_leave();
    return r;
}

VT_API int pthread_detach(pthread_t t)
{
    struct made *m;
    int r = REAL(pthread_detach)(t);

    if (!sg_clock_on() || r)
        return r;
    made_enter();
    m = made_find(t);
    if (m && m->over)
        made_drop(m);
    else if (m)
        m->detached = true;
    made_leave();
    return 0;
}

VT_API int pthread_join(pthread_t t, void **ret)
{
    struct made *m = NULL;
    int r;

    if (!sg_clock_on())
        return REAL(pthread_join)(t, ret);
    made_enter();
    if (!pthread_equal(t, pthread_self()))
        m = made_find(t);
    made_leave();
    while (m && !__atomic_load_n(&m->over, __ATOMIC_SEQ_CST)) {
        struct sg_waiter *w = sg_clock_register(
            &(struct sg_wait){.kind = SG_WAIT_ADDRESS, .until_ns = SG_FOREVER, .address = m});

        if (__atomic_load_n(&m->over, __ATOMIC_SEQ_CST))
            sg_clock_unregister(w);
        else
            sg_clock_sleep(w, false);
    }
    r = REAL(pthread_join)(t, ret); /* it has next to nothing left to do */
    if (!m) {
        vt_turn();
        return r;
    }
    made_enter();
    made_drop(m);
    made_leave();
    return r;
}

/*
 * Tries until it succeeds or the time has come. Who is registered cannot miss
 * the word of a holder, so it tries once more before it sleeps.
 */
static int obtain(int (*attempt)(void *), void *what, uint64_t until)
{
    const struct sg_wait wait = {.kind = SG_WAIT_ADDRESS, .until_ns = until, .address = what};
    int r, over = 0;

    for (;;) {
        struct sg_waiter *w;

        r = attempt(what);
        if (r != EBUSY || over)
            return over && r == EBUSY ? over : r;
        w = sg_clock_register(&wait);
        r = attempt(what);
        if (r != EBUSY) {
            sg_clock_unregister(w);
            return r;
        }
        if (sg_clock_sleep(w, false) == ETIMEDOUT)
            over = ETIMEDOUT;
    }
}

/* ---- mutexes ------------------------------------------------------------------ */

static bool left_to_libc(pthread_mutex_t *m)
{
    int kind = __atomic_load_n(&m->__data.__kind, __ATOMIC_RELAXED);

    if (kind & SHARED_MUTEX)
        return true;
    /* Whoever locks it twice is to be told so. */
    return (kind & 3) == PTHREAD_MUTEX_ERRORCHECK && m->__data.__owner == (int)REAL(syscall)(SYS_gettid);
}

static int try_mutex(void *m)
{
    return REAL(pthread_mutex_trylock)(m);
}

VT_API int pthread_mutex_lock(pthread_mutex_t *m)
{
    int r;

    if (!sg_clock_on())
        return REAL(pthread_mutex_lock)(m);
    if (!left_to_libc(m))
        return obtain(try_mutex, m, SG_FOREVER);
    r = REAL(pthread_mutex_trylock)(m);
    if (r != EBUSY)
        return r;
    r = REAL(pthread_mutex_lock)(m);
    vt_turn();
    return r;
}

VT_API int pthread_mutex_timedlock(pthread_mutex_t *restrict m, const struct timespec *restrict t)
{
    if (!sg_clock_on() || left_to_libc(m))
        return REAL(pthread_mutex_timedlock)(m, t);
    return obtain(try_mutex, m, vt_moment(CLOCK_REALTIME, t));
}

VT_API int pthread_mutex_clocklock(pthread_mutex_t *restrict m, clockid_t c, const struct timespec *restrict t)
{
    if (!sg_clock_on() || left_to_libc(m))
        return REAL(pthread_mutex_clocklock)(m, c, t);
    return obtain(try_mutex, m, vt_moment(c, t));
}

VT_API int pthread_mutex_unlock(pthread_mutex_t *m)
{
    int r = REAL(pthread_mutex_unlock)(m);

    if (sg_clock_on() && !r)
        sg_clock_poke(m, 1);
    return r;
}

/* ---- conditions ----------------------------------------------------------------- */

static bool shared_cond(pthread_cond_t *c)
{
    return __atomic_load_n(&c->__data.__wrefs, __ATOMIC_RELAXED) & 1;
}

static clockid_t clock_of(pthread_cond_t *c)
{
    return __atomic_load_n(&c->__data.__wrefs, __ATOMIC_RELAXED) & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

static int wait_cond(pthread_cond_t *c, pthread_mutex_t *m, uint64_t until)
{
    struct sg_waiter *w =
        sg_clock_register(&(struct sg_wait){.kind = SG_WAIT_ADDRESS, .until_ns = until, .address = c});
    int r = pthread_mutex_unlock(m), locked;

    if (r) {
        sg_clock_unregister(w);
        return r;
    }
    r = sg_clock_sleep(w, false);
    locked = pthread_mutex_lock(m);
    return locked ? locked : r == ETIMEDOUT ? ETIMEDOUT : 0;
}

VT_API int pthread_cond_wait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m)
{
    int r;

    if (!sg_clock_on())
        return REAL(pthread_cond_wait)(c, m);
    if (!shared_cond(c))
        return wait_cond(c, m, SG_FOREVER);
    r = REAL(pthread_cond_wait)(c, m);
    vt_turn();
    return r;
}

VT_API int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m,
                                  const struct timespec *restrict t)
{
    if (!sg_clock_on() || shared_cond(c))
        return REAL(pthread_cond_timedwait)(c, m, t);
    return wait_cond(c, m, vt_moment(clock_of(c), t));
}

VT_API int pthread_cond_clockwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, clockid_t k,
                                  const struct timespec *restrict t)
{
    if (!sg_clock_on() || shared_cond(c))
        return REAL(pthread_cond_clockwait)(c, m, k, t);
    return wait_cond(c, m, vt_moment(k, t));
}

VT_API int pthread_cond_signal(pthread_cond_t *c)
{
    if (sg_clock_on())
        sg_clock_poke(c, 1);
    return REAL(pthread_cond_signal)(c);
}

VT_API int pthread_cond_broadcast(pthread_cond_t *c)
{
    if (sg_clock_on())
        sg_clock_poke(c, UINT_MAX);
    return REAL(pthread_cond_broadcast)(c);
}

/* ---- locks for many readers, barriers ---------------------------------------------- */

static int try_read(void *l)
{
    return REAL(pthread_rwlock_tryrdlock)(l);
}

static int try_write(void *l)
{
    return REAL(pthread_rwlock_trywrlock)(l);
}

VT_API int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
    return sg_clock_on() ? obtain(try_read, l, SG_FOREVER) : REAL(pthread_rwlock_rdlock)(l);
}

VT_API int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
    return sg_clock_on() ? obtain(try_write, l, SG_FOREVER) : REAL(pthread_rwlock_wrlock)(l);
}

VT_API int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict l, const struct timespec *restrict t)
{
    return sg_clock_on() ? obtain(try_read, l, vt_moment(CLOCK_REALTIME, t)) : REAL(pthread_rwlock_timedrdlock)(l, t);
}

VT_API int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict l, const struct timespec *restrict t)
{
    return sg_clock_on() ? obtain(try_write, l, vt_moment(CLOCK_REALTIME, t)) : REAL(pthread_rwlock_timedwrlock)(l, t);
}

VT_API int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    int r = REAL(pthread_rwlock_unlock)(l);

    if (sg_clock_on())
        sg_clock_poke(l, UINT_MAX);
    return r;
}

VT_API int pthread_barrier_wait(pthread_barrier_t *b)
{
    int r = REAL(pthread_barrier_wait)(b);

    if (sg_clock_on())
        vt_turn();
    return r;
}
