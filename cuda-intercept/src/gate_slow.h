// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// What the fast and the slow path of the gate share. Private to gate*.c.

#ifndef GS_GATE_SLOW_H
#define GS_GATE_SLOW_H

#include "gate_state.h"

// What a thread holds of the container's share: valid for one GPU and one
// generation of the limits page. All zero is "nothing".
struct gs_gate_thread {
	int64_t budget_ns;    // wall time claimed and not yet spent
	int64_t mark_left_ns; // GPU time until the next completion mark is due
	uint64_t charged_ns;  // GPU time charged and not yet in the ledger
	uint32_t launches;    // launches not yet in the ledger
	uint32_t generation;
	uint32_t scale;
	uint16_t gpu;
	uint16_t capped; // budget_ns was taken from the shared word
};

extern __thread struct gs_gate_thread gs_gate_thread
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

void gs_gate_enter_slow(struct gs_gate_ticket *ticket, uint32_t gpu, CUstream stream,
			enum gs_gate_flavour flavour, const struct gs_gate_shape *shape)
	__attribute__((cold, noinline, visibility("hidden")));
void gs_gate_leave_slow(struct gs_gate_ticket *ticket, CUresult result)
	__attribute__((cold, noinline, visibility("hidden")));

#endif
