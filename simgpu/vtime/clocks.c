// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* clocks.c: telling the time, and sleeping. */
#include "vtime.h"

#include <sched.h>
#include <sys/time.h>
#include <unistd.h>

bool vt_is_date(clockid_t c)
{
    return c == CLOCK_REALTIME || c == CLOCK_REALTIME_COARSE || c == CLOCK_TAI || c == CLOCK_REALTIME_ALARM;
}

bool vt_is_ours(clockid_t c)
{
    return vt_is_date(c) || c == CLOCK_MONOTONIC || c == CLOCK_MONOTONIC_RAW || c == CLOCK_MONOTONIC_COARSE ||
           c == CLOCK_BOOTTIME || c == CLOCK_BOOTTIME_ALARM;
}

uint64_t vt_moment(clockid_t c, const struct timespec *t)
{
    uint64_t ns = vt_ns(t), epoch = vt_is_date(c) ? sg_clock.node->epoch_ns : 0;

    return ns > epoch ? ns - epoch : 0;
}

/* The time on a clock, after the look at it. */
static uint64_t look(clockid_t c)
{
    sg_clock_looked();
    return sg_clock_now() + (vt_is_date(c) ? sg_clock.node->epoch_ns : 0);
}

VT_API int clock_gettime(clockid_t c, struct timespec *t)
{
    if (!sg_clock_on() || !vt_is_ours(c))
        return REAL(clock_gettime)(c, t);
    *t = vt_spec(look(c));
    return 0;
}

VT_API int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    uint64_t ns;

    if (!sg_clock_on())
        return REAL(gettimeofday)(t, zone);
    ns = look(CLOCK_REALTIME);
    *t = (struct timeval){.tv_sec = (time_t)(ns / VT_SECOND), .tv_usec = (suseconds_t)(ns % VT_SECOND / 1000)};
    return 0;
}

VT_API time_t time(time_t *t)
{
    time_t s;

    if (!sg_clock_on())
        return REAL(time)(t);
    s = (time_t)(look(CLOCK_REALTIME) / VT_SECOND);
    if (t)
        *t = s;
    return s;
}

VT_API int timespec_get(struct timespec *t, int base)
{
    if (!sg_clock_on() || base != TIME_UTC)
        return REAL(timespec_get)(t, base);
    *t = vt_spec(look(CLOCK_REALTIME));
    return base;
}

/* Returns 0 or EINTR, with what is left. */
static int rest(uint64_t until, struct timespec *left)
{
    int r = vt_sleep(until);
    uint64_t now = sg_clock_now();

    if (r && left)
        *left = vt_spec(until > now ? until - now : 0);
    return r;
}

static bool valid(const struct timespec *t)
{
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < (long)VT_SECOND;
}

VT_API int nanosleep(const struct timespec *t, struct timespec *left)
{
    int r;

    if (!sg_clock_on())
        return REAL(nanosleep)(t, left);
    r = valid(t) ? rest(vt_after(vt_ns(t)), left) : EINVAL;
    if (!r)
        return 0;
    errno = r;
    return -1;
}

VT_API int clock_nanosleep(clockid_t c, int flags, const struct timespec *t, struct timespec *left)
{
    if (!sg_clock_on() || !vt_is_ours(c))
        return REAL(clock_nanosleep)(c, flags, t, left);
    if (!valid(t))
        return EINVAL;
    return flags & TIMER_ABSTIME ? rest(vt_moment(c, t), NULL) : rest(vt_after(vt_ns(t)), left);
}

VT_API int usleep(useconds_t us)
{
    const struct timespec t = vt_spec((uint64_t)us * 1000);

    return sg_clock_on() ? nanosleep(&t, NULL) : REAL(usleep)(us);
}

VT_API unsigned int sleep(unsigned int s)
{
    struct timespec left, t = {.tv_sec = (time_t)s};

    if (!sg_clock_on())
        return REAL(sleep)(s);
    return rest(vt_after(vt_ns(&t)), &left) ? (unsigned)left.tv_sec : 0;
}

/* A program that yields in a loop lets time pass by it. */
VT_API int sched_yield(void)
{
    if (!sg_clock_on())
        return REAL(sched_yield)();
    sg_clock_spend(sg_clock.node->read_cost_ns);
    vt_turn();
    return 0;
}
