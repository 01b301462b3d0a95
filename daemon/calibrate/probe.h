// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Makes CUDA contexts, for the helper process that finds out what one costs.

#ifndef GS_PROBE_H
#define GS_PROBE_H

#define GS_PROBE_ERROR 256 // bytes of an error text

// gs_probe_open loads and starts the driver library. Returns 0, or -1 and a text.
int gs_probe_open(const char *path, char *ret_error);

// gs_probe_hold makes the primary context of the device with that UUID. Returns
// the driver's number of the device, or -1 and a text.
int gs_probe_hold(const unsigned char uuid[16], char *ret_error);

// gs_probe_release gives the context back.
void gs_probe_release(int device);

#endif
