// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#include "probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// The driver's interface, as far as it is needed: plain C and stable since CUDA
// 11. A result other than 0 is an error.
typedef int cu_result;

static struct {
	cu_result (*init)(unsigned int flags);
	cu_result (*device_count)(int *ret_count);
	cu_result (*device_uuid)(char ret_uuid[16], int device);
	cu_result (*primary_retain)(void **ret_context, int device);
	cu_result (*primary_release)(int device);
} cu;

static int gs_probe_symbol(void *lib, const char *name, void *ret_function, char *ret_error)
{
	void *f = dlsym(lib, name);

	if (f == NULL) {
		snprintf(ret_error, GS_PROBE_ERROR, "the driver library has no %s", name);
		return -1;
	}
	memcpy(ret_function, &f, sizeof f);
	return 0;
}

int gs_probe_open(const char *path, char *ret_error)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	cu_result r;

	if (lib == NULL) {
		snprintf(ret_error, GS_PROBE_ERROR, "%s", dlerror());
		return -1;
	}
	if (gs_probe_symbol(lib, "cuInit", &cu.init, ret_error) != 0 ||
	    gs_probe_symbol(lib, "cuDeviceGetCount", &cu.device_count, ret_error) != 0 ||
	    gs_probe_symbol(lib, "cuDeviceGetUuid", &cu.device_uuid, ret_error) != 0 ||
	    gs_probe_symbol(lib, "cuDevicePrimaryCtxRetain", &cu.primary_retain, ret_error) != 0 ||
	    gs_probe_symbol(lib, "cuDevicePrimaryCtxRelease_v2", &cu.primary_release, ret_error) != 0)
		return -1;
	r = cu.init(0);
	if (r != 0) {
		snprintf(ret_error, GS_PROBE_ERROR, "cuInit: CUDA error %d", r);
		return -1;
	}
	return 0;
}

// Returns the driver's number of the device with that UUID, -1 if there is none.
static int gs_probe_device(const unsigned char uuid[16])
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
	void *context;
	int device = gs_probe_device(uuid);
	cu_result r;

	if (device < 0) {
		snprintf(ret_error, GS_PROBE_ERROR, "the driver has no such device");
		return -1;
	}
	r = cu.primary_retain(&context, device);
	if (r != 0) {
		snprintf(ret_error, GS_PROBE_ERROR, "make a context: CUDA error %d", r);
		return -1;
	}
	return device;
}

void gs_probe_release(int device)
{
	cu.primary_release(device);
}
