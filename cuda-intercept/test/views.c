// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A program that does what it reads, line by line, and answers each with one line.
// It knows nothing of gpushare; "look" compares every figure of memory there is.
//
//	init            cuInit; its code and the number of devices
//	use K           the primary context of device K becomes the current one; the code
//	drop            gives it back; the code
//	uuid K          the device's UUID, as NVML writes it
//	alloc N         cuMemAlloc of N bytes; the code
//	fill N          allocates N bytes at a time until refused; the sum, the last code
//	free            frees everything that is allocated; the code of the first that failed
//	look            total and free of the current device
//	sync            cuCtxSynchronize; the code
//	peer A B        whether A can access B's memory; the code of enabling it
//	nvml            index:total:used of each device of NVML, or index:code
//	smi             what nvidia-smi -q -d MEMORY prints, in MiB

#include "harness.h"
#include "nvml_abi.h"

#define POINTERS 4096

static CUdeviceptr pointers[POINTERS];
static int count;
static CUdevice current;
static void *nvml_library;

#define NV(name) ((__typeof__(&name))dlsym(nvml_library, #name))

static void nvml_start(void)
{
	if (nvml_library)
		return;
	nvml_library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	if (!nvml_library) {
		printf("%s\n", dlerror());
		exit(2);
	}
	EXPECT(NV(nvmlInit_v2)(), 0);
}

static const char *uuid(CUdevice dev)
{
	static char text[64];
	CUuuid id = {0};
	const unsigned char *b = (const unsigned char *)&id;
	int n = 4;

	if (CU(cuDeviceGetUuid)(&id, dev) != CUDA_SUCCESS)
		return "none";
	memcpy(text, "GPU-", 4);
	for (int i = 0; i < 16; i++)
		n += sprintf(text + n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
	return text;
}

static int allocate(size_t bytes)
{
	CUdeviceptr p;
	CUresult r = count < POINTERS ? CU(cuMemAlloc_v2)(&p, bytes) : CUDA_ERROR_UNKNOWN;

	if (r == CUDA_SUCCESS)
		pointers[count++] = p;
	return (int)r;
}

static int free_all(void)
{
	int failed = 0;

	while (count) {
		int r = (int)CU(cuMemFree_v2)(pointers[--count]);

		failed = failed ? failed : r;
	}
	return failed;
}

static int use(CUdevice dev)
{
	CUcontext c;
	int r = (int)CU(cuDevicePrimaryCtxRetain)(&c, dev);

	if (r)
		return r;
	current = dev;
	return (int)CU(cuCtxSetCurrent)(c);
}

static unsigned int narrow(size_t bytes)
{
	return bytes > UINT32_MAX ? UINT32_MAX : (unsigned int)bytes;
}

static void look(void)
{
	size_t free_bytes = 1, total = 2, device = 3;
	unsigned int free1 = 1, total1 = 2, device1 = 3;
	nvmlMemory_t m = {0};
	nvmlMemory_v2_t m2 = {.version = GS_NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
	nvmlBAR1Memory_t bar = {0};
	nvmlDevice_t dev = NULL;
	int r = (int)CU(cuMemGetInfo_v2)(&free_bytes, &total);

	if (r) {
		printf("look fails: %d\n", r);
		return;
	}
	nvml_start();
	EXPECT(NV(nvmlDeviceGetHandleByUUID)(uuid(current), &dev), 0);
	EXPECT(CU(cuDeviceTotalMem_v2)(&device, current), 0);
	EXPECT(CU(cuDeviceTotalMem)(&device1, current), 0);
	EXPECT(CU(cuMemGetInfo)(&free1, &total1), 0);
	EXPECT(NV(nvmlDeviceGetMemoryInfo)(dev, &m), 0);
	EXPECT(NV(nvmlDeviceGetMemoryInfo_v2)(dev, &m2), 0);
	CHECK(device == total && m.total == total && m2.total == total, "totals: %zu, %zu, %llu, %llu", total, device,
	      m.total, m2.total);
	CHECK(m.free == free_bytes && m2.free == free_bytes, "free: %zu, %llu, %llu", free_bytes, m.free, m2.free);
	CHECK(m.used + m.free == total && m2.used + m2.free + m2.reserved == total && !m2.reserved,
	      "used and free are not the total: %llu, %llu, %llu", m.used, m2.used, m2.reserved);
	CHECK(device1 == narrow(total) && total1 == narrow(total) && free1 == narrow(free_bytes),
	      "old interface: %u, %u, %u", device1, total1, free1);
	if (NV(nvmlDeviceGetBAR1MemoryInfo)(dev, &bar) == NVML_SUCCESS)
		CHECK(bar.bar1Used + bar.bar1Free == bar.bar1Total, "aperture: %llu %llu %llu",
		      bar.bar1Total, bar.bar1Used, bar.bar1Free);
	printf("look %zu %zu\n", total, free_bytes);
}

static void nvml(void)
{
	unsigned int n = 0;

	nvml_start();
	EXPECT(NV(nvmlDeviceGetCount_v2)(&n), 0);
	printf("nvml");
	for (unsigned int i = 0; i < n; i++) {
		nvmlDevice_t dev;
		nvmlMemory_t m = {0};
		int r = (int)NV(nvmlDeviceGetHandleByIndex_v2)(i, &dev);

		if (!r)
			r = (int)NV(nvmlDeviceGetMemoryInfo)(dev, &m);
		if (r)
			printf(" %u:%d", i, r);
		else
			printf(" %u:%llu:%llu", i, m.total, m.used);
	}
	printf("\n");
}

static void smi(void)
{
	nvmlMemory_v2_t m = {.version = GS_NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
	nvmlBAR1Memory_t bar = {0};
	nvmlDevice_t dev;

	nvml_start();
	EXPECT(NV(nvmlDeviceGetHandleByIndex_v2)(0, &dev), 0);
	EXPECT(NV(nvmlDeviceGetMemoryInfo_v2)(dev, &m), 0);
	EXPECT(NV(nvmlDeviceGetBAR1MemoryInfo)(dev, &bar), 0);
	printf("FB Total %llu MiB, Reserved %llu MiB, Used %llu MiB, Free %llu MiB; BAR1 Total %llu MiB, Used %llu MiB, Free %llu MiB\n",
	       m.total / MIB, m.reserved / MIB, m.used / MIB, m.free / MIB, bar.bar1Total / MIB, bar.bar1Used / MIB,
	       bar.bar1Free / MIB);
}

static void obey(const char *word, unsigned long long a, unsigned long long b)
{
	unsigned long long sum = 0;
	int n = 0, r;

#define WORD(name) (!strcmp(word, name))
	if WORD("init") {
		r = (int)CU(cuInit)(0);
		CU(cuDeviceGetCount)(&n);
		printf("init %d %d\n", r, n);
	} else if WORD("use") {
		printf("use %d\n", use((CUdevice)a));
	} else if WORD("drop") {
		printf("drop %d\n", (int)CU(cuDevicePrimaryCtxRelease_v2)(current));
	} else if WORD("uuid") {
		printf("%s\n", uuid((CUdevice)a));
	} else if WORD("alloc") {
		printf("alloc %d\n", allocate(a));
	} else if WORD("fill") {
		while (!(r = allocate(a)))
			sum += a;
		printf("fill %llu %d\n", sum, r);
	} else if WORD("free") {
		printf("free %d\n", free_all());
	} else if WORD("look") {
		look();
	} else if WORD("sync") {
		printf("sync %d\n", (int)CU(cuCtxSynchronize)());
	} else if WORD("peer") {
		r = (int)CU(cuDeviceCanAccessPeer)(&n, (CUdevice)a, (CUdevice)b);
		if (!r && n) {
			CUcontext c = NULL;

			CU(cuDevicePrimaryCtxRetain)(&c, (CUdevice)b);
			r = (int)CU(cuCtxEnablePeerAccess)(c, 0);
		}
		printf("peer %d %d\n", n, r);
	} else if WORD("nvml") {
		nvml();
	} else if WORD("smi") {
		smi();
	} else {
		printf("what is %s?\n", word);
	}
}

int main(void)
{
	unsigned long long a, b;
	char line[256], word[32];

	while (fgets(line, sizeof(line), stdin)) {
		a = b = 0;
		if (sscanf(line, "%31s %llu %llu", word, &a, &b) >= 1)
			obey(word, a, b);
	}
	return harness_failures ? 1 : 0;
}
