// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* ctxinfo.c: what a program asks of, or sets on, the current context. */
#include "sg.h"

SG_API CUresult cuCtxSynchronize(void)
{
    CUresult r;

    SG_ENTER_CTX(c);
    r = sg_capture_forbids(c);
    if (r == CUDA_SUCCESS)
        r = sg_ctx_wait(c);
    if (r == CUDA_SUCCESS)
        sg_pool_sync();
    return r;
}

SG_API CUresult cuCtxGetFlags(unsigned int *flags)
{
    SG_ENTER_CTX(c);
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = c->flags;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxSetFlags(unsigned int flags)
{
    SG_ENTER_CTX(c);
    if (flags & ~CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    c->flags = flags;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxGetId(CUcontext h, unsigned long long *id)
{
    SG_ENTER_CTX(c);
    if (!id)
        return CUDA_ERROR_INVALID_VALUE;
    if (h && (!sg_is(h, SG_CTX) || !h->alive))
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = (h ? h : c)->serial;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxGetApiVersion(CUcontext h, unsigned int *version)
{
    SG_ENTER();
    if (!h)
        h = sg_current();
    if (!sg_is(h, SG_CTX) || !h->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = h->api_version;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
    SG_ENTER_CTX(c);
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= SG_LEN(c->limits) || (unsigned)limit >= (unsigned)CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = c->limits[limit];
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUresult r;

    SG_ENTER_CTX(c);
    if ((unsigned)limit >= SG_LEN(c->limits) || (unsigned)limit >= (unsigned)CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    r = sg_grow_limit(c, limit, value);
    if (r == CUDA_SUCCESS)
        c->limits[limit] = value;
    return r;
}

SG_API CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    SG_ENTER_CTX(c);
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = c->cache;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    SG_ENTER_CTX(c);
    c->cache = config;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    SG_ENTER_CTX(c);
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    *config = c->shared_config;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    SG_ENTER_CTX(c);
    c->shared_config = config;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    SG_ENTER_CTX(c);
    if (least)
        *least = 0;
    if (greatest)
        *greatest = 1 - (int)sg_state.dev[c->dev].info->stream_priorities;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxResetPersistingL2Cache(void)
{
    SG_ENTER_CTX(c);
    (void)c;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxGetExecAffinity(CUexecAffinityParam *p, CUexecAffinityType type)
{
    SG_ENTER_CTX(c);
    if (!p || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    p->type = type;
    p->param.smCount.val = sg_state.dev[c->dev].info->multiprocessors;
    return CUDA_SUCCESS;
}

SG_API CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                           CUflushGPUDirectRDMAWritesScope scope SG_UNUSED)
{
    SG_ENTER_CTX(c);
    (void)c;
    return target ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
