// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* scale.cu: the code that fill.cpp launches. */
extern "C" __global__ void scale(float *x, float by, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        x[i] *= by;
}
