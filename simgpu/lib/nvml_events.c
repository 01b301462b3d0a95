// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * nvml_events.c: sets of events. A set is a connection of its own, on which the
 * host process sends what it was asked for; waiting is reading from it. The
 * order of locks: that of a set before that of the library.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "nvml.h"

#define EARLY 64u /* events that came while an answer was awaited */

struct nvmlEventSet_st {
    uint32_t magic;
    int fd;
    pthread_mutex_t lock;
    struct sg_event early[EARLY];
    unsigned nearly;
    uint32_t id;
};
#define SG_NVML_SET 0x53474553u

/* Sets live in a table, so that any pointer can be told to be one. They are
 * few: monitors have one each. */
#define SETS 256u
static struct nvmlEventSet_st sets[SETS];

struct message {
    struct sg_reply head;
    struct sg_event event;
};

static bool valid(nvmlEventSet_t s)
{
    uintptr_t at = (uintptr_t)s - (uintptr_t)sets;

    return at < sizeof(sets) && at % sizeof(sets[0]) == 0 &&
           __atomic_load_n(&s->magic, __ATOMIC_ACQUIRE) == SG_NVML_SET;
}

/* Reads one message; 0 if none came in time, -1 if the host is gone. */
static int read_message(int fd, int ms, struct message *m)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec from, now;
    int r, left = ms;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (;;) {
        r = poll(&p, 1, left);
        if (r >= 0 || errno != EINTR)
            break;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (ms >= 0) {
            long long gone = (now.tv_sec - from.tv_sec) * 1000ll + (now.tv_nsec - from.tv_nsec) / 1000000;

            left = gone < ms ? ms - (int)gone : 0;
        }
    }
    if (r <= 0)
        return r;
    return recv(fd, m, sizeof(*m), 0) >= (ssize_t)sizeof(m->head) ? 1 : -1;
}

SG_API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *ret)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(ret);
    pthread_mutex_lock(&sg_nvml.lock);
    for (unsigned i = 0; i < SETS; i++) {
        if (sets[i].magic)
            continue;
        sets[i] = (struct nvmlEventSet_st){.fd = sg_open(SG_KIND_EVENTS), .lock = PTHREAD_MUTEX_INITIALIZER};
        if (sets[i].fd < 0)
            break;
        __atomic_store_n(&sets[i].magic, SG_NVML_SET, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&sg_nvml.lock);
        *ret = &sets[i];
        return NVML_SUCCESS;
    }
    pthread_mutex_unlock(&sg_nvml.lock);
    return NVML_ERROR_UNKNOWN;
}

SG_API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t s)
{
    SG_NVML_ENTER();
    SG_NVML_WANT(valid(s));
    pthread_mutex_lock(&s->lock);
    close(s->fd);
    s->fd = -1;
    pthread_mutex_unlock(&s->lock);
    __atomic_store_n(&s->magic, 0, __ATOMIC_RELEASE);
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, unsigned long long *types)
{
    SG_NVML_GPU(d);
    SG_NVML_WANT(types);
    *types = NVML_EVENT_PSTATE | NVML_EVENT_XID | NVML_EVENT_CLOCK;
    if (d->card->flags & SG_CARD_ECC)
        *types |= NVML_EVENT_SINGLE_BIT_ECC | NVML_EVENT_DOUBLE_BIT_ECC;
    if (d->card->mig_instances)
        *types |= NVML_EVENT_MIG_CONFIG;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t s)
{
    struct sg_request req = {.op = SG_OP_EVENTS, .a = types};
    nvmlReturn_t r = NVML_ERROR_UNKNOWN;
    struct message m;

    SG_NVML_DEV(d);
    SG_NVML_WANT(valid(s));
    req.gpu = d->gpu;
    pthread_mutex_lock(&s->lock);
    req.id = ++s->id;
    if (s->fd >= 0 && send(s->fd, &req, sizeof(req), MSG_NOSIGNAL) == (ssize_t)sizeof(req)) {
        while (read_message(s->fd, 10000, &m) > 0) {
            if (m.head.id == req.id) {
                r = (nvmlReturn_t)m.head.status;
                break;
            }
            if (s->nearly < EARLY)
                s->early[s->nearly++] = m.event;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

static nvmlReturn_t wait_event(nvmlEventSet_t s, unsigned timeout_ms, struct sg_event *e)
{
    int ms = timeout_ms > INT32_MAX ? -1 : (int)timeout_ms, got;
    struct message m;

    SG_NVML_ENTER();
    SG_NVML_WANT(valid(s));
    pthread_mutex_lock(&s->lock);
    if (s->nearly) {
        *e = s->early[0];
        memmove(s->early, s->early + 1, --s->nearly * sizeof(*e));
        pthread_mutex_unlock(&s->lock);
        return NVML_SUCCESS;
    }
    got = s->fd < 0 ? -1 : read_message(s->fd, ms, &m);
    pthread_mutex_unlock(&s->lock);
    if (got < 0)
        return NVML_ERROR_UNKNOWN;
    if (!got)
        return NVML_ERROR_TIMEOUT;
    *e = m.event;
    return NVML_SUCCESS;
}

/* The two forms differ in that the newer one tells MIG instances; without MIG
 * both leave them at "none". */
static nvmlReturn_t wait_data(nvmlEventSet_t s, nvmlEventData_t *data, unsigned ms)
{
    struct sg_event e;

    SG_NVML_ENTER();
    SG_NVML_WANT(data);
    SG_NVML_TRY(wait_event(s, ms, &e));
    *data = (nvmlEventData_t){.device = sg_nvml_gpu(e.gpu), .eventType = e.type, .eventData = e.data,
                              .gpuInstanceId = e.gi, .computeInstanceId = e.ci};
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t s, nvmlEventData_t *data, unsigned int ms)
{
    return wait_data(s, data, ms);
}

SG_API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t s, nvmlEventData_t *data, unsigned int ms)
{
    return wait_data(s, data, ms);
}

SG_API nvmlReturn_t nvmlEventSetWait_v3(nvmlEventSet_t s, nvmlEventSetWait_v3_t *w)
{
    struct sg_event e;
    nvmlDevice_t d;
    unsigned ms;

    SG_NVML_ENTER();
    SG_NVML_WANT(w);
    ms = w->timeoutMs;
    SG_NVML_TRY(wait_event(s, ms, &e));
    *w = (nvmlEventSetWait_v3_t){.timeoutMs = ms, .eventType = e.type, .eventData = e.data, .timestampUsec = e.time_us,
                                 .gpuInstanceId = e.gi, .computeInstanceId = e.ci, .groupSize = 1};
    d = sg_nvml_gpu(e.gpu);
    if (d)
        memcpy(w->uuid, d->info->uuid, sizeof(d->info->uuid));
    return NVML_SUCCESS;
}

/* ---- events of the system as a whole: of cards that come and go -------------------------- */

struct nvmlSystemEventSet_st {
    bool used;
};
static struct nvmlSystemEventSet_st system_set[16];

static bool is_system_set(nvmlSystemEventSet_t s)
{
    uintptr_t at = (uintptr_t)s - (uintptr_t)system_set;

    return at < sizeof(system_set) && at % sizeof(system_set[0]) == 0 && s->used;
}

SG_API nvmlReturn_t nvmlSystemEventSetCreate(nvmlSystemEventSetCreateRequest_t *req)
{
    nvmlReturn_t r = NVML_ERROR_MEMORY;

    SG_NVML_ENTER();
    SG_NVML_VERSION(req, nvmlSystemEventSetCreateRequest_t, 1);
    pthread_mutex_lock(&sg_nvml.lock);
    for (unsigned i = 0; i < SG_LEN(system_set) && r != NVML_SUCCESS; i++) {
        if (!system_set[i].used) {
            system_set[i].used = true;
            req->set = &system_set[i];
            r = NVML_SUCCESS;
        }
    }
    pthread_mutex_unlock(&sg_nvml.lock);
    return r;
}

SG_API nvmlReturn_t nvmlSystemEventSetFree(nvmlSystemEventSetFreeRequest_t *req)
{
    SG_NVML_ENTER();
    SG_NVML_VERSION(req, nvmlSystemEventSetFreeRequest_t, 1);
    SG_NVML_WANT(is_system_set(req->set));
    req->set->used = false;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlSystemRegisterEvents(nvmlSystemRegisterEventRequest_t *req)
{
    SG_NVML_ENTER();
    SG_NVML_VERSION(req, nvmlSystemRegisterEventRequest_t, 1);
    SG_NVML_WANT(is_system_set(req->set) && !(req->eventTypes & ~3ull));
    return NVML_SUCCESS;
}

/* No card is ever bound or unbound, so there is only time to wait for. */
SG_API nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_t *req)
{
    SG_NVML_ENTER();
    SG_NVML_VERSION(req, nvmlSystemEventSetWaitRequest_t, 1);
    SG_NVML_WANT(is_system_set(req->set) && req->data && req->dataSize);
    poll(NULL, 0, req->timeoutms > INT32_MAX ? -1 : (int)req->timeoutms);
    req->numEvent = 0;
    return NVML_ERROR_TIMEOUT;
}
