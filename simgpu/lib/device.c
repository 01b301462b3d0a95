// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* device.c: start of the driver, and what it says about its devices. */
#include <stdio.h>
#include <sys/mman.h>

#include "driver.h"
#include "sg.h"

struct sg_state sg_state = {.lock = PTHREAD_MUTEX_INITIALIZER};
volatile uint32_t *sg_live;

/*
 * CUDA_VISIBLE_DEVICES: indices or UUID prefixes, in the order given; the first
 * one that names no device ends the list. Returns the number of devices kept.
 */
static unsigned choose(unsigned *index, unsigned n)
{
    const char *v = getenv("CUDA_VISIBLE_DEVICES");
    unsigned out[SG_MAX_GPUS], kept = 0;

    if (!v)
        return n;
    while (*v && kept < SG_MAX_GPUS) {
        size_t len = strcspn(v, ",");
        unsigned found = n;
        char *end;
        unsigned long k = strtoul(v, &end, 10);

        if (end == v + len && len && k < n)
            found = (unsigned)k;
        for (unsigned i = 0; found == n && i < n && len > 4 && !strncmp(v, "GPU-", 4); i++) {
            if (!strncmp(sg_conn.node->gpu[index[i]].info.uuid, v, len))
                found = i;
        }
        for (unsigned i = 0; i < kept; i++) {
            if (found < n && out[i] == index[found])
                found = n; /* a device twice ends the list, too */
        }
        if (found == n)
            break;
        out[kept++] = index[found];
        v += len;
        v += *v == ',';
    }
    memcpy(index, out, kept * sizeof(*out));
    return kept;
}

/* How fast a card is, by its lanes and their clock. */
static uint64_t speed(unsigned index)
{
    const struct sg_gpu_info *i = &sg_conn.node->gpu[index].info;
    uint64_t lanes = i->capability == 75 || i->capability == 80 ? 64 : 128;

    return lanes * i->multiprocessors * (uint32_t)i->attribute[CU_DEVICE_ATTRIBUTE_CLOCK_RATE];
}

/* CUDA_DEVICE_ORDER: the fastest first, and those alike as they stand on the bus,
 * unless it says PCI_BUS_ID. */
static unsigned order(unsigned *index, unsigned n)
{
    const char *v = getenv("CUDA_DEVICE_ORDER");

    if (v && !strcmp(v, "PCI_BUS_ID"))
        return n;
    for (unsigned i = 1; i < n; i++) {
        for (unsigned k = i; k && speed(index[k]) > speed(index[k - 1]); k--) {
            unsigned moved = index[k];

            index[k] = index[k - 1];
            index[k - 1] = moved;
        }
    }
    return n;
}

/* A new process does not see a GPU that is lost. */
static unsigned present(unsigned *index, unsigned n)
{
    unsigned left = 0;

    for (unsigned i = 0; i < n; i++) {
        if (!__atomic_load_n(&sg_conn.node->gpu[index[i]].state.lost, __ATOMIC_ACQUIRE))
            index[left++] = index[i];
    }
    return left;
}

static CUresult start(void)
{
    unsigned index[SG_MAX_GPUS];
    uint32_t *live;

    if (sg_connect(SG_KIND_CUDA) != 0)
        return CUDA_ERROR_NO_DEVICE;
    if (__atomic_load_n(&sg_conn.node->mismatch, __ATOMIC_ACQUIRE))
        return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    sg_ring_connected();
    sg_state.ndev = choose(index, order(index, present(index, sg_visible(sg_conn.node, index, SG_MAX_GPUS))));
    if (!sg_state.ndev)
        return CUDA_ERROR_NO_DEVICE;
    for (unsigned i = 0; i < sg_state.ndev; i++) {
        struct sg_device *d = &sg_state.dev[i];

        d->index = index[i];
        d->info = &sg_conn.node->gpu[index[i]].info;
        sg_pool_init(&d->default_pool, (CUdevice)i);
        d->default_pool.deflt = true;
        d->pool = &d->default_pool;
    }
    live = mmap(NULL, SG_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (live == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (madvise(live, SG_PAGE, MADV_WIPEONFORK) != 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    sg_live = live;
    *sg_live = 1;
    return CUDA_SUCCESS;
}

SG_API CUresult cuInit(unsigned int flags)
{
    CUresult r = CUDA_SUCCESS;

    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (sg_ready())
        return CUDA_SUCCESS;
    if (sg_state.was_initialized)
        return CUDA_ERROR_NOT_INITIALIZED; /* a forked child */
    sg_lock();
    if (!sg_state.was_initialized) {
        r = start();
        sg_state.was_initialized = r == CUDA_SUCCESS;
    }
    sg_unlock();
    return r;
}

SG_API CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sg_driver.cuda; /* known without a device, as with the real one */
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetCount(int *count)
{
    SG_ENTER();
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = (int)sg_state.ndev;
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
    SG_ENTER();
    if (!dev)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_dev(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *dev = ordinal;
    return CUDA_SUCCESS;
}

/* Enters with the description of a device. */
#define ENTER_DEV(i, dev)          \
    const struct sg_gpu_info *i;   \
    SG_ENTER();                    \
    if (!sg_dev(dev))              \
        return CUDA_ERROR_INVALID_DEVICE; \
    i = sg_dev(dev)->info

SG_API CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    ENTER_DEV(i, dev);
    if (!name || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)len, "%s", i->name);
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    ENTER_DEV(i, dev);
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, i->uuid_bytes, sizeof(uuid->bytes));
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    return cuDeviceGetUuid(uuid, dev);
}

SG_API CUresult cuDeviceGetLuid(char *luid SG_UNUSED, unsigned int *mask SG_UNUSED, CUdevice dev SG_UNUSED)
{
    return CUDA_ERROR_NOT_SUPPORTED; /* Windows only */
}

SG_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    ENTER_DEV(i, dev);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = i->memory_bytes;
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    ENTER_DEV(i, dev);
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = i->memory_bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)i->memory_bytes;
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    ENTER_DEV(i, dev);
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    *major = (int)i->capability / 10;
    *minor = (int)i->capability % 10;
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
    ENTER_DEV(i, dev);
    if (!id || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(id, (size_t)len, "%04X:%02X:%02X.0", i->pci_domain, i->pci_bus, i->pci_device);
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *id)
{
    unsigned domain = 0, bus, slot;

    SG_ENTER();
    if (!dev || !id)
        return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(id, "%x:%x", &bus, &slot) != 2)
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned k = 0; k < sg_state.ndev; k++) {
        const struct sg_gpu_info *i = sg_state.dev[k].info;

        if (i->pci_domain == domain && i->pci_bus == bus && i->pci_device == slot) {
            *dev = (CUdevice)k;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

SG_API CUresult cuDeviceGetProperties(CUdevprop *p, CUdevice dev)
{
#define A(name) i->attribute[CU_DEVICE_ATTRIBUTE_##name]
    ENTER_DEV(i, dev);
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    *p = (CUdevprop){
        .maxThreadsPerBlock = A(MAX_THREADS_PER_BLOCK),
        .maxThreadsDim = {A(MAX_BLOCK_DIM_X), A(MAX_BLOCK_DIM_Y), A(MAX_BLOCK_DIM_Z)},
        .maxGridSize = {A(MAX_GRID_DIM_X), A(MAX_GRID_DIM_Y), A(MAX_GRID_DIM_Z)},
        .sharedMemPerBlock = A(MAX_SHARED_MEMORY_PER_BLOCK),
        .totalConstantMemory = A(TOTAL_CONSTANT_MEMORY),
        .SIMDWidth = A(WARP_SIZE),
        .memPitch = A(MAX_PITCH),
        .regsPerBlock = A(MAX_REGISTERS_PER_BLOCK),
        .clockRate = A(CLOCK_RATE),
        .textureAlign = A(TEXTURE_ALIGNMENT),
    };
#undef A
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format SG_UNUSED,
                                                   unsigned channels SG_UNUSED, CUdevice dev)
{
    ENTER_DEV(i, dev);
    if (!width)
        return CUDA_ERROR_INVALID_VALUE;
    *width = (size_t)i->attribute[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH];
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type SG_UNUSED, CUdevice dev)
{
    ENTER_DEV(i, dev);
    (void)i;
    if (!supported)
        return CUDA_ERROR_INVALID_VALUE;
    *supported = 0;
    return CUDA_SUCCESS;
}
