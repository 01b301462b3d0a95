// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"strings"

	"github.com/gpushare/gpushare/simgpu/profile"
)

// facts is what the management library says of a card and never changes, and
// the constants of the models behind temperature, power and clocks. All of it
// follows from the card's profile.
type facts struct {
	Brand, Architecture, BoardPartNumber, VBIOSVersion string

	HasSerial, GSPFirmware, DisplayActive, Confidential, GPM, PowerProfiles, PCIPeers bool

	ProcessMemory  string // "unavailable" as under WSL and vGPU
	SampleBatchMS  uint32 // utilisation samples come out together so often; 0: each at once
	CoresPerSM     uint32
	MemoryBusWidth uint32
	BAR1Bytes      uint64

	Inforom struct{ ImageVersion, OEMObject, ECCObject, PowerObject string }
	PCIe    struct{ MaxLinkGen, MaxLinkWidth, LinkGen, LinkWidth uint32 } // the latter: under load
	// Power is in milliwatts. IdleMW is drawn without work, FullMW by an engine that
	// is never idle, at the highest clock.
	Power struct{ DefaultLimitMW, MinLimitMW, MaxLimitMW, IdleMW, FullMW uint32 }
	// Thermal is in degrees Celsius: the card settles at IdleC without work and at
	// FullC at FullMW, with the time constant SecondsTau. Above MaxOperatingC clocks
	// fall, above SlowdownC the hardware halves them.
	Thermal struct {
		IdleC, FullC, SecondsTau, MaxOperatingC, SlowdownC, ShutdownC, TargetC uint32
		MemoryMaxC                                                             uint32 // 0: no sensor in the memory
	}
	Fan    struct{ Count, MinPct, MaxRPM uint32 }
	Clocks struct { // MHz
		GraphicsMax, GraphicsApp, GraphicsIdle, GraphicsStep, VideoMax, VideoIdle uint32
		Memory                                                                    []uint32 // highest first
		IdlePState                                                                uint32
	}
	ECC    struct{ Supported, Default, RowRemapper bool }
	Media  struct{ Encoders, Decoders, JPEG, OFA uint32 }
	NVLink struct {
		Version, Links, LinkMBps uint32
		Switch, C2C              bool
	}
	MIG migLayout
}

// Parts of the models that profiles leave open; plausible, not measured.
const (
	fullDraw      = 0.97 // of the default limit
	fullBelow     = 15   // degrees below the highest operating temperature
	timeConstantS = 25
	clockStepMHz  = 15
)

// generation orders architectures.
var generation = map[string]int{
	"kepler": 0, "maxwell": 1, "pascal": 2, "volta": 3, "turing": 4, "ampere": 5, "ada_lovelace": 6, "hopper": 7, "blackwell": 8,
}

// factsOf derives the facts from a profile.
func factsOf(p *profile.GPU) facts {
	u := func(n int) uint32 { return uint32(max(n, 0)) } //nolint:gosec // bounded by the profile
	consumer := strings.HasPrefix(p.Brand, "geforce") || strings.HasPrefix(p.Brand, "titan")
	age := generation[p.Architecture]
	f := facts{
		Brand: p.Brand, Architecture: p.Architecture, BoardPartNumber: p.BoardPartNumber, VBIOSVersion: p.VBIOS,
		HasSerial: !consumer, GSPFirmware: age >= generation["turing"], PCIPeers: !consumer,
		Confidential: age >= generation["hopper"] && !consumer, GPM: age >= generation["hopper"],
		PowerProfiles: age >= generation["blackwell"] && p.NVLink.Version > 0,
		ProcessMemory: p.Monitoring.ProcessMemory, SampleBatchMS: u(int(p.Monitoring.SampleBatch.Milliseconds())),
		MemoryBusWidth: u(p.Memory.BusWidth), BAR1Bytes: p.BAR1.TotalBytes,
	}
	if p.Multiprocessor.Count > 0 {
		f.CoresPerSM = u(p.Cores / p.Multiprocessor.Count)
	}
	inforom := func(key string) string {
		if v := p.Inforom[key]; v != "N/A" {
			return v
		}
		return ""
	}
	f.Inforom.ImageVersion, f.Inforom.OEMObject = inforom("image_version"), inforom("oem_object")
	f.Inforom.ECCObject, f.Inforom.PowerObject = inforom("ecc_object"), inforom("pwr_object")
	f.PCIe.MaxLinkGen, f.PCIe.MaxLinkWidth = u(p.PCIe.MaxGen), u(p.PCIe.MaxWidth)
	f.PCIe.LinkGen, f.PCIe.LinkWidth = u(cmp.Or(p.PCIe.Gen, p.PCIe.MaxGen)), u(cmp.Or(p.PCIe.Width, p.PCIe.MaxWidth))
	f.Power.DefaultLimitMW, f.Power.MinLimitMW = u(p.Power.DefaultLimitMW), u(p.Power.MinLimitMW)
	f.Power.MaxLimitMW, f.Power.IdleMW = u(p.Power.MaxLimitMW), u(p.Power.IdleMW)
	f.Power.FullMW = max(uint32(fullDraw*float64(f.Power.DefaultLimitMW)), f.Power.IdleMW+1)
	t := &f.Thermal
	t.MaxOperatingC, t.SlowdownC = u(p.Thermal.MaxOperatingC), u(p.Thermal.SlowdownC)
	t.ShutdownC, t.TargetC = u(p.Thermal.ShutdownC), u(p.Thermal.TargetC)
	if t.TargetC == 0 {
		t.TargetC = t.MaxOperatingC
	}
	t.IdleC, t.SecondsTau = u(p.Thermal.IdleC), timeConstantS
	t.FullC = max(t.MaxOperatingC, t.IdleC+fullBelow) - fullBelow
	if p.Thermal.MemoryIdleC != 0 {
		t.MemoryMaxC = t.ShutdownC
	}
	f.Fan.Count, f.Fan.MinPct, f.Fan.MaxRPM = u(p.Fan.Count), 30, 3500
	c := &f.Clocks
	c.GraphicsMax, c.GraphicsApp, c.GraphicsIdle = u(p.Clocks.SMMax), u(p.Clocks.GraphicsApp), u(p.Clocks.SMIdle)
	c.GraphicsStep, c.VideoMax, c.VideoIdle = clockStepMHz, u(p.Clocks.VideoMax), u(p.Clocks.VideoIdle)
	c.Memory = []uint32{u(p.Clocks.MemoryMax)}
	if idle := u(p.Clocks.MemoryIdle); idle != 0 && idle < c.Memory[0] {
		c.Memory = append(c.Memory, idle)
		c.IdlePState = 8
	}
	f.ECC.Supported, f.ECC.Default = p.ECC.Current != "", p.ECC.Default == "enabled"
	f.ECC.RowRemapper = f.ECC.Supported && age >= generation["ampere"] && !consumer
	f.Media.Encoders, f.Media.Decoders = u(p.Media.Encoders), u(p.Media.Decoders)
	f.Media.JPEG, f.Media.OFA = u(p.Media.JPEG), u(p.Media.OFA)
	f.NVLink.Version, f.NVLink.Links, f.NVLink.LinkMBps = u(p.NVLink.Version), u(p.NVLink.Links), u(p.NVLink.BandwidthMBps)
	f.NVLink.Switch, f.NVLink.C2C = p.NVLink.Version > 0, p.NVLink.C2C
	f.MIG = layoutOf(p)
	return f
}
