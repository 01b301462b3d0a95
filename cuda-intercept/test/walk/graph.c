// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Executable graphs and their memory. The simulated driver takes the memory of nodes at
// the launch; making or uploading an executable graph costs nothing on a card that
// counts to the byte. What the device keeps for graphs goes when it is trimmed.

#include "walk.h"

static CUgraph graph;
static CUgraphExec exec;

// A graph that allocates and frees.
static CUresult make_graph_of(size_t bytes)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = bytes,
	};
	CUgraphNode take, give;

	return CU(cuGraphCreate)(&graph, 0) ?: CU(cuGraphAddMemAllocNode)(&take, graph, NULL, 0, &params)
		?: CU(cuGraphAddMemFreeNode)(&give, graph, &take, 1, params.dptr);
}

static CUresult make_graph(void)
{
	return make_graph_of(3 * MIB);
}

static CUresult end_graph(void)
{
	return CU(cuGraphDestroy)(graph);
}

static CUresult take_instantiate(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuGraphInstantiate)(out, graph, NULL, NULL, 0);
}

static CUresult take_instantiate_v2(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuGraphInstantiate_v2)(out, graph, NULL, NULL, 0);
}

static CUresult take_instantiate_flags(void *out, size_t bytes __attribute__((unused)))
{
	return W(cuGraphInstantiateWithFlags)(out, graph, 0);
}

static CUresult take_instantiate_params(void *out, size_t bytes __attribute__((unused)))
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};

	return W(cuGraphInstantiateWithParams)(out, graph, &params);
}

static CUresult take_instantiate_params_ptsz(void *out, size_t bytes __attribute__((unused)))
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD};

	return W(cuGraphInstantiateWithParams_ptsz)(out, graph, &params);
}

static CUresult give_exec(void *out)
{
	return W(cuGraphExecDestroy)(*(CUgraphExec *)out);
}

WALK(cuGraphInstantiate, make_graph, take_instantiate, give_exec, end_graph);
WALK(cuGraphInstantiate_v2, make_graph, take_instantiate_v2, give_exec, end_graph);
WALK(cuGraphInstantiateWithFlags, make_graph, take_instantiate_flags, give_exec, end_graph);
WALK(cuGraphInstantiateWithParams, make_graph, take_instantiate_params, give_exec, end_graph);
WALK(cuGraphInstantiateWithParams_ptsz, make_graph, take_instantiate_params_ptsz, give_exec, end_graph);
WALK(cuGraphExecDestroy, make_graph, take_instantiate_flags, give_exec, end_graph);

static CUresult make_exec(void)
{
	return make_graph() ?: W(cuGraphInstantiateWithFlags)(&exec, graph, 0);
}

static CUresult end_exec(void)
{
	return W(cuGraphExecDestroy)(exec) ?: end_graph();
}

static CUresult take_upload(void *out __attribute__((unused)), size_t bytes __attribute__((unused)))
{
	return W(cuGraphUpload)(exec, NULL);
}

static CUresult take_upload_ptsz(void *out __attribute__((unused)), size_t bytes __attribute__((unused)))
{
	return W(cuGraphUpload_ptsz)(exec, NULL);
}

static CUresult give_nothing(void *out __attribute__((unused)))
{
	return CUDA_SUCCESS;
}

WALK(cuGraphUpload, make_exec, take_upload, give_nothing, end_exec);
WALK(cuGraphUpload_ptsz, make_exec, take_upload_ptsz, give_nothing, end_exec);

// What a launch leaves with the device.
static CUresult take_launch(void *out __attribute__((unused)), size_t bytes)
{
	return make_graph_of(bytes) ?: W(cuGraphInstantiateWithFlags)(&exec, graph, 0) ?: W(cuGraphLaunch)(exec, NULL)
		?: W(cuStreamSynchronize)(NULL) ?: end_exec();
}

static CUresult give_trim(void *out __attribute__((unused)))
{
	return W(cuDeviceGraphMemTrim)(0);
}

WALK(cuDeviceGraphMemTrim, NULL, take_launch, give_trim, NULL);
