// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * features.c: what programs ask of memory beside its bytes, on a card that has
 * multicast objects (profile h100): attributes of pointers, places of physical
 * memory and pools, textures and surfaces, graphs' cost.
 */
#include "t.h"

#define MIB ((size_t)1 << 20)

static size_t used(void)
{
    size_t f, t;

    OK(cuMemGetInfo_v2(&f, &t));
    return t - f;
}

static int attribute(CUdevice_attribute a)
{
    int v;

    OK(cuDeviceGetAttribute(&v, a, 0));
    return v;
}

static void pointers(void)
{
    unsigned char legacy = 9, mapped = 9;
    unsigned long long types;
    CUmemoryPool pool, of;
    CUdeviceptr p, q, base;
    unsigned access;
    CUcontext owner;
    size_t size;
    int dev;

    OK(cuMemAlloc_v2(&p, 1000));
    OK(cuPointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, p + 999));
    TRUE(legacy == 1 && mapped == 1);
    OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, p + 1000));
    TRUE(mapped == 0);
    OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 5));
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 5));
    TRUE(base == p && size == 1000);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocAsync(&q, 1000, NULL));
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
    OK(cuPointerGetAttribute(&legacy, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, q));
    OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, q));
    OK(cuPointerGetAttribute(&dev, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q));
    OK(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, q));
    OK(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, q));
    TRUE(of == pool && legacy == 0 && !owner && dev == 0 && access == 3 && types == 0);
    OK(cuMemFreeAsync(q, NULL));
    OK(cuMemFree_v2(p));
    OK(cuCtxSynchronize());
}

static void places(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
    CUmemAccessDesc both[2] = {{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                               {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    CUmemPoolProps host = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    CUmemGenericAllocationHandle h;
    unsigned long long flags;
    size_t before = used();
    CUmemoryPool pool;
    unsigned type;
    CUdeviceptr p;

    OK(cuMemCreate(&h, 4 * MIB, &prop, 0));
    OK(cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
    OK(cuMemMap(p, 4 * MIB, 0, h, 0));
    OK(cuMemSetAccess(p, 4 * MIB, both, 2));
    TRUE(used() == before); /* the host's memory is not the device's */
    *(char *)(uintptr_t)p = 1;
    OK(cuMemGetAccess(&flags, &both[1].location, p));
    TRUE(flags == 3);
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    TRUE(type == CU_MEMORYTYPE_HOST);
    OK(cuMemUnmap(p, 4 * MIB));
    OK(cuMemRelease(h));
    OK(cuMemAddressFree(p, 4 * MIB));
    prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
    WANT(cuMemCreate(&h, 4 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    WANT(cuMemCreate(&h, 4 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 485797272};
    WANT(cuMemCreate(&h, 4 * MIB, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
    prop.location.id = 0;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    WANT(cuMemCreate(&h, 4 * MIB, &prop, 0), CUDA_ERROR_NOT_PERMITTED); /* no channel of a fabric manager */
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
    OK(cuMemCreate(&h, 4 * MIB, &prop, 0));
    OK(cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
    OK(cuMemMap(p, 4 * MIB, 0, h, 0));
    WANT(cuMemSetAccess(p, 4 * MIB, &both[1], 1), CUDA_ERROR_INVALID_VALUE); /* the processor does not reach it */
    OK(cuMemUnmap(p, 4 * MIB));
    OK(cuMemRelease(h));
    OK(cuMemAddressFree(p, 4 * MIB));
    OK(cuMemPoolCreate(&pool, &host));
    OK(cuMemAllocFromPoolAsync(&p, 1000, pool, NULL));
    TRUE(used() == before);
    *(char *)(uintptr_t)p = 1;
    OK(cuMemFreeAsync(p, NULL));
    OK(cuMemPoolDestroy(pool));
    WANT(cuMemGetHandleForAddressRange(&type, p, 4096, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

static void multicast(void)
{
    struct {
        unsigned devices;
        size_t size;
        unsigned long long types, flags;
    } mp = {1, 4 * MIB, 0, 0};
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc rw = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle mc, h;
    size_t before = used(), n;
    CUdeviceptr p;

    TRUE(attribute(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) == 1);
    OK(cuMulticastGetGranularity(&n, (void *)&mp, 0));
    TRUE(n == 2 * MIB);
    OK(cuMulticastCreate(&mc, (void *)&mp));
    TRUE(used() == before);
    OK(cuMemCreate(&h, 4 * MIB, &prop, 0));
    WANT(cuMulticastBindMem(mc, 0, h, 0, 4 * MIB, 0), CUDA_ERROR_INVALID_DEVICE); /* not added yet */
    OK(cuMulticastAddDevice(mc, 0));
    WANT(cuMulticastAddDevice(mc, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMulticastBindMem(mc, 0, h, 0, 6 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMulticastBindMem(mc, 0, h, 0, 4 * MIB, 0));
    WANT(cuMulticastBindMem(mc, 0, h, 0, 2 * MIB, 0), CUDA_ERROR_INVALID_VALUE); /* is bound there */
    OK(cuMemRelease(h));
    TRUE(used() == before + 4 * MIB); /* the binding holds it */
    OK(cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
    OK(cuMemMap(p, 4 * MIB, 0, mc, 0));
    OK(cuMemSetAccess(p, 4 * MIB, &rw, 1));
    WANT(cuMemsetD8_v2(p, 0, 1), CUDA_ERROR_INVALID_VALUE); /* only kernels could */
    OK(cuMemUnmap(p, 4 * MIB));
    OK(cuMemAddressFree(p, 4 * MIB));
    OK(cuMulticastUnbind(mc, 0, 0, 4 * MIB));
    TRUE(used() == before);
    OK(cuMemRelease(mc));
}

struct resource {
    int type;
    union {
        CUarray array;
        struct {
            CUdeviceptr p;
            CUarray_format format;
            unsigned channels;
            size_t bytes;
        } linear;
        int reserved[32];
    } of;
    unsigned flags;
};
struct texture {
    unsigned modes[3], filter, flags, anisotropy, mipmap_filter;
    float values[7];
    int reserved[12];
};

static void textures(CUmodule m)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    struct resource r = {.type = 2}, got;
    struct texture t = {{1, 1, 1}, 0, 0, 0, 0, {0}, {0}};
    unsigned long long tex, surf;
    CUdeviceptr p;
    CUtexref ref, same;
    CUarray a;

    OK(cuMemAlloc_v2(&p, 4096));
    r.of.linear.p = p;
    r.of.linear.format = CU_AD_FORMAT_FLOAT;
    r.of.linear.channels = 4;
    r.of.linear.bytes = 4096;
    OK(cuTexObjectCreate(&tex, (void *)&r, (void *)&t, NULL));
    OK(cuTexObjectGetResourceDesc((void *)&got, tex));
    TRUE(got.of.linear.p == p && got.of.linear.bytes == 4096);
    OK(cuTexObjectDestroy(tex));
    WANT(cuTexObjectDestroy(tex), CUDA_ERROR_INVALID_VALUE);
    r.of.linear.p = p + 4; /* not aligned */
    WANT(cuTexObjectCreate(&tex, (void *)&r, (void *)&t, NULL), CUDA_ERROR_INVALID_VALUE);
    r.of.linear.p = p;
    r.of.linear.bytes = 4097; /* beyond the allocation */
    WANT(cuTexObjectCreate(&tex, (void *)&r, (void *)&t, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuArray3DCreate_v2(&a, &d));
    r.type = 0;
    r.of.array = a;
    OK(cuTexObjectCreate(&tex, (void *)&r, (void *)&t, NULL));
    OK(cuTexObjectDestroy(tex));
    WANT(cuSurfObjectCreate(&surf, (void *)&r), CUDA_ERROR_INVALID_VALUE); /* was not made for it */
    OK(cuArrayDestroy(a));
    WANT(cuTexObjectCreate(&tex, (void *)&r, (void *)&t, NULL), CUDA_ERROR_INVALID_HANDLE);
    d.Flags = 2;
    OK(cuArray3DCreate_v2(&a, &d));
    r.of.array = a;
    OK(cuSurfObjectCreate(&surf, (void *)&r));
    OK(cuSurfObjectDestroy(surf));
    OK(cuModuleGetTexRef(&ref, m, "tex"));
    OK(cuModuleGetTexRef(&same, m, "tex"));
    TRUE(ref == same);
    OK(cuTexRefSetArray(ref, a, 1));
    OK(cuArrayDestroy(a));
    OK(cuMemFree_v2(p));
}

static void graphs(CUmodule m)
{
    CUDA_KERNEL_NODE_PARAMS k = {.func = function(m, "k"), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1,
                                 .blockDimY = 1, .blockDimZ = 1};
    size_t before;
    CUgraphExec e;
    CUgraphNode n;
    CUgraph g;

    OK(launch(k.func, NULL)); /* its code */
    OK(cuCtxSynchronize());
    before = used();
    OK(cuGraphCreate(&g, 0));
    for (int i = 0; i < 1000; i++)
        OK(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    TRUE(used() == before + 10 * MIB); /* 64 KiB and 10 KiB a node */
    OK(cuGraphExecDestroy(e));
    TRUE(used() == before);
    OK(cuGraphDestroy(g));
}

int main(void)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);
    size_t begin = used();

    pointers();
    places();
    multicast();
    textures(m);
    TRUE(used() == begin);
    graphs(m);
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
