// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * nvml_init.c: the short forms of the start. Their call of nvmlInitWithFlags is
 * a jump through the procedure linkage table, the only one of its kind in the
 * real library too: an interposer that looks at return addresses must cope
 * with this one and with no other.
 */
#include "nvml.h"

SG_API nvmlReturn_t nvmlInit_v2(void)
{
    return SG_PUBLIC(nvmlInitWithFlags)(0);
}

SG_API nvmlReturn_t nvmlInit(void)
{
    return SG_PUBLIC(nvmlInitWithFlags)(0);
}
