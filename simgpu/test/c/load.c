// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * load.c: keeps a GPU busy with kernels of one name, or holds memory.
 *   load NAME SECONDS          launches NAME, a few hundred ahead, for so long
 *   load -hold BYTES SECONDS   allocates and sleeps
 * Prints the number of kernels launched.
 */
#include "t.h"

int main(int argc, char **argv)
{
    CUcontext ctx;
    CUdeviceptr p;
    CUmodule m;
    CUfunction f;
    CUevent e[2];
    double end;
    long n = 0;

    if (argc < 3)
        FAIL("usage");
    m = start(&ctx);
    if (!strcmp(argv[1], "-hold")) {
        OK(cuMemAlloc_v2(&p, strtoull(argv[2], NULL, 10)));
        puts("ready");
        fflush(stdout);
        usleep((useconds_t)(atof(argv[3]) * 1e6));
        return 0;
    }
    f = function(m, argv[1]);
    OK(cuEventCreate(&e[0], CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&e[1], CU_EVENT_DISABLE_TIMING));
    puts("ready");
    fflush(stdout);
    end = now_s() + atof(argv[2]);
    for (int k = 0; now_s() < end; k ^= 1) {
        for (int i = 0; i < 128; i++, n++)
            OK(launch(f, NULL));
        OK(cuEventRecord(e[k], NULL));
        OK(cuEventSynchronize(e[k ^ 1])); /* the batch before: one is always queued */
    }
    OK(cuCtxSynchronize());
    OK(cuEventDestroy_v2(e[0]));
    OK(cuEventDestroy_v2(e[1]));
    printf("%ld\n", n);
    return 0;
}
