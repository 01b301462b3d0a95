// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* memops.c: streams that wait for and write memory. */
#include "t.h"

struct op {
    int operation, pad;
    CUdeviceptr address;
    uint64_t value;
    unsigned flags, pad2;
    uint64_t rest[2];
};

int main(void)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);
    CUfunction f = function(m, "short");
    CUstream s, t;
    uint32_t *w;
    uint64_t *q;
    CUdeviceptr p, d;
    struct op ops[3] = {0};
    uint32_t v;

    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocHost_v2((void **)&w, 4096));
    OK(cuMemAlloc_v2(&d, 4096));
    memset(w, 0, 4096);
    q = (uint64_t *)(w + 16);
    p = (CUdeviceptr)(uintptr_t)w;

    /* Held until a processor stores, each condition in turn. */
    for (int i = 0; i < 4; i++) {
        static const uint32_t before[4] = {4, 4, 0xf0, 0xffffffff}, want[4] = {5, 5, 0x0f, 0x0f};
        static const uint32_t after[4] = {6, 5, 0x08, 0x0fffffff};

        __atomic_store_n(w, before[i], __ATOMIC_SEQ_CST);
        OK(cuStreamWaitValue32(s, p, want[i], (unsigned)i));
        OK(launch(f, s));
        usleep(3000);
        WANT(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
        OK(launch(f, t)); /* the other stream goes on */
        OK(cuStreamSynchronize(t));
        __atomic_store_n(w, after[i], __ATOMIC_SEQ_CST);
        OK(cuStreamSynchronize(s));
    }
    /* Greater or equal is cyclic. */
    __atomic_store_n(w, 2, __ATOMIC_SEQ_CST);
    OK(cuStreamWaitValue32_v2(s, p, 0xfffffff0, 0));
    OK(cuStreamSynchronize(s));
    __atomic_store_n(q, 1, __ATOMIC_SEQ_CST);
    OK(cuStreamWaitValue64(s, p + 64, 1ull << 40, 0));
    usleep(1000);
    WANT(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    /* Another stream's write ends it; device memory as well. */
    OK(cuStreamWriteValue64_v2(t, p + 64, 1ull << 41, 0));
    OK(cuStreamSynchronize(s));
    TRUE(*q == 1ull << 41);
    OK(cuStreamWriteValue32(s, d + 8, 42, 1));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(&v, d + 8, 4));
    TRUE(v == 42);

    /* A batch: wait, then write, then a write that must see it in order. */
    __atomic_store_n(w, 0, __ATOMIC_SEQ_CST);
    ops[0] = (struct op){.operation = 1, .address = p, .value = 1, .flags = 1};
    ops[1] = (struct op){.operation = 2, .address = p + 4, .value = 7};
    ops[2] = (struct op){.operation = 5, .address = p + 64, .value = 9};
    OK(cuStreamBatchMemOp_v2(s, 3, (CUstreamBatchMemOpParams *)ops, 0));
    usleep(2000);
    TRUE(__atomic_load_n(w + 1, __ATOMIC_SEQ_CST) == 0);
    __atomic_store_n(w, 1, __ATOMIC_SEQ_CST);
    OK(cuStreamSynchronize(s));
    TRUE(w[1] == 7 && *q == 9);

    /* A copy behind a wait takes its bytes behind it. */
    __atomic_store_n(w, 0, __ATOMIC_SEQ_CST);
    w[2] = 1;
    OK(cuStreamWaitValue32(s, p, 3, 0));
    OK(cuMemcpyHtoDAsync_v2(d, w + 2, 4, s));
    w[2] = 2;
    __atomic_store_n(w, 3, __ATOMIC_SEQ_CST);
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(&v, d, 4));
    TRUE(v == 2);

    WANT(cuStreamWaitValue32(s, p + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(cuStreamWaitValue64(s, p + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(cuStreamWaitValue32(s, 64, 0, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(cuStreamWaitValue32(s, p, 0, 8), CUDA_ERROR_INVALID_VALUE);
    WANT(cuStreamWriteValue32(s, p, 0, 2), CUDA_ERROR_INVALID_VALUE);
    ops[1].operation = 99;
    WANT(cuStreamBatchMemOp(s, 2, (CUstreamBatchMemOpParams *)ops, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(w));
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
