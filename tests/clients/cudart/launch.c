// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* launch.c: launches, attributes of kernels, occupancy. The driver takes a kernel's
 * context-free handle in place of a function's. */
#include "rt.h"

enum { DEEPEST = 64 }; /* launches in the arguments of launches */

struct configuration {
    dim3 grid, block;
    size_t shared;
    CUstream stream;
};
static __thread struct configuration pushed[DEEPEST];
static __thread unsigned int depth;

RT_API unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream s);
RT_API unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream s)
{
    struct configuration c = {grid, block, shared, s};

    if (depth == DEEPEST)
        return 1; /* the program then makes no launch */
    pushed[depth++] = c;
    return 0;
}

RT(__cudaPopCallConfiguration, dim3 *grid, dim3 *block, size_t *shared, CUstream *s)
{
    const struct configuration *c;

    if (!depth)
        return rt_set(52); /* cudaErrorMissingConfiguration */
    c = &pushed[--depth];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    *s = c->stream;
    return RT_OK;
}

static cudaError_t check(dim3 grid, dim3 block, size_t shared)
{
    if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z || shared > UINT32_MAX)
        return RT_INVALID_CONFIGURATION;
    return RT_OK;
}

static cudaError_t launch(CUkernel k, dim3 grid, dim3 block, void **args, size_t shared, CUstream s)
{
    RT_ENTER();
    RT_TRY(check(grid, block, shared));
    return RT_DRV(cuLaunchKernel((CUfunction)k, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned int)shared, s,
                                 args, NULL));
}

RT(cudaLaunchKernel, const void *func, dim3 grid, dim3 block, void **args, size_t shared, CUstream s)
{
    CUkernel k;

    RT_TRY(rt_kernel(func, &k));
    return launch(k, grid, block, args, shared, s);
}

RT(__cudaLaunchKernel, CUkernel k, dim3 grid, dim3 block, void **args, size_t shared, CUstream s)
{
    return launch(k, grid, block, args, shared, s);
}

RT(cudaLaunchCooperativeKernel, const void *func, dim3 grid, dim3 block, void **args, size_t shared, CUstream s)
{
    CUkernel k;

    RT_ENTER();
    RT_TRY(rt_kernel(func, &k));
    RT_TRY(check(grid, block, shared));
    return RT_DRV(cuLaunchCooperativeKernel((CUfunction)k, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                            (unsigned int)shared, s, args));
}

struct launch_config {
    dim3 grid, block;
    size_t shared;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned int n;
};

static cudaError_t convert(const struct launch_config *c, CUlaunchConfig *ret)
{
    CUlaunchConfig d = {.gridDimX = c->grid.x, .gridDimY = c->grid.y, .gridDimZ = c->grid.z,
                        .blockDimX = c->block.x, .blockDimY = c->block.y, .blockDimZ = c->block.z,
                        .sharedMemBytes = (unsigned int)c->shared, .hStream = c->stream,
                        .attrs = c->attributes, .numAttrs = c->n};

    *ret = d;
    return check(c->grid, c->block, c->shared);
}

RT(cudaLaunchKernelExC, const struct launch_config *c, const void *func, void **args)
{
    CUlaunchConfig d;
    CUkernel k;

    RT_ENTER();
    RT_TRY(rt_kernel(func, &k));
    RT_TRY(c ? convert(c, &d) : RT_INVALID_VALUE);
    return RT_DRV(cuLaunchKernelEx(&d, (CUfunction)k, args, NULL));
}

RT_PASS(cudaLaunchHostFunc, cuLaunchHostFunc(s, fn, arg), CUstream s, CUhostFn fn, void *arg)

/* ---- attributes ------------------------------------------------------------------------ */

struct function_attributes {
    size_t shared_bytes, constant_bytes, local_bytes;
    int threads, registers, ptx, binary, cache_ca, max_dynamic_shared, carveout;
    int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, nonportable_cluster;
    int reserved[16];
};

RT(cudaFuncGetAttributes, struct function_attributes *a, const void *func)
{
    CUkernel k;
    int d, v;

    RT_ENTER();
    RT_TRY(a ? rt_kernel(func, &k) : RT_INVALID_VALUE);
    RT_TRY(rt_device(&d));
    memset(a, 0, sizeof(*a));
#define GET(field, name)                                                                            \
    RT_TRY((cudaError_t)rt_drv.cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_##name, k, d));          \
    a->field = (__typeof__(a->field))v;
    GET(shared_bytes, SHARED_SIZE_BYTES)
    GET(constant_bytes, CONST_SIZE_BYTES)
    GET(local_bytes, LOCAL_SIZE_BYTES)
    GET(threads, MAX_THREADS_PER_BLOCK)
    GET(registers, NUM_REGS)
    GET(ptx, PTX_VERSION)
    GET(binary, BINARY_VERSION)
    GET(cache_ca, CACHE_MODE_CA)
    GET(max_dynamic_shared, MAX_DYNAMIC_SHARED_SIZE_BYTES)
    GET(carveout, PREFERRED_SHARED_MEMORY_CARVEOUT)
    GET(cluster_must_be_set, CLUSTER_SIZE_MUST_BE_SET)
    GET(cluster_width, REQUIRED_CLUSTER_WIDTH)
    GET(cluster_height, REQUIRED_CLUSTER_HEIGHT)
    GET(cluster_depth, REQUIRED_CLUSTER_DEPTH)
    GET(cluster_policy, CLUSTER_SCHEDULING_POLICY_PREFERENCE)
    GET(nonportable_cluster, NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
    return RT_OK;
}

RT(cudaFuncSetAttribute, const void *func, CUfunction_attribute a, int v)
{
    CUkernel k;
    int d;

    RT_ENTER();
    RT_TRY(rt_kernel(func, &k));
    RT_TRY(rt_device(&d));
    return RT_DRV(cuKernelSetAttribute(a, v, k, d));
}

RT_PASS_BARE(cudaKernelSetAttributeForDevice, cuKernelSetAttribute(a, v, k, d), CUkernel k, CUfunction_attribute a, int v, int d)

RT(cudaFuncSetCacheConfig, const void *func, CUfunc_cache config)
{
    CUkernel k;
    int d;

    RT_ENTER();
    RT_TRY(rt_kernel(func, &k));
    RT_TRY(rt_device(&d));
    return RT_DRV(cuKernelSetCacheConfig(k, config, d));
}

RT(cudaFuncGetName, const char **name, const void *func)
{
    CUkernel k;

    RT_ENTER();
    RT_TRY(rt_kernel(func, &k));
    return RT_DRV(cuKernelGetName(name, k));
}

/* ---- occupancy ------------------------------------------------------------------------- */

#define OCCUPANCY(name, call, ...)        \
    RT(name, __VA_ARGS__)                 \
    {                                     \
        CUkernel k;                       \
        RT_ENTER();                       \
        RT_TRY(rt_kernel(func, &k));      \
        return RT_DRV(call);              \
    }
OCCUPANCY(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
          cuOccupancyMaxActiveBlocksPerMultiprocessor(n, (CUfunction)k, threads, shared), int *n, const void *func, int threads,
          size_t shared)
OCCUPANCY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
          cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n, (CUfunction)k, threads, shared, flags), int *n,
          const void *func, int threads, size_t shared, unsigned int flags)
OCCUPANCY(cudaOccupancyAvailableDynamicSMemPerBlock,
          cuOccupancyAvailableDynamicSMemPerBlock(bytes, (CUfunction)k, blocks, threads), size_t *bytes, const void *func,
          int blocks, int threads)

#define CLUSTERS(name, call)                                                              \
    RT(name, int *n, const void *func, const struct launch_config *c)                     \
    {                                                                                     \
        CUlaunchConfig d;                                                                 \
        CUkernel k;                                                                       \
        RT_ENTER();                                                                       \
        RT_TRY(rt_kernel(func, &k));                                                      \
        RT_TRY(c ? convert(c, &d) : RT_INVALID_VALUE);                                    \
        return RT_DRV(call(n, (CUfunction)k, &d));                                        \
    }
CLUSTERS(cudaOccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters)
CLUSTERS(cudaOccupancyMaxPotentialClusterSize, cuOccupancyMaxPotentialClusterSize)
