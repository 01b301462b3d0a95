// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// NVML's view of the container's slice: its limit is the card's memory, its
// processes are the ones on it.

#include <errno.h>
#include <unistd.h>

#include "attach.h"
#include "ledger.h"
#include "nvml_bodies.h"
#include "nvml_depth.h"
#include "nvml_hooks.h"
#include "slots.h"

#define NO_INSTANCE 0xffffffffU

// Most slots of one list whose holder is looked for: the cost grows with the
// square of the processes.
#define LOCK_TESTS 256

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

// parse_uuid reads "GPU-" or "MIG-" and 32 hexadecimal digits among hyphens.
static bool parse_uuid(const char *text, unsigned char ret_uuid[16])
{
	int digits = 0;

	for (int i = 0; i < 4; i++)
		if (!*text++)
			return false;
	for (; *text && digits < 32; text++) {
		int d = hex(*text);

		if (*text == '-')
			continue;
		if (d < 0)
			return false;
		ret_uuid[digits / 2] = (unsigned char)(digits % 2 ? ret_uuid[digits / 2] << 4 | d : d);
		digits++;
	}
	return digits == 32 && !*text;
}

// find_gpu finds a device in the limits page. A device that the container does
// not hold, or a container without a page, has nothing to be shown.
static nvmlReturn_t find_gpu(nvmlDevice_t dev, unsigned *ret_gpu)
{
	unsigned char uuid[16];
	char text[96];
	nvmlReturn_t r;
	int gpu;

	if (!gs_nvml_real.nvmlDeviceGetUUID)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	r = GS_NVML_INSIDE(gs_nvml_real.nvmlDeviceGetUUID(dev, text, sizeof(text)));
	if (r != NVML_SUCCESS)
		return r;
	if (gs_attach(false) < 0 || !parse_uuid(text, uuid))
		return NVML_ERROR_NO_PERMISSION;
	gpu = gs_gpu_find(uuid);
	if (gpu < 0)
		return NVML_ERROR_NO_PERMISSION;
	*ret_gpu = (unsigned)gpu;
	return NVML_SUCCESS;
}

struct memory {
	uint64_t total, free, used;
};

// view replaces the driver's figures by the container's.
static nvmlReturn_t view(nvmlDevice_t dev, struct memory *m)
{
	uint64_t left;
	unsigned gpu;
	nvmlReturn_t r = find_gpu(dev, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	m->total = gs_memory_limit(gpu);
	m->used = gs_ledger_living(gpu);
	m->used = m->used < m->total ? m->used : m->total;
	left = m->total - m->used;
	m->free = left < m->free ? left : m->free;
	return NVML_SUCCESS;
}

nvmlReturn_t gs_nv_memory_info(GS_FN(nvmlDeviceGetMemoryInfo) real, nvmlDevice_t dev, nvmlMemory_t *ret_info)
{
	nvmlMemory_t info;
	struct memory m;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_info ? &info : NULL));

	if (r != NVML_SUCCESS)
		return r;
	m.free = info.free;
	r = view(dev, &m);
	if (r == NVML_SUCCESS)
		*ret_info = (nvmlMemory_t){.total = m.total, .free = m.free, .used = m.used};
	return r;
}

nvmlReturn_t gs_nv_memory_info_v2(GS_FN(nvmlDeviceGetMemoryInfo_v2) real, nvmlDevice_t dev,
				  nvmlMemory_v2_t *ret_info)
{
	nvmlMemory_v2_t info;
	struct memory m;
	nvmlReturn_t r;

	if (ret_info)
		info.version = ret_info->version;
	r = GS_NVML_INSIDE(real(dev, ret_info ? &info : NULL));
	if (r != NVML_SUCCESS)
		return r;
	m.free = info.free;
	r = view(dev, &m);
	if (r != NVML_SUCCESS)
		return r;
	ret_info->total = m.total;
	ret_info->reserved = 0;
	ret_info->free = m.free;
	ret_info->used = m.used;
	return r;
}

// ---- processes --------------------------------------------------------------

// list fills in the container's processes on a GPU; exactly one of v1 and v2 is
// the caller's array, and both are NULL when it only asks for the number.
static nvmlReturn_t list(nvmlDevice_t dev, unsigned int *count, nvmlProcessInfo_v1_t *v1, nvmlProcessInfo_t *v2)
{
	unsigned int room, found = 0, tests = LOCK_TESTS;
	unsigned gpu;
	nvmlReturn_t r;
	int fd, saved = errno;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = find_gpu(dev, &gpu);
	if (r != NVML_SUCCESS)
		return r;
	gs_slots_sweep();
	fd = gs_attach_open_ledger();
	room = v1 || v2 ? *count : 0;
	for (uint32_t slot = 0; slot < gs_slots_high(); slot++) {
		const struct gs_slot *s = gs_slot_at(slot);
		uint64_t bytes = atomic_load_explicit(gs_slot_used(gpu, slot), memory_order_relaxed);

		if (!bytes || s->state != GS_SLOT_USED || s->died_ns)
			continue;
		if (fd >= 0 && tests && tests-- && !gs_slot_held(fd, slot))
			continue;
		if (found < room && v1)
			v1[found] = (nvmlProcessInfo_v1_t){.pid = s->pid, .usedGpuMemory = bytes};
		if (found < room && v2)
			v2[found] = (nvmlProcessInfo_t){
				.pid = s->pid,
				.usedGpuMemory = bytes,
				.gpuInstanceId = NO_INSTANCE,
				.computeInstanceId = NO_INSTANCE,
			};
		found++;
	}
	if (fd >= 0)
		close(fd);
	errno = saved;
	*count = found;
	return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t gs_nv_compute_processes_v1(GS_FN(nvmlDeviceGetComputeRunningProcesses) real, nvmlDevice_t dev,
					unsigned int *count, nvmlProcessInfo_v1_t *ret_infos)
{
	(void)real;
	return list(dev, count, ret_infos, NULL);
}

nvmlReturn_t gs_nv_compute_processes(GS_FN(nvmlDeviceGetComputeRunningProcesses_v3) real, nvmlDevice_t dev,
				     unsigned int *count, nvmlProcessInfo_t *ret_infos)
{
	(void)real;
	return list(dev, count, NULL, ret_infos);
}

// none answers for the kinds of process that a container cannot have: what the
// driver would list are other tenants'.
static nvmlReturn_t none(nvmlDevice_t dev, unsigned int *count)
{
	unsigned gpu;
	nvmlReturn_t r;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = find_gpu(dev, &gpu);
	if (r == NVML_SUCCESS)
		*count = 0;
	return r;
}

nvmlReturn_t gs_nv_other_processes_v1(GS_FN(nvmlDeviceGetGraphicsRunningProcesses) real, nvmlDevice_t dev,
				      unsigned int *count, nvmlProcessInfo_v1_t *ret_infos)
{
	(void)real;
	(void)ret_infos;
	return none(dev, count);
}

nvmlReturn_t gs_nv_other_processes(GS_FN(nvmlDeviceGetGraphicsRunningProcesses_v3) real, nvmlDevice_t dev,
				   unsigned int *count, nvmlProcessInfo_t *ret_infos)
{
	(void)real;
	(void)ret_infos;
	return none(dev, count);
}
