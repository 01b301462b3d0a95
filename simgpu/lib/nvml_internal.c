// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * nvml_internal.c: the private tables that NVIDIA's own tool asks for. Their
 * contents are not public; observed is that nvidia-smi of driver 535 lists and
 * queries cards when the one table below exists and every function in it says
 * "not supported". Other tables are not there.
 */
#include "nvml.h"

#define SLOTS 512

static nvmlReturn_t not_supported(void)
{
    return NVML_ERROR_NOT_SUPPORTED;
}

SG_API nvmlReturn_t nvmlInternalGetExportTable(const void **table, const void *id)
{
    static const unsigned char known[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                            0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
    static const void *slots[SLOTS];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    SG_NVML_WANT(table && id);
    if (memcmp(id, known, sizeof(known)) != 0)
        return NVML_ERROR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    if (!slots[0]) {
        for (size_t i = 1; i < SLOTS; i++)
            slots[i] = (const void *)(uintptr_t)&not_supported;
        slots[0] = (const void *)sizeof(slots); /* its size, as in all such tables */
    }
    pthread_mutex_unlock(&lock);
    *table = slots;
    return NVML_SUCCESS;
}
