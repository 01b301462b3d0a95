// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Requests, modes and flags of lib/wire_nvml.h.
const (
	OpSensors           = 96
	OpMode              = 97
	OpAccounting        = 98
	OpMIGList           = 99
	OpMIGShapes         = 100
	OpMIGCreate         = 101
	OpMIGDestroy        = 102
	OpCICreate          = 103
	OpCIDestroy         = 104
	OpLimitSet          = 105
	OpLimitGet          = 106
	OpProcessesMIG      = 107
	OpEvents            = 108
	KindEvents          = 6
	ModePersistence     = 1
	ModeCompute         = 2
	ModeECC             = 3
	ModePowerLimit      = 4
	ModeAppClocks       = 5
	ModeLockedGraphics  = 6
	ModeLockedMemory    = 7
	ModeAccounting      = 8
	ModeClearAccounting = 9
	ModeClearECC        = 10
	ModeMIG             = 11
	ModeAPIRestriction  = 12
	ModeAutoBoost       = 13
	ModeFan             = 14
	ModeDrain           = 15
	ModeAcoustic        = 16
	ModeGraphicsOffset  = 17
	ModeMemoryOffset    = 18
	ModePowerProfiles   = 19
	ModeHostname        = 20
	CardSerial          = 0x1
	CardECC             = 0x2
	CardECCDefault      = 0x4
	CardRowRemapper     = 0x8
	CardGSP             = 0x10
	CardCC              = 0x20
	CardGPM             = 0x40
	CardPowerProfiles   = 0x80
	CardPCIPeers        = 0x100
	CardNVSwitch        = 0x200
	CardDisplay         = 0x400
	CardNoProcessMemory = 0x800
	CardC2C             = 0x1000
	MemoryClocks        = 4
	ECCPlaces           = 8
	Clocks              = 4
	Engines             = 6
	Violations          = 12
)

// Card is struct sg_card: what never changes about a card.
type Card struct {
	PartNumber     [32]byte
	VBIOS          [32]byte
	InforomImage   [16]byte
	InforomOEM     [16]byte
	InforomECC     [16]byte
	InforomPower   [16]byte
	BAR1Bytes      uint64
	Flags          uint32
	Brand          uint32
	Architecture   uint32
	CoresPerSM     uint32
	BusWidth       uint32
	PCIeGeneration uint32
	PCIeWidth      uint32
	PowerDefault   uint32
	PowerMin       uint32
	PowerMax       uint32
	TempOperating  uint32
	TempSlowdown   uint32
	TempShutdown   uint32
	TempMemory     uint32
	TempTarget     uint32
	Fans           uint32
	FanMin         uint32
	FanRPM         uint32
	GraphicsMax    uint32
	GraphicsApp    uint32
	GraphicsIdle   uint32
	GraphicsStep   uint32
	MemoryClock    [MemoryClocks]uint32
	VideoMax       uint32
	IdlePState     uint32
	Encoders       uint32
	Decoders       uint32
	JPEGs          uint32
	OFAs           uint32
	NVLinkVersion  uint32
	NVLinks        uint32
	NVLinkMBps     uint32
	MIGInstances   uint32
	MIGSlices      uint32
	_              uint32
}

// Sensors is struct sg_sensors: what a card measures now.
type Sensors struct {
	TimeUS              uint64
	EnergyMJ            uint64
	BusyNS              uint64
	Reasons             uint64
	ECC                 [2][2][ECCPlaces]uint64
	ViolationNS         [Violations]uint64
	NVLinkErrors        uint64
	StartUS             uint64
	PowerProfiles       uint64
	Temperature         uint32
	MemoryTemperature   uint32
	Power               uint32
	PowerInstant        uint32
	PowerLimit          uint32
	Fan                 uint32
	FanTarget           uint32
	FanManual           uint32
	Clock               [Clocks]uint32
	AppGraphics         uint32
	AppMemory           uint32
	PState              uint32
	Busy                [Engines]uint32
	Persistence         uint32
	ComputeMode         uint32
	ECCMode             uint32
	ECCPending          uint32
	MIG                 uint32
	MIGPending          uint32
	Accounting          uint32
	Restricted          [2]uint32
	AutoBoost           uint32
	Drain               uint32
	Acoustic            uint32
	GraphicsOffset      int32
	MemoryOffset        int32
	PCIeGeneration      uint32
	PCIeWidth           uint32
	PCIeTxKBps          uint32
	PCIeRxKBps          uint32
	PCIeReplays         uint32
	RemappedCorrected   uint32
	RemappedUncorrected uint32
	RemapPending        uint32
	RemapFailed         uint32
	Retired             [2]uint32
	RetirePending       uint32
	Recovery            uint32
	LibraryMismatch     uint32
	ProcessMemory       uint32
	Hostname            [64]byte
}

// Account is struct sg_account: the accounting of one process.
type Account struct {
	PID           uint32
	Running       uint32
	GPUPercent    uint32
	MemoryPercent uint32
	MaxBytes      uint64
	TimeMS        uint64
	StartUS       uint64
	Samples       uint64
	SumGPU        uint64
	SumMemory     uint64
}

// MIGInstance is struct sg_mig_instance: one GPU or compute instance.
type MIGInstance struct {
	UUID            [48]byte
	GI              uint32
	CI              uint32
	Profile         uint32
	Start           uint32
	Size            uint32
	Slices          uint32
	Multiprocessors uint32
	Index           uint32
	MemoryBytes     uint64
	UsedBytes       uint64
	Engines         [6]uint32
}

// MIGShape is struct sg_mig_shape: one shape of a GPU instance.
type MIGShape struct {
	Name                 [32]byte
	Index                uint32
	ID                   uint32
	Slices               uint32
	Count                uint32
	Multiprocessors      uint32
	SliceMultiprocessors uint32
	Size                 uint32
	Starts               uint32
	Remaining            uint32
	P2P                  uint32
	Engines              [6]uint32
	MemoryMiB            uint64
}

// Event is struct sg_event: one event.
type Event struct {
	GPU    uint32
	GI     uint32
	CI     uint32
	_      uint32
	Type   uint64
	Data   uint64
	TimeUS uint64
}
