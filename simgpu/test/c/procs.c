// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * procs.c: answers cuGetProcAddress questions for the Go test. Each line of
 * input is NAME VERSION FLAGS; each line of output says what both versions of
 * the call gave: the symbol's name by dladdr, or the failure.
 */
#include <dlfcn.h>

#include "t.h"

int main(void)
{
    char name[128];
    int version;
    unsigned flags;
    Dl_info info;

    while (scanf("%127s %d %u", name, &version, &flags) == 3) {
        CUdriverProcAddressQueryResult why = (CUdriverProcAddressQueryResult)9;
        void *v1 = (void *)1, *v2 = (void *)1;
        CUresult r1 = cuGetProcAddress(name, &v1, version, flags);
        CUresult r2 = cuGetProcAddress_v2(name, &v2, version, flags, &why);

        if (r1 == CUDA_ERROR_INVALID_VALUE && r2 == r1) {
            puts("invalid");
            continue;
        }
        TRUE(r2 == CUDA_SUCCESS);
        if (!v2) {
            TRUE(r1 == CUDA_ERROR_NOT_FOUND && v1 == (void *)1); /* v1 leaves it alone */
            printf("status %d\n", (int)why);
            continue;
        }
        TRUE(r1 == CUDA_SUCCESS && v1 == v2 && why == CU_GET_PROC_ADDRESS_SUCCESS);
        TRUE(dladdr(v2, &info) && info.dli_saddr == v2);
        puts(info.dli_sname);
    }
    return 0;
}
