// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Which devices and processes are the container's own.

#ifndef GS_NVML_OWN_H
#define GS_NVML_OWN_H

#include <stdbool.h>

#include "nvml_abi.h"

// gs_nvml_find_gpu finds a device in the limits page. A device that the container
// does not hold, or a container without a page, has nothing to be shown: it
// returns NVML_ERROR_NO_PERMISSION.
nvmlReturn_t gs_nvml_find_gpu(nvmlDevice_t dev, unsigned *ret_gpu);

// gs_nvml_own_pid tells whether a living process of the container that has started
// CUDA has that number; ledger_fd is of gs_attach_open_ledger, or -1.
bool gs_nvml_own_pid(int ledger_fd, unsigned int pid);

// gs_nvml_check_pid returns NVML_SUCCESS for such a process, and else
// NVML_ERROR_NOT_FOUND, as for a process that does not use the GPU.
nvmlReturn_t gs_nvml_check_pid(unsigned int pid);

#endif
