// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* speed.c: what a call of the SIMULATED driver takes a program, bare: medians of
 * bursts, so that a processor taken away in between does not count. */
#include "t.h"

enum { BURSTS = 2001, BURST = 100 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void show(const char *what, double *ns)
{
    qsort(ns, BURSTS, sizeof(*ns), by_size);
    printf("SIMULATED %-28s p50 %7.1f ns  p99 %7.1f ns\n", what, ns[BURSTS / 2], ns[BURSTS * 99 / 100]);
}

int main(void)
{
    static double ns[BURSTS];
    CUcontext ctx;
    CUmodule m;
    CUfunction f;
    double from;
    int v;

    OK(cuDriverGetVersion(&v));
    for (int i = 0; i < BURSTS; i++) {
        from = now_s();
        for (int k = 0; k < BURST; k++)
            cuDriverGetVersion(&v);
        ns[i] = (now_s() - from) * 1e9 / BURST;
    }
    show("an export that does nothing", ns);
    m = start(&ctx);
    OK(cuModuleGetFunction(&f, m, "k"));
    for (int i = 0; i < BURSTS; i++) {
        from = now_s();
        for (int k = 0; k < BURST; k++)
            OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        ns[i] = (now_s() - from) * 1e9 / BURST;
        OK(cuCtxSynchronize());
    }
    show("cuLaunchKernel", ns);
    return 0;
}
