// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* fault.h: calls that are to fail. fault.c has the rules. */
#ifndef SG_FAULT_H
#define SG_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What sg_thunk_slow saves of a call. */
struct sg_frame {
    uint64_t arg[8]; /* in registers: 6 on x86-64, 8 on aarch64 */
    const uint64_t *stack; /* further arguments */
    uint32_t number; /* of the name, in sg_calls */
    uint32_t result; /* out: what the caller is told */
    uint64_t function;
    uint64_t result_at; /* aarch64: x8 */
    uint8_t vector[128];
    uint32_t spoil; /* the call is made, then its results become nonsense */
    uint32_t unused[3];
};
_Static_assert(offsetof(struct sg_frame, stack) == 64 && offsetof(struct sg_frame, result) == 76 &&
                   offsetof(struct sg_frame, vector) == 96 && sizeof(struct sg_frame) == 240,
               "as thunk.h has it");

/* Generated, one table a library. */
struct sg_call_info {
    const char *name;
    int8_t device; /* which argument is a device, -1: none */
    uint16_t first; /* of its results in sg_call_outputs */
    uint8_t outputs;
};
struct sg_call_output {
    uint8_t arg;
    uint16_t size;
};
extern const struct sg_call_info sg_calls[];
extern const unsigned sg_calls_count;
extern const struct sg_call_output sg_call_outputs[];
extern const volatile unsigned char sg_absent[];

enum sg_fault_action { SG_FAULT_PASS = 0, SG_FAULT_RETURN = 1, SG_FAULT_CALL = 2 };

/* Says what becomes of a call: enum sg_fault_action. */
int sg_fault_before(struct sg_frame *f);
/* Called when a call that SG_FAULT_CALL is about has been made. */
void sg_fault_after(struct sg_frame *f, uint32_t made);
/* Where the thunks look: 0 there is no rule. */
extern const uint32_t *sg_faults_word;

/* Of each library: */
extern const uint32_t sg_fault_kind; /* SG_KIND_CUDA or SG_KIND_NVML */
/* The host's number of the GPU that a call is about, SG_FAULT_ANY_GPU: none. */
uint32_t sg_fault_gpu(const struct sg_frame *f, const struct sg_call_info *c);
/* A number other than 0: the call cannot work, its GPU is gone. */
uint32_t sg_fault_dead(const struct sg_call_info *c);
/* Lets a call wait. */
void sg_fault_pause(uint64_t ns);
/* The connection was made: the node can be looked at. */
void sg_fault_connected(void);

uint64_t sg_frame_arg(const struct sg_frame *f, unsigned i);

#endif
