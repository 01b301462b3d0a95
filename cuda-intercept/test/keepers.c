// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What keeps memory that was released, and the calls of sharing that no simulated card
// has: over the stand-in driver, whose account the ledger must be after every step.

#include <stdbool.h>

#include "harness.h"

#define LIMIT (1024 * MIB)
#define AT 0x600000000000ULL

static unsigned long long (*driver_used)(int dev);
static void (*driver_fail)(const char *name, int code);
static void (*driver_closed)(int fd);

static CUcontext primary;
static const CUmemAllocationProp prop = {.type = 1, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};

#define SAME(what)                                                                             \
	CHECK(ledger_sum(0) == driver_used(0), "%s: the ledger has %llu bytes, the driver %llu", what, \
	      (unsigned long long)ledger_sum(0), driver_used(0))

// KEPT(n): that many bytes beside the context.
static uint64_t none;

#define KEPT(n, what)                                                                          \
	do {                                                                                   \
		SAME(what);                                                                    \
		CHECK(ledger_sum(0) - none == (n), "%s: %llu bytes are charged", what,             \
		      (unsigned long long)(ledger_sum(0) - none));                              \
	} while (0)

// FAILS(name, call): the driver refuses; nothing is charged or forgotten by it.
#define FAILS(name, call)                              \
	do {                                           \
		uint64_t before_failure = ledger_sum(0); \
		driver_fail(name, 719);                \
		EXPECT(call, 719);                     \
		CHECK(ledger_sum(0) == before_failure, "%s failed and something was charged", name); \
		SAME(name);                            \
	} while (0)

static CUmemGenericAllocationHandle create(size_t bytes)
{
	CUmemGenericAllocationHandle h = 0;

	EXPECT(CU(cuMemCreate)(&h, bytes, &prop, 0), 0);
	return h;
}

static void multicast(void)
{
	CUmemGenericAllocationHandle m = 7, h;

	FAILS("cuMulticastCreate", CU(cuMulticastCreate)(&m, NULL));
	CHECK(m == 7, "an output was changed");
	EXPECT(CU(cuMulticastCreate)(&m, NULL), 0);
	h = create(4 * MIB);
	FAILS("cuMulticastBindMem", CU(cuMulticastBindMem)(m, 0, h, 0, 2 * MIB, 0));
	EXPECT(CU(cuMulticastBindMem)(m, 0, h, 0, 2 * MIB, 0), 0);
	EXPECT(CU(cuMulticastBindMem_v2)(m, 0, 2 * MIB, h, 0, 2 * MIB, 0), 0);
	EXPECT(CU(cuMemRelease)(h), 0);
	KEPT(4 * MIB, "bound twice");
	FAILS("cuMulticastUnbind", CU(cuMulticastUnbind)(m, 0, 0, 2 * MIB));
	EXPECT(CU(cuMulticastUnbind)(m, 0, 2 * MIB, 2 * MIB), 0);
	KEPT(4 * MIB, "bound once");
	EXPECT(CU(cuMulticastUnbind)(m, 0, 0, 2 * MIB), 0);
	KEPT(0, "unbound");
	h = create(2 * MIB);
	EXPECT(CU(cuMulticastBindMem_v2)(m, 0, 0, h, 0, 2 * MIB, 0), 0);
	EXPECT(CU(cuMemRelease)(h), 0);
	KEPT(2 * MIB, "bound by the newer call alone");
	EXPECT(CU(cuMulticastUnbind)(m, 0, 0, 2 * MIB), 0);
	KEPT(0, "unbound again");

	// By address, of two mappings in a row; and the object goes with all that is bound.
	for (int i = 0; i < 2; i++) {
		h = create(2 * MIB);
		EXPECT(CU(cuMemMap)(AT + 2 * MIB * i, 2 * MIB, 0, h, 0), 0);
		EXPECT(CU(cuMemRelease)(h), 0);
	}
	FAILS("cuMulticastBindAddr", CU(cuMulticastBindAddr)(m, 0, AT, 2 * MIB, 0));
	EXPECT(CU(cuMulticastBindAddr)(m, 0, AT, 2 * MIB, 0), 0);
	FAILS("cuMulticastBindAddr_v2", CU(cuMulticastBindAddr_v2)(m, 0, 2 * MIB, AT + 2 * MIB, 2 * MIB, 0));
	EXPECT(CU(cuMulticastBindAddr_v2)(m, 0, 2 * MIB, AT + 2 * MIB, 2 * MIB, 0), 0);
	EXPECT(CU(cuMemUnmap)(AT, 4 * MIB), 0);
	KEPT(4 * MIB, "bound by address");
	EXPECT(CU(cuMemRelease)(m), 0);
	KEPT(0, "the object is gone");
}

static void endpoints(void)
{
	CUmemGenericAllocationHandle h = create(2 * MIB);

	FAILS("cuLogicalEndpointBindMem", CU(cuLogicalEndpointBindMem)(3, 0, 0, h, 0, 2 * MIB, 0));
	EXPECT(CU(cuLogicalEndpointBindMem)(3, 0, 0, h, 0, 2 * MIB, 0), 0);
	EXPECT(CU(cuMemRelease)(h), 0);
	KEPT(2 * MIB, "bound to an endpoint");
	h = create(4 * MIB);
	EXPECT(CU(cuMemMap)(AT, 4 * MIB, 0, h, 0), 0);
	EXPECT(CU(cuMemRelease)(h), 0);
	FAILS("cuLogicalEndpointBindAddr", CU(cuLogicalEndpointBindAddr)(3, 0, 2 * MIB, (void *)AT, 4 * MIB, 0));
	EXPECT(CU(cuLogicalEndpointBindAddr)(3, 0, 2 * MIB, (void *)AT, 4 * MIB, 0), 0);
	EXPECT(CU(cuMemUnmap)(AT, 4 * MIB), 0);
	KEPT(6 * MIB, "bound by address");
	FAILS("cuLogicalEndpointUnbind", CU(cuLogicalEndpointUnbind)(3, 0, 0, 6 * MIB));
	EXPECT(CU(cuLogicalEndpointUnbind)(3, 0, 0, 6 * MIB), 0); // both at once
	KEPT(0, "unbound");
	h = create(2 * MIB);
	EXPECT(CU(cuLogicalEndpointBindMem)(4, 0, 0, h, 0, 2 * MIB, 0), 0);
	EXPECT(CU(cuMemRelease)(h), 0);
	FAILS("cuLogicalEndpointDestroy", CU(cuLogicalEndpointDestroy)(4));
	KEPT(2 * MIB, "still bound");
	EXPECT(CU(cuLogicalEndpointDestroy)(4), 0);
	KEPT(0, "endpoint destroyed");
}

// The layout of CUarrayMapInfo, which the header leaves open.
struct map_info {
	int resource_type;
	CUarray array;
	int subresource_type;
	union {
		unsigned int level[8];
		unsigned long long tail[3];
	} where;
	int operation, handle_type;
	CUmemGenericAllocationHandle handle;
	unsigned long long offset;
	unsigned int devices, flags, reserved[2];
};

static void tiles(bool thread)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 1024, .Height = 1024, .NumChannels = 1, .Format = CU_AD_FORMAT_FLOAT};
	struct map_info info[2] = {{.operation = 1}, {.operation = 1}};
	CUarray array;
	uint64_t own;

	EXPECT(CU(cuArray3DCreate_v2)(&array, &d), 0);
	own = ledger_sum(0) - none;
	for (int i = 0; i < 2; i++) {
		info[i].array = array;
		info[i].handle = create(2 * MIB);
	}
	if (thread)
		EXPECT(CU(cuMemMapArrayAsync_ptsz)((void *)info, 2, NULL), 0);
	else
		EXPECT(CU(cuMemMapArrayAsync)((void *)info, 2, NULL), 0);
	for (int i = 0; i < 2; i++)
		EXPECT(CU(cuMemRelease)(info[i].handle), 0);
	KEPT(own + 4 * MIB, "tiles");
	EXPECT(CU(cuArrayDestroy)(array), 0);
	KEPT(0, "array destroyed");
	info[0].handle = create(2 * MIB);
	FAILS("cuMemMapArrayAsync", CU(cuMemMapArrayAsync)((void *)info, 1, NULL));
	EXPECT(CU(cuMemRelease)(info[0].handle), 0);
	KEPT(0, "not mapped");
}

struct memory_desc {
	int type;
	union {
		int fd;
		void *pair[2];
	} handle;
	unsigned long long size;
	unsigned int flags, reserved[16];
};

static void external(void)
{
	struct memory_desc d = {.type = 1, .handle = {.fd = 0}, .size = 8 * MIB};
	CUmemGenericAllocationHandle h;
	CUexternalMemory e = (CUexternalMemory)5;
	CUmipmappedArray array;
	CUdeviceptr p;

	// Another driver's.
	FAILS("cuImportExternalMemory", CU(cuImportExternalMemory)(&e, (void *)&d));
	CHECK(e == (CUexternalMemory)5, "an output was changed");
	EXPECT(CU(cuImportExternalMemory)(&e, (void *)&d), 0);
	KEPT(8 * MIB, "another driver's memory");
	EXPECT(CU(cuExternalMemoryGetMappedBuffer)(&p, e, NULL), 0);
	FAILS("cuDestroyExternalMemory", CU(cuDestroyExternalMemory)(e));
	EXPECT(CU(cuDestroyExternalMemory)(e), 0);
	KEPT(8 * MIB, "a buffer is left");
	FAILS("cuMemFree_v2", CU(cuMemFree_v2)(p));
	KEPT(8 * MIB, "the buffer is not freed");
	EXPECT(CU(cuMemFree_v2)(p), 0);
	KEPT(0, "nothing is left");
	EXPECT(CU(cuImportExternalMemory)(&e, (void *)&d), 0);
	EXPECT(CU(cuExternalMemoryGetMappedMipmappedArray)(&array, e, NULL), 0);
	EXPECT(CU(cuDestroyExternalMemory)(e), 0);
	KEPT(8 * MIB, "an array is left");
	EXPECT(CU(cuMipmappedArrayDestroy)(array), 0);
	KEPT(0, "none is left");
	d.size = LIMIT - none;
	EXPECT(CU(cuImportExternalMemory)(&e, (void *)&d), 0);
	KEPT(LIMIT - none, "all of it");
	EXPECT(CU(cuDestroyExternalMemory)(e), 0);
	d.size++;
	e = (CUexternalMemory)5;
	EXPECT(CU(cuImportExternalMemory)(&e, (void *)&d), 2);
	CHECK(e == (CUexternalMemory)5, "an output was changed");
	KEPT(0, "one byte too much");

	// Our own.
	h = create(4 * MIB);
	EXPECT(CU(cuMemExportToShareableHandle)(&d.handle.fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), 0);
	d.size = 4 * MIB;
	FAILS("cuImportExternalMemory", CU(cuImportExternalMemory)(&e, (void *)&d));
	EXPECT(CU(cuImportExternalMemory)(&e, (void *)&d), 0);
	KEPT(4 * MIB, "imported by who has made it");
	EXPECT(CU(cuMemRelease)(h), 0);
	KEPT(4 * MIB, "released");
	driver_closed(d.handle.fd);
	EXPECT(CU(cuDestroyExternalMemory)(e), 0);
	// A descriptor's end is seen when room is needed.
	EXPECT(CU(cuMemAlloc_v2)(&p, LIMIT - none), 0);
	EXPECT(CU(cuMemFree_v2)(p), 0);
	KEPT(0, "closed");
}

// A handle of 64 bytes holds nothing by itself.
static void fabric(void)
{
	CUmemGenericAllocationHandle h = create(4 * MIB), again = 9;
	char bytes[64], kept[64];

	memset(bytes, 3, sizeof(bytes));
	memcpy(kept, bytes, sizeof(kept));
	FAILS("cuMemExportToShareableHandle",
	      CU(cuMemExportToShareableHandle)(bytes, h, CU_MEM_HANDLE_TYPE_FABRIC, 0));
	CHECK(!memcmp(bytes, kept, sizeof(kept)), "an output was changed");
	EXPECT(CU(cuMemExportToShareableHandle)(bytes, h, CU_MEM_HANDLE_TYPE_FABRIC, 0), 0);
	FAILS("cuMemImportFromShareableHandle",
	      CU(cuMemImportFromShareableHandle)(&again, bytes, CU_MEM_HANDLE_TYPE_FABRIC));
	CHECK(again == 9, "an output was changed");
	EXPECT(CU(cuMemImportFromShareableHandle)(&again, bytes, CU_MEM_HANDLE_TYPE_FABRIC), 0);
	KEPT(4 * MIB, "imported");
	CHECK(ledger_shares(0) == 4 * MIB, "%llu bytes are in records", (unsigned long long)ledger_shares(0));
	EXPECT(CU(cuMemRelease)(h), 0);
	KEPT(4 * MIB, "released once");
	EXPECT(CU(cuMemRelease)(again), 0);
	KEPT(0, "released twice");
}

// dma-bufs, of linear memory and of mappings, hold what they are of.
static void ranges(void)
{
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	int fd = -5;

	EXPECT(CU(cuMemAlloc_v2)(&p, 4 * MIB), 0);
	FAILS("cuMemGetHandleForAddressRange", CU(cuMemGetHandleForAddressRange)(&fd, p, 4 * MIB, 1, 0));
	CHECK(fd == -5, "an output was changed");
	EXPECT(CU(cuMemGetHandleForAddressRange)(&fd, p, 4 * MIB, 1, 0), 0);
	EXPECT(CU(cuMemFree_v2)(p), 0);
	KEPT(4 * MIB, "freed, with a dma-buf");
	EXPECT(CU(cuMemAlloc_v2)(&p, LIMIT - none), 2);
	driver_closed(fd);
	EXPECT(CU(cuMemAlloc_v2)(&p, LIMIT - none), 0);
	EXPECT(CU(cuMemFree_v2)(p), 0);
	KEPT(0, "closed");
	h = create(4 * MIB);
	EXPECT(CU(cuMemMap)(AT, 4 * MIB, 0, h, 0), 0);
	EXPECT(CU(cuMemGetHandleForAddressRange)(&fd, AT, 4 * MIB, 1, 0), 0);
	EXPECT(CU(cuMemRelease)(h), 0);
	EXPECT(CU(cuMemUnmap)(AT, 4 * MIB), 0);
	KEPT(4 * MIB, "unmapped, with a dma-buf");
	driver_closed(fd);
	EXPECT(CU(cuMemAlloc_v2)(&p, LIMIT - none), 0);
	EXPECT(CU(cuMemFree_v2)(p), 0);
	KEPT(0, "closed");
}

// Opened where it was made, as no driver allows, but the counting is the same.
static void ipc(void)
{
	CUipcMemHandle handle, none_of_ours;
	CUdeviceptr p, q = 4;

	EXPECT(CU(cuMemAlloc_v2)(&p, 4 * MIB), 0);
	FAILS("cuIpcGetMemHandle", CU(cuIpcGetMemHandle)(&handle, p));
	EXPECT(CU(cuIpcGetMemHandle)(&handle, p), 0);
	FAILS("cuIpcOpenMemHandle_v2", CU(cuIpcOpenMemHandle_v2)(&q, handle, 1));
	CHECK(q == 4, "an output was changed");
	EXPECT(CU(cuIpcOpenMemHandle_v2)(&q, handle, 1), 0);
	EXPECT(CU(cuIpcOpenMemHandle)(&q, handle, 1), 0);
	EXPECT(CU(cuMemFree_v2)(p), 0);
	KEPT(4 * MIB, "opened twice");
	FAILS("cuIpcCloseMemHandle", CU(cuIpcCloseMemHandle)(q));
	EXPECT(CU(cuIpcCloseMemHandle)(q), 0);
	KEPT(4 * MIB, "opened once");
	EXPECT(CU(cuIpcCloseMemHandle)(q), 0);
	KEPT(0, "closed");
	memset(&none_of_ours, 1, sizeof(none_of_ours));
	EXPECT(CU(cuIpcOpenMemHandle_v2)(&q, none_of_ours, 1), 400);
}

static void context_ends(void)
{
	CUipcMemHandle handle;
	CUdeviceptr p, q;
	CUcontext c;

	EXPECT(CU(cuCtxCreate_v2)(&c, 0, 0), 0);
	EXPECT(CU(cuCtxSetCurrent)(c), 0);
	EXPECT(CU(cuMemAlloc_v2)(&p, 4 * MIB), 0);
	EXPECT(CU(cuIpcGetMemHandle)(&handle, p), 0);
	EXPECT(CU(cuMemAlloc_v2)(&q, 2 * MIB), 0);
	EXPECT(CU(cuCtxDestroy_v2)(c), 0);
	EXPECT(CU(cuCtxSetCurrent)(primary), 0);
	KEPT(0, "exported and gone with its context");
}

// A restore on other GPUs would be charged nowhere.
static void checkpoint(void)
{
	CUuuid pairs[2][2] = {{{{1}}, {{1}}}, {{{2}}, {{3}}}};
	struct {
		CUuuid (*pairs)[2];
		unsigned int count, reserved[13];
	} args = {pairs, 1, {0}};

	EXPECT(CU(cuCheckpointProcessRestore)(1, NULL), 0);
	EXPECT(CU(cuCheckpointProcessRestore)(1, (void *)&args), 0);
	args.count = 2;
	EXPECT(CU(cuCheckpointProcessRestore)(1, (void *)&args), 801);
}

// Every kind of place; only the GPU's own is charged, and the driver says which it knows.
static void locations(void)
{
	static const int types[] = {CU_MEM_LOCATION_TYPE_HOST, 3, 4, 0, 77, -1};
	CUmemGenericAllocationHandle h;

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		CUmemAllocationProp p = {.type = 1, .location = {(CUmemLocationType)types[i], 0}};

		EXPECT(CU(cuMemCreate)(&h, 2 * MIB, &p, 0), 0);
		KEPT(0, "memory that is not the GPU's");
		EXPECT(CU(cuMemMap)(AT, 2 * MIB, 0, h, 0), 0);
		EXPECT(CU(cuMemRelease)(h), 0);
		EXPECT(CU(cuMemUnmap)(AT, 2 * MIB), 0);
		KEPT(0, "memory that is not the GPU's, released");
		FAILS("cuMemCreate", CU(cuMemCreate)(&h, 2 * MIB, &p, 0));
	}
}

int main(void)
{
	void *real;

	EXPECT(CU(cuInit)(0), 0);
	real = dlopen("/run/gpushare/driver/cuda.real", RTLD_NOW | RTLD_NOLOAD);
	driver_used = (unsigned long long (*)(int))dlsym(real, "fake_used");
	driver_fail = (void (*)(const char *, int))dlsym(real, "fake_fail");
	driver_closed = (void (*)(int))dlsym(real, "fake_closed");
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&primary, 0), 0);
	EXPECT(CU(cuCtxSetCurrent)(primary), 0);
	none = ledger_sum(0);
	multicast();
	endpoints();
	tiles(false);
	tiles(true);
	external();
	fabric();
	ranges();
	ipc();
	context_ends();
	checkpoint();
	locations();
	return harness_failures != 0;
}
