// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* handles.c: handles of objects that are gone, of another kind, or of nothing. */
#include "t.h"

static char elsewhere[256];

/* Every call must refuse h; none may crash. */
static void refuse_all(void *h)
{
    CUdeviceptr p;
    CUcontext c;
    CUfunction f;
    CUstream s = h;
    CUdevice d;
    size_t n;
    float ms;
    int v;

    TRUE(cuStreamSynchronize(s) != CUDA_SUCCESS);
    TRUE(cuStreamQuery(s) != CUDA_SUCCESS);
    TRUE(cuStreamDestroy_v2(s) != CUDA_SUCCESS);
    TRUE(cuStreamGetCtx(s, &c) != CUDA_SUCCESS);
    TRUE(cuEventRecord(h, NULL) != CUDA_SUCCESS);
    TRUE(cuEventQuery(h) != CUDA_SUCCESS);
    TRUE(cuEventElapsedTime(&ms, h, h) != CUDA_SUCCESS);
    TRUE(cuEventDestroy_v2(h) != CUDA_SUCCESS);
    TRUE(cuStreamWaitEvent(NULL, h, 0) != CUDA_SUCCESS);
    TRUE(cuModuleGetFunction(&f, h, "k") != CUDA_SUCCESS);
    TRUE(cuModuleUnload(h) != CUDA_SUCCESS);
    TRUE(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_NUM_REGS, h) != CUDA_SUCCESS);
    TRUE(cuLaunchKernel(h, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) != CUDA_SUCCESS);
    TRUE(cuGraphLaunch(h, NULL) != CUDA_SUCCESS);
    TRUE(cuGraphDestroy(h) != CUDA_SUCCESS);
    TRUE(cuGraphGetNodes(h, NULL, &n) != CUDA_SUCCESS);
    TRUE(cuGraphDestroyNode(h) != CUDA_SUCCESS);
    TRUE(cuGraphExecDestroy(h) != CUDA_SUCCESS);
    TRUE(cuMemPoolDestroy(h) != CUDA_SUCCESS);
    TRUE(cuMemAllocFromPoolAsync(&p, 64, h, NULL) != CUDA_SUCCESS);
    TRUE(cuArrayDestroy(h) != CUDA_SUCCESS);
    TRUE(cuCtxDestroy_v2(h) != CUDA_SUCCESS);
    TRUE(cuCtxSetCurrent(h) != CUDA_SUCCESS);
    TRUE(cuCtxGetDevice(&d) == CUDA_SUCCESS);
    TRUE(cuUserObjectRelease(h, 1) != CUDA_SUCCESS);
    TRUE(cuLinkDestroy(h) != CUDA_SUCCESS);
}

int main(void)
{
    CUdevice dev;
    CUcontext ctx;
    CUevent e;
    CUstream s;
    CUgraph g;

    TRUE(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&dev, 0) == CUDA_SUCCESS);
    TRUE(cuCtxCreate_v2(&ctx, 0, dev) == CUDA_SUCCESS);

    refuse_all((void *)16);
    refuse_all(elsewhere);
    refuse_all(elsewhere + 3);
    refuse_all((void *)~(uintptr_t)4095);

    TRUE(cuEventCreate(&e, 0) == CUDA_SUCCESS && cuStreamCreate(&s, 0) == CUDA_SUCCESS);
    TRUE(cuGraphCreate(&g, 0) == CUDA_SUCCESS);
    TRUE(cuEventRecord((CUevent)s, NULL) == CUDA_ERROR_INVALID_HANDLE);
    TRUE(cuStreamSynchronize((CUstream)e) == CUDA_ERROR_INVALID_HANDLE);
    TRUE(cuEventDestroy_v2(e) == CUDA_SUCCESS && cuStreamDestroy_v2(s) == CUDA_SUCCESS);
    TRUE(cuGraphDestroy(g) == CUDA_SUCCESS);
    refuse_all(e);
    refuse_all(s);
    refuse_all(g);
    TRUE(cuEventDestroy_v2(e) == CUDA_ERROR_INVALID_HANDLE);
    return 0;
}
