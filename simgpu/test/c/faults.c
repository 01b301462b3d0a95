// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * faults.c: makes calls as its standard input says and prints what became of
 * each: the result, and what the call wrote where 11111111… stood before. The
 * libraries are dlopened, so that any driver's can be used.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>

#include "nvml_abi.h"
#include "t.h"

static void *cuda, *nvml;
static CUcontext ctx;
static CUfunction kernel;

#define CU(name) ((__typeof__(&name))find(cuda, #name))
#define ML(name) ((__typeof__(&name))find(nvml, #name))

static void *find(void *lib, const char *name)
{
    void *p = dlsym(lib, name);

    if (!p)
        FAIL("%s is not there", name);
    return p;
}

/* A call of any name with pointers to scratch memory as arguments. */
static long any(const char *name)
{
    static _Alignas(64) unsigned char scratch[1 << 16];
    void *lib = strncmp(name, "nvml", 4) ? cuda : nvml;
    long (*f)(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *) = NULL;
    void *p = find(lib, name), *s = scratch;

    memcpy(&f, &p, sizeof(f));
    return f(s, s, s, s, s, s, s, s, s, s, s);
}

static unsigned storm_calls;
static void *storm(void *arg)
{
    unsigned *failed = arg;

    OK(CU(cuCtxSetCurrent)(ctx));
    for (unsigned i = 0; i < storm_calls; i++) {
        size_t a, b;

        if (CU(cuMemGetInfo_v2)(&a, &b) != CUDA_SUCCESS)
            ++*failed;
    }
    return NULL;
}

static void run_storm(unsigned threads, unsigned calls)
{
    pthread_t t[16];
    unsigned failed[16] = {0}, all = 0;

    storm_calls = calls;
    for (unsigned i = 0; i < threads; i++)
        TRUE(pthread_create(&t[i], NULL, storm, &failed[i]) == 0);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
        all += failed[i];
    }
    printf("%u failed\n", all);
}

static void make_context(int device)
{
    CUmodule m;

    OK(CU(cuCtxCreate_v2)(&ctx, 0, device));
    OK(CU(cuModuleLoadData)(&m, ".version 7.0\n.target sm_50\n.entry k() { ret; }\n"));
    OK(CU(cuModuleGetFunction)(&kernel, m, "k"));
}

int main(int argc, char **argv)
{
    char line[256], word[128], name[128];
    const char *dir = argc > 1 ? argv[1] : NULL;

    snprintf(line, sizeof(line), "%s%slibcuda.so.1", dir ? dir : "", dir ? "/" : "");
    cuda = dlopen(line, RTLD_NOW);
    snprintf(line, sizeof(line), "%s%slibnvidia-ml.so.1", dir ? dir : "", dir ? "/" : "");
    nvml = dlopen(line, RTLD_NOW);
    TRUE(cuda && nvml);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof(line), stdin)) {
        CUdeviceptr p = 0x1111111111111111u;
        size_t a = 0x1111111111111111u, b = a;
        unsigned x = 0, y = 0;
        double from;
        int r, v = 0x11111111;

        name[0] = 0;
        if (sscanf(line, "%127s %127s", word, name) < 1)
            continue;
        if (!strcmp(word, "init")) {
            printf("%d\n", CU(cuInit)(0));
        } else if (!strcmp(word, "version")) {
            r = CU(cuDriverGetVersion)(&v);
            printf("%d %x %d\n", r, (unsigned)v, v);
        } else if (!strcmp(word, "context")) {
            make_context(atoi(name));
            puts("0");
        } else if (!strcmp(word, "create")) {
            printf("%d\n", CU(cuCtxCreate_v2)(&ctx, 0, atoi(name)));
        } else if (!strcmp(word, "stream")) {
            CUstream s;

            printf("%d\n", CU(cuStreamCreate)(&s, 0));
        } else if (!strcmp(word, "count")) {
            r = CU(cuDeviceGetCount)(&v);
            printf("%d %d\n", r, v);
        } else if (!strcmp(word, "current")) {
            printf("%d\n", CU(cuCtxSetCurrent)(ctx));
        } else if (!strcmp(word, "alloc")) {
            r = CU(cuMemAlloc_v2)(&p, 1 << 20);
            printf("%d %llx\n", r, (unsigned long long)p);
        } else if (!strcmp(word, "info")) {
            r = CU(cuMemGetInfo_v2)(&a, &b);
            printf("%d %zx %zx\n", r, a, b);
        } else if (!strcmp(word, "launch")) {
            printf("%d\n", CU(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        } else if (!strcmp(word, "query")) {
            printf("%d\n", CU(cuStreamQuery)(NULL));
        } else if (!strcmp(word, "sync")) {
            from = now_s();
            r = CU(cuCtxSynchronize)();
            printf("%d %.6f\n", r, now_s() - from);
        } else if (!strcmp(word, "nvmlinit")) {
            printf("%d\n", ML(nvmlInit_v2)());
        } else if (!strcmp(word, "nvmlmem")) {
            nvmlMemory_t m;
            nvmlDevice_t d;

            memset(&m, 0x11, sizeof(m));
            OK(ML(nvmlDeviceGetHandleByIndex_v2)((unsigned)atoi(name), &d));
            r = (int)ML(nvmlDeviceGetMemoryInfo)(d, &m);
            printf("%d %llx\n", r, (unsigned long long)m.used);
        } else if (!strcmp(word, "nvmlversion")) {
            char text[80], driver[80];

            OK(ML(nvmlSystemGetNVMLVersion)(text, sizeof(text)));
            OK(ML(nvmlInit_v2)());
            OK(ML(nvmlSystemGetDriverVersion)(driver, sizeof(driver)));
            OK(ML(nvmlSystemGetCudaDriverVersion)(&v));
            OK(ML(nvmlShutdown)());
            printf("%s %s %d\n", text, driver, v);
        } else if (!strcmp(word, "any")) {
            printf("%s %ld\n", name, any(name) & 0xffffffff);
        } else if (!strcmp(word, "has")) {
            printf("%d\n", dlsym(strncmp(name, "nvml", 4) ? cuda : nvml, name) != NULL);
        } else if (!strcmp(word, "lookup")) {
            CUdriverProcAddressQueryResult why = (CUdriverProcAddressQueryResult)9;
            void *at = NULL;

            r = CU(cuGetProcAddress_v2)(name, &at, 99999, 0, &why);
            printf("%d %d %d\n", r, at != NULL, (int)why);
        } else if (sscanf(line, "storm %u %u", &x, &y) == 2) {
            run_storm(x, y);
        } else {
            FAIL("what is %s?", line);
        }
    }
    return 0;
}
