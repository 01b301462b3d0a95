// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * sg.h: what the files of the simulated libcuda.so.1 share.
 *
 * Locks, in the order in which they may be held together: sg_state.lock (all
 * objects), sg_conn.ring_lock (submission). The socket has a lock of its own,
 * taken last and never held while a thread waits for the GPU.
 */
#ifndef SG_H
#define SG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "clock.h"
#include "cuda_abi.h"
#include "wire.h"

/* A function behind an exported name (names_gen.h, thunk.h). */
#define SG_API __attribute__((visibility("hidden")))
#define SG_UNUSED __attribute__((unused))
#define SG_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define SG_PAGE 4096u
#define SG_ALLOC_UNIT 512u

/* ---- connection (conn.c, ring.c) --------------------------------------- */
struct sg_conn {
    int fd;
    struct sg_shared *shm;
    struct sg_kicks *kicks;
    const struct sg_node *node; /* read-only; never NULL once connected */
    pthread_mutex_t rpc_lock;
    pthread_mutex_t ring_lock;
    uint32_t next_id;
    bool lost; /* the host process is gone */
    struct sg_waits *waits; /* of threads that wait on a virtual clock */
    void (*before_call)(void); /* on a virtual clock: the thread's time is the node's then */
};
extern struct sg_conn sg_conn;

int sg_connect(uint32_t kind);
void sg_host_gone(void);
int sg_open(uint32_t kind); /* a connection besides: the descriptor, or -1 */
int sg_link(void);
ssize_t sg_exchange(int fd, struct sg_request *req, const void *data, struct sg_reply *ret, void *out, size_t out_size);
/* Finds the GPUs that this process may use; sets *ret_minor of at most max. */
unsigned sg_visible(const struct sg_node *node, unsigned *ret_index, unsigned max);
/* One request; a is both the argument and, through ret, the answer. */
CUresult sg_call(struct sg_request *req, const void *data, struct sg_reply *ret, void *out, size_t out_size,
                 size_t *ret_len);
CUresult sg_call_fd(struct sg_request *req, const void *data, int pass, struct sg_reply *ret, void *out, size_t out_size,
                    size_t *ret_len, int *ret_fd);
CUresult sg_rpc(uint32_t op, uint32_t gpu, uint32_t ctx, uint64_t a, uint64_t *ret_a);
void sg_tell(uint32_t op, uint64_t a, uint64_t b);

/* ---- objects ------------------------------------------------------------ */
enum sg_magic {
    SG_CTX = 0x53474354,
    SG_STREAM = 0x53475354,
    SG_EVENT = 0x53474556,
    SG_MODULE = 0x53474d4f,
    SG_FUNC = 0x5347464e,
    SG_GRAPH = 0x53474752,
    SG_NODE = 0x53474e44,
    SG_EXEC = 0x53474558,
    SG_HIDDEN = 0x53474849, /* a graph or node of an executable graph */
    SG_GREEN = 0x53474743,
    SG_RESOURCE_DESC = 0x53475244,
    SG_CALLBACK = 0x53474342,
    SG_POOL = 0x5347504f,
    SG_ARRAY = 0x53474152,
    SG_LINK = 0x53474c4b,
    SG_VMM = 0x5347564d,
    SG_MIPMAP = 0x53474d49,
    SG_TEXREF = 0x53475452,
    SG_EXTERNAL = 0x5347584d,
    SG_USER_OBJECT = 0x5347554f,
};

/* Memory of what programs hold handles of (object.c): the magic word comes first. */
void *sg_object_new(size_t size);
void sg_object_free(void *p, size_t size);
bool sg_object_ours(const void *p);
/* Whether a handle, whatever it is, is that of a living object of a kind. */
static inline bool sg_is(const void *p, uint32_t magic)
{
    return sg_object_ours(p) && __atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED) == magic;
}

/* What a context took beyond its fixed amount (grow.c). */
struct sg_growth {
    uint64_t handle; /* the host's */
    size_t local, fifo, heap, streams, graphs; /* bytes of each */
    size_t heap_limit, fifo_limit;             /* taken at the next load or launch */
};

struct CUctx_st {
    uint32_t magic;
    uint32_t id; /* the host's */
    CUdevice dev;
    bool primary, alive;
    unsigned flags;
    unsigned api_version;
    unsigned long long serial;
    size_t limits[16];
    CUfunc_cache cache;
    CUsharedconfig shared_config;
    CUstream legacy;
    CUstream streams; /* list, legacy included */
    unsigned attached; /* cuCtxAttach */
    uint32_t peers[SG_MAX_GPUS]; /* contexts that it may access; 0: none */
    struct sg_growth growth;
    CUgreenCtx green;  /* that this is the context of */
    unsigned sms;      /* multiprocessors that its streams may use; 0: all */
    CUstream joiner;   /* for events of the whole context */
    uint32_t gate_slot; /* what all work from now on waits for */
    uint64_t gate_generation;
    CUcontext next;
};

struct sg_capture;
union sg_node_params;
struct CUstream_st {
    uint32_t magic;
    uint32_t slot;
    CUcontext ctx;
    uint32_t kind;
    unsigned flags;
    int priority;
    CUstreamAttrValue attributes[4]; /* cuStreamSetAttribute */
    uint64_t pushed; /* position of the newest entry; under ring_lock */
    unsigned long long serial;
    pthread_t thread; /* of a per-thread default stream */
    bool per_thread;
    struct sg_capture *capture;
    CUgraphNode *deps; /* newest captured nodes */
    CUgraphEdgeData *edges; /* how the next one depends on each */
    size_t ndeps;
    CUevent joint; /* by which others wait for what it holds */
    CUstream next;
};

struct CUevent_st {
    uint32_t magic;
    uint32_t slot;
    CUcontext ctx;
    unsigned flags;
    uint64_t generation; /* of the newest record; 0: never recorded */
    CUstream stream;     /* of that record; only compared, may be gone */
    uint32_t stream_slot;
    uint64_t position; /* of that record in its stream */
    struct sg_capture *capture; /* it was last recorded in, by its id: it may have ended */
    unsigned long long capture_id;
    CUgraphNode *deps;
    CUgraphEdgeData *edges;
    size_t ndeps;
    bool shared, opened; /* between processes (eventipc.c) */
    unsigned char key[SG_KEY_BYTES];
};

/* What a function needs of a multiprocessor. */
struct sg_function_facts {
    int registers; /* of a thread */
    int shared;    /* static, bytes of a block */
    int local;     /* bytes of a thread */
    int constant;
    int max_threads; /* of a block; 0: the card's limit */
    int cluster[3];  /* that the code demands; 0: none */
    int need[3];     /* what cuFuncSetAttribute asked for; 0: none */
    bool nonportable;
    uint64_t resident; /* sg_shape's: of the newest launch's block */
};

struct CUfunc_st {
    uint32_t magic;
    uint32_t number; /* the host's; UINT32_MAX until the first launch */
    CUmodule module;
    char *name;
    int max_dynamic_shared;
    int carveout;
    int block[3]; /* cuFuncSetBlockShape */
    unsigned shared;
    struct sg_function_facts facts;
    struct sg_param {
        unsigned offset, size;
    } *params;
    unsigned nparams;
    bool params_read; /* the image says which it takes */
    CUfunction next; /* in the hash chain */
};
/* A kernel of a library may be launched as if it were a function, so it is one. */

struct CUmod_st {
    uint32_t magic;
    CUcontext ctx; /* NULL for a library */
    bool library;
    char *text; /* PTX, if the image is text */
    CUfunction table[64];
    CUfunction *entries; /* kernels that the text names */
    size_t nentries;
    struct sg_global *globals;
    size_t image;                  /* bytes of its code */
    uint64_t charges[SG_MAX_GPUS]; /* what the code takes on each device */
    CUmodule next;
};

#include "memory.h" /* here: a device has a pool in it */

struct sg_device {
    unsigned index; /* the host's */
    struct CUctx_st primary;
    unsigned primary_refs;
    unsigned primary_flags;
    struct CUmemPoolHandle_st default_pool;
    CUmemoryPool pool; /* current */
    const struct sg_gpu_info *info;
};

struct sg_state {
    pthread_mutex_t lock;
    bool was_initialized;
    unsigned ndev;
    struct sg_device dev[SG_MAX_GPUS];
    unsigned long long serial;
};
extern struct sg_state sg_state;

/* How memory is taken on a device. */
static inline const struct sg_memory_rules *sg_rules(CUdevice dev)
{
    return &sg_conn.node->gpu[sg_state.dev[dev].index].memory;
}

/* True only in the process that called cuInit: the page is wiped by fork, as
 * the real driver is not usable in a forked child. */
extern volatile uint32_t *sg_live;
static inline bool sg_ready(void)
{
    return sg_live && *sg_live;
}
#define SG_ENTER()                            \
    do {                                      \
        if (__builtin_expect(!sg_ready(), 0)) \
            return CUDA_ERROR_NOT_INITIALIZED; \
    } while (0)
/* Enters with a current context c. */
#define SG_ENTER_CTX(c)                   \
    CUcontext c;                          \
    SG_ENTER();                           \
    c = sg_current();                     \
    if (__builtin_expect(!c || !c->alive, 0)) \
        return c ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT; \
    if (__builtin_expect(sg_ctx_fault(c) != CUDA_SUCCESS, 0)) \
        return sg_ctx_fault(c)

static inline void sg_lock(void)
{
    pthread_mutex_lock(&sg_state.lock);
}
static inline void sg_unlock(void)
{
    pthread_mutex_unlock(&sg_state.lock);
}
unsigned long long sg_serial(void); /* the lock is held */

/* ---- threads and contexts (ctx.c) -------------------------------------- */
CUcontext sg_current(void);
struct sg_device *sg_dev(CUdevice dev);
void sg_context_work_end(CUcontext ctx);

/* ---- submission (ring.c) ----------------------------------------------- */
void sg_ring_connected(void);
CUresult sg_submit(CUstream s, uint32_t kind, uint32_t arg, uint64_t arg64, uint64_t *ret_position);
CUresult sg_wait(uint32_t slot, uint64_t position);
CUresult sg_wait_event(uint32_t slot, uint64_t generation); /* of a shared event */
/* What waits are made of: wake the host, sleep while *word is value, wait on the
 * virtual clock, and the order that the host's word stands for. */
void sg_kick(void);
CUresult sg_sleep_on(uint32_t *word, uint32_t value);
CUresult sg_block(uint32_t kind, uint32_t slot, uint64_t position);
void sg_after_others(void);
bool sg_done(uint32_t slot, uint64_t position);
/* For questions that a program may ask in a loop: what *ready says of position
 * after the time that a question takes. */
bool sg_asked(uint32_t slot, uint64_t position);
CUresult sg_not_ready(void);
CUresult sg_ctx_wait(CUcontext ctx);
CUresult sg_ctx_wait_blocking(CUcontext ctx);
uint64_t sg_now(void);
CUresult sg_host_function(CUstream s, CUhostFn fn, void *arg, CUstreamCallback cb);
CUresult sg_host_when(CUstream s, bool (*ready)(void *), CUhostFn fn, void *arg, CUstreamCallback cb);
void sg_host_forget(CUstream s); /* its context ends: what is queued never comes */
bool sg_host_unfinished(void); /* host functions are queued or run */

/* The error that broke a context, which every later call in it returns. */
static inline CUresult sg_ctx_fault(CUcontext c)
{
    return (CUresult)__atomic_load_n(&sg_conn.shm->ctx_fault[c->id % SG_CONTEXT_SLOTS], __ATOMIC_ACQUIRE);
}

/* ---- streams (stream.c) ------------------------------------------------- */
/* The stream behind a handle for the current context; per_thread selects what
 * the handle 0 means. */
CUresult sg_stream_of(CUstream h, bool per_thread, CUstream *ret);
/* The same for a call that puts work into it, and whether the stream captures. */
CUresult sg_stream_for_work(CUstream h, bool per_thread, CUstream *ret, bool *ret_capturing);
CUresult sg_stream_new(CUcontext ctx, uint32_t kind, unsigned flags, int priority, CUstream *ret);
void sg_stream_drop(CUstream s); /* frees the object only; the lock is held */
CUresult sg_stream_drain(CUstream s);
/* For calls that work at once: refuses a stream that captures. */
CUresult sg_stream_for_sync(bool per_thread, CUstream *ret);

/* ---- green contexts (green.c) -------------------------------------------- */
void sg_green_end(CUcontext primary); /* the lock is held */
/* What belongs to a context that ends becomes another one's. The lock is held. */
void sg_mem_adopt(CUcontext from, CUcontext to);
void sg_module_adopt(CUcontext from, CUcontext to);
CUresult sg_event_new(CUcontext c, unsigned flags, CUevent *ret);
void sg_event_drop(CUevent e); /* the lock is held */
/* How ring entries name an event, and its newest record, whoever made it. */
static inline uint32_t sg_event_name(CUevent e)
{
    return e->shared ? e->slot | SG_EVENT_SHARED : e->slot;
}
static inline uint64_t sg_event_newest(CUevent e)
{
    return e->shared ? __atomic_load_n(&sg_conn.shm->event[e->slot].time_ns, __ATOMIC_ACQUIRE) : e->generation;
}
/* Makes e the event of a key, or a new one that others may open. */
CUresult sg_event_share(CUevent e, const void *key);

/* ---- copies (copy.c, memset.c) -------------------------------------------- */
CUresult sg_copy_check(const CUDA_MEMCPY3D *c);
void sg_copy_do(const CUDA_MEMCPY3D *c);
/* How a checked copy goes: SG_COPY_…, and how many bytes. */
struct sg_copy_way {
    uint32_t arg;
    uint64_t bytes;
};
struct sg_copy_way sg_copy_way(const CUDA_MEMCPY3D *c);
bool sg_timed_copies(CUstream s); /* are copies on the stream's card submitted? */
/* Submit what a copy or fill takes, nothing on a card where that is nothing. */
CUresult sg_copy_move(CUstream s, const CUDA_MEMCPY3D *c); /* the bytes only */
CUresult sg_copy_submit(CUstream s, const CUDA_MEMCPY3D *c);
CUresult sg_set_submit(CUstream s, const CUDA_MEMSET_NODE_PARAMS *p);
CUresult sg_copy_sync(const CUDA_MEMCPY3D *c, bool per_thread);
CUresult sg_copy_async(const CUDA_MEMCPY3D *c, CUstream h, bool per_thread);
CUresult sg_set_check(const CUDA_MEMSET_NODE_PARAMS *p);
void sg_set_do(const CUDA_MEMSET_NODE_PARAMS *p);
CUresult sg_set_async(const CUDA_MEMSET_NODE_PARAMS *p, CUstream h, bool per_thread);

/* ---- functions (module.c) ------------------------------------------------ */
CUresult sg_func_check(CUfunction f);
/* A device attribute that is a size or number. */
#define sg_attr(info, name) ((unsigned)(info)->attribute[CU_DEVICE_ATTRIBUTE_##name])
/* What kernels need, from their image (image.c): a cubin's, all; PTX's, of one. */
CUresult sg_image_read(CUmodule m, const void *image); /* the lock is held */
void sg_text_facts(const char *text, CUfunction f);
/* Parameters (params.c): of the declaration of f in PTX from p to its body. */
void sg_params_of_text(const char *p, const char *body, CUfunction f);
bool sg_param_set(CUfunction f, unsigned index, unsigned offset, unsigned size);
/* Blocks of f that one multiprocessor of dev holds at once; 0: it cannot run. */
int sg_resident(CUfunction f, CUdevice dev, int threads, size_t dynamic_shared);
/* What a launch occupies, as KERNEL entries and graph parts carry it. */
uint64_t sg_shape(CUfunction f, CUdevice dev, const unsigned d[6], unsigned shared);
/* Whether a card can run the launch at all. */
CUresult sg_launch_check(CUfunction f, CUdevice dev, const unsigned d[6], unsigned shared);
CUresult sg_func_number(CUfunction f, uint32_t *ret);
CUfunction sg_module_function(CUmodule m, const char *name, size_t len); /* the lock is held */
/* Whether code whose functions are known, PTX, has none of that name: then the look-up fails. Of other code any name is good. */
bool sg_module_lacks(CUmodule m, const char *name);
void sg_module_free_context(CUcontext ctx);
void sg_module_renumber(CUcontext ctx); /* the next launches are first ones; the lock is held */
CUresult sg_module_new(CUcontext ctx, bool library, const void *image, CUmodule *ret);
CUresult sg_module_from_file(CUcontext ctx, bool library, const char *path, CUmodule *ret);
void sg_module_free(CUmodule m);
CUresult sg_module_global(CUmodule m, CUcontext ctx, const char *name, CUdeviceptr *p, size_t *size);

#include "graph.h"

#endif
