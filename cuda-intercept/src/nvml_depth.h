// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#ifndef GS_NVML_DEPTH_H
#define GS_NVML_DEPTH_H

// How deep this thread is in calls of ours to the real library.
extern __thread int gs_nvml_depth;

#define GS_NVML_INSIDE(call)                    \
	({                                      \
		nvmlReturn_t gs_r;              \
		gs_nvml_depth++;                \
		gs_r = (call);                  \
		gs_nvml_depth--;                \
		gs_r;                           \
	})

#endif
