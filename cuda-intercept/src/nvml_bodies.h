// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Bodies of the wrappers of libnvidia-ml.so.1.

#ifndef GS_NVML_BODIES_H
#define GS_NVML_BODIES_H

#include <stdbool.h>

#include "nvml_abi.h"

#define GS_FN(symbol) __typeof__(symbol) *

// gs_nvml_is_inner tells whether a call that returns to address comes from the
// real library, which calls its own exports through the PLT and so through us, or
// is made within a call of ours.
bool gs_nvml_is_inner(const void *address);

// nvml_view.c, nvml_processes.c
nvmlReturn_t gs_nv_memory_info(GS_FN(nvmlDeviceGetMemoryInfo) real, nvmlDevice_t dev, nvmlMemory_t *ret_info);
nvmlReturn_t gs_nv_memory_info_v2(GS_FN(nvmlDeviceGetMemoryInfo_v2) real, nvmlDevice_t dev,
				  nvmlMemory_v2_t *ret_info);
nvmlReturn_t gs_nv_compute_processes_v1(GS_FN(nvmlDeviceGetComputeRunningProcesses) real, nvmlDevice_t dev,
					unsigned int *count, nvmlProcessInfo_v1_t *ret_infos);
nvmlReturn_t gs_nv_compute_processes(GS_FN(nvmlDeviceGetComputeRunningProcesses_v3) real, nvmlDevice_t dev,
				     unsigned int *count, nvmlProcessInfo_t *ret_infos);
nvmlReturn_t gs_nv_other_processes_v1(GS_FN(nvmlDeviceGetGraphicsRunningProcesses) real, nvmlDevice_t dev,
				      unsigned int *count, nvmlProcessInfo_v1_t *ret_infos);
nvmlReturn_t gs_nv_other_processes(GS_FN(nvmlDeviceGetGraphicsRunningProcesses_v3) real, nvmlDevice_t dev,
				   unsigned int *count, nvmlProcessInfo_t *ret_infos);
nvmlReturn_t gs_nv_process_details(GS_FN(nvmlDeviceGetRunningProcessDetailList) real, nvmlDevice_t dev,
				   nvmlProcessDetailList_t *list_and_count);
nvmlReturn_t gs_nv_attributes(GS_FN(nvmlDeviceGetAttributes_v2) real, nvmlDevice_t dev,
			      nvmlDeviceAttributes_t *ret_attributes);
nvmlReturn_t gs_nv_protected_size(GS_FN(nvmlDeviceGetConfComputeMemSizeInfo) real, nvmlDevice_t dev,
				  nvmlConfComputeMemSizeInfo_t *ret_info);
nvmlReturn_t gs_nv_bar1(GS_FN(nvmlDeviceGetBAR1MemoryInfo) real, nvmlDevice_t dev, nvmlBAR1Memory_t *ret_info);

// nvml_busy.c
nvmlReturn_t gs_nv_utilization(GS_FN(nvmlDeviceGetUtilizationRates) real, nvmlDevice_t dev,
			       nvmlUtilization_t *ret_rates);
nvmlReturn_t gs_nv_encoder_busy(GS_FN(nvmlDeviceGetEncoderUtilization) real, nvmlDevice_t dev,
				unsigned int *ret_percent, unsigned int *ret_period);
nvmlReturn_t gs_nv_decoder_busy(GS_FN(nvmlDeviceGetDecoderUtilization) real, nvmlDevice_t dev,
				unsigned int *ret_percent, unsigned int *ret_period);
nvmlReturn_t gs_nv_jpeg_busy(GS_FN(nvmlDeviceGetJpgUtilization) real, nvmlDevice_t dev, unsigned int *ret_percent,
			     unsigned int *ret_period);
nvmlReturn_t gs_nv_flow_busy(GS_FN(nvmlDeviceGetOfaUtilization) real, nvmlDevice_t dev, unsigned int *ret_percent,
			     unsigned int *ret_period);
nvmlReturn_t gs_nv_pstates_info(GS_FN(nvmlDeviceGetDynamicPstatesInfo) real, nvmlDevice_t dev,
				nvmlGpuDynamicPstatesInfo_t *ret_info);
nvmlReturn_t gs_nv_samples(GS_FN(nvmlDeviceGetSamples) real, nvmlDevice_t dev, nvmlSamplingType_t kind,
			   unsigned long long since, nvmlValueType_t *ret_type, unsigned int *count,
			   nvmlSample_t *ret_list);
nvmlReturn_t gs_nv_gpm_support(GS_FN(nvmlGpmQueryDeviceSupport) real, nvmlDevice_t dev, nvmlGpmSupport_t *support);
nvmlReturn_t gs_nv_gpm_sample(GS_FN(nvmlGpmSampleGet) real, nvmlDevice_t dev, nvmlGpmSample_t sample);
nvmlReturn_t gs_nv_gpm_part_sample(GS_FN(nvmlGpmMigSampleGet) real, nvmlDevice_t dev, unsigned int instance,
				   nvmlGpmSample_t sample);
nvmlReturn_t gs_nv_counters(GS_FN(nvmlDevicePerfMetricsGetSamples_v1) real, nvmlDevice_t dev,
			    nvmlPerfMetricsSamples_v1_t *samples);

// nvml_filter.c
nvmlReturn_t gs_nv_process_utilization(GS_FN(nvmlDeviceGetProcessUtilization) real, nvmlDevice_t dev,
				       nvmlProcessUtilizationSample_t *ret_list, unsigned int *count,
				       unsigned long long since);
nvmlReturn_t gs_nv_processes_utilization(GS_FN(nvmlDeviceGetProcessesUtilizationInfo) real, nvmlDevice_t dev,
					 nvmlProcessesUtilizationInfo_t *info);
nvmlReturn_t gs_nv_accounting_pids(GS_FN(nvmlDeviceGetAccountingPids) real, nvmlDevice_t dev, unsigned int *count,
				   unsigned int *ret_pids);
nvmlReturn_t gs_nv_accounting_stats(GS_FN(nvmlDeviceGetAccountingStats) real, nvmlDevice_t dev, unsigned int pid,
				    nvmlAccountingStats_t *ret_stats);
nvmlReturn_t gs_nv_accounting_stats_v2(GS_FN(nvmlDeviceGetAccountingStats_v2) real, nvmlDevice_t dev,
				       nvmlAccountingStats_v2_t *stats);
nvmlReturn_t gs_nv_process_name(GS_FN(nvmlSystemGetProcessName) real, unsigned int pid, char *ret_name,
				unsigned int size);
nvmlReturn_t gs_nv_encoder_sessions(GS_FN(nvmlDeviceGetEncoderSessions) real, nvmlDevice_t dev, unsigned int *count,
				    nvmlEncoderSessionInfo_t *ret_list);
nvmlReturn_t gs_nv_capture_sessions(GS_FN(nvmlDeviceGetFBCSessions) real, nvmlDevice_t dev, unsigned int *count,
				    nvmlFBCSessionInfo_t *ret_list);
nvmlReturn_t gs_nv_encoder_stats(GS_FN(nvmlDeviceGetEncoderStats) real, nvmlDevice_t dev, unsigned int *ret_count,
				 unsigned int *ret_fps, unsigned int *ret_latency);
nvmlReturn_t gs_nv_capture_stats(GS_FN(nvmlDeviceGetFBCStats) real, nvmlDevice_t dev, nvmlFBCStats_t *ret_stats);

#endif
