// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Does with pools and graphs what it is told on standard input, one answer a line: the
// code, or figures. A result that is changed by a failing call is answered by -1.
//
//	pool I DEV MAX       cuMemPoolCreate; DEV -1: the host's memory, -2: of NUMA node 0
//	keep I               no release threshold
//	strict I             no reuse across streams
//	default I DEV        cuDeviceGetDefaultMemPool
//	located I DEV        cuMemGetDefaultMemPool; current I DEV: cuMemGetMemPool
//	set DEV I            cuDeviceSetMemPool
//	destroy|trim I
//	alloc S BYTES I T    from pool I, -1: cuMemAllocAsync; into place S, on stream T
//	free S T | freesync S
//	linear S BYTES       cuMemAlloc
//	foreign T            cuMemFreeAsync of a pointer that nobody gave out
//	sync T               -1: the context
//	stream T DEV         makes stream T in the context of DEV
//	device DEV           makes the context of DEV current
//	begin T | end T G    capture, to graph G
//	node WAY G BYTES F   an allocating node, its pointer into place G, F: and one that
//	                     frees it; WAY 0 to 3: AddMemAllocNode, AddNode, _v2, _v3
//	child G H            graph H as a child of a new graph G
//	inst WAY G FLAGS     WAY 0 to 4: cuGraphInstantiate, _v2, WithFlags, WithParams and _ptsz
//	launch|upload G T    upload2, launch2: the _ptsz form
//	gone G               cuGraphExecDestroy; newgraph G: cuGraphDestroy
//	graphtrim DEV
//	info                 free and total
//	loop N BYTES I       N times alloc and free, from pool I or -1
//	storm THREADS N SEED random pools and graphs, everything given back at the end

#include <pthread.h>
#include <stdatomic.h>

#include "harness.h"

#define PLACES 64
#define UNTOUCHED 0x5c5c5c5c5c5c5c5cULL

static CUmemoryPool pools[1024];
static CUdeviceptr ptrs[PLACES];
static CUstream streams[8];
static CUgraph graphs[PLACES];
static CUgraphExec execs[PLACES];
static CUcontext contexts[8];

// A call whose result goes to out, NULL on failure.
static int result(CUresult r, uint64_t got, void *out)
{
	if (r != CUDA_SUCCESS && got != UNTOUCHED)
		return -1;
	if (r == CUDA_SUCCESS)
		memcpy(out, &got, sizeof(got));
	return (int)r;
}

// GOT makes a call that writes to OUT and puts its result into place.
#define GOT(place, call)                            \
	({                                          \
		union {                             \
			uint64_t word;              \
			__typeof__(place) value;    \
		} got_ = {.word = UNTOUCHED};       \
		__typeof__(place) *OUT = &got_.value; \
		CUresult r_ = (call);               \
		result(r_, got_.word, &(place));    \
	})

static CUmemoryPool pool_of(int i)
{
	return i < 0 ? NULL : pools[i];
}

static CUresult make_pool(CUmemoryPool *out, int dev, size_t max)
{
	CUmemPoolProps props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, dev}, .maxSize = max};

	if (dev == -1)
		props.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
	if (dev == -2)
		props.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
	return CU(cuMemPoolCreate)(out, &props);
}

static CUresult alloc(CUdeviceptr *out, size_t bytes, int pool, CUstream s)
{
	return pool < 0 ? CU(cuMemAllocAsync)(out, bytes, s) : CU(cuMemAllocFromPoolAsync)(out, bytes, pools[pool], s);
}

static CUresult node(int way, int g, size_t bytes, int frees)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = bytes,
	};
	CUgraphNode n = NULL, last;
	CUresult r;

	if (!graphs[g] && CU(cuGraphCreate)(&graphs[g], 0))
		return CUDA_ERROR_UNKNOWN;
	p.alloc = params;
	switch (way) {
	case 0:
		r = CU(cuGraphAddMemAllocNode)(&n, graphs[g], NULL, 0, &params);
		p.alloc.dptr = params.dptr;
		break;
	case 1:
		r = CU(cuGraphAddNode)(&n, graphs[g], NULL, 0, &p);
		break;
	case 2:
		r = CU(cuGraphAddNode_v2)(&n, graphs[g], NULL, NULL, 0, &p);
		break;
	default:
		// Its header is not public; it is tried with the form of the one before.
		r = ((__typeof__(&cuGraphAddNode_v2))harness_symbol("cuGraphAddNode_v3"))(&n, graphs[g], NULL, NULL, 0, &p);
	}
	ptrs[g] = p.alloc.dptr;
	return r || !frees ? r : CU(cuGraphAddMemFreeNode)(&last, graphs[g], &n, 1, ptrs[g]);
}

static CUresult child(int g, int h)
{
	// A graph with memory is no copy: it moves.
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {graphs[h], 1}};
	CUgraphNode n;

	return CU(cuGraphCreate)(&graphs[g], 0) ?: CU(cuGraphAddNode_v2)(&n, graphs[g], NULL, NULL, 0, &p);
}

static CUresult inst(int way, CUgraphExec *out, CUgraph g, unsigned long long flags)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags};

	switch (way) {
	case 0:
		return CU(cuGraphInstantiate)(out, g, NULL, NULL, 0);
	case 1:
		return CU(cuGraphInstantiate_v2)(out, g, NULL, NULL, 0);
	case 2:
		return CU(cuGraphInstantiateWithFlags)(out, g, flags);
	case 3:
		return CU(cuGraphInstantiateWithParams)(out, g, &params);
	default:
		return CU(cuGraphInstantiateWithParams_ptsz)(out, g, &params);
	}
}

static CUresult device(int dev)
{
	CUresult r = contexts[dev] ? CUDA_SUCCESS : CU(cuDevicePrimaryCtxRetain)(&contexts[dev], dev);

	return r ?: CU(cuCtxSetCurrent)(contexts[dev]);
}

static CUresult stream(int t, int dev)
{
	return device(dev) ?: CU(cuStreamCreate)(&streams[t], 1);
}

static CUresult loop(int n, size_t bytes, int pool)
{
	CUdeviceptr p;
	CUresult r = CUDA_SUCCESS;

	for (int i = 0; i < n && !r; i++)
		r = alloc(&p, bytes, pool, NULL) ?: CU(cuMemFreeAsync)(p, NULL);
	return r;
}

// ---- the storm ------------------------------------------------------------------

struct rider {
	pthread_t thread;
	unsigned seed;
	int n, number, granted, refused;
};

static _Atomic(int) wrong;

// A code that a full GPU does not explain.
static CUresult odd(CUresult r)
{
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY) {
		atomic_store(&wrong, (int)r);
		return r;
	}
	return CUDA_SUCCESS;
}

static void ride_graph(struct rider *r, CUstream s)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = (size_t)(rand_r(&r->seed) % 20 + 1) * MIB,
	};
	CUgraphNode a, b;
	CUgraphExec e;
	CUgraph g;
	CUresult code;

	odd(CU(cuGraphCreate)(&g, 0));
	odd(CU(cuGraphAddMemAllocNode)(&a, g, NULL, 0, &params));
	odd(CU(cuGraphAddMemFreeNode)(&b, g, &a, 1, params.dptr));
	code = CU(cuGraphInstantiateWithFlags)(&e, g, 0);
	odd(code);
	for (int i = 0; i < 3 && !code; i++) {
		CUresult l = CU(cuGraphLaunch)(e, s);

		odd(l);
		*(l ? &r->refused : &r->granted) += 1;
	}
	if (!code)
		odd(CU(cuGraphExecDestroy)(e));
	odd(CU(cuGraphDestroy)(g));
	if (rand_r(&r->seed) % 8 == 0)
		odd(CU(cuDeviceGraphMemTrim)(0));
}

static void *ride(void *arg)
{
	struct rider *r = arg;
	CUmemoryPool mine = NULL;
	CUdeviceptr held[16] = {0};
	CUstream s;

	odd(CU(cuCtxSetCurrent)(contexts[0]));
	odd(CU(cuStreamCreate)(&s, 1));
	for (int i = 0; i < r->n && !atomic_load(&wrong); i++) {
		int at = rand_r(&r->seed) % 16, what = rand_r(&r->seed) % 100;
		size_t bytes = (size_t)1 << (9 + rand_r(&r->seed) % 17);

		if (held[at]) {
			odd(what % 3 ? CU(cuMemFreeAsync)(held[at], s) : CU(cuMemFree_v2)(held[at]));
			held[at] = 0;
		} else if (what < 80) {
			CUresult code;

			if (!mine && odd(make_pool(&mine, 0, 0)))
				break;
			bytes += (size_t)rand_r(&r->seed) % bytes;
			if (what < 10)
				code = CU(cuMemAlloc_v2)(&held[at], (bytes + 2 * MIB - 1) & ~(2 * MIB - 1)); // whole blocks
			else if (what < 40)
				code = CU(cuMemAllocAsync)(&held[at], bytes, s);
			else
				code = CU(cuMemAllocFromPoolAsync)(&held[at], bytes, mine, s);
			odd(code);
			if (code)
				held[at] = 0;
			*(code ? &r->refused : &r->granted) += 1;
			if (!code && what < 10) {
				odd(CU(cuMemFree_v2)(held[at]));
				held[at] = 0;
			}
		} else if (what < 84) {
			ride_graph(r, s);
		} else if (what < 92) {
			odd(CU(cuStreamSynchronize)(s));
		} else if (what < 95 && mine) {
			odd(CU(cuMemPoolTrimTo)(mine, 0));
		} else if (what < 97 && mine) {
			odd(CU(cuMemPoolDestroy)(mine)); // with allocations that live on
			mine = NULL;
		}
	}
	for (int i = 0; i < 16; i++)
		if (held[i])
			odd(CU(cuMemFreeAsync)(held[i], s));
	odd(CU(cuStreamSynchronize)(s));
	if (mine)
		odd(CU(cuMemPoolDestroy)(mine));
	odd(CU(cuStreamDestroy_v2)(s));
	return NULL;
}

// storm answers the code that was wrong, what was granted and what was refused.
static void storm(int threads, int n, unsigned seed)
{
	struct rider riders[64] = {0};
	int granted = 0, refused = 0;

	for (int i = 0; i < threads; i++) {
		riders[i] = (struct rider){.seed = seed + (unsigned)i, .n = n / threads, .number = i};
		pthread_create(&riders[i].thread, NULL, ride, &riders[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(riders[i].thread, NULL);
		granted += riders[i].granted;
		refused += riders[i].refused;
	}
	odd(CU(cuCtxSynchronize)());
	odd(CU(cuDeviceGraphMemTrim)(0));
	printf("%d %d %d\n", atomic_load(&wrong), granted, refused);
}

// ---- commands -------------------------------------------------------------------

static CUresult call_capture(CUstream s, int g)
{
	return g < 0 ? CU(cuStreamBeginCapture_v2)(s, CU_STREAM_CAPTURE_MODE_GLOBAL) : CU(cuStreamEndCapture)(s, &graphs[g]);
}

static int pool_command(const char *what, long a, long b, long c, long d)
{
	CUmemLocation where = {CU_MEM_LOCATION_TYPE_DEVICE, (int)b};
	cuuint64_t all = UINT64_MAX;
	int no = 0;

	if (b < 0)
		where = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
	if (!strcmp(what, "pool"))
		return GOT(pools[a], make_pool(OUT, (int)b, (size_t)c));
	if (!strcmp(what, "default"))
		return GOT(pools[a], CU(cuDeviceGetDefaultMemPool)(OUT, (int)b));
	if (!strcmp(what, "located"))
		return GOT(pools[a], CU(cuMemGetDefaultMemPool)(OUT, &where, 1));
	if (!strcmp(what, "current"))
		return GOT(pools[a], CU(cuMemGetMemPool)(OUT, &where, 1));
	if (!strcmp(what, "alloc"))
		return GOT(ptrs[a], alloc(OUT, (size_t)b, (int)c, streams[d]));
	if (!strcmp(what, "linear"))
		return GOT(ptrs[a], CU(cuMemAlloc_v2)(OUT, (size_t)b));
	if (!strcmp(what, "keep"))
		return (int)CU(cuMemPoolSetAttribute)(pool_of((int)a), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
	if (!strcmp(what, "strict"))
		return (int)(CU(cuMemPoolSetAttribute)(pools[a], CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &no)
			     ?: CU(cuMemPoolSetAttribute)(pools[a], CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no));
	if (!strcmp(what, "set"))
		return (int)CU(cuDeviceSetMemPool)((int)a, pools[b]);
	if (!strcmp(what, "destroy"))
		return (int)CU(cuMemPoolDestroy)(pools[a]);
	if (!strcmp(what, "trim"))
		return (int)CU(cuMemPoolTrimTo)(pools[a], 0);
	if (!strcmp(what, "free"))
		return (int)CU(cuMemFreeAsync)(ptrs[a], streams[b]);
	if (!strcmp(what, "freesync"))
		return (int)CU(cuMemFree_v2)(ptrs[a]);
	if (!strcmp(what, "foreign"))
		return (int)CU(cuMemFreeAsync)(0x123400, streams[a]);
	if (!strcmp(what, "loop"))
		return (int)loop((int)a, (size_t)b, (int)c);
	return -2;
}

static int graph_command(const char *what, long a, long b, long c, long d)
{
	if (!strcmp(what, "inst"))
		return GOT(execs[b], inst((int)a, OUT, graphs[b], (unsigned long long)c));
	if (!strcmp(what, "begin"))
		return (int)call_capture(streams[a], -1);
	if (!strcmp(what, "end"))
		return (int)call_capture(streams[a], (int)b);
	if (!strcmp(what, "node"))
		return (int)node((int)a, (int)b, (size_t)c, (int)d);
	if (!strcmp(what, "child"))
		return (int)child((int)a, (int)b);
	if (!strcmp(what, "launch"))
		return (int)CU(cuGraphLaunch)(execs[a], streams[b]);
	if (!strcmp(what, "launch2"))
		return (int)CU(cuGraphLaunch_ptsz)(execs[a], streams[b]);
	if (!strcmp(what, "upload"))
		return (int)CU(cuGraphUpload)(execs[a], streams[b]);
	if (!strcmp(what, "upload2"))
		return (int)CU(cuGraphUpload_ptsz)(execs[a], streams[b]);
	if (!strcmp(what, "gone"))
		return (int)CU(cuGraphExecDestroy)(execs[a]);
	if (!strcmp(what, "newgraph")) {
		CUgraph old = graphs[a];

		graphs[a] = NULL;
		return (int)CU(cuGraphDestroy)(old);
	}
	if (!strcmp(what, "graphtrim"))
		return (int)CU(cuDeviceGraphMemTrim)((int)a);
	if (!strcmp(what, "sync"))
		return (int)(a < 0 ? CU(cuCtxSynchronize)() : CU(cuStreamSynchronize)(streams[a]));
	if (!strcmp(what, "stream"))
		return (int)stream((int)a, (int)b);
	if (!strcmp(what, "device"))
		return (int)device((int)a);
	return -2;
}

int main(void)
{
	char what[32], line[256];

	EXPECT(CU(cuInit)(0), 0);
	printf("%d\n", (int)device(0));
	while (fgets(line, sizeof(line), stdin)) {
		long a = 0, b = 0, c = 0, d = 0;
		int r;

		if (sscanf(line, "%31s %ld %ld %ld %ld", what, &a, &b, &c, &d) < 1)
			return 1;
		if (!strcmp(what, "info")) {
			size_t free_bytes = 0, total = 0;

			r = (int)CU(cuMemGetInfo_v2)(&free_bytes, &total);
			printf("%d %zu %zu\n", r, free_bytes, total);
			continue;
		}
		if (!strcmp(what, "storm")) {
			storm((int)a, (int)b, (unsigned)c);
			continue;
		}
		r = pool_command(what, a, b, c, d);
		printf("%d\n", r == -2 ? graph_command(what, a, b, c, d) : r);
	}
	return 0;
}
