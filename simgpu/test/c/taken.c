// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * taken.c: what device memory is taken for on a card whose driver takes it in
 * blocks of 2 MiB (profile l40s: 142 multiprocessors of 1536 threads).
 */
#include "t.h"

#define MIB ((size_t)1 << 20)
#define BLOCK (2 * MIB)
#define THREADS ((size_t)142 * 1536)

static size_t used(void)
{
    size_t f, t;

    OK(cuMemGetInfo_v2(&f, &t));
    return t - f;
}

static size_t blocks(size_t n)
{
    return (n + BLOCK - 1) / BLOCK * BLOCK;
}

/* Runs a call and says what it took. */
#define TOOK(bytes, call)                                                                    \
    do {                                                                                     \
        size_t before_ = used(), bytes_ = (bytes), now_;                                       \
        OK(call);                                                                            \
        now_ = used();                                                                       \
        if (now_ - before_ != bytes_)                                                         \
            FAIL("%s took %zd bytes, want %zu", #call, (ssize_t)(now_ - before_), bytes_);    \
    } while (0)
#define GAVE(bytes, call)                                                                    \
    do {                                                                                     \
        size_t before_ = used(), bytes_ = (bytes), now_;                                       \
        OK(call);                                                                            \
        now_ = used();                                                                       \
        if (before_ - now_ != bytes_)                                                         \
            FAIL("%s gave %zd bytes, want %zu", #call, (ssize_t)(before_ - now_), bytes_);    \
    } while (0)

static void linear(void)
{
    CUdeviceptr p[6], base;
    CUdeviceptr q[4096];
    size_t size, pitch;

    TOOK(BLOCK, cuMemAlloc_v2(&p[0], 1));
    TOOK(0, cuMemAlloc_v2(&p[1], 100000)); /* beside it */
    TRUE(p[1] % 512 == 0 && p[1] / BLOCK == p[0] / BLOCK);
    OK(cuMemGetAddressRange_v2(&base, &size, p[1] + 99999));
    TRUE(base == p[1] && size == 100000);
    OK(cuMemsetD8_v2(p[1], 7, 100000));
    WANT(cuMemsetD8_v2(p[1], 7, 100001), CUDA_ERROR_INVALID_VALUE);
    TOOK(BLOCK, cuMemAlloc_v2(&p[2], 2 * MIB - 1024)); /* does not fit any more */
    TOOK(BLOCK, cuMemAlloc_v2(&p[3], 2 * MIB));
    TOOK(2 * BLOCK, cuMemAlloc_v2(&p[4], 2 * MIB + 1));
    TRUE(p[4] % BLOCK == 0);
    TOOK(BLOCK, cuMemAllocPitch_v2(&p[5], &pitch, 1, 3900, 4)); /* one unit too many for the first block */
    TRUE(pitch == 512);
    GAVE(0, cuMemFree_v2(p[0]));
    GAVE(BLOCK, cuMemFree_v2(p[1])); /* the block is empty now */
    for (int i = 2; i < 6; i++)
        OK(cuMemFree_v2(p[i]));
    /* A block of small ones is full to the last unit. */
    TOOK(BLOCK, cuMemAlloc_v2(&q[0], 512));
    for (int i = 1; i < 4096; i++)
        OK(cuMemAlloc_v2(&q[i], 1));
    TOOK(BLOCK, cuMemAlloc_v2(&p[0], 1));
    GAVE(BLOCK, cuMemFree_v2(p[0]));
    for (int i = 0; i < 4096; i += 2)
        OK(cuMemFree_v2(q[i]));
    TOOK(BLOCK, cuMemAlloc_v2(&p[0], 513)); /* holes of one unit each */
    TOOK(0, cuMemAlloc_v2(&q[0], 512));
    OK(cuMemFree_v2(p[0]));
    OK(cuMemFree_v2(q[0]));
    for (int i = 1; i < 4094; i += 2)
        OK(cuMemFree_v2(q[i]));
    GAVE(BLOCK, cuMemFree_v2(q[4095]));
}

static void arrays(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 100, .Height = 1025, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUDA_ARRAY3D_DESCRIPTOR deferred = d;
    CUDA_ARRAY_MEMORY_REQUIREMENTS need;
    CUmipmappedArray m;
    CUarray a, b, level;
    CUDA_MEMCPY3D c = {0};
    float in[400], out[400];

    /* 1600 bytes a row are 25 tiles, 1025 rows are 129 of them: 1651200 bytes. */
    TOOK(BLOCK, cuArray3DCreate_v2(&a, &d));
    d.Height = 300; /* 1600 x 304 = 486400: more than what is left */
    TOOK(BLOCK, cuArray3DCreate_v2(&b, &d));
    for (int i = 0; i < 400; i++)
        in[i] = (float)i;
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = in;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = b;
    c.dstY = 299;
    c.WidthInBytes = 1600;
    c.Height = c.Depth = 1;
    OK(cuMemcpy3D_v2(&c));
    c.dstY = 300; /* padding is not the program's */
    WANT(cuMemcpy3D_v2(&c), CUDA_ERROR_INVALID_VALUE);
    c = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = b, .srcY = 299, .dstMemoryType = CU_MEMORYTYPE_HOST,
                        .dstHost = out, .WidthInBytes = 1600, .Height = 1, .Depth = 1};
    OK(cuMemcpy3D_v2(&c));
    TRUE(!memcmp(in, out, sizeof(in)));
    GAVE(BLOCK, cuArrayDestroy(b));
    GAVE(BLOCK, cuArrayDestroy(a));
    WANT(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
    /* 2048 x 2048 x 16 bytes, and a third more for the levels: 42 blocks and a bit. */
    d.Width = d.Height = 2048;
    TOOK(43 * BLOCK, cuMipmappedArrayCreate(&m, &d, 100));
    OK(cuMipmappedArrayGetLevel(&level, m, 11));
    OK(cuArray3DGetDescriptor_v2(&d, level));
    TRUE(d.Width == 1 && d.Height == 1);
    WANT(cuMipmappedArrayGetLevel(&level, m, 12), CUDA_ERROR_INVALID_VALUE);
    WANT(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
    GAVE(43 * BLOCK, cuMipmappedArrayDestroy(m));
    WANT(cuArray3DGetDescriptor_v2(&d, level), CUDA_ERROR_INVALID_HANDLE);
    deferred.Flags = 0x80;
    TOOK(0, cuArray3DCreate_v2(&a, &deferred)); /* is mapped later */
    OK(cuArrayGetMemoryRequirements(&need, a, 0));
    TRUE(need.size % need.alignment == 0 && need.size >= 1651200);
    OK(cuArrayDestroy(a));
    d = (CUDA_ARRAY3D_DESCRIPTOR){.Width = 4, .Depth = 2, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    WANT(cuArray3DCreate_v2(&a, &d), CUDA_ERROR_INVALID_VALUE); /* a depth without a height */
}

static void limits(CUmodule m)
{
    CUfunction f = function(m, "first");
    CUmodule next;
    size_t v;

    TOOK(BLOCK, launch(f, NULL)); /* its code */
    TOOK(0, launch(function(m, "second"), NULL));
    TOOK(blocks(THREADS * 1024), cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048)); /* 1 KiB more a thread, at once */
    TOOK(0, cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 40 * MIB));
    TOOK(0, cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 5 * MIB));
    /* 32 MiB more of heap and 4 MiB of printf with the next code that runs. */
    TOOK(blocks(THREADS * 1024 + 36 * MIB) - blocks(THREADS * 1024), launch(f, NULL));
    OK(cuCtxGetLimit(&v, CU_LIMIT_MALLOC_HEAP_SIZE));
    TRUE(v == 40 * MIB);
    WANT(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, (size_t)1 << 40), CUDA_ERROR_INVALID_VALUE);
    GAVE(blocks(THREADS * 1024 + 36 * MIB) - 36 * MIB, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    /* A kernel that needs 4 KiB a thread grows what all threads have. */
    OK(cuModuleLoadData(&next, ".version 8.0\n.target sm_80\n.visible .entry deep()\n{\n"
                               ".local .align 16 .b8 __local_depot0[4096];\nret;\n}\n"));
    TOOK(BLOCK + blocks(THREADS * 3072 + 36 * MIB) - 36 * MIB, launch(function(next, "deep"), NULL));
    OK(cuCtxSynchronize());
    GAVE(BLOCK, cuModuleUnload(next));
}

static cuuint64_t attribute(CUmemoryPool p, CUmemPool_attribute a)
{
    cuuint64_t v;

    OK(cuMemPoolGetAttribute(p, a, &v));
    return v;
}
#define RESERVED(p) attribute(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
#define USED(p) attribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)

static void pools(CUmodule m)
{
    cuuint64_t all = UINT64_MAX, none = 0;
    CUmemoryPool pool;
    CUdeviceptr p, q, again;
    CUstream s, t;
    size_t f, total;

    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    TOOK(32 * MIB, cuMemAllocAsync(&p, 1000, s));
    TRUE(RESERVED(pool) == 32 * MIB && USED(pool) == 1024);
    TOOK(0, cuMemAllocAsync(&q, 20 * MIB, s));
    GAVE(0, cuMemFreeAsync(q, s)); /* stays the pool's */
    TRUE(USED(pool) == 1024);
    OK(cuMemAllocAsync(&again, 20 * MIB, s));
    TRUE(again == q);
    OK(cuMemFreeAsync(again, s));
    OK(cuMemFreeAsync(p, s));
    TRUE(RESERVED(pool) == 32 * MIB);
    GAVE(32 * MIB, cuStreamSynchronize(s)); /* the threshold is 0 */
    TRUE(RESERVED(pool) == 0 && attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 32 * MIB);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    TOOK(50 * MIB, cuMemAllocAsync(&p, 50 * MIB - 1, s));
    OK(cuMemFreeAsync(p, s));
    GAVE(0, cuCtxSynchronize());
    GAVE(0, cuMemPoolTrimTo(pool, 50 * MIB));
    GAVE(50 * MIB, cuMemPoolTrimTo(pool, 0));
    /* Another stream has the part only once the first has passed the free. */
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &(int){0}));
    OK(cuMemAllocAsync(&p, 30 * MIB, s));
    OK(launch(function(m, "second5"), s));
    OK(cuMemFreeAsync(p, s));
    OK(cuMemAllocAsync(&q, 30 * MIB, t));
    TRUE(q != p && RESERVED(pool) == 64 * MIB);
    OK(cuMemFreeAsync(q, t));
    OK(cuStreamSynchronize(s));
    OK(cuMemAllocAsync(&q, 30 * MIB, t));
    TRUE(RESERVED(pool) == 64 * MIB);
    OK(cuMemFreeAsync(q, t));
    OK(cuCtxSynchronize());
    /* What a pool keeps makes way for others when the card is full. */
    OK(cuMemGetInfo_v2(&f, &total));
    OK(cuMemAlloc_v2(&q, f + 40 * MIB));
    TRUE(RESERVED(pool) == 0);
    OK(cuMemFree_v2(q));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none));
    OK(cuStreamDestroy_v2(s));
    OK(cuStreamDestroy_v2(t));
}

static int range(CUdeviceptr p, size_t n, CUmem_range_attribute a)
{
    int v;

    OK(cuMemRangeGetAttribute(&v, sizeof(v), a, p, n));
    return v;
}

/* What is advised to lie with the processor takes no device memory by being used. */
static void kept(void)
{
    char bytes[4] = {0};
    CUdeviceptr p;

    OK(cuMemAllocManaged(&p, 20 * MIB, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAdvise(p, 20 * MIB, 3, -1));
    OK(cuMemAdvise(p, 20 * MIB, 5, 0));
    TOOK(0, cuMemsetD8_v2(p, 7, 20 * MIB));
    OK(cuMemcpyDtoH_v2(bytes, p + 20 * MIB - 4, 4));
    TRUE(bytes[0] == 7 && ((char *)(uintptr_t)p)[0] == 7);
    TOOK(4 * MIB, cuMemPrefetchAsync(p, 4 * MIB, 0, NULL));
    TOOK(0, cuMemsetD8_v2(p, 8, 20 * MIB)); /* what is there stays there */
    GAVE(4 * MIB, cuMemPrefetchAsync(p, 20 * MIB, -1, NULL));
    OK(cuMemAdvise(p, 20 * MIB, 4, -1));
    TOOK(0, cuMemsetD8_v2(p, 9, 2 * MIB)); /* lies there and is used from there */
    OK(cuMemAdvise(p, 20 * MIB, 6, 0));
    TOOK(2 * MIB, cuMemsetD8_v2(p, 9, 2 * MIB));
    GAVE(2 * MIB, cuMemFree_v2(p));
}

static void managed(void)
{
    size_t f, t, big;
    CUdeviceptr p, q;
    int by[3];

    OK(cuMemGetInfo_v2(&f, &t));
    big = f + 512 * MIB;
    TOOK(0, cuMemAllocManaged(&p, 20 * MIB, CU_MEM_ATTACH_GLOBAL));
    TOOK(8 * MIB, cuMemPrefetchAsync(p, 7 * MIB, 0, NULL));
    TOOK(4 * MIB, cuMemsetD8_v2(p + 8 * MIB, 1, 4 * MIB)); /* 7 + 4 MiB: 6 blocks */
    GAVE(2 * MIB, cuMemPrefetchAsync(p, 2 * MIB, -1, NULL));
    TRUE(range(p, 2 * MIB, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == -1);
    TRUE(range(p + 2 * MIB, MIB, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == 0);
    TRUE(range(p, 20 * MIB, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == -2);
    OK(cuMemAdvise(p, MIB, 1, 0));
    TRUE(range(p, MIB, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1 && range(p, 2 * MIB, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
    OK(cuMemAdvise(p, 20 * MIB, 5, 0));
    OK(cuMemAdvise(p, 20 * MIB, 5, -1));
    OK(cuMemRangeGetAttribute(by, sizeof(by), CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 20 * MIB));
    TRUE(by[0] == 0 && by[1] == -1 && by[2] == -2);
    OK(cuMemAdvise_v2(p, MIB, 3, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}));
    TRUE(range(p, MIB, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == 0);
    TRUE(range(p, MIB, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_DEVICE);
    WANT(cuMemPrefetchAsync(p, MIB, 9, NULL), CUDA_ERROR_INVALID_DEVICE);
    WANT(cuMemPrefetchAsync(p, 21 * MIB, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    /* More than the card has: what does not fit stays with the processor. */
    OK(cuMemAllocManaged(&q, big, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemPrefetchAsync(q, big, 0, NULL));
    OK(cuMemGetInfo_v2(&f, &t));
    TRUE(f < BLOCK);
    OK(cuMemFree_v2(p));
    /* And makes way for an allocation. */
    OK(cuMemAlloc_v2(&p, 100 * MIB));
    OK(cuMemFree_v2(p));
    OK(cuMemGetInfo_v2(&f, &t));
    TRUE(f >= 100 * MIB && f < 120 * MIB);
    OK(cuMemFree_v2(q));
    kept();
    OK(cuMemAlloc_v2(&p, MIB));
    WANT(cuMemPrefetchAsync(p, MIB, 0, NULL), CUDA_ERROR_INVALID_VALUE); /* is not managed */
    WANT(cuMemAdvise(p, MIB, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(p));
}

int main(void)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);
    size_t begin = used();

    linear();
    arrays();
    TRUE(used() == begin);
    limits(m);
    OK(cuCtxDestroy_v2(ctx)); /* all that it grew goes with it */
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuModuleLoadData(&m, "// any code\n"));
    TRUE(used() == begin);
    pools(m);
    TRUE(used() == begin + BLOCK); /* the code of the kernel that ran */
    managed();
    TRUE(used() == begin + BLOCK);
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
