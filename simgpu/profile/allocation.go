// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package profile

import "fmt"

// Allocation is how the driver takes device memory. Its zero value is exact:
// every allocation costs its size in units of 512 bytes, a context its fixed
// amount, and nothing grows by itself. docs/simgpu/memory.md has the sources.
type Allocation struct {
	// BlockBytes is the unit in which the driver takes memory from the card;
	// smaller allocations share a block in units of 512 bytes. 2 MiB on hardware
	// (reported: allocations round up to it). 0: exact.
	BlockBytes uint64 `yaml:"block_bytes" max:"1073741824"`
	// ContextNextBytes is what each further context of a process on a card costs;
	// 0: as much as the first.
	ContextNextBytes uint64 `yaml:"context_next_bytes" max:"17592186044416"`
	// ModuleBytes is the least that the code of a module takes, and what it rounds
	// up to, when its first function runs (or at load with eager loading).
	ModuleBytes uint64 `yaml:"module_bytes" max:"1073741824"`
	// PoolBytes is what a stream-ordered pool grows by; 0: by each allocation,
	// which goes back when it is freed.
	PoolBytes uint64 `yaml:"pool_bytes" max:"1073741824"`
	// ResidentThreads of a multiprocessor: local memory (the stack limit, or what
	// a kernel needs) times this times their number is taken. 0: never.
	ResidentThreads uint64 `yaml:"resident_threads" max:"4096"`
	// StreamBytes is what a stream beyond the first costs.
	StreamBytes uint64 `yaml:"stream_bytes" max:"1073741824"`
	// GraphBytes and GraphNodeBytes are what an executable graph and each of its
	// nodes cost (reported: about 10 KB a kernel node).
	GraphBytes     uint64 `yaml:"graph_bytes" max:"1073741824"`
	GraphNodeBytes uint64 `yaml:"graph_node_bytes" max:"1073741824"`
	// ManagedMigrates: managed memory takes device memory only where it was used
	// or prefetched there, may exceed the card, and is pushed out by others (Linux,
	// Pascal and newer). False: all of it is taken at once.
	ManagedMigrates bool `yaml:"managed_migrates"`
	// Multicast: the card has multicast objects (NVSwitch systems).
	Multicast bool `yaml:"multicast"`
}

// HardwareAllocation is what the driver does on every real card, as far as it is
// known; what differs by card is left at zero.
func HardwareAllocation() Allocation {
	const mib = 1 << 20
	return Allocation{
		BlockBytes: 2 * mib, ModuleBytes: 2 * mib, PoolBytes: 32 * mib, ResidentThreads: 2048,
		GraphBytes: 64 << 10, GraphNodeBytes: 10 << 10, ManagedMigrates: true,
	}
}

// Validate reports the first field that cannot be simulated.
func (a Allocation) Validate() error {
	if b := a.BlockBytes; b != 0 && (b < 4096 || b&(b-1) != 0 || b > 1<<30) {
		return fmt.Errorf("block_bytes %d: must be 0 or a power of two from 4096 to 1 GiB", b)
	}
	if a.PoolBytes != 0 && (a.BlockBytes == 0 || a.PoolBytes%a.BlockBytes != 0 || a.PoolBytes > 1<<30) {
		return fmt.Errorf("pool_bytes %d: must be whole blocks", a.PoolBytes)
	}
	for _, f := range []struct {
		name string
		v    uint64
	}{
		{"module_bytes", a.ModuleBytes}, {"stream_bytes", a.StreamBytes}, {"graph_bytes", a.GraphBytes},
		{"graph_node_bytes", a.GraphNodeBytes},
	} {
		if f.v > 1<<30 {
			return fmt.Errorf("%s %d: must be at most 1 GiB", f.name, f.v)
		}
	}
	if a.ResidentThreads > 4096 {
		return fmt.Errorf("resident_threads %d: must be at most 4096", a.ResidentThreads)
	}
	return nil
}
