// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* vmm.c: physical memory, address ranges, and their account. */
#include "t.h"

#define MIB ((size_t)1 << 20)

static size_t used(void)
{
    size_t f, t;

    OK(cuMemGetInfo_v2(&f, &t));
    return t - f;
}

int main(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc rw = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle a, b, again;
    CUdeviceptr range, other;
    CUcontext ctx;
    size_t unit, before;
    unsigned char byte = 0;
    int v;

    start(&ctx);
    OK(cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    TRUE(v == 1);
    OK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    TRUE(unit == 2 * MIB);
    before = used();
    OK(cuMemAddressReserve(&range, 64 * MIB, 0, 0, 0));
    OK(cuMemAddressReserve(&other, 4 * MIB, 0, 0, 0));
    TRUE(range % unit == 0 && used() == before); /* addresses cost nothing */
    WANT(cuMemCreate(&a, 3, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemCreate(&a, 4 * MIB, &prop, 0));
    OK(cuMemCreate(&b, 2 * MIB, &prop, 0));
    TRUE(used() == before + 6 * MIB);
    WANT(cuMemCreate(&again, (size_t)1 << 50, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
    WANT(cuMemsetD8_v2(range, 1, 1), CUDA_ERROR_INVALID_VALUE); /* nothing mapped */
    OK(cuMemMap(range, 4 * MIB, 0, a, 0));
    WANT(cuMemMap(range, 4 * MIB, 0, a, 0), CUDA_ERROR_INVALID_VALUE);
    WANT(cuMemsetD8_v2(range, 1, 1), CUDA_ERROR_INVALID_VALUE); /* no access */
    OK(cuMemMap(range + 4 * MIB, 2 * MIB, 0, b, 0));
    OK(cuMemSetAccess(range, 6 * MIB, &rw, 1));
    OK(cuMemsetD8_v2(range + 3 * MIB, 7, 3 * MIB)); /* over both */
    WANT(cuMemsetD8_v2(range + 3 * MIB, 7, 3 * MIB + 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(other, 4 * MIB, 0, a, 0)); /* the same bytes elsewhere */
    OK(cuMemSetAccess(other, 4 * MIB, &rw, 1));
    OK(cuMemcpyDtoH_v2(&byte, other + 4 * MIB - 1, 1));
    TRUE(byte == 7);
    WANT(cuMemAddressFree(range, 64 * MIB), CUDA_ERROR_INVALID_VALUE); /* still mapped */
    WANT(cuMemFree_v2(range), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(other + 5)));
    TRUE(again == a);
    OK(cuMemRelease(again));
    OK(cuMemRelease(a));
    OK(cuMemRelease(b));
    TRUE(used() == before + 6 * MIB); /* the mappings hold it */
    OK(cuMemUnmap(range, 6 * MIB));
    TRUE(used() == before + 4 * MIB);
    OK(cuMemUnmap(other, 4 * MIB));
    TRUE(used() == before);
    WANT(cuMemUnmap(other, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(range, 64 * MIB));
    OK(cuMemAddressFree(other, 4 * MIB));
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
