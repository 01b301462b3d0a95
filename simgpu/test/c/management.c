// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * management.c: the management library as monitors use it. Arguments:
 *   check          what an H100 says, old and new forms of a call alike
 *   read           the figures of GPU 0, one a line
 *   events         "ready", then one line an event until the input ends
 *   mig            cuts GPU 0 and looks at the pieces
 *   limit PATH SOFT HARD | limit PATH
 *   gpm            one metric over the time until a line comes in
 *   init           what nvmlInit says
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <poll.h>

#include "nvml_abi.h"
#include "t.h"

static nvmlDevice_t d;

static void check_versions(void)
{
    nvmlPciInfo_t p3;
    nvmlPciInfo_v1_t p2, p1;
    nvmlMemory_t m1;
    nvmlMemory_v2_t m2 = {.version = GS_NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2)};
    nvmlTemperature_t t = {.version = GS_NVML_STRUCT_VERSION(nvmlTemperature_t, 1)};
    nvmlGpuFabricInfoV_t f = {.version = GS_NVML_STRUCT_VERSION(nvmlGpuFabricInfoV_t, 3)};
    unsigned celsius, n = 0;
    unsigned long long reasons, events;

    OK(nvmlDeviceGetPciInfo_v3(d, &p3));
    OK(nvmlDeviceGetPciInfo_v2(d, &p2));
    OK(nvmlDeviceGetPciInfo(d, &p1));
    TRUE(p3.bus == p2.bus && p2.bus == p1.bus && p3.pciSubSystemId == p2.pciSubSystemId);
    OK(nvmlDeviceGetMemoryInfo(d, &m1));
    OK(nvmlDeviceGetMemoryInfo_v2(d, &m2));
    TRUE(m1.total == m2.total && m1.free == m2.free && m1.used == m2.used + m2.reserved);
    TRUE(m2.total == m2.reserved + m2.used + m2.free);
    OK(nvmlDeviceGetTemperature(d, NVML_TEMPERATURE_GPU, &celsius));
    OK(nvmlDeviceGetTemperatureV(d, &t));
    TRUE((unsigned)t.temperature == celsius);
    t.version++;
    WANT(nvmlDeviceGetTemperatureV(d, &t), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    OK(nvmlDeviceGetCurrentClocksThrottleReasons(d, &reasons));
    TRUE(reasons & NVML_CLOCKS_EVENT_GPU_IDLE);
    OK(nvmlDeviceGetSupportedEventTypes(d, &events));
    TRUE(events & NVML_EVENT_XID);
    OK(nvmlDeviceGetGpuFabricInfoV(d, &f));
    WANT(nvmlDeviceGetSupportedMemoryClocks(d, &n, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
    TRUE(n >= 1);
    WANT(nvmlDeviceGetName((nvmlDevice_t)&n, (char[96]){0}, 96), NVML_ERROR_INVALID_ARGUMENT);
    WANT(nvmlDeviceGetPowerUsage(d, NULL), NVML_ERROR_INVALID_ARGUMENT);
    WANT(nvmlDeviceGetFanSpeed(d, &n), NVML_ERROR_NOT_SUPPORTED); /* a board without fans */
}

static void check_settings(void)
{
    unsigned lo, hi, mw;
    unsigned long long reasons;
    nvmlEnableState_t on;

    OK(nvmlDeviceGetPowerManagementLimitConstraints(d, &lo, &hi));
    WANT(nvmlDeviceSetPowerManagementLimit(d, hi + 1), NVML_ERROR_INVALID_ARGUMENT);
    OK(nvmlDeviceSetPowerManagementLimit(d, lo));
    OK(nvmlDeviceGetEnforcedPowerLimit(d, &mw));
    TRUE(mw == lo);
    OK(nvmlDeviceSetPowerManagementLimit(d, hi));
    OK(nvmlDeviceSetComputeMode(d, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS));
    OK(nvmlDeviceSetComputeMode(d, NVML_COMPUTEMODE_DEFAULT));
    OK(nvmlDeviceSetPersistenceMode(d, NVML_FEATURE_DISABLED));
    OK(nvmlDeviceGetPersistenceMode(d, &on));
    TRUE(on == NVML_FEATURE_DISABLED);
    OK(nvmlDeviceSetPersistenceMode(d, NVML_FEATURE_ENABLED));
    OK(nvmlDeviceSetApplicationsClocks(d, 2619, 1005));
    OK(nvmlDeviceGetApplicationsClock(d, NVML_CLOCK_SM, &lo));
    TRUE(lo == 1005);
    WANT(nvmlDeviceSetApplicationsClocks(d, 2619, 1006), NVML_ERROR_INVALID_ARGUMENT);
    OK(nvmlDeviceResetApplicationsClocks(d));
    OK(nvmlDeviceGetCurrentClocksEventReasons(d, &reasons));
}

static void read_all(void)
{
    nvmlUtilization_t u;
    nvmlFieldValue_t f[] = {{.fieldId = 82}, {.fieldId = 83}, {.fieldId = 164}, {.fieldId = 9999}};
    unsigned n[4] = {0}, sm, limit, width;
    unsigned long long reasons, ecc = 0, energy;
    nvmlPstates_t p;

    OK(nvmlDeviceGetTemperature(d, NVML_TEMPERATURE_GPU, &n[0]));
    OK(nvmlDeviceGetPowerUsage(d, &n[1]));
    OK(nvmlDeviceGetUtilizationRates(d, &u));
    OK(nvmlDeviceGetClockInfo(d, NVML_CLOCK_SM, &sm));
    OK(nvmlDeviceGetPerformanceState(d, &p));
    OK(nvmlDeviceGetCurrentClocksEventReasons(d, &reasons));
    OK(nvmlDeviceGetPowerManagementLimit(d, &limit));
    OK(nvmlDeviceGetCurrPcieLinkWidth(d, &width));
    OK(nvmlDeviceGetTotalEnergyConsumption(d, &energy));
    nvmlDeviceGetTotalEccErrors(d, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &ecc);
    printf("temp %u\npower %u\ngpu %u\nsm %u\npstate %u\nreasons %llu\nlimit %u\nwidth %u\nenergy %llu\necc %llu\n", n[0],
           n[1], u.gpu, sm, p, reasons, limit, width, energy, ecc);
    if (nvmlDeviceGetRemappedRows(d, &n[0], &n[1], &n[2], &n[3]) == NVML_SUCCESS)
        printf("remapped %u pending %u\n", n[1], n[2]);
    OK(nvmlDeviceGetFieldValues(d, 4, f));
    TRUE(f[1].nvmlReturn == NVML_SUCCESS && f[1].value.ullVal >= energy);
    TRUE(f[3].nvmlReturn == NVML_ERROR_NOT_SUPPORTED);
}

static void events(void)
{
    unsigned long long types;
    nvmlEventSet_t set;
    nvmlEventData_t e;
    nvmlReturn_t r;

    OK(nvmlEventSetCreate(&set));
    OK(nvmlDeviceGetSupportedEventTypes(d, &types));
    WANT(nvmlDeviceRegisterEvents(d, types | 1ull << 40, set), NVML_ERROR_NOT_SUPPORTED);
    OK(nvmlDeviceRegisterEvents(d, types, set));
    WANT(nvmlEventSetWait_v2(set, &e, 0), NVML_ERROR_TIMEOUT);
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct pollfd in = {.fd = 0, .events = POLLIN};

        r = nvmlEventSetWait_v2(set, &e, 50);
        if (r == NVML_SUCCESS) {
            printf("event %llu %llu\n", e.eventType, e.eventData);
            fflush(stdout);
        } else {
            WANT(r, NVML_ERROR_TIMEOUT);
            if (poll(&in, 1, 0) > 0)
                break;
        }
    }
    OK(nvmlEventSetFree(set));
    WANT(nvmlEventSetFree(set), NVML_ERROR_INVALID_ARGUMENT);
}

static void mig(void)
{
    nvmlGpuInstanceProfileInfo_v2_t p = {.version = GS_NVML_STRUCT_VERSION(nvmlGpuInstanceProfileInfo_v2_t, 2)};
    nvmlGpuInstancePlacement_t at[8], where = {4, 4};
    nvmlGpuInstance_t g3, other;
    nvmlComputeInstance_t c;
    nvmlGpuInstanceInfo_t gi;
    nvmlComputeInstanceInfo_t ci;
    nvmlDeviceAttributes_t a;
    nvmlDevice_t m, parent, again;
    nvmlMemory_t mem;
    nvmlReturn_t act;
    unsigned n = 8, current, pending, id, count;
    char uuid[96];

    WANT(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &m), NVML_ERROR_NOT_SUPPORTED);
    OK(nvmlDeviceSetMigMode(d, 1, &act));
    OK(act);
    OK(nvmlDeviceGetMigMode(d, &current, &pending));
    TRUE(current == 1 && pending == 1);
    OK(nvmlDeviceGetGpuInstanceProfileInfoV(d, 2, &p)); /* three slices */
    TRUE(p.sliceCount == 3 && p.id == 9 && !strcmp(p.name, "MIG 3g.40gb"));
    OK(nvmlDeviceGetGpuInstancePossiblePlacements_v2(d, p.id, at, &n));
    TRUE(n == 2 && at[0].start == 0 && at[1].start == 4 && at[1].size == 4);
    OK(nvmlDeviceCreateGpuInstanceWithPlacement(d, p.id, &where, &g3));
    WANT(nvmlDeviceCreateGpuInstanceWithPlacement(d, p.id, &where, &other), NVML_ERROR_INSUFFICIENT_RESOURCES);
    OK(nvmlDeviceGetGpuInstanceRemainingCapacity(d, p.id, &n));
    TRUE(n == 1);
    WANT(nvmlDeviceCreateGpuInstance(d, 0, &other), NVML_ERROR_INSUFFICIENT_RESOURCES); /* the whole card */
    OK(nvmlGpuInstanceGetInfo(g3, &gi));
    TRUE(gi.profileId == 9 && gi.placement.start == 4);
    WANT(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &m), NVML_ERROR_NOT_FOUND); /* nothing to compute with yet */
    OK(nvmlGpuInstanceCreateComputeInstance(g3, 0, &c)); /* one slice of the three */
    OK(nvmlComputeInstanceGetInfo_v2(c, &ci));
    TRUE(ci.gpuInstance == g3 && ci.placement.size == 1);
    OK(nvmlGpuInstanceGetComputeInstanceRemainingCapacity(g3, 0, &n));
    TRUE(n == 2);
    OK(nvmlDeviceGetMigDeviceHandleByIndex(d, 0, &m));
    OK(nvmlDeviceGetUUID(m, uuid, sizeof(uuid)));
    TRUE(!strncmp(uuid, "MIG-", 4));
    OK(nvmlDeviceGetHandleByUUID(uuid, &again));
    TRUE(again == m);
    OK(nvmlDeviceIsMigDeviceHandle(m, &n));
    TRUE(n == 1);
    OK(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(m, &parent));
    TRUE(parent == d);
    OK(nvmlDeviceGetAttributes_v2(m, &a));
    TRUE(a.gpuInstanceSliceCount == 3 && a.computeInstanceSliceCount == 1 && a.multiprocessorCount == 16);
    OK(nvmlDeviceGetMemoryInfo(m, &mem));
    TRUE(mem.total == a.memorySizeMB << 20 && mem.total == p.memorySizeMB << 20);
    OK(nvmlDeviceGetGpuInstanceId(m, &id));
    TRUE(id == gi.id);
    WANT(nvmlDeviceGetTemperature(m, NVML_TEMPERATURE_GPU, &n), NVML_ERROR_NOT_SUPPORTED);
    OK(nvmlDeviceGetMaxMigDeviceCount(d, &count));
    TRUE(count == 7);
    WANT(nvmlGpuInstanceDestroy(g3), NVML_ERROR_IN_USE);
    OK(nvmlComputeInstanceDestroy(c));
    WANT(nvmlComputeInstanceDestroy(c), NVML_ERROR_INVALID_ARGUMENT);
    OK(nvmlGpuInstanceDestroy(g3));
    WANT(nvmlGpuInstanceGetInfo(g3, &gi), NVML_ERROR_INVALID_ARGUMENT);
    OK(nvmlDeviceSetMigMode(d, 0, &act));
    OK(act);
}

static void limit(int argc, char **argv)
{
    nvmlSetMemoryLimits_v1_t s = {.nameSpace = argv[2]};
    nvmlGetMemoryLimits_v1_t g = {.nameSpace = argv[2]};
    /* Newer than the library that this program is linked with. */
    __typeof__(&nvmlDeviceSetMemoryLimits_v1) set =
        (__typeof__(set))dlsym(RTLD_DEFAULT, "nvmlDeviceSetMemoryLimits_v1");
    __typeof__(&nvmlDeviceGetMemoryLimits_v1) get =
        (__typeof__(get))dlsym(RTLD_DEFAULT, "nvmlDeviceGetMemoryLimits_v1");
    nvmlReturn_t r;

    TRUE(set && get);
    if (argc > 4) {
        s.softLimit = strtoull(argv[3], NULL, 0);
        s.hardLimit = strtoull(argv[4], NULL, 0);
        r = set(d, &s);
        printf("set %u\n", r);
    }
    r = get(d, &g);
    printf("get %u soft %llu hard %llu used %llu\n", r, g.softLimit, g.hardLimit, g.currentUsed);
}

static void gpm(void)
{
    static nvmlGpmMetricsGet_t g = {.version = 1, .numMetrics = 2};
    char line[8];

    OK(nvmlGpmSampleAlloc(&g.sample1));
    OK(nvmlGpmSampleAlloc(&g.sample2));
    OK(nvmlGpmSampleGet(d, g.sample1));
    printf("ready\n");
    fflush(stdout);
    TRUE(fgets(line, sizeof(line), stdin));
    OK(nvmlGpmSampleGet(d, g.sample2));
    g.metrics[0].metricId = 1;
    g.metrics[1].metricId = 5;
    OK(nvmlGpmMetricsGet(&g));
    WANT(g.metrics[0].nvmlReturn, NVML_SUCCESS);
    WANT(g.metrics[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    printf("busy %.1f\n", g.metrics[0].value);
    OK(nvmlGpmSampleFree(g.sample1));
    OK(nvmlGpmSampleFree(g.sample2));
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "check";

    if (!strcmp(what, "init")) {
        printf("init %u\n", nvmlInit_v2());
        return 0;
    }
    OK(nvmlInit_v2());
    if (!strcmp(what, "handle")) {
        printf("handle %u\n", nvmlDeviceGetHandleByIndex_v2(0, &d));
        return 0;
    }
    OK(nvmlDeviceGetHandleByIndex_v2(0, &d));
    if (!strcmp(what, "check")) {
        check_versions();
        check_settings();
    } else if (!strcmp(what, "read")) {
        read_all();
    } else if (!strcmp(what, "events")) {
        events();
    } else if (!strcmp(what, "mig")) {
        mig();
    } else if (!strcmp(what, "limit")) {
        limit(argc, argv);
    } else if (!strcmp(what, "gpm")) {
        gpm();
    }
    OK(nvmlShutdown());
    return 0;
}
