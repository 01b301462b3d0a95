// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* devices.c: prints the UUIDs that CUDA and NVML show, a line each. */
#include "nvml_abi.h"
#include "t.h"

int main(void)
{
    CUresult r = cuInit(0);
    nvmlDevice_t d;
    unsigned m = 0;
    char text[96];
    CUuuid u;
    int n = 0;

    if (r != CUDA_ERROR_NO_DEVICE) {
        OK(r);
        OK(cuDeviceGetCount(&n));
    }
    for (int i = 0; i < n; i++) {
        OK(cuDeviceGetUuid_v2(&u, i));
        printf("cuda GPU-");
        for (int k = 0; k < 16; k++)
            printf("%s%02x", k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", (unsigned char)u.bytes[k]);
        puts("");
    }
    OK(nvmlInit_v2());
    OK(nvmlDeviceGetCount_v2(&m));
    for (unsigned i = 0; i < m; i++) {
        OK(nvmlDeviceGetHandleByIndex_v2(i, &d));
        OK(nvmlDeviceGetUUID(d, text, sizeof(text)));
        printf("nvml %s\n", text);
    }
    return 0;
}
