// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// throttles names the reasons for low clocks as NVIDIA's NVML mock does.
var throttles = map[string]int64{
	"none": 0, "gpu_idle": reasonIdle, "applications_clocks_setting": reasonApplication, "sw_power_cap": reasonPowerCap,
	"hw_slowdown": reasonHW, "sync_boost": 0x10, "sw_thermal_slowdown": reasonSWThermal,
	"hw_thermal_slowdown": reasonHWThermal, "hw_power_brake_slowdown": 0x80, "display_clocks_setting": 0x100,
}

// eccPlaces names where errors are counted: nvmlMemoryLocation_t.
var eccPlaces = map[string]int{
	"l1": 0, "l2": 1, "dram": 2, "register": 3, "texture": 4, "cbu": 6, "sram": 7,
}

func makeSettings() []Setting {
	s := []Setting{
		pin("temp", "degrees C", "temperature of the GPU", "thermal.temperature_gpu_c", 0, 130, 1),
		pin("temp.memory", "degrees C", "temperature of the memory", "thermal.temperature_memory_c", 0, 130, 1),
		pin("temp.ambient", "degrees C", "air around the card; 22 unless set", "", -20, 80, 1),
		pin("power", "W", "power drawn", "", 0, 2000, 1000),
		{Key: "power.limit", Unit: "W, or auto", Help: "power limit in force", apply: setPower},
		pin("fan", "percent", "measured speed of the fans", "fan.speed_percent", 0, 100, 1),
		pin("clock.sm", "MHz", "present SM clock", "clocks.sm_current", 0, 5000, 1),
		pin("clock.graphics", "MHz", "present graphics clock, if not the SM clock", "clocks.graphics_current", 0, 5000, 1),
		pin("clock.memory", "MHz", "present memory clock", "clocks.memory_current", 0, 20000, 1),
		pin("clock.video", "MHz", "present video clock", "clocks.video_current", 0, 5000, 1),
		pin("pstate", "0 to 15", "performance state", "performance_state", 0, 15, 1),
		pin("utilization", "percent", "busy engine, as the GPU's samples, power and temperature follow it", "utilization.gpu", 0, 100, 1),
		pin("utilization.memory", "percent", "busy memory", "", 0, 100, 1),
		pin("utilization.encoder", "percent", "busy video encoder", "", 0, 100, 1),
		pin("utilization.decoder", "percent", "busy video decoder", "", 0, 100, 1),
		pin("utilization.jpeg", "percent", "busy JPEG engine", "", 0, 100, 1),
		pin("utilization.ofa", "percent", "busy optical flow engine", "", 0, 100, 1),
		pin("pcie.generation", "1 to 7", "present generation of the link", "pcie.current_link_gen", 1, 7, 1),
		pin("pcie.width", "lanes", "present width of the link", "pcie.current_link_width", 1, 32, 1),
		pin("pcie.tx", "KB/s", "bytes sent over the link", "pcie.tx_throughput_kbps", 0, 1<<31, 1),
		pin("pcie.rx", "KB/s", "bytes received over the link", "pcie.rx_throughput_kbps", 0, 1<<31, 1),
		{Key: "throttle", Unit: "reasons with commas, or auto", Help: "why clocks are low", apply: setThrottle},
		{Key: "ecc.corrected", Unit: "errors, or l1 l2 dram register texture cbu sram:errors",
			Help: "adds corrected memory errors", apply: setECC(0)},
		{Key: "ecc.uncorrected", Unit: "errors, or place:errors",
			Help: "adds uncorrected memory errors; a row is remapped or a page retired at the next reset", apply: setECC(1)},
		choice("ecc.mode", "error correction, now and after a reset", "", setECCMode, "off", "on"),
		{Key: "remapped.failure", Unit: "0 or 1", Help: "remapping a row failed", apply: setCounter(func(s *wire.Sensors) *uint32 { return &s.RemapFailed })},
		{Key: "pcie.replays", Unit: "count", Help: "PCIe replays", Mock: "pcie.replay_counter",
			apply: setCounter(func(s *wire.Sensors) *uint32 { return &s.PCIeReplays })},
		{Key: "nvlink.errors", Unit: "count", Help: "errors on each NVLink", apply: setLinkErrors},
		{Key: "recovery", Unit: "0 to 7", Help: "recovery action, nvmlDeviceGpuRecoveryAction_t",
			apply: setCounter(func(s *wire.Sensors) *uint32 { return &s.Recovery })},
		{Key: "xid", Unit: "number", Help: "reports a critical error once; the GPU goes on (kill-gpu takes it away)", apply: setXID},
		choice("persistence", "persistence mode", "persistence_mode", mode(func(m *management) *uint32 { return &m.fixed.Persistence }), "off", "on"),
		choice("compute-mode", "who may create contexts", "compute_mode", setComputeMode, "default", "prohibited", "exclusive_process"),
		choice("accounting", "accounting of processes", "accounting.mode", mode(func(m *management) *uint32 { return &m.fixed.Accounting }), "off", "on"),
		choice("mig.mode", "MIG mode", "mig.mode_current", setMIGMode, "off", "on"),
		choice("process-memory", "bytes of each process in the lists; unavailable as under WSL or vGPU", "",
			mode(func(m *management) *uint32 { return &m.fixed.ProcessMemory }), "unavailable", "available"),
		{Key: "samples", Unit: "auto, missing, zero, late:TIME, batch:TIME", Help: "how utilisation samples reach readers", apply: setSamples},
		choice("sharing", "utilisation of processes that share the engine; deflated shows only the one that ran last", "",
			func(h *Host, i, k int) error { h.gpus[i].nvml.sampling.deflated = k == 1; return nil }, "exact", "deflated"),
		choice("library-version", "whether libraries and driver are of one release, for the whole node", "", setMismatch, "same", "mismatch"),
	}
	return s
}

func setThrottle(h *Host, i int, v string) error {
	m := &h.gpus[i].nvml
	if v == auto {
		delete(m.pins, "throttle")
		return nil
	}
	bits := int64(0)
	for _, name := range strings.Split(v, ",") {
		b, ok := throttles[name]
		if !ok {
			var names []string
			for n := range throttles {
				names = append(names, n)
			}
			slices.Sort(names)
			return fmt.Errorf("want reasons out of %s", strings.Join(names, ", "))
		}
		bits |= b
	}
	m.pins["throttle"] = bits
	return nil
}

// setECC adds errors: kind 0 corrected, 1 uncorrected.
func setECC(kind int) func(*Host, int, string) error {
	return func(h *Host, i int, v string) error {
		m := &h.gpus[i].nvml
		place, count, ok := strings.Cut(v, ":")
		if !ok {
			place, count = "dram", v
		}
		at, known := eccPlaces[place]
		n, err := strconv.ParseUint(count, 10, 31)
		switch {
		case !m.facts.ECC.Supported || m.fixed.ECCMode == 0:
			return errors.New("error correction is off, nothing counts errors")
		case !known || err != nil:
			return errors.New("want a number of errors, or l1, l2, dram, register, texture, cbu or sram, a colon and a number")
		case n == 0:
			return nil
		}
		m.fixed.ECC[kind][0][at] += n
		m.fixed.ECC[kind][1][at] += n
		if kind == 0 {
			h.emit(i, eventSingleBitECC, n)
			return nil
		}
		if at == eccPlaces["dram"] {
			if m.facts.ECC.RowRemapper {
				m.fixed.RemappedUncorrected += uint32(n)
				m.fixed.RemapPending = 1
			} else {
				m.fixed.Retired[1] += uint32(n)
				m.fixed.RetirePending = 1
			}
			m.fixed.Recovery = 1 // a reset
		}
		h.emit(i, eventDoubleBitECC, n)
		code := uint32(94) // contained uncorrected error
		if !m.facts.ECC.RowRemapper {
			code = 48 // double bit error
		}
		h.xid(i, code)
		if at == eccPlaces["dram"] {
			h.xid(i, 63) // a page is retired or a row remapped
		}
		return nil
	}
}

func setECCMode(h *Host, i, k int) error {
	m := &h.gpus[i].nvml
	if !m.facts.ECC.Supported {
		return errors.New("this card has no error correction")
	}
	m.fixed.ECCMode, m.fixed.ECCPending = uint32(k), uint32(k) //nolint:gosec // 0 or 1
	return nil
}

func setComputeMode(h *Host, i, k int) error {
	h.gpus[i].nvml.fixed.ComputeMode = [3]uint32{0, 2, 3}[k]
	return nil
}

func setMIGMode(h *Host, i, k int) error {
	switch h.setMIG(i, uint64(k)) { //nolint:gosec // 0 or 1
	case 0:
		return nil
	case nvmlInUse:
		return errors.New("the GPU is in use: end its processes and destroy its instances first")
	default:
		return errors.New("this card cannot be cut")
	}
}

func setCounter(to func(*wire.Sensors) *uint32) func(*Host, int, string) error {
	return func(h *Host, i int, v string) error {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil {
			return errors.New("want a number")
		}
		*to(&h.gpus[i].nvml.fixed) = uint32(n)
		return nil
	}
}

func setLinkErrors(h *Host, i int, v string) error {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return errors.New("want a number")
	}
	h.gpus[i].nvml.fixed.NVLinkErrors = n
	return nil
}
