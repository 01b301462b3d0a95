// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* stream.c: streams, events and capture. The handles are the driver's own. */
#include "rt.h"

RT_PASS(cudaStreamCreate, cuStreamCreate(s, 0), CUstream *s)
RT_PASS(cudaStreamCreateWithFlags, cuStreamCreate(s, flags), CUstream *s, unsigned int flags)
RT_PASS(cudaStreamCreateWithPriority, cuStreamCreateWithPriority(s, flags, p), CUstream *s, unsigned int flags, int p)
RT_PASS(cudaStreamDestroy, cuStreamDestroy(s), CUstream s)
RT_PASS(cudaStreamQuery, cuStreamQuery(s), CUstream s)
RT_PASS(cudaStreamSynchronize, cuStreamSynchronize(s), CUstream s)
RT_PASS(cudaStreamWaitEvent, cuStreamWaitEvent(s, e, flags), CUstream s, CUevent e, unsigned int flags)
RT_PASS(cudaStreamGetPriority, cuStreamGetPriority(s, p), CUstream s, int *p)
RT_PASS(cudaStreamGetFlags, cuStreamGetFlags(s, flags), CUstream s, unsigned int *flags)
RT_PASS(cudaStreamGetId, cuStreamGetId(s, id), CUstream s, unsigned long long *id)
RT_PASS(cudaStreamCopyAttributes, cuStreamCopyAttributes(to, from), CUstream to, CUstream from)
RT_PASS(cudaStreamGetAttribute, cuStreamGetAttribute(s, a, v), CUstream s, CUstreamAttrID a, CUstreamAttrValue *v)
RT_PASS(cudaStreamSetAttribute, cuStreamSetAttribute(s, a, v), CUstream s, CUstreamAttrID a, const CUstreamAttrValue *v)
RT_PASS(cudaStreamAddCallback, cuStreamAddCallback(s, fn, arg, flags), CUstream s, CUstreamCallback fn, void *arg,
        unsigned int flags)
RT_PASS(cudaStreamAttachMemAsync, cuStreamAttachMemAsync(s, rt_ptr(p), n, flags), CUstream s, void *p, size_t n,
        unsigned int flags)

RT(cudaStreamGetDevice, CUstream s, int *device)
{
    CUcontext c, before;
    cudaError_t e;

    RT_ENTER();
    RT_TRY((cudaError_t)rt_drv.cuStreamGetCtx(s, &c));
    RT_TRY((cudaError_t)rt_drv.cuCtxPushCurrent(c));
    e = (cudaError_t)rt_drv.cuCtxGetDevice(device);
    rt_drv.cuCtxPopCurrent(&before);
    return rt_set(e);
}

RT_PASS(cudaEventCreate, cuEventCreate(e, 0), CUevent *e)
RT_PASS(cudaEventCreateWithFlags, cuEventCreate(e, flags), CUevent *e, unsigned int flags)
RT_PASS(cudaEventDestroy, cuEventDestroy(e), CUevent e)
RT_PASS(cudaEventQuery, cuEventQuery(e), CUevent e)
RT_PASS(cudaEventSynchronize, cuEventSynchronize(e), CUevent e)
RT_PASS(cudaEventRecord, cuEventRecord(e, s), CUevent e, CUstream s)
RT_PASS(cudaEventRecordWithFlags, cuEventRecordWithFlags(e, s, flags), CUevent e, CUstream s, unsigned int flags)
RT_PASS(cudaEventElapsedTime, cuEventElapsedTime(ms, a, b), float *ms, CUevent a, CUevent b)
#if RT_MAJOR == 12
RT_PASS(cudaEventElapsedTime_v2, cuEventElapsedTime(ms, a, b), float *ms, CUevent a, CUevent b)
#endif

/* ---- capture -------------------------------------------------------------------------- */

RT_PASS(cudaStreamBeginCapture, cuStreamBeginCapture(s, mode), CUstream s, CUstreamCaptureMode mode)
RT_PASS(cudaStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph(s, g, v, data, n, mode), CUstream s, CUgraph g,
        const CUgraphNode *v, const CUgraphEdgeData *data, size_t n, CUstreamCaptureMode mode)
RT_PASS(cudaStreamEndCapture, cuStreamEndCapture(s, g), CUstream s, CUgraph *g)
RT_PASS(cudaStreamIsCapturing, cuStreamIsCapturing(s, status), CUstream s, CUstreamCaptureStatus *status)
RT_PASS_BARE(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode(mode), CUstreamCaptureMode *mode)

static cudaError_t info(CUstream s, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *g, const CUgraphNode **v,
                        const CUgraphEdgeData **data, size_t *n)
{
    cuuint64_t number = 0;
    cudaError_t e;

    RT_ENTER();
    e = RT_DRV(cuStreamGetCaptureInfo(s, status, &number, g, v, data, n));
    if (e == RT_OK && id)
        *id = number;
    return e;
}

#if RT_MAJOR == 12
RT(cudaStreamGetCaptureInfo, CUstream s, CUstreamCaptureStatus *status, unsigned long long *id)
{
    return info(s, status, id, NULL, NULL, NULL, NULL);
}
RT(cudaStreamGetCaptureInfo_v2, CUstream s, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *g,
   const CUgraphNode **v, size_t *n)
{
    return info(s, status, id, g, v, NULL, n);
}
RT(cudaStreamGetCaptureInfo_v3, CUstream s, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *g,
   const CUgraphNode **v, const CUgraphEdgeData **data, size_t *n)
{
    return info(s, status, id, g, v, data, n);
}
RT_PASS(cudaStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies(s, v, NULL, n, flags), CUstream s,
        CUgraphNode *v, size_t n, unsigned int flags)
RT_PASS(cudaStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies(s, v, data, n, flags), CUstream s,
        CUgraphNode *v, const CUgraphEdgeData *data, size_t n, unsigned int flags)
#else
RT(cudaStreamGetCaptureInfo, CUstream s, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *g,
   const CUgraphNode **v, const CUgraphEdgeData **data, size_t *n)
{
    return info(s, status, id, g, v, data, n);
}
RT_PASS(cudaStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies(s, v, data, n, flags), CUstream s,
        CUgraphNode *v, const CUgraphEdgeData *data, size_t n, unsigned int flags)
#endif
