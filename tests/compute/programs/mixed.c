// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// mixed THREADS STREAMS KERNEL...: each thread launches the kernels in turn, each
// in the next of its streams, and waits for all of them after every hundred. With
// THREADS negative the last kernel is launched through the per-thread default
// stream. Runs until it is killed.

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cuda_abi.h"

#define MOST 16

static __typeof__(&cuInit) init;
static __typeof__(&cuDevicePrimaryCtxRetain) retain;
static __typeof__(&cuCtxSetCurrent) set_current;
static __typeof__(&cuModuleLoadData) load;
static __typeof__(&cuModuleGetFunction) get_function;
static __typeof__(&cuStreamCreate) stream_create;
static __typeof__(&cuStreamSynchronize) stream_sync;
static __typeof__(&cuLaunchKernel) launch, launch_ptsz;

static CUcontext context;
static CUfunction function[MOST];
static int streams, kernels, per_thread;

static void must(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return;
	fprintf(stderr, "mixed: %s: error %d\n", what, (int)r);
	_exit(1);
}

static void *symbol(void *lib, const char *name)
{
	void *p = dlsym(lib, name);

	if (!p) {
		fprintf(stderr, "mixed: %s\n", dlerror());
		_exit(1);
	}
	return p;
}

static void *run(void *arg)
{
	CUstream stream[MOST];

	(void)arg;
	must(set_current(context), "cuCtxSetCurrent");
	for (int i = 0; i < streams; i++)
		must(stream_create(&stream[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	for (unsigned int n = 0;; n++) {
		int k = (int)(n % (unsigned int)kernels);
		CUstream s = stream[n % (unsigned int)streams];

		if (per_thread && k == kernels - 1)
			must(launch_ptsz(function[k], 64, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel_ptsz");
		else
			must(launch(function[k], 64, 1, 1, 256, 1, 1, 0, s, NULL, NULL), "cuLaunchKernel");
		if (n % 100 == 99)
			for (int i = 0; i < streams; i++)
				must(stream_sync(stream[i]), "cuStreamSynchronize");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	CUmodule module;
	pthread_t id;
	int threads;

	if (!lib || argc < 4 || argc > 3 + MOST) {
		fprintf(stderr, "mixed: %s\n", lib ? "usage: mixed THREADS STREAMS KERNEL..." : dlerror());
		return 2;
	}
	threads = atoi(argv[1]);
	per_thread = threads < 0;
	threads = abs(threads);
	streams = atoi(argv[2]);
	kernels = argc - 3;
	if (streams < 1 || streams > MOST)
		return 2;
	*(void **)&init = symbol(lib, "cuInit");
	*(void **)&retain = symbol(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&set_current = symbol(lib, "cuCtxSetCurrent");
	*(void **)&load = symbol(lib, "cuModuleLoadData");
	*(void **)&get_function = symbol(lib, "cuModuleGetFunction");
	*(void **)&stream_create = symbol(lib, "cuStreamCreate");
	*(void **)&stream_sync = symbol(lib, "cuStreamSynchronize");
	*(void **)&launch = symbol(lib, "cuLaunchKernel");
	*(void **)&launch_ptsz = symbol(lib, "cuLaunchKernel_ptsz");
	must(init(0), "cuInit");
	must(retain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(set_current(context), "cuCtxSetCurrent");
	must(load(&module, "image"), "cuModuleLoadData");
	for (int i = 0; i < kernels; i++)
		must(get_function(&function[i], module, argv[3 + i]), "cuModuleGetFunction");
	for (int i = 0; i < threads; i++)
		if (pthread_create(&id, NULL, run, NULL) != 0)
			return 1;
	printf("running\n");
	fflush(stdout);
	for (;;)
		pause();
}
