// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* driver.h: what one driver's libraries say of themselves. The build makes one
 * of these for each driver of simgpu/api. */
#ifndef SG_DRIVER_H
#define SG_DRIVER_H

struct sg_driver {
    int cuda; /* 1000 * major + 10 * minor */
    const char *version;
    const char *nvml_version;
};
extern const struct sg_driver sg_driver;

#endif
