// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Work for the GPU in every form, so that all that the library asks the driver at a
// launch is asked. Nothing is expected of it but that it ends.

#include "walk.h"

static void launch(CUfunction f, CUstream stream)
{
	CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1,
				 .blockDimZ = 1, .hStream = stream};

	for (int i = 0; i < 3; i++) {
		W(cuLaunchKernel)(f, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
		W(cuLaunchKernel_ptsz)(f, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
		W(cuLaunchKernelEx)(&config, f, NULL, NULL);
		W(cuLaunchCooperativeKernel)(f, 1, 1, 1, 32, 1, 1, 0, stream, NULL);
	}
	W(cuStreamSynchronize)(stream);
	W(cuStreamSynchronize_ptsz)(stream);
}

// What is asked of the driver for views, and what is seldom called.
static void seldom(CUfunction f, CUgraphExec run)
{
	CUcontext ctx = NULL;
	size_t a = 0, b = 0;
	unsigned int c = 0, d = 0;

	W(cuMemGetInfo_v2)(&a, &b);
	W(cuMemGetInfo)(&c, &d);
	W(cuDeviceTotalMem_v2)(&a, 0);
	W(cuDeviceTotalMem)(&c, 0);
	if (W(cuCtxAttach)(&ctx, 0) == CUDA_SUCCESS)
		for (int i = 0; i < 4 && W(cuCtxDetach)(ctx) != CUDA_SUCCESS; i++)
			;
	W(cuLaunch)(f);
	W(cuLaunchGrid)(f, 1, 1);
	W(cuLaunchGridAsync)(f, 1, 1, NULL);
	W(cuLaunchKernelEx_ptsz)(&(CUlaunchConfig){1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0}, f, NULL, NULL);
	W(cuLaunchCooperativeKernel_ptsz)(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL);
	W(cuGraphLaunch_ptsz)(run, NULL);
	W(cuCtxSynchronize_v2)(walk_context);
}

static void record(CUfunction f, CUstream stream)
{
	CUgraphExec run = NULL;
	CUgraph graph = NULL;

	if (W(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
		return;
	W(cuLaunchKernel)(f, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	if (W(cuStreamEndCapture)(stream, &graph) != CUDA_SUCCESS && W(cuStreamEndCapture)(stream, &graph) != CUDA_SUCCESS)
		return;
	if (W(cuGraphInstantiateWithFlags)(&run, graph, 0) == CUDA_SUCCESS) {
		for (int i = 0; i < 3; i++)
			W(cuGraphLaunch)(run, stream);
		seldom(f, run);
		W(cuStreamSynchronize)(stream);
		W(cuGraphExecDestroy)(run);
	}
	CU(cuGraphDestroy)(graph);
}

// Managed memory that is moved about.
static void move(void)
{
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	size_t bytes = MIB, first = 0;
	CUdeviceptr p = 0;

	if (W(cuMemAllocManaged)(&p, bytes, 1) != CUDA_SUCCESS)
		return;
	W(cuMemAdvise)(p, bytes, (CUmem_advise)1, 0);
	W(cuMemAdvise_v2)(p, bytes, (CUmem_advise)2, here);
	W(cuMemPrefetchAsync)(p, bytes, 0, NULL);
	W(cuMemPrefetchAsync_ptsz)(p, bytes, 0, NULL);
	W(cuMemPrefetchAsync_v2)(p, bytes, here, 0, NULL);
	W(cuMemPrefetchAsync_v2_ptsz)(p, bytes, here, 0, NULL);
	W(cuMemPrefetchBatchAsync)(&p, &bytes, 1, &here, &first, 1, 0, NULL);
	W(cuMemPrefetchBatchAsync_ptsz)(&p, &bytes, 1, &here, &first, 1, 0, NULL);
	W(cuMemDiscardAndPrefetchBatchAsync)(&p, &bytes, 1, &here, &first, 1, 0, NULL);
	W(cuMemDiscardAndPrefetchBatchAsync_ptsz)(&p, &bytes, 1, &here, &first, 1, 0, NULL);
	W(cuStreamSynchronize)(NULL);
	for (int i = 0; i < 4 && W(cuMemFree_v2)(p) != CUDA_SUCCESS; i++)
		;
}

void walk_launch(void)
{
	CUmodule module = NULL;
	CUfunction f = NULL;
	CUstream stream = NULL;
	CUevent event = NULL;

	move();
	if (W(cuModuleLoadData)(&module, "// any code\n") != CUDA_SUCCESS)
		return;
	if (W(cuModuleGetFunction)(&f, module, "walked") == CUDA_SUCCESS &&
	    W(cuStreamCreate)(&stream, 1) == CUDA_SUCCESS) {
		launch(f, NULL);
		launch(f, stream);
		record(f, stream);
		if (W(cuEventCreate)(&event, 0) == CUDA_SUCCESS) {
			W(cuEventRecord)(event, stream);
			W(cuEventSynchronize)(event);
			W(cuEventDestroy_v2)(event);
		}
	}
	W(cuCtxSynchronize)();
	for (int i = 0; stream && i < 4 && W(cuStreamDestroy_v2)(stream) != CUDA_SUCCESS; i++)
		;
	for (int i = 0; i < 4 && W(cuModuleUnload)(module) != CUDA_SUCCESS; i++)
		;
}
