// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "cu.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cu cu;

static void *library(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!lib) {
        fprintf(stderr, "client: %s\n", dlerror());
        exit(3);
    }
    return lib;
}

static void *by_dlsym(void *lib, const char *symbol)
{
    void *p = dlsym(lib, symbol);

    if (!p) {
        fprintf(stderr, "client: %s\n", dlerror());
        exit(3);
    }
    return p;
}

static void load_dlsym(void)
{
    void *lib = library();

#define X(field, symbol, base) cu.field = (__typeof__(cu.field))by_dlsym(lib, #symbol);
    CU_CALLS(X)
#undef X
}

static void *by_proc(void *get, int second, const char *base)
{
    void *p = NULL;
    CUresult rc;

    if (second) {
        CUdriverProcAddressQueryResult found;

        rc = ((__typeof__(&cuGetProcAddress_v2))get)(base, &p, 12000, 0, &found);
    } else {
        rc = ((__typeof__(&cuGetProcAddress))get)(base, &p, 12000, 0);
    }
    if (rc != CUDA_SUCCESS || !p) {
        fprintf(stderr, "client: cuGetProcAddress(%s) = %d\n", base, (int)rc);
        exit(3);
    }
    return p;
}

static void load_proc(int second)
{
    void *get = by_dlsym(library(), second ? "cuGetProcAddress_v2" : "cuGetProcAddress");

#define X(field, symbol, base) cu.field = (__typeof__(cu.field))by_proc(get, second, base);
    CU_CALLS(X)
#undef X
}

void cu_load(const char *via)
{
#ifdef CLIENT_LINKED
    if (!via || !strcmp(via, "link")) {
#define X(field, symbol, base) cu.field = symbol;
        CU_CALLS(X)
#undef X
        return;
    }
#endif
    if (!via || !strcmp(via, "dlsym")) {
        load_dlsym();
    } else if (!strcmp(via, "proc")) {
        load_proc(0);
    } else if (!strcmp(via, "proc2")) {
        load_proc(1);
    } else {
        fprintf(stderr, "client: this build cannot reach the driver by \"%s\"\n", via);
        exit(3);
    }
}

const char *cu_name(CUresult rc)
{
    const char *name = NULL;

    if (rc == CUDA_SUCCESS)
        return "CUDA_SUCCESS";
    if (cu.GetErrorName(rc, &name) != CUDA_SUCCESS || !name)
        return "unknown";
    return name;
}

void cu_must(CUresult rc, const char *what)
{
    if (rc == CUDA_SUCCESS)
        return;
    fflush(stdout);
    fprintf(stderr, "client: %s: %s (%d)\n", what, cu_name(rc), (int)rc);
    exit(4);
}

CUdevice cu_open(int gpu)
{
    CUdevice dev;
    CUcontext ctx;

    cu_must(cu.Init(0), "cuInit");
    cu_must(cu.DeviceGet(&dev, gpu), "cuDeviceGet");
    cu_must(cu.PrimaryRetain(&ctx, dev), "cuDevicePrimaryCtxRetain");
    cu_must(cu.CtxSetCurrent(ctx), "cuCtxSetCurrent");
    return dev;
}

CUfunction cu_function(const char *name)
{
    static char ptx[4096];
    CUmodule module;
    CUfunction function;

    /* Spins for a number of iterations in a register: on a real GPU it takes time too. */
    snprintf(ptx, sizeof ptx,
             ".version 6.0\n.target sm_50\n.address_size 64\n"
             ".visible .entry %s(.param .u32 rounds)\n{\n"
             " .reg .pred %%p1;\n .reg .b32 %%r<4>;\n"
             " ld.param.u32 %%r1, [rounds];\n mov.u32 %%r2, 0;\n"
             "again:\n add.u32 %%r2, %%r2, 1;\n setp.lt.u32 %%p1, %%r2, %%r1;\n"
             " @%%p1 bra again;\n ret;\n}\n",
             name);
    cu_must(cu.ModuleLoadData(&module, ptx), "cuModuleLoadData");
    cu_must(cu.ModuleGetFunction(&function, module, name), "cuModuleGetFunction");
    return function;
}

size_t cu_bytes(const char *text)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);

    if (!strcmp(end, "KiB"))
        return n << 10;
    if (!strcmp(end, "MiB"))
        return n << 20;
    if (!strcmp(end, "GiB"))
        return n << 30;
    if (*end && strcmp(end, "B")) {
        fprintf(stderr, "client: \"%s\" is no size\n", text);
        exit(2);
    }
    return n;
}

static sigset_t held_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

void cu_block_signals(void)
{
    sigset_t set = held_signals();

    sigprocmask(SIG_BLOCK, &set, NULL);
}

void cu_hold(const char *how)
{
    fflush(stdout);
    if (!strcmp(how, "stdin")) {
        char c;

        while (read(0, &c, 1) == 1 && c != '\n')
            ;
    } else if (!strcmp(how, "signal")) {
        sigset_t set = held_signals();
        int got;

        sigwait(&set, &got);
    }
}
