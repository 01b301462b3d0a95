// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * eventipc.c: events that several processes use. The host counts their records
 * and says in each process's slot of the event which is the newest asked for and
 * which is complete. The handle carries the key of the host's event.
 */
#include "sg.h"

#define IPC_MAGIC 0x65706973u /* "sipe" */

struct handle {
    uint32_t magic;
    uint32_t reserved;
    unsigned char key[SG_KEY_BYTES];
};
_Static_assert(sizeof(struct handle) <= CU_IPC_HANDLE_SIZE, "handle");

/* Drops e if that is not possible. */
CUresult sg_event_share(CUevent e, const void *key)
{
    struct sg_request req = {.op = SG_OP_EVENT_SHARE, .a = e->slot, .len = key ? SG_KEY_BYTES : 0};
    struct sg_reply rep;
    size_t n;
    CUresult r = sg_call(&req, key, &rep, e->key, sizeof(e->key), &n);

    if (r == CUDA_SUCCESS && n != sizeof(e->key))
        r = CUDA_ERROR_UNKNOWN;
    if (r == CUDA_SUCCESS) {
        e->shared = true;
        return r;
    }
    sg_lock();
    sg_event_drop(e);
    sg_unlock();
    return r;
}

/* Waits until an event that processes share has come to a record. */
CUresult sg_wait_event(uint32_t slot, uint64_t generation)
{
    struct sg_shared *m = sg_conn.shm;
    CUresult r = CUDA_SUCCESS;

    __atomic_add_fetch(&m->event_waiters, 1, __ATOMIC_SEQ_CST);
    if (!sg_clock_on())
        sg_kick(); /* for the host to be awake when it is due */
    while (r == CUDA_SUCCESS) {
        uint32_t v = __atomic_load_n(&m->done_futex, __ATOMIC_SEQ_CST);

        if (__atomic_load_n(&m->event[slot].generation, __ATOMIC_SEQ_CST) >= generation)
            break;
        r = sg_clock_on() ? sg_block(SG_WAIT_EVENT, slot, generation) : sg_sleep_on(&m->done_futex, v);
    }
    __atomic_sub_fetch(&m->event_waiters, 1, __ATOMIC_SEQ_CST);
    sg_after_others();
    return r;
}

SG_API CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent e)
{
    struct handle h = {.magic = IPC_MAGIC};

    SG_ENTER_CTX(c);
    (void)c;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    /* Only of one that was made for it, and here: not of one that was opened. */
    if (!sg_is(e, SG_EVENT) || !e->shared || e->opened)
        return CUDA_ERROR_INVALID_HANDLE;
    memcpy(h.key, e->key, sizeof(h.key));
    memset(out, 0, sizeof(*out));
    memcpy(out, &h, sizeof(h));
    return CUDA_SUCCESS;
}

SG_API CUresult cuIpcOpenEventHandle(CUevent *pe, CUipcEventHandle in)
{
    struct handle h;
    CUevent e;
    CUresult r;

    SG_ENTER_CTX(c);
    if (!pe)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&h, &in, sizeof(h));
    if (h.magic != IPC_MAGIC)
        return CUDA_ERROR_INVALID_HANDLE;
    r = sg_event_new(c, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, &e);
    if (r != CUDA_SUCCESS)
        return r;
    e->opened = true;
    r = sg_event_share(e, h.key);
    if (r == CUDA_SUCCESS)
        *pe = e;
    return r;
}
