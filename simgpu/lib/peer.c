// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * peer.c: direct access between devices. Cards of one model can, over NVLink or
 * PCIe, unless their kind cannot at all, as GeForce cards of late; cards of
 * different models cannot.
 */
#include "sg.h"

/* How two devices reach each other: SG_PEER_NONE, SG_PEER_PCIE or SG_PEER_NVLINK. */
static uint32_t link_of(CUdevice a, CUdevice b)
{
    const struct sg_gpu_info *x = sg_dev(a)->info, *y = sg_dev(b)->info;

    return a == b || x->pci_device_id != y->pci_device_id || x->peer_access != y->peer_access ? SG_PEER_NONE
                                                                                               : x->peer_access;
}

SG_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
    SG_ENTER();
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_dev(dev) || !sg_dev(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = link_of(dev, peer) != SG_PEER_NONE;
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attr, CUdevice src, CUdevice dst)
{
    uint32_t l;

    SG_ENTER();
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_dev(src) || !sg_dev(dst) || src == dst)
        return CUDA_ERROR_INVALID_DEVICE;
    l = link_of(src, dst);
    switch (attr) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: /* 0 is the best */
        *value = l == SG_PEER_NVLINK ? 0 : 1;
        break;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = l != SG_PEER_NONE;
        break;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = l == SG_PEER_NVLINK;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* The place of a context among the peers of c, or SG_MAX_GPUS. The lock is held. */
static unsigned place(CUcontext c, uint32_t id)
{
    unsigned i = 0;

    while (i < SG_MAX_GPUS && c->peers[i] != id)
        i++;
    return i;
}

SG_API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CUresult r = CUDA_SUCCESS;
    unsigned i;

    SG_ENTER_CTX(c);
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    if (!sg_is(peer, SG_CTX) || !peer->alive || peer == c) {
        r = CUDA_ERROR_INVALID_CONTEXT;
    } else if (link_of(c->dev, peer->dev) == SG_PEER_NONE) {
        r = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    } else if (place(c, peer->id) < SG_MAX_GPUS) {
        r = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    } else {
        i = place(c, 0);
        if (i == SG_MAX_GPUS)
            r = CUDA_ERROR_TOO_MANY_PEERS;
        else
            c->peers[i] = peer->id;
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    CUresult r = CUDA_SUCCESS;
    unsigned i;

    SG_ENTER_CTX(c);
    sg_lock();
    if (!sg_is(peer, SG_CTX) || !peer->alive) {
        r = CUDA_ERROR_INVALID_CONTEXT;
    } else {
        i = place(c, peer->id);
        if (i == SG_MAX_GPUS)
            r = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
        else
            c->peers[i] = 0;
    }
    sg_unlock();
    return r;
}

/* ---- atomic operations over a link, from 13.0 ------------------------------------------ */

enum { SIGNED = 1, UNSIGNED = 2, REDUCTION = 4, B32 = 8, B64 = 16, B128 = 32, ATOMIC_OPERATIONS = 13 };

/* What NVLink carries is taken to be what PTX's atom and red have on a device's own
 * memory; no real answer is known. */
static unsigned native(int operation, int capability)
{
    static const unsigned masks[ATOMIC_OPERATIONS] = {
        SIGNED | UNSIGNED | REDUCTION | B32 | B64, /* add, min, max */
        SIGNED | UNSIGNED | REDUCTION | B32 | B64,
        SIGNED | UNSIGNED | REDUCTION | B32 | B64,
        UNSIGNED | REDUCTION | B32, /* increment, decrement */
        UNSIGNED | REDUCTION | B32,
        UNSIGNED | REDUCTION | B32 | B64, /* and, or, xor */
        UNSIGNED | REDUCTION | B32 | B64,
        UNSIGNED | REDUCTION | B32 | B64,
        UNSIGNED | B32 | B64, /* exchange, compare and swap */
        UNSIGNED | B32 | B64,
        SIGNED | REDUCTION | B32 | B64, /* of floating point, only add */
        0,
        0,
    };
    bool swaps = operation == 8 || operation == 9;

    return masks[operation] | (swaps && capability >= 90 ? B128 : 0u);
}

static CUresult atomics(unsigned *ret, const int *operations, unsigned n, bool carried, unsigned capability)
{
    if (!ret || !operations || !n)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        if (operations[i] < 0 || operations[i] >= ATOMIC_OPERATIONS)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < n; i++)
        ret[i] = carried ? native(operations[i], (int)capability) : 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *, const int *, unsigned int, CUdevice, CUdevice);
SG_API CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *ret, const int *operations, unsigned int n, CUdevice src,
                                                 CUdevice dst)
{
    SG_ENTER();
    if (!sg_dev(src) || !sg_dev(dst) || src == dst)
        return CUDA_ERROR_INVALID_DEVICE;
    return atomics(ret, operations, n, link_of(src, dst) == SG_PEER_NVLINK, sg_dev(src)->info->capability);
}

/* Over PCIe the attribute HOST_NATIVE_ATOMIC_SUPPORTED is 0, so there are none. */
CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *, const int *, unsigned int, CUdevice);
SG_API CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *ret, const int *operations, unsigned int n, CUdevice dev)
{
    SG_ENTER();
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return atomics(ret, operations, n, false, 0);
}
