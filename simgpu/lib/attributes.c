// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/*
 * attributes.c: the device attributes. The host works their values out from the
 * profile of the card (simgpu/profile/attributes.go); a driver knows those of its
 * release.
 */
#include "sg.h"

SG_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attr, CUdevice dev)
{
    SG_ENTER();
    if (!value || attr < 1 || (uint32_t)attr >= sg_conn.node->attributes || (uint32_t)attr >= SG_ATTRIBUTES)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sg_dev(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *value = attr == CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID ? dev : sg_dev(dev)->info->attribute[attr];
    return CUDA_SUCCESS;
}
