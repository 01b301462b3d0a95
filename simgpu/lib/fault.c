// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * fault.c: makes calls fail, or slow, as the operator of the simulator wants.
 * The host process has the rules and counts; here it is only known which names
 * to ask about. A process finds out at its first call, on a connection of its
 * own: also the start itself may be meant to fail, and with no host process
 * there is no rule.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "fault.h"
#include "sg.h"

#define MAX_CALLS 1024u

static const uint32_t unknown = 1, none = 0;
const uint32_t *sg_faults_word = &unknown;

static struct {
    pthread_mutex_t lock;
    int fd;
    int pid;       /* that holds fd: a forked child makes a connection of its own */
    uint32_t seen; /* the word that wanted belongs to */
    uint8_t wanted[MAX_CALLS];
} asker = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static uint32_t word(void)
{
    return __atomic_load_n(__atomic_load_n(&sg_faults_word, __ATOMIC_ACQUIRE), __ATOMIC_ACQUIRE);
}

static void look_at(const uint32_t *at)
{
    __atomic_store_n(&sg_faults_word, at, __ATOMIC_RELEASE);
}

void sg_fault_connected(void)
{
    look_at(&sg_conn.node->faults);
}

uint64_t sg_frame_arg(const struct sg_frame *f, unsigned i)
{
#if defined(__x86_64__)
    const unsigned registers = 6;
#else
    const unsigned registers = 8;
#endif
    return i < registers ? f->arg[i] : f->stack[i - registers];
}

/* The lock is held. */
static void drop(void)
{
    if (asker.fd >= 0 && asker.pid == getpid())
        close(asker.fd);
    asker.fd = -1;
}

/* The lock is held. */
static bool connected(void)
{
    if (asker.fd >= 0 && asker.pid == getpid())
        return true;
    drop(); /* the parent's copy stays open with the fork's other descriptors */
    asker.fd = sg_link();
    asker.pid = getpid();
    return asker.fd >= 0;
}

/* The lock is held. */
static ssize_t ask(struct sg_request *req, const char *name, struct sg_reply *rep, void *out, size_t size)
{
    ssize_t n = -1;

    req->len = (uint32_t)strlen(name);
    req->b = sg_fault_kind;
    if (connected())
        n = sg_exchange(asker.fd, req, name, rep, out, size);
    if (n < 0)
        drop();
    return n;
}

/* Learns which names to ask about: a list of names, each ended by a zero. */
static void learn(uint32_t at)
{
    static char text[SG_MAX_MESSAGE]; /* under the lock; not on callers' stacks */
    uint64_t from = 0;

    memset(asker.wanted, 0, sizeof(asker.wanted));
    for (;;) {
        struct sg_request req = {.op = SG_OP_FAULT_NAMES, .a = from};
        struct sg_reply rep;
        ssize_t n = ask(&req, "", &rep, text, sizeof(text) - 1);

        if (n <= (ssize_t)sizeof(rep))
            break;
        text[n - (ssize_t)sizeof(rep)] = 0;
        for (const char *p = text; p < text + (n - (ssize_t)sizeof(rep)); p += strlen(p) + 1) {
            for (unsigned i = 0; i < sg_calls_count && i < MAX_CALLS; i++) {
                if (!strcmp(sg_calls[i].name, p))
                    asker.wanted[i] = 1;
            }
            from++;
        }
    }
    asker.seen = at;
}

static void spoil(const struct sg_frame *f, const struct sg_call_info *c)
{
    for (unsigned i = c->first; i < (unsigned)c->first + c->outputs; i++) {
        void *p = (void *)(uintptr_t)sg_frame_arg(f, sg_call_outputs[i].arg);

        if (p)
            memset(p, 0xa5, sg_call_outputs[i].size);
    }
}

/* The first call of a process: is there a host process, and has it rules? */
static void first_look(void)
{
    pthread_mutex_lock(&asker.lock);
    if (sg_faults_word == &unknown) {
        bool there = connected();

        look_at(there ? &sg_conn.node->faults : &none);
        if (word() == 0)
            drop();
    }
    pthread_mutex_unlock(&asker.lock);
}

static int consult(struct sg_frame *f)
{
    const struct sg_call_info *c = &sg_calls[f->number];
    struct sg_request req = {.op = SG_OP_FAULT};
    struct sg_reply rep;
    uint32_t at, dead;
    ssize_t n = -1;

    if (__atomic_load_n(&sg_faults_word, __ATOMIC_ACQUIRE) == &unknown)
        first_look();
    at = word();
    if (!at)
        return SG_FAULT_PASS;
    dead = sg_fault_dead(c);
    if (dead) {
        f->result = dead;
        return SG_FAULT_RETURN;
    }
    pthread_mutex_lock(&asker.lock);
    if (asker.seen != at)
        learn(at);
    if (asker.wanted[f->number]) {
        req.gpu = sg_fault_gpu(f, c);
        n = ask(&req, c->name, &rep, NULL, 0);
    }
    pthread_mutex_unlock(&asker.lock);
    if (n != (ssize_t)sizeof(rep))
        return SG_FAULT_PASS;
    if (rep.b)
        sg_fault_pause(rep.b);
    f->result = (uint32_t)rep.status;
    switch (rep.a) {
    case SG_FAULT_GARBAGE:
        if (!f->result) { /* a call that succeeds is made: nobody is to wait for what was not done */
            f->spoil = 1;
            return SG_FAULT_CALL;
        }
        spoil(f, c);
        return SG_FAULT_RETURN;
    case SG_FAULT_UNTOUCHED:
        return SG_FAULT_RETURN;
    case SG_FAULT_WRITTEN:
        return SG_FAULT_CALL;
    default:
        return SG_FAULT_PASS;
    }
}

int sg_fault_before(struct sg_frame *f)
{
    int before = errno, r;

    f->spoil = 0;
    r = consult(f);
    errno = before;
    return r;
}

void sg_fault_after(struct sg_frame *f, uint32_t made)
{
    if (!f->spoil)
        return;
    if (made)
        f->result = made;
    else
        spoil(f, &sg_calls[f->number]);
}
