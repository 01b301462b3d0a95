// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * ipc.c: memory between processes by handle. The handle names an allocation of
 * cuMemAlloc; opening maps the block that it lies in, and holds the memory until
 * it is closed, also when the exporter has freed it or is gone.
 */
#include <fcntl.h>
#include <unistd.h>

#include "sg.h"

#define IPC_MAGIC 0x63706973u /* "sipc" */

struct handle {
    uint32_t magic;
    uint32_t reserved;
    uint64_t process; /* of the exporter */
    unsigned char key[SG_KEY_BYTES];
    uint64_t offset, size; /* of the allocation in its block */
};
_Static_assert(sizeof(struct handle) <= CU_IPC_HANDLE_SIZE, "handle");

struct note {
    uint32_t magic;
    uint32_t reserved;
    uint64_t process;
};

/* A number that no other process has. The lock is held. */
static uint64_t this_process(void)
{
    static uint64_t id;

    if (!id) {
        int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC); /* getrandom is newer than our glibc */

        if (fd < 0 || read(fd, &id, sizeof(id)) != (ssize_t)sizeof(id) || !id)
            id = (uint64_t)getpid() << 32 ^ sg_now();
        if (fd >= 0)
            close(fd);
    }
    return id;
}

SG_API CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr p)
{
    struct handle h = {.magic = IPC_MAGIC};
    struct note note = {.magic = IPC_MAGIC};
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_mem *m;

    SG_ENTER_CTX(c);
    (void)c;
    if (!out)
        return r;
    sg_bytes_lock();
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    /* Not of pools, not managed, not mapped, not of others: they have ways of their own. */
    if (m && m->kind == SG_MEM_DEVICE) {
        note.process = h.process = this_process();
        r = sg_block_share(m->block);
        if (r == CUDA_SUCCESS)
            r = sg_block_key(m->block, &note, sizeof(note));
        memcpy(h.key, m->block->key, sizeof(h.key));
        h.offset = m->base - m->block->base;
        h.size = m->size;
    }
    sg_unlock();
    sg_bytes_unlock();
    if (r == CUDA_SUCCESS) {
        memset(out, 0, sizeof(*out));
        memcpy(out, &h, sizeof(h));
    }
    return r;
}

struct search {
    const struct handle *h;
    struct sg_mem *found;
};

static void look(struct sg_mem *m, void *arg)
{
    struct search *s = arg;

    if (m->kind == SG_MEM_IPC && !memcmp(m->block->key, s->h->key, SG_KEY_BYTES) &&
        m->base - m->block->base == s->h->offset)
        s->found = m;
}

/* Opens again what this context has open; *ret_other: another context has it. */
static bool again(const struct handle *h, CUcontext c, CUdeviceptr *ret, bool *ret_other)
{
    struct search s = {.h = h};

    sg_mem_each(look, &s);
    *ret_other = s.found && s.found->ctx != c;
    if (!s.found || *ret_other)
        return false;
    s.found->flags++;
    *ret = s.found->base;
    return true;
}

static CUresult open_handle(CUdeviceptr *pp, const struct handle *h, CUcontext c)
{
    struct sg_mem m = {.kind = SG_MEM_IPC, .flags = 1, .ctx = c};
    struct sg_reply rep;
    struct note note;
    CUdevice dev;
    CUresult r = sg_import(h->key, -1, &rep, &note, sizeof(note));

    if (r != CUDA_SUCCESS)
        return r == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_INVALID_HANDLE : r;
    dev = sg_device_of((unsigned)rep.c);
    if (note.magic != IPC_MAGIC || !h->size || h->size > rep.b || h->offset > rep.b - h->size)
        r = CUDA_ERROR_INVALID_HANDLE;
    else if (dev < 0)
        r = CUDA_ERROR_INVALID_DEVICE;
    else
        r = sg_block_import(rep.a, h->offset + h->size, dev, c, &m.block);
    if (r != CUDA_SUCCESS) {
        sg_device_give(rep.a);
        return r;
    }
    memcpy(m.block->key, h->key, SG_KEY_BYTES);
    m.base = m.block->base + h->offset;
    m.size = m.mapped = m.block->live = h->size;
    m.dev = dev;
    sg_lock();
    r = sg_mem_insert(&m);
    sg_unlock();
    if (r != CUDA_SUCCESS)
        sg_block_free(m.block);
    else
        *pp = m.base;
    return r;
}

SG_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pp, CUipcMemHandle in, unsigned int flags)
{
    bool mine, done, other;
    struct handle h;

    SG_ENTER_CTX(c);
    if (!pp || flags != 1) /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&h, &in, sizeof(h));
    if (h.magic != IPC_MAGIC)
        return CUDA_ERROR_INVALID_HANDLE;
    sg_lock();
    mine = h.process == this_process();
    done = !mine && again(&h, c, pp, &other);
    sg_unlock();
    if (done)
        return CUDA_SUCCESS;
    /* Not where it comes from, and in one context of a process only. */
    return mine || other ? CUDA_ERROR_INVALID_CONTEXT : open_handle(pp, &h, c);
}

SG_API CUresult cuIpcOpenMemHandle(CUdeviceptr *pp, CUipcMemHandle in, unsigned int flags)
{
    return cuIpcOpenMemHandle_v2(pp, in, flags);
}

SG_API CUresult cuIpcCloseMemHandle(CUdeviceptr p)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_mem *m;
    bool last = false;

    SG_ENTER_CTX(c);
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->base == p && m->kind == SG_MEM_IPC && m->ctx == c) {
        last = m->flags == 1;
        if (!last)
            m->flags--;
        r = CUDA_SUCCESS;
    }
    sg_unlock();
    return last ? sg_mem_free(p, SG_MEM_IPC, true) : r;
}
