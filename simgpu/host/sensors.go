// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math"
	"time"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// Reasons for low clocks, nvml.h.
const (
	reasonIdle        = 0x1
	reasonApplication = 0x2
	reasonPowerCap    = 0x4
	reasonHW          = 0x8
	reasonSWThermal   = 0x20
	reasonHWThermal   = 0x40
)

// Counters of time spent below the wanted clock: nvmlPerfPolicyType_t.
const (
	violationPower     = 0
	violationThermal   = 1
	violationTotalApp  = 10
	violationTotalBase = 11
	ambientC           = 22
	slowdownParts      = 2 // a hardware slowdown leaves one part in so many of the clock
)

// sensors is a first-order model on simulated time: power follows how busy the
// engine was and its clock, temperature follows power with one time constant,
// clocks follow limits. It is brought forward when somebody looks, a sampling
// period at a time; what lies before the history of periods is taken as one
// stretch with its average.
type sensors struct {
	at        int64 // simulated up to here, the end of a period
	seen      int64 // engine time before at
	temp      float64
	power     float64 // mW in the last period
	smooth    float64 // mW, average over a second
	energy    float64 // mJ
	clock     float64 // MHz in the last period
	reasons   uint64
	busy      float64 // of the last period, 0 to 1
	violation [wire.Violations]int64
}

// sense brings the model of g forward. The caller holds mu and has caught up.
func (h *Host) sense(g *gpu) {
	m := &g.nvml
	now := h.machine.Now() / windowLength * windowLength
	oldest := now - (windowCount-2)*windowLength
	known := int64(0)
	from := max(m.model.at, oldest)
	for t := from; t < now; t += windowLength {
		known += g.windows.at(t / windowLength).busy
	}
	total := m.total - g.windows.at(now/windowLength).busy // up to now
	active := h.contexts(g) > 0
	if m.model.at < oldest {
		dt := oldest - m.model.at
		m.step(dt, float64(total-known-m.model.seen)/float64(dt), active)
	}
	for t := from; t < now; t += windowLength {
		m.step(windowLength, float64(g.windows.at(t/windowLength).busy)/float64(windowLength), active)
	}
	m.model.at, m.model.seen = now, total
}

// contexts counts the contexts on g.
func (h *Host) contexts(g *gpu) (n int) {
	for _, c := range h.clients {
		n += c.use[g.info.Minor].contexts
	}
	return n
}

// step lets dt nanoseconds pass with the engine busy for a part u of them.
func (m *management) step(dt int64, u float64, active bool) {
	f, s := &m.facts, &m.model
	if v, ok := m.pins["utilization"]; ok {
		u = float64(v) / 100
	}
	s.busy, s.reasons = u, 0
	idle, full := float64(f.Power.IdleMW), float64(f.Power.FullMW)
	most := float64(f.Clocks.GraphicsMax)
	want := m.wantedClock()
	clock := want
	if want < most {
		s.reasons |= reasonApplication
	}
	if t := m.temperature(); t >= float64(f.Thermal.SlowdownC) {
		clock = math.Min(clock, most/slowdownParts)
		s.reasons |= reasonHW | reasonHWThermal
	} else if over := t - float64(f.Thermal.MaxOperatingC); over >= 0 {
		room := float64(f.Thermal.SlowdownC - f.Thermal.MaxOperatingC)
		clock = math.Min(clock, most*(1-over/math.Max(room, 1)/slowdownParts))
		s.reasons |= reasonSWThermal
	}
	draw := idle + (full-idle)*u*clock/most
	if limit := float64(m.powerLimit); draw > limit {
		clock *= math.Max((limit-idle)/(draw-idle), 0.1)
		draw = math.Max(limit, idle)
		s.reasons |= reasonPowerCap
	}
	if u == 0 {
		s.reasons = s.reasons&^reasonApplication | reasonIdle
		if !active {
			clock = float64(f.Clocks.GraphicsIdle)
		}
	}
	if v, ok := m.pins["power"]; ok {
		draw = float64(v)
	}
	s.clock, s.power = clock, draw
	sec := float64(dt) / float64(time.Second)
	s.smooth += (draw - s.smooth) * (1 - math.Exp(-sec))
	s.energy += draw * sec
	target := float64(f.Thermal.IdleC) + m.ambient() +
		float64(f.Thermal.FullC-f.Thermal.IdleC)*(draw-idle)/(full-idle)
	s.temp += (target - s.temp) * (1 - math.Exp(-sec/float64(f.Thermal.SecondsTau)))
	for bit, i := range map[uint64]int{reasonPowerCap: violationPower, reasonSWThermal: violationThermal,
		reasonHWThermal: violationThermal} {
		if s.reasons&bit != 0 {
			s.violation[i] += dt
		}
	}
	if u > 0 && clock < want {
		s.violation[violationTotalApp] += dt
		s.violation[violationTotalBase] += dt
	}
}

// ambient is how much warmer than usual the air is.
func (m *management) ambient() float64 {
	if v, ok := m.pins["temp.ambient"]; ok {
		return float64(v - ambientC)
	}
	return 0
}

func (m *management) temperature() float64 {
	if v, ok := m.pins["temp"]; ok {
		return float64(v)
	}
	return m.model.temp
}

// wantedClock is the graphics clock that limits of the operator allow.
func (m *management) wantedClock() float64 {
	c := m.facts.Clocks.GraphicsMax
	if m.appGraphics != 0 {
		c = min(c, m.appGraphics)
	}
	if m.lockedGraphics[1] != 0 {
		c = min(c, m.lockedGraphics[1])
	}
	return float64(c)
}

// read fills in what the management library shows. Values that the operator
// set take the place of the model's.
func (h *Host) read(g *gpu) wire.Sensors {
	h.sense(g)
	m := &g.nvml
	s, f := &m.model, &m.facts
	active := s.busy > 0 || h.contexts(g) > 0
	pin := func(key string, v float64) uint32 {
		if p, ok := m.pins[key]; ok {
			return uint32(p) //nolint:gosec // checked when it was set
		}
		return uint32(math.Round(v))
	}
	r := m.fixed
	r.TimeUS = uint64((h.clock.epoch() + h.machine.Now()) / 1000) //nolint:gosec // after 1970
	r.BusyNS = uint64(m.total)                                    //nolint:gosec // not negative
	r.EnergyMJ, r.Reasons = uint64(s.energy), s.reasons           //nolint:gosec // not negative
	r.StartUS = uint64(h.clock.epoch()+h.started) / 1000          //nolint:gosec // likewise
	r.Temperature = pin("temp", math.Max(s.temp, 0))
	load := (s.power - float64(f.Power.IdleMW)) / math.Max(float64(f.Power.FullMW-f.Power.IdleMW), 1)
	r.MemoryTemperature = pin("temp.memory", m.temperature()+3+8*load)
	r.Power, r.PowerInstant = pin("power", s.smooth), pin("power", s.power)
	r.PowerLimit = m.powerLimit
	r.FanTarget = fanAt(f, m.temperature())
	if m.fanManual {
		r.FanTarget, r.FanManual = m.fan, 1
	}
	r.Fan = pin("fan", float64(r.FanTarget))
	memory, video := float64(lowest(f.Clocks.Memory)), float64(f.Clocks.VideoIdle)
	if active || f.Clocks.IdlePState == 0 {
		memory = float64(m.memoryClock())
	}
	if active {
		video = float64(f.Clocks.VideoMax) * s.clock / float64(f.Clocks.GraphicsMax)
	} else {
		r.PState = f.Clocks.IdlePState
	}
	graphics := pin("clock.sm", s.clock)
	r.Clock = [wire.Clocks]uint32{pin("clock.graphics", float64(graphics)), graphics, pin("clock.memory", memory),
		pin("clock.video", video)}
	r.PState = pin("pstate", float64(r.PState))
	if v, ok := m.pins["throttle"]; ok {
		r.Reasons = uint64(v) //nolint:gosec // bits
	}
	gpu := pin("utilization", s.busy*100)
	r.Busy = [wire.Engines]uint32{gpu, pin("utilization.memory", float64(gpu/2)), pin("utilization.encoder", 0),
		pin("utilization.decoder", 0), pin("utilization.jpeg", 0), pin("utilization.ofa", 0)}
	for i, v := range s.violation {
		r.ViolationNS[i] = uint64(v) //nolint:gosec // not negative
	}
	r.PCIeGeneration, r.PCIeWidth = f.PCIe.LinkGen, f.PCIe.LinkWidth
	if !active && f.Clocks.IdlePState != 0 {
		r.PCIeGeneration = 1 // the link is slow while nothing is asked of it
	}
	r.PCIeGeneration = pin("pcie.generation", float64(r.PCIeGeneration))
	r.PCIeWidth = pin("pcie.width", float64(r.PCIeWidth))
	r.PCIeTxKBps, r.PCIeRxKBps = pin("pcie.tx", 0), pin("pcie.rx", 0)
	r.AppGraphics, r.AppMemory = m.appGraphics, m.appMemory
	if r.AppGraphics == 0 {
		r.AppGraphics, r.AppMemory = f.Clocks.GraphicsApp, f.Clocks.Memory[0]
	}
	return r
}

func (m *management) memoryClock() uint32 {
	c := m.facts.Clocks.Memory[0]
	if m.appMemory != 0 {
		c = min(c, m.appMemory)
	}
	if m.lockedMemory[1] != 0 {
		c = min(c, m.lockedMemory[1])
	}
	return c
}

func lowest(v []uint32) uint32 {
	if len(v) == 0 {
		return 0
	}
	return v[len(v)-1]
}

// fanAt is the speed of the automatic fan in percent: it starts to rise 35
// degrees below the highest operating temperature.
func fanAt(f *facts, temp float64) uint32 {
	if f.Fan.Count == 0 {
		return 0
	}
	least := float64(f.Fan.MinPct)
	over := (temp - float64(f.Thermal.MaxOperatingC) + 35) / 35
	return uint32(math.Round(least + (100-least)*math.Min(math.Max(over, 0), 1)))
}
