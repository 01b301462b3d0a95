// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Makes the driver take device memory in ways that no call tells the size of, for
// the helper process that finds out what each costs.

#ifndef GS_PROBE_H
#define GS_PROBE_H

#include <stddef.h>

#define GS_PROBE_ERROR 256 // bytes of an error text

// gs_probe_open loads and starts the driver library. Returns 0, or -1 and a text.
int gs_probe_open(const char *path, char *ret_error);

// gs_probe_hold makes the primary context of the device with that UUID and works in
// it from then on. Returns the driver's number of the device, or -1 and a text.
int gs_probe_hold(const unsigned char uuid[16], char *ret_error);

// gs_probe_release gives the context back, and what is left in it.
void gs_probe_release(int device);

// Each of these makes one thing and keeps it. They return 0, or -1 and a text.
int gs_probe_context(int device, char *ret_error);
int gs_probe_memory(size_t bytes, char *ret_error);
int gs_probe_module(char *ret_error);		   // a module with one kernel, launched
int gs_probe_stack(size_t more, char *ret_error); // bytes beyond the default limit
int gs_probe_graph(int nodes, char *ret_error);	   // an executable graph of such launches

// gs_probe_drop gives back what the above have made.
void gs_probe_drop(void);

// gs_probe_threads is how many threads the device can hold, 0 if unknown.
unsigned long gs_probe_threads(int device);

#endif
