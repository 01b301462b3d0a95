// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* peer.c A B LINK: checks how devices A and B reach each other: none, pcie, nvlink. */
#include <stdbool.h>

#include "t.h"

int main(int argc, char **argv)
{
    CUcontext c, p;
    CUdevice a, b;
    int v, reach, nvlink;

    if (argc != 4)
        FAIL("usage: peer A B LINK");
    a = atoi(argv[1]);
    b = atoi(argv[2]);
    nvlink = !strcmp(argv[3], "nvlink");
    reach = nvlink || !strcmp(argv[3], "pcie");
    OK(cuInit(0));
    for (int i = 0; i < 2; i++) {
        OK(cuDeviceCanAccessPeer(&v, i ? a : b, i ? b : a));
        TRUE(v == reach);
        OK(cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, i ? a : b, i ? b : a));
        TRUE(v == reach);
        OK(cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, i ? a : b, i ? b : a));
        TRUE(v == nvlink);
    }
    OK(cuDeviceCanAccessPeer(&v, a, a));
    TRUE(!v);
    WANT(cuDeviceGetP2PAttribute(&v, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, a, a), CUDA_ERROR_INVALID_DEVICE);
    WANT(cuDeviceGetP2PAttribute(&v, (CUdevice_P2PAttribute)99, a, b), CUDA_ERROR_INVALID_VALUE);
    OK(cuDevicePrimaryCtxRetain(&p, b));
    OK(cuDevicePrimaryCtxRetain(&c, a));
    OK(cuCtxSetCurrent(c));
    WANT(cuCtxEnablePeerAccess(p, 1), CUDA_ERROR_INVALID_VALUE);
    WANT(cuCtxEnablePeerAccess(c, 0), CUDA_ERROR_INVALID_CONTEXT);
    WANT(cuCtxDisablePeerAccess(p), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    if (!reach) {
        WANT(cuCtxEnablePeerAccess(p, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
        return 0;
    }
    for (int i = 0; i < 2; i++) {
        OK(cuCtxEnablePeerAccess(p, 0));
        WANT(cuCtxEnablePeerAccess(p, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
        OK(cuCtxDisablePeerAccess(p));
        WANT(cuCtxDisablePeerAccess(p), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    }
    /* It goes with the context. */
    OK(cuCtxEnablePeerAccess(p, 0));
    OK(cuDevicePrimaryCtxRelease_v2(a));
    OK(cuDevicePrimaryCtxRetain(&c, a));
    OK(cuCtxSetCurrent(c));
    WANT(cuCtxDisablePeerAccess(p), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    return 0;
}
