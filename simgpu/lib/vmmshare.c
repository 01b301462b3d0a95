// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* vmmshare.c: physical memory between processes, by descriptor. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vmm.h"

#define MEMORY_MAGIC 0x79726f6du /* "mory" */

struct note {
    uint32_t magic;
    uint32_t gpu;
    uint64_t size;
    uint32_t multicast; /* number of devices, 0: memory */
    uint32_t compression, rdma, usage;
};

struct showing {
    struct sg_physical *m;
    int fd;
    bool ok;
};

static void show(struct sg_mem *b, void *arg)
{
    struct showing *s = arg;

    if (b->kind == SG_MEM_MAPPED && b->physical == s->m && s->ok)
        s->ok = sg_physical_show(b, s->fd, 0);
}

/* Moves bytes that were written, [from, from+n) of one file, to the start of another. */
static bool move_data(int in, off_t from, size_t n, int out)
{
    off_t end = from + (off_t)n, at = from;
    char *buf = malloc(1 << 20);
    bool ok = buf != NULL;

    while (ok && (at = lseek(in, at, SEEK_DATA)) >= 0 && at < end) {
        off_t hole = lseek(in, at, SEEK_HOLE);

        if (hole < 0 || hole > end)
            hole = end;
        while (ok && at < hole) {
            ssize_t r = pread(in, buf, hole - at > 1 << 20 ? 1 << 20 : (size_t)(hole - at), at);

            ok = r > 0 && pwrite(out, buf, (size_t)r, at - from) == r;
            at += r;
        }
    }
    free(buf);
    return ok;
}

/* Puts memory into a file that others can have, under all its mappings. The lock
 * and sg_bytes_lock are held. */
static CUresult share(struct sg_physical *m)
{
    struct showing s = {.m = m};
    CUresult r;

    if (m->offset < 0)
        return CUDA_SUCCESS;
    r = sg_shared_file(m->handle, true, &s.fd, NULL);
    if (r != CUDA_SUCCESS)
        return r;
    s.ok = move_data(sg_vmm_file(), m->offset, m->size, s.fd);
    sg_mem_each(show, &s);
    close(s.fd);
    if (!s.ok)
        return CUDA_ERROR_OPERATING_SYSTEM;
    fallocate(sg_vmm_file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, m->offset, (off_t)m->size);
    m->offset = -1;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type,
                                             unsigned long long flags)
{
    struct note note = {.magic = MEMORY_MAGIC};
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_physical *m;
    uint64_t handle = 0;
    int fd;

    SG_ENTER();
    if (!out || flags)
        return r;
    sg_bytes_lock();
    sg_lock();
    m = sg_physical_of(h);
    if (m && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && (unsigned)m->prop.requestedHandleTypes & (unsigned)type) {
        if (m->multicast)
            r = CUDA_SUCCESS;
        else
            r = m->dev < 0 ? CUDA_ERROR_NOT_SUPPORTED : share(m);
        handle = m->handle;
        note.size = m->size;
        note.multicast = m->multicast ? sg_multicast_devices(m->multicast) : 0;
        note.compression = m->prop.allocFlags.compressionType;
        note.rdma = m->prop.allocFlags.gpuDirectRDMACapable;
        note.usage = m->prop.allocFlags.usage;
        note.gpu = m->dev < 0 ? 0 : sg_state.dev[m->dev].index;
    }
    sg_unlock();
    sg_bytes_unlock();
    if (r == CUDA_SUCCESS)
        r = sg_export(handle, &note, sizeof(note), &fd);
    if (r == CUDA_SUCCESS)
        *(int *)out = fd;
    return r;
}

/* Physical memory behind a descriptor, which stays open. */
CUresult sg_physical_import(int fd, struct sg_physical **ret)
{
    struct sg_physical *m;
    struct sg_reply rep;
    struct note note;
    CUdevice dev;
    CUresult r;

    if (fcntl(fd, F_GETFD) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_import(NULL, fd, &rep, &note, sizeof(note));
    if (r != CUDA_SUCCESS)
        return r;
    dev = sg_device_of((unsigned)rep.c);
    m = note.magic != MEMORY_MAGIC || dev < 0 ? NULL : sg_physical_new();
    if (m && note.multicast && !(m->multicast = sg_multicast_new(note.multicast, note.size))) {
        sg_object_free(m, sizeof(*m));
        m = NULL;
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!m) {
        sg_device_give(rep.a);
        return r != CUDA_SUCCESS ? r : note.magic != MEMORY_MAGIC ? CUDA_ERROR_INVALID_VALUE
               : dev < 0                                          ? CUDA_ERROR_INVALID_DEVICE
                                                                  : CUDA_ERROR_OUT_OF_MEMORY;
    }
    m->dev = dev;
    m->size = note.multicast ? note.size : rep.b;
    m->handle = rep.a;
    m->prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, dev}};
    m->prop.allocFlags.compressionType = (unsigned char)note.compression;
    m->prop.allocFlags.gpuDirectRDMACapable = (unsigned char)note.rdma;
    m->prop.allocFlags.usage = (unsigned short)note.usage;
    *ret = m;
    return CUDA_SUCCESS;
}

SG_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *h, void *handle,
                                               CUmemAllocationHandleType type)
{
    struct sg_physical *m;
    CUresult r;

    SG_ENTER();
    if (!h)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_MEM_HANDLE_TYPE_FABRIC)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_physical_import((int)(intptr_t)handle, &m);
    if (r == CUDA_SUCCESS)
        *h = (uintptr_t)m;
    return r;
}

/* ---- what is refused ------------------------------------------------------------ */

SG_API CUresult cuMemGetHandleForAddressRange(void *out, CUdeviceptr p, size_t n, CUmemRangeHandleType type,
                                              unsigned long long flags SG_UNUSED)
{
    SG_ENTER();
    if (!out || type != 1 || p % SG_PAGE || !n || n % SG_PAGE || !sg_mem_ours(p, n))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED; /* no dma-buf: DMA_BUF_SUPPORTED is 0 */
}

static CUresult map_array(CUarrayMapInfo *list, unsigned n, CUstream h, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    return list && n ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned int n, CUstream s)
{
    return map_array(list, n, s, false);
}

SG_API CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo *list, unsigned int n, CUstream s)
{
    return map_array(list, n, s, true);
}

static CUresult decompress(CUmemDecompressParams *list, size_t n, unsigned flags, CUstream h, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    return list && n && !flags ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemBatchDecompressAsync(CUmemDecompressParams *list, size_t n, unsigned int flags,
                                          size_t *error SG_UNUSED, CUstream s)
{
    return decompress(list, n, flags, s, false);
}

SG_API CUresult cuMemBatchDecompressAsync_ptsz(CUmemDecompressParams *list, size_t n, unsigned int flags,
                                               size_t *error SG_UNUSED, CUstream s)
{
    return decompress(list, n, flags, s, true);
}
