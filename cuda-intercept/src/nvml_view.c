// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// NVML's view of the container's slice: its limit is the card's memory.

#include "attach.h"
#include "ledger.h"
#include "nvml_bodies.h"
#include "nvml_depth.h"
#include "nvml_hooks.h"
#include "nvml_own.h"

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

nvmlReturn_t gs_nvml_find_gpu(nvmlDevice_t dev, unsigned *ret_gpu)
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

// The driver keeps less than one part in so many of a card for itself.
#define KEPT_PART 8

struct memory {
	uint64_t total, free, used;
};

// usable is what programs can have of a card, which the driver's total exceeds by
// what it keeps. It is asked for only where the limit is that close.
static uint64_t usable(nvmlDevice_t dev, uint64_t total, uint64_t limit)
{
	nvmlMemory_v2_t info = {.version = GS_NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};

	if (limit <= total - total / KEPT_PART || !gs_nvml_real.nvmlDeviceGetMemoryInfo_v2 ||
	    GS_NVML_INSIDE(gs_nvml_real.nvmlDeviceGetMemoryInfo_v2(dev, &info)) != NVML_SUCCESS ||
	    info.reserved > total)
		return total;
	return total - info.reserved;
}

// view replaces the driver's figures by the container's. What others have taken of
// a card that cannot serve everybody's limit counts as used: no more is free than
// can be had, and used and free make up the total.
static nvmlReturn_t view(nvmlDevice_t dev, struct memory *m)
{
	uint64_t limit, used, left;
	unsigned gpu;
	nvmlReturn_t r = gs_nvml_find_gpu(dev, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	limit = gs_memory_limit(gpu);
	m->total = usable(dev, m->total, limit);
	m->total = limit < m->total ? limit : m->total;
	used = gs_ledger_living(gpu);
	left = used < m->total ? m->total - used : 0;
	m->free = left < m->free ? left : m->free;
	m->used = m->total - m->free;
	return NVML_SUCCESS;
}

nvmlReturn_t gs_nv_memory_info(GS_FN(nvmlDeviceGetMemoryInfo) real, nvmlDevice_t dev, nvmlMemory_t *ret_info)
{
	nvmlMemory_t info;
	struct memory m;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_info ? &info : NULL));

	if (r != NVML_SUCCESS)
		return r;
	m = (struct memory){.total = info.total, .free = info.free};
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
	m = (struct memory){.total = info.total, .free = info.free};
	r = view(dev, &m);
	if (r != NVML_SUCCESS)
		return r;
	ret_info->total = m.total;
	ret_info->reserved = 0;
	ret_info->free = m.free;
	ret_info->used = m.used;
	return r;
}

// Nothing tells whose what is mapped through the aperture is, and mostly nothing is:
// it counts as free.
nvmlReturn_t gs_nv_bar1(GS_FN(nvmlDeviceGetBAR1MemoryInfo) real, nvmlDevice_t dev, nvmlBAR1Memory_t *ret_info)
{
	nvmlBAR1Memory_t info;
	uint64_t limit;
	unsigned gpu;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_info ? &info : NULL));

	if (r == NVML_SUCCESS)
		r = gs_nvml_find_gpu(dev, &gpu);
	if (r != NVML_SUCCESS)
		return r;
	limit = gs_memory_limit(gpu);
	info.bar1Total = limit < info.bar1Total ? limit : info.bar1Total;
	info.bar1Free = info.bar1Total;
	info.bar1Used = 0;
	*ret_info = info;
	return r;
}

// at_most keeps the driver's figure where it is smaller than the container's.
static unsigned long long at_most(uint64_t bytes, unsigned unit, unsigned long long figure)
{
	return bytes / unit < figure ? bytes / unit : figure;
}

nvmlReturn_t gs_nv_attributes(GS_FN(nvmlDeviceGetAttributes_v2) real, nvmlDevice_t dev,
			      nvmlDeviceAttributes_t *ret_attributes)
{
	nvmlDeviceAttributes_t a;
	unsigned gpu;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_attributes ? &a : NULL));

	if (r == NVML_SUCCESS)
		r = gs_nvml_find_gpu(dev, &gpu);
	if (r != NVML_SUCCESS)
		return r;
	a.memorySizeMB = at_most(gs_memory_limit(gpu), 1U << 20, a.memorySizeMB);
	*ret_attributes = a;
	return r;
}

nvmlReturn_t gs_nv_protected_size(GS_FN(nvmlDeviceGetConfComputeMemSizeInfo) real, nvmlDevice_t dev,
				  nvmlConfComputeMemSizeInfo_t *ret_info)
{
	nvmlConfComputeMemSizeInfo_t info;
	unsigned gpu;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_info ? &info : NULL));

	if (r == NVML_SUCCESS)
		r = gs_nvml_find_gpu(dev, &gpu);
	if (r != NVML_SUCCESS)
		return r;
	info.protectedMemSizeKib = at_most(gs_memory_limit(gpu), 1U << 10, info.protectedMemSizeKib);
	info.unprotectedMemSizeKib = at_most(gs_memory_limit(gpu), 1U << 10, info.unprotectedMemSizeKib);
	*ret_info = info;
	return r;
}
