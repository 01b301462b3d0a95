// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What NVML tells of single processes, by their numbers: of the driver's answer
// the program gets what is of the container's own processes.

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach.h"
#include "nvml_bodies.h"
#include "nvml_depth.h"
#include "nvml_hooks.h"
#include "nvml_own.h"

// Elements that may come up between two questions.
#define SPARE 16U
#define MOST (1U << 20)
#define TRIES 4

// question is how the driver is asked for a list.
struct question {
	// ask asks for at most *n elements, none if list is NULL, and sets their number.
	nvmlReturn_t (*ask)(const struct question *q, unsigned int *n, void *list);
	void (*real)(void);
	nvmlDevice_t dev;
	unsigned long long since;
	unsigned int version;
	size_t size, pid_at; // of an element, and of the process's number in it
	nvmlReturn_t nothing; // the answer if there is no element
};

// keep moves the own elements to the front and returns their number.
static unsigned int keep(const struct question *q, char *list, unsigned int n)
{
	unsigned int kept = 0;
	int fd = gs_attach_open_ledger();

	for (unsigned int i = 0; i < n; i++) {
		char *element = list + i * q->size;
		unsigned int pid;

		memcpy(&pid, element + q->pid_at, sizeof(pid));
		if (gs_nvml_own_pid(fd, pid))
			memmove(list + kept++ * q->size, element, q->size);
	}
	if (fd >= 0)
		close(fd);
	return kept;
}

// all asks the driver for its whole list and maps memory for it.
static nvmlReturn_t all(const struct question *q, unsigned int *ret_n, char **list, size_t *mapped)
{
	unsigned int room = 0, n = 0;
	nvmlReturn_t r = NVML_ERROR_UNKNOWN;

	for (int i = 0; i < TRIES; i++) {
		n = room;
		r = GS_NVML_INSIDE(q->ask(q, &n, *list));
		if (r != NVML_SUCCESS && r != NVML_ERROR_INSUFFICIENT_SIZE)
			return r;
		if (r == NVML_SUCCESS && n <= room) {
			*ret_n = n;
			return r;
		}
		if (*list)
			munmap(*list, *mapped);
		*list = NULL;
		if (n > MOST)
			return NVML_ERROR_MEMORY;
		room = n + SPARE;
		*mapped = room * q->size;
		*list = mmap(NULL, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (*list == MAP_FAILED) {
			*list = NULL;
			return NVML_ERROR_MEMORY;
		}
	}
	return NVML_ERROR_INSUFFICIENT_SIZE;
}

// own answers a question: *count is the room in ret_list and then the number of the
// container's own elements, of which as many are there as there is room for.
static nvmlReturn_t own(const struct question *q, unsigned int *count, void *ret_list)
{
	unsigned int n, found, room;
	size_t mapped = 0;
	char *list = NULL;
	unsigned gpu;
	int saved = errno;
	nvmlReturn_t r;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = gs_nvml_find_gpu(q->dev, &gpu);
	if (r == NVML_SUCCESS)
		r = all(q, &n, &list, &mapped);
	if (r == NVML_SUCCESS) {
		found = keep(q, list, n);
		room = ret_list ? *count : 0;
		*count = found;
		if (found && room)
			memcpy(ret_list, list, (found < room ? found : room) * q->size);
		r = found > room ? NVML_ERROR_INSUFFICIENT_SIZE : found ? NVML_SUCCESS : q->nothing;
	}
	if (list)
		munmap(list, mapped);
	errno = saved;
	return r;
}

#define REAL(q, symbol) ((__typeof__(symbol) *)(q)->real)
#define FUNCTION(f) ((void (*)(void))(f))

// ---- utilisation ------------------------------------------------------------

static nvmlReturn_t ask_samples(const struct question *q, unsigned int *n, void *list)
{
	return REAL(q, nvmlDeviceGetProcessUtilization)(q->dev, list, n, q->since);
}

nvmlReturn_t gs_nv_process_utilization(GS_FN(nvmlDeviceGetProcessUtilization) real, nvmlDevice_t dev,
				       nvmlProcessUtilizationSample_t *ret_list, unsigned int *count,
				       unsigned long long since)
{
	struct question q = {ask_samples, FUNCTION(real), dev, since, 0, sizeof(*ret_list),
			     offsetof(nvmlProcessUtilizationSample_t, pid), NVML_ERROR_NOT_FOUND};

	return own(&q, count, ret_list);
}

static nvmlReturn_t ask_infos(const struct question *q, unsigned int *n, void *list)
{
	nvmlProcessesUtilizationInfo_t info = {q->version, *n, q->since, list};
	nvmlReturn_t r = REAL(q, nvmlDeviceGetProcessesUtilizationInfo)(q->dev, &info);

	*n = info.processSamplesCount;
	return r;
}

nvmlReturn_t gs_nv_processes_utilization(GS_FN(nvmlDeviceGetProcessesUtilizationInfo) real, nvmlDevice_t dev,
					 nvmlProcessesUtilizationInfo_t *info)
{
	struct question q = {ask_infos, FUNCTION(real), dev, 0, 0, sizeof(nvmlProcessUtilizationInfo_v1_t),
			     offsetof(nvmlProcessUtilizationInfo_v1_t, pid), NVML_ERROR_NOT_FOUND};

	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	// Of another version the elements' size is not known.
	if (info->version != GS_NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	q.since = info->lastSeenTimeStamp;
	q.version = info->version;
	return own(&q, &info->processSamplesCount, info->procUtilArray);
}

// ---- accounting -------------------------------------------------------------

static nvmlReturn_t ask_accounted(const struct question *q, unsigned int *n, void *list)
{
	return REAL(q, nvmlDeviceGetAccountingPids)(q->dev, n, list);
}

nvmlReturn_t gs_nv_accounting_pids(GS_FN(nvmlDeviceGetAccountingPids) real, nvmlDevice_t dev, unsigned int *count,
				   unsigned int *ret_pids)
{
	struct question q = {ask_accounted, FUNCTION(real), dev, 0, 0, sizeof(*ret_pids), 0, NVML_SUCCESS};

	return own(&q, count, ret_pids);
}

// check refuses what is asked of other GPUs or of other processes.
static nvmlReturn_t check(nvmlDevice_t dev, unsigned int pid)
{
	unsigned gpu;
	nvmlReturn_t r = gs_nvml_find_gpu(dev, &gpu);

	return r == NVML_SUCCESS ? gs_nvml_check_pid(pid) : r;
}

nvmlReturn_t gs_nv_accounting_stats(GS_FN(nvmlDeviceGetAccountingStats) real, nvmlDevice_t dev, unsigned int pid,
				    nvmlAccountingStats_t *ret_stats)
{
	nvmlReturn_t r = check(dev, pid);

	return r == NVML_SUCCESS ? GS_NVML_INSIDE(real(dev, pid, ret_stats)) : r;
}

nvmlReturn_t gs_nv_accounting_stats_v2(GS_FN(nvmlDeviceGetAccountingStats_v2) real, nvmlDevice_t dev,
				       nvmlAccountingStats_v2_t *stats)
{
	nvmlReturn_t r = stats ? check(dev, stats->pid) : NVML_ERROR_INVALID_ARGUMENT;

	return r == NVML_SUCCESS ? GS_NVML_INSIDE(real(dev, stats)) : r;
}

nvmlReturn_t gs_nv_process_name(GS_FN(nvmlSystemGetProcessName) real, unsigned int pid, char *ret_name,
				unsigned int size)
{
	nvmlReturn_t r = gs_nvml_check_pid(pid);

	return r == NVML_SUCCESS ? GS_NVML_INSIDE(real(pid, ret_name, size)) : r;
}

// ---- video ------------------------------------------------------------------

#define SESSIONS 64U // of which averages are taken

static nvmlReturn_t ask_encoders(const struct question *q, unsigned int *n, void *list)
{
	return REAL(q, nvmlDeviceGetEncoderSessions)(q->dev, n, list);
}

nvmlReturn_t gs_nv_encoder_sessions(GS_FN(nvmlDeviceGetEncoderSessions) real, nvmlDevice_t dev, unsigned int *count,
				    nvmlEncoderSessionInfo_t *ret_list)
{
	struct question q = {ask_encoders, FUNCTION(real), dev, 0, 0, sizeof(*ret_list),
			     offsetof(nvmlEncoderSessionInfo_t, pid), NVML_SUCCESS};

	return own(&q, count, ret_list);
}

static nvmlReturn_t ask_captures(const struct question *q, unsigned int *n, void *list)
{
	return REAL(q, nvmlDeviceGetFBCSessions)(q->dev, n, list);
}

nvmlReturn_t gs_nv_capture_sessions(GS_FN(nvmlDeviceGetFBCSessions) real, nvmlDevice_t dev, unsigned int *count,
				    nvmlFBCSessionInfo_t *ret_list)
{
	struct question q = {ask_captures, FUNCTION(real), dev, 0, 0, sizeof(*ret_list),
			     offsetof(nvmlFBCSessionInfo_t, pid), NVML_SUCCESS};

	return own(&q, count, ret_list);
}

// means averages two figures of the elements that are in the list.
static void means(const char *list, size_t size, unsigned int n, size_t fps_at, size_t latency_at,
		  unsigned int *ret_fps, unsigned int *ret_latency)
{
	uint64_t fps = 0, latency = 0;
	unsigned int used = n < SESSIONS ? n : SESSIONS;

	for (unsigned int i = 0; i < used; i++, list += size) {
		fps += *(const unsigned int *)(const void *)(list + fps_at);
		latency += *(const unsigned int *)(const void *)(list + latency_at);
	}
	*ret_fps = (unsigned int)(used ? fps / used : 0);
	*ret_latency = (unsigned int)(used ? latency / used : 0);
}

// The driver's sums are of all tenants' sessions: these are of the own ones.
nvmlReturn_t gs_nv_encoder_stats(GS_FN(nvmlDeviceGetEncoderStats) real, nvmlDevice_t dev, unsigned int *ret_count,
				 unsigned int *ret_fps, unsigned int *ret_latency)
{
	nvmlEncoderSessionInfo_t list[SESSIONS];
	unsigned int count = SESSIONS, all_count, fps, latency;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_count ? &all_count : NULL, ret_fps ? &fps : NULL,
					     ret_latency ? &latency : NULL));

	if (r != NVML_SUCCESS)
		return r;
	if (!gs_nvml_real.nvmlDeviceGetEncoderSessions)
		return NVML_ERROR_NOT_SUPPORTED;
	r = gs_nv_encoder_sessions(gs_nvml_real.nvmlDeviceGetEncoderSessions, dev, &count, list);
	if (r != NVML_SUCCESS && r != NVML_ERROR_INSUFFICIENT_SIZE)
		return r;
	means((const char *)list, sizeof(*list), count, offsetof(nvmlEncoderSessionInfo_t, averageFps),
	      offsetof(nvmlEncoderSessionInfo_t, averageLatency), ret_fps, ret_latency);
	*ret_count = count;
	return NVML_SUCCESS;
}

nvmlReturn_t gs_nv_capture_stats(GS_FN(nvmlDeviceGetFBCStats) real, nvmlDevice_t dev, nvmlFBCStats_t *ret_stats)
{
	nvmlFBCSessionInfo_t list[SESSIONS];
	nvmlFBCStats_t stats;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_stats ? &stats : NULL));

	if (r != NVML_SUCCESS)
		return r;
	if (!gs_nvml_real.nvmlDeviceGetFBCSessions)
		return NVML_ERROR_NOT_SUPPORTED;
	stats.sessionsCount = SESSIONS;
	r = gs_nv_capture_sessions(gs_nvml_real.nvmlDeviceGetFBCSessions, dev, &stats.sessionsCount, list);
	if (r != NVML_SUCCESS && r != NVML_ERROR_INSUFFICIENT_SIZE)
		return r;
	means((const char *)list, sizeof(*list), stats.sessionsCount, offsetof(nvmlFBCSessionInfo_t, averageFPS),
	      offsetof(nvmlFBCSessionInfo_t, averageLatency), &stats.averageFPS, &stats.averageLatency);
	*ret_stats = stats;
	return NVML_SUCCESS;
}
