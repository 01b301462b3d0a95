// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* launch.c: kernel launches in all their forms. */
#include "sg.h"

/* Learns a function's number at its first launch, by name. */
static __attribute__((cold, noinline)) CUresult number_of(CUfunction f, uint32_t *ret)
{
    struct sg_request req = {.op = SG_OP_FUNCTION};
    struct sg_reply rep;
    size_t n = strlen(f->name);
    CUresult r = sg_grow_launch(f); /* its code, and the local memory that it needs */

    if (r != CUDA_SUCCESS)
        return r;
    req.len = (uint32_t)(n > 4096 ? 4096 : n);
    r = sg_call(&req, f->name, &rep, NULL, 0, NULL);
    if (r == CUDA_SUCCESS)
        *ret = f->number = (uint32_t)rep.a;
    return r;
}

CUresult sg_func_number(CUfunction f, uint32_t *ret)
{
    *ret = f->number;
    return __builtin_expect(*ret != UINT32_MAX, 1) ? CUDA_SUCCESS : number_of(f, ret);
}

CUresult sg_launch_check(CUfunction f, CUdevice dev, const unsigned d[6], unsigned shared)
{
    const struct sg_gpu_info *i = sg_state.dev[dev].info;
    uint64_t threads = (uint64_t)d[3] * d[4] * d[5], all = (uint64_t)shared + (unsigned)f->facts.shared;

    if (!d[0] || !d[1] || !d[2] || !threads || d[0] > INT32_MAX || d[1] > 65535 || d[2] > 65535 || d[3] > 1024 ||
        d[4] > 1024 || d[5] > 64 || threads > 1024)
        return CUDA_ERROR_INVALID_VALUE;
    /* More than the default takes the attribute, and never more than there is. */
    if (all > sg_attr(i, MAX_SHARED_MEMORY_PER_BLOCK) && (shared > (unsigned)f->max_dynamic_shared || all > sg_attr(i, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)))
        return CUDA_ERROR_INVALID_VALUE;
    if (f->facts.max_threads && threads > (unsigned)f->facts.max_threads)
        return CUDA_ERROR_INVALID_VALUE;
    if ((uint64_t)f->facts.registers * ((threads + 31) / 32 * 32) > sg_attr(i, MAX_REGISTERS_PER_MULTIPROCESSOR))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return CUDA_SUCCESS;
}

uint64_t sg_shape(CUfunction f, CUdevice dev, const unsigned d[6], unsigned shared)
{
    const uint64_t most = ((uint64_t)1 << 40) - 1;
    unsigned threads = d[3] * d[4] * d[5];
    /* One word for both, so that two threads can share it; kibibytes are
     * what a multiprocessor hands out. */
    uint64_t key = (uint64_t)threads << 16 | (shared + 1023) / 1024 << 1 | 1, resident;
    uint64_t last = __atomic_load_n(&f->facts.resident, __ATOMIC_RELAXED);
    uint64_t blocks;

    if (__builtin_expect(last >> 8 != key, 0)) {
        last = key << 8 | (unsigned)sg_resident(f, dev, (int)threads, shared);
        __atomic_store_n(&f->facts.resident, last, __ATOMIC_RELAXED);
    }
    resident = last & 0x3f;
    if (__builtin_mul_overflow((uint64_t)d[0] * d[1], d[2], &blocks) || blocks > most)
        blocks = most;
    return blocks | (uint64_t)threads << 40 | resident << 51;
}

enum { COOPERATIVE_LAUNCH = 1, PER_THREAD = 2 };

/* All blocks of a cooperative launch must be there at once. */
static __attribute__((noinline)) CUresult fits_at_once(CUfunction f, CUdevice dev, const unsigned d[6], unsigned shared)
{
    uint64_t blocks = (uint64_t)d[0] * d[1], room = sg_state.dev[dev].info->multiprocessors;

    room *= (unsigned)sg_resident(f, dev, (int)(d[3] * d[4] * d[5]), shared);
    return __builtin_mul_overflow(blocks, d[2], &blocks) || blocks > room ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
                                                                          : CUDA_SUCCESS;
}

static CUresult launch(CUfunction f, const unsigned d[6], unsigned shared, CUstream h, void **params, void **extra,
                       unsigned how)
{
    bool capturing;
    uint32_t number;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (__builtin_expect(sg_func_check(f) != CUDA_SUCCESS, 0))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!sg_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    r = sg_stream_of(h, how & PER_THREAD, &s);
    if (r == CUDA_SUCCESS)
        r = sg_launch_check(f, s->ctx->dev, d, shared);
    if (r == CUDA_SUCCESS && __builtin_expect(how & COOPERATIVE_LAUNCH, 0))
        r = fits_at_once(f, s->ctx->dev, d, shared);
    if (r == CUDA_SUCCESS)
        r = sg_capturing(s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (__builtin_expect(capturing, 0)) {
        union sg_node_params p = {.kernel = {f, d[0], d[1], d[2], d[3], d[4], d[5], shared, params, extra, NULL, NULL}};

        return sg_capture_add(s, CU_GRAPH_NODE_TYPE_KERNEL, &p);
    }
    r = sg_func_number(f, &number);
    return r == CUDA_SUCCESS ? sg_submit(s, SG_ENTRY_KERNEL, number, sg_shape(f, s->ctx->dev, d, shared), NULL) : r;
}

#define KERNEL(name, pt)                                                                                        \
    SG_API CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,      \
                         unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **params,      \
                         void **extra)                                                                          \
    {                                                                                                           \
        const unsigned d[6] = {gx, gy, gz, bx, by, bz};                                                         \
                                                                                                                \
        return launch(f, d, shared, s, params, extra, pt ? PER_THREAD : 0);                                                      \
    }
KERNEL(cuLaunchKernel, false)
KERNEL(cuLaunchKernel_ptsz, true)

#define COOPERATIVE(name, pt)                                                                                   \
    SG_API CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,      \
                         unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **params)      \
    {                                                                                                           \
        const unsigned d[6] = {gx, gy, gz, bx, by, bz};                                                         \
                                                                                                                \
        return launch(f, d, shared, s, params, NULL, COOPERATIVE_LAUNCH | (pt ? PER_THREAD : 0));                                                       \
    }
COOPERATIVE(cuLaunchCooperativeKernel, false)
COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

/* A cluster must divide the grid; above 8 blocks the function must allow it. */
static CUresult cluster_check(CUfunction f, const unsigned d[6], unsigned x, unsigned y, unsigned z)
{
    uint64_t n = (uint64_t)x * y * z;

    if (!x && !y && !z)
        return CUDA_SUCCESS;
    if (!n || d[0] % x || d[1] % y || d[2] % z)
        return CUDA_ERROR_INVALID_VALUE;
    return n > (f->facts.nonportable ? 16u : 8u) ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

/* Attributes that change when a launch begins, but not what it takes, are
 * accepted: a kernel begins when those before it in its stream are done, as
 * programs may not rely on more. */
static CUresult attributes(const CUlaunchConfig *c, CUfunction f, const unsigned d[6], unsigned *how)
{
    CUcontext ctx = sg_current();
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < c->numAttrs && r == CUDA_SUCCESS; i++) {
        const CUlaunchAttributeValue *v = &c->attrs[i].value;

        switch ((int)c->attrs[i].id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            if (v->cooperative)
                *how |= COOPERATIVE_LAUNCH;
            break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            if (sg_state.dev[ctx->dev].info->capability < 90)
                r = CUDA_ERROR_NOT_SUPPORTED;
            else
                r = cluster_check(f, d, v->clusterDim.x, v->clusterDim.y, v->clusterDim.z);
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
            if (!sg_is(v->launchCompletionEvent.event, SG_EVENT))
                r = CUDA_ERROR_INVALID_HANDLE;
            else if (!(v->launchCompletionEvent.event->flags & CU_EVENT_DISABLE_TIMING))
                r = CUDA_ERROR_INVALID_VALUE;
            break;
        default:
            if (c->attrs[i].id < 0 || c->attrs[i].id > 16)
                r = CUDA_ERROR_INVALID_VALUE;
        }
    }
    return r;
}

/* Events of a launch are recorded behind it: later than on hardware, where its
 * blocks can do that. */
static CUresult record_events(const CUlaunchConfig *c, bool pt)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < c->numAttrs && r == CUDA_SUCCESS; i++) {
        CUevent e = c->attrs[i].value.launchCompletionEvent.event;

        if (c->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT &&
            c->attrs[i].id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            continue;
        r = pt ? cuEventRecord_ptsz(e, c->hStream) : cuEventRecord(e, c->hStream);
    }
    return r;
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, void **extra, bool pt)
{
    unsigned d[6], how = pt ? PER_THREAD : 0;
    CUresult r;

    SG_ENTER();
    if (!c || (c->numAttrs && !c->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(d, (const unsigned[6]){c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ},
           sizeof(d));
    if (c->numAttrs) {
        if (sg_func_check(f) != CUDA_SUCCESS)
            return CUDA_ERROR_INVALID_HANDLE;
        if (!sg_current())
            return CUDA_ERROR_INVALID_CONTEXT;
        r = attributes(c, f, d, &how);
        if (r != CUDA_SUCCESS)
            return r;
    }
    r = launch(f, d, c->sharedMemBytes, c->hStream, params, extra, how);
    return r == CUDA_SUCCESS && c->numAttrs ? record_events(c, pt) : r;
}

SG_API CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    return launch_ex(c, f, params, extra, false);
}

SG_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    return launch_ex(c, f, params, extra, true);
}

SG_API CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *list, unsigned int n,
                                                     unsigned int flags SG_UNUSED)
{
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    if (!list || !n)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++) {
        CUDA_LAUNCH_PARAMS *p = &list[i];
        const unsigned d[6] = {p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ};

        r = p->hStream > CU_STREAM_PER_THREAD ? launch(p->function, d, p->sharedMemBytes, p->hStream, p->kernelParams, NULL, COOPERATIVE_LAUNCH)
                                              : CUDA_ERROR_INVALID_VALUE;
    }
    return r;
}

/* ---- the first interface: parameters are set one by one, and ignored here ---------------- */

SG_API CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z)
{
    SG_ENTER();
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    if (x <= 0 || y <= 0 || z <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    f->block[0] = x;
    f->block[1] = y;
    f->block[2] = z;
    return CUDA_SUCCESS;
}

SG_API CUresult cuFuncSetSharedSize(CUfunction f, unsigned int n)
{
    SG_ENTER();
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    f->shared = n;
    return CUDA_SUCCESS;
}

SG_API CUresult cuParamSetSize(CUfunction f, unsigned int n SG_UNUSED)
{
    SG_ENTER();
    return sg_func_check(f);
}

SG_API CUresult cuParamSeti(CUfunction f, int at SG_UNUSED, unsigned int v SG_UNUSED)
{
    SG_ENTER();
    return sg_func_check(f);
}

SG_API CUresult cuParamSetf(CUfunction f, int at SG_UNUSED, float v SG_UNUSED)
{
    SG_ENTER();
    return sg_func_check(f);
}

SG_API CUresult cuParamSetv(CUfunction f, int at SG_UNUSED, void *p SG_UNUSED, unsigned int n SG_UNUSED)
{
    SG_ENTER();
    return sg_func_check(f);
}

static CUresult launch_grid(CUfunction f, int w, int h, CUstream s)
{
    unsigned d[6];

    SG_ENTER();
    if (sg_func_check(f) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    if (w <= 0 || h <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(d, (const unsigned[6]){(unsigned)w, (unsigned)h, 1, (unsigned)f->block[0], (unsigned)f->block[1],
                                  (unsigned)f->block[2]}, sizeof(d));
    return launch(f, d, f->shared, s, NULL, NULL, 0);
}

SG_API CUresult cuLaunch(CUfunction f)
{
    return launch_grid(f, 1, 1, NULL);
}

SG_API CUresult cuLaunchGrid(CUfunction f, int w, int h)
{
    return launch_grid(f, w, h, NULL);
}

SG_API CUresult cuLaunchGridAsync(CUfunction f, int w, int h, CUstream s)
{
    return launch_grid(f, w, h, s);
}
