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
    CUresult r;

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

static bool dimensions(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared)
{
    return gx && gy && gz && bx && by && bz && gx <= INT32_MAX && gy <= 65535 && gz <= 65535 && bx <= 1024 &&
           by <= 1024 && bz <= 64 && (uint64_t)bx * by * bz <= 1024 && shared <= SG_MAX_SHARED_MEM;
}

static CUresult launch(CUfunction f, const unsigned d[6], unsigned shared, CUstream h, void **params, void **extra,
                       bool pt)
{
    bool capturing;
    uint32_t number;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (__builtin_expect(sg_func_check(f) != CUDA_SUCCESS, 0))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!dimensions(d[0], d[1], d[2], d[3], d[4], d[5], shared))
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_current())
        return CUDA_ERROR_INVALID_CONTEXT;
    r = sg_stream_of(h, pt, &s);
    if (r == CUDA_SUCCESS)
        r = sg_capturing(s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (__builtin_expect(capturing, 0)) {
        union sg_node_params p = {.kernel = {f, d[0], d[1], d[2], d[3], d[4], d[5], shared, params, extra, NULL, NULL}};

        return sg_capture_add(s, CU_GRAPH_NODE_TYPE_KERNEL, &p);
    }
    r = sg_func_number(f, &number);
    return r == CUDA_SUCCESS ? sg_submit(s, SG_ENTRY_KERNEL, number, 0, NULL) : r;
}

#define KERNEL(name, pt)                                                                                        \
    SG_API CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,      \
                         unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **params,      \
                         void **extra)                                                                          \
    {                                                                                                           \
        const unsigned d[6] = {gx, gy, gz, bx, by, bz};                                                         \
                                                                                                                \
        return launch(f, d, shared, s, params, extra, pt);                                                      \
    }
KERNEL(cuLaunchKernel, false)
KERNEL(cuLaunchKernel_ptsz, true)

#define COOPERATIVE(name, pt)                                                                                   \
    SG_API CUresult name(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,      \
                         unsigned int by, unsigned int bz, unsigned int shared, CUstream s, void **params)      \
    {                                                                                                           \
        const unsigned d[6] = {gx, gy, gz, bx, by, bz};                                                         \
                                                                                                                \
        return launch(f, d, shared, s, params, NULL, pt);                                                       \
    }
COOPERATIVE(cuLaunchCooperativeKernel, false)
COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, void **extra, bool pt)
{
    unsigned d[6];

    if (!c || (c->numAttrs && !c->attrs))
        return sg_ready() ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_INITIALIZED;
    memcpy(d, (const unsigned[6]){c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ},
           sizeof(d));
    return launch(f, d, c->sharedMemBytes, c->hStream, params, extra, pt);
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

        r = p->hStream > CU_STREAM_PER_THREAD ? launch(p->function, d, p->sharedMemBytes, p->hStream, p->kernelParams, NULL, false)
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
    return launch(f, d, f->shared, s, NULL, NULL, false);
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
