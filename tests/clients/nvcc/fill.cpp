// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * fill.cpp: an ordinary program of the driver interface, built by NVIDIA's compiler with
 * NVIDIA's headers and without their runtime: it loads the code that the same compiler
 * made of scale.cu, launches it on streams, times it by events, allocates until it is
 * refused and recovers. It prints what it saw as JSON.
 * usage: fill CODE
 */
#include <cstdio>
#include <vector>

#include <cuda.h>

#define TRY(call)                                                                          \
    do {                                                                                   \
        CUresult r_ = call;                                                                \
        if (r_ != CUDA_SUCCESS) {                                                          \
            const char *name_ = "?";                                                       \
            cuGetErrorName(r_, &name_);                                                    \
            std::fprintf(stderr, "fill: %s: %s\n", #call, name_);                          \
            return 1;                                                                      \
        }                                                                                  \
    } while (0)

int main(int argc, char **argv)
{
    const size_t n = 1 << 16, piece = size_t(64) << 20;
    size_t free_before, free_after, total, held = 0;
    std::vector<CUdeviceptr> pieces;
    std::vector<float> data(n), back(n);
    float by = 2, ms = 0;
    const char *refusal = "";
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUevent start, end;
    CUdeviceptr x, again;
    CUresult r;

    if (argc != 2)
        return 2;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    TRY(cuDevicePrimaryCtxRetain(&context, device));
    TRY(cuCtxSetCurrent(context));
    TRY(cuModuleLoad(&module, argv[1]));
    TRY(cuModuleGetFunction(&function, module, "scale"));
    TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    TRY(cuEventCreate(&start, CU_EVENT_DEFAULT));
    TRY(cuEventCreate(&end, CU_EVENT_DEFAULT));
    TRY(cuMemAlloc(&x, n * sizeof(float)));
    for (size_t i = 0; i < n; i++)
        data[i] = float(i);
    TRY(cuMemcpyHtoDAsync(x, data.data(), n * sizeof(float), stream));
    TRY(cuMemcpyDtoHAsync(back.data(), x, n * sizeof(float), stream));
    TRY(cuStreamSynchronize(stream));
    if (back != data) {
        std::fprintf(stderr, "fill: what was copied came back otherwise\n");
        return 1;
    }
    void *args[] = {&x, &by, const_cast<size_t *>(&n)};
    TRY(cuEventRecord(start, stream));
    for (int i = 0; i < 10; i++)
        TRY(cuLaunchKernel(function, unsigned(n / 256), 1, 1, 256, 1, 1, 0, stream, args, nullptr));
    TRY(cuEventRecord(end, stream));
    TRY(cuEventSynchronize(end));
    TRY(cuEventElapsedTime(&ms, start, end));
    TRY(cuMemFree(x));

    TRY(cuMemGetInfo(&free_before, &total));
    while ((r = cuMemAlloc(&x, piece)) == CUDA_SUCCESS) {
        pieces.push_back(x);
        held += piece;
    }
    cuGetErrorName(r, &refusal);
    for (CUdeviceptr p : pieces)
        TRY(cuMemFree(p));
    TRY(cuMemGetInfo(&free_after, &total));
    TRY(cuMemAlloc(&again, held / 2));
    TRY(cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, args, nullptr));
    TRY(cuCtxSynchronize());
    TRY(cuMemFree(again));
    TRY(cuDevicePrimaryCtxRelease(device));
    std::printf("{\"total\": %zu, \"held\": %zu, \"free_before\": %zu, \"free_after\": %zu, \"ms\": %g, \"error\": \"%s\", "
                "\"cuda\": %d}\n",
                total, held, free_before, free_after, ms, refusal, CUDA_VERSION);
    return 0;
}
