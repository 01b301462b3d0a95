// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * userobject.c: counted objects of the program that graphs hold. The
 * destructor runs when the last count goes, in the thread that drops it.
 */
#include "sg.h"

struct CUuserObject_st {
    uint32_t magic;
    void *ptr;
    CUhostFn destroy;
    unsigned long refs;
    unsigned long own; /* of them the program's, not a graph's */
};

struct sg_held {
    CUuserObject object;
    unsigned long count;
    struct sg_held *next;
};

static bool valid(CUuserObject o)
{
    return sg_is(o, SG_USER_OBJECT);
}

static void drop(CUuserObject o, unsigned long n)
{
    if (__atomic_sub_fetch(&o->refs, n, __ATOMIC_SEQ_CST))
        return;
    o->magic = 0;
    o->destroy(o->ptr);
    sg_object_free(o, sizeof(*o));
}

/* Takes n references out of the program's own. Those of graphs are not its to
 * give up: the graph would later give up what is gone. */
static bool disown(CUuserObject o, unsigned long n)
{
    unsigned long own = __atomic_load_n(&o->own, __ATOMIC_SEQ_CST);

    do {
        if (n > own)
            return false;
    } while (!__atomic_compare_exchange_n(&o->own, &own, own - n, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return true;
}

SG_API CUresult cuUserObjectCreate(CUuserObject *po, void *ptr, CUhostFn destroy, unsigned int refs, unsigned int flags)
{
    CUuserObject o;

    SG_ENTER();
    if (!po || !destroy || !refs || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    o = sg_object_new(sizeof(*o));
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *o = (struct CUuserObject_st){SG_USER_OBJECT, ptr, destroy, refs, refs};
    *po = o;
    return CUDA_SUCCESS;
}

SG_API CUresult cuUserObjectRetain(CUuserObject o, unsigned int n)
{
    SG_ENTER();
    if (!valid(o) || !n)
        return CUDA_ERROR_INVALID_VALUE;
    __atomic_add_fetch(&o->refs, n, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&o->own, n, __ATOMIC_SEQ_CST);
    return CUDA_SUCCESS;
}

SG_API CUresult cuUserObjectRelease(CUuserObject o, unsigned int n)
{
    SG_ENTER();
    if (!valid(o) || !n || !disown(o, n))
        return CUDA_ERROR_INVALID_VALUE;
    drop(o, n);
    return CUDA_SUCCESS;
}

static CUresult hold(CUgraph g, CUuserObject o, unsigned long n)
{
    struct sg_held *h = calloc(1, sizeof(*h));

    if (!h)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *h = (struct sg_held){o, n, g->held};
    g->held = h;
    return CUDA_SUCCESS;
}

SG_API CUresult cuGraphRetainUserObject(CUgraph g, CUuserObject o, unsigned int n, unsigned int flags)
{
    bool move = flags & CU_GRAPH_USER_OBJECT_MOVE;
    CUresult r;

    SG_ENTER();
    if (!sg_is(g, SG_GRAPH) || !valid(o) || !n || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE || (move && !disown(o, n)))
        return CUDA_ERROR_INVALID_VALUE;
    r = hold(g, o, n);
    if (r != CUDA_SUCCESS && move)
        __atomic_add_fetch(&o->own, n, __ATOMIC_SEQ_CST);
    if (r == CUDA_SUCCESS && !move)
        __atomic_add_fetch(&o->refs, n, __ATOMIC_SEQ_CST);
    return r;
}

SG_API CUresult cuGraphReleaseUserObject(CUgraph g, CUuserObject o, unsigned int n)
{
    SG_ENTER();
    if (!sg_is(g, SG_GRAPH) || !valid(o) || !n)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct sg_held **h = &g->held; *h; h = &(*h)->next) {
        struct sg_held *gone = *h;

        if (gone->object != o || gone->count < n)
            continue;
        gone->count -= n;
        if (!gone->count) {
            *h = gone->next;
            free(gone);
        }
        drop(o, n);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

/* A copy of a graph holds what the graph holds. */
bool sg_held_copy(CUgraph to, CUgraph from)
{
    for (struct sg_held *h = from->held; h; h = h->next) {
        if (hold(to, h->object, h->count) != CUDA_SUCCESS)
            return false;
        __atomic_add_fetch(&h->object->refs, h->count, __ATOMIC_SEQ_CST);
    }
    return true;
}

void sg_held_free(CUgraph g)
{
    while (g->held) {
        struct sg_held *h = g->held;

        g->held = h->next;
        drop(h->object, h->count);
        free(h);
    }
}
