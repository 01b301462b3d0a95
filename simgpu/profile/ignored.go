// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package profile

// notSimulated are fields of NVIDIA's mock that a file may have and that change
// nothing here: what follows from load, or belongs to other machinery.
var notSimulated = set(
	"infiniband", "pcie_topology", "dynamic_metrics_defaults", "fabric", "nvswitch", "metadata",
	"system.nvml_version", "system.cuda_version", "system.cuda_version_major", "system.cuda_version_minor",
	"system.num_devices", "system.platform",
	"nvlink.switches", "nvlink.topology", "nvlink.links",
	"device_defaults.fabric", "device_defaults.features", "device_defaults.dynamic_metrics",
	"device_defaults.memory.free_bytes", "device_defaults.memory.used_bytes",
	"device_defaults.bar1_memory.free_bytes", "device_defaults.bar1_memory.used_bytes",
	"device_defaults.pcie.replay_counter", "device_defaults.pcie.tx_throughput_kbps", "device_defaults.pcie.rx_throughput_kbps",
	"device_defaults.power.management_supported", "device_defaults.power.management_mode",
	"device_defaults.power.power_state", "device_defaults.power.total_energy_consumption_mj",
	"device_defaults.fan.speed_percent", "device_defaults.fan.target_speed_percent",
	"device_defaults.clocks.graphics_app", "device_defaults.clocks.memory_app", "device_defaults.clocks.memory_app_default",
	"device_defaults.clocks.graphics_max", "device_defaults.clocks.graphics_current", // those of the SM clock are taken
	"device_defaults.clocks_throttle_reasons", "device_defaults.clocks_event_reasons",
	"device_defaults.supported_clocks", "device_defaults.performance_state", "device_defaults.utilization",
	"device_defaults.encoder_stats", "device_defaults.fbc_stats", "device_defaults.ecc.errors",
	"device_defaults.retired_pages", "device_defaults.remapped_rows", "device_defaults.display",
	"device_defaults.persistence_mode", "device_defaults.compute_mode", "device_defaults.gpu_operation_mode",
	"device_defaults.driver_model", "device_defaults.accounting", "device_defaults.virtualization",
	"device_defaults.gsp_firmware", "device_defaults.processes", "device_defaults.module_id", "device_defaults.grace_superchip",
	"device_defaults.platform", "device_defaults.grace_cpu_pair", "device_defaults.infiniband", "device_defaults.numa_node",
	"device_defaults.platform_info", "device_defaults.nvlink_links", "device_defaults.links",
	"device_defaults.mig.supported_profiles", "device_defaults.mig.devices", "device_defaults.mig.gpu_instances",
)

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}
