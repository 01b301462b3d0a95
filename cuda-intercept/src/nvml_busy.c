// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// How busy NVML says that the card is: as busy as the container keeps it. Its GPU
// time over the last second is in the limits page; of the other engines, and of
// memory, the driver tells single processes' use, and the own ones' is added up.
// Nothing of it comes from the figures of the whole card, of which one could tell
// what others do.

#include <stddef.h>
#include <time.h>

#include "attach.h"
#include "nvml_bodies.h"
#include "nvml_depth.h"
#include "nvml_hooks.h"
#include "nvml_own.h"

#define WHOLE 100U    // percent
#define SECOND 1000000U // in NVML's microseconds
#define PROCESSES 64U // of which the use is added up

// engines are the own processes' use of what is not counted as GPU time, percent.
struct engines {
	unsigned int memory, encoder, decoder, jpeg, flow;
};

static unsigned int percent(unsigned gpu)
{
	unsigned int n = (gs_busy_milli(gpu) + 5) / 10;

	return n < WHOLE ? n : WHOLE;
}

static void add(unsigned int *sum, unsigned int n)
{
	*sum = n < WHOLE - *sum ? *sum + n : WHOLE;
}

static unsigned long long second_ago(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return ((unsigned long long)t.tv_sec - 1) * SECOND + (unsigned long long)t.tv_nsec / 1000;
}

// newer asks by the call that knows all engines; it returns whether there is one.
static bool newer(nvmlDevice_t dev, unsigned long long since, struct engines *e)
{
	nvmlProcessUtilizationInfo_v1_t list[PROCESSES];
	nvmlProcessesUtilizationInfo_t info = {GS_NVML_STRUCT_VERSION(info, 1), PROCESSES, since, list};
	nvmlReturn_t r;

	if (!gs_nvml_real.nvmlDeviceGetProcessesUtilizationInfo)
		return false;
	r = gs_nv_processes_utilization(gs_nvml_real.nvmlDeviceGetProcessesUtilizationInfo, dev, &info);
	if (r == NVML_ERROR_NOT_FOUND)
		return true;
	if (r != NVML_SUCCESS && r != NVML_ERROR_INSUFFICIENT_SIZE)
		return false;
	for (unsigned int i = 0; i < info.processSamplesCount && i < PROCESSES; i++) {
		add(&e->memory, list[i].memUtil);
		add(&e->encoder, list[i].encUtil);
		add(&e->decoder, list[i].decUtil);
		add(&e->jpeg, list[i].jpgUtil);
		add(&e->flow, list[i].ofaUtil);
	}
	return true;
}

static void older(nvmlDevice_t dev, unsigned long long since, struct engines *e)
{
	nvmlProcessUtilizationSample_t list[PROCESSES];
	unsigned int n = PROCESSES;
	nvmlReturn_t r;

	if (!gs_nvml_real.nvmlDeviceGetProcessUtilization)
		return;
	r = gs_nv_process_utilization(gs_nvml_real.nvmlDeviceGetProcessUtilization, dev, list, &n, since);
	if (r != NVML_SUCCESS && r != NVML_ERROR_INSUFFICIENT_SIZE)
		return;
	for (unsigned int i = 0; i < n && i < PROCESSES; i++) {
		add(&e->memory, list[i].memUtil);
		add(&e->encoder, list[i].encUtil);
		add(&e->decoder, list[i].decUtil);
	}
}

// engines tells of the last second; what the driver does not tell is 0.
static struct engines engines(nvmlDevice_t dev)
{
	unsigned long long since = second_ago();
	struct engines e = {0};

	if (!newer(dev, since, &e))
		older(dev, since, &e);
	return e;
}

nvmlReturn_t gs_nv_utilization(GS_FN(nvmlDeviceGetUtilizationRates) real, nvmlDevice_t dev,
			       nvmlUtilization_t *ret_rates)
{
	nvmlUtilization_t rates;
	unsigned gpu;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_rates ? &rates : NULL));

	if (r == NVML_SUCCESS)
		r = gs_nvml_find_gpu(dev, &gpu);
	if (r == NVML_SUCCESS)
		*ret_rates = (nvmlUtilization_t){.gpu = percent(gpu), .memory = engines(dev).memory};
	return r;
}

// engine asks whether there is such an engine, and how often it is sampled.
static nvmlReturn_t engine(GS_FN(nvmlDeviceGetEncoderUtilization) real, nvmlDevice_t dev, unsigned int *ret_percent,
			   unsigned int *ret_period, size_t which)
{
	unsigned int whole, period;
	struct engines e;
	unsigned gpu;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_percent ? &whole : NULL, ret_period ? &period : NULL));

	if (r == NVML_SUCCESS)
		r = gs_nvml_find_gpu(dev, &gpu);
	if (r != NVML_SUCCESS)
		return r;
	e = engines(dev);
	*ret_percent = *(const unsigned int *)(const void *)((const char *)&e + which);
	*ret_period = period;
	return r;
}

nvmlReturn_t gs_nv_encoder_busy(GS_FN(nvmlDeviceGetEncoderUtilization) real, nvmlDevice_t dev,
				unsigned int *ret_percent, unsigned int *ret_period)
{
	return engine(real, dev, ret_percent, ret_period, offsetof(struct engines, encoder));
}

nvmlReturn_t gs_nv_decoder_busy(GS_FN(nvmlDeviceGetDecoderUtilization) real, nvmlDevice_t dev,
				unsigned int *ret_percent, unsigned int *ret_period)
{
	return engine(real, dev, ret_percent, ret_period, offsetof(struct engines, decoder));
}

nvmlReturn_t gs_nv_jpeg_busy(GS_FN(nvmlDeviceGetJpgUtilization) real, nvmlDevice_t dev, unsigned int *ret_percent,
			     unsigned int *ret_period)
{
	return engine(real, dev, ret_percent, ret_period, offsetof(struct engines, jpeg));
}

nvmlReturn_t gs_nv_flow_busy(GS_FN(nvmlDeviceGetOfaUtilization) real, nvmlDevice_t dev, unsigned int *ret_percent,
			     unsigned int *ret_period)
{
	return engine(real, dev, ret_percent, ret_period, offsetof(struct engines, flow));
}

// Domains of the performance states.
enum { DOMAIN_GPU, DOMAIN_MEMORY, DOMAIN_VIDEO, DOMAINS = 8 };

nvmlReturn_t gs_nv_pstates_info(GS_FN(nvmlDeviceGetDynamicPstatesInfo) real, nvmlDevice_t dev,
				nvmlGpuDynamicPstatesInfo_t *ret_info)
{
	nvmlGpuDynamicPstatesInfo_t info;
	struct engines e;
	unsigned gpu;
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, ret_info ? &info : NULL));

	if (r == NVML_SUCCESS)
		r = gs_nvml_find_gpu(dev, &gpu);
	if (r != NVML_SUCCESS)
		return r;
	e = engines(dev);
	info.utilization[DOMAIN_GPU].percentage = percent(gpu);
	info.utilization[DOMAIN_MEMORY].percentage = e.memory;
	info.utilization[DOMAIN_VIDEO].percentage = e.encoder > e.decoder ? e.encoder : e.decoder;
	// The bus, and what a later driver may add: whose it is nobody says.
	for (int i = DOMAIN_VIDEO + 1; i < DOMAINS; i++)
		info.utilization[i] = (__typeof__(info.utilization[0])){0};
	*ret_info = info;
	return r;
}

// Kinds of samples.
enum {
	SAMPLES_POWER,
	SAMPLES_GPU,
	SAMPLES_MEMORY,
	SAMPLES_ENCODER,
	SAMPLES_DECODER,
	SAMPLES_CLOCK,
	SAMPLES_MEMORY_CLOCK,
	SAMPLES_MODULE_POWER,
	SAMPLES_JPEG,
	SAMPLES_FLOW,
};

// own_figure sets the container's own figure for a kind of samples that tells of use.
static bool own_figure(nvmlSamplingType_t kind, nvmlDevice_t dev, unsigned gpu, unsigned int *ret_percent)
{
	struct engines e = {0};

	if (kind != SAMPLES_GPU)
		e = engines(dev);
	switch (kind) {
	case SAMPLES_GPU:
		*ret_percent = percent(gpu);
		return true;
	case SAMPLES_MEMORY:
		*ret_percent = e.memory;
		return true;
	case SAMPLES_ENCODER:
		*ret_percent = e.encoder;
		return true;
	case SAMPLES_DECODER:
		*ret_percent = e.decoder;
		return true;
	case SAMPLES_JPEG:
		*ret_percent = e.jpeg;
		return true;
	case SAMPLES_FLOW:
		*ret_percent = e.flow;
		return true;
	default:
		return false;
	}
}

// last_second moves the newest samples to the front, all with the same figure, and
// returns their number: of earlier ones the container's own is not known.
static unsigned int last_second(nvmlSample_t *list, unsigned int n, unsigned int figure)
{
	unsigned long long newest = 0;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n; i++)
		newest = list[i].timeStamp > newest ? list[i].timeStamp : newest;
	for (unsigned int i = 0; i < n; i++) {
		if (list[i].timeStamp + SECOND <= newest)
			continue;
		list[kept].timeStamp = list[i].timeStamp;
		list[kept].sampleValue = (nvmlValue_t){0};
		list[kept++].sampleValue.uiVal = figure;
	}
	return kept;
}

nvmlReturn_t gs_nv_samples(GS_FN(nvmlDeviceGetSamples) real, nvmlDevice_t dev, nvmlSamplingType_t kind,
			   unsigned long long since, nvmlValueType_t *ret_type, unsigned int *count,
			   nvmlSample_t *ret_list)
{
	unsigned int figure = 0;
	bool use;
	unsigned gpu;
	nvmlReturn_t r = gs_nvml_find_gpu(dev, &gpu);

	if (r != NVML_SUCCESS)
		return r;
	if (kind > SAMPLES_FLOW) // what a later driver may tell
		return NVML_ERROR_NOT_SUPPORTED;
	use = own_figure(kind, dev, gpu, &figure);
	r = GS_NVML_INSIDE(real(dev, kind, since, ret_type, count, ret_list));
	if (r != NVML_SUCCESS || !use || !ret_list)
		return r;
	*ret_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	*count = last_second(ret_list, *count, figure);
	return r;
}

// ---- counters of the whole card ----------------------------------------------
// Two of these at two times tell what everybody did in between, and the driver has
// no such thing for single processes: as on a card without them.

nvmlReturn_t gs_nv_gpm_support(GS_FN(nvmlGpmQueryDeviceSupport) real, nvmlDevice_t dev, nvmlGpmSupport_t *support)
{
	nvmlReturn_t r = GS_NVML_INSIDE(real(dev, support));

	if (r == NVML_SUCCESS)
		support->isSupportedDevice = 0;
	return r;
}

static nvmlReturn_t unsupported(nvmlDevice_t dev)
{
	unsigned gpu;
	nvmlReturn_t r = gs_nvml_find_gpu(dev, &gpu);

	return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

nvmlReturn_t gs_nv_gpm_sample(GS_FN(nvmlGpmSampleGet) real, nvmlDevice_t dev, nvmlGpmSample_t sample)
{
	(void)real;
	(void)sample;
	return unsupported(dev);
}

nvmlReturn_t gs_nv_gpm_part_sample(GS_FN(nvmlGpmMigSampleGet) real, nvmlDevice_t dev, unsigned int instance,
				   nvmlGpmSample_t sample)
{
	(void)real;
	(void)instance;
	(void)sample;
	return unsupported(dev);
}

nvmlReturn_t gs_nv_counters(GS_FN(nvmlDevicePerfMetricsGetSamples_v1) real, nvmlDevice_t dev,
			    nvmlPerfMetricsSamples_v1_t *samples)
{
	(void)real;
	(void)samples;
	return unsupported(dev);
}
