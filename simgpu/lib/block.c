// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* block.c: blocks of device memory, and how they are shown to other processes. */
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sg.h"

/* How many threads move bytes; the highest bit: somebody exchanges mappings. A
 * lock of our own, since those of the C library are newer than what we may use. */
static uint32_t bytes_users;
#define EXCHANGE 0x80000000u

void sg_bytes_use(void)
{
    uint32_t v = __atomic_load_n(&bytes_users, __ATOMIC_RELAXED);

    for (;;) {
        if (v & EXCHANGE) {
            sched_yield();
            v = __atomic_load_n(&bytes_users, __ATOMIC_RELAXED);
        } else if (__atomic_compare_exchange_n(&bytes_users, &v, v + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return;
        }
    }
}

void sg_bytes_done(void)
{
    __atomic_fetch_sub(&bytes_users, 1, __ATOMIC_RELEASE);
}

void sg_bytes_lock(void)
{
    while (__atomic_fetch_or(&bytes_users, EXCHANGE, __ATOMIC_ACQUIRE) & EXCHANGE)
        sched_yield();
    while (__atomic_load_n(&bytes_users, __ATOMIC_ACQUIRE) != EXCHANGE)
        sched_yield();
}

void sg_bytes_unlock(void)
{
    __atomic_fetch_and(&bytes_users, ~EXCHANGE, __ATOMIC_RELEASE);
}

CUdevice sg_device_of(unsigned gpu)
{
    for (unsigned i = 0; i < sg_state.ndev; i++) {
        if (sg_state.dev[i].index == gpu)
            return (CUdevice)i;
    }
    return -1;
}

CUresult sg_device_take(CUdevice dev, CUcontext ctx, size_t bytes, unsigned use, uint64_t *ret_handle)
{
    struct sg_request req = {.op = SG_OP_ALLOC, .gpu = sg_state.dev[dev].index, .ctx = ctx ? ctx->id : 0, .a = bytes, .b = use};
    struct sg_request again = req;
    struct sg_reply rep;
    CUresult r = sg_call(&req, NULL, &rep, NULL, 0, NULL);

    if (r == CUDA_ERROR_OUT_OF_MEMORY && sg_pools_trim(dev))
        r = sg_call(&again, NULL, &rep, NULL, 0, NULL);
    if (r == CUDA_SUCCESS)
        *ret_handle = rep.a;
    return r;
}

void sg_device_give(uint64_t handle)
{
    if (handle)
        sg_rpc(SG_OP_FREE, 0, 0, handle, NULL);
}

void *sg_map_aligned(uintptr_t hint, size_t n, size_t align, int prot, int flags, int fd)
{
    size_t extra = align > SG_PAGE ? align : 0;
    uintptr_t at;
    char *p;

    if (n > SIZE_MAX / 2 - extra)
        return NULL;
    p = mmap((void *)hint, n + extra, extra ? PROT_NONE : prot, extra ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : flags,
             extra ? -1 : fd, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (!extra)
        return p;
    at = sg_round((uintptr_t)p, align);
    if (at > (uintptr_t)p)
        munmap(p, at - (uintptr_t)p);
    if ((uintptr_t)p + extra > at)
        munmap((void *)(at + n), (uintptr_t)p + extra - at);
    if (mmap((void *)at, n, prot, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
        munmap((void *)at, n);
        return NULL;
    }
    return (void *)at;
}

/* low: an address of 32 bits. */
static void *map(size_t n, size_t align, bool low)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    char *p;

#ifdef MAP_32BIT
    if (low)
        flags |= MAP_32BIT;
#endif
    p = sg_map_aligned(0, n, low ? 0 : align, PROT_READ | PROT_WRITE, flags, -1);
    if (p && low && (uintptr_t)p + n > UINT32_MAX) {
        munmap(p, n);
        return NULL;
    }
    return p;
}

CUresult sg_block_new(CUdevice dev, CUcontext ctx, size_t bytes, unsigned use, bool low, struct sg_block **ret)
{
    size_t unit = sg_rules(dev)->block_bytes, size;
    struct sg_block *b;
    CUresult r;
    void *p;

    if (bytes > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b = calloc(1, sizeof(*b));
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *b = (struct sg_block){.dev = dev, .ctx = ctx, .use = use};
    r = sg_device_take(dev, ctx, bytes, use, &b->handle);
    if (r != CUDA_SUCCESS) {
        free(b);
        return r;
    }
    size = sg_round(bytes, unit ? unit : SG_PAGE);
    p = map(size, unit, low);
    if (!p) {
        sg_device_give(b->handle);
        free(b);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    b->base = (uintptr_t)p;
    b->size = size;
    *ret = b;
    return CUDA_SUCCESS;
}

void sg_block_free(struct sg_block *b)
{
    munmap((void *)b->base, b->size);
    sg_device_give(b->handle);
    while (b->holes) {
        struct sg_hole *h = b->holes;

        b->holes = h->next;
        free(h);
    }
    free(b);
}

/* ---- parts of a block --------------------------------------------------------- */

uintptr_t sg_block_take(struct sg_block *b, size_t n)
{
    struct sg_hole **h;
    uintptr_t p;

    if (!b->live && !b->holes) { /* new */
        struct sg_hole *all = malloc(sizeof(*all));

        if (!all)
            return 0;
        *all = (struct sg_hole){0, b->size, NULL};
        b->holes = all;
    }
    for (h = &b->holes; *h && (*h)->size < n; h = &(*h)->next)
        ;
    if (!*h)
        return 0;
    p = b->base + (*h)->at;
    (*h)->at += n;
    (*h)->size -= n;
    if (!(*h)->size) {
        struct sg_hole *gone = *h;

        *h = gone->next;
        free(gone);
    }
    b->live += n;
    return p;
}

void sg_block_give(struct sg_block *b, uintptr_t p, size_t n)
{
    size_t at = p - b->base;
    struct sg_hole **h = &b->holes, *before = NULL, *new;

    b->live -= n;
    for (; *h && (*h)->at < at; h = &(*h)->next)
        before = *h;
    if (before && before->at + before->size == at) {
        before->size += n;
        if (*h && before->at + before->size == (*h)->at) {
            struct sg_hole *gone = *h;

            before->size += gone->size;
            before->next = gone->next;
            free(gone);
        }
        return;
    }
    if (*h && at + n == (*h)->at) {
        (*h)->at = at;
        (*h)->size += n;
        return;
    }
    new = malloc(sizeof(*new));
    if (!new)
        return; /* the part is lost until the block is free */
    *new = (struct sg_hole){at, n, *h};
    *h = new;
}

/* ---- sharing -------------------------------------------------------------------- */

CUresult sg_shared_file(uint64_t handle, bool create, int *ret_fd, size_t *ret_size)
{
    struct sg_request req = {.op = SG_OP_SHARE, .a = handle, .b = create};
    struct sg_reply rep;
    CUresult r = sg_call_fd(&req, NULL, -1, &rep, NULL, 0, NULL, ret_fd);

    if (r == CUDA_SUCCESS && *ret_fd < 0)
        r = CUDA_ERROR_OPERATING_SYSTEM;
    if (r == CUDA_SUCCESS && ret_size)
        *ret_size = rep.a;
    return r;
}

static bool write_all(int fd, const char *p, size_t n, off_t at)
{
    while (n) {
        ssize_t w = pwrite(fd, p, n, at);

        if (w <= 0)
            return false;
        p += w;
        at += w;
        n -= (size_t)w;
    }
    return true;
}

/* Untouched pages are zero in the file as they are in memory, and a program may
 * have far more of them than the machine has memory. */
bool sg_save_pages(int fd, off_t at, const char *p, size_t n)
{
    enum { BATCH = 512 };
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    bool ok = true;

    for (size_t i = 0; ok && i < n; i += BATCH * SG_PAGE) {
        uint64_t state[BATCH];
        size_t pages = (n - i) / SG_PAGE < BATCH ? (n - i) / SG_PAGE : BATCH;
        size_t want = pages * sizeof(*state);

        if (map < 0 || pread(map, state, want, (off_t)(((uintptr_t)p + i) / SG_PAGE * sizeof(*state))) != (ssize_t)want)
            memset(state, 0xff, want);
        for (size_t k = 0; ok && k < pages; k++) {
            if (state[k] >> 62) /* present or swapped out */
                ok = write_all(fd, p + i + k * SG_PAGE, SG_PAGE, at + (off_t)(i + k * SG_PAGE));
        }
    }
    if (map >= 0)
        close(map);
    return ok;
}

CUresult sg_block_share(struct sg_block *b)
{
    size_t size = 0;
    CUresult r;
    int fd;

    if (b->shared)
        return CUDA_SUCCESS;
    r = sg_shared_file(b->handle, true, &fd, &size);
    if (r != CUDA_SUCCESS)
        return r;
    if (size < b->size || !sg_save_pages(fd, 0, (const char *)b->base, b->size) ||
        mmap((void *)b->base, b->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED)
        r = CUDA_ERROR_OPERATING_SYSTEM;
    else
        b->shared = true;
    close(fd);
    return r;
}

CUresult sg_block_key(struct sg_block *b, const void *note, size_t n)
{
    struct sg_request req = {.op = SG_OP_KEY, .a = b->handle, .len = (uint32_t)n};
    struct sg_reply rep;
    size_t got = 0;
    CUresult r;

    if (b->keyed)
        return CUDA_SUCCESS;
    r = sg_call(&req, note, &rep, b->key, sizeof(b->key), &got);
    if (r == CUDA_SUCCESS && got != sizeof(b->key))
        r = CUDA_ERROR_UNKNOWN;
    b->keyed = r == CUDA_SUCCESS;
    return r;
}

CUresult sg_import(const void *key, int fd, struct sg_reply *ret, void *note, size_t note_size)
{
    struct sg_request req = {.op = SG_OP_IMPORT, .len = key ? SG_KEY_BYTES : 0};
    size_t got = 0;
    CUresult r;

    memset(note, 0, note_size);
    r = sg_call_fd(&req, key, fd, ret, note, note_size, &got, NULL);
    if (r == CUDA_SUCCESS && got != note_size) { /* another kind of thing */
        sg_device_give(ret->a);
        r = CUDA_ERROR_INVALID_VALUE;
    }
    return r;
}

CUresult sg_export(uint64_t handle, const void *note, size_t n, int *ret_fd)
{
    struct sg_request req = {.op = SG_OP_EXPORT, .a = handle, .len = (uint32_t)n};
    struct sg_reply rep;
    CUresult r = sg_call_fd(&req, note, -1, &rep, NULL, 0, NULL, ret_fd);

    return r == CUDA_SUCCESS && *ret_fd < 0 ? CUDA_ERROR_OPERATING_SYSTEM : r;
}
