// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* error.c: the last error of a thread, names and texts of errors, and the answer of
 * functions that the stand-in does not have. */
#include <fcntl.h>
#include <unistd.h>

#include "rt.h"

static __thread cudaError_t last;

cudaError_t rt_set(cudaError_t e)
{
    if (e != RT_OK)
        last = e;
    return e;
}

RT(cudaGetLastError, void)
{
    cudaError_t e = last;

    last = RT_OK;
    return e;
}

RT(cudaPeekAtLastError, void)
{
    return last;
}

RT_API const char *cudaGetErrorName(cudaError_t);
RT_API const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
#define E(number, name) case number: return #name;
#include "errors.def"
#undef E
    default: return "unrecognized error code";
    }
}

RT_API const char *cudaGetErrorString(cudaError_t);
RT_API const char *cudaGetErrorString(cudaError_t e)
{
    const char *text = NULL;

    switch (e) { /* that no driver returns */
    case RT_INVALID_CONFIGURATION: return "invalid configuration argument";
    case RT_INVALID_SYMBOL: return "invalid device symbol";
    case RT_INVALID_MEMCPY_DIRECTION: return "invalid copy direction for memcpy";
    case RT_INSUFFICIENT_DRIVER: return "CUDA driver version is insufficient for CUDA runtime version";
    case RT_NEEDS_NEWER_DRIVER: return "API call is not supported in the installed CUDA driver";
    case RT_INVALID_DEVICE_FUNCTION: return "invalid device function";
    default: break;
    }
    /* Also without a GPU the driver has the texts, if there is a driver. */
    if (rt_start() != RT_INSUFFICIENT_DRIVER && rt_drv.cuGetErrorString((CUresult)e, &text) == CUDA_SUCCESS && text)
        return text;
    return e == RT_OK ? "no error" : "unrecognized error code";
}

cudaError_t rt_lacking(const char *name);
/* rt_lacking is the body of every function of the real library that is not here. A
 * file named by STANDIN_CUDART_LOG gets its name. */
cudaError_t rt_lacking(const char *name)
{
    const char *file = getenv("STANDIN_CUDART_LOG");
    int fd = file ? open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

    if (fd >= 0) {
        if (write(fd, name, strlen(name)) < 0 || write(fd, "\n", 1) < 0)
            last = RT_NOT_SUPPORTED;
        close(fd);
    }
    return rt_set(RT_NOT_SUPPORTED);
}
