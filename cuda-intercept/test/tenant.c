// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A program that does what its arguments say, one after the other, and prints one
// line for each that has something to tell. It knows nothing of gpushare.
//
//	init            cuInit and the primary context of device 0
//	try-init        cuInit; prints its code
//	alloc=N         cuMemAlloc of N bytes; prints the code
//	fill=N          allocates N bytes at a time until refused; prints the sum
//	take=K,N        allocates N bytes in way K, see take below; prints the code
//	free            frees everything that is allocated
//	churn=N         allocates and frees up to N bytes at random, for ever
//	race=P,N        P children fill in steps of N at once and end together
//	spawn=P         P children that call cuInit and hold on; prints how many could
//	within=MS,N     cuMemAlloc of N again and again; prints 0, or -1 after MS
//	info            prints free and total of cuMemGetInfo
//	fork-hold       forks a child that holds on while the parent goes on
//	exec-hold       becomes a program that holds on and knows nothing of CUDA
//	drop-files      unlocks and closes every file that it did not open itself
//	pid             prints the process's own number
//	hold            prints "holding" and waits for the end of standard input
//	nvml            prints total, free, used and pid:bytes of each process

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "harness.h"
#include "nvml_abi.h"

#define POINTERS 65536

static CUdeviceptr pointers[POINTERS];
static int count;

static CUresult allocate(size_t bytes)
{
	CUdeviceptr p = 0;
	CUresult r = CU(cuMemAlloc_v2)(&p, bytes);

	if (r == CUDA_SUCCESS && count < POINTERS)
		pointers[count++] = p;
	return r;
}

static int start(void)
{
	CUcontext c;
	int r = (int)CU(cuInit)(0);

	if (r == 0)
		r = (int)CU(cuDevicePrimaryCtxRetain)(&c, 0);
	if (r == 0)
		r = (int)CU(cuCtxSetCurrent)(c);
	return r;
}

// drop_files leaves sockets alone: the simulated driver's memory lives as long as
// its connection, a real one's as long as its mappings.
static void drop_files(void)
{
	struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	struct stat st;

	for (int fd = 3; fd < 65536; fd++) {
		if (fstat(fd, &st) < 0 || S_ISSOCK(st.st_mode))
			continue;
		fcntl(fd, F_OFD_SETLK, &all);
		close(fd);
	}
}

static void init(void)
{
	int r = start();

	if (r) {
		printf("init %d\n", r);
		exit(1);
	}
}

// take allocates in one of the ways there are; what it gets stays until the end.
static CUresult take(int way, size_t bytes)
{
	CUDA_ARRAY_DESCRIPTOR array = {bytes / 4 / 64, 64, CU_AD_FORMAT_FLOAT, 1};
	CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemPoolProps pool_props = {.allocType = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;
	CUmemoryPool pool;
	CUdeviceptr p;
	CUcontext c;
	CUarray a;
	size_t pitch;

	if ((way >= 2 && way <= 4 && !HAS(cuMemAllocAsync)) || (way == 6 && !HAS(cuMemCreate)))
		return CUDA_ERROR_NOT_SUPPORTED;
	switch (way) {
	case 0:
		return CU(cuMemAllocManaged)(&p, bytes, 1);
	case 1:
		return CU(cuMemAllocPitch_v2)(&p, &pitch, 1000, bytes / 1000, 4);
	case 2:
		return CU(cuMemAllocAsync)(&p, bytes, NULL);
	case 3:
		return CU(cuMemAllocAsync_ptsz)(&p, bytes, NULL);
	case 4:
		return CU(cuMemPoolCreate)(&pool, &pool_props) ?: CU(cuMemAllocFromPoolAsync)(&p, bytes, pool, NULL);
	case 5:
		return CU(cuCtxCreate_v2)(&c, 0, 0);
	case 6:
		return CU(cuMemCreate)(&handle, bytes, &prop, 0);
	default:
		return CU(cuArrayCreate_v2)(&a, &array);
	}
}

static unsigned long long fill(size_t step)
{
	unsigned long long sum = 0;

	while (allocate(step) == CUDA_SUCCESS)
		sum += step;
	return sum;
}

static void free_all(void)
{
	while (count)
		CU(cuMemFree_v2)(pointers[--count]);
}

static void churn(size_t most)
{
	unsigned int seed = (unsigned int)getpid();

	for (;;) {
		if (count > 8 || (count && rand_r(&seed) % 3 == 0))
			CU(cuMemFree_v2)(pointers[--count]);
		allocate((size_t)((double)rand_r(&seed) / RAND_MAX * (double)most) + 1);
	}
}

static void hold(void)
{
	char c;

	puts("holding");
	while (read(0, &c, 1) > 0)
		;
}

static int now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int)(t.tv_sec % 100000 * 1000 + t.tv_nsec / 1000000);
}

static int within(int ms, size_t bytes)
{
	int start = now_ms();

	do {
		if (allocate(bytes) == CUDA_SUCCESS)
			return 0;
		usleep(5000);
	} while (now_ms() - start < ms);
	return -1;
}

// race prints what all children got together.
static void race(int children, size_t step)
{
	int ready[2], go[2], got[2], done[2];
	unsigned long long one, sum = 0;
	char c = 0;

	if (pipe(ready) || pipe(go) || pipe(got) || pipe(done))
		exit(2);
	for (int i = 0; i < children; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		close(done[1]);
		i = start();
		if (i)
			printf("init %d\n", i);
		if (write(ready[1], &c, 1) < 0 || read(go[0], &c, 1) < 0)
			exit(2);
		one = i ? 0 : fill(step);
		if (write(got[1], &one, sizeof(one)) < 0 || read(done[0], &c, 1) < 0)
			exit(2);
		_exit(0);
	}
	close(ready[1]);
	close(got[1]);
	for (int i = 0; i < children; i++)
		if (read(ready[0], &c, 1) != 1)
			exit(2);
	close(go[1]);
	for (int i = 0; i < children; i++) {
		if (read(got[0], &one, sizeof(one)) != sizeof(one))
			exit(2);
		sum += one;
	}
	printf("race %llu\n", sum);
	close(done[1]);
	while (wait(NULL) > 0)
		;
}

static void spawn(int children)
{
	int ok[2], done[2], n = 0;
	char c;

	if (pipe(ok) || pipe(done))
		exit(2);
	for (int i = 0; i < children; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(done[1]);
		close(ok[0]);
		c = CU(cuInit)(0) == CUDA_SUCCESS;
		if (write(ok[1], &c, 1) < 0 || read(done[0], &c, 1) < 0)
			exit(2);
		_exit(0);
	}
	close(ok[1]);
	for (int i = 0; i < children && read(ok[0], &c, 1) == 1; i++)
		n += c;
	printf("spawn %d\n", n);
	close(done[1]);
	while (wait(NULL) > 0)
		;
}

static void fork_hold(void)
{
	int ready[2];
	char c = 0;

	if (pipe(ready))
		exit(2);
	if (!fork()) {
		prctl(PR_SET_NAME, "held-child");
		if (write(ready[1], &c, 1) < 0)
			_exit(2);
		close(1);
		while (read(0, &c, 1) > 0)
			;
		_exit(0);
	}
	if (read(ready[0], &c, 1) < 0)
		exit(2);
}

static void nvml(void)
{
	void *l = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	nvmlDevice_t dev;
	nvmlMemory_t m;
	nvmlMemory_v2_t m2 = {.version = (unsigned int)sizeof(m2) | 2U << 24};
	nvmlProcessInfo_t list[64];
	nvmlProcessInfo_v1_t list1[64];
	nvmlProcessDetail_v1_t detail[64];
	nvmlProcessDetailList_t details = {GS_NVML_STRUCT_VERSION(nvmlProcessDetailList_t, 1), 0, 64, detail};
	char name[256];
	unsigned int n = 64, n1 = 64, other = 64, need = 0;

#define NV(name) ((__typeof__(&name))dlsym(l, #name))
	EXPECT(NV(nvmlInit_v2)(), 0);
	EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(0, &dev), 0);
	EXPECT(NV(nvmlDeviceGetMemoryInfo)(dev, &m), 0);
	EXPECT(NV(nvmlDeviceGetComputeRunningProcesses)(dev, &n1, list1), 0);
	EXPECT(NV(nvmlSystemGetProcessName)(1, name, sizeof(name)), NVML_ERROR_NOT_FOUND);
	for (unsigned int i = 0; i < n1; i++)
		EXPECT(NV(nvmlSystemGetProcessName)(list1[i].pid, name, sizeof(name)), 0);
	// What follows is not in every driver.
	if (NV(nvmlDeviceGetMemoryInfo_v2)) {
		EXPECT(NV(nvmlDeviceGetMemoryInfo_v2)(dev, &m2), 0);
		CHECK(m2.total == m.total && m2.free == m.free && m2.used == m.used, "the two memory views differ");
	}
	if (NV(nvmlDeviceGetComputeRunningProcesses_v2)) {
		EXPECT(NV(nvmlDeviceGetComputeRunningProcesses_v2)(dev, &need, NULL), n1 ? 7 : 0);
		CHECK(need == n1, "%u processes are needed for", need);
	}
	if (NV(nvmlDeviceGetComputeRunningProcesses_v3)) {
		EXPECT(NV(nvmlDeviceGetComputeRunningProcesses_v3)(dev, &n, list), 0);
		CHECK(n == n1, "%u and %u processes", n, n1);
		for (unsigned int i = 0; i < n; i++)
			CHECK(list[i].pid == list1[i].pid && list[i].usedGpuMemory == list1[i].usedGpuMemory, "%u in the two lists", i);
	}
	if (NV(nvmlDeviceGetGraphicsRunningProcesses_v3)) {
		EXPECT(NV(nvmlDeviceGetGraphicsRunningProcesses_v3)(dev, &other, list), 0);
		CHECK(other == 0, "%u graphics processes", other);
	}
	if (NV(nvmlDeviceGetRunningProcessDetailList)) {
		EXPECT(NV(nvmlDeviceGetRunningProcessDetailList)(dev, &details), 0);
		CHECK(details.numProcArrayEntries == n1, "%u processes in detail", details.numProcArrayEntries);
		for (unsigned int i = 0; i < n1; i++)
			CHECK(detail[i].pid == list1[i].pid && detail[i].usedGpuMemory == list1[i].usedGpuMemory, "%u in detail", i);
	}
	printf("nvml %llu %llu %llu", m.total, m.free, m.used);
	for (unsigned int i = 0; i < n1; i++)
		printf(" %u:%llu", list1[i].pid, list1[i].usedGpuMemory);
	printf("\n");
	EXPECT(NV(nvmlShutdown)(), 0);
}

static void info(void)
{
	size_t free_bytes = 0, total = 0;
	int r = (int)CU(cuMemGetInfo_v2)(&free_bytes, &total);

	printf("info %d %zu %zu\n", r, free_bytes, total);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		const char *op = argv[i];
		unsigned long long a = 0, b = 0;
		char word[32];

		if (sscanf(op, "%31[a-z-]=%llu,%llu", word, &a, &b) < 1)
			return 2;
#define OP(name) (!strcmp(word, name))
		if OP("init")
			init();
		else if OP("try-init")
			printf("try-init %d\n", (int)CU(cuInit)(0));
		else if OP("alloc")
			printf("alloc %d\n", (int)allocate(a));
		else if OP("fill")
			printf("fill %llu\n", fill(a));
		else if OP("take")
			printf("take %d\n", (int)take((int)a, b));
		else if OP("free")
			free_all();
		else if OP("churn")
			churn(a);
		else if OP("race")
			race((int)a, b);
		else if OP("spawn")
			spawn((int)a);
		else if OP("within")
			printf("within %d\n", within((int)a, b));
		else if OP("info")
			info();
		else if OP("fork-hold")
			fork_hold();
		else if OP("exec-hold")
			execl("/bin/cat", "cat", (char *)NULL);
		else if OP("drop-files")
			drop_files();
		else if OP("pid")
			printf("pid %d\n", (int)getpid());
		else if OP("hold")
			hold();
		else if OP("nvml")
			nvml();
		else
			return 2;
	}
	return harness_failures ? 1 : 0;
}
