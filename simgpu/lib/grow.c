// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * grow.c: device memory that the driver takes by itself: code when its first
 * function runs, local memory for every thread that the GPU can hold, buffers of
 * printf and malloc, graphs and streams. All of it is nothing on a card with the
 * exact account (struct sg_memory_rules). Except for code it is one entry of the
 * host's account a context, changed in size.
 */
#include <elf.h>

#include "sg.h"

/* Part of what every context costs. */
#define BASE_STACK 1024u
#define BASE_FIFO ((size_t)1 << 20)
#define BASE_HEAP ((size_t)8 << 20)

/* Asks the host for what the context has now; to nothing of it on failure. */
static CUresult settle(CUcontext c, const struct sg_growth *now)
{
    size_t bytes = now->local + now->fifo + now->heap + now->streams + now->graphs;
    struct sg_request make = {.op = SG_OP_ALLOC, .gpu = sg_state.dev[c->dev].index, .ctx = c->id, .a = bytes,
                              .b = SG_USE_GROWTH};
    struct sg_request req = {.op = SG_OP_RESIZE, .a = c->growth.handle, .b = bytes};
    struct sg_reply rep;
    uint64_t handle = c->growth.handle;
    CUresult r = CUDA_SUCCESS;

    if (handle) {
        r = sg_call(&req, NULL, &rep, NULL, 0, NULL);
    } else if (bytes) {
        r = sg_call(&make, NULL, &rep, NULL, 0, NULL);
        handle = rep.a;
    }
    if (r != CUDA_SUCCESS)
        return r;
    c->growth = *now;
    c->growth.handle = handle;
    return CUDA_SUCCESS;
}

static size_t beyond(size_t value, size_t base)
{
    return value > base ? value - base : 0;
}

/* Bytes of local memory for all threads that can be resident, beyond the base. */
static size_t local_bytes(CUcontext c, size_t a_thread)
{
    const struct sg_memory_rules *rules = sg_rules(c->dev);
    size_t threads = rules->resident_threads * sg_state.dev[c->dev].info->multiprocessors, n;

    if (__builtin_mul_overflow(threads, beyond(sg_round(a_thread, 512), BASE_STACK), &n))
        return SIZE_MAX / 4;
    return n;
}

CUresult sg_grow_limit(CUcontext c, CUlimit limit, size_t value)
{
    struct sg_growth now;
    CUresult r = CUDA_SUCCESS;

    if (!sg_rules(c->dev)->resident_threads)
        return r;
    sg_lock();
    now = c->growth;
    switch ((int)limit) {
    case CU_LIMIT_STACK_SIZE: /* at once */
        if (value > (size_t)512 << 10)
            r = CUDA_ERROR_INVALID_VALUE;
        else
            now.local = local_bytes(c, value);
        if (r == CUDA_SUCCESS)
            r = settle(c, &now);
        break;
    case CU_LIMIT_PRINTF_FIFO_SIZE: /* with the next code that runs */
        c->growth.fifo_limit = beyond(value, BASE_FIFO);
        sg_module_renumber(c);
        break;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        c->growth.heap_limit = beyond(value, BASE_HEAP);
        sg_module_renumber(c);
        break;
    default:
        break;
    }
    sg_unlock();
    return r;
}

/* Brings a module's code onto the context's device. */
static CUresult load_code(CUmodule m, CUcontext c)
{
    size_t unit = sg_rules(c->dev)->module_bytes;
    uint64_t handle = 0;
    CUresult r;

    if (!unit || __atomic_load_n(&m->charges[c->dev], __ATOMIC_RELAXED))
        return CUDA_SUCCESS;
    r = sg_device_take(c->dev, c, sg_round(m->image ? m->image : 1, unit), SG_USE_MODULE, &handle);
    if (r != CUDA_SUCCESS)
        return r;
    sg_lock();
    if (m->charges[c->dev]) { /* another thread was faster */
        sg_unlock();
        sg_device_give(handle);
        return CUDA_SUCCESS;
    }
    m->charges[c->dev] = handle;
    sg_unlock();
    return CUDA_SUCCESS;
}

/* What limits have asked for since, and what a thread of this code needs. */
static CUresult take_up(CUcontext c, size_t local)
{
    struct sg_growth now;
    CUresult r = CUDA_SUCCESS;

    if (!sg_rules(c->dev)->resident_threads)
        return r;
    sg_lock();
    now = c->growth;
    now.fifo = now.fifo_limit;
    now.heap = now.heap_limit;
    if (local_bytes(c, local) > now.local)
        now.local = local_bytes(c, local);
    if (now.fifo != c->growth.fifo || now.heap != c->growth.heap || now.local != c->growth.local)
        r = settle(c, &now);
    sg_unlock();
    return r;
}

CUresult sg_grow_launch(CUfunction f)
{
    CUcontext c = sg_current();
    CUresult r;

    if (!c)
        return CUDA_SUCCESS;
    r = load_code(f->module, c);
    return r == CUDA_SUCCESS ? take_up(c, (size_t)f->facts.local) : r;
}

CUresult sg_grow_code(CUmodule m)
{
    CUcontext c = sg_current();

    return c ? load_code(m, c) : CUDA_SUCCESS;
}

/* Code is loaded when it is used, unless the program's environment says otherwise. */
CUresult sg_grow_load(CUmodule m)
{
    const char *mode = getenv("CUDA_MODULE_LOADING");
    CUcontext c = sg_current();
    CUresult r = CUDA_SUCCESS;

    if (!c)
        return r;
    if (mode && !strcmp(mode, "EAGER"))
        r = load_code(m, c);
    return r == CUDA_SUCCESS ? take_up(c, 0) : r;
}

CUresult sg_grow_stream(CUcontext c, bool made)
{
    size_t n = sg_rules(c->dev)->stream_bytes;
    struct sg_growth now = c->growth;

    if (!n || !c->alive)
        return CUDA_SUCCESS;
    now.streams = made ? now.streams + n : now.streams < n ? 0 : now.streams - n;
    return settle(c, &now);
}

CUresult sg_grow_exec(CUcontext c, size_t nodes, uint64_t *ret_charge)
{
    const struct sg_memory_rules *rules = sg_rules(c->dev);
    struct sg_growth now;
    CUresult r = CUDA_SUCCESS;

    *ret_charge = rules->graph_bytes + nodes * rules->graph_node_bytes;
    if (!*ret_charge)
        return r;
    sg_lock();
    now = c->growth;
    now.graphs += *ret_charge;
    r = settle(c, &now);
    sg_unlock();
    return r;
}

void sg_grow_drop(CUcontext c, uint64_t charge)
{
    struct sg_growth now;

    if (!charge || !sg_is(c, SG_CTX) || !c->alive)
        return;
    sg_lock();
    now = c->growth;
    now.graphs -= now.graphs < charge ? now.graphs : charge;
    settle(c, &now);
    sg_unlock();
}

void sg_grow_end(CUcontext c)
{
    sg_device_give(c->growth.handle);
    memset(&c->growth, 0, sizeof(c->growth));
}

/* Bytes of a code image, from its own header; it is not looked at further. */
size_t sg_image_bytes(const void *image)
{
    const unsigned char *p = image;
    uint32_t magic;

    memcpy(&magic, p, sizeof(magic));
    if (magic == 0x466243b1u) { /* a wrapper around a fat binary: magic, version, data */
        const void *data;

        memcpy(&data, p + 8, sizeof(data));
        return data ? sg_image_bytes(data) : 0;
    }
    if (magic == 0xba55ed50u) { /* a fat binary: magic, version, bytes of the header, of the rest */
        uint16_t head;
        uint64_t rest;

        memcpy(&head, p + 6, sizeof(head));
        memcpy(&rest, p + 8, sizeof(rest));
        return rest > (size_t)1 << 32 ? 0 : head + rest;
    }
    if (!memcmp(p, ELFMAG, SELFMAG)) {
        Elf64_Ehdr h;
        uint64_t n;

        memcpy(&h, p, sizeof(h));
        n = h.e_shoff + (uint64_t)h.e_shentsize * h.e_shnum;
        return n > (size_t)1 << 32 ? 0 : n;
    }
    return 0;
}
