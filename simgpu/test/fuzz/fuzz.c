// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * fuzz.c: random calls of every function of a library.
 *   fuzz SEED CALLS LIBRARY
 * A call may fail, it may not crash or hang. The same seed makes the same calls.
 * After each tenth of them the program says "check" on standard output and waits
 * for a line, so that its parent can compare accounts. FUZZ_ECHO=1 names each
 * call on standard error before it is made.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#define AREA ((size_t)1 << 30) /* more than any two numbers that we draw can ask for */
#define HEAD 4096u             /* what is zeroed before each use */
#define HELD 48u               /* handles of a kind that are remembered */

static uint64_t state;
static char *constant, *output, *buffer, *result;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static bool one_in(unsigned n)
{
    return draw() % n == 0;
}

static struct {
    uint64_t v[HELD];
    unsigned n, next;
} held[KINDS];

uint64_t a_handle(enum kind k)
{
    enum kind from = k != K_CUdeviceptr && one_in(40) ? (enum kind)(draw() % KINDS) : k;

    if (one_in(30))
        return draw() % 4;
    if (from == K_CUstream && one_in(3))
        return 0;
    if (!held[from].n)
        return 0;
    if (from == K_CUdeviceptr && one_in(4))
        return held[from].v[draw() % held[from].n] + draw() % 8192;
    return held[from].v[draw() % held[from].n];
}

/* The arguments of one call lie apart: no call has more than SLOTS. */
#define SLOTS 16u
#define SLOT ((size_t)2 << 20)

static char *slot_of(char *memory)
{
    static unsigned turn;

    return memory + (turn++ % SLOTS) * SLOT;
}

const void *a_list(enum kind k)
{
    uint64_t *list = (uint64_t *)slot_of(constant);

    for (unsigned i = 0; i < 8; i++)
        list[i] = a_handle(k);
    return list;
}

static void *in_result(enum kind k)
{
    return result + (size_t)k * (AREA / 64);
}

void *a_result(enum kind k)
{
    void *p = in_result(k);

    memset(p, 0, HEAD);
    return one_in(60) ? NULL : p;
}

void keep(enum kind k)
{
    uint64_t v;

    memcpy(&v, in_result(k), sizeof(v));
    if (!v)
        return;
    held[k].v[held[k].next] = v;
    held[k].next = (held[k].next + 1) % HELD;
    if (held[k].n < HELD)
        held[k].n++;
}

static void nothing(void)
{
}

void *a_function(void)
{
    return one_in(8) ? NULL : (void *)(uintptr_t)&nothing;
}

const char *a_text(void)
{
    static const char *const text[] = {"", "k", "spin", "cuMemAlloc", "cuGetProcAddress", "0000:10:00.0", "GPU-", "/nonexistent",
        "a name that is longer than any that a module of a test has, so that somebody's buffer may be too small for it"};

    return one_in(40) ? NULL : text[draw() % (sizeof(text) / sizeof(text[0]))];
}

void *a_buffer(void)
{
    return one_in(40) ? NULL : buffer;
}

/* Structures that are worth filling: a zeroed one is refused at once. */
const void *a_struct(const char *type)
{
    char *to = slot_of(constant);

    if (one_in(40))
        return NULL;
    memset(to, 0, HEAD);
    if (!strcmp(type, "CUDA_MEMCPY2D") || !strcmp(type, "CUDA_MEMCPY3D")) {
        CUDA_MEMCPY3D c = {.srcMemoryType = (CUmemorytype)(1 + draw() % 3), .srcHost = buffer, .srcDevice = a_handle(K_CUdeviceptr),
            .srcArray = (CUarray)a_handle(K_CUarray), .dstMemoryType = (CUmemorytype)(1 + draw() % 3), .dstHost = buffer,
            .dstDevice = a_handle(K_CUdeviceptr), .dstArray = (CUarray)a_handle(K_CUarray), .WidthInBytes = draw() % 300,
            .Height = draw() % 9, .Depth = draw() % 4, .srcPitch = draw() % 600, .dstPitch = draw() % 600};
        CUDA_MEMCPY2D d = {.srcMemoryType = c.srcMemoryType, .srcHost = buffer, .srcDevice = c.srcDevice, .srcArray = c.srcArray,
            .dstMemoryType = c.dstMemoryType, .dstHost = buffer, .dstDevice = c.dstDevice, .dstArray = c.dstArray,
            .WidthInBytes = c.WidthInBytes, .Height = c.Height, .srcPitch = c.srcPitch, .dstPitch = c.dstPitch};

        if (type[12] == '3')
            memcpy(to, &c, sizeof(c));
        else
            memcpy(to, &d, sizeof(d));
    } else if (!strcmp(type, "CUmemAllocationProp")) {
        CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)(draw() % 3)}};

        p.requestedHandleTypes = (CUmemAllocationHandleType)(draw() % 3);
        memcpy(to, &p, sizeof(p));
    } else if (!strcmp(type, "CUmemPoolProps")) {
        CUmemPoolProps p = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)(draw() % 3)}};

        p.handleTypes = (CUmemAllocationHandleType)(draw() % 2);
        memcpy(to, &p, sizeof(p));
    } else if (!strcmp(type, "CUmemAccessDesc")) {
        CUmemAccessDesc d = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)(draw() % 2)},
            .flags = (CUmemAccess_flags)(draw() % 2 ? 3 : draw() % 4)};

        memcpy(to, &d, sizeof(d));
    } else if (!strcmp(type, "CUDA_ARRAY_DESCRIPTOR") || !strcmp(type, "CUDA_ARRAY3D_DESCRIPTOR")) {
        CUDA_ARRAY3D_DESCRIPTOR d = {.Width = draw() % 200, .Height = draw() % 50, .Format = CU_AD_FORMAT_FLOAT,
            .NumChannels = (unsigned)(1 << draw() % 3), .Depth = draw() % 5};
        CUDA_ARRAY_DESCRIPTOR e = {.Width = d.Width, .Height = d.Height, .Format = d.Format, .NumChannels = d.NumChannels};

        if (type[10] == '3')
            memcpy(to, &d, sizeof(d));
        else
            memcpy(to, &e, sizeof(e));
    } else if (!strcmp(type, "CUDA_KERNEL_NODE_PARAMS")) {
        CUDA_KERNEL_NODE_PARAMS p = {.func = (CUfunction)a_handle(K_CUfunction), .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1,
            .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};

        memcpy(to, &p, sizeof(p));
    } else if (!strcmp(type, "CUDA_MEMSET_NODE_PARAMS")) {
        CUDA_MEMSET_NODE_PARAMS p = {.dst = a_handle(K_CUdeviceptr), .elementSize = 1u << draw() % 3, .width = draw() % 100, .height = 1};

        memcpy(to, &p, sizeof(p));
    } else if (!strcmp(type, "CUDA_HOST_NODE_PARAMS")) {
        CUDA_HOST_NODE_PARAMS p = {.fn = (CUhostFn)a_function()};

        memcpy(to, &p, sizeof(p));
    } else if (!strcmp(type, "CUlaunchConfig")) {
        CUlaunchConfig c = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
            .hStream = (CUstream)a_handle(K_CUstream)};

        memcpy(to, &c, sizeof(c));
    }
    return to;
}

void *an_output(void)
{
    char *to = slot_of(output);

    if (one_in(60))
        return NULL;
    memset(to, 0, HEAD);
    if (one_in(3)) {
        uint32_t n = (uint32_t)(draw() % 17); /* where it is also the room for an answer */

        memcpy(to, &n, sizeof(n));
    }
    return to;
}

/* The memory limits of a control group, whose name is behind a pointer. */
void *some_limits(void)
{
    nvmlSetMemoryLimits_v1_t l = {.nameSpace = a_text(), .softLimit = (unsigned long long)a_number()};
    char *to = slot_of(output);

    l.hardLimit = (unsigned long long)a_number();
    memcpy(to, &l, sizeof(l));
    return one_in(60) ? NULL : to;
}

void *a_value(void)
{
    uint64_t v = one_in(3) ? 0 : draw() % (one_in(4) ? 200 : 6);
    char *to = slot_of(constant);

    memset(to, 0, HEAD);
    memcpy(to, &v, sizeof(v));
    return to;
}

int a_device(void)
{
    return one_in(20) ? (int)(draw() % 5) - 2 : (int)(draw() % 2);
}

long long a_number(void)
{
    static const long long few[] = {0, 1, 1, 1, 2, 3, 4, 7, 8, 16, 32, 64, 255, 256, 512, 1000, 1024, 4096, 12080, 65536, 2 << 20};

    return few[draw() % (one_in(10) ? 21 : 16)];
}

/* ---- the program ------------------------------------------------------------------ */

static void *area(void)
{
    void *p = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        perror("map memory");
        exit(2);
    }
    return p;
}

/* Whether a name begins with one of a list; any does with none. */
static bool wanted(const char *name, const char *list)
{
    while (list && *list) {
        size_t n = strcspn(list, ",");

        if (!strncmp(name, list, n))
            return true;
        list += n + (list[n] == ',');
        if (!*list)
            return false;
    }
    return true;
}

static void check(unsigned long made)
{
    char line[8];

    printf("check %lu\n", made);
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        exit(3);
}

static void *cuda;

#define CUDA(name) ((__typeof__(&name))dlsym(cuda, #name))

/* A random program soon destroys its context; without one every call is refused. */
static void revive(void)
{
    static const char *const kernels[] = {"k", "spin", "ms"};
    CUcontext c;
    CUmodule m;
    CUfunction f;

    if (CUDA(cuCtxGetCurrent)(&c) == CUDA_SUCCESS && c && !one_in(50))
        return;
    if (CUDA(cuCtxCreate_v2)(&c, 0, (int)(draw() % 2)) != CUDA_SUCCESS) {
        CUDA(cuDevicePrimaryCtxReset_v2)(0);
        CUDA(cuDevicePrimaryCtxReset_v2)(1);
        for (unsigned i = 0; i < held[K_CUcontext].n; i++)
            CUDA(cuCtxDestroy_v2)((CUcontext)held[K_CUcontext].v[i]);
        return;
    }
    memcpy(in_result(K_CUcontext), &c, sizeof(c));
    keep(K_CUcontext);
    if (CUDA(cuModuleLoadData)(&m, "// any code\n") != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        if (CUDA(cuModuleGetFunction)(&f, m, kernels[i]) == CUDA_SUCCESS) {
            memcpy(in_result(K_CUfunction), &f, sizeof(f));
            keep(K_CUfunction);
        }
    }
}

int main(int argc, char **argv)
{
    bool echo = getenv("FUZZ_ECHO") != NULL, nvml;
    const struct call *calls;
    unsigned n = 0, total;
    unsigned long count;
    static void **functions; /* reachable at the end */
    void *lib;

    if (argc != 4) {
        fprintf(stderr, "usage: fuzz SEED CALLS LIBRARY\n");
        return 2;
    }
    state = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
    count = strtoul(argv[2], NULL, 10);
    nvml = strstr(argv[3], "nvidia-ml") != NULL;
    lib = dlopen(argv[3], RTLD_NOW);
    if (!lib) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    constant = area();
    output = area();
    buffer = area();
    result = area();
    calls = nvml ? nvml_calls : cuda_calls;
    total = nvml ? nvml_calls_count : cuda_calls_count;
    functions = calloc(total, sizeof(*functions));
    for (unsigned i = 0; functions && i < total; i++) {
        if (wanted(calls[i].name, getenv("FUZZ_ONLY")))
            functions[i] = dlsym(lib, calls[i].name);
        n += functions[i] != NULL;
    }
    if (!n) {
        fprintf(stderr, "%s has none of the functions\n", argv[3]);
        return 2;
    }
    cuda = nvml ? NULL : lib;
    if (cuda && CUDA(cuInit)(0) != CUDA_SUCCESS) {
        fprintf(stderr, "cuInit refused\n");
        return 2;
    }
    printf("%u functions\n", n);
    for (unsigned long i = 1; i <= count; i++) {
        unsigned k = (unsigned)(draw() % total);

        if (cuda && i % 16 == 1)
            revive();
        if (nvml && i % 16 == 1)
            ((nvmlReturn_t (*)(void))dlsym(lib, "nvmlInit_v2"))();
        if (functions[k]) {
            if (echo)
                fprintf(stderr, "%lu %s\n", i, calls[k].name);
            calls[k].make(functions[k]);
        }
        if (count >= 10 && i % (count / 10) == 0)
            check(i);
    }
    if (cuda)
        CUDA(cuCtxSynchronize)();
    puts("end");
    return 0;
}
