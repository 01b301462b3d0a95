// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* vmm.h: what the files of physical memory share with each other. */
#ifndef SG_VMM_H
#define SG_VMM_H

#include "sg.h"

#define SG_GRANULARITY ((size_t)2 << 20)

int sg_vmm_file(void); /* the process's own memory file */
CUresult sg_physical_import(int fd, struct sg_physical **ret);
struct sg_multicast *sg_multicast_new(unsigned devices, size_t size);
unsigned sg_multicast_devices(const struct sg_multicast *m);

#endif
