// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * exports.c: the private tables that CUDA runtimes and libraries ask for, and
 * what their called slots do; the runtime's question whether the driver is
 * NVIDIA's is not answered.
 */
#include "t.h"

/* A UUID as it is written, byte by byte. */
static CUuuid uuid(const char *text)
{
    CUuuid u;
    unsigned byte;

    for (unsigned i = 0; i < 16; i++, text += 2) {
        if (*text == '-')
            text++;
        TRUE(sscanf(text, "%2x", &byte) == 1);
        u.bytes[i] = (char)byte;
    }
    return u;
}

static const void **table_of(const char *text)
{
    CUuuid u = uuid(text);
    const void *t = NULL;

    OK(cuGetExportTable(&t, &u));
    TRUE(t);
    return (const void **)(uintptr_t)t;
}

/* With its size in front, and enough slots. */
static const void **sized(const char *text, unsigned slots)
{
    const void **t = table_of(text);

    TRUE((size_t)t[0] >= (slots + 1) * sizeof(void *) && (size_t)t[0] <= 4096);
    for (size_t i = 1; i < (size_t)t[0] / sizeof(void *); i++)
        TRUE(t[i]);
    return t;
}

int main(void)
{
    static const char *const missing[] = {
        "d4082055-bde6-704b-8d34-ba123c66e1f2", /* the check */
        "f8cff951-2146-8b4e-b9e2-fb469e7c0dd9", "da9151d3-3ae6-cc41-a5c0-4f26d533e328",
        "00000000-0000-0000-0000-000000000000"};
    const void **t;
    const void *untouched = missing;
    void *area = NULL, *key = &area, *value = NULL;
    CUcontext primary = NULL, current;
    size_t n = 0;

    t = sized("6bd5fb6c-5bf4-e74a-8987-d93912fd9df9", 12); /* before a start, as the runtimes do */
    sized("42d85a81-23f6-cb47-8298-f6e78a3aecdc", 0);
    sized("263e8860-7cd2-6143-92f6-bbd5006dfa7e", 3);
    sized("21318c60-9714-3248-8ca6-41ff7324c8f2", 0);
    for (unsigned i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
        CUuuid u = uuid(missing[i]);

        WANT(cuGetExportTable(&untouched, &u), CUDA_ERROR_NOT_FOUND);
        TRUE(untouched == missing);
    }
    OK(cuInit(0));
    OK(((CUresult(*)(CUcontext *, CUdevice))(uintptr_t)t[2])(&primary, 0));
    OK(cuCtxSetCurrent(primary));
    OK(cuCtxGetCurrent(&current));
    TRUE(primary && current == primary);
    OK(((CUresult(*)(void))(uintptr_t)t[7])());
    OK(((CUresult(*)(void))(uintptr_t)t[12])());
    t = sized("a094798c-2e74-2e74-93f2-0800200c0a66", 6);
    for (unsigned i = 2; i <= 6; i += 4) {
        area = NULL;
        OK(((CUresult(*)(void **, size_t *))(uintptr_t)t[i])(&area, &n));
        TRUE(area && n);
        memset(area, 0, n);
    }
    t = table_of("c693336e-1121-df11-a8c3-68f355d89593"); /* no size in front */
    WANT(((CUresult(*)(void **, CUcontext, void *))(uintptr_t)t[2])(&value, NULL, key), CUDA_ERROR_INVALID_HANDLE);
    OK(((CUresult(*)(CUcontext, void *, void *, void *))(uintptr_t)t[0])(NULL, key, &n, NULL));
    OK(((CUresult(*)(void **, CUcontext, void *))(uintptr_t)t[2])(&value, primary, key)); /* NULL meant the current one */
    TRUE(value == &n);
    OK(((CUresult(*)(CUcontext, void *))(uintptr_t)t[1])(primary, key));
    WANT(((CUresult(*)(void **, CUcontext, void *))(uintptr_t)t[2])(&value, NULL, key), CUDA_ERROR_INVALID_HANDLE);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    return 0;
}
