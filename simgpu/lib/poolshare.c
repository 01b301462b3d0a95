// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * poolshare.c: pools that several processes use. A pool travels as a descriptor,
 * an allocation as 64 bytes of data; the block that it lies in is shared whole.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sg.h"

#define POOL_MAGIC 0x6c6f6f70u /* "pool" */

/* What importers are told of a pool, and of a block of it. */
struct note {
    uint32_t magic;
    uint32_t gpu;
    unsigned char id[SG_KEY_BYTES];
};

struct pointer_data {
    uint32_t magic;
    uint32_t reserved;
    unsigned char key[SG_KEY_BYTES];
    uint64_t offset, size;
};
_Static_assert(sizeof(struct pointer_data) <= sizeof(CUmemPoolPtrExportData), "pointer data");

/* A pool that is shared has something at the host that descriptors hold, and a
 * name. */
static CUresult name_pool(CUmemoryPool p, struct note *note)
{
    struct sg_request make = {.op = SG_OP_ALLOC, .gpu = sg_state.dev[p->dev].index, .b = SG_USE_TOKEN};
    struct sg_request req = {.op = SG_OP_KEY};
    struct sg_reply rep;
    CUresult r;

    if (!p->handle) {
        r = sg_call(&make, NULL, &rep, NULL, 0, NULL);
        if (r != CUDA_SUCCESS)
            return r;
        p->handle = rep.a;
    }
    note->magic = POOL_MAGIC;
    note->gpu = make.gpu;
    req.a = p->handle;
    return sg_call(&req, NULL, &rep, note->id, sizeof(note->id), NULL);
}

SG_API CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool p, CUmemAllocationHandleType type,
                                                 unsigned long long flags)
{
    struct note note = {0};
    CUresult r;
    int fd;

    SG_ENTER();
    if (!out || !sg_pool_valid(p) || flags || p->deflt || p->imported || p->dev < 0 ||
        type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !(p->handle_types & (unsigned)type))
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = name_pool(p, &note);
    sg_unlock();
    if (r == CUDA_SUCCESS)
        r = sg_export(p->handle, &note, sizeof(note), &fd);
    if (r == CUDA_SUCCESS)
        *(int *)out = fd;
    return r;
}

SG_API CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pp, void *handle, CUmemAllocationHandleType type,
                                                   unsigned long long flags)
{
    struct CUmemPoolHandle_st like;
    struct sg_reply rep;
    struct note note;
    CUmemoryPool p;
    CUresult r;

    SG_ENTER();
    if (!pp || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fcntl((int)(intptr_t)handle, F_GETFD) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_import(NULL, (int)(intptr_t)handle, &rep, &note, sizeof(note));
    if (r != CUDA_SUCCESS)
        return r;
    if (note.magic != POOL_MAGIC || sg_device_of((unsigned)rep.c) < 0) {
        sg_device_give(rep.a);
        return note.magic != POOL_MAGIC ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    }
    sg_pool_init(&like, sg_device_of((unsigned)rep.c));
    like.imported = true;
    like.handle = rep.a;
    like.handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    p = sg_pool_add(&like);
    if (!p) {
        sg_device_give(rep.a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pp = p;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr p)
{
    struct pointer_data d = {.magic = POOL_MAGIC};
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct note note = {0};
    struct sg_mem *m;

    SG_ENTER();
    if (!out)
        return r;
    sg_bytes_lock();
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->kind == SG_MEM_POOL && m->base == p && m->pool->dev >= 0 &&
        m->pool->handle_types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        r = name_pool(m->pool, &note);
        if (r == CUDA_SUCCESS)
            r = sg_block_share(m->block);
        if (r == CUDA_SUCCESS)
            r = sg_block_key(m->block, &note, sizeof(note));
        memcpy(d.key, m->block->key, sizeof(d.key));
        d.offset = m->base - m->block->base;
        d.size = m->size;
    }
    sg_unlock();
    sg_bytes_unlock();
    if (r == CUDA_SUCCESS) {
        memset(out, 0, sizeof(*out));
        memcpy(out, &d, sizeof(d));
    }
    return r;
}

/* Maps a memory file of the host's as a block. */
CUresult sg_block_import(uint64_t handle, size_t bytes, CUdevice dev, CUcontext ctx, struct sg_block **ret)
{
    struct sg_block *b = calloc(1, sizeof(*b));
    size_t size = 0;
    CUresult r;
    void *p;
    int fd;

    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = sg_shared_file(handle, false, &fd, &size);
    if (r != CUDA_SUCCESS) {
        free(b);
        return r;
    }
    p = size < bytes ? NULL
                     : sg_map_aligned(0, size, sg_rules(dev)->block_bytes, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_NORESERVE, fd);
    close(fd);
    if (!p) {
        free(b);
        return CUDA_ERROR_MAP_FAILED;
    }
    *b = (struct sg_block){.base = (uintptr_t)p, .size = size, .handle = handle, .dev = dev, .ctx = ctx, .shared = true,
                           .live = size};
    *ret = b;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemPoolImportPointer(CUdeviceptr *pp, CUmemoryPool pool, CUmemPoolPtrExportData *in)
{
    struct sg_mem m = {.kind = SG_MEM_IMPORTED, .pool = pool};
    struct note mine = {0}, note;
    struct pointer_data d;
    struct sg_reply rep;
    CUresult r;

    SG_ENTER();
    if (!pp || !in || !sg_pool_valid(pool) || !pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&d, in, sizeof(d));
    if (d.magic != POOL_MAGIC)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = name_pool(pool, &mine);
    sg_unlock();
    if (r == CUDA_SUCCESS)
        r = sg_import(d.key, -1, &rep, &note, sizeof(note));
    if (r != CUDA_SUCCESS)
        return r;
    if (memcmp(note.id, mine.id, sizeof(mine.id)) || !d.size || d.size > rep.b || d.offset > rep.b - d.size)
        r = CUDA_ERROR_INVALID_VALUE;
    else
        r = sg_block_import(rep.a, d.offset + d.size, pool->dev, NULL, &m.block);
    if (r != CUDA_SUCCESS) {
        sg_device_give(rep.a);
        return r;
    }
    m.base = m.block->base + d.offset;
    m.size = m.mapped = m.block->live = d.size;
    m.dev = pool->dev;
    sg_lock();
    r = sg_mem_insert(&m);
    sg_unlock();
    if (r != CUDA_SUCCESS)
        sg_block_free(m.block);
    else
        *pp = m.base;
    return r;
}
