// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package profile says what the simulated GPUs of a node are like: profiles in
// YAML, those of real cards embedded, others read from files.
//
// A file has the form of a configuration of NVIDIA's NVML mock (its names where
// it has them, so that its files can be used), plus what a CUDA driver has to
// know. Reading is strict: a field that is not known, of the wrong unit or out of
// range is an error that names it. The package starts nothing and knows no host.
package profile

import "time"

// Profile is what one file describes: a kind of card, and if it lists them, the
// devices of a node.
type Profile struct {
	Name    string   // of the file, without directory and ending
	Driver  string   // release that the node runs, "580"; empty: the default
	GPU     GPU      // every device, unless Devices says otherwise
	Devices []GPU    // the devices that the file lists, with its defaults filled in
	Ignored []string // fields of NVIDIA's mock that nothing here simulates
}

// GPU is one card. Fields are called as in NVIDIA's NVML mock where it has them.
// A zero value switches off what it describes.
type GPU struct {
	Profile string // name of the profile that it is from
	// Name as NVML says it; "(SIMULATED)" is appended by the host.
	Name string `yaml:"name" max:"70"`
	// Brand and Architecture in lower case, as NVML's enumerations have them.
	Brand           string         `yaml:"brand" oneof:"unknown,quadro,tesla,nvs,grid,geforce,titan,nvidia_vapps,nvidia_vpc,nvidia_vcs,nvidia_vws,nvidia_cloud_gaming,quadro_rtx,nvidia_rtx,nvidia,geforce_rtx,titan_rtx"`
	Architecture    string         `yaml:"architecture" oneof:"kepler,maxwell,pascal,volta,turing,ampere,ada_lovelace,hopper,blackwell"`
	Capability      Capability     `yaml:"compute_capability"`
	Cores           int            `yaml:"num_gpu_cores" min:"0" max:"1000000"` // CUDA cores
	Serial          string         `yaml:"serial" max:"31"`                     // empty: made from the index
	UUID            string         `yaml:"uuid" max:"40"`                       // GPU-…; empty: made from the node's directory and the index
	BoardPartNumber string         `yaml:"board_part_number" max:"63"`
	VBIOS           string         `yaml:"vbios_version" max:"31"`
	Multiprocessor  Multiprocessor `yaml:"multiprocessor"`
	Memory          Memory         `yaml:"memory"`
	BAR1            BAR1           `yaml:"bar1_memory"`
	PCI             PCI            `yaml:"pci"`
	PCIe            PCIe           `yaml:"pcie"`
	Power           Power          `yaml:"power"`
	Thermal         Thermal        `yaml:"thermal"`
	Fan             Fan            `yaml:"fan"`
	Clocks          Clocks         `yaml:"clocks"`
	ECC             ECC            `yaml:"ecc"`
	MIG             MIG            `yaml:"mig"`
	// PeerAccess tells whether cards of this kind reach each other directly, over
	// NVLink if they have it, else over PCIe (GeForce cards of late do not).
	PeerAccess bool              `yaml:"peer_access"`
	NVLink     NVLink            `yaml:"nvlink"` // beside device_defaults in a file, as the mock has it
	Inforom    map[string]string `yaml:"inforom"`
	Engine     Engine            `yaml:"engine"`
	Media      Media             `yaml:"media"`
	Monitoring Monitoring        `yaml:"monitoring"`
	// Override sets device attributes that the other fields do not lead to, by name:
	// PAGEABLE_MEMORY_ACCESS: 1.
	Override map[string]int `yaml:"attributes" min:"-2147483648" max:"2147483647"`
}

// Capability is the compute capability.
type Capability struct {
	Major int `yaml:"major" min:"3" max:"12"`
	Minor int `yaml:"minor" min:"0" max:"9"`
}

// Number is 90 for capability 9.0.
func (c Capability) Number() int { return c.Major*10 + c.Minor }

// Multiprocessor is what a CUDA program sees of one of them, and their number.
// Source: CUDA programming guide, technical specifications per capability; what
// it does not tell is filled in from the capability when a file says nothing.
type Multiprocessor struct {
	Count              int    `yaml:"count" min:"1" max:"1024"`
	MaxThreads         int    `yaml:"max_threads" min:"32" max:"4096"`
	MaxBlocks          int    `yaml:"max_blocks" min:"1" max:"64"`
	Registers          int    `yaml:"registers" min:"1" max:"1048576"`
	SharedBytes        uint64 `yaml:"shared_memory_bytes" max:"16777216"`
	BlockSharedBytes   uint64 `yaml:"shared_memory_per_block_bytes" max:"16777216"`
	BlockOptinBytes    uint64 `yaml:"shared_memory_per_block_optin_bytes" max:"16777216"`
	BlockReservedBytes uint64 `yaml:"shared_memory_reserved_per_block_bytes" max:"65536"`
	L2Bytes            uint64 `yaml:"l2_cache_bytes" max:"2147483647"`
	PersistingL2Bytes  uint64 `yaml:"l2_persisting_bytes" max:"2147483647"`
	AsyncEngines       int    `yaml:"async_engines" min:"0" max:"16"` // copy engines that cuDeviceGetAttribute reports
	DoubleRatio        int    `yaml:"single_to_double_ratio" min:"1" max:"64"`
}

// Memory is device memory. What NVML calls total is TotalBytes; what CUDA calls
// total is that without ReservedBytes (observed: RTX PRO 6000, H100, A100).
type Memory struct {
	TotalBytes    uint64 `yaml:"total_bytes" min:"1048576" max:"17592186044416"`
	ReservedBytes uint64 `yaml:"reserved_bytes" max:"17592186044416"` // the driver's own
	BusWidth      int    `yaml:"memory_bus_width" min:"32" max:"16384"`
	// ContextBytes is what a CUDA context costs before the first allocation.
	ContextBytes uint64     `yaml:"context_bytes" max:"17592186044416"`
	Allocation   Allocation `yaml:"allocation"`
}

// Usable is what contexts and allocations can have: CUDA's total.
func (m Memory) Usable() uint64 { return m.TotalBytes - min(m.ReservedBytes, m.TotalBytes) }

// BAR1 is the window through which the host sees device memory.
type BAR1 struct {
	TotalBytes uint64 `yaml:"total_bytes" max:"17592186044416"`
}

// PCI identifies the card; the ids are the device's and vendor's in one word, as
// NVML has them (0x233010DE). BusID is 0000:1A:00.0; empty: made from the index.
type PCI struct {
	DeviceID    uint32 `yaml:"device_id"`
	SubsystemID uint32 `yaml:"subsystem_id"`
	BusID       string `yaml:"bus_id" max:"16"`
}

// PCIe is the link to the host.
type PCIe struct {
	MaxGen   int `yaml:"max_link_gen" min:"1" max:"7"`
	MaxWidth int `yaml:"max_link_width" min:"1" max:"32"`
	Gen      int `yaml:"current_link_gen" min:"0" max:"7"`    // 0: the greatest
	Width    int `yaml:"current_link_width" min:"0" max:"32"` // likewise
}

// Power holds the limits in milliwatts, and the draw of an idle card.
type Power struct {
	DefaultLimitMW  int `yaml:"default_limit_mw" min:"0" max:"10000000"`
	EnforcedLimitMW int `yaml:"enforced_limit_mw" min:"0" max:"10000000"`
	MinLimitMW      int `yaml:"min_limit_mw" min:"0" max:"10000000"`
	MaxLimitMW      int `yaml:"max_limit_mw" min:"0" max:"10000000"`
	IdleMW          int `yaml:"current_draw_mw" min:"0" max:"10000000"`
}

// Thermal holds temperatures in degrees Celsius: of an idle card, and limits.
type Thermal struct {
	IdleC         int `yaml:"temperature_gpu_c" min:"-40" max:"150"`
	MemoryIdleC   int `yaml:"temperature_memory_c" min:"-40" max:"150"` // 0: the card has no such sensor
	ShutdownC     int `yaml:"shutdown_threshold_c" min:"0" max:"150"`
	SlowdownC     int `yaml:"slowdown_threshold_c" min:"0" max:"150"`
	MaxOperatingC int `yaml:"max_operating_c" min:"0" max:"150"`
	TargetC       int `yaml:"target_temperature_c" min:"0" max:"150"`
}

// Fan counts fans; 0: passively cooled, and NVML has no speed.
type Fan struct {
	Count int `yaml:"count" min:"0" max:"8"`
}

// Clocks are in MHz: the greatest of each domain, and those of an idle card.
type Clocks struct {
	SMMax     int `yaml:"sm_max" min:"1" max:"10000"`
	MemoryMax int `yaml:"memory_max" min:"1" max:"50000"`
	VideoMax  int `yaml:"video_max" min:"1" max:"10000"`
	// Boost is what CUDA calls the clock rate; 0: SMMax. GeForce cards go beyond it.
	Boost       int `yaml:"boost" min:"0" max:"10000"`
	GraphicsApp int `yaml:"graphics_app_default" min:"0" max:"10000"`
	SMIdle      int `yaml:"sm_current" min:"0" max:"10000"`
	MemoryIdle  int `yaml:"memory_current" min:"0" max:"50000"`
	VideoIdle   int `yaml:"video_current" min:"0" max:"10000"`
}

// ECC is "enabled", "disabled", or empty for a card without.
type ECC struct {
	Current string `yaml:"mode_current" oneof:",enabled,disabled"`
	Pending string `yaml:"mode_pending" oneof:",enabled,disabled"`
	Default string `yaml:"default_mode" oneof:",enabled,disabled"`
}

// MIG tells how the card can be partitioned; 0 instances: it cannot.
type MIG struct {
	Current      string `yaml:"mode_current" oneof:",enabled,disabled"`
	Pending      string `yaml:"mode_pending" oneof:",enabled,disabled"`
	MaxInstances int    `yaml:"max_gpu_instances" min:"0" max:"8"`
}

// NVLink tells how cards of this kind are connected; version 0: they are not.
type NVLink struct {
	Version       int  `yaml:"version" min:"0" max:"6"`
	Links         int  `yaml:"links_per_gpu" min:"0" max:"36"`
	BandwidthMBps int  `yaml:"bandwidth_per_link_mbps" min:"0" max:"1000000"` // MB/s a direction, as NVML counts
	C2C           bool `yaml:"c2c_enabled"`                                   // the link to a Grace processor is in use
}

// Media counts the fixed-function engines.
type Media struct {
	Encoders int `yaml:"encoders" min:"0" max:"16"`
	Decoders int `yaml:"decoders" min:"0" max:"16"`
	JPEG     int `yaml:"jpeg" min:"0" max:"16"`
	OFA      int `yaml:"ofa" min:"0" max:"16"` // optical flow
}

// Monitoring is what the management library can say of processes.
type Monitoring struct {
	// ProcessMemory unavailable: no bytes in process lists, as under WSL and vGPU.
	ProcessMemory string `yaml:"process_memory" oneof:",available,unavailable"`
	// SampleBatch is how often utilisation samples come out; 0: each at its period's
	// end. Source: readers of the real library see them up to a second late.
	SampleBatch time.Duration `yaml:"sample_batch" min:"0s" max:"10s"`
}
