// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * sharing.c: two processes with the same memory: by IPC handle, by descriptor of
 * physical memory, of a pool, and as external memory. The child imports what the
 * parent made, and has it to itself in the end.
 */
#include "ipc.h"

#define MIB ((size_t)1 << 20)
#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static unsigned char byte_at(CUdeviceptr p)
{
    unsigned char b = 0;

    OK(cuMemcpyDtoH_v2(&b, p, 1));
    return b;
}

/* ---- IPC handles ------------------------------------------------------------ */

static void ipc_child(int parent)
{
    CUipcMemHandle h, wrong;
    CUdeviceptr p, again, q;
    CUcontext ctx, other;
    unsigned type;
    size_t before, size;

    start(&ctx);
    hear(parent, &h, sizeof(h));
    before = used(); /* with the parent's */
    WANT(cuIpcOpenMemHandle_v2(&p, h, 0), CUDA_ERROR_INVALID_VALUE);
    memset(&wrong, 7, sizeof(wrong));
    WANT(cuIpcOpenMemHandle_v2(&p, wrong, 1), CUDA_ERROR_INVALID_HANDLE);
    wrong = h;
    wrong.reserved[20] ^= 1; /* in its key */
    WANT(cuIpcOpenMemHandle_v2(&p, wrong, 1), CUDA_ERROR_INVALID_HANDLE);
    OK(cuIpcOpenMemHandle_v2(&p, h, 1));
    TRUE(used() == before); /* it costs nothing twice */
    OK(cuIpcOpenMemHandle_v2(&again, h, 1));
    TRUE(again == p);
    TRUE(byte_at(p) == 0x11 && byte_at(p + 3 * MIB) == 0x22);
    OK(cuMemGetAddressRange_v2(&q, &size, p + 5));
    TRUE(q == p && size == 4 * MIB);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    TRUE(type == CU_MEMORYTYPE_DEVICE);
    WANT(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    WANT(cuIpcGetMemHandle(&wrong, p), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemsetD8_v2(p, 1, 4 * MIB + 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemsetD8_v2(p + MIB, 0x33, 1));
    OK(cuCtxCreate_v2(&other, 0, 0));
    WANT(cuIpcOpenMemHandle_v2(&q, h, 1), CUDA_ERROR_INVALID_CONTEXT);
    OK(cuCtxDestroy_v2(other));
    tell(parent, &p, 1, -1);
    hear(parent, &q, 1); /* the parent is freeing it */
    hear(parent, &q, 1);
    TRUE(byte_at(p + 2 * MIB) == 0x44);
    TRUE(used() == before);
    OK(cuIpcCloseMemHandle(p));
    TRUE(byte_at(p) == 0x11); /* opened twice */
    OK(cuIpcCloseMemHandle(p));
    WANT(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemcpyDtoH_v2(&h, p, 1), CUDA_ERROR_INVALID_VALUE);
    TRUE(used() == before - 4 * MIB); /* it was the last holder */
    WANT(cuIpcOpenMemHandle_v2(&p, h, 1), CUDA_ERROR_INVALID_HANDLE);
}

static void ipc(void)
{
    CUipcMemHandle h, same;
    CUdeviceptr p, q;
    CUcontext ctx;
    pid_t child;
    int s = beside(ipc_child, &child);
    char c = 0;

    start(&ctx);
    OK(cuMemAlloc_v2(&p, 4 * MIB));
    OK(cuMemsetD8_v2(p, 0x11, 1));
    OK(cuIpcGetMemHandle(&h, p));
    OK(cuMemsetD8_v2(p + 3 * MIB, 0x22, 1)); /* after it was exported */
    OK(cuIpcGetMemHandle(&same, p + 100));   /* of the allocation, wherever it points */
    TRUE(!memcmp(&h, &same, sizeof(h)));
    WANT(cuIpcOpenMemHandle_v2(&q, h, 1), CUDA_ERROR_INVALID_CONTEXT); /* not in the same process */
    OK(cuMemAllocAsync(&q, 100, NULL));
    WANT(cuIpcGetMemHandle(&same, q), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(q));
    OK(cuMemAllocManaged(&q, 100, CU_MEM_ATTACH_GLOBAL));
    WANT(cuIpcGetMemHandle(&same, q), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(q));
    tell(s, &h, sizeof(h), -1);
    hear(s, &c, 1);
    TRUE(byte_at(p + MIB) == 0x33);
    OK(cuMemsetD8_v2(p + 2 * MIB, 0x44, 1));
    tell(s, &c, 1, -1);
    OK(cuMemFree_v2(p));
    tell(s, &c, 1, -1);
    ended(child);
    OK(cuCtxDestroy_v2(ctx));
}

/* ---- physical memory ------------------------------------------------------------ */

static const CUmemAllocationProp prop = {
    .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc rw = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void vmm_child(int parent)
{
    CUmemGenericAllocationHandle h, twice;
    CUmemAllocationProp got;
    CUdeviceptr at;
    CUcontext ctx;
    size_t before;
    char c = 0;
    int fd;

    start(&ctx);
    fd = hear(parent, &c, 1);
    before = used(); /* with the parent's */
    WANT(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)0, FD), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)987, FD), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, FD));
    OK(cuMemImportFromShareableHandle(&twice, (void *)(intptr_t)fd, FD));
    OK(cuMemRelease(twice));
    close(fd);
    OK(cuMemGetAllocationPropertiesFromHandle(&got, h));
    TRUE(got.requestedHandleTypes == FD && got.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    OK(cuMemAddressReserve(&at, 4 * MIB, 0, 0, 0));
    OK(cuMemMap(at, 4 * MIB, 0, h, 0));
    OK(cuMemRelease(h));
    OK(cuMemSetAccess(at, 4 * MIB, &rw, 1));
    TRUE(byte_at(at) == 1 && byte_at(at + 4 * MIB - 1) == 2);
    OK(cuMemsetD8_v2(at + MIB, 3, 1));
    TRUE(used() == before);
    tell(parent, &c, 1, -1);
    hear(parent, &c, 1); /* the parent has nothing any more */
    TRUE(byte_at(at + MIB) == 3 && used() == before);
    OK(cuMemUnmap(at, 4 * MIB));
    TRUE(used() == before - 4 * MIB);
    OK(cuMemAddressFree(at, 4 * MIB));
}

static void vmm(void)
{
    CUmemAllocationProp plain = prop, fabric = prop;
    CUmemGenericAllocationHandle h, back;
    CUdeviceptr at, two;
    CUcontext ctx;
    pid_t child;
    int s = beside(vmm_child, &child), fd, more;
    size_t unit;
    char c = 0;

    start(&ctx);
    plain.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    fabric.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    OK(cuMemGetAllocationGranularity(&unit, &fabric, CU_MEM_ALLOC_GRANULARITY_MINIMUM)); /* is told all the same */
    WANT(cuMemCreate(&h, 2 * MIB, &fabric, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuMemCreate(&h, 2 * MIB, &plain, 0));
    WANT(cuMemExportToShareableHandle(&fd, h, FD, 0), CUDA_ERROR_INVALID_VALUE); /* was not asked for */
    OK(cuMemRelease(h));
    OK(cuMemCreate(&h, 4 * MIB, &prop, 0));
    OK(cuMemAddressReserve(&at, 8 * MIB, 0, 0, 0));
    two = at + 4 * MIB;
    OK(cuMemMap(at, 4 * MIB, 0, h, 0));
    OK(cuMemMap(two, 4 * MIB, 0, h, 0));
    OK(cuMemSetAccess(at, 8 * MIB, &rw, 1));
    OK(cuMemsetD8_v2(at, 1, 1)); /* before it is exported */
    OK(cuMemExportToShareableHandle(&fd, h, FD, 0));
    OK(cuMemExportToShareableHandle(&more, h, FD, 0));
    OK(cuMemsetD8_v2(two + 4 * MIB - 1, 2, 1));
    TRUE(byte_at(two) == 1 && byte_at(at + 4 * MIB - 1) == 2);
    OK(cuMemImportFromShareableHandle(&back, (void *)(intptr_t)fd, FD)); /* into the same process */
    OK(cuMemUnmap(two, 4 * MIB));
    OK(cuMemMap(two, 4 * MIB, 0, back, 0));
    OK(cuMemSetAccess(two, 4 * MIB, &rw, 1));
    TRUE(byte_at(two) == 1);
    OK(cuMemRelease(back));
    close(more);
    tell(s, &c, 1, fd);
    close(fd);
    hear(s, &c, 1);
    TRUE(byte_at(at + MIB) == 3 && byte_at(two + MIB) == 3);
    OK(cuMemUnmap(at, 8 * MIB));
    OK(cuMemRelease(h));
    OK(cuMemAddressFree(at, 8 * MIB));
    tell(s, &c, 1, -1);
    ended(child);
    OK(cuCtxDestroy_v2(ctx));
}

/* ---- pools ---------------------------------------------------------------------- */

static void pool_child(int parent)
{
    CUmemPoolPtrExportData data;
    CUmemoryPool pool, of;
    CUdeviceptr p, q;
    CUcontext ctx;
    int fd;

    start(&ctx);
    fd = hear(parent, &data, sizeof(data));
    OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, FD, 0));
    close(fd);
    WANT(cuMemAllocFromPoolAsync(&p, 100, pool, NULL), CUDA_ERROR_INVALID_VALUE); /* cannot grow here */
    WANT(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolImportPointer(&p, pool, &data));
    TRUE(byte_at(p) == 5 && byte_at(p + 2999) == 6);
    WANT(cuMemcpyDtoD_v2(p, p + 1, 3000), CUDA_ERROR_INVALID_VALUE);
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
    TRUE(of == pool);
    OK(cuMemsetD8_v2(p + 1, 7, 1));
    data.reserved[10] ^= 1;
    WANT(cuMemPoolImportPointer(&q, pool, &data), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuMemPoolDestroy(pool));
}

static void pool(void)
{
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .handleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemPoolPtrExportData data;
    CUmemoryPool pool, deflt;
    CUdeviceptr p, q;
    CUcontext ctx;
    pid_t child;
    int s = beside(pool_child, &child), fd;

    start(&ctx);
    OK(cuDeviceGetDefaultMemPool(&deflt, 0));
    WANT(cuMemPoolExportToShareableHandle(&fd, deflt, FD, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&q, 100, pool, NULL)); /* the next one does not begin a block */
    OK(cuMemAllocFromPoolAsync(&p, 3000, pool, NULL));
    OK(cuMemsetD8_v2(p, 5, 1));
    OK(cuMemPoolExportPointer(&data, p));
    OK(cuMemsetD8_v2(p + 2999, 6, 1));
    OK(cuMemPoolExportToShareableHandle(&fd, pool, FD, 0));
    tell(s, &data, sizeof(data), fd);
    close(fd);
    ended(child);
    TRUE(byte_at(p + 1) == 7);
    OK(cuMemFreeAsync(p, NULL));
    OK(cuMemFreeAsync(q, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemPoolDestroy(pool));
    OK(cuCtxDestroy_v2(ctx));
}

/* ---- external memory ---------------------------------------------------------------- */

struct memory_desc {
    int type;
    union {
        int fd;
        void *other[2];
    } handle;
    unsigned long long size;
    unsigned flags, reserved[16];
};
struct buffer_desc {
    unsigned long long offset, size;
    unsigned flags, reserved[16];
};

static void external(void)
{
    struct memory_desc d = {.type = 1, .size = 2 * MIB};
    struct buffer_desc b = {.offset = MIB + 1, .size = MIB - 1};
    CUmemGenericAllocationHandle h;
    CUexternalMemory e;
    CUdeviceptr at, p;
    CUcontext ctx;
    size_t before;
    int fd;

    start(&ctx);
    before = used();
    OK(cuMemCreate(&h, 2 * MIB, &prop, 0));
    OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
    OK(cuMemMap(at, 2 * MIB, 0, h, 0));
    OK(cuMemSetAccess(at, 2 * MIB, &rw, 1));
    OK(cuMemExportToShareableHandle(&fd, h, FD, 0));
    d.handle.fd = 1; /* not of the driver's making */
    WANT(cuImportExternalMemory(&e, (void *)&d), CUDA_ERROR_INVALID_HANDLE);
    d.handle.fd = fd;
    d.size = 3 * MIB;
    WANT(cuImportExternalMemory(&e, (void *)&d), CUDA_ERROR_INVALID_VALUE);
    d.size = 2 * MIB;
    OK(cuImportExternalMemory(&e, (void *)&d)); /* takes the descriptor */
    b.size = MIB;
    WANT(cuExternalMemoryGetMappedBuffer(&p, e, (void *)&b), CUDA_ERROR_INVALID_VALUE);
    b.size = MIB - 1;
    OK(cuExternalMemoryGetMappedBuffer(&p, e, (void *)&b));
    OK(cuMemsetD8_v2(p, 9, MIB - 1));
    WANT(cuMemsetD8_v2(p, 9, MIB), CUDA_ERROR_INVALID_VALUE);
    TRUE(byte_at(at + MIB) == 0 && byte_at(at + MIB + 1) == 9);
    OK(cuMemUnmap(at, 2 * MIB));
    OK(cuMemRelease(h));
    TRUE(used() == before + 2 * MIB);
    OK(cuMemFree_v2(p));
    OK(cuDestroyExternalMemory(e));
    TRUE(used() == before);
    WANT(cuDestroyExternalMemory(e), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMemAddressFree(at, 2 * MIB));
    OK(cuCtxDestroy_v2(ctx));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    /* A process can start CUDA only once, so each pair is a program of its own. */
    if (!strcmp(what, "ipc"))
        ipc();
    else if (!strcmp(what, "vmm"))
        vmm();
    else if (!strcmp(what, "pool"))
        pool();
    else
        external();
    return 0;
}
