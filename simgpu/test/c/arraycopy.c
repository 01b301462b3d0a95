// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* arraycopy.c: copies of one row from and to arrays move the right bytes. */
#include "t.h"

int main(void)
{
    CUDA_ARRAY_DESCRIPTOR desc = {.Width = 64, .Height = 1, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    unsigned char in[64], out[64];
    CUarray a, b;
    CUcontext ctx;
    CUdeviceptr p;
    CUstream s;

    start(&ctx);
    OK(cuArrayCreate_v2(&a, &desc));
    OK(cuArrayCreate_v2(&b, &desc));
    OK(cuMemAlloc_v2(&p, 64));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 64; i++)
        in[i] = (unsigned char)i;
    OK(cuMemcpyHtoA_v2(a, 8, in, 16));
    OK(cuMemcpyAtoA_v2(b, 4, a, 8, 16));
    OK(cuMemcpyAtoD_v2(p, b, 4, 16));
    memset(out, 0xff, sizeof(out));
    OK(cuMemcpyDtoH_v2(out, p, 16));
    TRUE(!memcmp(out, in, 16));
    OK(cuMemcpyDtoA_v2(a, 48, p + 4, 12));
    OK(cuMemcpyAtoHAsync_v2(out, a, 48, 12, s));
    OK(cuStreamSynchronize(s));
    TRUE(!memcmp(out, in + 4, 12));
    OK(cuMemcpyHtoAAsync_v2(b, 0, in + 32, 32, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyAtoH_v2(out, b, 0, 32));
    TRUE(!memcmp(out, in + 32, 32));
    WANT(cuMemcpyAtoH_v2(out, b, 60, 8), CUDA_ERROR_INVALID_VALUE); /* past the row */
    WANT(cuMemcpyAtoH_v2(out, (CUarray)in, 0, 8), CUDA_ERROR_INVALID_HANDLE);
    OK(cuArrayDestroy(a));
    WANT(cuMemcpyAtoH_v2(out, a, 0, 8), CUDA_ERROR_INVALID_HANDLE);
    OK(cuArrayDestroy(b));
    OK(cuMemFree_v2(p));
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
