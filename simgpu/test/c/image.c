// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* image.c: what is read of kernels from PTX and from a cubin; with a file's
 * name, says what is read from that. */
#include <elf.h>

#include "t.h"

static const char ptx[] =
    "// made by hand\n.version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry plain(.param .u64 p)\n{\n .reg .b32 %r<9>;\n ret;\n}\n"
    ".visible .entry plainer(.param .u64 p)\n.maxntid 256, 2, 1\n.maxnreg 24\n{\n"
    " .shared .align 4 .b8 a[4096];\n .shared .f32 b;\n .shared .align 8 .b64 c[4][8];\n"
    " { .reg .b32 %t; }\n ret;\n}\n"
    ".visible .entry last()\n{\n .extern .shared .align 16 .b8 dynamic[];\n ret;\n}\n";

static int get(CUfunction f, CUfunction_attribute a)
{
    int v;

    OK(cuFuncGetAttribute(&v, a, f));
    return v;
}

static void is(CUmodule m, const char *name, int threads, int shared, int registers, int local)
{
    CUfunction f = function(m, name);
    int got[4] = {get(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), get(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
                  get(f, CU_FUNC_ATTRIBUTE_NUM_REGS), get(f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)};

    if (got[0] != threads || got[1] != shared || got[2] != registers || got[3] != local)
        FAIL("%s: %d threads, %d shared, %d registers, %d local; want %d %d %d %d", name, got[0], got[1], got[2], got[3],
             threads, shared, registers, local);
}

/* A cubin of one kernel, "k": as nvrtc writes them, with what counts here. */
static struct {
    Elf64_Ehdr h;
    char names[64];
    unsigned info[8], own[16];
    Elf64_Shdr s[6];
} cubin;

static unsigned name(const char *n)
{
    static unsigned used = 1;
    unsigned at = used;

    strcpy(cubin.names + at, n);
    used += (unsigned)strlen(n) + 1;
    return at;
}

static void section(int k, const char *n, unsigned type, const void *at, size_t size, unsigned info)
{
    cubin.s[k] = (Elf64_Shdr){.sh_name = name(n), .sh_type = type, .sh_size = size, .sh_info = info,
                              .sh_offset = at ? (size_t)((const char *)at - (const char *)&cubin) : 0};
}

static void make(void)
{
    static const unsigned info[8] = {0x00082f04, 7, 80, 0x00081104, 7, 128, 0, 0}; /* registers, frame of symbol 7 */
    /* A largest block of 128 x 2; parameters of 1 byte, and of 24 at 8, the last one first. */
    static const unsigned own[16] = {0x00005003, 0x000c0504, 128, 2, 1, 0x000c1704, 0, 0x00080001, 0x0061f000,
                                     0x000c1704, 0, 0, 0x0005f000};

    memcpy(cubin.h.e_ident, ELFMAG, SELFMAG);
    cubin.h.e_ident[EI_CLASS] = ELFCLASS64;
    cubin.h.e_ident[EI_ABIVERSION] = 7;
    cubin.h.e_machine = 190;
    cubin.h.e_flags = 0x5a055a;
    cubin.h.e_shentsize = sizeof(Elf64_Shdr);
    cubin.h.e_shnum = 6;
    cubin.h.e_shstrndx = 1;
    cubin.h.e_shoff = (size_t)((char *)cubin.s - (char *)&cubin);
    memcpy(cubin.info, info, sizeof(info));
    memcpy(cubin.own, own, sizeof(own));
    section(1, ".s", SHT_STRTAB, cubin.names, sizeof(cubin.names), 0);
    section(2, ".text.k", SHT_PROGBITS, cubin.info, 8, 7);
    section(3, ".nv.info", SHT_LOPROC, cubin.info, 24, 0);
    section(4, ".nv.info.k", SHT_LOPROC, cubin.own, 52, 2);
    section(5, ".nv.shared.k", SHT_NOBITS, NULL, 5120, 2);
}

int main(int argc, char **argv)
{
    CUcontext ctx;
    CUmodule m;
    _Alignas(8) static char moved[sizeof(cubin) + 4];
    size_t at, size;
    int n;

    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    if (argc > 1) {
        OK(cuModuleLoad(&m, argv[1]));
        for (int i = 2; i < argc; i++) {
            CUfunction f = function(m, argv[i]);

            printf("%s: %d threads, %d shared, %d registers, %d local\n", argv[i],
                   get(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), get(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
                   get(f, CU_FUNC_ATTRIBUTE_NUM_REGS), get(f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
        }
        return 0;
    }
    OK(cuModuleLoadData(&m, ptx));
    is(m, "plain", 1024, 0, 32, 0);
    is(m, "plainer", 512, 4096 + 4 + 256, 24, 0);
    is(m, "last", 1024, 0, 32, 0);
    {
        CUfunction f = (CUfunction)&m;
        CUlibrary l;
        CUkernel k = (CUkernel)&m;

        WANT(cuModuleGetFunction(&f, m, "unknown"), CUDA_ERROR_NOT_FOUND);
        WANT(cuModuleGetFunction(&f, m, "plai"), CUDA_ERROR_NOT_FOUND);
        OK(cuLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
        WANT(cuLibraryGetKernel(&k, l, "unknown"), CUDA_ERROR_NOT_FOUND);
        TRUE(f == (CUfunction)&m && k == (CUkernel)&m);
        OK(cuLibraryUnload(l));
    }
    WANT(cuLaunchKernel(function(m, "plainer"), 1, 1, 1, 513, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    make();
    OK(cuModuleLoadData(&m, &cubin));
    is(m, "k", 256, 4096, 80, 128);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, function(m, "k"), 256, 0));
    TRUE(n == 3); /* 80 registers of 256 threads: three times in 65536 */
    memcpy(moved + 4, &cubin, sizeof(cubin)); /* as newer tools align it: not at all */
    OK(cuModuleLoadData(&m, moved + 4));
    is(m, "k", 256, 4096, 80, 128);
    OK(cuFuncGetParamInfo(function(m, "k"), 1, &at, &size));
    TRUE(at == 8 && size == 24);
    WANT(cuFuncGetParamInfo(function(m, "k"), 2, &at, &size), CUDA_ERROR_INVALID_VALUE);
    cubin.s[5].sh_name = 60000; /* damaged: loaded, not believed */
    cubin.s[4].sh_offset = (size_t)1 << 40;
    cubin.s[3].sh_size = (size_t)1 << 40;
    OK(cuModuleLoadData(&m, &cubin));
    is(m, "k", 1024, 0, 32, 0);
    WANT(cuFuncGetParamInfo(function(m, "k"), 0, &at, &size), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
