// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "probe.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The driver's interface, as far as it is needed: plain C and stable since CUDA
// 11. A result other than 0 is an error.
typedef int cu_result;

struct kernel_node {
	void *function;
	unsigned int grid[3], block[3], shared_bytes;
	void **params, **extra;
};

static struct {
	cu_result (*init)(unsigned int flags);
	cu_result (*device_count)(int *ret_count);
	cu_result (*device_uuid)(char ret_uuid[16], int device);
	cu_result (*primary_retain)(void **ret_context, int device);
	cu_result (*primary_release)(int device);
	// From here on NULL where the driver has none.
	cu_result (*device_attribute)(int *ret_value, int attribute, int device);
	cu_result (*context_create)(void **ret_context, unsigned int flags, int device);
	cu_result (*context_destroy)(void *context);
	cu_result (*context_set)(void *context);
	cu_result (*limit_get)(size_t *ret_value, int limit);
	cu_result (*limit_set)(int limit, size_t value);
	cu_result (*synchronize)(void);
	cu_result (*alloc)(uint64_t *ret_pointer, size_t bytes);
	cu_result (*free)(uint64_t pointer);
	cu_result (*module_load)(void **ret_module, const void *image);
	cu_result (*module_unload)(void *module);
	cu_result (*module_function)(void **ret_function, void *module, const char *name);
	cu_result (*launch)(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			    unsigned int by, unsigned int bz, unsigned int shared_bytes, void *stream, void **params,
			    void **extra);
	cu_result (*graph_create)(void **ret_graph, unsigned int flags);
	cu_result (*graph_destroy)(void *graph);
	cu_result (*graph_add)(void **ret_node, void *graph, void *const *after, size_t n,
			       const struct kernel_node *params);
	cu_result (*instantiate)(void **ret_exec, void *graph, unsigned long long flags);
	cu_result (*instantiate_v2)(void **ret_exec, void *graph, void **ret_node, char *log, size_t n);
	cu_result (*exec_destroy)(void *exec);
	cu_result (*graph_launch)(void *exec, void *stream);
} cu;

#define LIMIT_STACK_SIZE 0
#define ATTRIBUTE_MULTIPROCESSORS 16
#define ATTRIBUTE_THREADS 39

// What the steps have made.
static struct {
	void *primary, *context, *graph, *exec, *function;
	void *modules[8];
	uint64_t pointers[128];
	size_t stack;
	int module_count, pointer_count;
} made;

// The driver compiles it: every one since CUDA 11 can, for every GPU.
static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry gs_probe()\n{\n\tret;\n}\n";

static const struct {
	const char *name;
	void *function;
	int needed;
} symbols[] = {
	{"cuInit", &cu.init, 1},
	{"cuDeviceGetCount", &cu.device_count, 1},
	{"cuDeviceGetUuid", &cu.device_uuid, 1},
	{"cuDevicePrimaryCtxRetain", &cu.primary_retain, 1},
	{"cuDevicePrimaryCtxRelease_v2", &cu.primary_release, 1},
	{"cuDeviceGetAttribute", &cu.device_attribute, 0},
	{"cuCtxCreate_v2", &cu.context_create, 0},
	{"cuCtxDestroy_v2", &cu.context_destroy, 0},
	{"cuCtxSetCurrent", &cu.context_set, 0},
	{"cuCtxGetLimit", &cu.limit_get, 0},
	{"cuCtxSetLimit", &cu.limit_set, 0},
	{"cuCtxSynchronize", &cu.synchronize, 0},
	{"cuMemAlloc_v2", &cu.alloc, 0},
	{"cuMemFree_v2", &cu.free, 0},
	{"cuModuleLoadData", &cu.module_load, 0},
	{"cuModuleUnload", &cu.module_unload, 0},
	{"cuModuleGetFunction", &cu.module_function, 0},
	{"cuLaunchKernel", &cu.launch, 0},
	{"cuGraphCreate", &cu.graph_create, 0},
	{"cuGraphDestroy", &cu.graph_destroy, 0},
	{"cuGraphAddKernelNode", &cu.graph_add, 0},
	{"cuGraphInstantiateWithFlags", &cu.instantiate, 0},
	{"cuGraphInstantiate_v2", &cu.instantiate_v2, 0},
	{"cuGraphExecDestroy", &cu.exec_destroy, 0},
	{"cuGraphLaunch", &cu.graph_launch, 0},
};

static int failed(const char *what, cu_result r, char *ret_error)
{
	snprintf(ret_error, GS_PROBE_ERROR, "%s: CUDA error %d", what, r);
	return -1;
}

static int lacks(const char *name, char *ret_error)
{
	snprintf(ret_error, GS_PROBE_ERROR, "the driver library has no %s", name);
	return -1;
}

int gs_probe_open(const char *path, char *ret_error)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cu_result r;

	if (lib == NULL) {
		snprintf(ret_error, GS_PROBE_ERROR, "%s", dlerror());
		return -1;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *f = dlsym(lib, symbols[i].name);

		if (f == NULL && symbols[i].needed)
			return lacks(symbols[i].name, ret_error);
		memcpy(symbols[i].function, &f, sizeof f);
	}
	r = cu.init(0);
	return r == 0 ? 0 : failed("cuInit", r, ret_error);
}

// Returns the driver's number of the device with that UUID, -1 if there is none.
static int find_device(const unsigned char uuid[16])
{
	char have[16];
	int n = 0;

	if (cu.device_count(&n) != 0)
		return -1;
	for (int i = 0; i < n; i++) {
		if (cu.device_uuid(have, i) == 0 && memcmp(have, uuid, sizeof have) == 0)
			return i;
	}
	return -1;
}

int gs_probe_hold(const unsigned char uuid[16], char *ret_error)
{
	int device = find_device(uuid);
	cu_result r;

	if (device < 0) {
		snprintf(ret_error, GS_PROBE_ERROR, "the driver has no such device");
		return -1;
	}
	r = cu.primary_retain(&made.primary, device);
	if (r != 0)
		return failed("make a context", r, ret_error);
	if (cu.context_set != NULL)
		cu.context_set(made.primary);
	return device;
}

int gs_probe_context(int device, char *ret_error)
{
	cu_result r;

	if (cu.context_create == NULL || cu.context_destroy == NULL || cu.context_set == NULL)
		return lacks("cuCtxCreate_v2", ret_error);
	r = cu.context_create(&made.context, 0, device);
	cu.context_set(made.primary);
	if (r == 0)
		return 0;
	made.context = NULL;
	return failed("cuCtxCreate", r, ret_error);
}

int gs_probe_memory(size_t bytes, char *ret_error)
{
	cu_result r;

	if (cu.alloc == NULL || cu.free == NULL)
		return lacks("cuMemAlloc_v2", ret_error);
	if (made.pointer_count == sizeof(made.pointers) / sizeof(*made.pointers)) {
		snprintf(ret_error, GS_PROBE_ERROR, "small allocations cost nothing");
		return -1;
	}
	r = cu.alloc(&made.pointers[made.pointer_count], bytes);
	if (r != 0)
		return failed("cuMemAlloc", r, ret_error);
	made.pointer_count++;
	return 0;
}

static int launch(char *ret_error)
{
	cu_result r = cu.launch(made.function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);

	if (r != 0)
		return failed("cuLaunchKernel", r, ret_error);
	r = cu.synchronize();
	return r == 0 ? 0 : failed("cuCtxSynchronize", r, ret_error);
}

int gs_probe_module(char *ret_error)
{
	void **module = &made.modules[made.module_count];
	cu_result r;

	if (cu.module_load == NULL || cu.module_unload == NULL || cu.module_function == NULL || cu.launch == NULL ||
	    cu.synchronize == NULL || made.module_count == sizeof(made.modules) / sizeof(*made.modules))
		return lacks("cuModuleLoadData", ret_error);
	r = cu.module_load(module, ptx);
	if (r != 0)
		return failed("cuModuleLoadData", r, ret_error);
	made.module_count++;
	r = cu.module_function(&made.function, *module, "gs_probe");
	if (r != 0) {
		made.function = NULL;
		return failed("cuModuleGetFunction", r, ret_error);
	}
	return launch(ret_error);
}

int gs_probe_stack(size_t more, char *ret_error)
{
	cu_result r;
	size_t base;

	if (cu.limit_get == NULL || cu.limit_set == NULL)
		return lacks("cuCtxSetLimit", ret_error);
	r = cu.limit_get(&base, LIMIT_STACK_SIZE);
	if (r != 0)
		return failed("cuCtxGetLimit", r, ret_error);
	r = cu.limit_set(LIMIT_STACK_SIZE, base + more);
	if (r != 0)
		return failed("cuCtxSetLimit", r, ret_error);
	made.stack = base;
	// A driver may wait for the next launch.
	return made.function == NULL ? 0 : launch(ret_error);
}

int gs_probe_graph(int nodes, char *ret_error)
{
	struct kernel_node params = {.function = made.function, .grid = {1, 1, 1}, .block = {1, 1, 1}};
	void *node;
	cu_result r;

	if (cu.graph_create == NULL || cu.graph_destroy == NULL || cu.graph_add == NULL || cu.exec_destroy == NULL ||
	    cu.graph_launch == NULL || (cu.instantiate == NULL && cu.instantiate_v2 == NULL))
		return lacks("cuGraphInstantiate", ret_error);
	if (made.function == NULL) {
		snprintf(ret_error, GS_PROBE_ERROR, "no kernel to make it of");
		return -1;
	}
	r = cu.graph_create(&made.graph, 0);
	if (r != 0)
		return failed("cuGraphCreate", r, ret_error);
	for (int i = 0; i < nodes; i++) {
		r = cu.graph_add(&node, made.graph, NULL, 0, &params);
		if (r != 0)
			return failed("cuGraphAddKernelNode", r, ret_error);
	}
	r = cu.instantiate != NULL ? cu.instantiate(&made.exec, made.graph, 0)
				   : cu.instantiate_v2(&made.exec, made.graph, NULL, NULL, 0);
	if (r != 0) {
		made.exec = NULL;
		return failed("cuGraphInstantiate", r, ret_error);
	}
	r = cu.graph_launch(made.exec, NULL);
	if (r != 0)
		return failed("cuGraphLaunch", r, ret_error);
	r = cu.synchronize();
	return r == 0 ? 0 : failed("cuCtxSynchronize", r, ret_error);
}

void gs_probe_drop(void)
{
	if (made.exec != NULL)
		cu.exec_destroy(made.exec);
	if (made.graph != NULL)
		cu.graph_destroy(made.graph);
	if (made.stack != 0)
		cu.limit_set(LIMIT_STACK_SIZE, made.stack);
	for (int i = 0; i < made.pointer_count; i++)
		cu.free(made.pointers[i]);
	if (made.context != NULL) {
		cu.context_destroy(made.context);
		cu.context_set(made.primary);
	}
	made.exec = made.graph = made.context = NULL;
	made.stack = 0;
	made.pointer_count = 0;
}

void gs_probe_release(int device)
{
	gs_probe_drop();
	for (int i = 0; i < made.module_count; i++)
		cu.module_unload(made.modules[i]);
	made.module_count = 0;
	made.function = NULL;
	cu.primary_release(device);
}

unsigned long gs_probe_threads(int device)
{
	int count = 0, threads = 0;

	if (cu.device_attribute == NULL || cu.device_attribute(&count, ATTRIBUTE_MULTIPROCESSORS, device) != 0 ||
	    cu.device_attribute(&threads, ATTRIBUTE_THREADS, device) != 0 || count < 0 || threads < 0)
		return 0;
	return (unsigned long)count * (unsigned long)threads;
}
