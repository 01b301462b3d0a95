// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"github.com/gpushare/gpushare/simgpu/wire"
)

// Numbers of nvml.h.
var (
	brands = map[string]uint32{
		"quadro": 1, "tesla": 2, "geforce": 5, "quadro_rtx": 12, "nvidia_rtx": 13, "nvidia": 14, "geforce_rtx": 15,
	}
	architectures = map[string]uint32{
		"turing": 6, "ampere": 7, "ada_lovelace": 8, "hopper": 9, "blackwell": 10,
	}
)

// cardOf is what a client library reads of a card that never changes.
func cardOf(m *facts) wire.Card {
	c := wire.Card{
		BAR1Bytes: m.BAR1Bytes, Brand: brands[m.Brand],
		Architecture: architectures[m.Architecture], CoresPerSM: m.CoresPerSM, BusWidth: m.MemoryBusWidth,
		PCIeGeneration: m.PCIe.MaxLinkGen, PCIeWidth: m.PCIe.MaxLinkWidth,
		PowerDefault: m.Power.DefaultLimitMW, PowerMin: m.Power.MinLimitMW, PowerMax: m.Power.MaxLimitMW,
		TempOperating: m.Thermal.MaxOperatingC, TempSlowdown: m.Thermal.SlowdownC, TempShutdown: m.Thermal.ShutdownC,
		TempMemory: m.Thermal.MemoryMaxC, TempTarget: m.Thermal.TargetC,
		Fans: m.Fan.Count, FanMin: m.Fan.MinPct, FanRPM: m.Fan.MaxRPM,
		GraphicsMax: m.Clocks.GraphicsMax, GraphicsApp: m.Clocks.GraphicsApp, GraphicsIdle: m.Clocks.GraphicsIdle,
		GraphicsStep: m.Clocks.GraphicsStep, VideoMax: m.Clocks.VideoMax, IdlePState: m.Clocks.IdlePState,
		Encoders: m.Media.Encoders, Decoders: m.Media.Decoders, JPEGs: m.Media.JPEG, OFAs: m.Media.OFA,
		NVLinkVersion: m.NVLink.Version, NVLinks: m.NVLink.Links, NVLinkMBps: m.NVLink.LinkMBps,
		MIGInstances: m.MIG.MaxInstances, MIGSlices: m.MIG.Slices,
	}
	text := func(to []byte, s string) { copy(to[:len(to)-1], s) }
	text(c.PartNumber[:], m.BoardPartNumber)
	text(c.VBIOS[:], m.VBIOSVersion)
	text(c.InforomImage[:], m.Inforom.ImageVersion)
	text(c.InforomOEM[:], m.Inforom.OEMObject)
	text(c.InforomECC[:], m.Inforom.ECCObject)
	text(c.InforomPower[:], m.Inforom.PowerObject)
	copy(c.MemoryClock[:], m.Clocks.Memory)
	for flag, on := range map[uint32]bool{
		wire.CardSerial: m.HasSerial, wire.CardECC: m.ECC.Supported, wire.CardECCDefault: m.ECC.Default,
		wire.CardRowRemapper: m.ECC.RowRemapper, wire.CardGSP: m.GSPFirmware, wire.CardCC: m.Confidential,
		wire.CardGPM: m.GPM, wire.CardPowerProfiles: m.PowerProfiles, wire.CardPCIPeers: m.PCIPeers,
		wire.CardNVSwitch: m.NVLink.Switch, wire.CardDisplay: m.DisplayActive,
		wire.CardC2C:             m.NVLink.C2C,
		wire.CardNoProcessMemory: m.ProcessMemory == "unavailable",
	} {
		if on {
			c.Flags |= flag
		}
	}
	return c
}
