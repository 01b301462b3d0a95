// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Executable graphs, and what devices keep for the memory of graphs.

#include "attach.h"
#include "cuda_bodies.h"
#include "cuda_hooks.h"
#include "graph.h"

CUresult gs_cu_instantiate(GS_FN(cuGraphInstantiate_v2) real, CUgraphExec *ret_exec, CUgraph graph,
			   CUgraphNode *ret_node, char *log, size_t log_size)
{
	struct gs_graph_making making;
	CUgraphExec exec = NULL;
	CUresult r = gs_graph_make_begin(&making, graph);

	if (r != CUDA_SUCCESS)
		return r;
	// The other results are of a failure.
	r = real(ret_exec ? &exec : NULL, graph, ret_node, log, log_size);
	gs_graph_make_end(&making, exec, r);
	if (r == CUDA_SUCCESS)
		*ret_exec = exec;
	return r;
}

CUresult gs_cu_instantiate_flags(GS_FN(cuGraphInstantiateWithFlags) real, CUgraphExec *ret_exec, CUgraph graph,
				 unsigned long long flags)
{
	struct gs_graph_making making;
	CUgraphExec exec = NULL;
	CUresult r = gs_graph_make_begin(&making, graph);

	if (r != CUDA_SUCCESS)
		return r;
	r = real(ret_exec ? &exec : NULL, graph, flags);
	gs_graph_make_end(&making, exec, r);
	if (r == CUDA_SUCCESS)
		*ret_exec = exec;
	return r;
}

CUresult gs_cu_instantiate_params(GS_FN(cuGraphInstantiateWithParams) real, CUgraphExec *ret_exec, CUgraph graph,
				  CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	struct gs_graph_making making;
	struct gs_graph_call call = {0};
	CUgraphExec exec = NULL;
	CUresult r = gs_graph_make_begin(&making, graph);

	if (r != CUDA_SUCCESS)
		return r;
	if (params && params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		r = gs_graph_enter_need(&call, &making.need);
	if (r == CUDA_SUCCESS) {
		r = real(ret_exec ? &exec : NULL, graph, params);
		gs_graph_leave(&call, r);
	}
	gs_graph_make_end(&making, exec, r);
	if (r == CUDA_SUCCESS)
		*ret_exec = exec;
	return r;
}

CUresult gs_cu_exec_destroy(GS_FN(cuGraphExecDestroy) real, CUgraphExec exec)
{
	struct gs_graph_ending ending;
	CUresult r;

	gs_graph_end_begin(&ending, exec);
	r = real(exec);
	gs_graph_end_end(&ending, r);
	return r;
}

CUresult gs_cu_graph_upload(GS_FN(cuGraphUpload) real, CUgraphExec exec, CUstream stream)
{
	struct gs_graph_call call;
	CUresult r = gs_graph_enter(&call, exec, stream, real == gs_cuda_real.cuGraphUpload_ptsz);

	if (r != CUDA_SUCCESS)
		return r;
	r = real(exec, stream);
	gs_graph_leave(&call, r);
	return r;
}

CUresult gs_cu_graph_mem_trim(GS_FN(cuDeviceGraphMemTrim) real, CUdevice dev)
{
	CUresult r = real(dev);

	if (r == CUDA_SUCCESS)
		gs_graph_settle(dev);
	return r;
}
