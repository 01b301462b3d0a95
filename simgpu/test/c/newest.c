// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* newest.c: calls that only drivers newer than the linked one export, found by
 * name, and a few older ones of no other program. Wants two GPUs. Arguments: "nvlink"
 * if they have it, and "moves" if managed memory migrates. */
#include <dlfcn.h>

#include <stdbool.h>

#include "t.h"

/* A name of the library, with the type of the variable that holds it. */
#define FIND(variable, name)                             \
    do {                                                 \
        *(void **)&(variable) = dlsym(RTLD_DEFAULT, name); \
        if (!(variable))                                 \
            FAIL("no %s", name);                         \
    } while (0)

static const char ptx[] =
    "// by hand\n.version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(\n .param .u8 a,\n .param .align 8 .b8 s[24],\n .param .u64 .ptr .global .align 128 p,\n"
    " .param .f32 f\n)\n{\n ret;\n}\n"
    ".visible .entry none()\n{\n ret;\n}\n";

static void params(CUmodule m, CUmodule any)
{
    static const size_t want[4][2] = {{0, 1}, {8, 24}, {32, 8}, {40, 4}};
    CUresult (*count)(CUfunction, size_t *);
    CUfunction k = function(m, "k");
    size_t n, at, size;

    FIND(count, "cuFuncGetParamCount");
    OK(count(k, &n));
    TRUE(n == 4);
    for (size_t i = 0; i < 4; i++) {
        OK(cuFuncGetParamInfo(k, i, &at, &size));
        if (at != want[i][0] || size != want[i][1])
            FAIL("parameter %zu at %zu, %zu bytes", i, at, size);
        OK(cuKernelGetParamInfo((CUkernel)k, i, &at, NULL));
        TRUE(at == want[i][0]);
    }
    WANT(cuFuncGetParamInfo(k, 4, &at, &size), CUDA_ERROR_INVALID_VALUE);
    WANT(cuFuncGetParamInfo(k, 0, NULL, &size), CUDA_ERROR_INVALID_VALUE);
    OK(count(function(m, "none"), &n));
    TRUE(n == 0);
    FIND(count, "cuKernelGetParamCount");
    OK(count(k, &n));
    TRUE(n == 4);
    WANT(count(k, NULL), CUDA_ERROR_INVALID_VALUE);
    WANT(count(function(any, "k"), &n), CUDA_ERROR_NOT_SUPPORTED); /* its image says nothing */
}

static void symbols(CUmodule m)
{
    CUdeviceptr p, q;
    CUdeviceptr_v1 low;
    CUlibrary l;
    unsigned n;
    size_t size;
    void *fn;

    OK(cuModuleGetGlobal_v2(&p, &size, m, "g"));
    OK(cuModuleGetGlobal(&low, &n, m, "g"));
    TRUE(low == (CUdeviceptr_v1)p && n == size);
    OK(cuModuleGetGlobal(NULL, &n, m, "g"));
    WANT(cuModuleGetGlobal(NULL, NULL, m, "g"), CUDA_ERROR_INVALID_VALUE);
    OK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
    WANT(cuLibraryGetManaged(&q, &size, l, "g"), CUDA_ERROR_NOT_FOUND);
    WANT(cuLibraryGetManaged(NULL, NULL, l, "g"), CUDA_ERROR_INVALID_VALUE);
    WANT(cuLibraryGetUnifiedFunction(&fn, l, "k"), CUDA_ERROR_NOT_FOUND);
    OK(cuLibraryUnload(l));
    WANT(cuLibraryGetManaged(&q, &size, l, "g"), CUDA_ERROR_INVALID_HANDLE);
}

static void add(void *sum)
{
    ++*(int *)sum;
}

struct operand {
    int type, pad;
    CUdeviceptr p;
    size_t row, layer;
    CUmemLocation hint;
};

static void streams(CUstream s)
{
    CUresult (*host)(CUstream, CUhostFn, void *, unsigned);
    CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUmemcpyAttributes *, CUstream);
    CUresult (*copy3)(void *, unsigned long long, CUstream);
    CUmemcpyAttributes a = {.srcAccessOrder = 1};
    struct {
        struct operand src, dst;
        size_t extent[3];
        int order;
        unsigned flags;
    } op = {.src = {.type = 1}, .dst = {.type = 1}, .extent = {8, 2, 1}, .order = 1};
    CUdeviceptr d, e;
    CUgraph g;
    char out[16];
    size_t nodes;
    int sum = 0;

    FIND(host, "cuLaunchHostFunc_v2");
    OK(host(s, add, &sum, 0));
    OK(host(s, add, &sum, 1));
    WANT(host(s, add, &sum, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamSynchronize(s));
    TRUE(sum == 2);

    FIND(copy, "cuMemcpyWithAttributesAsync");
    FIND(copy3, "cuMemcpy3DWithAttributesAsync");
    OK(cuMemAlloc_v2(&d, 64));
    OK(cuMemAlloc_v2(&e, 64));
    OK(cuMemcpyHtoD_v2(d, "0123456789abcdef", 16));
    OK(copy(e, d, 16, &a, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(out, e, 16));
    TRUE(!memcmp(out, "0123456789abcdef", 16));
    op.src.p = d;
    op.dst.p = e;
    op.src.row = 8;
    OK(cuMemsetD8_v2(e, 0, 16));
    OK(copy3(&op, 0, s));
    OK(cuStreamSynchronize(s));
    OK(cuMemcpyDtoH_v2(out, e, 16));
    TRUE(!memcmp(out, "0123456789abcdef", 16));
    WANT(copy3(&op, 1, s), CUDA_ERROR_INVALID_VALUE);
    WANT(copy(e, d, 16, NULL, s), CUDA_ERROR_INVALID_VALUE);
    a.srcAccessOrder = 0;
    WANT(copy(e, d, 16, &a, s), CUDA_ERROR_INVALID_VALUE);
    a.srcAccessOrder = 3;
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(copy(e, d, 16, &a, s));
    OK(host(s, add, &sum, 1));
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphGetNodes(g, NULL, &nodes));
    TRUE(nodes == 2 && sum == 2);
    OK(cuGraphDestroy(g));
}

static void atomics(bool nvlink)
{
    CUresult (*p2p)(unsigned *, const int *, unsigned, CUdevice, CUdevice);
    CUresult (*host)(unsigned *, const int *, unsigned, CUdevice);
    static const int all[] = {0, 10, 11}, bad[] = {0, 13};
    unsigned got[3] = {9, 9, 9};

    FIND(p2p, "cuDeviceGetP2PAtomicCapabilities");
    FIND(host, "cuDeviceGetHostAtomicCapabilities");
    OK(p2p(got, all, 3, 0, 1));
    TRUE(got[2] == 0 && (nvlink ? got[0] == 31 && got[1] == 29 : !got[0] && !got[1]));
    WANT(p2p(got, all, 3, 0, 0), CUDA_ERROR_INVALID_DEVICE);
    WANT(p2p(got, all, 3, 0, 9), CUDA_ERROR_INVALID_DEVICE);
    WANT(p2p(got, bad, 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    WANT(p2p(got, all, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    OK(host(got, all, 3, 0));
    TRUE(!got[0] && !got[1] && !got[2]);
}

static void locations(CUstream s)
{
    CUresult (*where)(CUdeviceptr, size_t, size_t, size_t, CUmemLocation *);
    const CUmemLocation gpu = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, cpu = {.type = CU_MEM_LOCATION_TYPE_HOST};
    const size_t mib = 1 << 20;
    CUmemLocation l[5];
    CUdeviceptr p, d;

    FIND(where, "cuMemGetLocationInfo");
    OK(cuMemAllocManaged(&p, 8 * mib, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemPrefetchAsync_v2(p, 2 * mib, gpu, 0, s));
    OK(cuMemPrefetchAsync_v2(p + 2 * mib, 3 * mib, cpu, 0, s));
    OK(cuStreamSynchronize(s));
    memset(l, 7, sizeof(l));
    OK(where(p, 7 * mib, 2 * mib, 0, l));
    TRUE(l[0].type == CU_MEM_LOCATION_TYPE_DEVICE && l[0].id == 0);
    TRUE(l[1].type == CU_MEM_LOCATION_TYPE_HOST && l[3].type != CU_MEM_LOCATION_TYPE_HOST);
    TRUE(l[4].id == 0x07070707); /* four regions, the last of one MiB */
    OK(where(p + 1, 7 * mib, 7 * mib, 1, l)); /* 2 MiB less a byte, 3 MiB, 2 MiB and a byte elsewhere */
    TRUE(l[0].type == CU_MEM_LOCATION_TYPE_HOST);
    WANT(where(p, mib, 2 * mib, 0, l), CUDA_ERROR_INVALID_VALUE);
    WANT(where(p, mib, mib, 2 * mib, l), CUDA_ERROR_INVALID_VALUE);
    WANT(where(p, mib, 0, 0, l), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc_v2(&d, mib));
    WANT(where(d, mib, mib, 0, l), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(p));
}

static void graphs(CUmodule m, CUcontext ctx)
{
    CUresult (*add_node)(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t, CUgraphNodeParams *);
    CUresult (*set)(CUgraphNode, CUgraphNodeParams *);
    CUresult (*get)(CUgraphNode, CUgraphNodeParams *);
    CUresult (*id)(CUgraph, unsigned *), (*local)(CUgraphNode, unsigned *), (*of)(CUgraphNode, CUgraph *);
    CUresult (*tools)(CUgraphNode, unsigned long long *);
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    CUgraphNode n, empty;
    CUcontext other, old;
    unsigned gid, nid;
    unsigned long long both;
    CUgraph g, got;

    FIND(add_node, "cuGraphAddNode_v3");
    FIND(set, "cuGraphNodeSetParams_v2");
    FIND(get, "cuGraphNodeGetParams");
    FIND(id, "cuGraphGetId");
    FIND(local, "cuGraphNodeGetLocalId");
    FIND(of, "cuGraphNodeGetContainingGraph");
    FIND(tools, "cuGraphNodeGetToolsId");
    OK(cuCtxCreate_v2(&other, 0, 1));
    OK(cuCtxPopCurrent_v2(&old));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddEmptyNode(&empty, g, NULL, 0));
    p.kernel = (CUDA_KERNEL_NODE_PARAMS){.func = function(m, "none"), 1, 1, 1, 32, 1, 1, .ctx = other};
    WANT(add_node(&n, g, &empty, NULL, 1, &p), CUDA_ERROR_INVALID_CONTEXT);
    p.kernel.ctx = ctx;
    OK(add_node(&n, g, &empty, NULL, 1, &p));
    p.kernel.gridDimX = 7;
    OK(set(n, &p));
    p.kernel.ctx = other;
    WANT(set(n, &p), CUDA_ERROR_INVALID_CONTEXT);
    OK(get(n, &p));
    TRUE(p.type == CU_GRAPH_NODE_TYPE_KERNEL && p.kernel.gridDimX == 7);
    OK(id(g, &gid));
    OK(local(n, &nid));
    OK(of(n, &got));
    OK(tools(n, &both));
    TRUE(got == g && both == ((unsigned long long)gid << 32 | nid));
    OK(cuGraphDestroy(g));
    WANT(id(g, &gid), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxSetCurrent(ctx));
}

int main(int argc, char **argv)
{
    CUcontext ctx;
    CUmodule any = start(&ctx), m;
    CUstream s;

    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuModuleLoadData(&m, ptx));
    params(m, any);
    symbols(m);
    streams(s);
    atomics(argc > 1 && !strcmp(argv[1], "nvlink"));
    if (argc > 2)
        locations(s);
    graphs(m, ctx);
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
