// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * coredump.c: settings of GPU core dumps, callbacks of their making, messages
 * of the driver and notices of a memory budget. All is remembered and told
 * again; nothing here ever dumps, logs or calls back.
 */
#include <stdio.h>
#include <unistd.h>

#include "sg.h"

enum { ON_EXCEPTION = 1, TRIGGER_HOST, LIGHTWEIGHT, USER_TRIGGER, FILE_NAME, PIPE_NAME, GENERATION_FLAGS };
#define NAME_BYTES 1023u

struct settings {
    bool on[USER_TRIGGER + 1];
    char file[NAME_BYTES + 1], pipe[NAME_BYTES + 1];
    unsigned flags;
};

/* Of the process, and of contexts that have some of their own. */
static struct settings everywhere = {.on = {[TRIGGER_HOST] = true}};
static struct own {
    unsigned long long ctx; /* serial */
    struct settings s;
    struct own *next;
} *owned; /* under the lock */

static struct settings *of(CUcontext c, bool make)
{
    struct own *o;

    for (o = owned; o && o->ctx != c->serial; o = o->next)
        ;
    if (!o && make && (o = malloc(sizeof(*o)))) {
        *o = (struct own){c->serial, everywhere, owned};
        owned = o;
    }
    return o ? &o->s : make ? NULL : &everywhere;
}

static CUresult get(const struct settings *s, CUcoredumpSettings which, void *v, size_t *n)
{
    char host[64] = "", made[NAME_BYTES + 1];
    const void *from = NULL;
    size_t have = 0;

    switch (which) {
    case ON_EXCEPTION:
    case TRIGGER_HOST:
    case LIGHTWEIGHT:
    case USER_TRIGGER:
        from = &s->on[which];
        have = sizeof(bool);
        break;
    case FILE_NAME:
    case PIPE_NAME:
        gethostname(host, sizeof(host) - 1);
        snprintf(made, sizeof(made), "%s.cuda.%s.%d", which == FILE_NAME ? "core" : "corepipe", host, (int)getpid());
        from = which == FILE_NAME && *s->file ? s->file : which == PIPE_NAME && *s->pipe ? s->pipe : made;
        have = strlen(from) + 1;
        break;
    case GENERATION_FLAGS:
        from = &s->flags;
        have = sizeof(s->flags);
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (v) {
        if (*n < have)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(v, from, have);
    }
    *n = have;
    return CUDA_SUCCESS;
}

static CUresult set(struct settings *s, CUcoredumpSettings which, const void *v, const size_t *n)
{
    switch (which) {
    case ON_EXCEPTION:
    case TRIGGER_HOST:
    case LIGHTWEIGHT:
    case USER_TRIGGER:
        if (*n < sizeof(bool))
            return CUDA_ERROR_INVALID_VALUE;
        s->on[which] = *(const unsigned char *)v != 0;
        return CUDA_SUCCESS;
    case FILE_NAME:
    case PIPE_NAME: {
        char *to = which == FILE_NAME ? s->file : s->pipe;

        if (*n > NAME_BYTES)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(to, v, *n);
        to[*n] = 0;
        return CUDA_SUCCESS;
    }
    case GENERATION_FLAGS:
        if (*n < sizeof(s->flags))
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(&s->flags, v, sizeof(s->flags));
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SG_API CUresult cuCoredumpGetAttribute(CUcoredumpSettings which, void *v, size_t *n)
{
    CUresult r;

    SG_ENTER_CTX(c);
    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = get(of(c, false), which, v, n);
    sg_unlock();
    return r;
}

SG_API CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings which, void *v, size_t *n)
{
    CUresult r;

    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = get(&everywhere, which, v, n);
    sg_unlock();
    return r;
}

SG_API CUresult cuCoredumpSetAttribute(CUcoredumpSettings which, void *v, size_t *n)
{
    struct settings *s;
    CUresult r;

    SG_ENTER_CTX(c);
    if (!v || !n)
        return CUDA_ERROR_INVALID_VALUE;
    /* What is the process's alone. */
    if (which == PIPE_NAME || which == USER_TRIGGER)
        return CUDA_ERROR_NOT_PERMITTED;
    sg_lock();
    s = of(c, true);
    r = s ? set(s, which, v, n) : CUDA_ERROR_OUT_OF_MEMORY;
    sg_unlock();
    return r;
}

SG_API CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings which, void *v, size_t *n)
{
    CUresult r;

    if (!v || !n)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = set(&everywhere, which, v, n);
    sg_unlock();
    return r;
}

/* ---- callbacks that nothing calls -------------------------------------------------------------- */

enum kind { DUMP_START, DUMP_COMPLETE, LOGS, BUDGET };
struct entry {
    uint32_t magic;
    enum kind kind;
    CUdevice dev;
};

static CUresult enter(enum kind kind, CUdevice dev, const void *fn, void *ret)
{
    struct entry *e;

    if (!fn || !ret)
        return CUDA_ERROR_INVALID_VALUE;
    e = sg_object_new(sizeof(*e));
    if (!e)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->kind = kind;
    e->dev = dev;
    e->magic = SG_CALLBACK;
    *(struct entry **)ret = e;
    return CUDA_SUCCESS;
}

static CUresult leave(enum kind kind, CUdevice dev, void *h)
{
    struct entry *e = h;

    if (!sg_is(e, SG_CALLBACK) || e->kind != kind || e->dev != dev)
        return CUDA_ERROR_INVALID_VALUE;
    sg_object_free(e, sizeof(*e));
    return CUDA_SUCCESS;
}

#define CALLBACK(name, kind)                                                        \
    CUresult cuCoredumpRegister##name##Callback(void *, void *, void *);             \
    SG_API CUresult cuCoredumpRegister##name##Callback(void *fn, void *arg, void *h) \
    {                                                                               \
        (void)arg;                                                                  \
        return enter(kind, 0, fn, h);                                               \
    }                                                                               \
    CUresult cuCoredumpDeregister##name##Callback(void *);                           \
    SG_API CUresult cuCoredumpDeregister##name##Callback(void *h)                    \
    {                                                                               \
        return leave(kind, 0, h);                                                   \
    }
CALLBACK(Start, DUMP_START)
CALLBACK(Complete, DUMP_COMPLETE)

SG_API CUresult cuLogsRegisterCallback(CUlogsCallback fn, void *arg SG_UNUSED, CUlogsCallbackHandle *h)
{
    return enter(LOGS, 0, (const void *)(uintptr_t)fn, h);
}

SG_API CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle h)
{
    return leave(LOGS, 0, h);
}

SG_API CUresult cuLogsCurrent(CUlogIterator *it, unsigned int flags)
{
    if (!it || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *it = 0;
    return CUDA_SUCCESS;
}

SG_API CUresult cuLogsDumpToFile(CUlogIterator *it SG_UNUSED, const char *path, unsigned int flags)
{
    FILE *f;

    if (!path || flags)
        return CUDA_ERROR_INVALID_VALUE;
    f = fopen(path, "ae");
    if (!f)
        return CUDA_ERROR_OPERATING_SYSTEM;
    return fclose(f) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

SG_API CUresult cuLogsDumpToMemory(CUlogIterator *it SG_UNUSED, char *buf, size_t *n, unsigned int flags)
{
    if (!buf || !n || !*n || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *buf = 0;
    *n = 0;
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceRegisterAsyncNotification(CUdevice dev, CUasyncCallback fn, void *arg SG_UNUSED,
                                                  CUasyncCallbackHandle *h)
{
    SG_ENTER();
    return sg_dev(dev) ? enter(BUDGET, dev, (const void *)(uintptr_t)fn, h) : CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuDeviceUnregisterAsyncNotification(CUdevice dev, CUasyncCallbackHandle h)
{
    SG_ENTER();
    return sg_dev(dev) ? leave(BUDGET, dev, h) : CUDA_ERROR_INVALID_DEVICE;
}
