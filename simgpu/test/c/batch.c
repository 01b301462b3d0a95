// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* batch.c: many copies in one call. */
#include "t.h"

struct operand {
    int type;
    struct {
        CUdeviceptr p;
        size_t row, layer;
        CUmemLocation hint;
    } ptr;
};
struct op {
    struct operand src, dst;
    size_t width, height, depth;
    int order;
    unsigned flags;
};

int main(void)
{
    CUcontext ctx;
    CUstream s;
    CUdeviceptr d, dst[3], src[3];
    size_t size[3] = {4, 8, 12}, first[2] = {0, 2}, bad = 77;
    CUmemcpyAttributes how[2] = {{.srcAccessOrder = 1}, {.srcAccessOrder = 3}};
    char in[64], out[64] = {0};
    struct op o[2] = {0};

    start(&ctx);
    OK(cuStreamCreate(&s, 0));
    OK(cuMemAlloc_v2(&d, 4096));
    for (int i = 0; i < 64; i++)
        in[i] = (char)i;
    OK(cuMemsetD8_v2(d, 0xee, 4096));
    for (int i = 0; i < 3; i++) {
        src[i] = (CUdeviceptr)(uintptr_t)(in + 16 * i);
        dst[i] = d + 100u * (unsigned)i;
    }
    WANT(cuMemcpyBatchAsync(dst, src, size, 3, how, first, 2, &bad, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyBatchAsync(dst, src, size, 3, how, first, 2, &bad, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(out, d + 200, 13));
    TRUE(!memcmp(out, in + 32, 12) && (unsigned char)out[12] == 0xee);
    /* One that may not be made: none is, and its number is told. */
    dst[1] = d + 4090;
    size[0] = 5;
    WANT(cuMemcpyBatchAsync(dst, src, size, 3, how, first, 2, &bad, s), CUDA_ERROR_INVALID_VALUE);
    TRUE(bad == 1);
    OK(cuMemcpyDtoH_v2(out, d, 5));
    TRUE((unsigned char)out[4] == 0xee);
    dst[1] = d + 100;
    first[1] = 0;
    WANT(cuMemcpyBatchAsync(dst, src, size, 3, how, first, 2, &bad, s), CUDA_ERROR_INVALID_VALUE);
    TRUE(bad == (size_t)-1);
    how[0].srcAccessOrder = 0;
    first[1] = 1;
    WANT(cuMemcpyBatchAsync(dst, src, size, 3, how, first, 2, NULL, s), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemcpyBatchAsync(dst, src, size, 0, how, first, 2, NULL, s), CUDA_ERROR_INVALID_VALUE);

    /* Two rows of four from rows of 16, into rows of 8. */
    o[0].src.type = o[0].dst.type = 1;
    o[0].src.ptr.p = (CUdeviceptr)(uintptr_t)in;
    o[0].src.ptr.row = 16;
    o[0].dst.ptr.p = d;
    o[0].dst.ptr.row = 8;
    o[0].width = 4;
    o[0].height = 2;
    o[0].depth = 1;
    o[0].order = 1;
    o[1] = o[0];
    o[1].dst.ptr.p = d + 512;
    OK(cuMemcpy3DBatchAsync(2, (CUDA_MEMCPY3D_BATCH_OP *)o, &bad, 0, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(out, d + 512, 16));
    TRUE(out[0] == 0 && out[3] == 3 && (unsigned char)out[4] == 0xee && out[8] == 16 && out[11] == 19);
    o[1].dst.ptr.p = d + 4096 - 11;
    WANT(cuMemcpy3DBatchAsync(2, (CUDA_MEMCPY3D_BATCH_OP *)o, &bad, 0, s), CUDA_ERROR_INVALID_VALUE);
    TRUE(bad == 1);
    o[1].order = 0;
    o[1].dst.ptr.p = d;
    WANT(cuMemcpy3DBatchAsync(2, (CUDA_MEMCPY3D_BATCH_OP *)o, &bad, 0, s), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
