// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * wire.h: what a client library and the simulator's host process say to each
 * other. The Go side is simgpu/wire; a test compiles this file and compares
 * every number with it.
 *
 * A connection is one SOCK_SEQPACKET socket (calls that may wait) and one
 * shared memory file made and sealed by the host (submission, which may not).
 * The host believes nothing that it reads from either. What it says to all
 * alike stands in one more file, which clients can only read: struct sg_node.
 */
#ifndef SG_WIRE_H
#define SG_WIRE_H

#include <stdint.h>

#include "wire_nvml.h"

#define SG_WIRE_VERSION 2u
#define SG_WIRE_MAGIC 0x31554753u /* "SGU1" */
#define SG_MAX_MESSAGE 8192u
#define SG_MAX_GPUS 16u
#define SG_NAME 64u /* bytes of a client's name, with its end */
#define SG_ATTRIBUTES 162u /* device attributes, of the newest driver */

#define SG_PEER_NONE 0u
#define SG_PEER_PCIE 1u
#define SG_PEER_NVLINK 2u

/* ---- requests ---------------------------------------------------------- */
#define SG_OP_HELLO 1u        /* a: kind, b: version, answers with descriptors: of sg_node, and for a
                               * CUDA client before it of sg_shared and sg_kicks */
#define SG_OP_CTX_CREATE 2u   /* gpu; answers a: context */
#define SG_OP_CTX_DESTROY 3u  /* ctx */
#define SG_OP_STREAM_CREATE 4u /* ctx, a: stream kind, b: priority & 0xff, multiprocessors << 8; answers a: slot, b: its position */
#define SG_OP_STREAM_DESTROY 5u /* a: slot */
#define SG_OP_FUNCTION 6u     /* data: name; answers a: function */
#define SG_OP_ALLOC 7u        /* gpu, a: bytes, b: use; answers a: handle, b: bytes taken */
#define SG_OP_FREE 8u         /* a: handle */
#define SG_OP_MEM_INFO 9u     /* gpu; answers a: free, b: total, c: used */
#define SG_OP_GRAPH_DEFINE 10u /* data: sg_graph_part[]; answers a: graph */
#define SG_OP_GRAPH_APPEND 11u /* a: graph, data: sg_graph_part[] */
#define SG_OP_GRAPH_FREE 12u  /* a: graph */
#define SG_OP_HOST_DONE 13u   /* a: slot, b: sequence; no answer */
#define SG_OP_PROCESSES 14u   /* gpu; answers data: sg_process[] */
#define SG_OP_UTILIZATION 15u /* gpu; answers a: percent, b: memory percent */
#define SG_OP_SAMPLES 16u     /* gpu, a: since (us, wall clock); answers data: sg_sample[] */
#define SG_OP_FAULT_NAMES 40u /* a: how many to pass over, b: kind; answers data: names, each ended by a zero */
#define SG_OP_FAULT 41u       /* gpu or SG_FAULT_ANY_GPU, b: kind, data: name; answers status: what the call is to
                               * return, a: SG_FAULT_..., b: ns to wait before */

#define SG_OP_CONDITION 48u   /* data: functions, uint32_t[]; answers a: what a conditional node near them
                               * gets, by the first one that has a value, b: whether one has */
/* Device memory that processes share (host/share.go). */
#define SG_OP_RESIZE 64u /* a: handle, b: bytes, ~0: only ask; answers a: bytes before, b: now */
#define SG_OP_SHARE 65u  /* a: handle; answers with its memory file, made now if b = 1; a: its size */
#define SG_OP_EXPORT 66u /* a: handle, data: a note; answers with a descriptor that holds it */
#define SG_OP_KEY 67u    /* a: handle, data: a note; answers data: a key of SG_KEY_BYTES */
#define SG_OP_IMPORT 68u /* data: a key, or none and a descriptor; answers a: handle, b: bytes, c: gpu, data: the note */

#define SG_KEY_BYTES 16u
#define SG_NOTE_BYTES 256u

/* What device memory is taken for; the account is kept by it. */
#define SG_USE_LINEAR 0u
#define SG_USE_POOL 1u
#define SG_USE_PHYSICAL 2u
#define SG_USE_ARRAY 3u
#define SG_USE_MANAGED 4u
#define SG_USE_MODULE 5u
#define SG_USE_GROWTH 6u
#define SG_USE_GRAPH 7u
#define SG_USE_TOKEN 8u /* no bytes: something that is only shared */
#define SG_USE_CONTEXT 9u
#define SG_USES 10u

#define SG_OP_CHECKPOINT 160u /* a: process, as the caller numbers it; b: what to do; answers a: its state */
enum { SG_CHECKPOINT_STATE, SG_CHECKPOINT_LOCK, SG_CHECKPOINT_SAVE, SG_CHECKPOINT_RESTORE, SG_CHECKPOINT_UNLOCK };
#define SG_OP_STREAM_PRIORITY 128u /* a: slot, b: priority, 8 bits; no answer */

/* Events that processes share (host/ipcevents.go). */
#define SG_OP_EVENT_SHARE 144u  /* a: event slot, data: a key, or none for a new event; answers data: its key */
#define SG_OP_EVENT_RECORD 145u /* a: event slot; answers a: the number of a record to come */
#define SG_OP_EVENT_DROP 146u   /* a: event slot */

#define SG_KIND_CUDA 1u
#define SG_KIND_NVML 2u
#define SG_KIND_CLOCK 3u /* the time library of a program on a virtual clock */
#define SG_KIND_FAULTS 4u /* asks only which calls are to fail */

#define SG_FAULT_NONE 0u      /* the call goes on */
#define SG_FAULT_UNTOUCHED 1u /* it is not made, its results stay as they are */
#define SG_FAULT_GARBAGE 2u   /* it is not made, its results are filled with a pattern */
#define SG_FAULT_WRITTEN 3u   /* it is made, but says otherwise */
#define SG_FAULT_ANY_GPU UINT32_MAX

#define SG_STREAM_BLOCKING 0u
#define SG_STREAM_NONBLOCKING 1u
#define SG_STREAM_LEGACY 2u

/* ---- ring entries ------------------------------------------------------ */
#define SG_ENTRY_KERNEL 1u /* arg: function; arg64: sg_shape(), what it occupies */
#define SG_ENTRY_GRAPH 2u  /* arg: graph */
#define SG_ENTRY_EVENT 3u  /* arg: event slot, arg64: generation */
#define SG_ENTRY_WAIT 4u   /* arg: event slot, arg64: generation */
#define SG_EVENT_SHARED 0x80000000u /* with an event slot: the event of SG_OP_EVENT_SHARE */
#define SG_ENTRY_HOST 5u   /* the client runs a function, then says SG_OP_HOST_DONE */
#define SG_ENTRY_COPY 16u  /* arg: SG_COPY_…; arg64: bytes */
#define SG_ENTRY_FILL 17u  /* arg64: bytes */

#define SG_COPY_HTOD 1u
#define SG_COPY_DTOH 2u
#define SG_COPY_DTOD 3u
#define SG_COPY_PEER 4u
#define SG_COPY_HOST 5u /* the program's processor does it: no engine's time */
#define SG_COPY_WAY 0xffu
#define SG_COPY_PINNED 0x100u
#define SG_COPY_PIECES_SHIFT 16u /* above: number of pieces, each of which has the fixed cost; 0 is 1 */

/* ---- pieces of a graph ------------------------------------------------- */
#define SG_PART_KERNEL 0u
#define SG_PART_COPY 1u
#define SG_PART_FILL 2u
#define SG_PART_JOIN 3u
#define SG_PART_BRANCHES 16u

#define SG_RING_ENTRIES 1024u
#define SG_STREAM_SLOTS 1024u
#define SG_EVENT_SLOTS 65536u
#define SG_HOST_SLOTS 1024u
#define SG_CONTEXT_SLOTS 4096u

/* ---- waiting on a virtual clock ------------------------------------------ */
#define SG_WAITERS 1024u
/* States of a place in the table. */
#define SG_WAITER_FREE 0u
#define SG_WAITER_CLAIMED 1u /* its thread fills it in */
#define SG_WAITER_WAITING 2u
#define SG_WAITER_READY 3u   /* another thread of the process says that it may go on */
#define SG_WAITER_GRANTED 4u /* the host says that it goes on now */
/* The host takes these two for running: what the thread waits for may come
 * already, but it looks once more before it sleeps. */
#define SG_WAITER_PREPARED 5u
#define SG_WAITER_POKED 6u
/* What ends a wait, beside its time. */
#define SG_WAIT_TURN 0u    /* nothing: it may go on at once, when it is its turn */
#define SG_WAIT_STREAM 1u  /* slot has come to position */
#define SG_WAIT_SPACE 2u   /* there is room in the ring */
#define SG_WAIT_HOST 3u    /* host_head is no longer position */
#define SG_WAIT_TIME 4u    /* nothing */
#define SG_WAIT_ADDRESS 5u /* another thread, through SG_WAITER_READY */
#define SG_WAIT_EVENT 7u   /* the shared event of slot has come to position */
#define SG_WAIT_POLL 6u    /* a descriptor; a grant comes as a message too */
/* How a thread that waits for the host, and for nothing else, looks to the
 * kernel: the set of bits in its futex call. */
#define SG_WAIT_BITS 0x53474754u

struct sg_request {
    uint32_t op;
    uint32_t id;
    uint32_t gpu;
    uint32_t ctx;
    uint64_t a;
    uint64_t b;
    uint32_t len; /* bytes that follow */
    uint32_t reserved;
};

struct sg_reply {
    uint32_t op;
    uint32_t id;
    int32_t status; /* a CUresult or nvmlReturn_t, by the kind of the connection */
    uint32_t len;
    uint64_t a;
    uint64_t b;
    uint64_t c;
};

struct sg_gpu_info {
    char name[96];
    char uuid[48]; /* GPU-xxxxxxxx-xxxx-… */
    char serial[32];
    uint8_t uuid_bytes[16];
    uint64_t memory_bytes;
    uint64_t context_bytes;
    uint32_t multiprocessors;
    uint32_t minor;
    uint32_t pci_domain;
    uint32_t pci_bus;
    uint32_t pci_device;
    uint32_t pci_device_id;
    uint32_t pci_subsystem_id;
    uint32_t capability; /* major * 10 + minor */
    uint64_t reserved_bytes; /* NVML's total is memory_bytes + this */
    int32_t attribute[SG_ATTRIBUTES]; /* cuDeviceGetAttribute, by CUdevice_attribute */
    uint32_t stream_priorities; /* 0, the least, to -(this - 1) */
    uint32_t timed_copies;      /* copies take time: they are submitted */
    uint32_t peer_access;       /* SG_PEER_…: how it reaches cards of its kind */
    uint32_t reserved_node;
};

/* One piece of a graph's device work, in an order in which the pieces may run. */
struct sg_graph_part {
    uint32_t kind; /* SG_PART_… */
    uint32_t function; /* copy: arg of a ring entry */
    uint32_t count; /* kernel: how often, one after another */
    uint32_t branch; /* below SG_PART_BRANCHES: pieces of one branch run in order */
    uint32_t other; /* join: branch waits for the first bytes pieces of this one */
    uint32_t reserved;
    uint64_t shape; /* kernel: its grid, as in a ring entry */
    uint64_t bytes; /* copy, fill; join: see there (joins themselves do not count) */
    uint64_t reserved2;
};

struct sg_process {
    uint32_t pid;
    uint32_t instance;   /* MIG: (GPU instance << 8 | compute instance) + 1; 0: none */
    uint64_t used_bytes; /* UINT64_MAX: not available */
};

struct sg_sample {
    uint64_t time_us;
    uint32_t pid; /* 0: the whole GPU */
    uint32_t percent;
};

/* ---- the node: written by the host, read by all ---------------------------- */
/* What changes about a GPU while the node is up: read with atomic loads. */
struct sg_gpu_state {
    uint32_t lost; /* fallen off the bus: 0 or the XID that said so */
    uint32_t reserved;
};

/* How the driver takes device memory (profile.Allocation); all 0: exactly what
 * is asked for. */
struct sg_memory_rules {
    uint64_t block_bytes;
    uint64_t module_bytes;
    uint64_t pool_bytes;
    uint64_t resident_threads; /* of a multiprocessor */
    uint64_t stream_bytes;
    uint64_t graph_bytes;
    uint64_t graph_node_bytes;
    uint32_t managed_migrates;
    uint32_t multicast;
};

struct sg_gpu {
    struct sg_gpu_info info; /* never changes */
    struct sg_memory_rules memory; /* likewise */
    struct sg_gpu_state state;
    struct sg_card card; /* never changes */
};

struct sg_node {
    uint32_t magic;
    uint32_t version;
    uint32_t gpus;
    uint32_t cuda_version; /* 12090 */
    char driver_version[24];
    uint32_t faults;        /* 0: no call is to fail; else moves when the rules change */
    uint32_t clock_virtual; /* 1: time is now_ns; 0: CLOCK_MONOTONIC */
    uint64_t now_ns;
    uint64_t epoch_ns;      /* virtual: CLOCK_REALTIME at now_ns 0 */
    uint32_t call_cost_ns;  /* virtual: what a submission takes its thread */
    uint32_t query_cost_ns; /* virtual: what a question takes that is answered with not yet */
    uint32_t read_cost_ns;  /* virtual: what a look at the clock takes */
    uint32_t attributes;    /* device attributes below this are known to the driver */
    uint32_t mismatch;      /* 1: the libraries are of another release than the driver */
    uint32_t reserved;
    struct sg_gpu gpu[SG_MAX_GPUS];
};

/* ---- shared memory ----------------------------------------------------- */
struct sg_entry {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t stream;
    uint32_t kind;
    uint32_t arg;
    uint32_t reserved;
    uint64_t arg64;
};

struct sg_stream_slot {
    uint64_t done;   /* host: position reached: entries ever complete in this slot */
    uint64_t wanted; /* client: a thread waits until done reaches this */
};

struct sg_event_slot {
    uint64_t generation; /* host: newest completed record */
    uint64_t time_ns;    /* host: when, simulated; of a shared event, which has no
                          * time: the newest record asked for by any process */
};

/* One page for all clients: the engine thread sleeps on word. A client that the
 * thread does not look at by itself moves scan first. */
struct sg_kicks {
    uint32_t word;
    uint32_t scan;
};

/* A thread that waits on a virtual clock. The client writes all but by. */
struct sg_waiter {
    uint32_t state;
    uint32_t kind;
    uint32_t thread; /* in the order in which the process's threads first waited */
    uint32_t slot;
    uint64_t position; /* of STREAM and HOST; of ADDRESS the order of coming */
    uint64_t until_ns; /* it goes on then at the latest */
    uint64_t address;
    uint32_t by;  /* host: 1 if its time came, 0 if what it waited for */
    uint32_t tid; /* as the process itself numbers its threads */
    uint32_t reserved[4];
};

struct sg_waits {
    uint32_t high; /* client: places from here on were never used */
    uint32_t reserved;
    uint64_t calls; /* client: requests sent */
    uint8_t pad[48];
    struct sg_waiter waiter[SG_WAITERS];
};

/* Words of different writers lie on lines of their own. */
struct sg_shared {
    uint32_t magic;
    uint32_t version;
    uint8_t pad0[56];
    uint64_t head; /* client: entries written */
    uint8_t pad1[56];
    uint64_t tail; /* host: entries taken */
    uint32_t tail_futex;
    uint8_t pad2[52];
    uint32_t awake;      /* host: it will look at this ring by itself */
    uint32_t done_futex; /* host: moves when a wanted position is reached */
    uint8_t pad3[56];
    uint32_t space_waiters; /* client: threads that wait for room in the ring */
    uint8_t pad4[60];
    uint32_t host_head; /* host: host functions due so far */
    uint8_t pad5[60];
    uint64_t host_due[SG_HOST_SLOTS]; /* host: slot << 48 | sequence & 2^48-1 */
    uint8_t pad6[3712];
    struct sg_entry ring[SG_RING_ENTRIES];
    struct sg_stream_slot stream[SG_STREAM_SLOTS];
    struct sg_event_slot event[SG_EVENT_SLOTS];
    struct sg_waits waits;
    uint32_t dead; /* host: 0, or what every call says since the process lost a GPU */
    uint32_t event_waiters; /* client: threads that wait for shared events */
    uint32_t locked; /* host: calls wait here, as a futex, while it is 1 */
    uint32_t ctx_fault[SG_CONTEXT_SLOTS]; /* host: by context modulo this: 0, or the error that broke it */
};

_Static_assert(sizeof(struct sg_request) == 40, "request");
_Static_assert(sizeof(struct sg_reply) == 40, "reply");
_Static_assert(sizeof(struct sg_graph_part) == 48, "graph part");
_Static_assert(sizeof(struct sg_entry) == 32, "entry");
_Static_assert(sizeof(struct sg_waiter) == 64, "waiter");
_Static_assert(__builtin_offsetof(struct sg_shared, ring) == 12288, "ring on a page");

#endif
