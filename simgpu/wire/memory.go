// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wire

// Requests about memory that processes share, and what memory is taken for.
const (
	OpResize = 64
	OpShare  = 65
	OpExport = 66
	OpKey    = 67
	OpImport = 68

	KeyBytes  = 16
	NoteBytes = 256

	UseLinear   = 0
	UsePool     = 1
	UsePhysical = 2
	UseArray    = 3
	UseManaged  = 4
	UseModule   = 5
	UseGrowth   = 6
	UseGraph    = 7
	UseToken    = 8
	UseContext  = 9
	Uses        = 10

	CUDAOperatingSystem = 304
)

// MemoryRules is struct sg_memory_rules.
type MemoryRules struct {
	BlockBytes      uint64
	ModuleBytes     uint64
	PoolBytes       uint64
	ResidentThreads uint64
	StreamBytes     uint64
	GraphBytes      uint64
	GraphNodeBytes  uint64
	ManagedMigrates uint32
	Multicast       uint32
}
