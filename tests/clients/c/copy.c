// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* copy: checks that memory really holds what is written: host, device, device, host. */
#define _GNU_SOURCE
#include "cu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const size_t n = 1 << 20;
    unsigned char *out = malloc(n), *in = malloc(n);
    CUdeviceptr a, b;

    cu_load(argc > 1 ? argv[1] : NULL);
    cu_open(0);
    if (!out || !in)
        return 1;
    for (size_t i = 0; i < n; i++)
        out[i] = (unsigned char)(i * 31 + 7);
    cu_must(cu.MemAlloc(&a, n), "cuMemAlloc");
    cu_must(cu.MemAlloc(&b, n), "cuMemAlloc");
    cu_must(cu.MemcpyHtoD(a, out, n), "cuMemcpyHtoD");
    cu_must(cu.MemcpyDtoD(b, a, n), "cuMemcpyDtoD");
    cu_must(cu.MemsetD8(b, 0x5a, n / 2), "cuMemsetD8");
    cu_must(cu.MemcpyDtoH(in, b, n), "cuMemcpyDtoH");
    for (size_t i = 0; i < n; i++) {
        unsigned char want = i < n / 2 ? 0x5a : out[i];

        if (in[i] != want) {
            printf("byte %zu is %u, not %u\n", i, in[i], want);
            return 1;
        }
    }
    cu_must(cu.MemFree(a), "cuMemFree");
    cu_must(cu.MemFree(b), "cuMemFree");
    printf("copied %zu bytes\n", n);
    return 0;
}
