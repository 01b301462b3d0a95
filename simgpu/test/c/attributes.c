// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* attributes.c: prints every device attribute, and what else CUDA and NVML say of
 * a device, one fact a line: DEVICE KEY VALUE. */
#include "nvml_abi.h"
#include "t.h"

int main(void)
{
    int n;

    OK(cuInit(0));
    OK(nvmlInit_v2());
    OK(cuDeviceGetCount(&n));
    for (int d = 0; d < n; d++) {
        CUdevprop p;
        nvmlMemory_t m;
        nvmlDevice_t h;
        size_t bytes;
        char name[128];
        int v, a;

        for (a = 1; cuDeviceGetAttribute(&v, (CUdevice_attribute)a, d) == CUDA_SUCCESS; a++)
            printf("%d %d %d\n", d, a, v);
        TRUE(cuDeviceGetAttribute(&v, (CUdevice_attribute)a, d) == CUDA_ERROR_INVALID_VALUE);
        TRUE(cuDeviceGetAttribute(&v, (CUdevice_attribute)100000, d) == CUDA_ERROR_INVALID_VALUE);
        printf("%d known %d\n", d, a);
        OK(cuDeviceGetName(name, sizeof(name), d));
        printf("%d name %s\n", d, name);
        OK(cuDeviceTotalMem_v2(&bytes, d));
        printf("%d total %zu\n", d, bytes);
        OK(cuDeviceGetProperties(&p, d));
        printf("%d clock %d\n%d shared %d\n", d, p.clockRate, d, p.sharedMemPerBlock);
        OK(nvmlDeviceGetHandleByIndex_v2((unsigned)d, &h));
        OK(nvmlDeviceGetMemoryInfo(h, &m));
        TRUE(m.total >= bytes);
    }
    TRUE(cuDeviceGetAttribute(&n, (CUdevice_attribute)1, n) == CUDA_ERROR_INVALID_DEVICE);
    return 0;
}
