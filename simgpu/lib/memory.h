// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * memory.h: device memory, part of sg.h.
 *
 * A block is what the host gave as one thing: one mapping and one entry of the
 * account. Programs' allocations (struct sg_mem) lie in blocks: one block each on
 * a card with the exact account, small ones together in a block on others. Memory
 * is private to the process until it is shown to others; then the block's mapping
 * becomes one of a memory file of the host's, at the same address.
 *
 * Who moves bytes of device memory does so between sg_bytes_use and _done; who
 * exchanges the mappings under them, between sg_bytes_lock and _unlock, alone.
 * That lock is taken before sg_state.lock.
 */
#ifndef SG_MEMORY_H
#define SG_MEMORY_H

enum sg_kind {
    SG_MEM_DEVICE,
    SG_MEM_MANAGED,
    SG_MEM_HOST,       /* cuMemAllocHost, cuMemHostAlloc */
    SG_MEM_REGISTERED, /* cuMemHostRegister */
    SG_MEM_POOL,
    SG_MEM_MODULE, /* global variables */
    SG_MEM_MAPPED, /* cuMemMap */
    SG_MEM_ARRAY,
    SG_MEM_GRAPH,    /* memory nodes */
    SG_MEM_IPC,      /* cuIpcOpenMemHandle */
    SG_MEM_EXTERNAL, /* cuExternalMemoryGetMappedBuffer */
    SG_MEM_IMPORTED, /* cuMemPoolImportPointer */
};

struct sg_mem {
    uintptr_t base;
    size_t size;   /* as asked for */
    size_t mapped; /* bytes that are its own */
    CUdevice dev;
    CUcontext ctx;
    enum sg_kind kind;
    unsigned flags;
    CUmemoryPool pool;
    struct sg_block *block;
    struct sg_physical *physical; /* of a mapping */
    struct sg_managed *managed;
    void *owner; /* what made it, for kinds that have such a thing */
    unsigned long long serial;
    unsigned sync_memops;
    uint64_t access; /* of a mapping: two bits a device, the host's from 32 on */
};

/* A part of a block that nobody uses. */
struct sg_hole {
    size_t at, size;
    struct sg_hole *next; /* by address */
};

struct sg_block {
    uintptr_t base;
    size_t size;     /* bytes of the mapping */
    uint64_t handle; /* the host's; 0: not device memory */
    CUdevice dev;
    CUcontext ctx;
    CUmemoryPool pool;
    unsigned use;
    bool shared;      /* a mapping of a memory file */
    bool keyed;       /* key is known */
    size_t live;      /* bytes given out */
    size_t need;      /* of a pool that keeps nothing: bytes that it was taken for */
    struct sg_hole *holes;
    struct sg_block *next;
    unsigned char key[SG_KEY_BYTES];
};

/* A freed part of a pool that its stream has not passed yet. */
struct sg_pending {
    struct sg_block *block;
    size_t at, size;
    uint32_t slot;
    uint64_t position;
    struct sg_pending *next;
};

struct CUmemPoolHandle_st {
    uint32_t magic;
    CUdevice dev; /* -1: in the host's memory */
    CUmemLocation location;
    bool deflt, imported;
    uint64_t handle; /* the host's, of a pool that is shared */
    unsigned handle_types;
    uint64_t threshold, used, used_high, reserved, reserved_high;
    size_t max_size, chunk;
    int reuse[3];
    unsigned char access[SG_MAX_GPUS];
    struct sg_block *blocks;
    struct sg_pending *pending;
    size_t outstanding; /* allocations */
    bool destroyed;
    CUmemoryPool next;
};

static inline size_t sg_round(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- blocks (block.c) ------------------------------------------------------- */
void sg_bytes_use(void);
void sg_bytes_done(void);
void sg_bytes_lock(void);
void sg_bytes_unlock(void);
/* Takes bytes from a GPU; when it is full, after giving back what pools keep. */
CUresult sg_device_take(CUdevice dev, CUcontext ctx, size_t bytes, unsigned use, uint64_t *ret_handle);
void sg_device_give(uint64_t handle);
CUresult sg_block_new(CUdevice dev, CUcontext ctx, size_t bytes, unsigned use, bool low, struct sg_block **ret);
void sg_block_free(struct sg_block *b);
/* Address space for n bytes at a multiple of align, as mmap makes it; NULL: none. */
void *sg_map_aligned(uintptr_t hint, size_t n, size_t align, int prot, int flags, int fd);
/* With the lock held: a part of b, 0 if it has no hole of that size; and back. */
uintptr_t sg_block_take(struct sg_block *b, size_t n);
void sg_block_give(struct sg_block *b, uintptr_t p, size_t n);
/* With sg_bytes_lock and the lock held: makes b's bytes those of a memory file. */
CUresult sg_block_share(struct sg_block *b);
CUresult sg_block_key(struct sg_block *b, const void *note, size_t n);
/* The memory file of a handle of the host's; create: make it. */
CUresult sg_shared_file(uint64_t handle, bool create, int *ret_fd, size_t *ret_size);
/* Copies the pages of [p, p+n) that were ever touched into a file. */
bool sg_save_pages(int fd, off_t at, const char *p, size_t n);
CUresult sg_import(const void *key, int fd, struct sg_reply *ret, void *note, size_t note_size);
/* Maps the memory file behind a handle, all of it given out. */
CUresult sg_block_import(uint64_t handle, size_t bytes, CUdevice dev, CUcontext ctx, struct sg_block **ret);
CUresult sg_export(uint64_t handle, const void *note, size_t n, int *ret_fd);
CUdevice sg_device_of(unsigned gpu); /* the device of a GPU of the host's, or -1 */

/* ---- the table and linear memory (mem.c) ------------------------------------ */
/* With the lock held. Finds the block that holds [p, p+n). */
struct sg_mem *sg_mem_find(uintptr_t p, size_t n);
bool sg_mem_touches(uintptr_t p, size_t n); /* does any block lie in [p, p+n)? */
CUresult sg_mem_insert(const struct sg_mem *m);
void sg_mem_each(void (*f)(struct sg_mem *m, void *arg), void *arg); /* f must not change the table */
void sg_mem_remove(struct sg_mem *m);
CUresult sg_mem_alloc(size_t bytes, enum sg_kind kind, bool low, unsigned flags, CUcontext ctx, CUdeviceptr *ret);
/* Frees a block by its first address. wait: first for the context's work. */
CUresult sg_mem_free(CUdeviceptr p, enum sg_kind kind, bool wait);
void sg_mem_free_context(CUcontext ctx);
/* Whether a device range may be touched; takes the lock. */
bool sg_mem_ours(CUdeviceptr p, size_t n);
/* Whether n bytes can be a host buffer: not NULL, and if p lies in a block of
 * ours, all of it does. */
bool sg_mem_host(const void *p, size_t n);
/* Zeroes whole pages of device memory by giving them back; false: not possible. */
bool sg_mem_zero_pages(char *p, size_t n);

/* ---- managed memory (managed.c) ---------------------------------------------- */
CUresult sg_managed_alloc(size_t bytes, unsigned flags, CUcontext ctx, CUdeviceptr *ret);
void sg_managed_free(struct sg_managed *g); /* the lock may be held */
/* The GPU uses [p, p+n), which need not be managed: brings it there. */
void sg_managed_touch(CUdeviceptr p, size_t n, CUdevice dev);

/* ---- pools (pool.c, poolshare.c) --------------------------------------------- */
void sg_pool_init(CUmemoryPool p, CUdevice dev);
/* A synchronisation was done: pools give back what lies over their threshold. */
void sg_pool_sync(void);
/* Gives back all that pools of a device do not use. */
bool sg_pools_trim(CUdevice dev);
void sg_pool_mem_free(struct sg_mem *m, CUstream s); /* the lock is held; m is out of the table */
CUresult sg_pool_of(CUdevice dev, CUmemoryPool *ret);
bool sg_pool_valid(CUmemoryPool p);
CUmemoryPool sg_pool_add(const struct CUmemPoolHandle_st *like);
void sg_pool_forget(CUmemoryPool p); /* the lock is held */

/* ---- physical memory (vmm.c, vmmshare.c, multicast.c) ------------------------ */
struct sg_physical {
    uint32_t magic;
    CUdevice dev; /* -1: of the host */
    size_t size;
    off_t offset; /* in the process's own file; -1: in a memory file that is shared */
    uint64_t handle; /* the host's */
    unsigned refs;   /* handles given out and mappings */
    unsigned handles;
    CUmemAllocationProp prop;
    struct sg_multicast *multicast; /* not memory but a multicast object */
};
struct sg_physical *sg_physical_of(CUmemGenericAllocationHandle h); /* the lock is held */
struct sg_physical *sg_physical_new(void);
void sg_physical_put(struct sg_physical *m); /* drops one reference; the lock is held */
/* With the lock held: makes mapping m show its physical memory. */
bool sg_physical_show(const struct sg_mem *m, int fd, off_t offset);
void sg_multicast_free(struct sg_multicast *m);

/* ---- arrays (array.c, mipmap.c) ----------------------------------------------- */
struct CUarray_st {
    uint32_t magic;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUdeviceptr base;     /* 0: nothing is mapped */
    size_t pitch, height; /* bytes of a row, rows of a slice, as laid out */
    size_t row;           /* bytes of a row that hold elements */
    size_t bytes;         /* of all of it */
    CUcontext ctx;
    CUmipmappedArray level_of; /* of which this is a level */
    CUarray next;
};
CUresult sg_array_layout(const CUDA_ARRAY3D_DESCRIPTOR *d, CUdevice dev, struct CUarray_st *a);
size_t sg_format_bytes(CUarray_format f);
void sg_array_free_context(CUcontext ctx);
void sg_texref_free_module(CUmodule m); /* the lock is held */

/* ---- what the driver takes by itself (grow.c) ---------------------------------- */
CUresult sg_grow_limit(CUcontext c, CUlimit limit, size_t value);
CUresult sg_grow_launch(CUfunction f); /* the first launch of a function */
CUresult sg_grow_load(CUmodule m);
CUresult sg_grow_code(CUmodule m); /* a module's code or data is used */
CUresult sg_grow_stream(CUcontext c, bool made); /* the lock is held */
void sg_grow_end(CUcontext c);                   /* the lock is held */
CUresult sg_grow_exec(CUcontext c, size_t nodes, uint64_t *ret_charge);
void sg_grow_drop(CUcontext c, uint64_t charge);
size_t sg_image_bytes(const void *image);

#endif
