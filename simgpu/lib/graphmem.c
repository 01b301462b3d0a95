// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graphmem.c: memory of allocation nodes. The address is fixed when the node is
 * made; bytes are taken from the GPU when a launch comes to the node and go to
 * the device's reserve when the block is freed. The reserve serves the next
 * graph that needs as much and is given back by cuDeviceGraphMemTrim only.
 */
#include <sys/mman.h>

#include "sg.h"

struct sg_graph_block {
    uintptr_t base;
    size_t size, mapped;
    CUdevice dev;
    unsigned refs;   /* nodes, and one while live; under the lock */
    bool live;       /* taken and not freed */
    uint64_t handle; /* the host's, while live */
    struct sg_graph_block *next;
};
static struct sg_graph_block *blocks; /* under the lock */

/* What a device keeps for graphs; under the lock. */
struct spare {
    uint64_t handle;
    size_t bytes;
    struct spare *next;
};
static struct {
    struct spare *spares;
    uint64_t used, used_high, reserved, reserved_high;
} kept[SG_MAX_GPUS];

static size_t rounded(CUdevice dev, size_t n)
{
    size_t unit = sg_rules(dev)->block_bytes;

    return sg_round(n, unit ? unit : SG_ALLOC_UNIT);
}

static CUresult ask(unsigned gpu, size_t bytes, uint64_t *ret)
{
    struct sg_request req = {.op = SG_OP_ALLOC, .gpu = gpu, .a = bytes, .b = SG_USE_GRAPH};
    struct sg_reply rep;
    CUresult r = sg_call(&req, NULL, &rep, NULL, 0, NULL);

    if (r == CUDA_SUCCESS)
        *ret = rep.a;
    return r;
}

CUresult sg_graph_block_new(CUDA_MEM_ALLOC_NODE_PARAMS *a, struct sg_graph_block **ret)
{
    struct sg_mem m = {.kind = SG_MEM_GRAPH, .size = a->bytesize};
    struct sg_graph_block *b;
    CUresult r;
    void *p;

    if (!a->bytesize || a->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (a->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE || a->poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!sg_dev(a->poolProps.location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    for (size_t i = 0; i < a->accessDescCount; i++) {
        if (a->accessDescs[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sg_dev(a->accessDescs[i].location.id))
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (a->bytesize > (size_t)1 << 46)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b = calloc(1, sizeof(*b));
    if (!b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->size = a->bytesize;
    b->mapped = (b->size + SG_PAGE - 1) / SG_PAGE * SG_PAGE;
    b->dev = a->poolProps.location.id;
    b->refs = 1;
    p = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        free(b);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    m.base = b->base = (uintptr_t)p;
    m.mapped = b->mapped;
    m.dev = b->dev;
    sg_lock();
    r = sg_mem_insert(&m);
    if (r == CUDA_SUCCESS) {
        b->next = blocks;
        blocks = b;
    }
    sg_unlock();
    if (r != CUDA_SUCCESS) {
        munmap(p, b->mapped);
        free(b);
        return r;
    }
    a->dptr = b->base;
    *ret = b;
    return CUDA_SUCCESS;
}

struct sg_graph_block *sg_graph_block_hold(struct sg_graph_block *b)
{
    __atomic_add_fetch(&b->refs, 1, __ATOMIC_SEQ_CST);
    return b;
}

void sg_graph_block_drop(struct sg_graph_block *b)
{
    struct sg_mem *m;

    sg_lock();
    if (__atomic_sub_fetch(&b->refs, 1, __ATOMIC_SEQ_CST)) {
        sg_unlock();
        return;
    }
    for (struct sg_graph_block **p = &blocks; *p; p = &(*p)->next) {
        if (*p == b) {
            *p = b->next;
            break;
        }
    }
    m = sg_mem_find(b->base, 1);
    if (m)
        sg_mem_remove(m);
    sg_unlock();
    munmap((void *)b->base, b->mapped);
    free(b);
}

/* The block that begins at p, held; or NULL. */
struct sg_graph_block *sg_graph_block_find(CUdeviceptr p)
{
    struct sg_graph_block *b;

    sg_lock();
    for (b = blocks; b && b->base != p; b = b->next)
        ;
    if (b)
        b->refs++;
    sg_unlock();
    return b;
}

CUdeviceptr sg_graph_block_address(const struct sg_graph_block *b)
{
    return b->base;
}

bool sg_graph_block_live(const struct sg_graph_block *b)
{
    return __atomic_load_n(&b->live, __ATOMIC_ACQUIRE);
}

/* The reserve goes back to the GPU. The lock is held. */
static void trim(CUdevice dev)
{
    while (kept[dev].spares) {
        struct spare *s = kept[dev].spares;

        kept[dev].spares = s->next;
        kept[dev].reserved -= s->bytes;
        sg_rpc(SG_OP_FREE, sg_state.dev[dev].index, 0, s->handle, NULL);
        free(s);
    }
}

/* Bytes from the reserve, else from the GPU. The lock is held. */
static CUresult take(CUdevice dev, size_t bytes, uint64_t *ret)
{
    unsigned gpu = sg_state.dev[dev].index;
    CUresult r;

    for (struct spare **p = &kept[dev].spares; *p; p = &(*p)->next) {
        struct spare *s = *p;

        if (s->bytes == bytes) {
            *ret = s->handle;
            *p = s->next;
            free(s);
            return CUDA_SUCCESS;
        }
    }
    r = ask(gpu, bytes, ret);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && kept[dev].spares) {
        trim(dev);
        r = ask(gpu, bytes, ret);
    }
    if (r == CUDA_SUCCESS) {
        kept[dev].reserved += bytes;
        if (kept[dev].reserved > kept[dev].reserved_high)
            kept[dev].reserved_high = kept[dev].reserved;
    }
    return r;
}

CUresult sg_graph_block_take(struct sg_graph_block *b)
{
    CUresult r = CUDA_ERROR_INVALID_VALUE; /* a launch before has not been freed */

    sg_lock();
    if (!b->live)
        r = take(b->dev, rounded(b->dev, b->size), &b->handle);
    if (r == CUDA_SUCCESS) {
        b->live = true;
        b->refs++;
        kept[b->dev].used += rounded(b->dev, b->size);
        if (kept[b->dev].used > kept[b->dev].used_high)
            kept[b->dev].used_high = kept[b->dev].used;
    }
    sg_unlock();
    return r;
}

CUresult sg_graph_block_give(struct sg_graph_block *b)
{
    struct spare *s = malloc(sizeof(*s));

    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sg_lock();
    if (!b->live) {
        sg_unlock();
        free(s);
        return CUDA_ERROR_INVALID_VALUE;
    }
    b->live = false;
    kept[b->dev].used -= rounded(b->dev, b->size);
    *s = (struct spare){b->handle, rounded(b->dev, b->size), kept[b->dev].spares};
    kept[b->dev].spares = s;
    sg_unlock();
    sg_graph_block_drop(b);
    return CUDA_SUCCESS;
}

/* Frees, from outside of graphs, what a launch left allocated. */
CUresult sg_graph_mem_free(CUdeviceptr p, bool wait)
{
    struct sg_graph_block *b = sg_graph_block_find(p);
    CUcontext c = sg_current();
    CUresult r;

    if (!b)
        return CUDA_ERROR_INVALID_VALUE;
    if (wait && c && c->alive)
        sg_ctx_wait(c);
    r = sg_graph_block_give(b);
    sg_graph_block_drop(b);
    return r;
}

/* ---- the account of a device ---------------------------------------------------------- */

SG_API CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
    SG_ENTER();
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    sg_lock();
    trim(dev);
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute a, void *value)
{
    SG_ENTER();
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || (unsigned)a > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    *(cuuint64_t *)value = ((uint64_t[]){kept[dev].used, kept[dev].used_high, kept[dev].reserved,
                                         kept[dev].reserved_high})[a];
    sg_unlock();
    return CUDA_SUCCESS;
}

SG_API CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute a, void *value)
{
    SG_ENTER();
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *(cuuint64_t *)value) /* high-water marks may only be reset */
        return CUDA_ERROR_INVALID_VALUE;
    sg_lock();
    if (a == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        kept[dev].used_high = kept[dev].used;
    else if (a == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        kept[dev].reserved_high = kept[dev].reserved;
    sg_unlock();
    return a == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || a == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH ? CUDA_SUCCESS
                                                                                          : CUDA_ERROR_INVALID_VALUE;
}
