// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* pointer.c: what an address is. */
#include "sg.h"

static bool pinned(const struct sg_mem *m)
{
    return m && (m->kind == SG_MEM_HOST || m->kind == SG_MEM_REGISTERED);
}

/* Lies in the host's memory, whoever it belongs to. */
static bool on_host(const struct sg_mem *m)
{
    return pinned(m) || (m->kind == SG_MEM_POOL && m->pool->dev < 0) || (m->kind == SG_MEM_MAPPED && m->physical->dev < 0);
}

/* Memory that is no context's. */
static bool of_device(const struct sg_mem *m)
{
    return m->kind == SG_MEM_POOL || m->kind == SG_MEM_MAPPED || m->kind == SG_MEM_IMPORTED || m->kind == SG_MEM_GRAPH;
}

static unsigned long long handle_types(const struct sg_mem *m)
{
    if (m->kind == SG_MEM_MAPPED)
        return (unsigned)m->physical->prop.requestedHandleTypes;
    if (m->kind == SG_MEM_POOL || m->kind == SG_MEM_IMPORTED)
        return m->pool->handle_types;
    return 0;
}

/* Access of the context's device. */
static unsigned access_of(const struct sg_mem *m, CUcontext c)
{
    if (m->kind == SG_MEM_MAPPED)
        return m->access >> 2 * c->dev & 3;
    if (m->kind == SG_MEM_POOL && m->pool->dev >= 0)
        return m->pool->access[c->dev];
    return m->kind == SG_MEM_REGISTERED && m->flags & CU_MEMHOSTREGISTER_READ_ONLY ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                                                   : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/* Writes one attribute of the block m, which may be NULL. */
static CUresult attribute(void *out, CUpointer_attribute a, CUdeviceptr p, const struct sg_mem *m, CUcontext c)
{
    switch ((int)a) {
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(bool *)out = m != NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(bool *)out = m && m->kind == SG_MEM_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(bool *)out = false;
        return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        if (!m)
            return CUDA_ERROR_INVALID_VALUE;
    }
    switch ((int)a) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = of_device(m) ? NULL : m->ctx;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = on_host(m) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = p;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!on_host(m) && m->kind != SG_MEM_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)out = (void *)(uintptr_t)p;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)out = m->sync_memops;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)out = m->serial;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: /* the same for all mappings of the same memory */
        *(unsigned long long *)out = m->physical ? (uintptr_t)m->physical : m->serial;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = m->kind == SG_MEM_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = m->dev;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)out = m->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)out = m->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)out = handle_types(m);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)out = access_of(m, c);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)out = m->pool;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

SG_API CUresult cuPointerGetAttribute(void *out, CUpointer_attribute a, CUdeviceptr p)
{
    CUresult r;

    SG_ENTER_CTX(c);
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    r = attribute(out, a, p, sg_mem_find((uintptr_t)p, 1), c);
    sg_unlock();
    return r;
}

/* Attributes of a pointer that is nobody's block are zero, not an error. */
SG_API CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *a, void **out, CUdeviceptr p)
{
    SG_ENTER_CTX(c);
    if (!n || !a || !out)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    for (unsigned i = 0; i < n; i++) {
        if (!out[i] || attribute(out[i], a[i], p, sg_mem_find((uintptr_t)p, 1), c) == CUDA_SUCCESS)
            continue;
        switch ((int)a[i]) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *(unsigned long long *)out[i] = 0;
            break;
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)out[i] = -2;
            break;
        default:
            *(int *)out[i] = 0;
        }
    }
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute a, CUdeviceptr p)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE;
    struct sg_mem *m;

    SG_ENTER_CTX(c);
    (void)c;
    if (!value || a != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return r;
    sg_lock();
    m = sg_mem_find((uintptr_t)p, 1);
    if (m) {
        m->sync_memops = *(const unsigned *)value;
        r = CUDA_SUCCESS;
    }
    sg_unlock();
    return r;
}
