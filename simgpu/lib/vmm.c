// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * vmm.c: virtual memory management. An address range is an inaccessible
 * mapping; physical memory is a part of one unbounded memory file, so the same
 * bytes can be mapped at several addresses. The account is charged when
 * physical memory is made and settled when neither a handle nor a mapping holds
 * it.
 */
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sg.h"

#define GRANULARITY ((size_t)2 << 20)
#define FILE_BYTES ((off_t)1 << 46)

struct range {
    uintptr_t base;
    size_t size;
    struct range *next;
};

struct sg_physical {
    uint32_t magic;
    CUdevice dev;
    size_t size;
    off_t offset;
    uint64_t handle; /* the host's */
    unsigned refs;   /* handles given out and mappings */
    unsigned handles;
    CUmemAllocationProp prop;
};

static struct range *ranges; /* all under the lock */
static int file = -1;
static off_t file_end;

static CUresult check_prop(const CUmemAllocationProp *p)
{
    if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE || p->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    return sg_dev(p->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuMemGetAllocationGranularity(size_t *n, const CUmemAllocationProp *p,
                                              CUmemAllocationGranularity_flags option SG_UNUSED)
{
    CUresult r;

    SG_ENTER();
    r = check_prop(p);
    if (r == CUDA_SUCCESS && !n)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *n = GRANULARITY;
    return r;
}

SG_API CUresult cuMemAddressReserve(CUdeviceptr *p, size_t n, size_t align, CUdeviceptr hint, unsigned long long flags)
{
    size_t extra, total;
    struct range *r;
    uintptr_t at;
    void *q;

    SG_ENTER();
    if (!p || !n || n % GRANULARITY || flags || align & (align - 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (align < GRANULARITY)
        align = GRANULARITY;
    extra = align;
    if (__builtin_add_overflow(n, extra, &total))
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = calloc(1, sizeof(*r));
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    q = mmap((void *)(uintptr_t)hint, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (q == MAP_FAILED) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    at = ((uintptr_t)q + align - 1) / align * align;
    if (at > (uintptr_t)q)
        munmap(q, at - (uintptr_t)q);
    if ((uintptr_t)q + total > at + n)
        munmap((void *)(at + n), (uintptr_t)q + total - (at + n));
    r->base = at;
    r->size = n;
    sg_lock();
    r->next = ranges;
    ranges = r;
    sg_unlock();
    *p = at;
    return CUDA_SUCCESS;
}

static struct range *range_of(uintptr_t p, size_t n)
{
    for (struct range *r = ranges; r; r = r->next) {
        if (p >= r->base && p - r->base < r->size && n <= r->size - (p - r->base))
            return r;
    }
    return NULL;
}

SG_API CUresult cuMemAddressFree(CUdeviceptr p, size_t n)
{
    struct range **r;
    CUresult ret = CUDA_ERROR_INVALID_VALUE;

    SG_ENTER();
    sg_lock();
    for (r = &ranges; *r; r = &(*r)->next) {
        struct range *gone = *r;

        if (gone->base != p || gone->size != n || sg_mem_touches(gone->base, n))
            continue;
        *r = gone->next;
        munmap((void *)gone->base, n);
        free(gone);
        ret = CUDA_SUCCESS;
        break;
    }
    sg_unlock();
    return ret;
}

static void drop(struct sg_physical *m)
{
    if (--m->refs)
        return;
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, m->offset, (off_t)m->size);
    sg_rpc(SG_OP_FREE, 0, 0, m->handle, NULL);
    m->magic = 0;
    sg_object_free(m, sizeof(*m));
}

SG_API CUresult cuMemCreate(CUmemGenericAllocationHandle *h, size_t n, const CUmemAllocationProp *p,
                            unsigned long long flags)
{
    struct sg_physical *m;
    CUresult r;

    SG_ENTER();
    r = check_prop(p);
    if (r != CUDA_SUCCESS)
        return r;
    if (!h || !n || n % GRANULARITY || flags)
        return CUDA_ERROR_INVALID_VALUE;
    m = sg_object_new(sizeof(*m));
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = sg_rpc(SG_OP_ALLOC, sg_state.dev[p->location.id].index, 0, n, &m->handle);
    if (r != CUDA_SUCCESS) {
        sg_object_free(m, sizeof(*m));
        return r;
    }
    m->magic = SG_VMM;
    m->dev = p->location.id;
    m->size = n;
    m->refs = m->handles = 1;
    m->prop = *p;
    sg_lock();
    if (file < 0) {
        file = (int)syscall(SYS_memfd_create, "simgpu-physical", MFD_CLOEXEC);
        if (file >= 0 && ftruncate(file, FILE_BYTES) != 0) {
            close(file);
            file = -1;
        }
    }
    if (file < 0 || file_end + (off_t)n > FILE_BYTES) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        m->offset = file_end;
        file_end += (off_t)n;
    }
    sg_unlock();
    if (r != CUDA_SUCCESS) {
        sg_rpc(SG_OP_FREE, 0, 0, m->handle, NULL);
        sg_object_free(m, sizeof(*m));
        return r;
    }
    *h = (uintptr_t)m;
    return CUDA_SUCCESS;
}

static struct sg_physical *physical(CUmemGenericAllocationHandle h)
{
    struct sg_physical *m = (struct sg_physical *)(uintptr_t)h;

    return sg_is(m, SG_VMM) && m->handles ? m : NULL;
}

SG_API CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
    struct sg_physical *m;

    SG_ENTER();
    sg_lock();
    m = physical(h);
    if (m) {
        m->handles--;
        drop(m);
    }
    sg_unlock();
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemMap(CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle h,
                         unsigned long long flags)
{
    struct sg_mem b = {.base = (uintptr_t)p, .size = n, .mapped = n, .kind = SG_MEM_MAPPED};
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_physical *m;

    SG_ENTER();
    sg_lock();
    m = physical(h);
    if (m && n && n % GRANULARITY == 0 && p % GRANULARITY == 0 && !offset && n <= m->size && !flags &&
        range_of((uintptr_t)p, n) && !sg_mem_touches((uintptr_t)p, n)) {
        b.dev = m->dev;
        b.physical = m;
        if (mmap((void *)b.base, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, m->offset) ==
            MAP_FAILED)
            r = CUDA_ERROR_OUT_OF_MEMORY;
        else
            r = sg_mem_insert(&b);
        if (r == CUDA_SUCCESS)
            m->refs++;
    }
    sg_unlock();
    return r;
}

/* Calls f for each mapping in [p, p+n), which they must fill exactly. */
static CUresult each(uintptr_t p, size_t n, void (*f)(struct sg_mem *, void *), void *arg)
{
    uintptr_t at = p;

    while (at < p + n) {
        struct sg_mem *m = sg_mem_find(at, 1);

        if (!m || m->kind != SG_MEM_MAPPED || m->base != at || m->size > p + n - at)
            return CUDA_ERROR_INVALID_VALUE;
        at += m->size;
        if (f)
            f(m, arg);
    }
    return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void unmap(struct sg_mem *m, void *arg SG_UNUSED)
{
    struct sg_physical *ph = m->physical;

    mmap((void *)m->base, m->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    sg_mem_remove(m);
    drop(ph);
}

SG_API CUresult cuMemUnmap(CUdeviceptr p, size_t n)
{
    CUresult r;

    SG_ENTER();
    sg_lock();
    r = each((uintptr_t)p, n, NULL, NULL);
    if (r == CUDA_SUCCESS)
        r = each((uintptr_t)p, n, unmap, NULL);
    sg_unlock();
    return r;
}

static void allow(struct sg_mem *m, void *arg)
{
    m->flags = *(unsigned *)arg;
}

SG_API CUresult cuMemSetAccess(CUdeviceptr p, size_t n, const CUmemAccessDesc *d, size_t count)
{
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    if (!d || !count)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        unsigned flags = (unsigned)d[i].flags;

        if (d[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sg_dev(d[i].location.id))
            r = CUDA_ERROR_INVALID_VALUE;
        else
            r = each((uintptr_t)p, n, NULL, NULL);
        if (r == CUDA_SUCCESS)
            r = each((uintptr_t)p, n, allow, &flags);
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *where, CUdeviceptr p)
{
    struct sg_mem *m;

    SG_ENTER();
    if (!flags || !where)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->kind != SG_MEM_MAPPED)
        m = NULL;
    if (m)
        *flags = m->flags;
    sg_unlock();
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *p, CUmemGenericAllocationHandle h)
{
    struct sg_physical *m;

    SG_ENTER();
    sg_lock();
    m = physical(h);
    if (m && p)
        *p = m->prop;
    sg_unlock();
    return m && p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *h, void *p)
{
    struct sg_mem *m;

    SG_ENTER();
    if (!h)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->kind != SG_MEM_MAPPED)
        m = NULL;
    if (m) {
        m->physical->refs++;
        m->physical->handles++;
        *h = (uintptr_t)m->physical;
    }
    sg_unlock();
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
