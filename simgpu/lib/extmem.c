// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * extmem.c: external memory. The only descriptors that exist on a simulated node
 * are those that cuMemExportToShareableHandle makes; any other is refused, as the
 * driver refuses one that is not of its making.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm.h"

/* The layouts of structures that the header leaves open. */
struct memory_desc {
    int type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
    } handle;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
};
struct buffer_desc {
    unsigned long long offset, size;
    unsigned flags;
    unsigned reserved[16];
};
struct semaphore_desc {
    int type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
    } handle;
    unsigned flags;
    unsigned reserved[16];
};
enum { OPAQUE_FD = 1, LAST_MEMORY = 9, LAST_SEMAPHORE = 10, TIMELINE_FD = 9 };

struct CUextMemory_st {
    uint32_t magic;
    CUcontext ctx;
    struct sg_physical *memory;
    size_t size;
};

SG_API CUresult cuImportExternalMemory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc)
{
    const struct memory_desc *d = (const struct memory_desc *)desc;
    struct sg_physical *m;
    CUexternalMemory e;
    CUresult r;

    SG_ENTER_CTX(c);
    if (!out || !d || !d->size || d->flags & ~1u || d->type < 1 || d->type > LAST_MEMORY)
        return CUDA_ERROR_INVALID_VALUE;
    if (d->type != OPAQUE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    r = sg_physical_import(d->handle.fd, &m);
    if (r != CUDA_SUCCESS)
        return r == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_INVALID_HANDLE : r;
    e = m->multicast || d->size > m->size ? NULL : sg_object_new(sizeof(*e));
    if (!e) {
        r = m->multicast || d->size > m->size ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
        sg_lock();
        sg_physical_put(m);
        sg_unlock();
        return r;
    }
    *e = (struct CUextMemory_st){SG_EXTERNAL, c, m, d->size};
    close(d->handle.fd); /* it is the driver's now */
    *out = e;
    return CUDA_SUCCESS;
}

SG_API CUresult cuDestroyExternalMemory(CUexternalMemory e)
{
    SG_ENTER();
    if (!sg_is(e, SG_EXTERNAL))
        return CUDA_ERROR_INVALID_HANDLE;
    sg_lock();
    sg_physical_put(e->memory); /* buffers that are still mapped keep the bytes, not the account */
    sg_unlock();
    sg_object_free(e, sizeof(*e));
    return CUDA_SUCCESS;
}

SG_API CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *pp, CUexternalMemory e,
                                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
    const struct buffer_desc *d = (const struct buffer_desc *)desc;
    struct sg_mem m = {.kind = SG_MEM_EXTERNAL};
    CUresult r;

    SG_ENTER_CTX(c);
    if (!sg_is(e, SG_EXTERNAL))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pp || !d || !d->size || d->flags || d->size > e->size || d->offset > e->size - d->size)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_block_import(e->memory->handle, d->offset + d->size, e->memory->dev, c, &m.block);
    if (r != CUDA_SUCCESS)
        return r;
    m.block->handle = 0; /* held by the object */
    m.base = m.block->base + d->offset;
    m.size = m.mapped = m.block->live = d->size;
    m.dev = e->memory->dev;
    m.ctx = c;
    sg_lock();
    r = sg_mem_insert(&m);
    sg_unlock();
    if (r != CUDA_SUCCESS)
        sg_block_free(m.block);
    else
        *pp = m.base;
    return r;
}

SG_API CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *out, CUexternalMemory e,
                                                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc)
{
    SG_ENTER();
    if (!sg_is(e, SG_EXTERNAL))
        return CUDA_ERROR_INVALID_HANDLE;
    return out && desc ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

/* ---- semaphores: nothing on a simulated node makes one -------------------------- */

SG_API CUresult cuImportExternalSemaphore(CUexternalSemaphore *out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
    const struct semaphore_desc *d = (const struct semaphore_desc *)desc;

    SG_ENTER_CTX(c);
    (void)c;
    if (!out || !d || d->flags || d->type < 1 || d->type > LAST_SEMAPHORE)
        return CUDA_ERROR_INVALID_VALUE;
    if (d->type != OPAQUE_FD && d->type != TIMELINE_FD)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_ERROR_INVALID_HANDLE;
}

SG_API CUresult cuDestroyExternalSemaphore(CUexternalSemaphore s SG_UNUSED)
{
    SG_ENTER();
    return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult semaphores(const void *list, const void *params, unsigned n, CUstream h, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    return list && params && n ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

#define SEMAPHORES(name, type, pt)                                                                         \
    SG_API CUresult name(const CUexternalSemaphore *list, const type *params, unsigned int n, CUstream s) \
    {                                                                                                     \
        return semaphores(list, params, n, s, pt);                                                        \
    }
SEMAPHORES(cuSignalExternalSemaphoresAsync, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, false)
SEMAPHORES(cuSignalExternalSemaphoresAsync_ptsz, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, true)
SEMAPHORES(cuWaitExternalSemaphoresAsync, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, false)
SEMAPHORES(cuWaitExternalSemaphoresAsync_ptsz, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, true)
