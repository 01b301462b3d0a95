// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * thunk.c: the generated thunks alone, with functions and a fault.c of its own:
 * arguments in registers and on the stack arrive in each of the three ways.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fault.h"

#define TRUE(c)                                                            \
    do {                                                                   \
        if (!(c)) {                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #c); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

/* Any prototypes do: the thunks do not know them. */
int cuLaunchKernel(int, int, int, int, int, int, int, int, int, int, int);
int sgi_cuLaunchKernel(int, int, int, int, int, int, int, int, int, int, int);
int cuParamSetf(void *, int, float);
int sgi_cuParamSetf(void *, int, float);
int cuInit(unsigned);

static const uint32_t rules = 1, none = 0;
const uint32_t *sg_faults_word = &none;
static int action, calls, sum, made_as;
static float number;
static struct sg_frame seen;

int sg_fault_before(struct sg_frame *f)
{
    volatile double clobber[8] = {1, 2, 3, 4, 5, 6, 7, 8}; /* vector registers are used meanwhile */

    clobber[0] += clobber[7];
    seen = *f;
    f->result = 4242;
    return action;
}

/* Sees what the call gave, and may say otherwise once more. */
void sg_fault_after(struct sg_frame *f, uint32_t made)
{
    made_as = (int)made;
    TRUE(f->arg[0] == seen.arg[0] && f->result == 4242);
    f->result = 4343;
}

int sgi_cuLaunchKernel(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j, int k)
{
    calls++;
    sum = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k;
    return sum;
}

int sgi_cuParamSetf(void *f, int offset, float v)
{
    (void)f;
    number = v;
    return offset;
}

static int launch(void)
{
    return cuLaunchKernel(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
}

int main(void)
{
    enum { SQUARES = 506 };

    TRUE(launch() == SQUARES);
    TRUE(cuInit(0) == 801); /* nothing is behind this one */
    sg_faults_word = &rules;
    TRUE(launch() == SQUARES && calls == 2);
    TRUE((int)seen.arg[0] == 1 && (int)seen.arg[5] == 6);
#if defined(__x86_64__)
    TRUE((int)seen.stack[10 - 6] == 11);
#else
    TRUE((int)seen.arg[7] == 8); /* beyond, ints are packed or not, by the platform */
#endif
    TRUE(seen.function == (uint64_t)(uintptr_t)sgi_cuLaunchKernel);
    TRUE(cuParamSetf(NULL, 7, 1.5f) == 7 && number == 1.5f);
    TRUE(cuInit(0) == 801);
    action = SG_FAULT_RETURN;
    TRUE(launch() == 4242 && calls == 2);
    action = SG_FAULT_CALL;
    sum = 0;
    TRUE(launch() == 4343 && calls == 3 && sum == SQUARES && made_as == SQUARES);
    return 0;
}
