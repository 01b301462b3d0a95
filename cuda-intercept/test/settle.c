// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Does what it is told on standard input, one answer a line, to make the driver take
// memory announced and unannounced:
//
//	ctx | endctx       makes a context, destroys the newest; the code
//	mod | unmod        loads a module and launches its kernel, unloads the newest
//	alloc N | free     linear memory
//	stack N | heap N   limits of the context
//	stream             makes a stream
//	burst N            N modules, each launched: those granted, refused, failed
//	random N SEED      N of the above, then gives all back; how many went wrong

#include "harness.h"

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n";

#define MOST 512

static CUcontext contexts[MOST];
static CUmodule modules[MOST];
static CUdeviceptr pointers[MOST];
static int n_contexts, n_modules, n_pointers;

static CUresult make_context(void)
{
	CUresult r = CU(cuCtxCreate_v2)(&contexts[n_contexts], 0, 0);

	n_contexts += r == CUDA_SUCCESS;
	return r;
}

static CUresult end_context(void)
{
	return CU(cuCtxDestroy_v2)(contexts[--n_contexts]);
}

static CUresult add_module(void)
{
	CUfunction f;
	CUmodule m;
	CUresult r = CU(cuModuleLoadData)(&m, ptx);

	if (r != CUDA_SUCCESS)
		return r;
	r = CU(cuModuleGetFunction)(&f, m, "k") ?: CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	if (r == CUDA_SUCCESS && n_modules < MOST)
		modules[n_modules++] = m;
	else
		CU(cuModuleUnload)(m);
	return r;
}

static CUresult unload(void)
{
	return n_modules ? CU(cuModuleUnload)(modules[--n_modules]) : CUDA_SUCCESS;
}

static CUresult take(size_t n)
{
	CUresult r = n_pointers < MOST ? CU(cuMemAlloc_v2)(&pointers[n_pointers], n) : CUDA_SUCCESS;

	n_pointers += r == CUDA_SUCCESS && n_pointers < MOST;
	return r;
}

static CUresult give(void)
{
	return n_pointers ? CU(cuMemFree_v2)(pointers[--n_pointers]) : CUDA_SUCCESS;
}

static void burst(int n)
{
	int granted = 0, refused = 0, failed = 0;

	for (int i = 0; i < n; i++) {
		CUresult r = add_module();

		granted += r == CUDA_SUCCESS;
		refused += r == CUDA_ERROR_OUT_OF_MEMORY;
		failed += r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY;
	}
	printf("%d %d %d\n", granted, refused, failed);
}

static void random_steps(int n, unsigned int seed)
{
	int wrong = 0;

	for (int i = 0; i < n; i++) {
		unsigned int what = (unsigned int)rand_r(&seed) % 100;
		CUresult r;

		if (what < 30)
			r = add_module();
		else if (what < 58)
			r = unload();
		else if (what < 75)
			r = take(1 + (unsigned int)rand_r(&seed) % (8 * MIB));
		else if (what < 92)
			r = give();
		else if (what < 96)
			r = CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1024 + 512 * ((unsigned int)rand_r(&seed) % 3));
		else
			r = CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, (8 + (unsigned int)rand_r(&seed) % 64) * MIB);
		wrong += r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY;
	}
	while (n_modules)
		wrong += unload() != CUDA_SUCCESS;
	while (n_pointers)
		wrong += give() != CUDA_SUCCESS;
	wrong += CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1024) != CUDA_SUCCESS;
	wrong += CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 8 * MIB) != CUDA_SUCCESS;
	// A lowered heap goes with the next code that runs; others may be at the limit.
	for (int i = 0; i < 10000 && !n_modules; i++)
		if (add_module() != CUDA_SUCCESS)
			usleep(1000);
	wrong += !n_modules;
	unload();
	printf("%d\n", wrong);
}

int main(void)
{
	char line[256], what[16];
	unsigned long long n, m;
	CUstream stream;

	printf("%d\n", CU(cuInit)(0));
	while (fgets(line, sizeof(line), stdin)) {
		CUresult r = CUDA_ERROR_UNKNOWN;

		n = m = 0;
		if (sscanf(line, "%15s %llu %llu", what, &n, &m) < 1)
			continue;
		if (!strcmp(what, "burst")) {
			burst((int)n);
			continue;
		}
		if (!strcmp(what, "random")) {
			random_steps((int)n, (unsigned int)m);
			continue;
		}
		if (!strcmp(what, "ctx"))
			r = make_context();
		else if (!strcmp(what, "endctx"))
			r = end_context();
		else if (!strcmp(what, "mod"))
			r = add_module();
		else if (!strcmp(what, "unmod"))
			r = unload();
		else if (!strcmp(what, "alloc"))
			r = take(n);
		else if (!strcmp(what, "free"))
			r = give();
		else if (!strcmp(what, "stack"))
			r = CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, n);
		else if (!strcmp(what, "heap"))
			r = CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, n);
		else if (!strcmp(what, "stream"))
			r = CU(cuStreamCreate)(&stream, 0);
		printf("%d\n", r);
	}
	return 0;
}
