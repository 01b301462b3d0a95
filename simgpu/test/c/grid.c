// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* grid.c: says how many ms one kernel ran. Arguments: name, blocks, threads. */
#include "t.h"

int main(int argc, char **argv)
{
    CUcontext ctx;
    CUmodule m = start(&ctx);
    CUevent a, b;
    float ms;

    TRUE(argc == 4);
    OK(cuEventCreate(&a, 0));
    OK(cuEventCreate(&b, 0));
    /* Behind a kernel that runs meanwhile, so that all is queued in time. */
    OK(launch(function(m, "lead"), NULL));
    OK(cuEventRecord(a, NULL));
    OK(cuLaunchKernel(function(m, argv[1]), (unsigned)atoi(argv[2]), 1, 1, (unsigned)atoi(argv[3]), 1, 1, 0, NULL, NULL,
                      NULL));
    OK(cuEventRecord(b, NULL));
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&ms, a, b));
    printf("%.6f\n", ms);
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}
