// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// Codes of nvml.h.
const (
	nvmlInvalidArgument       = 2
	nvmlNotSupported          = 3
	nvmlNoPermission          = 4
	nvmlNotFound              = 6
	nvmlInsufficientSize      = 7
	nvmlGPUIsLost             = 15
	nvmlOperatingSystem       = 17
	nvmlInUse                 = 19
	nvmlInsufficientResources = 23
	nvmlFreqNotSupported      = 24
)

// management is what the management library can ask and set about a GPU,
// beyond memory and processes. Host.mu guards it.
type management struct {
	facts facts
	model sensors
	total int64            // engine time ever, ns
	pins  map[string]int64 // by setting: what the operator put in the model's place
	fixed wire.Sensors     // modes, counters and what else only changes when it is set

	powerLimit             uint32 // mW
	appGraphics, appMemory uint32 // MHz; 0: the default
	lockedGraphics         [2]uint32
	lockedMemory           [2]uint32
	fan                    uint32
	fanManual              bool

	sampling sampling
	mig      mig
	gone     []wire.Account // processes that ended while accounting was on
}

func newManagement(p *profile.GPU) management {
	m := management{facts: factsOf(p), pins: map[string]int64{}}
	m.model.temp = float64(m.facts.Thermal.IdleC)
	m.model.power, m.model.smooth = float64(m.facts.Power.IdleMW), float64(m.facts.Power.IdleMW)
	m.model.clock, m.model.reasons = float64(m.facts.Clocks.GraphicsIdle), reasonIdle
	m.powerLimit = uint32(p.Power.EnforcedLimitMW) //nolint:gosec // bounded by the profile
	m.sampling = sampling{batchNS: m.batch(), deflated: p.Engine.Utilization == "deflated"}
	m.fixed.Persistence = 1
	m.fixed.ProcessMemory = 1
	if m.facts.ProcessMemory == "unavailable" {
		m.fixed.ProcessMemory = 0
	}
	if m.facts.ECC.Supported {
		m.fixed.ECCMode, m.fixed.ECCPending = enabled(p.ECC.Current), enabled(p.ECC.Pending)
	}
	if m.facts.MIG.MaxInstances > 0 {
		m.fixed.MIG, m.fixed.MIGPending = enabled(p.MIG.Current), enabled(p.MIG.Pending)
	}
	m.fixed.Acoustic = m.facts.Thermal.TargetC
	m.fixed.Restricted = [2]uint32{1, 1} // root only, as the driver starts
	return m
}

// enabled is the number of a mode that a profile names.
func enabled(mode string) uint32 {
	if mode == "enabled" {
		return 1
	}
	return 0
}

// reset is what a GPU's reset does: pending modes come into force, rows are
// remapped and pages retired, and counters of this start begin again.
func (m *management) reset() {
	f := &m.fixed
	f.ECCMode = f.ECCPending
	f.ECC[0][0], f.ECC[1][0] = [wire.ECCPlaces]uint64{}, [wire.ECCPlaces]uint64{}
	f.RemapPending, f.RetirePending, f.Recovery, f.PCIeReplays = 0, 0, 0, 0
	m.appGraphics, m.appMemory = 0, 0
	m.lockedGraphics, m.lockedMemory = [2]uint32{}, [2]uint32{}
}

// Compute modes of nvml.h.
const (
	computeProhibited       = 2
	computeExclusiveProcess = 3
)

// mayCompute reports whether the compute mode of GPU i lets c make a context.
func (h *Host) mayCompute(c *client, i int) bool {
	switch h.gpus[i].nvml.fixed.ComputeMode {
	case computeProhibited:
		return false
	case computeExclusiveProcess:
		for _, o := range h.clients {
			if o.pid != c.pid && o.use[i].contexts > 0 {
				return false
			}
		}
	}
	return true
}

// setMode carries out what a management client asks to change. The caller
// holds mu; only root gets here.
func (h *Host) setMode(i int, mode, value uint64, data []byte) int32 {
	g := h.gpus[i]
	m := &g.nvml
	lo, hi := uint32(value), uint32(value>>32) //nolint:gosec // two halves
	onOff := func(to *uint32) int32 {
		if value > 1 {
			return nvmlInvalidArgument
		}
		*to = lo
		return 0
	}
	f := &m.fixed
	h.catchUp()
	h.sense(g) // what was until now follows the old setting
	switch mode {
	case wire.ModePersistence:
		return onOff(&f.Persistence)
	case wire.ModeCompute:
		if value > 3 {
			return nvmlInvalidArgument
		}
		if value == 1 { // exclusive thread: gone since CUDA 8
			return nvmlNotSupported
		}
		f.ComputeMode = lo
	case wire.ModeECC:
		if !m.facts.ECC.Supported {
			return nvmlNotSupported
		}
		return onOff(&f.ECCPending)
	case wire.ModePowerLimit:
		if value < uint64(m.facts.Power.MinLimitMW) || value > uint64(m.facts.Power.MaxLimitMW) {
			return nvmlInvalidArgument
		}
		m.powerLimit = lo
	case wire.ModeAppClocks:
		return m.setAppClocks(lo, hi)
	case wire.ModeLockedGraphics, wire.ModeLockedMemory:
		if lo > hi {
			return nvmlInvalidArgument
		}
		if mode == wire.ModeLockedGraphics {
			m.lockedGraphics = [2]uint32{lo, hi}
		} else {
			m.lockedMemory = [2]uint32{lo, hi}
		}
	case wire.ModeAccounting:
		if value == 0 {
			m.gone = nil
		}
		return onOff(&f.Accounting)
	case wire.ModeClearAccounting:
		m.gone = nil
	case wire.ModeClearECC:
		if !m.facts.ECC.Supported {
			return nvmlNotSupported
		}
		if value > 1 {
			return nvmlInvalidArgument
		}
		f.ECC[0][value], f.ECC[1][value] = [wire.ECCPlaces]uint64{}, [wire.ECCPlaces]uint64{}
	case wire.ModeMIG:
		return h.setMIG(i, value)
	case wire.ModeAPIRestriction:
		if lo > 1 || hi > 1 {
			return nvmlInvalidArgument
		}
		f.Restricted[lo] = hi
	case wire.ModeAutoBoost:
		return onOff(&f.AutoBoost)
	case wire.ModeFan:
		return m.setFan(value)
	case wire.ModeDrain:
		return onOff(&f.Drain)
	case wire.ModeAcoustic:
		if value < 65 || value > uint64(m.facts.Thermal.MaxOperatingC) {
			return nvmlInvalidArgument
		}
		f.Acoustic = lo
	case wire.ModeGraphicsOffset:
		f.GraphicsOffset = int32(lo) //nolint:gosec // signed on the wire
	case wire.ModeMemoryOffset:
		f.MemoryOffset = int32(lo) //nolint:gosec // signed on the wire
	case wire.ModePowerProfiles:
		if !m.facts.PowerProfiles {
			return nvmlNotSupported
		}
		f.PowerProfiles = value
	case wire.ModeHostname:
		f.Hostname = [64]byte{}
		copy(f.Hostname[:len(f.Hostname)-1], data)
	default:
		return nvmlInvalidArgument
	}
	return 0
}

func (m *management) setAppClocks(memory, graphics uint32) int32 {
	c := &m.facts.Clocks
	if c.GraphicsApp == 0 {
		return nvmlNotSupported
	}
	if memory == 0 && graphics == 0 {
		m.appMemory, m.appGraphics = 0, 0
		return 0
	}
	for _, mhz := range c.Memory {
		if mhz == memory && graphics >= c.GraphicsIdle && graphics <= c.GraphicsMax &&
			(c.GraphicsMax-graphics)%c.GraphicsStep == 0 {
			m.appMemory, m.appGraphics = memory, graphics
			return 0
		}
	}
	return nvmlInvalidArgument
}

func (m *management) setFan(percent uint64) int32 {
	switch f := &m.facts.Fan; {
	case f.Count == 0:
		return nvmlNotSupported
	case percent == 255:
		m.fanManual = false
	case percent > 100 || percent < uint64(f.MinPct):
		return nvmlInvalidArgument
	default:
		m.fan, m.fanManual = uint32(percent), true
	}
	return 0
}
