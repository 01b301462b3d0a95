// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * graph.h: captures, graphs and executable graphs; part of sg.h. Programs may
 * not use one graph in two threads at once, so graphs have no lock. What
 * threads share (captures, memory of graphs) is under sg_state.lock.
 */
#ifndef SG_GRAPH_PART_H
#define SG_GRAPH_PART_H

/* ---- layouts that cuda_abi.h leaves open ---------------------------------- */
struct gs_opaque_CUDA_BATCH_MEM_OP_NODE_PARAMS {
    CUcontext ctx;
    unsigned int count;
    CUstreamBatchMemOpParams *ops;
    unsigned int flags;
};
struct gs_opaque_CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
    CUexternalSemaphore *sems;
    const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params;
    unsigned int n;
};
struct gs_opaque_CUDA_EXT_SEM_WAIT_NODE_PARAMS {
    CUexternalSemaphore *sems;
    const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params;
    unsigned int n;
};
#define SG_BATCH_OP_BYTES 48u   /* of one CUstreamBatchMemOpParams */
#define SG_SEM_PARAMS_BYTES 144u /* of one signal or wait */

enum { SG_COND_IF = 0, SG_COND_WHILE = 1, SG_COND_SWITCH = 2 };
/* CUDA_CONDITIONAL_NODE_PARAMS, as it lies in CUgraphNodeParams. */
struct sg_conditional_node_params {
    CUgraphConditionalHandle handle;
    unsigned int type;
    unsigned int size;
    CUgraph *bodies; /* out */
    CUcontext ctx;
};

/* ---- captures (capture.c) -------------------------------------------------- */
enum sg_capture_status { SG_CAPTURE_NONE = 0, SG_CAPTURE_ACTIVE = 1, SG_CAPTURE_INVALID = 2 };
struct sg_capture {
    CUgraph graph;
    bool given; /* the graph is the program's */
    CUstream origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    unsigned long long id;
    enum sg_capture_status status;
    CUstream *members; /* streams that take part, the origin first */
    size_t nmembers;
    struct sg_capture *next;
};
extern struct sg_capture *sg_captures; /* under the lock; a look without it is a hint */

/* Is s capturing (and the capture valid)? On *ret true the caller adds a node. */
CUresult sg_capturing(CUstream s, bool *ret);
/* Spoils the capture that s takes part in and returns code. */
CUresult sg_capture_spoil(CUstream s, CUresult code);
/* A use of the legacy default stream of ctx, which a blocking stream that
 * captures makes impossible. spoil: the use would have been work. */
CUresult sg_capture_legacy(CUcontext ctx, bool spoil);
CUresult sg_capture_add(CUstream s, CUgraphNodeType type, const union sg_node_params *p);
CUresult sg_capture_event(CUstream s, CUevent e);
CUresult sg_capture_wait(CUstream s, CUevent e, bool *ret_captured);
/* The captured event's error, having spoilt its capture; or CUDA_SUCCESS. */
CUresult sg_capture_event_used(CUevent e);
/* Calls that a capture forbids: CUDA_SUCCESS, or the error, having spoilt it. */
CUresult sg_capture_forbids(CUcontext ctx);
void sg_capture_drop_stream(CUstream s);
bool sg_capture_into(CUgraph g); /* is a capture writing into g, or into a graph in it? */
/* Stream-ordered memory inside a capture becomes nodes. */
CUresult sg_capture_alloc(CUstream s, size_t n, CUmemoryPool pool, CUdeviceptr *p);
CUresult sg_capture_free(CUstream s, CUdeviceptr p);
CUresult sg_capture_begin(CUstream s, CUgraph into, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                          size_t ndeps, CUstreamCaptureMode mode);
CUresult sg_capture_end(CUstream s, CUgraph *ret);
CUresult sg_capture_deps(CUstream s, const CUgraphNode *v, const CUgraphEdgeData *e, size_t n, bool replace);

/* ---- nodes ------------------------------------------------------------------ */
struct sg_graph_block; /* memory of a node, graphmem.c */
struct sg_cond;

union sg_node_params {
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMCPY3D memcpy;
    CUDA_MEMSET_NODE_PARAMS memset;
    CUDA_HOST_NODE_PARAMS host;
    CUgraph child;
    CUevent event;
    struct {
        CUDA_MEM_ALLOC_NODE_PARAMS params;
        struct sg_graph_block *block;
    } alloc;
    struct sg_graph_block *free;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
    struct {
        CUexternalSemaphore *sems;
        void *params;
        unsigned int n;
    } sems; /* both directions */
    struct {
        CUgraphConditionalHandle handle;
        unsigned int type, size;
        unsigned int deflt, flags; /* of the handle */
        CUgraph *bodies;
        CUcontext ctx;
    } cond;
};

struct sg_attributes {
    uint32_t set; /* bits, by CUlaunchAttributeID */
    CUlaunchAttributeValue value[16];
};

struct CUgraphNode_st {
    uint32_t magic;
    CUgraphNodeType type;
    CUgraph graph;
    unsigned id; /* in its graph */
    unsigned order; /* scratch: index, or seen */
    bool disabled;
    unsigned long long serial, origin; /* its own; the node's that it is a copy of */
    CUcontext ctx; /* of a copy or fill */
    union sg_node_params p;
    CUgraphNode *deps;
    CUgraphEdgeData *edges; /* one for each of deps */
    size_t ndeps;
    struct sg_attributes *attributes; /* of a kernel */
};

struct CUgraph_st {
    uint32_t magic;
    CUgraphNode *nodes;
    size_t n;
    unsigned next_id;
    unsigned id;
    unsigned long long serial;
    bool owned;  /* by a node */
    bool body;   /* of a conditional node */
    bool memory; /* holds memory nodes: not copied, not cut, one executable graph */
    bool device_nodes;
    unsigned execs; /* made of it and alive; counted if memory */
    struct sg_held *held; /* the program's objects */
    struct sg_cond *conds;
};
bool sg_held_copy(CUgraph to, CUgraph from);
void sg_held_free(CUgraph g);

/* graph.c */
CUgraph sg_graph_new(void);
void sg_graph_free(CUgraph g);
void sg_graph_hide(CUgraph g);
CUgraph sg_graph_copy(CUgraph g);
CUgraph sg_graph_copy_hidden(CUgraph g);
bool sg_graph_holds(CUgraph g, CUgraph inner);
CUresult sg_graph_order(CUgraph g, CUgraphNode **ret); /* a malloc'ed array, dependencies first */
bool sg_graph_reaches(const CUgraphNode *from, size_t nfrom, CUgraphNode what);
/* Adds a node, which takes over what p points to. edges may be NULL. */
CUresult sg_node_add(CUgraph g, CUgraphNodeType type, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                     size_t ndeps, const union sg_node_params *p, CUgraphNode *ret);
CUresult sg_edge_add(CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *edge);
void sg_node_free(CUgraphNode n);
/* A copy of what p points to, and its end. */
CUresult sg_params_copy(CUgraphNodeType type, union sg_node_params *to, const union sg_node_params *from);
void sg_params_free(CUgraphNodeType type, union sg_node_params *p);
static inline bool sg_edge_plain(const CUgraphEdgeData *e)
{
    static const CUgraphEdgeData plain;

    return !e || !memcmp(e, &plain, sizeof(plain));
}

/* graphparams.c: a node's parameters from and to the generic structure. */
CUresult sg_params_of(CUgraph g, CUgraphNodeParams *from, union sg_node_params *to, CUcontext *ret_ctx);
CUresult sg_params_set(CUgraphNode n, CUgraphNodeParams *p);
void sg_params_get(CUgraphNode n, CUgraphNodeParams *p);

/* graphadd.c: checks p and the edges, and adds the node. */
CUresult sg_graph_add(CUgraphNode *pn, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t n,
                      CUgraphNodeParams *p);
bool sg_edges_valid(const CUgraphNode *from, const CUgraphEdgeData *edges, size_t n);
CUresult sg_kernel_params(const CUDA_KERNEL_NODE_PARAMS *k, union sg_node_params *p);

/* graphmem.c */
CUresult sg_graph_block_new(CUDA_MEM_ALLOC_NODE_PARAMS *a, struct sg_graph_block **ret);
struct sg_graph_block *sg_graph_block_hold(struct sg_graph_block *b);
void sg_graph_block_drop(struct sg_graph_block *b);
struct sg_graph_block *sg_graph_block_find(CUdeviceptr p); /* held by its caller */
CUdeviceptr sg_graph_block_address(const struct sg_graph_block *b);
bool sg_graph_block_live(const struct sg_graph_block *b);
CUresult sg_graph_block_take(struct sg_graph_block *b); /* a launch comes to its allocation */
CUresult sg_graph_block_give(struct sg_graph_block *b);
CUresult sg_graph_mem_free(CUdeviceptr p, bool wait);

/* graphcond.c */
bool sg_cond_find(CUgraph g, CUgraphConditionalHandle h, unsigned *deflt, unsigned *flags);
void sg_conds_free(CUgraph g);
bool sg_conds_used(CUgraph g); /* has every handle a node? */
CUresult sg_cond_check(CUgraph g, const struct sg_conditional_node_params *c);
CUresult sg_cond_value(CUgraphNode n, bool *ret_given, uint64_t *ret); /* at a launch */

/* graphdot.c */
CUresult sg_graph_dot(CUgraph g, const char *path, unsigned flags);

/* ---- executable graphs (graphexec.c, graphlaunch.c) --------------------------- */
enum sg_step_kind {
    SG_STEP_DEVICE, /* kernels and copies that the host process knows as a whole */
    SG_STEP_MOVE,   /* bytes */
    SG_STEP_HOST,
    SG_STEP_RECORD,
    SG_STEP_WAIT,
    SG_STEP_ALLOC,
    SG_STEP_FREE,
    SG_STEP_SIGNAL,
    SG_STEP_SEM_WAIT,
    SG_STEP_BATCH,
    SG_STEP_CONDITION,
};

struct sg_move {
    bool set;
    union {
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS fill;
    };
};

struct sg_program {
    struct sg_step *steps;
    size_t n;
};
struct sg_step {
    enum sg_step_kind kind;
    uint32_t device;  /* the host's graph */
    CUgraphNode node; /* of the copy that the executable graph owns */
    struct sg_move *moves;
    size_t nmoves;
    struct sg_program *bodies; /* of a condition, node->p.cond.size of them */
};

struct CUgraphExec_st {
    uint32_t magic;
    CUgraph graph;
    struct sg_program program;
    unsigned long long flags;
    unsigned id;
    CUgraph source; /* only while its serial is the one below */
    unsigned long long source_serial;
    CUstream last; /* of the newest launch; may be gone */
    uint32_t last_slot;
    uint64_t last_position;
    CUevent order; /* of launches in different streams */
    CUcontext ctx; /* in which it was made: it takes memory there */
    uint64_t charge;
};
CUresult sg_exec_build(CUgraphExec e); /* makes the program anew */
void sg_program_forget(struct sg_program *p);
CUgraphNode sg_exec_node(CUgraphExec e, CUgraphNode n); /* its copy of a node */
CUresult sg_exec_may_change(CUgraphNode n, CUgraphNodeParams *p);
CUgraphExecUpdateResult sg_graph_difference(CUgraph a, CUgraph b, CUgraphNode *bad, CUgraphNode *from);

#endif
