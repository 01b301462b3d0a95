// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* device.c: properties, settings and peers of devices. */
#include "rt.h"

/* A row is a field and the attribute that fills it. X is for one that 13 has no
 * more, Y for one that 12 does not have; the order is that of the structure. */
#define PROPERTIES_1(I, X, Z)                                          \
    Z(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)                  \
    I(regsPerBlock, MAX_REGISTERS_PER_BLOCK)                           \
    I(warpSize, WARP_SIZE)                                             \
    Z(memPitch, MAX_PITCH)                                             \
    I(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)                       \
    I(maxThreadsDim0, MAX_BLOCK_DIM_X)                                 \
    I(maxThreadsDim1, MAX_BLOCK_DIM_Y)                                 \
    I(maxThreadsDim2, MAX_BLOCK_DIM_Z)                                 \
    I(maxGridSize0, MAX_GRID_DIM_X)                                    \
    I(maxGridSize1, MAX_GRID_DIM_Y)                                    \
    I(maxGridSize2, MAX_GRID_DIM_Z)                                    \
    X(clockRate, CLOCK_RATE)                                           \
    Z(totalConstMem, TOTAL_CONSTANT_MEMORY)                            \
    I(major, COMPUTE_CAPABILITY_MAJOR)                                 \
    I(minor, COMPUTE_CAPABILITY_MINOR)                                 \
    Z(textureAlignment, TEXTURE_ALIGNMENT)                             \
    Z(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT)                  \
    X(deviceOverlap, GPU_OVERLAP)                                      \
    I(multiProcessorCount, MULTIPROCESSOR_COUNT)                       \
    X(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT)                   \
    I(integrated, INTEGRATED)                                          \
    I(canMapHostMemory, CAN_MAP_HOST_MEMORY)                           \
    X(computeMode, COMPUTE_MODE)                                       \
    I(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH)                           \
    I(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH)           \
    X(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH)              \
    I(maxTexture2D0, MAXIMUM_TEXTURE2D_WIDTH)                          \
    I(maxTexture2D1, MAXIMUM_TEXTURE2D_HEIGHT)                         \
    I(maxTexture2DMipmap0, MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH)          \
    I(maxTexture2DMipmap1, MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT)         \
    I(maxTexture2DLinear0, MAXIMUM_TEXTURE2D_LINEAR_WIDTH)             \
    I(maxTexture2DLinear1, MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)            \
    I(maxTexture2DLinear2, MAXIMUM_TEXTURE2D_LINEAR_PITCH)             \
    I(maxTexture2DGather0, MAXIMUM_TEXTURE2D_GATHER_WIDTH)             \
    I(maxTexture2DGather1, MAXIMUM_TEXTURE2D_GATHER_HEIGHT)            \
    I(maxTexture3D0, MAXIMUM_TEXTURE3D_WIDTH)                          \
    I(maxTexture3D1, MAXIMUM_TEXTURE3D_HEIGHT)                         \
    I(maxTexture3D2, MAXIMUM_TEXTURE3D_DEPTH)                          \
    I(maxTexture3DAlt0, MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE)             \
    I(maxTexture3DAlt1, MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE)            \
    I(maxTexture3DAlt2, MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE)             \
    I(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH)                 \
    I(maxTexture1DLayered0, MAXIMUM_TEXTURE1D_LAYERED_WIDTH)           \
    I(maxTexture1DLayered1, MAXIMUM_TEXTURE1D_LAYERED_LAYERS)          \
    I(maxTexture2DLayered0, MAXIMUM_TEXTURE2D_LAYERED_WIDTH)           \
    I(maxTexture2DLayered1, MAXIMUM_TEXTURE2D_LAYERED_HEIGHT)          \
    I(maxTexture2DLayered2, MAXIMUM_TEXTURE2D_LAYERED_LAYERS)          \
    I(maxTextureCubemapLayered0, MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH) \
    I(maxTextureCubemapLayered1, MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS) \
    I(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH)                           \
    I(maxSurface2D0, MAXIMUM_SURFACE2D_WIDTH)                          \
    I(maxSurface2D1, MAXIMUM_SURFACE2D_HEIGHT)                         \
    I(maxSurface3D0, MAXIMUM_SURFACE3D_WIDTH)                          \
    I(maxSurface3D1, MAXIMUM_SURFACE3D_HEIGHT)                         \
    I(maxSurface3D2, MAXIMUM_SURFACE3D_DEPTH)                          \
    I(maxSurface1DLayered0, MAXIMUM_SURFACE1D_LAYERED_WIDTH)           \
    I(maxSurface1DLayered1, MAXIMUM_SURFACE1D_LAYERED_LAYERS)          \
    I(maxSurface2DLayered0, MAXIMUM_SURFACE2D_LAYERED_WIDTH)           \
    I(maxSurface2DLayered1, MAXIMUM_SURFACE2D_LAYERED_HEIGHT)          \
    I(maxSurface2DLayered2, MAXIMUM_SURFACE2D_LAYERED_LAYERS)          \
    I(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH)                 \
    I(maxSurfaceCubemapLayered0, MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH) \
    I(maxSurfaceCubemapLayered1, MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS)
#define PROPERTIES_2(I, X, Y, Z)                                       \
    Z(surfaceAlignment, SURFACE_ALIGNMENT)                             \
    I(concurrentKernels, CONCURRENT_KERNELS)                           \
    I(ECCEnabled, ECC_ENABLED)                                         \
    I(pciBusID, PCI_BUS_ID)                                            \
    I(pciDeviceID, PCI_DEVICE_ID)                                      \
    I(pciDomainID, PCI_DOMAIN_ID)                                      \
    I(tccDriver, TCC_DRIVER)                                           \
    I(asyncEngineCount, ASYNC_ENGINE_COUNT)                            \
    I(unifiedAddressing, UNIFIED_ADDRESSING)                           \
    X(memoryClockRate, MEMORY_CLOCK_RATE)                              \
    I(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH)                         \
    I(l2CacheSize, L2_CACHE_SIZE)                                      \
    I(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE)          \
    I(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)     \
    I(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)          \
    I(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED)               \
    I(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED)                 \
    Z(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) \
    I(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)         \
    I(managedMemory, MANAGED_MEMORY)                                   \
    I(isMultiGpuBoard, MULTI_GPU_BOARD)                                \
    I(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID)                  \
    I(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED)         \
    X(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO) \
    I(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS)                    \
    I(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)              \
    I(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED)        \
    I(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) \
    I(cooperativeLaunch, COOPERATIVE_LAUNCH)                           \
    X(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH)   \
    Z(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)       \
    I(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) \
    I(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST) \
    I(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR)       \
    I(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE)        \
    Z(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)     \
    I(hostRegisterSupported, HOST_REGISTER_SUPPORTED)                  \
    I(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED)           \
    I(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED) \
    I(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED) \
    I(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)                    \
    I(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED)               \
    I(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS) \
    I(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING)    \
    I(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES)  \
    I(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED) \
    I(ipcEventSupported, IPC_EVENT_SUPPORTED)                          \
    I(clusterLaunch, CLUSTER_LAUNCH)                                   \
    I(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS)              \
    Y(deviceNumaConfig, NUMA_CONFIG)                                   \
    Y(deviceNumaId, NUMA_ID)                                           \
    Y(mpsEnabled, MPS_ENABLED)                                         \
    Y(hostNumaId, HOST_NUMA_ID)                                        \
    Y(gpuPciDeviceID, GPU_PCI_DEVICE_ID)                               \
    Y(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID)                         \
    Y(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED)

#define FIELD_INT(field, attribute) int field;
#define FIELD_SIZE(field, attribute) size_t field;
#define NO_FIELD(field, attribute)
#if RT_MAJOR == 12
#define FIELD_X FIELD_INT
#define FIELD_Y NO_FIELD
#define RESERVED 63
#else
#define FIELD_X NO_FIELD
#define FIELD_Y FIELD_INT
#define RESERVED 56
#endif

struct properties {
    char name[256];
    CUuuid uuid;
    char luid[8];
    unsigned int luid_mask;
    size_t total_bytes;
    PROPERTIES_1(FIELD_INT, FIELD_X, FIELD_SIZE)
    PROPERTIES_2(FIELD_INT, FIELD_X, FIELD_Y, FIELD_SIZE)
    int reserved[RESERVED];
};
_Static_assert(sizeof(struct properties) == (RT_MAJOR == 12 ? 1032 : 1008), "layout of the public interface");

static cudaError_t properties(struct properties *p, int device)
{
    CUdevice d;
    int v;

    RT_START();
    if (!p)
        return rt_set(RT_INVALID_VALUE);
    RT_TRY((cudaError_t)rt_drv.cuDeviceGet(&d, device));
    memset(p, 0, sizeof(*p));
    RT_TRY((cudaError_t)rt_drv.cuDeviceGetName(p->name, sizeof(p->name), d));
    RT_TRY((cudaError_t)rt_drv.cuDeviceGetUuid(&p->uuid, d));
    RT_TRY((cudaError_t)rt_drv.cuDeviceTotalMem(&p->total_bytes, d));
    /* An attribute that the driver does not know yet stays 0. */
#define FILL(field, attribute)                                                                              \
    if (rt_drv.cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_##attribute, d) == CUDA_SUCCESS)               \
        p->field = (__typeof__(p->field))v;
#define FILL_X(field, attribute) FILL_IF_12(field, attribute)
#define FILL_Y(field, attribute) FILL_IF_13(field, attribute)
#if RT_MAJOR == 12
#define FILL_IF_12 FILL
#define FILL_IF_13 NO_FIELD
#else
#define FILL_IF_12 NO_FIELD
#define FILL_IF_13 FILL
#endif
    PROPERTIES_1(FILL, FILL_X, FILL)
    PROPERTIES_2(FILL, FILL_X, FILL_Y, FILL)
    return RT_OK;
}

#if RT_MAJOR == 12
RT(cudaGetDeviceProperties_v2, struct properties *p, int device)
#else
RT(cudaGetDeviceProperties, struct properties *p, int device)
#endif
{
    return properties(p, device);
}

RT_PASS_BARE(cudaDeviceGetAttribute, cuDeviceGetAttribute(v, a, d), int *v, CUdevice_attribute a, int d)
RT_PASS_BARE(cudaDeviceGetPCIBusId, cuDeviceGetPCIBusId(text, n, d), char *text, int n, int d)
RT_PASS_BARE(cudaDeviceGetByPCIBusId, cuDeviceGetByPCIBusId(d, text), int *d, const char *text)
RT_PASS_BARE(cudaDeviceGetP2PAttribute, cuDeviceGetP2PAttribute(v, a, d, peer), int *v, CUdevice_P2PAttribute a, int d, int peer)
RT_PASS_BARE(cudaDeviceCanAccessPeer, cuDeviceCanAccessPeer(yes, d, peer), int *yes, int d, int peer)
RT_PASS_BARE(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool(pool, d), CUmemoryPool *pool, int d)
RT_PASS_BARE(cudaDeviceGetMemPool, cuDeviceGetMemPool(pool, d), CUmemoryPool *pool, int d)
RT_PASS_BARE(cudaDeviceSetMemPool, cuDeviceSetMemPool(d, pool), int d, CUmemoryPool pool)
RT_PASS_BARE(cudaDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute(d, a, v), int d, CUgraphMem_attribute a, void *v)
RT_PASS_BARE(cudaDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute(d, a, v), int d, CUgraphMem_attribute a, void *v)
RT_PASS_BARE(cudaDeviceGraphMemTrim, cuDeviceGraphMemTrim(d), int d)
RT_PASS(cudaDeviceSynchronize, cuCtxSynchronize(), void)
RT_PASS(cudaDeviceGetLimit, cuCtxGetLimit(v, l), size_t *v, CUlimit l)
RT_PASS(cudaDeviceSetLimit, cuCtxSetLimit(l, v), CUlimit l, size_t v)
RT_PASS(cudaDeviceGetCacheConfig, cuCtxGetCacheConfig(v), CUfunc_cache *v)
RT_PASS(cudaDeviceSetCacheConfig, cuCtxSetCacheConfig(v), CUfunc_cache v)
RT_PASS(cudaDeviceGetSharedMemConfig, cuCtxGetSharedMemConfig(v), CUsharedconfig *v)
RT_PASS(cudaDeviceSetSharedMemConfig, cuCtxSetSharedMemConfig(v), CUsharedconfig v)
RT_PASS(cudaDeviceGetStreamPriorityRange, cuCtxGetStreamPriorityRange(least, most), int *least, int *most)
RT_PASS(cudaCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache(), void)
RT_PASS_BARE(cudaProfilerStart, cuProfilerStart(), void)
RT_PASS_BARE(cudaProfilerStop, cuProfilerStop(), void)
RT_PASS(cudaGetDeviceFlags, cuCtxGetFlags(flags), unsigned int *flags)

RT(cudaSetDeviceFlags, unsigned int flags)
{
    int d;

    RT_TRY(rt_device(&d));
    return RT_DRV(cuDevicePrimaryCtxSetFlags(d, flags));
}

RT(cudaDeviceEnablePeerAccess, int peer, unsigned int flags)
{
    CUcontext c;

    RT_ENTER();
    RT_TRY(rt_primary(peer, &c));
    return RT_DRV(cuCtxEnablePeerAccess(c, flags));
}

RT(cudaDeviceDisablePeerAccess, int peer)
{
    CUcontext c;

    RT_ENTER();
    RT_TRY(rt_primary(peer, &c));
    return RT_DRV(cuCtxDisablePeerAccess(c));
}
