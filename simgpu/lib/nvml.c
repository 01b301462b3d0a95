// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * nvml.c: start and end of the management library, its devices, and the system
 * as a whole. Like the real library it calls its own exports by their public
 * names, so an interposer sees these calls.
 */
#include <unistd.h>

#include "driver.h"
#include "nvml.h"

struct sg_nvml sg_nvml = {.lock = PTHREAD_MUTEX_INITIALIZER};

nvmlReturn_t sg_nvml_text(char *buf, unsigned int size, const char *text)
{
    if (!buf)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (strlen(text) >= size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buf, text, strlen(text) + 1);
    return NVML_SUCCESS;
}

static bool among(const void *p, const void *base, size_t size, size_t each)
{
    uintptr_t at = (uintptr_t)p - (uintptr_t)base;

    return at < size && !(at % each);
}

/* Whether a GPU has fallen off the bus. */
static bool gone(const struct nvmlDevice_st *d)
{
    return __atomic_load_n(&sg_conn.node->gpu[d->gpu].state.lost, __ATOMIC_ACQUIRE) != 0;
}

nvmlReturn_t sg_nvml_check(nvmlDevice_t d)
{
    SG_NVML_ENTER();
    /* A handle may be anything: it is looked for before it is looked at. */
    if (!among(d, sg_nvml.dev, sizeof(sg_nvml.dev), sizeof(sg_nvml.dev[0])) &&
        !among(d, sg_nvml.mig, sizeof(sg_nvml.mig), sizeof(sg_nvml.mig[0])))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (d->magic != SG_NVML_DEVICE)
        return NVML_ERROR_INVALID_ARGUMENT;
    return gone(d) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlDevice_t sg_nvml_gpu(unsigned index)
{
    for (unsigned i = 0; i < sg_nvml.ndev; i++) {
        if (sg_nvml.dev[i].gpu == index)
            return &sg_nvml.dev[i];
    }
    return NULL;
}

/* The lock is held. */
static nvmlReturn_t open_connection(void)
{
    unsigned index[SG_MAX_GPUS];

    if (sg_connect(SG_KIND_NVML) != 0)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    sg_nvml.pid = getpid();
    sg_nvml.ndev = sg_visible(sg_conn.node, index, SG_MAX_GPUS);
    for (unsigned i = 0; i < sg_nvml.ndev; i++) {
        const struct sg_gpu *g = &sg_conn.node->gpu[index[i]];

        sg_nvml.dev[i] = (struct nvmlDevice_st){SG_NVML_DEVICE, index[i], &g->info, &g->card, NULL, {.ci = 0}};
    }
    return NVML_SUCCESS;
}

static void close_connection(void)
{
    if (sg_conn.fd >= 0)
        close(sg_conn.fd);
    sg_conn.fd = -1;
}

nvmlReturn_t sg_nvml_request(struct sg_request *req, const void *data, struct sg_reply *rep, void *out, size_t size,
                             size_t *ret_len)
{
    nvmlReturn_t r = NVML_SUCCESS;
    int status = -1;

    pthread_mutex_lock(&sg_nvml.lock);
    for (int attempt = 0; attempt < 2; attempt++) {
        if (sg_nvml.pid != getpid() || sg_conn.lost) {
            close_connection();
            r = open_connection();
            if (r != NVML_SUCCESS)
                break;
        }
        status = (int)sg_call(req, data, rep, out, size, ret_len);
        if (!sg_conn.lost)
            break;
    }
    pthread_mutex_unlock(&sg_nvml.lock);
    if (r != NVML_SUCCESS || sg_conn.lost)
        return NVML_ERROR_GPU_IS_LOST;
    return (nvmlReturn_t)status;
}

nvmlReturn_t sg_nvml_ask(uint32_t op, nvmlDevice_t d, uint64_t a, struct sg_reply *rep, void *out, size_t size,
                         size_t *ret_len)
{
    struct sg_request req = {.op = op, .gpu = d->gpu, .a = a};

    return sg_nvml_request(&req, NULL, rep, out, size, ret_len);
}

nvmlReturn_t sg_nvml_sense(nvmlDevice_t d, struct sg_sensors *s)
{
    struct sg_reply rep;
    size_t len = 0;
    nvmlReturn_t r = sg_nvml_ask(SG_OP_SENSORS, d, 0, &rep, s, sizeof(*s), &len);

    if (r == NVML_SUCCESS && len != sizeof(*s))
        r = NVML_ERROR_UNKNOWN;
    return r;
}

nvmlReturn_t sg_nvml_mode(nvmlDevice_t d, uint32_t mode, uint64_t value)
{
    struct sg_request req = {.op = SG_OP_MODE, .gpu = d->gpu, .a = mode, .b = value};
    struct sg_reply rep;

    return sg_nvml_request(&req, NULL, &rep, NULL, 0, NULL);
}

SG_API nvmlReturn_t nvmlInitWithFlags(unsigned int flags SG_UNUSED)
{
    nvmlReturn_t r = NVML_SUCCESS;

    pthread_mutex_lock(&sg_nvml.lock);
    if (!sg_nvml.users) {
        r = open_connection();
        if (r == NVML_SUCCESS && __atomic_load_n(&sg_conn.node->mismatch, __ATOMIC_ACQUIRE)) {
            close_connection();
            r = NVML_ERROR_LIB_RM_VERSION_MISMATCH;
        }
    }
    if (r == NVML_SUCCESS)
        sg_nvml.users++;
    pthread_mutex_unlock(&sg_nvml.lock);
    return r;
}

SG_API nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t r = NVML_SUCCESS;

    pthread_mutex_lock(&sg_nvml.lock);
    if (!sg_nvml.users)
        r = NVML_ERROR_UNINITIALIZED;
    else if (--sg_nvml.users == 0)
        close_connection();
    pthread_mutex_unlock(&sg_nvml.lock);
    return r;
}

SG_API const char *nvmlErrorString(nvmlReturn_t r)
{
    static const char *const text[] = {
        [NVML_SUCCESS] = "Success",
        [NVML_ERROR_UNINITIALIZED] = "Uninitialized",
        [NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
        [NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
        [NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
        [NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
        [NVML_ERROR_NOT_FOUND] = "Not Found",
        [NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
        [NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
        [NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
        [NVML_ERROR_TIMEOUT] = "Timeout",
        [NVML_ERROR_IRQ_ISSUE] = "Interrupt Request Issue",
        [NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
        [NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
        [NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
        [NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
        [NVML_ERROR_RESET_REQUIRED] = "GPU requires reset",
        [NVML_ERROR_OPERATING_SYSTEM] = "The operating system has blocked the request",
        [NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "Driver/library version mismatch",
        [NVML_ERROR_IN_USE] = "In use by another client",
        [NVML_ERROR_MEMORY] = "Insufficient Memory",
        [NVML_ERROR_NO_DATA] = "No data",
        [NVML_ERROR_VGPU_ECC_NOT_SUPPORTED] = "The requested vgpu operation is not available on target device, because ECC is enabled",
        [NVML_ERROR_INSUFFICIENT_RESOURCES] = "Insufficient Resources",
        [NVML_ERROR_FREQ_NOT_SUPPORTED] = "Requested frequency not supported",
        [NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = "The provided version is invalid/unsupported",
        [NVML_ERROR_DEPRECATED] = "The requested functionality has been deprecated",
        [NVML_ERROR_NOT_READY] = "The system is not ready",
        [NVML_ERROR_GPU_NOT_FOUND] = "No GPUs were found",
        [NVML_ERROR_INVALID_STATE] = "Resource not in correct state",
    };

    if ((unsigned)r < SG_LEN(text) && text[r])
        return text[r];
    return "Unknown Error";
}

/* ---- system ------------------------------------------------------------------------ */

SG_API nvmlReturn_t nvmlSystemGetDriverVersion(char *buf, unsigned int n)
{
    SG_NVML_ENTER();
    return sg_nvml_text(buf, n, sg_conn.node->driver_version);
}

SG_API nvmlReturn_t nvmlSystemGetNVMLVersion(char *buf, unsigned int n)
{
    return sg_nvml_text(buf, n, sg_driver.nvml_version); /* known without a device */
}

SG_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = sg_driver.cuda;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return SG_PUBLIC(nvmlSystemGetCudaDriverVersion_v2)(version);
}

SG_API nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int n)
{
    char path[64];
    size_t len;
    FILE *f;

    SG_NVML_ENTER();
    if (!name || !n)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
    f = fopen(path, "re");
    if (!f)
        return NVML_ERROR_NOT_FOUND;
    len = fread(name, 1, n - 1, f);
    fclose(f);
    name[len] = 0; /* the first argument ends with a zero of its own */
    return len ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* ---- devices -------------------------------------------------------------------------- */

SG_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n)
{
    SG_NVML_ENTER();
    if (!n)
        return NVML_ERROR_INVALID_ARGUMENT;
    *n = sg_nvml.ndev;
    return NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetCount(unsigned int *n)
{
    return SG_PUBLIC(nvmlDeviceGetCount_v2)(n);
}

SG_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *d)
{
    SG_NVML_ENTER();
    if (!d || i >= sg_nvml.ndev)
        return NVML_ERROR_INVALID_ARGUMENT;
    *d = &sg_nvml.dev[i];
    return gone(*d) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

SG_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int i, nvmlDevice_t *d)
{
    return SG_PUBLIC(nvmlDeviceGetHandleByIndex_v2)(i, d);
}

SG_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *d)
{
    unsigned n;
    nvmlReturn_t r = SG_PUBLIC(nvmlDeviceGetCount_v2)(&n);

    if (r != NVML_SUCCESS)
        return r;
    if (!uuid || !d)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < n; i++) {
        if (!strcmp(sg_nvml.dev[i].info->uuid, uuid))
            return SG_PUBLIC(nvmlDeviceGetHandleByIndex_v2)(i, d);
    }
    return sg_nvml_mig_find(uuid, d);
}

SG_API nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *d)
{
    SG_NVML_ENTER();
    if (!uuid || !d)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != GS_NVML_STRUCT_VERSION(nvmlUUID_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    for (unsigned i = 0; i < sg_nvml.ndev; i++) {
        const struct sg_gpu_info *g = sg_nvml.dev[i].info;

        if (uuid->type == NVML_UUID_TYPE_ASCII ? !strncmp(g->uuid, uuid->value.str, sizeof(uuid->value.str))
                                               : !memcmp(g->uuid_bytes, uuid->value.bytes, 16)) {
            *d = &sg_nvml.dev[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

SG_API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *d)
{
    SG_NVML_ENTER();
    if (!serial || !d)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < sg_nvml.ndev; i++) {
        if (!strcmp(sg_nvml.dev[i].info->serial, serial)) {
            *d = &sg_nvml.dev[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

SG_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *d)
{
    unsigned domain = 0, bus, slot;

    SG_NVML_ENTER();
    if (!id || !d)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        domain = 0;
        if (sscanf(id, "%x:%x", &bus, &slot) != 2)
            return NVML_ERROR_INVALID_ARGUMENT;
    }
    for (unsigned i = 0; i < sg_nvml.ndev; i++) {
        const struct sg_gpu_info *g = sg_nvml.dev[i].info;

        if (g->pci_domain == domain && g->pci_bus == bus && g->pci_device == slot) {
            *d = &sg_nvml.dev[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

SG_API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *d)
{
    return SG_PUBLIC(nvmlDeviceGetHandleByPciBusId_v2)(id, d);
}
