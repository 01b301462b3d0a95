// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// quietHost is a host whose clock only the test moves.
func quietHost(t *testing.T, card string) *Host {
	t.Helper()
	p, err := profile.Load(card)
	if err != nil {
		t.Fatal(err)
	}
	h, err := New(Config{GPUs: []profile.GPU{p.GPU}, Clock: Clock{Virtual: true, QueryCost: time.Microsecond}, Seed: "test"},
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// after lets the engine be busy for a part of each period up to a moment.
func (h *Host) after(seconds float64, busy float64) wire.Sensors {
	g := h.gpus[0]
	end := h.machine.Now() + int64(seconds*1e9)
	for h.machine.Now() < end {
		now := h.machine.Now()
		next := min(end, (now/windowLength+1)*windowLength)
		ns := int64(busy * float64(next-now))
		g.windows.add(1, now, next, ns)
		g.nvml.total += ns
		h.machine.Advance(next)
	}
	return h.read(g)
}

func TestSensorsFollowTheLoad(t *testing.T) {
	h := quietHost(t, "h100")
	f := &h.gpus[0].nvml.facts
	idle := h.after(60, 0)
	if idle.Temperature != f.Thermal.IdleC || idle.Power != f.Power.IdleMW || idle.Reasons != reasonIdle || idle.Busy[0] != 0 {
		t.Errorf("idle: %d C, %d mW, reasons %#x, %d %%", idle.Temperature, idle.Power, idle.Reasons, idle.Busy[0])
	}
	tau := float64(f.Thermal.SecondsTau)
	rise := h.after(tau, 1)
	want := float64(f.Thermal.IdleC) + float64(f.Thermal.FullC-f.Thermal.IdleC)*(1-1/math.E)
	if math.Abs(float64(rise.Temperature)-want) > 1 || rise.Busy[0] != 100 || rise.Clock[1] != f.Clocks.GraphicsMax {
		t.Errorf("after one time constant: %d C, want %.1f; %d %% at %d MHz", rise.Temperature, want, rise.Busy[0], rise.Clock[1])
	}
	hot := h.after(10*tau, 1)
	if hot.Temperature != f.Thermal.FullC || hot.Power != f.Power.FullMW {
		t.Errorf("settled: %d C, %d mW, want %d and %d", hot.Temperature, hot.Power, f.Thermal.FullC, f.Power.FullMW)
	}
	used := float64(hot.EnergyMJ-rise.EnergyMJ) / (10 * tau)
	if math.Abs(used/float64(f.Power.FullMW)-1) > 0.01 {
		t.Errorf("energy of %.0f mJ a second, power %d mW", used, f.Power.FullMW)
	}
	half := h.after(10*tau, 0.5)
	if half.Busy[0] != 50 || half.Temperature <= f.Thermal.IdleC || half.Temperature >= f.Thermal.FullC {
		t.Errorf("half busy: %d %%, %d C", half.Busy[0], half.Temperature)
	}
}

// One look after a long time gives the same energy as many.
func TestSensorsDoNotDependOnWhenOneLooks(t *testing.T) {
	a, b := quietHost(t, "h100"), quietHost(t, "h100")
	for range 100 {
		a.after(1, 0.3)
		a.sense(a.gpus[0])
	}
	x, y := a.read(a.gpus[0]), b.after(100, 0.3)
	if d := math.Abs(float64(x.EnergyMJ)/float64(y.EnergyMJ) - 1); d > 0.005 || x.Temperature != y.Temperature {
		t.Errorf("energy %d and %d mJ, %d and %d C", x.EnergyMJ, y.EnergyMJ, x.Temperature, y.Temperature)
	}
}

func TestLimitsHoldTheClockDown(t *testing.T) {
	h := quietHost(t, "h100")
	m := &h.gpus[0].nvml
	if r := h.setMode(0, wire.ModePowerLimit, uint64(m.facts.Power.MinLimitMW), nil); r != 0 {
		t.Fatal(r)
	}
	s := h.after(30, 1)
	if s.Reasons&reasonPowerCap == 0 || s.Power > m.facts.Power.MinLimitMW || s.Clock[1] >= m.facts.Clocks.GraphicsMax {
		t.Errorf("capped: reasons %#x, %d mW, %d MHz", s.Reasons, s.Power, s.Clock[1])
	}
	if s.ViolationNS[violationPower] < 25e9 {
		t.Errorf("held down by power for %d ns of 30 s", s.ViolationNS[violationPower])
	}
	h.setMode(0, wire.ModePowerLimit, uint64(m.facts.Power.MaxLimitMW), nil)
	for _, tc := range []struct {
		temp   string
		reason uint64
	}{{"88", reasonSWThermal}, {"95", reasonHW | reasonHWThermal}, {"60", 0}} {
		if err := h.Set(0, []string{"temp=" + tc.temp}); err != nil {
			t.Fatal(err)
		}
		s := h.after(5, 1)
		slow := s.Clock[1] < m.facts.Clocks.GraphicsMax
		if s.Reasons != tc.reason || slow != (tc.reason != 0) {
			t.Errorf("at %s C: reasons %#x, %d MHz", tc.temp, s.Reasons, s.Clock[1])
		}
	}
}

// Every setting does what it says; one without a row here fails.
func TestSettings(t *testing.T) {
	h := quietHost(t, "h100")
	pinned := []struct {
		set  string
		want uint64
		get  func(*wire.Sensors) uint64
	}{
		{"temp=91", 91, func(s *wire.Sensors) uint64 { return uint64(s.Temperature) }},
		{"temp.memory=77", 77, func(s *wire.Sensors) uint64 { return uint64(s.MemoryTemperature) }},
		{"power=321", 321000, func(s *wire.Sensors) uint64 { return uint64(s.Power) }},
		{"power.limit=500", 500000, func(s *wire.Sensors) uint64 { return uint64(s.PowerLimit) }},
		{"fan=63", 63, func(s *wire.Sensors) uint64 { return uint64(s.Fan) }},
		{"clock.sm=1200", 1200, func(s *wire.Sensors) uint64 { return uint64(s.Clock[1]) }},
		{"clock.graphics=1300", 1300, func(s *wire.Sensors) uint64 { return uint64(s.Clock[0]) }},
		{"clock.memory=1593", 1593, func(s *wire.Sensors) uint64 { return uint64(s.Clock[2]) }},
		{"clock.video=900", 900, func(s *wire.Sensors) uint64 { return uint64(s.Clock[3]) }},
		{"pstate=2", 2, func(s *wire.Sensors) uint64 { return uint64(s.PState) }},
		{"utilization=37", 37, func(s *wire.Sensors) uint64 { return uint64(s.Busy[0]) }},
		{"utilization.memory=11", 11, func(s *wire.Sensors) uint64 { return uint64(s.Busy[1]) }},
		{"utilization.encoder=12", 12, func(s *wire.Sensors) uint64 { return uint64(s.Busy[2]) }},
		{"utilization.decoder=13", 13, func(s *wire.Sensors) uint64 { return uint64(s.Busy[3]) }},
		{"utilization.jpeg=14", 14, func(s *wire.Sensors) uint64 { return uint64(s.Busy[4]) }},
		{"utilization.ofa=15", 15, func(s *wire.Sensors) uint64 { return uint64(s.Busy[5]) }},
		{"pcie.generation=1", 1, func(s *wire.Sensors) uint64 { return uint64(s.PCIeGeneration) }},
		{"pcie.width=8", 8, func(s *wire.Sensors) uint64 { return uint64(s.PCIeWidth) }},
		{"pcie.tx=1000", 1000, func(s *wire.Sensors) uint64 { return uint64(s.PCIeTxKBps) }},
		{"pcie.rx=2000", 2000, func(s *wire.Sensors) uint64 { return uint64(s.PCIeRxKBps) }},
		{"pcie.replays=5", 5, func(s *wire.Sensors) uint64 { return uint64(s.PCIeReplays) }},
		{"throttle=sw_power_cap,hw_slowdown", reasonPowerCap | reasonHW, func(s *wire.Sensors) uint64 { return s.Reasons }},
		{"ecc.corrected=3", 3, func(s *wire.Sensors) uint64 { return s.ECC[0][0][2] }},
		{"ecc.uncorrected=sram:2", 2, func(s *wire.Sensors) uint64 { return s.ECC[1][1][7] }},
		{"ecc.mode=off", 0, func(s *wire.Sensors) uint64 { return uint64(s.ECCMode) }},
		{"remapped.failure=1", 1, func(s *wire.Sensors) uint64 { return uint64(s.RemapFailed) }},
		{"nvlink.errors=9", 9, func(s *wire.Sensors) uint64 { return s.NVLinkErrors }},
		{"recovery=2", 2, func(s *wire.Sensors) uint64 { return uint64(s.Recovery) }},
		{"persistence=off", 0, func(s *wire.Sensors) uint64 { return uint64(s.Persistence) }},
		{"compute-mode=prohibited", 2, func(s *wire.Sensors) uint64 { return uint64(s.ComputeMode) }},
		{"accounting=on", 1, func(s *wire.Sensors) uint64 { return uint64(s.Accounting) }},
		{"mig.mode=on", 1, func(s *wire.Sensors) uint64 { return uint64(s.MIG) }},
		{"process-memory=unavailable", 0, func(s *wire.Sensors) uint64 { return uint64(s.ProcessMemory) }},
		{"thermal.temperature_gpu_c=92", 92, func(s *wire.Sensors) uint64 { return uint64(s.Temperature) }}, // the mock's name
	}
	// These have tests of their own: xid and library-version in simgpu/test, the rest below.
	seen := map[string]bool{"xid": true, "library-version": true, "samples": true, "sharing": true, "temp.ambient": true}
	for _, tc := range pinned {
		if err := h.Set(0, []string{tc.set}); err != nil {
			t.Errorf("%s: %v", tc.set, err)
			continue
		}
		s := h.read(h.gpus[0])
		if strings.HasPrefix(tc.set, "utilization=") { // the model follows it
			s = h.after(1, 0)
		}
		if got := tc.get(&s); got != tc.want {
			t.Errorf("%s: reads %d, want %d", tc.set, got, tc.want)
		}
		seen[strings.SplitN(tc.set, "=", 2)[0]] = true
	}
	for _, s := range Settings() {
		if !seen[s.Key] {
			t.Errorf("setting %s has no test", s.Key)
		}
	}
	if err := h.Set(0, []string{"temp=auto", "power=auto"}); err != nil {
		t.Fatal(err)
	}
	if s := h.read(h.gpus[0]); s.Temperature >= 91 {
		t.Errorf("after auto: %d C", s.Temperature)
	}
	for bad, want := range map[string]string{
		"tmp=5": "did you mean temp?", "temp=400": "0 to 130", "temp": "KEY=VALUE", "power.limit=5": "200 to 700 W",
		"persistence=onn": "did you mean on?", "samples=never": "missing", "ecc.uncorrected=x:1": "error correction is off",
		"throttle=cold": "gpu_idle", "mig.mode=off!": "off, on", "zzz=1": "simgpu set --help",
	} {
		if err := h.Set(0, []string{bad}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", bad, err, want)
		}
	}
	warm := quietHost(t, "h100")
	if err := warm.Set(0, []string{"temp.ambient=42"}); err != nil {
		t.Fatal(err)
	}
	if s, f := warm.after(600, 0), &warm.gpus[0].nvml.facts; s.Temperature != f.Thermal.IdleC+20 {
		t.Errorf("20 degrees warmer air: %d C", s.Temperature)
	}
}

func TestSamples(t *testing.T) {
	h := quietHost(t, profile.Exact)
	g := h.gpus[0]
	count := func() (n int, newest uint64) {
		b := h.samples(g, 0, queryRoom)
		if len(b) < 16 {
			return 0, 0
		}
		return len(b) / 16, uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48
	}
	must := func(values ...string) {
		t.Helper()
		if err := h.Set(0, values); err != nil {
			t.Fatal(err)
		}
	}
	h.after(3.1, 0.5)
	_, first := count()
	must("samples=late:500ms")
	if _, late := count(); first-late < 400000 || first-late > 600000 {
		t.Errorf("late by %d us, want 500 ms", first-late)
	}
	must("samples=auto", "samples=batch:1s")
	_, batched := count()
	h.after(0.5, 0.5)
	if _, same := count(); same != batched {
		t.Error("a sample came out within a batch's second")
	}
	must("samples=auto", "samples=missing")
	if n, _ := count(); n != 0 {
		t.Errorf("%d samples, want none", n)
	}
	must("samples=auto", "samples=zero")
	if b := h.samples(g, 0, queryRoom); b[12] != 50 || b[28] != 0 || b[24] != 1 {
		t.Errorf("GPU %d %%, process %d: %d %%; want 50 and 0", b[12], b[24], b[28])
	}
	must("samples=auto")
	at := h.machine.Now() / windowLength * windowLength
	g.windows.add(1, at, at+windowLength/2, windowLength/2)
	g.windows.add(2, at+windowLength/2, at+windowLength, windowLength/2)
	h.machine.Advance(at + windowLength + 1)
	must("sharing=deflated")
	if b := h.samples(g, 0, queryRoom); b[28] != 0 || b[44] != 50 {
		t.Errorf("of two that share, %d and %d %% are seen, want 0 and 50", b[28], b[44])
	}
	if h2 := quietHost(t, "t4"); h2.gpus[0].nvml.sampling.batchNS != int64(time.Second) {
		t.Error("samples of a real card come out at once")
	}
}

func TestReset(t *testing.T) {
	h := quietHost(t, "a100")
	if err := h.Set(0, []string{"ecc.uncorrected=1"}); err != nil {
		t.Fatal(err)
	}
	if r := h.setMode(0, wire.ModeECC, 0, nil); r != 0 {
		t.Fatal(r)
	}
	s := h.read(h.gpus[0])
	if s.RemapPending != 1 || s.RemappedUncorrected != 1 || s.Recovery != 1 || s.ECCMode != 1 || s.ECCPending != 0 {
		t.Errorf("before a reset: %+v", s)
	}
	h.gpus[0].nvml.reset()
	s = h.read(h.gpus[0])
	if s.RemapPending != 0 || s.Recovery != 0 || s.ECCMode != 0 || s.ECC[1][0][2] != 0 || s.ECC[1][1][2] != 1 {
		t.Errorf("after a reset: pending %d, mode %d, counts %d and %d", s.RemapPending, s.ECCMode, s.ECC[1][0][2], s.ECC[1][1][2])
	}
}
