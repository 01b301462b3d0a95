// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * memop.c: waits and writes of a stream on memory. They work on the real bytes,
 * so a store of any thread or process that shares the memory ends a wait; it is
 * noticed within some ten microseconds.
 */
#include "sg.h"

enum {
    WAIT_32 = 1,
    WRITE_32 = 2,
    FLUSH = 3,
    WAIT_64 = 4,
    WRITE_64 = 5,
    BARRIER = 6,
};
enum { GEQ, EQ, AND, NOR, CONDITION = 3, WAIT_FLUSH = 1 << 30 };
enum { NO_BARRIER = 1 };

/* CUstreamBatchMemOpParams: 48 bytes, of which these count. */
struct memop {
    int operation;
    int pad0;
    CUdeviceptr address;
    uint64_t value;
    unsigned flags;
    unsigned pad1;
    uint64_t alias, pad2;
};
_Static_assert(sizeof(struct memop) == 48, "memory operation");

static bool wide(const struct memop *o)
{
    return o->operation == WAIT_64 || o->operation == WRITE_64;
}

static bool satisfied(void *arg)
{
    const struct memop *o = arg;
    uint64_t v, want = o->value;
    int64_t ahead;

    /* Memory that is gone ends the wait: nobody can store there any more. */
    sg_lock();
    if (!sg_mem_find((uintptr_t)o->address, wide(o) ? 8 : 4)) {
        sg_unlock();
        return true;
    }
    if (wide(o)) {
        v = __atomic_load_n((uint64_t *)(uintptr_t)o->address, __ATOMIC_ACQUIRE);
        ahead = (int64_t)(v - want);
    } else {
        v = __atomic_load_n((uint32_t *)(uintptr_t)o->address, __ATOMIC_ACQUIRE);
        want &= UINT32_MAX;
        ahead = (int32_t)(uint32_t)(v - want); /* cyclic, as documented */
    }
    sg_unlock();
    switch (o->flags & CONDITION) {
    case GEQ:
        return ahead >= 0;
    case EQ:
        return v == want;
    case AND:
        return (v & want) != 0;
    default:
        return (~(v | want) & (wide(o) ? UINT64_MAX : UINT32_MAX)) != 0;
    }
}

static void perform(void *arg)
{
    struct memop *o = arg;
    bool there;

    sg_lock();
    there = sg_mem_find((uintptr_t)o->address, wide(o) ? 8 : 4) != NULL;
    if (there && o->operation == WRITE_32)
        __atomic_store_n((uint32_t *)(uintptr_t)o->address, (uint32_t)o->value, __ATOMIC_RELEASE);
    else if (there && o->operation == WRITE_64)
        __atomic_store_n((uint64_t *)(uintptr_t)o->address, o->value, __ATOMIC_RELEASE);
    sg_unlock();
    free(o);
}

static CUresult check(const struct memop *o)
{
    size_t n = wide(o) ? 8 : 4;

    switch (o->operation) {
    case WAIT_32:
    case WAIT_64:
        if (o->flags & ~(unsigned)(CONDITION | WAIT_FLUSH))
            return CUDA_ERROR_INVALID_VALUE;
        break;
    case WRITE_32:
    case WRITE_64:
        if (o->flags & ~(unsigned)NO_BARRIER)
            return CUDA_ERROR_INVALID_VALUE;
        break;
    case FLUSH:
    case BARRIER:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return o->address % n == 0 && sg_mem_ours(o->address, n) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult batch(CUstream h, unsigned n, const struct memop *ops, unsigned flags, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (!ops || !n || n > 256 || flags)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_of(h, pt, &s);
    for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++)
        r = check(&ops[i]);
    if (r == CUDA_SUCCESS)
        r = sg_capturing(s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++) {
        struct memop *o;

        if (ops[i].operation == FLUSH || ops[i].operation == BARRIER)
            continue; /* stores are seen in order here */
        o = malloc(sizeof(*o));
        if (!o)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *o = ops[i];
        r = sg_host_when(s, o->operation == WAIT_32 || o->operation == WAIT_64 ? satisfied : NULL, perform, o, NULL);
        if (r != CUDA_SUCCESS)
            free(o);
    }
    return r;
}

/* The first interface differs in the kernel module's setting that it needed,
 * not in what it does. */
#define BATCH(name, pt)                                                                               \
    SG_API CUresult name(CUstream s, unsigned int n, CUstreamBatchMemOpParams *ops, unsigned int flags) \
    {                                                                                                 \
        return batch(s, n, (const struct memop *)ops, flags, pt);                                     \
    }
BATCH(cuStreamBatchMemOp, false)
BATCH(cuStreamBatchMemOp_ptsz, true)
BATCH(cuStreamBatchMemOp_v2, false)
BATCH(cuStreamBatchMemOp_v2_ptsz, true)

#define ONE(name, op, type, pt)                                                      \
    SG_API CUresult name(CUstream s, CUdeviceptr p, type v, unsigned int flags)      \
    {                                                                                \
        const struct memop o = {.operation = op, .address = p, .value = v, .flags = flags}; \
                                                                                     \
        return batch(s, 1, &o, 0, pt);                                               \
    }
#define FORMS(name, op, type)            \
    ONE(name, op, type, false)           \
    ONE(name##_ptsz, op, type, true)     \
    ONE(name##_v2, op, type, false)      \
    ONE(name##_v2_ptsz, op, type, true)

FORMS(cuStreamWaitValue32, WAIT_32, cuuint32_t)
FORMS(cuStreamWaitValue64, WAIT_64, cuuint64_t)
FORMS(cuStreamWriteValue32, WRITE_32, cuuint32_t)
FORMS(cuStreamWriteValue64, WRITE_64, cuuint64_t)
