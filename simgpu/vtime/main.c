// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* main.c: finding the node, and what a forked child does. */
#include "vtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fault.h"
#include "sg.h"

/* By their old names: the library is to load on old systems. */
#if defined(__x86_64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#elif defined(__aarch64__)
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
#endif

/* conn.c says so to the drivers' libraries, which have calls that can fail. */
void sg_fault_connected(void)
{
}

static _Thread_local uint64_t own_time;

/* libcuda asks for it, so that a thread has one time. */
VT_API uint64_t *simgpu_time_local(void)
{
    return &own_time;
}

void *vt_find(const char *name, void **cache)
{
    void *p = __atomic_load_n(cache, __ATOMIC_RELAXED);

    if (!p) {
        p = dlsym(RTLD_NEXT, name);
        __atomic_store_n(cache, p, __ATOMIC_RELAXED);
    }
    return p;
}

uint64_t vt_after(uint64_t ns)
{
    uint64_t now = sg_clock_now();

    return ns > SG_FOREVER - 1 - now ? SG_FOREVER - 1 : now + ns;
}

void vt_turn(void)
{
    sg_clock_block(&(struct sg_wait){.kind = SG_WAIT_TURN, .until_ns = SG_FOREVER});
}

int vt_sleep(uint64_t until_ns)
{
    return sg_clock_block(&(struct sg_wait){.kind = SG_WAIT_TIME, .until_ns = until_ns, .interruptible = true}) == EINTR
               ? EINTR
               : 0;
}

static void attach(void)
{
    if (sg_connect(SG_KIND_CLOCK) != 0)
        return; /* no node, or one with the wall clock */
    sg_clock.node = sg_conn.node;
    sg_clock.kicks = sg_conn.kicks;
    sg_clock.fd = sg_conn.fd;
    sg_clock.waits = sg_conn.waits;
}

__attribute__((constructor(101))) static void start(void)
{
    int e = errno;

    attach();
    if (sg_clock_on())
        vt_turn();
    errno = e;
}

/* The child is a client of its own. The parent does not go on before it is one,
 * or time could pass without it. */
VT_API pid_t fork(void)
{
    int p[2] = {-1, -1}, e;
    pid_t pid;
    char c;

    if (!sg_clock_on())
        return REAL(fork)();
    if (pipe2(p, O_CLOEXEC) != 0)
        return -1;
    pid = REAL(fork)();
    e = errno;
    if (pid == 0) {
        sg_clock_forked();
        close(sg_conn.fd); /* the parent's: its end is the parent's end */
        close(p[0]);
        attach();
        close(p[1]);
        if (sg_clock_on())
            vt_turn();
        errno = e;
        return 0;
    }
    close(p[1]);
    if (pid > 0)
        while (read(p[0], &c, 1) < 0 && errno == EINTR)
            ;
    close(p[0]);
    errno = e;
    return pid;
}
