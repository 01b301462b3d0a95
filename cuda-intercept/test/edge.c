// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// argv[1] processes of argv[2] threads take and give back memory at the limit, argv[3]
// operations together, 512 B to 64 MiB each, in every way that argv[4] names (a letter
// each, see ways). Then they free all they have, print "holding" and wait for the end
// of standard input. The line before is allocations, refusals, frees, other answers, the
// last of these, and the most bytes that were held at one moment, as asked for.

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "harness.h"

#define KEPT 12 // by a thread, at most

struct piece {
	int way;
	size_t bytes;
	CUdeviceptr ptr;
	CUmemGenericAllocationHandle handle;
	CUarray array;
};

static __typeof__(&cuMemAlloc_v2) alloc;
static __typeof__(&cuMemFree_v2) release;
static __typeof__(&cuMemAllocManaged) managed;
static __typeof__(&cuMemAllocPitch_v2) pitch;
static __typeof__(&cuMemAllocAsync) ordered;
static __typeof__(&cuMemFreeAsync) release_ordered;
static __typeof__(&cuMemCreate) create;
static __typeof__(&cuMemRelease) release_handle;
static __typeof__(&cuArrayCreate_v2) array_create;
static __typeof__(&cuArrayDestroy) array_destroy;
static __typeof__(&cuCtxSetCurrent) set_current;

static CUcontext context;
static long left; // operations of this process
static const char *ways;
static struct counts {
	unsigned long got, refused, freed, other, held, most;
	int code;
} *counts;

// holding counts from when a call has succeeded, until before the one that gives back
// is made: no more than what is truly held.
static void holding(size_t bytes)
{
	unsigned long now = __atomic_add_fetch(&counts->held, bytes, __ATOMIC_SEQ_CST);
	unsigned long most = __atomic_load_n(&counts->most, __ATOMIC_SEQ_CST);

	while (now > most && !__atomic_compare_exchange_n(&counts->most, &most, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static CUresult take(struct piece *p, int way, size_t bytes)
{
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUDA_ARRAY_DESCRIPTOR d = {4096, bytes / 4 / 4096 + 1, CU_AD_FORMAT_FLOAT, 1};
	size_t row;

	p->way = way;
	p->bytes = bytes;
	switch (way) {
	case 'e': // linear, all alike: whenever one is given back, one fits
		p->bytes = 10 * MIB;
		return alloc(&p->ptr, p->bytes);
	case 'l': // linear
		return alloc(&p->ptr, bytes);
	case 'm': // managed
		return managed(&p->ptr, bytes, 1);
	case 'p': // pitched
		return pitch(&p->ptr, &row, 1000, bytes / 1000 + 1, 4);
	case 'o': // stream-ordered
		return ordered(&p->ptr, bytes, NULL);
	case 'v': // virtual memory management
		return create(&p->handle, (bytes + 2 * MIB - 1) & ~(2 * MIB - 1), &prop, 0);
	default: // arrays
		return array_create(&p->array, &d);
	}
}

static CUresult give(struct piece *p)
{
	__atomic_sub_fetch(&counts->held, p->bytes, __ATOMIC_SEQ_CST);
	switch (p->way) {
	case 'o':
		return release_ordered(p->ptr, NULL);
	case 'v':
		return release_handle(p->handle);
	case 'a':
		return array_destroy(p->array);
	default:
		return release(p->ptr);
	}
}

static void count(CUresult r, unsigned long *good)
{
	unsigned long *which = r == CUDA_SUCCESS ? good : r == CUDA_ERROR_OUT_OF_MEMORY ? &counts->refused : &counts->other;

	__atomic_fetch_add(which, 1, __ATOMIC_RELAXED);
	if (which == &counts->other)
		__atomic_store_n(&counts->code, (int)r, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	struct piece kept[KEPT];
	int n = 0;

	set_current(context);
	while (__atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) > 0) {
		CUresult r;

		if (n == KEPT || (n && rand_r(&seed) % 5 < 2)) {
			int i = rand_r(&seed) % n;

			count(give(&kept[i]), &counts->freed);
			kept[i] = kept[--n];
			continue;
		}
		r = take(&kept[n], ways[(size_t)rand_r(&seed) % strlen(ways)],
			 ((size_t)512 << rand_r(&seed) % 17) + (size_t)rand_r(&seed) % 512);
		count(r, &counts->got);
		if (r == CUDA_SUCCESS)
			holding(kept[n++].bytes);
	}
	while (n)
		count(give(&kept[--n]), &counts->freed);
	return NULL;
}

static void process(int number, int threads, int done, int go, int stop)
{
	pthread_t all[256];
	CUmemoryPool pool;
	char c = 0;

	alloc = CU(cuMemAlloc_v2), release = CU(cuMemFree_v2), managed = CU(cuMemAllocManaged);
	pitch = CU(cuMemAllocPitch_v2), ordered = CU(cuMemAllocAsync), release_ordered = CU(cuMemFreeAsync);
	create = CU(cuMemCreate), release_handle = CU(cuMemRelease), set_current = CU(cuCtxSetCurrent);
	array_create = CU(cuArrayCreate_v2), array_destroy = CU(cuArrayDestroy);
	// All contexts first: who comes late would find the GPU full.
	if (CU(cuInit)(0) || CU(cuDevicePrimaryCtxRetain)(&context, 0) || write(done, &c, 1) != 1 || read(go, &c, 1) < 0)
		_exit(9);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&all[i], NULL, work, (void *)(uintptr_t)(number * 1000 + i)))
			_exit(8);
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	set_current(context);
	if (strchr(ways, 'o') && (CU(cuCtxSynchronize)() || CU(cuDeviceGetDefaultMemPool)(&pool, 0) || CU(cuMemPoolTrimTo)(pool, 0)))
		_exit(7);
	if (write(done, &c, 1) != 1 || read(stop, &c, 1) < 0)
		_exit(8);
	_exit(0);
}

int main(int argc, char **argv)
{
	int processes = argc > 4 ? atoi(argv[1]) : 0, threads = argc > 4 ? atoi(argv[2]) : 0, status;
	int done[2], go[2], stop[2];
	char c;

	if (!processes || threads > 256 || pipe(done) || pipe(go) || pipe(stop))
		return 2;
	left = atol(argv[3]) / processes;
	ways = argv[4];
	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < processes; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(stop[1]);
		close(go[1]);
		close(done[0]);
		process(i + 1, threads, done[1], go[0], stop[0]);
	}
	close(done[1]);
	for (int i = 0; i < processes; i++)
		CHECK(read(done[0], &c, 1) == 1, "a process did not start");
	close(go[1]);
	for (int i = 0; i < processes; i++)
		CHECK(read(done[0], &c, 1) == 1, "a process did not come to its end");
	printf("%lu %lu %lu %lu %d %lu\nholding\n", counts->got, counts->refused, counts->freed, counts->other, counts->code,
	       counts->most);
	while (read(0, &c, 1) > 0)
		;
	close(stop[1]);
	while (wait(&status) > 0)
		CHECK(status == 0, "a process ended with status %x", status);
	return harness_failures ? 1 : 0;
}
