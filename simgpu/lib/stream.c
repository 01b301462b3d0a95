// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* stream.c: streams; the two meanings of the handle 0. */
#include "sg.h"

/* Makes a stream. The lock is held. */
CUresult sg_stream_new(CUcontext ctx, uint32_t kind, unsigned flags, int priority, CUstream *ret)
{
    struct sg_request req = {.op = SG_OP_STREAM_CREATE, .ctx = ctx->id, .a = kind, .b = (uint8_t)(int8_t)priority | (uint64_t)ctx->sms << 8};
    struct sg_reply rep;
    CUstream s;
    CUresult r = sg_call(&req, NULL, &rep, NULL, 0, NULL);

    if (r != CUDA_SUCCESS)
        return r;
    s = rep.a < SG_STREAM_SLOTS ? sg_object_new(sizeof(*s)) : NULL;
    if (!s) {
        sg_rpc(SG_OP_STREAM_DESTROY, 0, 0, rep.a, NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    s->magic = SG_STREAM;
    s->slot = (uint32_t)rep.a;
    s->pushed = rep.b;
    s->ctx = ctx;
    s->kind = kind;
    s->flags = flags;
    s->priority = priority;
    s->serial = sg_serial();
    s->next = ctx->streams;
    ctx->streams = s;
    *ret = s;
    return ctx->gate_generation ? sg_submit(s, SG_ENTRY_WAIT, ctx->gate_slot, ctx->gate_generation, NULL) : CUDA_SUCCESS;
}

void sg_stream_drop(CUstream s)
{
    free(s->deps);
    free(s->edges);
    if (s->joint)
        sg_event_drop(s->joint);
    s->magic = 0;
    sg_object_free(s, sizeof(*s));
}

/* The default stream of the calling thread in ctx; made at its first use. A
 * thread id that is used again takes over the stream of the thread before. */
static CUresult per_thread_stream(CUcontext ctx, CUstream *ret)
{
    pthread_t me = pthread_self();
    CUresult r = CUDA_SUCCESS;
    CUstream s;

    sg_lock();
    for (s = ctx->streams; s; s = s->next) {
        if (s->per_thread && pthread_equal(s->thread, me))
            break;
    }
    if (!s) {
        r = sg_stream_new(ctx, SG_STREAM_BLOCKING, 0, 0, &s);
        if (r == CUDA_SUCCESS) {
            s->per_thread = true;
            s->thread = me;
        }
    }
    sg_unlock();
    *ret = s;
    return r;
}

CUresult sg_stream_of(CUstream h, bool per_thread, CUstream *ret)
{
    CUcontext c;

    if (h > CU_STREAM_PER_THREAD) {
        if (!sg_is(h, SG_STREAM))
            return CUDA_ERROR_INVALID_HANDLE;
        *ret = h;
        return sg_ctx_fault(h->ctx);
    }
    c = sg_current();
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!c->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (__builtin_expect(sg_ctx_fault(c) != CUDA_SUCCESS, 0))
        return sg_ctx_fault(c);
    if (h == CU_STREAM_PER_THREAD || (!h && per_thread))
        return per_thread_stream(c, ret);
    *ret = c->legacy;
    return CUDA_SUCCESS;
}

CUresult sg_stream_for_work(CUstream h, bool per_thread, CUstream *ret, bool *ret_capturing)
{
    CUresult r = sg_stream_of(h, per_thread, ret);

    return r == CUDA_SUCCESS ? sg_capturing(*ret, ret_capturing) : r;
}

/* The stream in which a synchronous call runs. */
CUresult sg_stream_for_sync(bool per_thread, CUstream *ret)
{
    CUcontext c = sg_current();
    CUresult r = sg_stream_of(NULL, per_thread, ret);
    bool capturing = false;

    if (r == CUDA_SUCCESS)
        r = sg_capturing(*ret, &capturing);
    if (r == CUDA_SUCCESS && capturing)
        r = sg_capture_spoil(*ret, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return r == CUDA_SUCCESS ? sg_capture_forbids(c) : r;
}

static int in_range(CUcontext c, int priority)
{
    int greatest = 1 - (int)sg_state.dev[c->dev].info->stream_priorities;

    return priority > 0 ? 0 : priority < greatest ? greatest : priority;
}

static CUresult create(CUstream *ps, unsigned flags, int priority)
{
    CUresult r;

    SG_ENTER_CTX(c);
    if (!ps || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = sg_grow_stream(c, true);
    if (r == CUDA_SUCCESS) {
        r = sg_stream_new(c, flags & CU_STREAM_NON_BLOCKING ? SG_STREAM_NONBLOCKING : SG_STREAM_BLOCKING, flags,
                          in_range(c, priority), ps);
        if (r != CUDA_SUCCESS)
            sg_grow_stream(c, false);
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuStreamCreate(CUstream *ps, unsigned int flags)
{
    return create(ps, flags, 0);
}

SG_API CUresult cuStreamCreateWithPriority(CUstream *ps, unsigned int flags, int priority)
{
    return create(ps, flags, priority);
}

SG_API CUresult cuStreamDestroy_v2(CUstream s)
{
    CUstream *p;

    SG_ENTER();
    if (s <= CU_STREAM_PER_THREAD || !sg_is(s, SG_STREAM) || s->kind == SG_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_HANDLE;
    sg_capture_drop_stream(s);
    sg_lock();
    for (p = &s->ctx->streams; *p && *p != s; p = &(*p)->next)
        ;
    if (*p)
        *p = s->next;
    sg_grow_stream(s->ctx, false);
    sg_unlock();
    sg_rpc(SG_OP_STREAM_DESTROY, 0, 0, s->slot, NULL);
    sg_lock();
    if (s->ctx->joiner == s)
        s->ctx->joiner = NULL;
    sg_stream_drop(s);
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API CUresult cuStreamDestroy(CUstream s)
{
    return cuStreamDestroy_v2(s);
}

/* Each call below exists with both meanings of the handle 0. */
#define BOTH(name, params, impl, ...)                                  \
    SG_API CUresult name params { return impl(__VA_ARGS__, false); }    \
    SG_API CUresult name##_ptsz params { return impl(__VA_ARGS__, true); }

/* Waits for s; for the legacy stream, for what it is ordered behind as well. */
CUresult sg_stream_drain(CUstream s)
{
    CUresult r = CUDA_SUCCESS;

    if (s->kind == SG_STREAM_LEGACY) {
        CUstream o;

        sg_lock();
        for (o = s->ctx->streams; o; o = o->next) {
            if (o->kind == SG_STREAM_BLOCKING && !sg_done(o->slot, __atomic_load_n(&o->pushed, __ATOMIC_ACQUIRE)))
                break;
        }
        sg_unlock();
        if (o)
            r = sg_ctx_wait_blocking(s->ctx);
    }
    if (r == CUDA_SUCCESS)
        r = sg_wait(s->slot, __atomic_load_n(&s->pushed, __ATOMIC_ACQUIRE));
    return r == CUDA_SUCCESS ? sg_ctx_fault(s->ctx) : r;
}

static CUresult synchronize(CUstream h, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_for_work(h, pt, &s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (s->kind == SG_STREAM_LEGACY)
        r = sg_capture_forbids(s->ctx);
    if (r == CUDA_SUCCESS)
        r = sg_stream_drain(s);
    if (r == CUDA_SUCCESS)
        sg_pool_sync();
    return r;
}
BOTH(cuStreamSynchronize, (CUstream s), synchronize, s)

static CUresult query(CUstream h, bool pt)
{
    uint64_t pushed;
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_for_work(h, pt, &s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pushed = __atomic_load_n(&s->pushed, __ATOMIC_ACQUIRE);
    return sg_done(s->slot, pushed) || sg_asked(s->slot, pushed) ? CUDA_SUCCESS : sg_not_ready();
}
BOTH(cuStreamQuery, (CUstream s), query, s)

static CUresult get_flags(CUstream h, unsigned *flags, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r == CUDA_SUCCESS && !flags)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *flags = s->flags;
    return r;
}
BOTH(cuStreamGetFlags, (CUstream s, unsigned int *flags), get_flags, s, flags)

static CUresult get_priority(CUstream h, int *priority, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r == CUDA_SUCCESS && !priority)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *priority = s->priority;
    return r;
}
BOTH(cuStreamGetPriority, (CUstream s, int *priority), get_priority, s, priority)

static CUresult get_id(CUstream h, unsigned long long *id, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r == CUDA_SUCCESS && !id)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *id = s->serial;
    return r;
}
BOTH(cuStreamGetId, (CUstream s, unsigned long long *id), get_id, s, id)

static CUresult get_ctx(CUstream h, CUcontext *ctx, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r == CUDA_SUCCESS && !ctx)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *ctx = s->ctx;
    return r;
}
BOTH(cuStreamGetCtx, (CUstream s, CUcontext *ctx), get_ctx, s, ctx)

static CUresult get_ctx_v2(CUstream h, CUcontext *ctx, CUgreenCtx *green, bool pt)
{
    CUresult r = get_ctx(h, ctx, pt);

    /* One of the two says which context it is. */
    if (r == CUDA_SUCCESS && green)
        *green = (*ctx)->green;
    if (r == CUDA_SUCCESS && green && *green)
        *ctx = NULL;
    return r;
}
BOTH(cuStreamGetCtx_v2, (CUstream s, CUcontext *ctx, CUgreenCtx *green), get_ctx_v2, s, ctx, green)

static CUresult get_device(CUstream h, CUdevice *dev, bool pt)
{
    CUcontext c;
    CUresult r = get_ctx(h, &c, pt);

    if (r == CUDA_SUCCESS && !dev)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *dev = c->dev;
    return r;
}
BOTH(cuStreamGetDevice, (CUstream s, CUdevice *dev), get_device, s, dev)

/* Attributes that are kept; of them only the priority has an effect here. */
static CUstreamAttrValue *kept(CUstream s, CUstreamAttrID a)
{
    switch ((int)a) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return &s->attributes[0];
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return &s->attributes[1];
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return &s->attributes[2];
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return &s->attributes[3];
    default:
        return NULL;
    }
}

static CUresult get_attribute(CUstream h, CUstreamAttrID a, CUstreamAttrValue *v, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (!v || (!kept(s, a) && a != CU_LAUNCH_ATTRIBUTE_PRIORITY))
        return CUDA_ERROR_INVALID_VALUE;
    memset(v, 0, sizeof(*v));
    if (kept(s, a))
        *v = *kept(s, a);
    else
        v->priority = s->priority;
    return CUDA_SUCCESS;
}
BOTH(cuStreamGetAttribute, (CUstream s, CUstreamAttrID a, CUstreamAttrValue *v), get_attribute, s, a, v)

static CUresult set_attribute(CUstream h, CUstreamAttrID a, const CUstreamAttrValue *v, bool pt)
{
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(h, pt, &s);
    if (r != CUDA_SUCCESS)
        return r;
    if (!v || (!kept(s, a) && a != CU_LAUNCH_ATTRIBUTE_PRIORITY))
        return CUDA_ERROR_INVALID_VALUE;
    if (kept(s, a)) {
        *kept(s, a) = *v;
        return CUDA_SUCCESS;
    }
    s->priority = in_range(s->ctx, v->priority);
    sg_tell(SG_OP_STREAM_PRIORITY, s->slot, (uint8_t)(int8_t)s->priority);
    return CUDA_SUCCESS;
}
BOTH(cuStreamSetAttribute, (CUstream s, CUstreamAttrID a, const CUstreamAttrValue *v), set_attribute, s, a, v)

static CUresult copy_attributes(CUstream dst, CUstream src, bool pt)
{
    CUstream d, s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_of(dst, pt, &d);
    if (r == CUDA_SUCCESS)
        r = sg_stream_of(src, pt, &s);
    if (r != CUDA_SUCCESS || s == d)
        return r;
    memcpy(d->attributes, s->attributes, sizeof(d->attributes));
    d->priority = s->priority;
    sg_tell(SG_OP_STREAM_PRIORITY, d->slot, (uint8_t)(int8_t)d->priority);
    return CUDA_SUCCESS;
}
BOTH(cuStreamCopyAttributes, (CUstream dst, CUstream src), copy_attributes, dst, src)

static CUresult attach(CUstream h, CUdeviceptr p, size_t n, unsigned flags, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    r = sg_stream_for_work(h, pt, &s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    return sg_mem_ours(p, n ? n : 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
BOTH(cuStreamAttachMemAsync, (CUstream s, CUdeviceptr p, size_t n, unsigned int flags), attach, s, p, n, flags)

/* ---- host functions --------------------------------------------------------- */

static CUresult host_func(CUstream h, CUhostFn fn, void *arg, bool pt)
{
    union sg_node_params p = {.host = {fn, arg}};
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_for_work(h, pt, &s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_add(s, CU_GRAPH_NODE_TYPE_HOST, &p);
    return sg_host_function(s, fn, arg, NULL);
}
BOTH(cuLaunchHostFunc, (CUstream s, CUhostFn fn, void *arg), host_func, s, fn, arg)

/* How the thread that calls the function waits for it makes no difference here. */
static CUresult host_func_mode(CUstream h, CUhostFn fn, void *arg, unsigned mode, bool pt)
{
    enum { BLOCKING, SPINNING };

    SG_ENTER();
    return mode > SPINNING ? CUDA_ERROR_INVALID_VALUE : host_func(h, fn, arg, pt);
}
CUresult cuLaunchHostFunc_v2(CUstream, CUhostFn, void *, unsigned int);
CUresult cuLaunchHostFunc_v2_ptsz(CUstream, CUhostFn, void *, unsigned int);
BOTH(cuLaunchHostFunc_v2, (CUstream s, CUhostFn fn, void *arg, unsigned int mode), host_func_mode, s, fn, arg, mode)

static CUresult add_callback(CUstream h, CUstreamCallback cb, void *arg, unsigned flags, bool pt)
{
    bool capturing;
    CUstream s;
    CUresult r;

    SG_ENTER();
    if (!cb || flags)
        return CUDA_ERROR_INVALID_VALUE;
    r = sg_stream_for_work(h, pt, &s, &capturing);
    if (r != CUDA_SUCCESS)
        return r;
    if (capturing)
        return sg_capture_spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return sg_host_function(s, NULL, arg, cb);
}
BOTH(cuStreamAddCallback, (CUstream s, CUstreamCallback cb, void *arg, unsigned int flags),
     add_callback, s, cb, arg, flags)
