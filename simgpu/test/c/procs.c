// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * procs.c: answers cuGetProcAddress questions for the Go tests, by the driver
 * library that its argument names. Each line of input is NAME VERSION FLAGS, the
 * name - for the empty one; each line of output says what both versions of the
 * call gave, as far as the driver has them: the symbol's name by dladdr, or the
 * failure: "invalid", "status N", or "none" if the driver tells no more.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include "t.h"

static const char *symbol_at(void *lib, void *p)
{
    Dl_info info;

    TRUE(dladdr(p, &info) && info.dli_saddr == p);
    TRUE(dlsym(lib, info.dli_sname) == p); /* the address that the linker finds */
    return info.dli_sname;
}

int main(int argc, char **argv)
{
    void *lib = dlopen(argc == 2 ? argv[1] : "libcuda.so.1", RTLD_NOW);
    __typeof__(&cuGetProcAddress) get = lib ? (__typeof__(get))dlsym(lib, "cuGetProcAddress") : NULL;
    __typeof__(&cuGetProcAddress_v2) get2 = lib ? (__typeof__(get2))dlsym(lib, "cuGetProcAddress_v2") : NULL;
    char name[128];
    int version;
    unsigned flags;

    TRUE(lib);
    if (!get) {
        TRUE(!get2);
        puts("no resolver");
        return 0;
    }
    while (scanf("%127s %d %u", name, &version, &flags) == 3) {
        CUdriverProcAddressQueryResult why = (CUdriverProcAddressQueryResult)9;
        void *v1 = (void *)1, *v2 = (void *)1;
        CUresult r1, r2;

        if (!strcmp(name, "-"))
            name[0] = 0;
        r1 = get(name, &v1, version, flags);
        if (get2) {
            r2 = get2(name, &v2, version, flags, &why);
        } else {
            r2 = r1;
            v2 = r1 == CUDA_SUCCESS ? v1 : NULL;
        }
        if (r1 == CUDA_ERROR_INVALID_VALUE) {
            TRUE(r2 == r1 && v1 == (void *)1);
            puts("invalid");
            continue;
        }
        if (!v2) {
            TRUE(r1 == CUDA_ERROR_NOT_FOUND && v1 == (void *)1); /* v1 leaves it alone */
            TRUE(!get2 || r2 == CUDA_SUCCESS);
            if (get2)
                printf("status %d\n", (int)why);
            else
                puts("none");
            continue;
        }
        TRUE(r1 == CUDA_SUCCESS && r2 == CUDA_SUCCESS && v1 == v2);
        TRUE(!get2 || why == CU_GET_PROC_ADDRESS_SUCCESS);
        puts(symbol_at(lib, v2));
    }
    return 0;
}
