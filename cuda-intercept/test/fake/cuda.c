// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// A stand-in for the driver library in one process, for tests of the wrappers
// alone: it keeps its own account of device memory (fake_used), can be told to
// refuse a call (fake_fail), and takes memory by rules of the real driver that
// are hard to follow from outside: pools that grow in steps and keep what is
// freed, memory that lives as long as its mappings.

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
struct thing *fake_things;
static struct CUctx_st primaries[DEVICES] = {{.dev = 0, .primary = 1}, {.dev = 1, .primary = 1}};
__thread struct CUctx_st *fake_current;
static unsigned long long used[DEVICES], high[DEVICES], next_key = 0x7f0000000000ULL;
static int ready;
static const char *failing;
static CUresult failure;

unsigned long long fake_used(int dev)
{
	return used[dev];
}

unsigned long long fake_high(int dev)
{
	return high[dev];
}

// The next call of the function with that name returns code and does nothing; no
// name resets the high-water mark.
void fake_fail(const char *name, int code)
{
	failing = name;
	for (int dev = 0; !name && dev < DEVICES; dev++)
		high[dev] = used[dev];
	failure = (CUresult)code;
}

int fake_enter(const char *name, CUresult *ret_result)
{
	if (failing && !strcmp(failing, name)) {
		failing = NULL;
		*ret_result = failure;
		return 1;
	}
	*ret_result = CUDA_ERROR_NOT_INITIALIZED;
	return !ready;
}

void fake_use(int dev, long long bytes)
{
	used[dev] += (unsigned long long)bytes;
	if (used[dev] > high[dev])
		high[dev] = used[dev];
}

unsigned long long fake_round(unsigned long long n, unsigned long long to)
{
	return (n + to - 1) / to * to;
}

struct thing *fake_add(int kind, int dev, unsigned long long bytes)
{
	struct thing *t = calloc(1, sizeof(*t));

	t->kind = kind;
	t->dev = dev;
	t->refs = 1;
	t->bytes = bytes;
	t->key = next_key;
	t->ctx = fake_current;
	next_key += fake_round(bytes, 1ULL << 21) + (1ULL << 21);
	t->next = fake_things;
	fake_things = t;
	return t;
}

struct thing *fake_find(int kind, unsigned long long key)
{
	for (struct thing *t = fake_things; t; t = t->next)
		if (t->kind == kind && t->key == key)
			return t;
	return NULL;
}

void fake_drop(struct thing *gone)
{
	for (struct thing **t = &fake_things; *t; t = &(*t)->next) {
		if (*t == gone) {
			*t = gone->next;
			free(gone);
			return;
		}
	}
}

// ---- start, devices, contexts -------------------------------------------------

// With FAKE_REENTERS (any value, or proc: by cuGetProcAddress) the driver looks its own start up among the loaded libraries,
// where it is found in whoever stands before it, and goes through that.
static CUresult reenter(unsigned int flags)
{
	static __thread int depth;
	void *library;
	__typeof__(&cuInit) start;
	CUresult r = CUDA_SUCCESS;

	if (depth || !getenv("FAKE_REENTERS"))
		return r;
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	start = library ? (__typeof__(start))dlsym(library, "cuInit") : NULL;
	if (!strcmp(getenv("FAKE_REENTERS"), "proc")) {
		__typeof__(&cuGetProcAddress_v2) ask = (__typeof__(ask))dlsym(library, "cuGetProcAddress_v2");
		CUdriverProcAddressQueryResult status;

		if (!ask || ask("cuInit", (void **)&start, 12000, 0, &status))
			return CUDA_ERROR_UNKNOWN;
	}
	if (!start || start == cuInit)
		return CUDA_ERROR_UNKNOWN;
	depth++;
	r = start(flags);
	depth--;
	return r;
}

CUresult cuInit(unsigned int flags)
{
	CUresult r = reenter(flags);

	if (r != CUDA_SUCCESS)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (failing && !strcmp(failing, "cuInit"))
		return failure;
	ready = 1;
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = 12090;
	return CUDA_SUCCESS;
}

// Two tables: the runtime's own, and one that nobody knows.
CUresult cuGetExportTable(const void **ret_table, const CUuuid *id)
{
	static const CUuuid unknown = {{1, 2, 3}};
	static const void *table[2] = {(const void *)sizeof(table)};

	if ((unsigned char)id->bytes[0] != 0x6b && memcmp(id, &unknown, sizeof(unknown)) != 0)
		return CUDA_ERROR_NOT_FOUND;
	*ret_table = table;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n)
{
	ENTER();
	*n = DEVICES;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *dev, int ordinal)
{
	ENTER();
	if (ordinal < 0 || ordinal >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	ENTER();
	if (dev < 0 || dev >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	memset(uuid, 0, sizeof(*uuid));
	uuid->bytes[0] = (char)0xfa;
	uuid->bytes[15] = (char)(dev + 1);
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	ENTER();
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev < 0 || dev >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = MEMORY_BYTES;
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	size_t wide;
	CUresult r = cuDeviceTotalMem_v2(bytes ? &wide : NULL, dev);

	if (r == CUDA_SUCCESS)
		*bytes = 0xffffffffU;
	return r;
}

static void destroy_contents(struct CUctx_st *ctx)
{
	struct thing *next;

	for (struct thing *t = fake_things; t; t = next) {
		next = t->next;
		if (t->ctx == ctx && !t->pool && (t->kind == THING_POINTER || t->kind == THING_ARRAY)) {
			fake_use(t->dev, -(long long)t->bytes);
			fake_drop(t);
		}
	}
	fake_use(ctx->dev, -(long long)CONTEXT_BYTES);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice dev)
{
	ENTER();
	if (dev < 0 || dev >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&fake_lock);
	if (!primaries[dev].refs++)
		fake_use(dev, CONTEXT_BYTES);
	pthread_mutex_unlock(&fake_lock);
	*ctx = &primaries[dev];
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	ENTER();
	if (dev < 0 || dev >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&fake_lock);
	if (primaries[dev].refs && !--primaries[dev].refs)
		destroy_contents(&primaries[dev]);
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	ENTER();
	pthread_mutex_lock(&fake_lock);
	if (primaries[dev].refs)
		destroy_contents(&primaries[dev]);
	primaries[dev].refs = 0;
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	ENTER();
	*flags = 0;
	pthread_mutex_lock(&fake_lock);
	*active = primaries[dev].refs > 0;
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	struct CUctx_st *c;

	(void)flags;
	ENTER();
	if (dev < 0 || dev >= DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	c = calloc(1, sizeof(*c));
	c->dev = dev;
	c->live = 1;
	c->refs = 1;
	pthread_mutex_lock(&fake_lock);
	fake_use(dev, CONTEXT_BYTES);
	pthread_mutex_unlock(&fake_lock);
	fake_current = *ctx = c;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuGLCtxCreate(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuGLCtxCreate_v2(CUcontext *ctx, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *ctx, CUexecAffinityParam *p, int n, unsigned int flags, CUdevice dev)
{
	(void)p;
	(void)n;
	return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *p, unsigned int flags, CUdevice dev)
{
	(void)p;
	return cuCtxCreate_v2(ctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	ENTER();
	if (!ctx || ctx->primary || !ctx->live)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&fake_lock);
	destroy_contents(ctx);
	pthread_mutex_unlock(&fake_lock);
	ctx->live = 0;
	if (fake_current == ctx)
		fake_current = NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

CUresult cuCtxAttach(CUcontext *ctx, unsigned int flags)
{
	ENTER();
	if (flags || !fake_current)
		return CUDA_ERROR_INVALID_VALUE;
	fake_current->refs++;
	*ctx = fake_current;
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
	ENTER();
	if (ctx != fake_current)
		return CUDA_ERROR_INVALID_CONTEXT;
	return --ctx->refs ? CUDA_SUCCESS : cuCtxDestroy_v2(ctx);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	ENTER();
	fake_current = ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	ENTER();
	*ctx = fake_current;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *dev)
{
	ENTER();
	if (!fake_current)
		return CUDA_ERROR_INVALID_CONTEXT;
	*dev = fake_current->dev;
	return CUDA_SUCCESS;
}

// ---- linear memory ------------------------------------------------------------

static CUresult allocate(unsigned long long *key, unsigned long long bytes)
{
	if (!fake_current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!bytes || !key)
		return CUDA_ERROR_INVALID_VALUE;
	bytes = fake_round(bytes, 512);
	pthread_mutex_lock(&fake_lock);
	*key = fake_add(THING_POINTER, fake_current->dev, bytes)->key;
	fake_use(fake_current->dev, (long long)bytes);
	pthread_mutex_unlock(&fake_lock);
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes)
{
	ENTER();
	return allocate(ptr, bytes);
}

// Keys of the first interface have 32 bits; nobody dereferences them.
CUresult cuMemAlloc(CUdeviceptr_v1 *ptr, unsigned int bytes)
{
	unsigned long long key;
	CUresult r;

	ENTER();
	r = allocate(&key, bytes);
	if (r == CUDA_SUCCESS) {
		fake_find(THING_POINTER, key)->key = key & 0xffffffffU;
		*ptr = (unsigned int)key;
	}
	return r;
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned int flags)
{
	(void)flags;
	ENTER();
	return allocate(ptr, bytes);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int element)
{
	(void)element;
	ENTER();
	*pitch = fake_round(width, 1024);
	return allocate(ptr, *pitch * height);
}

CUresult cuMemAllocPitch(CUdeviceptr_v1 *ptr, unsigned int *pitch, unsigned int width, unsigned int height,
			 unsigned int element)
{
	(void)element;
	ENTER();
	*pitch = (unsigned int)fake_round(width, 1024);
	return cuMemAlloc(ptr, *pitch * height);
}

CUresult fake_release(unsigned long long key)
{
	struct thing *t;

	pthread_mutex_lock(&fake_lock);
	t = fake_find(THING_POINTER, key);
	if (t && t->pool) {
		t->pool->live -= t->bytes;
		if (t->pool->destroyed)
			fake_shrink(t->pool, 0);
	} else if (t) {
		fake_unref(t); // others may have it
		pthread_mutex_unlock(&fake_lock);
		return CUDA_SUCCESS;
	}
	if (t)
		fake_drop(t);
	pthread_mutex_unlock(&fake_lock);
	return t || fake_unmapped(key) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	ENTER();
	return fake_release(ptr);
}

CUresult cuMemFree(CUdeviceptr_v1 ptr)
{
	ENTER();
	return fake_release(ptr);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	ENTER();
	if (!fake_current)
		return CUDA_ERROR_INVALID_CONTEXT;
	*free_bytes = MEMORY_BYTES - used[fake_current->dev];
	*total = MEMORY_BYTES;
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
	ENTER();
	*free_bytes = *total = 0xffffffffU;
	return CUDA_SUCCESS;
}
