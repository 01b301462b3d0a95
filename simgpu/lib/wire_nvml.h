// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

/* wire_nvml.h: what the management library and the host process say to each
 * other beyond wire.h, which includes this file. The Go side is wire/nvml.go. */
#ifndef SG_WIRE_NVML_H
#define SG_WIRE_NVML_H

#include <stdint.h>

#define SG_OP_SENSORS 96u     /* gpu; answers data: sg_sensors */
#define SG_OP_MODE 97u        /* gpu, a: SG_MODE_*, b: value; root only */
#define SG_OP_ACCOUNTING 98u  /* gpu, a: pid, 0: all; answers data: sg_account[] */
#define SG_OP_MIG_LIST 99u    /* gpu; answers data: sg_mig_instance[] */
#define SG_OP_MIG_SHAPES 100u /* gpu; answers data: sg_mig_shape[] */
#define SG_OP_MIG_CREATE 101u /* gpu, a: GPU instance's profile id, b: start or UINT64_MAX; answers a: id */
#define SG_OP_MIG_DESTROY 102u /* gpu, a: GPU instance */
#define SG_OP_CI_CREATE 103u  /* gpu, a: GPU instance, b: profile | start << 32 (start UINT32_MAX: any); answers a: id */
#define SG_OP_CI_DESTROY 104u /* gpu, a: GPU instance, b: compute instance */
#define SG_OP_LIMIT_SET 105u  /* gpu, a: soft, b: hard; data: path of the control group; root only */
#define SG_OP_LIMIT_GET 106u  /* gpu, data: path; answers a: soft, b: hard, c: used */
#define SG_OP_PROCESSES_MIG 107u /* gpu, a: GPU instance, b: compute instance; as SG_OP_PROCESSES */
#define SG_OP_EVENTS 108u     /* kind SG_KIND_EVENTS: gpu, a: types; then the host sends sg_event by itself */

#define SG_KIND_EVENTS 6u /* a connection on which events arrive */

/* What SG_OP_MODE sets. Units as in NVML. */
#define SG_MODE_PERSISTENCE 1u
#define SG_MODE_COMPUTE 2u
#define SG_MODE_ECC 3u /* pending until a reset */
#define SG_MODE_POWER_LIMIT 4u /* mW */
#define SG_MODE_APP_CLOCKS 5u  /* memory | graphics << 32; 0: back to the default */
#define SG_MODE_LOCKED_GRAPHICS 6u /* least | most << 32; 0: not locked */
#define SG_MODE_LOCKED_MEMORY 7u
#define SG_MODE_ACCOUNTING 8u
#define SG_MODE_CLEAR_ACCOUNTING 9u
#define SG_MODE_CLEAR_ECC 10u /* value: counter type */
#define SG_MODE_MIG 11u
#define SG_MODE_API_RESTRICTION 12u /* api | on << 32 */
#define SG_MODE_AUTO_BOOST 13u
#define SG_MODE_FAN 14u /* percent; 255: automatic */
#define SG_MODE_DRAIN 15u
#define SG_MODE_ACOUSTIC 16u /* degrees */
#define SG_MODE_GRAPHICS_OFFSET 17u /* MHz, as int32 */
#define SG_MODE_MEMORY_OFFSET 18u
#define SG_MODE_POWER_PROFILES 19u /* requested, a bit a profile */
#define SG_MODE_HOSTNAME 20u /* data: name */

#define SG_CARD_SERIAL 0x1u
#define SG_CARD_ECC 0x2u
#define SG_CARD_ECC_DEFAULT 0x4u
#define SG_CARD_ROW_REMAPPER 0x8u
#define SG_CARD_GSP 0x10u
#define SG_CARD_CC 0x20u
#define SG_CARD_GPM 0x40u
#define SG_CARD_POWER_PROFILES 0x80u
#define SG_CARD_PCI_PEERS 0x100u
#define SG_CARD_NVSWITCH 0x200u
#define SG_CARD_DISPLAY 0x400u
#define SG_CARD_NO_PROCESS_MEMORY 0x800u
#define SG_CARD_C2C 0x1000u

#define SG_MEMORY_CLOCKS 4u

/* What the management library says of a card and never changes. */
struct sg_card {
    char part_number[32];
    char vbios[32];
    char inforom_image[16];
    char inforom_oem[16];
    char inforom_ecc[16];
    char inforom_power[16];
    uint64_t bar1_bytes;
    uint32_t flags; /* SG_CARD_* */
    uint32_t brand;
    uint32_t architecture;
    uint32_t cores_per_sm;
    uint32_t bus_width;
    uint32_t pcie_generation;
    uint32_t pcie_width;
    uint32_t power_default; /* mW */
    uint32_t power_min;
    uint32_t power_max;
    uint32_t temp_operating; /* C */
    uint32_t temp_slowdown;
    uint32_t temp_shutdown;
    uint32_t temp_memory; /* 0: no sensor */
    uint32_t temp_target;
    uint32_t fans;
    uint32_t fan_min; /* percent */
    uint32_t fan_rpm; /* at 100 percent */
    uint32_t graphics_max; /* MHz */
    uint32_t graphics_app; /* 0: no application clocks */
    uint32_t graphics_idle;
    uint32_t graphics_step;
    uint32_t memory_clock[SG_MEMORY_CLOCKS]; /* highest first; 0: no more */
    uint32_t video_max;
    uint32_t idle_pstate;
    uint32_t encoders;
    uint32_t decoders;
    uint32_t jpegs;
    uint32_t ofas;
    uint32_t nvlink_version;
    uint32_t nvlinks;
    uint32_t nvlink_mbps;
    uint32_t mig_instances;
    uint32_t mig_slices;
    uint32_t reserved;
};

#define SG_ECC_PLACES 8u /* nvmlMemoryLocation_t */
#define SG_CLOCKS 4u     /* nvmlClockType_t */
#define SG_ENGINES 6u    /* busy: graphics, memory, encoder, decoder, JPEG, optical flow */
#define SG_VIOLATIONS 12u /* nvmlPerfPolicyType_t */

/* What the management library says of a card now. */
struct sg_sensors {
    uint64_t time_us; /* wall clock */
    uint64_t energy_mj;
    uint64_t busy_ns; /* engine time ever */
    uint64_t reasons; /* why clocks are low */
    uint64_t ecc[2][2][SG_ECC_PLACES]; /* corrected, uncorrected; volatile, aggregate */
    uint64_t violation_ns[SG_VIOLATIONS];
    uint64_t nvlink_errors;
    uint64_t start_us; /* wall clock at which the card came up */
    uint64_t power_profiles;
    uint32_t temperature; /* C */
    uint32_t memory_temperature;
    uint32_t power; /* mW, average over a second */
    uint32_t power_instant;
    uint32_t power_limit;
    uint32_t fan; /* percent */
    uint32_t fan_target;
    uint32_t fan_manual;
    uint32_t clock[SG_CLOCKS]; /* MHz */
    uint32_t app_graphics;
    uint32_t app_memory;
    uint32_t pstate;
    uint32_t busy[SG_ENGINES]; /* percent */
    uint32_t persistence;
    uint32_t compute_mode;
    uint32_t ecc_mode;
    uint32_t ecc_pending;
    uint32_t mig;
    uint32_t mig_pending;
    uint32_t accounting;
    uint32_t restricted[2];
    uint32_t auto_boost;
    uint32_t drain;
    uint32_t acoustic;
    int32_t graphics_offset;
    int32_t memory_offset;
    uint32_t pcie_generation;
    uint32_t pcie_width;
    uint32_t pcie_tx_kbps;
    uint32_t pcie_rx_kbps;
    uint32_t pcie_replays;
    uint32_t remapped_corrected;
    uint32_t remapped_uncorrected;
    uint32_t remap_pending;
    uint32_t remap_failed;
    uint32_t retired[2]; /* pages by cause: many corrected errors, one uncorrected */
    uint32_t retire_pending;
    uint32_t recovery; /* nvmlDeviceGpuRecoveryAction_t */
    uint32_t library_mismatch;
    uint32_t process_memory; /* 0: not available */
    char hostname[64];
};

struct sg_account {
    uint32_t pid;
    uint32_t running;
    uint32_t gpu_percent;
    uint32_t memory_percent;
    uint64_t max_bytes;
    uint64_t time_ms;
    uint64_t start_us; /* wall clock */
    uint64_t samples;
    uint64_t sum_gpu;
    uint64_t sum_memory;
};

struct sg_mig_instance {
    char uuid[48]; /* MIG-…, of the compute instance; "" for a GPU instance without one */
    uint32_t gi;
    uint32_t ci; /* UINT32_MAX: the GPU instance itself */
    uint32_t profile; /* GPU instance: its id; compute instance: its number */
    uint32_t start;
    uint32_t size;
    uint32_t slices;
    uint32_t multiprocessors;
    uint32_t index; /* among the MIG devices; UINT32_MAX for a GPU instance */
    uint64_t memory_bytes;
    uint64_t used_bytes;
    uint32_t engines[6]; /* copy, decoder, encoder, JPEG, OFA, 0 */
};

struct sg_mig_shape {
    char name[32];
    uint32_t index; /* NVML_GPU_INSTANCE_PROFILE_* */
    uint32_t id;
    uint32_t slices;
    uint32_t count;
    uint32_t multiprocessors;
    uint32_t slice_multiprocessors; /* of a compute instance of one slice */
    uint32_t size;
    uint32_t starts; /* a bit each */
    uint32_t remaining;
    uint32_t p2p;
    uint32_t engines[6];
    uint64_t memory_mib;
};

struct sg_event {
    uint32_t gpu;
    uint32_t gi; /* UINT32_MAX: none */
    uint32_t ci;
    uint32_t reserved;
    uint64_t type;
    uint64_t data;
    uint64_t time_us;
};

_Static_assert(sizeof(struct sg_card) % 8 == 0, "card");
_Static_assert(sizeof(struct sg_sensors) % 8 == 0, "sensors");

#endif
