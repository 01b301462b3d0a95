// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * vmm.c: virtual memory management. An address range is an inaccessible
 * mapping; physical memory is a part of one unbounded memory file, so the same
 * bytes can be mapped at several addresses, or a file of the host's once other
 * processes use it (vmmshare.c). The account is charged when physical memory is
 * made and settled when neither a handle nor a mapping holds it.
 */
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vmm.h"

#define GRANULARITY SG_GRANULARITY
#define FILE_BYTES ((off_t)1 << 46)

struct range {
    uintptr_t base;
    size_t size;
    struct range *next;
};

static struct range *ranges; /* all under the lock */
static int file = -1;
static off_t file_end;

int sg_vmm_file(void)
{
    return file;
}

/* Whether memory can lie where these properties say; *ret_dev is -1 for the host's. */
static CUresult check_place(const CUmemAllocationProp *p, CUdevice *ret_dev)
{
    if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)p->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        if (!sg_dev(p->location.id))
            return CUDA_ERROR_INVALID_DEVICE;
        *ret_dev = p->location.id;
        break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        if (p->location.id < 0)
            return CUDA_ERROR_INVALID_VALUE;
        *ret_dev = -1;
        break;
    default: /* HOST and HOST_NUMA_CURRENT name no place for physical memory */
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Whether memory with these properties can be made. Their granularity is told also for
 * kinds of handles that cannot be had: PyTorch asks for it before it tries. */
static CUresult check_prop(const CUmemAllocationProp *p, CUdevice *ret_dev)
{
    CUresult r = check_place(p, ret_dev);
    unsigned types;

    if (r != CUDA_SUCCESS)
        return r;
    types = (unsigned)p->requestedHandleTypes;
    if (types & CU_MEM_HANDLE_TYPE_FABRIC) /* there is no fabric manager, nor a channel of it */
        return *ret_dev >= 0 && sg_rules(*ret_dev)->multicast ? CUDA_ERROR_NOT_PERMITTED : CUDA_ERROR_NOT_SUPPORTED;
    return types & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

SG_API CUresult cuMemGetAllocationGranularity(size_t *n, const CUmemAllocationProp *p,
                                              CUmemAllocationGranularity_flags option SG_UNUSED)
{
    CUdevice dev;
    CUresult r;

    SG_ENTER();
    r = check_place(p, &dev);
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

void sg_physical_put(struct sg_physical *m)
{
    if (--m->refs)
        return;
    if (m->multicast)
        sg_multicast_free(m->multicast);
    else if (m->offset >= 0)
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, m->offset, (off_t)m->size);
    sg_device_give(m->handle);
    sg_object_free(m, sizeof(*m));
}

struct sg_physical *sg_physical_new(void)
{
    struct sg_physical *m = sg_object_new(sizeof(*m));

    if (m)
        *m = (struct sg_physical){.magic = SG_VMM, .dev = -1, .offset = -1, .refs = 1, .handles = 1};
    return m;
}

/* A place in the process's own file. */
static CUresult place(size_t n, off_t *ret)
{
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    sg_lock();
    if (file < 0) {
        file = (int)syscall(SYS_memfd_create, "simgpu-physical", MFD_CLOEXEC);
        if (file >= 0 && ftruncate(file, FILE_BYTES) != 0) {
            close(file);
            file = -1;
        }
    }
    if (file >= 0 && n <= (size_t)(FILE_BYTES - file_end)) {
        *ret = file_end;
        file_end += (off_t)n;
        r = CUDA_SUCCESS;
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuMemCreate(CUmemGenericAllocationHandle *h, size_t n, const CUmemAllocationProp *p,
                            unsigned long long flags)
{
    struct sg_physical *m;
    CUdevice dev;
    CUresult r;

    SG_ENTER();
    r = check_prop(p, &dev);
    if (r != CUDA_SUCCESS)
        return r;
    if (!h || !n || n % GRANULARITY || flags)
        return CUDA_ERROR_INVALID_VALUE;
    m = sg_physical_new();
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (dev >= 0)
        r = sg_device_take(dev, NULL, n, SG_USE_PHYSICAL, &m->handle);
    if (r == CUDA_SUCCESS)
        r = place(n, &m->offset);
    if (r != CUDA_SUCCESS) {
        sg_device_give(m->handle);
        sg_object_free(m, sizeof(*m));
        return r;
    }
    m->dev = dev;
    m->size = n;
    m->prop = *p;
    *h = (uintptr_t)m;
    return CUDA_SUCCESS;
}

struct sg_physical *sg_physical_of(CUmemGenericAllocationHandle h)
{
    struct sg_physical *m = (struct sg_physical *)(uintptr_t)h;

    return sg_is(m, SG_VMM) && m->handles ? m : NULL;
}

SG_API CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
    struct sg_physical *m;

    SG_ENTER();
    sg_lock();
    m = sg_physical_of(h);
    if (m) {
        m->handles--;
        sg_physical_put(m);
    }
    sg_unlock();
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool sg_physical_show(const struct sg_mem *m, int fd, off_t offset)
{
    return mmap((void *)m->base, m->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, offset) !=
           MAP_FAILED;
}

static CUresult show(const struct sg_mem *b)
{
    struct sg_physical *m = b->physical;
    int fd = file;
    CUresult r;
    bool ok;

    if (m->multicast) /* there is nothing that an ordinary access could reach */
        return CUDA_SUCCESS;
    if (m->offset >= 0)
        return sg_physical_show(b, file, m->offset) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    r = sg_shared_file(m->handle, false, &fd, NULL);
    if (r != CUDA_SUCCESS)
        return r;
    ok = sg_physical_show(b, fd, 0);
    close(fd);
    return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SG_API CUresult cuMemMap(CUdeviceptr p, size_t n, size_t offset, CUmemGenericAllocationHandle h,
                         unsigned long long flags)
{
    struct sg_mem b = {.base = (uintptr_t)p, .size = n, .mapped = n, .kind = SG_MEM_MAPPED};
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_physical *m;

    SG_ENTER();
    sg_lock();
    m = sg_physical_of(h);
    if (m && n && n % GRANULARITY == 0 && p % GRANULARITY == 0 && !offset && n <= m->size && !flags &&
        range_of((uintptr_t)p, n) && !sg_mem_touches((uintptr_t)p, n)) {
        b.dev = m->dev < 0 ? 0 : m->dev;
        b.physical = m;
        r = show(&b);
        if (r == CUDA_SUCCESS)
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
    sg_physical_put(ph);
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

/* Which two bits of sg_mem.access are a location's; -1: it is none. */
static int bits_of(const CUmemLocation *where)
{
    switch ((int)where->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sg_dev(where->id) ? 2 * where->id : -1;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return 2 * SG_MAX_GPUS;
    default:
        return -1;
    }
}

static void allow(struct sg_mem *m, void *arg)
{
    const CUmemAccessDesc *d = arg;
    int at = bits_of(&d->location);

    m->access = (m->access & ~((uint64_t)3 << at)) | (uint64_t)d->flags << at;
    m->flags = 0;
    for (unsigned i = 0; i <= SG_MAX_GPUS && !m->physical->multicast; i++) {
        if ((m->access >> 2 * i & 3) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            m->flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
}

static bool on_device(struct sg_mem *m)
{
    return m->physical->dev >= 0 || m->physical->multicast;
}

SG_API CUresult cuMemSetAccess(CUdeviceptr p, size_t n, const CUmemAccessDesc *d, size_t count)
{
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    if (!d || !count)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = each((uintptr_t)p, n, NULL, NULL);
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        /* The processor reaches only memory that lies with it. */
        if (bits_of(&d[i].location) < 0 || (d[i].flags & ~3u) || d[i].flags == 2 ||
            (d[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE && on_device(sg_mem_find((uintptr_t)p, 1))))
            r = CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
        r = each((uintptr_t)p, n, allow, (void *)(uintptr_t)&d[i]);
    sg_unlock();
    return r;
}

SG_API CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *where, CUdeviceptr p)
{
    struct sg_mem *m;

    SG_ENTER();
    if (!flags || !where || bits_of(where) < 0)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m && m->kind != SG_MEM_MAPPED)
        m = NULL;
    if (m)
        *flags = m->access >> bits_of(where) & 3;
    sg_unlock();
    return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SG_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *p, CUmemGenericAllocationHandle h)
{
    struct sg_physical *m;

    SG_ENTER();
    sg_lock();
    m = sg_physical_of(h);
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
