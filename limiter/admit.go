// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"fmt"

	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

// Capacity is what one GPU has to give.
type Capacity struct {
	UsableBytes uint64 // device memory less what the driver keeps for itself
}

// Promised is what the containers on one GPU hold together.
type Promised struct {
	MemoryBytes  uint64
	ComputeMilli uint32
	Containers   int
}

// Sum adds up limits on one GPU.
func Sum(limits []Limit) Promised {
	var p Promised
	for _, l := range limits {
		p.MemoryBytes += l.MemoryBytes
		p.ComputeMilli += l.ComputeMilli
		p.Containers++
	}
	return p
}

// CapacityError says what a GPU lacks for a share.
type CapacityError struct {
	Memory    bool   // memory is short, else compute is
	Asked     uint64 // bytes, or milli-GPU
	Available uint64
	Whole     uint64
}

func (e *CapacityError) Error() string {
	if e.Memory {
		return fmt.Sprintf("%s asked, %s of %s are not promised to others",
			quantity.FormatBytes(e.Asked), quantity.FormatBytes(e.Available), quantity.FormatBytes(e.Whole))
	}
	return fmt.Sprintf("%s of GPU time asked, %s are not promised to others",
		quantity.FormatShare(uint32(e.Asked)), quantity.FormatShare(uint32(e.Available)))
}

// Admit reports whether a GPU has room for one more share beside what it has
// promised: the sum of memory limits stays within its usable memory, the sum of
// guarantees within its time. The error is a *CapacityError.
func (c Capacity) Admit(have Promised, want Limit) error {
	if free := saturatingSub(c.UsableBytes, have.MemoryBytes); want.MemoryBytes > free {
		return &CapacityError{Memory: true, Asked: want.MemoryBytes, Available: free, Whole: c.UsableBytes}
	}
	if free := saturatingSub(region.MilliGPU, uint64(have.ComputeMilli)); uint64(want.ComputeMilli) > free {
		return &CapacityError{Asked: uint64(want.ComputeMilli), Available: free, Whole: region.MilliGPU}
	}
	return nil
}

// Less reports whether a GPU that has promised a is the better place than one
// that has promised b: the fuller one, so that whole GPUs stay free.
func (a Promised) Less(b Promised) bool {
	if a.MemoryBytes != b.MemoryBytes {
		return a.MemoryBytes > b.MemoryBytes
	}
	return a.ComputeMilli > b.ComputeMilli
}

func saturatingSub(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}
