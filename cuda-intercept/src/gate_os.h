// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What the gate asks of the operating system. Tests link their own, on a clock
// that they turn.

#ifndef GS_GATE_OS_H
#define GS_GATE_OS_H

#include <stdint.h>

// gs_os_now returns CLOCK_MONOTONIC in ns.
uint64_t gs_os_now(void);

// gs_os_pause lets some tens of ns pass in a spin loop.
void gs_os_pause(void);

// gs_os_wait sleeps while *word is value, for at most wait_ns. It may return
// early. The word may lie in a read-only shared mapping.
void gs_os_wait(const uint32_t *word, uint32_t value, uint64_t wait_ns);

// gs_os_ring sends a doorbell to the daemon without waiting; a daemon that is not
// there, or whose queue is full, is no error. No descriptor stays open.
void gs_os_ring(uint32_t kind, uint32_t gpu, uint32_t slot, uint64_t wall_ns);

#endif
