// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0
// Code generated from limiter/region by its gen command; DO NOT EDIT.

#ifndef GS_REGION_H
#define GS_REGION_H

#include <stddef.h>
#include <stdint.h>

#define GS_VERSION 0x2ULL
#define GS_LIMITS_MAGIC 0x4d4c5347ULL
#define GS_LEDGER_MAGIC 0x474c5347ULL
#define GS_DOORBELL_MAGIC 0x42445347ULL
#define GS_MAX_GPUS 0x10ULL
#define GS_LIMITS_SIZE 0x1000ULL
#define GS_LEDGER_HEADER_SIZE 0x1000ULL
#define GS_SLOT_SIZE 0x40ULL
#define GS_SLOT_COUNT 0x1000ULL
#define GS_LOCK_BASE 0x40000000ULL
#define GS_SHARE_COUNT 0x400ULL
#define GS_SHARE_SIZE 0x40ULL
#define GS_SHARE_LOCK_BASE 0x40001000ULL
#define GS_SHARE_FREE 0x0ULL
#define GS_SHARE_USED 0x1ULL
#define GS_SHARE_MOVING 0x2ULL
#define GS_SHARE_STANDBY 0x3ULL
#define GS_SHARE_TAGGED 0x1ULL
#define GS_SHARE_ANY_FILE 0x2ULL
#define GS_SHARE_OBJECT 0x4ULL
#define GS_HOLDER_COUNT 0x2000ULL
#define GS_TAG_GRACE 0xbebc200ULL
#define GS_GUESS_PENDING 0xffffffffULL
#define GS_MILLI_GPU 0x3e8ULL
#define GS_CHARGE_GRANULE 0x200ULL
#define GS_SWEEP_INTERVAL 0x5f5e100ULL
#define GS_SWEEP_MAX 0x40ULL
#define GS_REAP_GRACE 0xbebc200ULL
#define GS_HOLD_MAX 0xee6b280ULL
#define GS_BURST_NS 0x1312d00ULL
#define GS_DEBT_MAX 0x2540be400ULL
#define GS_SLOT_FREE 0x0ULL
#define GS_SLOT_USED 0x1ULL
#define GS_DOORBELL_PRICE 0x1ULL
#define GS_DOORBELL_DONE 0x2ULL
#define GS_DOORBELL_SETTLE 0x3ULL
#define GS_SETTLE_RING 0x989680ULL

struct gs_limits_header {
	uint32_t magic;
	uint32_t version;
	uint32_t size;
	uint32_t gpu_count;
	uint32_t generation;
	uint32_t slot_count;
	uint64_t ledger_size;
	uint64_t host_memory;
	uint8_t pad0[24];
};
_Static_assert(offsetof(struct gs_limits_header, magic) == 0, "layout");
_Static_assert(offsetof(struct gs_limits_header, version) == 4, "layout");
_Static_assert(offsetof(struct gs_limits_header, size) == 8, "layout");
_Static_assert(offsetof(struct gs_limits_header, gpu_count) == 12, "layout");
_Static_assert(offsetof(struct gs_limits_header, generation) == 16, "layout");
_Static_assert(offsetof(struct gs_limits_header, slot_count) == 20, "layout");
_Static_assert(offsetof(struct gs_limits_header, ledger_size) == 24, "layout");
_Static_assert(offsetof(struct gs_limits_header, host_memory) == 32, "layout");
_Static_assert(sizeof(struct gs_limits_header) == 64, "layout");

struct gs_gpu_limit {
	uint8_t uuid[16];
	uint64_t memory_limit;
	uint64_t context_bytes;
	uint32_t compute_milli;
	uint32_t ceiling_milli;
	uint32_t hold;
	uint32_t window;
	uint32_t alone;
	uint32_t inflight_us;
	uint64_t block_bytes;
	uint64_t next_context_bytes;
	uint64_t module_bytes;
	uint64_t stack_threads;
	uint64_t growth;
	uint32_t settle_begin;
	uint32_t settle_done;
	uint32_t busy_milli;
	uint32_t graph_node_bytes;
	uint8_t pad0[16];
};
_Static_assert(offsetof(struct gs_gpu_limit, uuid) == 0, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, memory_limit) == 16, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, context_bytes) == 24, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, compute_milli) == 32, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, ceiling_milli) == 36, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, hold) == 40, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, window) == 44, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, alone) == 48, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, inflight_us) == 52, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, block_bytes) == 56, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, next_context_bytes) == 64, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, module_bytes) == 72, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, stack_threads) == 80, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, growth) == 88, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, settle_begin) == 96, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, settle_done) == 100, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, busy_milli) == 104, "layout");
_Static_assert(offsetof(struct gs_gpu_limit, graph_node_bytes) == 108, "layout");
_Static_assert(sizeof(struct gs_gpu_limit) == 128, "layout");

struct gs_limits_page {
	struct gs_limits_header header;
	struct gs_gpu_limit gpu[16];
	uint8_t pad0[1984];
};
_Static_assert(offsetof(struct gs_limits_page, header) == 0, "layout");
_Static_assert(offsetof(struct gs_limits_page, gpu) == 64, "layout");
_Static_assert(sizeof(struct gs_limits_page) == 4096, "layout");

struct gs_gpu_account {
	uint64_t paid_ns;
	uint64_t charged_ns;
	uint64_t throttled_ns;
	uint64_t throttles;
	uint64_t launches;
	uint64_t denied;
	uint64_t denied_bytes;
	uint64_t unpriced;
	uint64_t peak;
	uint64_t paid_milli;
	uint64_t measurer;
	uint64_t measure_ns;
	uint8_t pad0[32];
};
_Static_assert(offsetof(struct gs_gpu_account, paid_ns) == 0, "layout");
_Static_assert(offsetof(struct gs_gpu_account, charged_ns) == 8, "layout");
_Static_assert(offsetof(struct gs_gpu_account, throttled_ns) == 16, "layout");
_Static_assert(offsetof(struct gs_gpu_account, throttles) == 24, "layout");
_Static_assert(offsetof(struct gs_gpu_account, launches) == 32, "layout");
_Static_assert(offsetof(struct gs_gpu_account, denied) == 40, "layout");
_Static_assert(offsetof(struct gs_gpu_account, denied_bytes) == 48, "layout");
_Static_assert(offsetof(struct gs_gpu_account, unpriced) == 56, "layout");
_Static_assert(offsetof(struct gs_gpu_account, peak) == 64, "layout");
_Static_assert(offsetof(struct gs_gpu_account, paid_milli) == 72, "layout");
_Static_assert(offsetof(struct gs_gpu_account, measurer) == 80, "layout");
_Static_assert(offsetof(struct gs_gpu_account, measure_ns) == 88, "layout");
_Static_assert(sizeof(struct gs_gpu_account) == 128, "layout");

struct gs_ledger_header {
	uint32_t magic;
	uint32_t version;
	uint32_t size;
	uint32_t gpu_count;
	uint32_t slot_count;
	uint32_t slot_high;
	uint32_t slot_hint;
	uint32_t sweep_next;
	uint64_t swept_ns;
	uint64_t export_tables;
	uint32_t share_high;
	uint32_t guess_mark;
	uint32_t guessing;
	uint32_t holder_high;
	struct gs_gpu_account gpu[16];
	uint64_t dying_ns;
	uint8_t pad0[1976];
};
_Static_assert(offsetof(struct gs_ledger_header, magic) == 0, "layout");
_Static_assert(offsetof(struct gs_ledger_header, version) == 4, "layout");
_Static_assert(offsetof(struct gs_ledger_header, size) == 8, "layout");
_Static_assert(offsetof(struct gs_ledger_header, gpu_count) == 12, "layout");
_Static_assert(offsetof(struct gs_ledger_header, slot_count) == 16, "layout");
_Static_assert(offsetof(struct gs_ledger_header, slot_high) == 20, "layout");
_Static_assert(offsetof(struct gs_ledger_header, slot_hint) == 24, "layout");
_Static_assert(offsetof(struct gs_ledger_header, sweep_next) == 28, "layout");
_Static_assert(offsetof(struct gs_ledger_header, swept_ns) == 32, "layout");
_Static_assert(offsetof(struct gs_ledger_header, export_tables) == 40, "layout");
_Static_assert(offsetof(struct gs_ledger_header, share_high) == 48, "layout");
_Static_assert(offsetof(struct gs_ledger_header, guess_mark) == 52, "layout");
_Static_assert(offsetof(struct gs_ledger_header, guessing) == 56, "layout");
_Static_assert(offsetof(struct gs_ledger_header, holder_high) == 60, "layout");
_Static_assert(offsetof(struct gs_ledger_header, gpu) == 64, "layout");
_Static_assert(offsetof(struct gs_ledger_header, dying_ns) == 2112, "layout");
_Static_assert(sizeof(struct gs_ledger_header) == 4096, "layout");

struct gs_slot {
	uint32_t state;
	uint32_t pid;
	uint32_t library;
	uint32_t contexts;
	uint64_t died_ns;
	uint64_t host_bytes;
	uint32_t guess_mark;
	uint32_t shares;
	uint8_t pad0[24];
};
_Static_assert(offsetof(struct gs_slot, state) == 0, "layout");
_Static_assert(offsetof(struct gs_slot, pid) == 4, "layout");
_Static_assert(offsetof(struct gs_slot, library) == 8, "layout");
_Static_assert(offsetof(struct gs_slot, contexts) == 12, "layout");
_Static_assert(offsetof(struct gs_slot, died_ns) == 16, "layout");
_Static_assert(offsetof(struct gs_slot, host_bytes) == 24, "layout");
_Static_assert(offsetof(struct gs_slot, guess_mark) == 32, "layout");
_Static_assert(offsetof(struct gs_slot, shares) == 36, "layout");
_Static_assert(sizeof(struct gs_slot) == 64, "layout");

struct gs_share {
	uint64_t tag;
	uint64_t bytes;
	uint64_t died_ns;
	uint64_t key[2];
	uint64_t file[2];
	uint32_t state;
	uint16_t gpu;
	uint16_t flags;
};
_Static_assert(offsetof(struct gs_share, tag) == 0, "layout");
_Static_assert(offsetof(struct gs_share, bytes) == 8, "layout");
_Static_assert(offsetof(struct gs_share, died_ns) == 16, "layout");
_Static_assert(offsetof(struct gs_share, key) == 24, "layout");
_Static_assert(offsetof(struct gs_share, file) == 40, "layout");
_Static_assert(offsetof(struct gs_share, state) == 56, "layout");
_Static_assert(offsetof(struct gs_share, gpu) == 60, "layout");
_Static_assert(offsetof(struct gs_share, flags) == 62, "layout");
_Static_assert(sizeof(struct gs_share) == 64, "layout");

struct gs_doorbell {
	uint32_t magic;
	uint32_t kind;
	uint32_t gpu;
	uint32_t slot;
	uint64_t wall_ns;
	uint64_t pad0;
};
_Static_assert(offsetof(struct gs_doorbell, magic) == 0, "layout");
_Static_assert(offsetof(struct gs_doorbell, kind) == 4, "layout");
_Static_assert(offsetof(struct gs_doorbell, gpu) == 8, "layout");
_Static_assert(offsetof(struct gs_doorbell, slot) == 12, "layout");
_Static_assert(offsetof(struct gs_doorbell, wall_ns) == 16, "layout");
_Static_assert(sizeof(struct gs_doorbell) == 32, "layout");

#endif
