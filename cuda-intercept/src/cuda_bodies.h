// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Bodies of the wrappers of libcuda.so.1. real is the driver's function; the
// rest are the caller's arguments. Outputs are set only on success.

#ifndef GS_CUDA_BODIES_H
#define GS_CUDA_BODIES_H

#include "cuda_abi.h"
#include "gate.h"

#define GS_FN(symbol) __typeof__(symbol) *

// cuda_init.c
CUresult gs_cu_init(GS_FN(cuInit) real, unsigned int flags);

// cuda_lookup.c
CUresult gs_cu_get_proc(GS_FN(cuGetProcAddress) real, const char *name, void **ret_fn, int version,
			cuuint64_t flags);
CUresult gs_cu_get_proc_v2(GS_FN(cuGetProcAddress_v2) real, const char *name, void **ret_fn, int version,
			   cuuint64_t flags, CUdriverProcAddressQueryResult *ret_status);
CUresult gs_cu_export_table(GS_FN(cuGetExportTable) real, const void **ret_table, const CUuuid *id);
// gs_export_tables_count writes to the ledger what was counted before there was one.
void gs_export_tables_count(void);

// cuda_alloc.c
CUresult gs_cu_alloc(GS_FN(cuMemAlloc_v2) real, CUdeviceptr *ret_ptr, size_t bytes);
CUresult gs_cu_alloc_v1(GS_FN(cuMemAlloc) real, CUdeviceptr_v1 *ret_ptr, unsigned int bytes);
CUresult gs_cu_managed(GS_FN(cuMemAllocManaged) real, CUdeviceptr *ret_ptr, size_t bytes, unsigned int flags);
CUresult gs_cu_pitch(GS_FN(cuMemAllocPitch_v2) real, CUdeviceptr *ret_ptr, size_t *ret_pitch, size_t width,
		     size_t height, unsigned int element);
CUresult gs_cu_pitch_v1(GS_FN(cuMemAllocPitch) real, CUdeviceptr_v1 *ret_ptr, unsigned int *ret_pitch,
			unsigned int width, unsigned int height, unsigned int element);
CUresult gs_cu_free(GS_FN(cuMemFree_v2) real, CUdeviceptr ptr);
CUresult gs_cu_free_v1(GS_FN(cuMemFree) real, CUdeviceptr_v1 ptr);

// cuda_spill.c
CUresult gs_cu_spill_alloc(GS_FN(cuMemAlloc_v2) real, CUdeviceptr *ret_ptr, size_t bytes);
CUresult gs_cu_spill_managed(GS_FN(cuMemAllocManaged) real, CUdeviceptr *ret_ptr, size_t bytes, unsigned int flags);
CUresult gs_cu_spill_pitch(GS_FN(cuMemAllocPitch_v2) real, CUdeviceptr *ret_ptr, size_t *ret_pitch, size_t width,
			   size_t height, unsigned int element);
CUresult gs_cu_spill_free(GS_FN(cuMemFree_v2) real, CUdeviceptr ptr);
CUresult gs_cu_spill_free_async(GS_FN(cuMemFreeAsync) real, CUdeviceptr ptr, CUstream stream);

// cuda_advice.c
CUresult gs_cu_advise(GS_FN(cuMemAdvise) real, CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice dev);
CUresult gs_cu_advise_v2(GS_FN(cuMemAdvise_v2) real, CUdeviceptr ptr, size_t bytes, CUmem_advise advice,
			 CUmemLocation where);
CUresult gs_cu_prefetch(GS_FN(cuMemPrefetchAsync) real, CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream);
CUresult gs_cu_prefetch_v2(GS_FN(cuMemPrefetchAsync_v2) real, CUdeviceptr ptr, size_t bytes, CUmemLocation where,
			   unsigned int flags, CUstream stream);
CUresult gs_cu_prefetch_batch(GS_FN(cuMemPrefetchBatchAsync) real, CUdeviceptr *ptrs, size_t *sizes, size_t count,
			      CUmemLocation *where, size_t *first, size_t wheres, unsigned long long flags,
			      CUstream stream);

// cuda_pool.c
CUresult gs_cu_alloc_async(GS_FN(cuMemAllocAsync) real, CUdeviceptr *ret_ptr, size_t bytes, CUstream stream);
CUresult gs_cu_alloc_from_pool(GS_FN(cuMemAllocFromPoolAsync) real, CUdeviceptr *ret_ptr, size_t bytes,
			       CUmemoryPool pool, CUstream stream);
CUresult gs_cu_free_async(GS_FN(cuMemFreeAsync) real, CUdeviceptr ptr, CUstream stream);
CUresult gs_cu_pool_create(GS_FN(cuMemPoolCreate) real, CUmemoryPool *ret_pool, const CUmemPoolProps *props);
CUresult gs_cu_pool_located(GS_FN(cuMemGetMemPool) real, CUmemoryPool *ret_pool, CUmemLocation *where,
			    CUmemAllocationType type);
CUresult gs_cu_pool_destroy(GS_FN(cuMemPoolDestroy) real, CUmemoryPool pool);
CUresult gs_cu_pool_trim(GS_FN(cuMemPoolTrimTo) real, CUmemoryPool pool, size_t keep);
CUresult gs_cu_pool_set_attribute(GS_FN(cuMemPoolSetAttribute) real, CUmemoryPool pool,
				  CUmemPool_attribute attribute, void *value);

// cuda_graph.c
CUresult gs_cu_instantiate(GS_FN(cuGraphInstantiate_v2) real, CUgraphExec *ret_exec, CUgraph graph,
			   CUgraphNode *ret_node, char *log, size_t log_size);
CUresult gs_cu_instantiate_flags(GS_FN(cuGraphInstantiateWithFlags) real, CUgraphExec *ret_exec, CUgraph graph,
				 unsigned long long flags);
CUresult gs_cu_instantiate_params(GS_FN(cuGraphInstantiateWithParams) real, CUgraphExec *ret_exec, CUgraph graph,
				  CUDA_GRAPH_INSTANTIATE_PARAMS *params);
CUresult gs_cu_exec_destroy(GS_FN(cuGraphExecDestroy) real, CUgraphExec exec);
CUresult gs_cu_graph_upload(GS_FN(cuGraphUpload) real, CUgraphExec exec, CUstream stream);
CUresult gs_cu_graph_mem_trim(GS_FN(cuDeviceGraphMemTrim) real, CUdevice dev);

// cuda_vmm.c
CUresult gs_cu_mem_create(GS_FN(cuMemCreate) real, CUmemGenericAllocationHandle *ret_handle, size_t bytes,
			  const CUmemAllocationProp *prop, unsigned long long flags);
CUresult gs_cu_mem_release(GS_FN(cuMemRelease) real, CUmemGenericAllocationHandle handle);
CUresult gs_cu_mem_retain(GS_FN(cuMemRetainAllocationHandle) real, CUmemGenericAllocationHandle *ret_handle,
			  void *address);
CUresult gs_cu_mem_map(GS_FN(cuMemMap) real, CUdeviceptr ptr, size_t bytes, size_t offset,
		       CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult gs_cu_mem_unmap(GS_FN(cuMemUnmap) real, CUdeviceptr ptr, size_t bytes);

// cuda_vmmshare.c
CUresult gs_cu_mem_export(GS_FN(cuMemExportToShareableHandle) real, void *ret_handle,
			  CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
			  unsigned long long flags);
CUresult gs_cu_mem_import(GS_FN(cuMemImportFromShareableHandle) real, CUmemGenericAllocationHandle *ret_handle,
			  void *os_handle, CUmemAllocationHandleType type);
CUresult gs_cu_range_handle(GS_FN(cuMemGetHandleForAddressRange) real, void *ret_handle, CUdeviceptr ptr, size_t bytes,
			    CUmemRangeHandleType type, unsigned long long flags);

// cuda_ipc.c
CUresult gs_cu_ipc_get(GS_FN(cuIpcGetMemHandle) real, CUipcMemHandle *ret_handle, CUdeviceptr ptr);
CUresult gs_cu_ipc_open(GS_FN(cuIpcOpenMemHandle_v2) real, CUdeviceptr *ret_ptr, CUipcMemHandle handle,
			unsigned int flags);
CUresult gs_cu_ipc_close(GS_FN(cuIpcCloseMemHandle) real, CUdeviceptr ptr);

// cuda_poolshare.c
CUresult gs_cu_pool_export(GS_FN(cuMemPoolExportPointer) real, CUmemPoolPtrExportData *ret_data, CUdeviceptr ptr);
CUresult gs_cu_pool_import(GS_FN(cuMemPoolImportPointer) real, CUdeviceptr *ret_ptr, CUmemoryPool pool,
			   CUmemPoolPtrExportData *data);

// cuda_extmem.c
CUresult gs_cu_external_import(GS_FN(cuImportExternalMemory) real, CUexternalMemory *ret_memory,
			       const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc);
CUresult gs_cu_external_destroy(GS_FN(cuDestroyExternalMemory) real, CUexternalMemory memory);
CUresult gs_cu_external_buffer(GS_FN(cuExternalMemoryGetMappedBuffer) real, CUdeviceptr *ret_ptr,
			       CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc);
CUresult gs_cu_external_mipmap(GS_FN(cuExternalMemoryGetMappedMipmappedArray) real, CUmipmappedArray *ret_array,
			       CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc);

// cuda_bind.c
CUresult gs_cu_multicast_create(GS_FN(cuMulticastCreate) real, CUmemGenericAllocationHandle *ret_handle,
				const CUmulticastObjectProp *prop);
CUresult gs_cu_multicast_bind_mem(GS_FN(cuMulticastBindMem) real, CUmemGenericAllocationHandle object, size_t at,
				  CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
				  unsigned long long flags);
CUresult gs_cu_multicast_bind_mem_v2(GS_FN(cuMulticastBindMem_v2) real, CUmemGenericAllocationHandle object,
				     CUdevice dev, size_t at, CUmemGenericAllocationHandle handle, size_t offset,
				     size_t bytes, unsigned long long flags);
CUresult gs_cu_multicast_bind_addr(GS_FN(cuMulticastBindAddr) real, CUmemGenericAllocationHandle object, size_t at,
				   CUdeviceptr ptr, size_t bytes, unsigned long long flags);
CUresult gs_cu_multicast_bind_addr_v2(GS_FN(cuMulticastBindAddr_v2) real, CUmemGenericAllocationHandle object,
				      CUdevice dev, size_t at, CUdeviceptr ptr, size_t bytes,
				      unsigned long long flags);
CUresult gs_cu_multicast_unbind(GS_FN(cuMulticastUnbind) real, CUmemGenericAllocationHandle object, CUdevice dev,
				size_t at, size_t bytes);
CUresult gs_cu_endpoint_bind_mem(GS_FN(cuLogicalEndpointBindMem) real, CUlogicalEndpointId id, CUdevice dev,
				 cuuint64_t at, CUmemGenericAllocationHandle handle, cuuint64_t offset,
				 cuuint64_t bytes, unsigned long long flags);
CUresult gs_cu_endpoint_bind_addr(GS_FN(cuLogicalEndpointBindAddr) real, CUlogicalEndpointId id, CUdevice dev,
				  cuuint64_t at, void *ptr, cuuint64_t bytes, unsigned long long flags);
CUresult gs_cu_endpoint_unbind(GS_FN(cuLogicalEndpointUnbind) real, CUlogicalEndpointId id, CUdevice dev,
			       cuuint64_t at, cuuint64_t bytes);
CUresult gs_cu_endpoint_destroy(GS_FN(cuLogicalEndpointDestroy) real, CUlogicalEndpointId id);
CUresult gs_cu_map_tiles(GS_FN(cuMemMapArrayAsync) real, CUarrayMapInfo *list, unsigned int n, CUstream stream);

// cuda_checkpoint.c
CUresult gs_cu_checkpoint_restore(GS_FN(cuCheckpointProcessRestore) real, int pid, CUcheckpointRestoreArgs *args);

// cuda_array.c
CUresult gs_cu_array_create(GS_FN(cuArrayCreate_v2) real, CUarray *ret_array, const CUDA_ARRAY_DESCRIPTOR *d);
CUresult gs_cu_array_create_v1(GS_FN(cuArrayCreate) real, CUarray *ret_array, const CUDA_ARRAY_DESCRIPTOR_v1 *d);
CUresult gs_cu_array3d_create(GS_FN(cuArray3DCreate_v2) real, CUarray *ret_array,
			      const CUDA_ARRAY3D_DESCRIPTOR *d);
CUresult gs_cu_array3d_create_v1(GS_FN(cuArray3DCreate) real, CUarray *ret_array,
				 const CUDA_ARRAY3D_DESCRIPTOR_v1 *d);
CUresult gs_cu_array_destroy(GS_FN(cuArrayDestroy) real, CUarray array);
CUresult gs_cu_mipmap_create(GS_FN(cuMipmappedArrayCreate) real, CUmipmappedArray *ret_array,
			     const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels);
CUresult gs_cu_mipmap_destroy(GS_FN(cuMipmappedArrayDestroy) real, CUmipmappedArray array);

// cuda_code.c
CUresult gs_cu_module_load(GS_FN(cuModuleLoad) real, CUmodule *ret_module, const char *path);
CUresult gs_cu_module_load_data(GS_FN(cuModuleLoadData) real, CUmodule *ret_module, const void *image);
CUresult gs_cu_module_load_ex(GS_FN(cuModuleLoadDataEx) real, CUmodule *ret_module, const void *image, unsigned int n,
			      CUjit_option *options, void **values);
CUresult gs_cu_library_load(GS_FN(cuLibraryLoadData) real, CUlibrary *ret_library, const void *image,
			    CUjit_option *options, void **values, unsigned int n, CUlibraryOption *library_options,
			    void **library_values, unsigned int library_n);
CUresult gs_cu_library_load_file(GS_FN(cuLibraryLoadFromFile) real, CUlibrary *ret_library, const char *path,
				 CUjit_option *options, void **values, unsigned int n,
				 CUlibraryOption *library_options, void **library_values, unsigned int library_n);
CUresult gs_cu_module_unload(GS_FN(cuModuleUnload) real, CUmodule module);
CUresult gs_cu_library_unload(GS_FN(cuLibraryUnload) real, CUlibrary library);
CUresult gs_cu_module_function(GS_FN(cuModuleGetFunction) real, CUfunction *ret_function, CUmodule module,
			       const char *name);
CUresult gs_cu_module_global(GS_FN(cuModuleGetGlobal_v2) real, CUdeviceptr *ret_ptr, size_t *ret_bytes,
			     CUmodule of, const char *name);
CUresult gs_cu_module_global_v1(GS_FN(cuModuleGetGlobal) real, CUdeviceptr_v1 *ret_ptr, unsigned int *ret_bytes,
				CUmodule of, const char *name);
CUresult gs_cu_library_global(GS_FN(cuLibraryGetGlobal) real, CUdeviceptr *ret_ptr, size_t *ret_bytes,
			      CUlibrary of, const char *name);
CUresult gs_cu_library_managed(GS_FN(cuLibraryGetManaged) real, CUdeviceptr *ret_ptr, size_t *ret_bytes,
			       CUlibrary of, const char *name);
CUresult gs_cu_library_module(GS_FN(cuLibraryGetModule) real, CUmodule *ret_module, CUlibrary library);
CUresult gs_cu_kernel_function(GS_FN(cuKernelGetFunction) real, CUfunction *ret_function, CUkernel kernel);
CUresult gs_cu_func_load(GS_FN(cuFuncLoad) real, CUfunction f);

// cuda_limit.c
CUresult gs_cu_ctx_set_limit(GS_FN(cuCtxSetLimit) real, CUlimit limit, size_t value);

// cuda_context.c, cuda_primary.c
CUresult gs_cu_primary_retain(GS_FN(cuDevicePrimaryCtxRetain) real, CUcontext *ret_ctx, CUdevice dev);
CUresult gs_cu_primary_release(GS_FN(cuDevicePrimaryCtxRelease) real, CUdevice dev);
CUresult gs_cu_primary_reset(GS_FN(cuDevicePrimaryCtxReset) real, CUdevice dev);
CUresult gs_cu_ctx_create(GS_FN(cuCtxCreate) real, CUcontext *ret_ctx, unsigned int flags, CUdevice dev);
CUresult gs_cu_ctx_create_v3(GS_FN(cuCtxCreate_v3) real, CUcontext *ret_ctx, CUexecAffinityParam *params, int n,
			     unsigned int flags, CUdevice dev);
CUresult gs_cu_ctx_create_v4(GS_FN(cuCtxCreate_v4) real, CUcontext *ret_ctx, CUctxCreateParams *params,
			     unsigned int flags, CUdevice dev);
CUresult gs_cu_ctx_create_vdpau(GS_FN(cuVDPAUCtxCreate) real, CUcontext *ret_ctx, unsigned int flags, CUdevice dev,
				VdpDevice vdp, VdpGetProcAddress *get);
CUresult gs_cu_ctx_attach(GS_FN(cuCtxAttach) real, CUcontext *ret_ctx, unsigned int flags);
CUresult gs_cu_ctx_detach(GS_FN(cuCtxDetach) real, CUcontext ctx);
CUresult gs_cu_ctx_destroy(GS_FN(cuCtxDestroy_v2) real, CUcontext ctx);

// cuda_green.c
CUresult gs_cu_green_create(GS_FN(cuGreenCtxCreate) real, CUgreenCtx *ret_green, CUdevResourceDesc desc, CUdevice dev,
			    unsigned int flags);
CUresult gs_cu_green_destroy(GS_FN(cuGreenCtxDestroy) real, CUgreenCtx green);

// cuda_view.c
CUresult gs_cu_mem_info(GS_FN(cuMemGetInfo_v2) real, size_t *ret_free, size_t *ret_total);
CUresult gs_cu_mem_info_v1(GS_FN(cuMemGetInfo) real, unsigned int *ret_free, unsigned int *ret_total);
CUresult gs_cu_total_mem(GS_FN(cuDeviceTotalMem_v2) real, size_t *ret_bytes, CUdevice dev);
CUresult gs_cu_total_mem_v1(GS_FN(cuDeviceTotalMem) real, unsigned int *ret_bytes, CUdevice dev);
CUresult gs_cu_no_budget(GS_FN(cuDeviceRegisterAsyncNotification) real, CUdevice dev, CUasyncCallback callback,
			 void *data, CUasyncCallbackHandle *ret_handle);

// cuda_launch.c
CUresult gs_cu_launch_kernel(GS_FN(cuLaunchKernel) real, enum gs_gate_flavour flavour, CUfunction f, unsigned int gx,
			     unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
			     unsigned int shared_bytes, CUstream stream, void **params, void **extra);
CUresult gs_cu_launch_kernel_ex(GS_FN(cuLaunchKernelEx) real, enum gs_gate_flavour flavour,
				const CUlaunchConfig *config, CUfunction f, void **params, void **extra);
CUresult gs_cu_launch_cooperative(GS_FN(cuLaunchCooperativeKernel) real, enum gs_gate_flavour flavour, CUfunction f,
				  unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
				  unsigned int by, unsigned int bz, unsigned int shared_bytes, CUstream stream,
				  void **params);
CUresult gs_cu_launch_multi(GS_FN(cuLaunchCooperativeKernelMultiDevice) real, enum gs_gate_flavour flavour,
			    CUDA_LAUNCH_PARAMS *list, unsigned int n, unsigned int flags);
CUresult gs_cu_launch(GS_FN(cuLaunch) real, enum gs_gate_flavour flavour, CUfunction f);
CUresult gs_cu_launch_grid(GS_FN(cuLaunchGrid) real, enum gs_gate_flavour flavour, CUfunction f, int width,
			   int height);
CUresult gs_cu_launch_grid_async(GS_FN(cuLaunchGridAsync) real, enum gs_gate_flavour flavour, CUfunction f,
				 int width, int height, CUstream stream);
CUresult gs_cu_graph_launch(GS_FN(cuGraphLaunch) real, enum gs_gate_flavour flavour, CUgraphExec graph,
			    CUstream stream);
CUresult gs_cu_ctx_sync(GS_FN(cuCtxSynchronize) real, enum gs_gate_flavour flavour);
CUresult gs_cu_ctx_sync_v2(GS_FN(cuCtxSynchronize_v2) real, enum gs_gate_flavour flavour, CUcontext ctx);
CUresult gs_cu_stream_sync(GS_FN(cuStreamSynchronize) real, enum gs_gate_flavour flavour, CUstream stream);
CUresult gs_cu_event_sync(GS_FN(cuEventSynchronize) real, enum gs_gate_flavour flavour, CUevent event);
CUresult gs_cu_capture_begin(GS_FN(cuStreamBeginCapture) real, enum gs_gate_flavour flavour, CUstream stream);
CUresult gs_cu_capture_begin_v2(GS_FN(cuStreamBeginCapture_v2) real, enum gs_gate_flavour flavour, CUstream stream,
				CUstreamCaptureMode mode);
CUresult gs_cu_capture_begin_to_graph(GS_FN(cuStreamBeginCaptureToGraph) real, enum gs_gate_flavour flavour,
				      CUstream stream, CUgraph graph, const CUgraphNode *nodes,
				      const CUgraphEdgeData *edges, size_t n, CUstreamCaptureMode mode);
CUresult gs_cu_capture_end(GS_FN(cuStreamEndCapture) real, enum gs_gate_flavour flavour, CUstream stream,
			   CUgraph *ret_graph);

#endif
