// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Calls two functions that are newer than the driver at hand, by linking.

#include <stdio.h>

#include "cuda_abi.h"
#include "nvml_abi.h"

int main(void)
{
	int cuda = (int)cuCtxCreate_v4(NULL, NULL, 0, 0);
	int nvml = (int)nvmlDeviceGetProcessesUtilizationInfo(NULL, NULL);

	printf("%d %d\n", cuda, nvml);
	return 0;
}
