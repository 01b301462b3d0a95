// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * object.c: memory of what programs hold handles of. It is never given back, so
 * that a look at a handle whose object is gone, or that never was one, finds
 * memory of ours that says so, and a wrong program gets an error instead of a
 * crash that the simulator would be blamed for.
 */
#include <sys/mman.h>

#include "sg.h"

/* The address sanitizer is told what no living object has, but for the magic word. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define HIDE(p, n) ASAN_POISON_MEMORY_REGION((char *)(p) + 8, (n) - 8)
#define SHOW(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define HIDE(p, n) ((void)(p))
#define SHOW(p, n) ((void)(p))
#endif

#define UNIT 64u              /* objects begin at multiples of it */
#define FIRST ((size_t)1 << 20) /* bytes of the first chunk; each one is twice the one before */
#define CHUNKS 16u
#define CLASSES 64u           /* sizes up to CLASSES * UNIT */

static struct {
    pthread_mutex_t lock;
    struct {
        uintptr_t base;
        size_t used; /* bytes handed out so far */
    } chunk[CHUNKS];
    unsigned chunks;
    void *unused[CLASSES + 1]; /* by size in units; linked through the last word */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The link lies behind the magic word, which must stay 0 in an unused object. */
static void **link_of(void *p)
{
    return (void **)((char *)p + 8);
}

/* Under the leak checker: what objects point to is not lost. */
extern void __lsan_register_root_region(const void *p, size_t n) __attribute__((weak));

static void *fresh(size_t bytes)
{
    unsigned k = __atomic_load_n(&pool.chunks, __ATOMIC_RELAXED);
    void *p;

    if (k && (FIRST << (k - 1)) - pool.chunk[k - 1].used >= bytes) {
        p = (void *)(pool.chunk[k - 1].base + pool.chunk[k - 1].used);
        __atomic_store_n(&pool.chunk[k - 1].used, pool.chunk[k - 1].used + bytes, __ATOMIC_RELEASE);
        return p;
    }
    if (k == CHUNKS)
        return NULL;
    p = mmap(NULL, FIRST << k, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (__lsan_register_root_region)
        __lsan_register_root_region(p, FIRST << k);
    pool.chunk[k].base = (uintptr_t)p;
    pool.chunk[k].used = bytes;
    __atomic_store_n(&pool.chunks, k + 1, __ATOMIC_RELEASE);
    return p;
}

/* Zeroed memory for an object whose first word is its magic; NULL without any. */
void *sg_object_new(size_t size)
{
    size_t units = (size + UNIT - 1) / UNIT;
    void *p;

    if (units > CLASSES)
        return NULL;
    pthread_mutex_lock(&pool.lock);
    p = pool.unused[units];
    if (p) {
        SHOW(p, units * UNIT);
        pool.unused[units] = *link_of(p);
    }
    else
        p = fresh(units * UNIT);
    pthread_mutex_unlock(&pool.lock);
    if (p)
        memset(p, 0, units * UNIT);
    return p;
}

void sg_object_free(void *p, size_t size)
{
    size_t units = (size + UNIT - 1) / UNIT;

    if (!p)
        return;
    __atomic_store_n((uint32_t *)p, 0, __ATOMIC_RELEASE);
    pthread_mutex_lock(&pool.lock);
    *link_of(p) = pool.unused[units];
    pool.unused[units] = p;
    HIDE(p, units * UNIT);
    pthread_mutex_unlock(&pool.lock);
}

bool sg_object_ours(const void *p)
{
    unsigned n = __atomic_load_n(&pool.chunks, __ATOMIC_ACQUIRE);
    uintptr_t at = (uintptr_t)p;

    if (at - (uintptr_t)&sg_state < sizeof(sg_state)) /* primary contexts, default pools */
        return at % sizeof(uint64_t) == 0;
    if (at % UNIT)
        return false;
    for (unsigned k = 0; k < n; k++) {
        if (at - pool.chunk[k].base < __atomic_load_n(&pool.chunk[k].used, __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}
