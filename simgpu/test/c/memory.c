// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* memory.c: copies and fills move real bytes, and touch nothing that is not theirs. */
#include "t.h"

#define N 100000

static unsigned char host[N], back[N];

static void ranges(CUdeviceptr p)
{
    CUdeviceptr bad[] = {0, 1, 4096, p - 1, p + N, p + N - 10, (CUdeviceptr)(uintptr_t)host, ~0ull, ~0ull - 50};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        WANT(cuMemcpyHtoD_v2(bad[i], host, 100), CUDA_ERROR_INVALID_VALUE);
        WANT(cuMemcpyDtoH_v2(back, bad[i], 100), CUDA_ERROR_INVALID_VALUE);
        WANT(cuMemcpyDtoD_v2(p, bad[i], 100), CUDA_ERROR_INVALID_VALUE);
        WANT(cuMemcpyHtoDAsync_v2(bad[i], host, 100, NULL), CUDA_ERROR_INVALID_VALUE);
        WANT(cuMemsetD8_v2(bad[i], 1, 100), CUDA_ERROR_INVALID_VALUE);
        WANT(cuMemsetD32Async(bad[i], 1, 100, NULL), CUDA_ERROR_INVALID_VALUE);
    }
    WANT(cuMemcpyHtoD_v2(p, host, N + 1), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemcpyHtoD_v2(p, host, (size_t)-1), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemcpyHtoD_v2(p, NULL, 10), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemcpyDtoH_v2(NULL, p, 10), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemsetD32_v2(p + 1, 1, 1), CUDA_ERROR_INVALID_VALUE); /* not aligned */
    WANT(cuMemsetD2D8_v2(p, 10, 1, 20, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyHtoD_v2(p, host, 0));
}

static void two_dimensions(void)
{
    CUDA_MEMCPY2D c = {0};
    CUdeviceptr p;
    size_t pitch;

    OK(cuMemAllocPitch_v2(&p, &pitch, 1000, 10, 4));
    TRUE(pitch >= 1000 && pitch % 512 == 0);
    OK(cuMemsetD8_v2(p, 0, pitch * 10));
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = host;
    c.srcPitch = 1000;
    c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    c.dstDevice = p;
    c.dstPitch = pitch;
    c.dstXInBytes = 5;
    c.dstY = 1;
    c.WidthInBytes = 900;
    c.Height = 9;
    OK(cuMemcpy2D_v2(&c));
    OK(cuMemcpyDtoH_v2(back, p + 3 * pitch, 1000)); /* row 3 holds row 2 of the source */
    TRUE(!memcmp(back + 5, host + 2000, 900) && !back[4] && !back[905]);
    c.Height = 10;
    WANT(cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE); /* one row too many */
    c.Height = (size_t)-1;
    WANT(cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(p));
}

/* Bytes of this process in the host's memory. */
static size_t resident(void)
{
    unsigned long all, here;
    FILE *f = fopen("/proc/self/statm", "r");

    TRUE(f && fscanf(f, "%lu %lu", &all, &here) == 2);
    fclose(f);
    return here * (size_t)sysconf(_SC_PAGESIZE);
}

/* Zeros in bulk are zeros, touch no byte beside them and take no host memory. */
static void zeros(void)
{
    const size_t size = 64u << 20;
    unsigned char *all = malloc(size);
    size_t before, at = 0;
    CUdeviceptr p;

    TRUE(all != NULL);
    OK(cuMemAlloc_v2(&p, size));
    OK(cuMemsetD8_v2(p, 0xa5, size));
    OK(cuMemsetD32_v2(p + 12, 0, (size - 20) / 4)); /* ends 8 bytes before the end */
    OK(cuMemcpyDtoH_v2(all, p, size));
    for (; at < 12; at++)
        TRUE(all[at] == 0xa5);
    for (; at < size - 8; at++)
        TRUE(!all[at]);
    for (; at < size; at++)
        TRUE(all[at] == 0xa5);
    OK(cuMemsetD8_v2(p, 0xa5, size));
    before = resident();
    OK(cuMemsetD16_v2(p, 0, size / 2));
    TRUE(resident() + size / 2 < before);
    OK(cuMemFree_v2(p));
    free(all);
}

static void pools(void)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool dflt, pool;
    cuuint64_t used;
    CUdeviceptr p, q;

    OK(cuDeviceGetDefaultMemPool(&dflt, 0));
    OK(cuMemAllocAsync(&p, 1000, NULL));
    OK(cuMemsetD8Async(p, 7, 1000, NULL));
    OK(cuMemcpyDtoH_v2(back, p, 1000));
    TRUE(back[999] == 7);
    OK(cuMemPoolGetAttribute(dflt, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    TRUE(used == 1024);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuMemPoolGetAttribute(dflt, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    TRUE(used == 0);
    props.maxSize = 1 << 20;
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&p, 1 << 20, pool, NULL));
    WANT(cuMemAllocFromPoolAsync(&q, 1, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree_v2(p)); /* also frees what a pool gave */
    OK(cuMemAllocFromPoolAsync_ptsz(&q, 1, pool, NULL));
    OK(cuMemFreeAsync_ptsz(q, NULL));
    OK(cuMemPoolDestroy(pool));
}

static size_t available(void)
{
    size_t f, t;

    OK(cuMemGetInfo_v2(&f, &t));
    return f;
}

/* Also where managed memory counts from the start: advised to lie with the processor,
 * all of it, it takes nothing until it is prefetched. */
static void kept(void)
{
    size_t n = (size_t)64 << 20, before = available();
    CUdeviceptr p;

    OK(cuMemAllocManaged(&p, n, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemAdvise(p, n / 2, 3, -1));
    OK(cuMemAdvise(p + n / 2, n / 2, 3, -1));
    TRUE(available() == before);
    OK(cuMemsetD8_v2(p, 7, n));
    TRUE(available() == before);
    OK(cuMemPrefetchAsync(p, n / 4, 0, NULL));
    TRUE(before - available() == n / 4);
    OK(cuMemFree_v2(p));
    TRUE(available() == before);
}

int main(void)
{
    unsigned type, managed;
    CUdeviceptr p, q, base;
    CUdeviceptr_v1 low;
    CUcontext ctx, owner;
    void *pinned;
    size_t size;

    for (int i = 0; i < N; i++)
        host[i] = (unsigned char)(i * 7 + i / 251);
    start(&ctx);
    OK(cuMemAlloc_v2(&p, N));
    OK(cuMemcpyHtoD_v2(p, host, N));
    OK(cuMemAlloc_v2(&q, N));
    OK(cuMemcpyDtoD_v2(q, p, N));
    OK(cuMemcpyDtoH_v2(back, q, N));
    TRUE(!memcmp(host, back, N));
    OK(cuMemsetD16_v2(q, 0xbeef, N / 2));
    OK(cuMemsetD32_v2(q, 0x01020304, 10));
    OK(cuMemcpyDtoH_v2(back, q, N));
    TRUE(back[0] == 4 && back[3] == 1 && back[40] == 0xef && back[41] == 0xbe);
    OK(cuMemcpy(q, (CUdeviceptr)(uintptr_t)host, N)); /* unified: either side may be host memory */
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, q, N));
    TRUE(!memcmp(host, back, N));
    ranges(p);
    two_dimensions();
    zeros();
    pools();

    OK(cuMemGetAddressRange_v2(&base, &size, p + 777));
    TRUE(base == p && size == N);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 5));
    TRUE(type == CU_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
    TRUE(owner == ctx);
    WANT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host),
         CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostAlloc(&pinned, 5000, 0));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pinned));
    TRUE(type == CU_MEMORYTYPE_HOST);
    memset(pinned, 9, 5000);
    OK(cuMemFreeHost(pinned));
    OK(cuMemHostRegister_v2(host, 8192, 0));
    WANT(cuMemHostRegister_v2(host, 8192, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostUnregister(host));
    OK(cuMemAllocManaged(&base, 4096, CU_MEM_ATTACH_GLOBAL));
    OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, base));
    TRUE(managed == 1);
    *(char *)(uintptr_t)base = 1; /* the host may touch it */
    OK(cuMemFree_v2(base));
    kept();
    OK(cuMemAlloc(&low, 100000)); /* the first interface: an address of 32 bits */
    OK(cuMemcpyHtoD(low, host, 1000));
    OK(cuMemcpyDtoH(back, low, 1000));
    TRUE(!memcmp(host, back, 1000));
    OK(cuMemFree(low));
    OK(cuCtxDestroy_v2(ctx));
    WANT(cuMemcpyDtoH_v2(back, p, 1), CUDA_ERROR_INVALID_CONTEXT);
    return 0;
}
