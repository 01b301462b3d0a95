// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Code and limits of a context at the container's limit, on a card where both cost
// memory: refused without room, charged with it, given back. Nobody looks at the
// driver's figure here, so every guess stands. With "eager" code is loaded at once.

#include <stdbool.h>

#include "harness.h"

#define UNIT (2 * MIB)
#define THREADS 270336ULL

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n.global .align 4 .b32 g;\n"
			  ".visible .entry k()\n{\n\tret;\n}\n";
static const char deep[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\n"
			   "\t.local .align 4 .b8 room[4096];\n\tret;\n}\n";

static CUdeviceptr filler;
static uint64_t limit;
static CUcontext ctx;

static const struct gs_limits_page *page(void)
{
	static const struct gs_limits_page *p;
	int fd;

	if (!p) {
		fd = open("/run/gpushare/limits", O_RDONLY | O_CLOEXEC);
		p = mmap(NULL, GS_LIMITS_SIZE, PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
	}
	return p;
}

// charged is all that is charged: used, guessed, grown.
static uint64_t charged(void)
{
	const struct gs_ledger_header *h = (const void *)harness_ledger();
	const struct gs_gpu_limit *l = &page()->gpu[0];
	const volatile uint64_t *guesses = (const void *)(harness_ledger() + GS_LEDGER_HEADER_SIZE +
							  GS_SLOT_COUNT * GS_SLOT_SIZE + GS_SLOT_COUNT * 8);
	uint64_t sum = ledger_sum(0) + l->growth;

	for (uint32_t i = 0; i < h->slot_high; i++)
		if (ledger_slot(i)->guess_mark > l->settle_done)
			sum += guesses[i];
	return sum;
}

// leave fills the container up to that much room.
static void leave(uint64_t room)
{
	if (filler)
		EXPECT(CU(cuMemFree_v2)(filler), CUDA_SUCCESS);
	filler = 0;
	EXPECT(CU(cuMemAlloc_v2)(&filler, limit - charged() - room), CUDA_SUCCESS);
	CHECK(limit - charged() == room, "room %llu, want %llu", (unsigned long long)(limit - charged()),
	      (unsigned long long)room);
}

// ---- uses ---------------------------------------------------------------------

static CUmodule module;
static CUlibrary library;
static CUfunction function;
static CUkernel kernel;
static const void *const mark = &mark;
static const void *out;	// what the call has set
static const char *file; // a file of PTX

static void fresh_module(void)
{
	EXPECT(CU(cuModuleLoadData)(&module, ptx), CUDA_SUCCESS);
}

static void drop_module(void)
{
	EXPECT(CU(cuModuleUnload)(module), CUDA_SUCCESS);
}

static void fresh_function(void)
{
	fresh_module();
	EXPECT(CU(cuModuleGetFunction)(&function, module, "k"), CUDA_SUCCESS);
}

static void fresh_deep(void)
{
	EXPECT(CU(cuModuleLoadData)(&module, deep), CUDA_SUCCESS);
	EXPECT(CU(cuModuleGetFunction)(&function, module, "k"), CUDA_SUCCESS);
}

static void fresh_library(void)
{
	EXPECT(CU(cuLibraryLoadData)(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS);
	EXPECT(CU(cuLibraryGetKernel)(&kernel, library, "k"), CUDA_SUCCESS);
}

static void drop_library(void)
{
	EXPECT(CU(cuLibraryUnload)(library), CUDA_SUCCESS);
}

static void nothing(void)
{
}

static CUresult get_function(void)
{
	return CU(cuModuleGetFunction)((CUfunction *)&out, module, "k");
}

static CUresult get_global(void)
{
	return CU(cuModuleGetGlobal_v2)((CUdeviceptr *)&out, NULL, module, "g");
}

static CUresult get_global_v1(void)
{
	unsigned int size;

	return CU(cuModuleGetGlobal)(NULL, &size, module, "g");
}

static CUresult library_global(void)
{
	return CU(cuLibraryGetGlobal)((CUdeviceptr *)&out, NULL, library, "g");
}

static CUresult library_managed(void)
{
	return CU(cuLibraryGetManaged)((CUdeviceptr *)&out, NULL, library, "g");
}

static CUresult library_module(void)
{
	return CU(cuLibraryGetModule)((CUmodule *)&out, library);
}

static CUresult kernel_function(void)
{
	return CU(cuKernelGetFunction)((CUfunction *)&out, kernel);
}

static CUresult kernel_load(void)
{
	return CU(cuFuncLoad)((CUfunction)kernel);
}

static CUresult kernel_launch(void)
{
	return CU(cuLaunchKernel)((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static CUresult function_launch(void)
{
	return CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static CUresult load(void)
{
	return CU(cuModuleLoad)((CUmodule *)&out, file);
}

static CUresult load_data(void)
{
	return CU(cuModuleLoadData)((CUmodule *)&out, ptx);
}

static CUresult load_ex(void)
{
	return CU(cuModuleLoadDataEx)((CUmodule *)&out, ptx, 0, NULL, NULL);
}

static CUresult load_fat(void)
{
	return CU(cuModuleLoadFatBinary)((CUmodule *)&out, ptx);
}

static CUresult load_library(void)
{
	return CU(cuLibraryLoadData)((CUlibrary *)&out, ptx, NULL, NULL, 0, NULL, NULL, 0);
}

static CUresult load_library_file(void)
{
	return CU(cuLibraryLoadFromFile)((CUlibrary *)&out, file, NULL, NULL, 0, NULL, NULL, 0);
}

static void unload_module(void)
{
	EXPECT(CU(cuModuleUnload)((CUmodule)(uintptr_t)out), CUDA_SUCCESS);
}

static void unload_library(void)
{
	EXPECT(CU(cuLibraryUnload)((CUlibrary)(uintptr_t)out), CUDA_SUCCESS);
}

static const struct use {
	const char *name;
	void (*fresh)(void);
	CUresult (*call)(void);
	void (*drop)(void);
	uint64_t cost;
	CUresult good;
	bool again; // the next call is a first use again
} lazy[] = {
	{"cuModuleGetFunction", fresh_module, get_function, drop_module, UNIT, CUDA_SUCCESS, true},
	{"cuModuleGetGlobal_v2", fresh_module, get_global, drop_module, UNIT, CUDA_SUCCESS, false},
	{"cuModuleGetGlobal", fresh_module, get_global_v1, drop_module, UNIT, CUDA_SUCCESS, false},
	{"cuLibraryGetGlobal", fresh_library, library_global, drop_library, UNIT, CUDA_SUCCESS, false},
	{"cuLibraryGetManaged", fresh_library, library_managed, drop_library, UNIT, CUDA_ERROR_NOT_FOUND, true},
	{"cuLibraryGetModule", fresh_library, library_module, drop_library, UNIT, CUDA_SUCCESS, true},
	{"cuKernelGetFunction", fresh_library, kernel_function, drop_library, UNIT, CUDA_SUCCESS, true},
	{"cuFuncLoad", fresh_library, kernel_load, drop_library, UNIT, CUDA_SUCCESS, false},
	{"launch of a kernel", fresh_library, kernel_launch, drop_library, UNIT, CUDA_SUCCESS, false},
	{"launch of a function", fresh_function, function_launch, drop_module, UNIT, CUDA_SUCCESS, false},
	{"launch with local memory", fresh_deep, function_launch, drop_module, UNIT + 3072 * THREADS, CUDA_SUCCESS, false},
}, eager[] = {
	{"cuModuleLoad", nothing, load, unload_module, UNIT, CUDA_SUCCESS, true},
	{"cuModuleLoadData", nothing, load_data, unload_module, UNIT, CUDA_SUCCESS, true},
	{"cuModuleLoadDataEx", nothing, load_ex, unload_module, UNIT, CUDA_SUCCESS, true},
	{"cuModuleLoadFatBinary", nothing, load_fat, unload_module, UNIT, CUDA_SUCCESS, true},
	{"cuLibraryLoadData", nothing, load_library, unload_library, UNIT, CUDA_SUCCESS, true},
	{"cuLibraryLoadFromFile", nothing, load_library_file, unload_library, UNIT, CUDA_SUCCESS, true},
};

static void try(const struct use *u)
{
	uint64_t before;
	CUresult r;

	leave(16 * MIB);
	u->fresh();
	leave(u->cost - UNIT);
	out = mark;
	before = charged();
	r = u->call();
	CHECK(r == CUDA_ERROR_OUT_OF_MEMORY && out == mark, "%s without room: %d", u->name, r);
	CHECK(charged() == before, "%s refused: %lld more charged", u->name, (long long)(charged() - before));
	leave(u->cost);
	before = charged();
	r = u->call();
	CHECK(r == u->good, "%s with room: %d", u->name, r);
	CHECK(charged() - before == (u->good ? 0 : u->cost), "%s: %lld charged", u->name, (long long)(charged() - before));
	if (!u->again) {
		r = u->call();
		CHECK(r == CUDA_SUCCESS, "%s again: %d", u->name, r);
		CHECK(charged() - before == u->cost, "%s again: %lld charged", u->name, (long long)(charged() - before));
	}
	before = charged();
	u->drop();
	if (!u->again || u->fresh == nothing)
		CHECK(before - charged() >= UNIT, "%s: %lld given back", u->name, (long long)(before - charged()));
}

// A thousand modules are loaded, as a framework does, and five hundred functions of one
// are asked for: charged is one.
static void frugal(void)
{
	static CUmodule all[1000];
	uint64_t before;

	leave(8 * MIB);
	before = charged();
	for (int i = 0; i < 1000; i++)
		EXPECT(CU(cuModuleLoadData)(&all[i], ptx), CUDA_SUCCESS);
	for (int i = 0; i < 500; i++)
		EXPECT(CU(cuModuleGetFunction)(&function, all[7], "k"), CUDA_SUCCESS);
	CHECK(charged() - before == UNIT, "%lld charged", (long long)(charged() - before));
	for (int i = 0; i < 1000; i++)
		EXPECT(CU(cuModuleUnload)(all[i]), CUDA_SUCCESS);
	CHECK(charged() == before, "%lld charged afterwards", (long long)(charged() - before));
}

// ---- limits -------------------------------------------------------------------

static void limits(CUlimit which, uint64_t base, uint64_t step, uint64_t cost)
{
	uint64_t start = charged();
	size_t value = 0;

	EXPECT(CU(cuCtxGetLimit)(&value, which), CUDA_SUCCESS);
	CHECK(value == base, "limit %d is %zu by default", which, value);
	leave(cost - UNIT);
	start = charged();
	EXPECT(CU(cuCtxSetLimit)(which, base + step), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(CU(cuCtxGetLimit)(&value, which), CUDA_SUCCESS);
	CHECK(value == base && charged() == start, "limit %d refused: %zu, %lld charged", which, value,
	      (long long)(charged() - start));
	leave(cost);
	start = charged();
	EXPECT(CU(cuCtxSetLimit)(which, base + step), CUDA_SUCCESS);
	CHECK(charged() - start == cost, "limit %d: %lld charged", which, (long long)(charged() - start));
	EXPECT(CU(cuCtxSetLimit)(which, base + step), CUDA_SUCCESS);
	CHECK(charged() - start == cost, "limit %d again: %lld charged", which, (long long)(charged() - start));
	EXPECT(CU(cuCtxSetLimit)(which, base), CUDA_SUCCESS);
	CHECK(charged() == start, "limit %d lowered: %lld charged", which, (long long)(charged() - start));
	EXPECT(CU(cuCtxSetLimit)(which, base + step), CUDA_SUCCESS);
}

static void all_limits(void)
{
	uint64_t before;

	leave(1024 * MIB);
	EXPECT(CU(cuCtxCreate_v2)(&ctx, 0, 0), CUDA_SUCCESS);
	before = charged();
	limits(CU_LIMIT_PRINTF_FIFO_SIZE, MIB, 8 * MIB, 8 * MIB);
	limits(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB, 8 * MIB, 8 * MIB);
	limits(CU_LIMIT_STACK_SIZE, 1024, 1024, 1024 * THREADS);
	// No stack is that deep: the driver says so.
	EXPECT(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	EXPECT(CU(cuCtxSetLimit)((CUlimit)77, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
	CHECK(charged() <= limit, "over the limit");
	filler = 0; // it goes with the context
	EXPECT(CU(cuCtxDestroy_v2)(ctx), CUDA_SUCCESS);
	CHECK(charged() < before, "%lld charged after the context", (long long)(charged() - before));
}

int main(int argc, char **argv)
{
	bool at_once = argc > 2 && !strcmp(argv[2], "eager");
	const struct use *list = at_once ? eager : lazy;
	size_t n = at_once ? sizeof(eager) / sizeof(*eager) : sizeof(lazy) / sizeof(*lazy);
	FILE *f;

	file = argv[1];
	f = fopen(file, "w");
	fputs(ptx, f);
	fclose(f);
	EXPECT(CU(cuInit)(0), CUDA_SUCCESS);
	limit = page()->gpu[0].memory_limit;
	EXPECT(CU(cuDevicePrimaryCtxRetain)(&ctx, 0), CUDA_SUCCESS);
	EXPECT(CU(cuCtxSetCurrent)(ctx), CUDA_SUCCESS);
	for (size_t i = 0; i < n; i++)
		try(&list[i]);
	if (!at_once)
		frugal();
	EXPECT(CU(cuMemFree_v2)(filler), CUDA_SUCCESS);
	filler = 0;
	if (!at_once)
		all_limits();
	return harness_failures ? 1 : 0;
}
