// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// NVML's lists of the processes on a GPU: the container's own, from its ledger.

#include <errno.h>
#include <unistd.h>

#include "nvml_bodies.h"
#include "nvml_own.h"
#include "slots.h"

#define NO_INSTANCE 0xffffffffU
#define MODE_COMPUTE 0U
#define MODE_LAST 2U

// Most slots of one list whose holder is looked for: the cost grows with the
// square of the processes.
#define LOCK_TESTS 256

static void put_v1(void *list, unsigned int i, unsigned int pid, uint64_t bytes)
{
	((nvmlProcessInfo_v1_t *)list)[i] = (nvmlProcessInfo_v1_t){.pid = pid, .usedGpuMemory = bytes};
}

static void put(void *list, unsigned int i, unsigned int pid, uint64_t bytes)
{
	((nvmlProcessInfo_t *)list)[i] = (nvmlProcessInfo_t){
		.pid = pid,
		.usedGpuMemory = bytes,
		.gpuInstanceId = NO_INSTANCE,
		.computeInstanceId = NO_INSTANCE,
	};
}

static void put_detail(void *list, unsigned int i, unsigned int pid, uint64_t bytes)
{
	((nvmlProcessDetail_v1_t *)list)[i] = (nvmlProcessDetail_v1_t){
		.pid = pid,
		.usedGpuMemory = bytes,
		.gpuInstanceId = NO_INSTANCE,
		.computeInstanceId = NO_INSTANCE,
	};
}

// list fills in the container's processes on a GPU; into is NULL when the caller
// only asks for the number.
static nvmlReturn_t list(nvmlDevice_t dev, unsigned int *count, void *into,
			 void (*put_one)(void *, unsigned int, unsigned int, uint64_t))
{
	unsigned int room, found = 0, tests = LOCK_TESTS;
	unsigned gpu;
	nvmlReturn_t r;
	int fd, saved = errno;
	uint32_t done;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = gs_nvml_find_gpu(dev, &gpu);
	if (r != NVML_SUCCESS)
		return r;
	gs_slots_sweep(GS_SWEEP_INTERVAL);
	done = gs_settle_done(gpu);
	fd = gs_attach_open_ledger();
	room = into ? *count : 0;
	for (uint32_t slot = 0; slot < gs_slots_high(); slot++) {
		const struct gs_slot *s = gs_slot_at(slot);
		uint64_t bytes = atomic_load_explicit(gs_slot_used(gpu, slot), memory_order_relaxed);

		bytes += gs_slot_guessed(gpu, slot, done);
		if (!bytes || s->state != GS_SLOT_USED || s->died_ns)
			continue;
		if (fd >= 0 && tests && tests-- && !gs_slot_held(fd, slot))
			continue;
		if (found < room)
			put_one(into, found, s->pid, bytes);
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
	return list(dev, count, ret_infos, put_v1);
}

nvmlReturn_t gs_nv_compute_processes(GS_FN(nvmlDeviceGetComputeRunningProcesses_v3) real, nvmlDevice_t dev,
				     unsigned int *count, nvmlProcessInfo_t *ret_infos)
{
	(void)real;
	return list(dev, count, ret_infos, put);
}

// none answers for the kinds of process that a container cannot have: what the
// driver would list are other tenants'.
static nvmlReturn_t none(nvmlDevice_t dev, unsigned int *count)
{
	unsigned gpu;
	nvmlReturn_t r;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = gs_nvml_find_gpu(dev, &gpu);
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

nvmlReturn_t gs_nv_process_details(GS_FN(nvmlDeviceGetRunningProcessDetailList) real, nvmlDevice_t dev,
				   nvmlProcessDetailList_t *list_and_count)
{
	(void)real;
	if (!list_and_count || list_and_count->mode > MODE_LAST)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (list_and_count->version != GS_NVML_STRUCT_VERSION(nvmlProcessDetailList_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (list_and_count->mode != MODE_COMPUTE)
		return none(dev, &list_and_count->numProcArrayEntries);
	return list(dev, &list_and_count->numProcArrayEntries, list_and_count->procArray, put_detail);
}

bool gs_nvml_own_pid(int ledger_fd, unsigned int pid)
{
	for (uint32_t slot = 0; pid && slot < gs_slots_high(); slot++) {
		const struct gs_slot *s = gs_slot_at(slot);

		if (s->pid == pid && s->state == GS_SLOT_USED && !s->died_ns &&
		    (ledger_fd < 0 || gs_slot_held(ledger_fd, slot)))
			return true;
	}
	return false;
}

nvmlReturn_t gs_nvml_check_pid(unsigned int pid)
{
	int fd, saved = errno;
	bool own;

	if (gs_attach(false) < 0)
		return NVML_ERROR_NO_PERMISSION;
	fd = gs_attach_open_ledger();
	own = gs_nvml_own_pid(fd, pid);
	if (fd >= 0)
		close(fd);
	errno = saved;
	return own ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
