// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* nvml.c: prints what NVML says of device 0, for the Go test to read. */
#include "nvml_abi.h"
#include "t.h"

int main(void)
{
    nvmlProcessInfo_v1_t p1[16];
    nvmlProcessInfo_t p3[16];
    nvmlProcessUtilizationSample_t u[16];
    nvmlMemory_v2_t m2 = {.version = GS_NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
    nvmlMemory_t m;
    nvmlUtilization_t rates;
    nvmlSample_t samples[100];
    nvmlValueType_t vt;
    nvmlDevice_t d, e;
    unsigned n = 16, n3 = 16, nu = 16, ns = 100, mode;
    char text[96];

    WANT(nvmlDeviceGetCount_v2(&n), NVML_ERROR_UNINITIALIZED);
    OK(nvmlInit_v2());
    OK(nvmlDeviceGetCount_v2(&n));
    printf("count %u\n", n);
    OK(nvmlDeviceGetHandleByIndex_v2(0, &d));
    WANT(nvmlDeviceGetHandleByIndex_v2(n, &e), NVML_ERROR_INVALID_ARGUMENT);
    OK(nvmlDeviceGetUUID(d, text, sizeof(text)));
    printf("uuid %s\n", text);
    OK(nvmlDeviceGetHandleByUUID(text, &e));
    TRUE(e == d);
    WANT(nvmlDeviceGetUUID(d, text, 5), NVML_ERROR_INSUFFICIENT_SIZE);
    OK(nvmlDeviceGetName(d, text, sizeof(text)));
    printf("name %s\n", text);
    OK(nvmlSystemGetDriverVersion(text, sizeof(text)));
    printf("driver %s\n", text);
    OK(nvmlDeviceGetMemoryInfo(d, &m));
    OK(nvmlDeviceGetMemoryInfo_v2(d, &m2));
    TRUE(m.total == m2.total && m.free + m.used == m.total);
    printf("used %llu total %llu\n", m.used, m.total);
    m2.version = 0;
    WANT(nvmlDeviceGetMemoryInfo_v2(d, &m2), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    n = 16;
    OK(nvmlDeviceGetComputeRunningProcesses(d, &n, p1));
    OK(nvmlDeviceGetComputeRunningProcesses_v3(d, &n3, p3));
    TRUE(n == n3);
    for (unsigned i = 0; i < n; i++)
        printf("process %u %llu\n", p1[i].pid, p3[i].usedGpuMemory);
    if (n) {
        n3 = 0;
        WANT(nvmlDeviceGetComputeRunningProcesses_v3(d, &n3, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
        TRUE(n3 == n);
    }
    OK(nvmlDeviceGetUtilizationRates(d, &rates));
    printf("gpu %u\n", rates.gpu);
    if (nvmlDeviceGetProcessUtilization(d, u, &nu, 0) == NVML_SUCCESS) {
        for (unsigned i = 0; i < nu; i++)
            printf("util %u %u\n", u[i].pid, u[i].smUtil);
    }
    OK(nvmlDeviceGetSamples(d, NVML_GPU_UTILIZATION_SAMPLES, 0, &vt, &ns, samples));
    for (unsigned i = 1; i < ns; i++)
        TRUE(samples[i].timeStamp > samples[i - 1].timeStamp);
    OK(nvmlDeviceGetMigMode(d, &mode, &mode));
    TRUE(!mode);
    OK(nvmlShutdown());
    WANT(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
    return 0;
}
