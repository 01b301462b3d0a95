// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * occupancy.c: attributes of functions, and how many blocks of one fit on a
 * multiprocessor, by the rules of NVIDIA's occupancy calculator: registers are
 * given to warps in units of 256, to a number of warps that four divides;
 * shared memory in units of 128 bytes, with what the system reserves for each
 * block.
 */
#include "sg.h"

#define MAX_THREADS 1024
#define WARP 32
#define REGISTER_UNIT 256u
#define SHARED_UNIT 128u

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

int sg_resident(CUfunction f, CUdevice dev, int threads, size_t dynamic_shared)
{
    const struct sg_gpu_info *i = sg_state.dev[dev].info;
    unsigned warps = ((unsigned)threads + WARP - 1) / WARP, n, a_warp;
    size_t shared = dynamic_shared + (size_t)f->facts.shared;

    if (threads <= 0 || threads > MAX_THREADS || shared > sg_attr(i, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) || dynamic_shared > sg_attr(i, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) ||
        (f->facts.max_threads && threads > f->facts.max_threads))
        return 0;
    n = least(sg_attr(i, MAX_THREADS_PER_MULTIPROCESSOR) / WARP / warps, sg_attr(i, MAX_BLOCKS_PER_MULTIPROCESSOR));
    a_warp = ((unsigned)f->facts.registers * WARP + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
    if (a_warp)
        n = least(n, sg_attr(i, MAX_REGISTERS_PER_MULTIPROCESSOR) / a_warp / 4 * 4 / warps);
    shared = (shared + sg_attr(i, RESERVED_SHARED_MEMORY_PER_BLOCK) + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
    return shared ? (int)least(n, (unsigned)(sg_attr(i, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / shared)) : (int)n;
}

/* The card that a question is about: that of the current context, else the first. */
static CUdevice here(void)
{
    CUcontext c = sg_current();

    return c ? c->dev : 0;
}

static int most_threads(CUfunction f, const struct sg_gpu_info *i)
{
    int n = f->facts.max_threads ? f->facts.max_threads : MAX_THREADS;

    if (f->facts.registers && sg_attr(i, MAX_REGISTERS_PER_MULTIPROCESSOR) / ((unsigned)f->facts.registers * WARP) * WARP < (unsigned)n)
        n = (int)(sg_attr(i, MAX_REGISTERS_PER_MULTIPROCESSOR) / ((unsigned)f->facts.registers * WARP) * WARP);
    return n;
}

static CUresult get_attribute(int *v, CUfunction_attribute a, CUfunction f, CUdevice dev)
{
    const struct sg_gpu_info *i;

    SG_ENTER();
    if (!v)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    i = sg_state.dev[dev].info;
    switch ((int)a) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *v = most_threads(f, i);
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *v = f->facts.shared;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *v = f->facts.constant;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *v = f->facts.local;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *v = f->facts.registers;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *v = (int)i->capability;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *v = f->max_dynamic_shared ? f->max_dynamic_shared : (int)sg_attr(i, MAX_SHARED_MEMORY_PER_BLOCK) - f->facts.shared;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *v = f->carveout;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *v = f->facts.cluster[0] != 0;
        break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *v = f->facts.cluster[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        if (!*v)
            *v = f->facts.need[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *v = f->facts.nonportable;
        break;
    default:
        if (a < 0 || a >= CU_FUNC_ATTRIBUTE_MAX)
            return CUDA_ERROR_INVALID_VALUE;
        *v = 0;
    }
    return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction f, CUfunction_attribute a, int v, CUdevice dev)
{
    SG_ENTER();
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    switch ((int)a) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (v < 0 || (int64_t)v + f->facts.shared > (int64_t)sg_attr(sg_state.dev[dev].info, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
            return CUDA_ERROR_INVALID_VALUE;
        f->max_dynamic_shared = v;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (v < -1 || v > 100)
            return CUDA_ERROR_INVALID_VALUE;
        f->carveout = v;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        /* What the code demands cannot be changed. */
        if (v < 0 || f->facts.cluster[0])
            return CUDA_ERROR_NOT_PERMITTED;
        f->facts.need[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = v;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        f->facts.nonportable = v != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return v >= 0 && v <= 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SG_API CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f)
{
    return get_attribute(v, a, f, here());
}

SG_API CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v)
{
    return set_attribute(f, a, v, here());
}

SG_API CUresult cuKernelGetAttribute(int *v, CUfunction_attribute a, CUkernel k, CUdevice dev)
{
    SG_ENTER();
    return sg_dev(dev) ? get_attribute(v, a, (CUfunction)k, dev) : CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuKernelSetAttribute(CUfunction_attribute a, int v, CUkernel k, CUdevice dev)
{
    SG_ENTER();
    return sg_dev(dev) ? set_attribute((CUfunction)k, a, v, dev) : CUDA_ERROR_INVALID_DEVICE;
}

/* ---- occupancy ---------------------------------------------------------------------- */

static CUresult max_blocks(int *n, CUfunction f, int threads, size_t shared, unsigned flags)
{
    SG_ENTER();
    if (!n || threads <= 0 || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    *n = sg_resident(f, here(), threads, shared);
    return CUDA_SUCCESS;
}

SG_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int threads, size_t shared)
{
    return max_blocks(n, f, threads, shared, 0);
}

SG_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, CUfunction f, int threads, size_t shared,
                                                                     unsigned int flags)
{
    return max_blocks(n, f, threads, shared, flags);
}

static CUresult potential(int *grid, int *block, CUfunction f, CUoccupancyB2DSize fn, size_t shared, int limit,
                          unsigned flags)
{
    int best = 0, best_threads = 0, most;

    SG_ENTER_CTX(c);
    if (!grid || !block || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    most = most_threads(f, sg_state.dev[c->dev].info);
    if (limit > 0 && limit < most)
        most = limit;
    for (int t = (most + WARP - 1) / WARP * WARP; t >= WARP; t -= WARP) {
        int threads = t < most ? t : most, n = sg_resident(f, c->dev, threads, fn ? fn(threads) : shared);

        if (n * threads > best * best_threads) {
            best = n;
            best_threads = threads;
        }
    }
    *block = best_threads ? best_threads : most;
    *grid = best * (int)sg_state.dev[c->dev].info->multiprocessors;
    return CUDA_SUCCESS;
}

SG_API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f, CUoccupancyB2DSize fn,
                                                 size_t shared, int limit)
{
    return potential(grid, block, f, fn, shared, limit, 0);
}

SG_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f, CUoccupancyB2DSize fn,
                                                          size_t shared, int limit, unsigned int flags)
{
    return potential(grid, block, f, fn, shared, limit, flags);
}

SG_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *n, CUfunction f, int blocks, int threads)
{
    const struct sg_gpu_info *i;
    size_t each, fixed;

    SG_ENTER();
    if (!n || blocks <= 0 || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    i = sg_state.dev[here()].info;
    if (blocks > sg_resident(f, here(), threads, 0))
        return CUDA_ERROR_INVALID_VALUE;
    each = sg_attr(i, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / (size_t)blocks / SHARED_UNIT * SHARED_UNIT;
    if (each > (size_t)sg_attr(i, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) + sg_attr(i, RESERVED_SHARED_MEMORY_PER_BLOCK))
        each = (size_t)sg_attr(i, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) + sg_attr(i, RESERVED_SHARED_MEMORY_PER_BLOCK);
    fixed = sg_attr(i, RESERVED_SHARED_MEMORY_PER_BLOCK) + (size_t)f->facts.shared;
    *n = each > fixed ? each - fixed : 0;
    return CUDA_SUCCESS;
}

/* ---- clusters -------------------------------------------------------------------------- */

static unsigned cluster_of(CUfunction f, const CUlaunchConfig *c)
{
    const int *k = f->facts.cluster[0] ? f->facts.cluster : f->facts.need;
    unsigned x = (unsigned)k[0], y = (unsigned)k[1], z = (unsigned)k[2];

    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *a = &c->attrs[i];

        if (a->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
            x = a->value.clusterDim.x;
            y = a->value.clusterDim.y;
            z = a->value.clusterDim.z;
        }
    }
    return (x ? x : 1) * (y ? y : 1) * (z ? z : 1);
}

static CUresult cluster_config(int *n, CUfunction f, const CUlaunchConfig *c)
{
    if (!n || !c || (c->numAttrs && !c->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sg_state.dev[here()].info->capability < 90)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

SG_API CUresult cuOccupancyMaxPotentialClusterSize(int *n, CUfunction f, const CUlaunchConfig *c)
{
    CUresult r;

    SG_ENTER();
    r = cluster_config(n, f, c);
    if (r == CUDA_SUCCESS)
        *n = f->facts.nonportable ? 16 : 8;
    return r;
}

SG_API CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f, const CUlaunchConfig *c)
{
    unsigned size, blocks;
    CUresult r;

    SG_ENTER();
    r = cluster_config(n, f, c);
    if (r != CUDA_SUCCESS)
        return r;
    size = cluster_of(f, c);
    if (size > (f->facts.nonportable ? 16u : 8u))
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    blocks = (unsigned)sg_resident(f, here(), (int)(c->blockDimX * c->blockDimY * c->blockDimZ), c->sharedMemBytes);
    *n = (int)(blocks * sg_state.dev[here()].info->multiprocessors / size);
    return CUDA_SUCCESS;
}
