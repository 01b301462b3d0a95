// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Notices that the driver sends: at once, when one asks for them.

#include <stdint.h>

#include "fake.h"

CUresult cuDeviceRegisterAsyncNotification(CUdevice dev, CUasyncCallback callback, void *data,
					   CUasyncCallbackHandle *ret_handle)
{
	CUasyncNotificationInfo info = {.info.overBudget.bytesOverBudget = MEMORY_BYTES};

	ENTER();
	*ret_handle = (CUasyncCallbackHandle)(uintptr_t)(dev + 1);
	callback(&info, data, *ret_handle);
	return CUDA_SUCCESS;
}
