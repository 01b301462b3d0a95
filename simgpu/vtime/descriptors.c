// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * descriptors.c: waiting for descriptors. The thread sleeps in the system's call
 * with no time set; when its virtual time has come, the host sends a message to
 * the connection, which every such sleep watches too.
 */
#include "vtime.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sg.h"

/* Sleeps until one of f, with room for one more, is ready, or the time comes.
 * Returns 0 or an error number; who calls asks afterwards what is ready. */
static int await(struct pollfd *f, nfds_t n, uint64_t until, const sigset_t *mask)
{
    struct sg_waiter *w;
    uint32_t waiting = SG_WAITER_WAITING;
    char message[sizeof(struct sg_reply)];
    int r = 0;

    f[n] = (struct pollfd){.fd = sg_conn.fd, .events = POLLIN};
    w = sg_clock_register(&(struct sg_wait){.kind = SG_WAIT_POLL, .until_ns = until});
    sg_clock_commit(w);
    for (;;) {
        /* The mask that the caller wants holds while it sleeps only. */
        int got = REAL(ppoll)(f, n + 1, NULL, mask);

        if (got < 0) {
            r = errno;
            break;
        }
        if (__atomic_load_n(&w->state, __ATOMIC_SEQ_CST) == SG_WAITER_GRANTED)
            break;
        if (f[n].revents & (POLLHUP | POLLERR)) {
            r = EIO;
            break;
        }
        if (got > (f[n].revents != 0))
            break;
    }
    if (!__atomic_compare_exchange_n(&w->state, &waiting, SG_WAITER_CLAIMED, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST)) {
        if (recv(sg_conn.fd, message, sizeof(message), r == EIO ? MSG_DONTWAIT : 0) < 0 && r == 0)
            r = errno == EAGAIN ? 0 : errno;
        sg_clock_unregister(w);
    } else {
        sg_clock_unregister(w);
        vt_turn(); /* woken by something else than the clock */
    }
    return r == EIO ? 0 : r;
}

static int wait_poll(struct pollfd *f, nfds_t n, uint64_t until, const sigset_t *mask)
{
    struct pollfd few[16], *all = few;
    const struct timespec now = {0, 0};
    int r = REAL(ppoll)(f, n, &now, mask), e;

    if (r || until <= sg_clock_now())
        return r;
    if (n + 1 > SG_LEN(few) && !(all = malloc((n + 1) * sizeof(*all)))) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(all, f, n * sizeof(*f));
    e = await(all, n, until, mask);
    if (all != few)
        free(all);
    if (e) {
        errno = e;
        return -1;
    }
    return REAL(ppoll)(f, n, &now, mask);
}

VT_API int poll(struct pollfd *f, nfds_t n, int ms)
{
    if (!sg_clock_on() || ms == 0)
        return REAL(poll)(f, n, ms);
    return wait_poll(f, n, ms < 0 ? SG_FOREVER : vt_after((uint64_t)ms * 1000000), NULL);
}

VT_API int ppoll(struct pollfd *f, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
    if (!sg_clock_on())
        return REAL(ppoll)(f, n, t, mask);
    return wait_poll(f, n, t ? vt_after(vt_ns(t)) : SG_FOREVER, mask);
}

/* ---- select: as poll, then as it is ------------------------------------------------ */

static int wait_select(int n, fd_set *r, fd_set *w, fd_set *x, uint64_t until, const sigset_t *mask)
{
    fd_set in[3], *out[3] = {r, w, x};
    struct pollfd *f;
    struct timeval now = {0, 0};
    nfds_t k = 0;
    int got, e;

    for (int i = 0; i < 3; i++) {
        if (out[i])
            in[i] = *out[i];
    }
    got = REAL(select)(n, r, w, x, &now);
    if (got || until <= sg_clock_now())
        return got;
    f = malloc(((size_t)n + 1) * sizeof(*f));
    if (!f) {
        errno = ENOMEM;
        return -1;
    }
    for (int fd = 0; fd < n; fd++) {
        short events = 0;

        if (r && FD_ISSET(fd, &in[0]))
            events |= POLLIN;
        if (w && FD_ISSET(fd, &in[1]))
            events |= POLLOUT;
        if (x && FD_ISSET(fd, &in[2]))
            events |= POLLPRI;
        if (events)
            f[k++] = (struct pollfd){.fd = fd, .events = events};
    }
    e = await(f, k, until, mask);
    free(f);
    if (e) {
        errno = e;
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        if (out[i])
            *out[i] = in[i];
    }
    now = (struct timeval){0, 0};
    return REAL(select)(n, r, w, x, &now);
}

VT_API int select(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, struct timeval *restrict t)
{
    uint64_t until = SG_FOREVER, now;
    int got;

    if (!sg_clock_on() || n < 0 || n > FD_SETSIZE)
        return REAL(select)(n, r, w, x, t);
    if (t)
        until = vt_after((uint64_t)t->tv_sec * VT_SECOND + (uint64_t)t->tv_usec * 1000);
    got = wait_select(n, r, w, x, until, NULL);
    if (t) { /* Linux says what is left */
        now = sg_clock_now();
        now = until > now ? until - now : 0;
        *t = (struct timeval){.tv_sec = (time_t)(now / VT_SECOND), .tv_usec = (suseconds_t)(now % VT_SECOND / 1000)};
    }
    return got;
}

VT_API int pselect(int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x,
                   const struct timespec *restrict t, const sigset_t *restrict mask)
{
    if (!sg_clock_on() || n < 0 || n > FD_SETSIZE)
        return REAL(pselect)(n, r, w, x, t, mask);
    return wait_select(n, r, w, x, t ? vt_after(vt_ns(t)) : SG_FOREVER, mask);
}

/* ---- epoll ------------------------------------------------------------------------- */

static int wait_epoll(int ep, struct epoll_event *e, int max, uint64_t until, const sigset_t *mask)
{
    struct pollfd f[2] = {{.fd = ep, .events = POLLIN}};
    int r = REAL(epoll_pwait)(ep, e, max, 0, mask), failed;

    if (r || until <= sg_clock_now())
        return r;
    failed = await(f, 1, until, mask);
    if (failed) {
        errno = failed;
        return -1;
    }
    return REAL(epoll_pwait)(ep, e, max, 0, mask);
}

VT_API int epoll_pwait(int ep, struct epoll_event *e, int max, int ms, const sigset_t *mask)
{
    if (!sg_clock_on() || ms == 0)
        return REAL(epoll_pwait)(ep, e, max, ms, mask);
    return wait_epoll(ep, e, max, ms < 0 ? SG_FOREVER : vt_after((uint64_t)ms * 1000000), mask);
}

VT_API int epoll_wait(int ep, struct epoll_event *e, int max, int ms)
{
    return epoll_pwait(ep, e, max, ms, NULL);
}
