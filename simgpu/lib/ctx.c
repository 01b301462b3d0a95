// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* ctx.c: contexts, explicit and primary, and which one a thread works in. */
#include "sg.h"

struct thread {
    CUcontext top;
    CUcontext *below; /* contexts under top, oldest first */
    unsigned n, cap;
};
static __thread struct thread self;

static CUcontext all;  /* explicit contexts */
static CUcontext dead; /* whose handles threads may still hold */

unsigned long long sg_serial(void)
{
    return ++sg_state.serial;
}

struct sg_device *sg_dev(CUdevice dev)
{
    return dev >= 0 && (unsigned)dev < sg_state.ndev ? &sg_state.dev[dev] : NULL;
}

/* The legacy and per-thread interfaces alike start from this. */
CUcontext sg_current(void)
{
    return self.top;
}

static CUresult push(CUcontext c)
{
    if (self.top) {
        if (self.n == self.cap) {
            unsigned cap = self.cap ? self.cap * 2 : 8;
            CUcontext *b = realloc(self.below, cap * sizeof(*b));

            if (!b)
                return CUDA_ERROR_OUT_OF_MEMORY;
            self.below = b;
            self.cap = cap;
        }
        self.below[self.n++] = self.top;
    }
    self.top = c;
    return CUDA_SUCCESS;
}

static CUcontext pop(void)
{
    CUcontext c = self.top;

    self.top = self.n ? self.below[--self.n] : NULL;
    if (!self.n) {
        free(self.below);
        self.below = NULL;
        self.cap = 0;
    }
    return c;
}

static bool valid(CUcontext c)
{
    return sg_is(c, SG_CTX) && c->alive;
}

/* What a client of MPS may use of the multiprocessors, percent; the host asks
 * for it only on a card that is shared so. */
static uint64_t mps_percent(void)
{
    const char *v = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double p = v ? strtod(v, NULL) : 0;

    return p > 0 && p <= 100 ? (uint64_t)(p + 0.999) : 100;
}

/* Starts a context on the GPU: its memory, and its default stream. */
static CUresult begin(CUcontext c, CUdevice dev, unsigned flags)
{
    static const size_t limits[] = {
        [CU_LIMIT_STACK_SIZE] = 1024,
        [CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
        [CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
        [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
        [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
    };
    struct sg_request req = {.op = SG_OP_CTX_CREATE, .gpu = sg_state.dev[dev].index, .b = mps_percent()};
    struct sg_reply rep;
    CUresult r = sg_call(&req, NULL, &rep, NULL, 0, NULL);

    if (r != CUDA_SUCCESS)
        return r;
    c->magic = SG_CTX;
    c->id = (uint32_t)rep.a;
    c->dev = dev;
    c->flags = flags;
    c->streams = c->joiner = NULL;
    c->gate_generation = 0;
    c->serial = sg_serial();
    memset(c->peers, 0, sizeof(c->peers));
    memset(c->limits, 0, sizeof(c->limits));
    memcpy(c->limits, limits, sizeof(limits));
    c->alive = true;
    r = sg_stream_new(c, SG_STREAM_LEGACY, 0, 0, &c->legacy);
    if (r != CUDA_SUCCESS) {
        c->alive = false;
        sg_rpc(SG_OP_CTX_DESTROY, 0, c->id, 0, NULL);
    }
    return r;
}

/* Ends a context with all that belongs to it. The lock is held. */
static void end(CUcontext c)
{
    if (c->primary)
        sg_green_end(c);
    c->alive = false;
    while (c->streams) {
        CUstream s = c->streams;

        sg_capture_drop_stream(s);
        sg_host_forget(s);
        c->streams = s->next;
        sg_stream_drop(s);
    }
    c->legacy = NULL;
    sg_rpc(SG_OP_CTX_DESTROY, 0, c->id, 0, NULL);
    sg_array_free_context(c);
    sg_mem_free_context(c);
    sg_module_free_context(c);
    sg_grow_end(c);
}

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev, unsigned version)
{
    CUcontext c;
    CUresult r;

    SG_ENTER();
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    c = sg_object_new(sizeof(*c));
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->api_version = version;
    sg_lock();
    r = begin(c, dev, flags);
    if (r == CUDA_SUCCESS) {
        c->next = all;
        all = c;
        c->attached = 1;
    }
    sg_unlock();
    if (r == CUDA_SUCCESS)
        r = push(c);
    if (r != CUDA_SUCCESS) {
        if (!c->alive)
            sg_object_free(c, sizeof(*c));
        return r;
    }
    *pctx = c;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return create(pctx, flags, dev, 2000);
}

SG_API CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return create(pctx, flags, dev, 3020);
}

SG_API CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *affinity, int n, unsigned int flags, CUdevice dev)
{
    if (n > 0)
        return affinity ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : CUDA_ERROR_INVALID_VALUE;
    return create(pctx, flags, dev, 3020);
}

SG_API CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *p, unsigned int flags, CUdevice dev)
{
    if (p && p->numExecAffinityParams > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (p && p->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(pctx, flags, dev, 3020);
}

static void forget(CUcontext c)
{
    for (CUcontext *p = &all; *p; p = &(*p)->next) {
        if (*p == c) {
            *p = c->next;
            return;
        }
    }
}

SG_API CUresult cuCtxDestroy_v2(CUcontext c)
{
    SG_ENTER();
    if (!valid(c))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    sg_ctx_wait(c);
    sg_lock();
    if (!c->alive) {
        sg_unlock();
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    end(c);
    forget(c);
    /* The structure stays: other threads may still have it current, and must
     * be told so. */
    c->next = dead;
    dead = c;
    sg_unlock();
    if (self.top == c)
        pop();
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxDestroy(CUcontext c)
{
    return cuCtxDestroy_v2(c);
}

SG_API CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    SG_ENTER_CTX(c);
    if (!pctx || flags)
        return CUDA_ERROR_INVALID_VALUE;
    c->attached++;
    *pctx = c;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxDetach(CUcontext c)
{
    SG_ENTER();
    if (!valid(c))
        return CUDA_ERROR_INVALID_CONTEXT;
    return --c->attached ? CUDA_SUCCESS : cuCtxDestroy_v2(c);
}

SG_API CUresult cuCtxPushCurrent_v2(CUcontext c)
{
    SG_ENTER();
    return valid(c) ? push(c) : CUDA_ERROR_INVALID_CONTEXT;
}

SG_API CUresult cuCtxPushCurrent(CUcontext c)
{
    return cuCtxPushCurrent_v2(c);
}

SG_API CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
    CUcontext c;

    SG_ENTER();
    if (!self.top)
        return CUDA_ERROR_INVALID_CONTEXT;
    c = pop();
    if (pctx)
        *pctx = c;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxPopCurrent(CUcontext *pctx)
{
    return cuCtxPopCurrent_v2(pctx);
}

SG_API CUresult cuCtxSetCurrent(CUcontext c)
{
    SG_ENTER();
    if (!c) {
        if (self.top)
            pop();
        return CUDA_SUCCESS;
    }
    if (!valid(c))
        return CUDA_ERROR_INVALID_CONTEXT;
    self.top = c;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    SG_ENTER();
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = self.top;
    return CUDA_SUCCESS;
}

SG_API CUresult cuCtxGetDevice(CUdevice *dev)
{
    SG_ENTER_CTX(c);
    if (!dev)
        return CUDA_ERROR_INVALID_VALUE;
    *dev = c->dev;
    return CUDA_SUCCESS;
}

/* ---- primary contexts ----------------------------------------------------- */

SG_API CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct sg_device *d;
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    d = sg_dev(dev);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    if (!d->primary.alive) {
        d->primary.primary = true;
        d->primary.api_version = 3020;
        r = begin(&d->primary, dev, d->primary_flags);
    }
    if (r == CUDA_SUCCESS) {
        d->primary_refs++;
        *pctx = &d->primary;
    }
    sg_unlock();
    return r;
}

static CUresult primary_end(CUdevice dev, bool reset)
{
    struct sg_device *d;
    CUresult r = CUDA_SUCCESS;

    SG_ENTER();
    d = sg_dev(dev);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    if (d->primary.alive && (reset || d->primary_refs == 1))
        sg_ctx_wait(&d->primary);
    sg_lock();
    if (reset) {
        if (d->primary.alive)
            end(&d->primary);
        /* The references stay; the next retain makes a new context. */
    } else if (!d->primary_refs) {
        r = CUDA_ERROR_INVALID_CONTEXT;
    } else if (--d->primary_refs == 0 && d->primary.alive) {
        end(&d->primary);
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return primary_end(dev, false);
}

SG_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return primary_end(dev, false);
}

SG_API CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
    return primary_end(dev, true);
}

SG_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return primary_end(dev, true);
}

SG_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    struct sg_device *d;

    SG_ENTER();
    d = sg_dev(dev);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    d->primary_flags = flags;
    if (d->primary.alive)
        d->primary.flags = flags;
    return CUDA_SUCCESS;
}

SG_API CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    struct sg_device *d;

    SG_ENTER();
    d = sg_dev(dev);
    if (d && d->primary.alive)
        return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

SG_API CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    struct sg_device *d;

    SG_ENTER();
    d = sg_dev(dev);
    if (!d)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = d->primary_flags;
    *active = d->primary.alive;
    return CUDA_SUCCESS;
}
