// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"regexp"
)

// limits is what the CUDA programming guide's table of technical specifications
// says of a compute capability.
type limits struct {
	cores, threads, blocks int
	sharedKiB, optinKiB    uint64
	reserved               uint64
	doubleRatio            int
}

var byCapability = map[int]limits{
	70:  {64, 2048, 32, 96, 96, 0, 2},
	75:  {64, 1024, 16, 64, 64, 0, 32},
	80:  {64, 2048, 32, 164, 163, 1024, 2},
	86:  {128, 1536, 16, 100, 99, 1024, 64},
	89:  {128, 1536, 24, 100, 99, 1024, 64},
	90:  {128, 2048, 32, 228, 227, 1024, 2},
	100: {128, 2048, 32, 228, 227, 1024, 2},
	103: {128, 2048, 32, 228, 227, 1024, 2},
	120: {128, 1536, 24, 100, 99, 1024, 64},
}

// or fills what m leaves open from o.
func (m Multiprocessor) or(o Multiprocessor) Multiprocessor {
	return Multiprocessor{
		Count: cmp.Or(m.Count, o.Count), MaxThreads: cmp.Or(m.MaxThreads, o.MaxThreads),
		MaxBlocks: cmp.Or(m.MaxBlocks, o.MaxBlocks), Registers: cmp.Or(m.Registers, o.Registers),
		SharedBytes: cmp.Or(m.SharedBytes, o.SharedBytes), BlockSharedBytes: cmp.Or(m.BlockSharedBytes, o.BlockSharedBytes),
		BlockOptinBytes:    cmp.Or(m.BlockOptinBytes, o.BlockOptinBytes),
		BlockReservedBytes: cmp.Or(m.BlockReservedBytes, o.BlockReservedBytes),
		L2Bytes:            cmp.Or(m.L2Bytes, o.L2Bytes), PersistingL2Bytes: cmp.Or(m.PersistingL2Bytes, o.PersistingL2Bytes),
		AsyncEngines: cmp.Or(m.AsyncEngines, o.AsyncEngines), DoubleRatio: cmp.Or(m.DoubleRatio, o.DoubleRatio),
	}
}

// complete fills in what follows from other fields.
func (g *GPU) complete() {
	l, ok := byCapability[g.Capability.Number()]
	if ok {
		count := 0
		if l.cores > 0 {
			count = g.Cores / l.cores
		}
		g.Multiprocessor = g.Multiprocessor.or(Multiprocessor{
			Count: count, MaxThreads: l.threads, MaxBlocks: l.blocks, Registers: 65536,
			SharedBytes: l.sharedKiB << 10, BlockSharedBytes: 48 << 10, BlockOptinBytes: l.optinKiB << 10,
			BlockReservedBytes: l.reserved, L2Bytes: 4 << 20, AsyncEngines: 2, DoubleRatio: l.doubleRatio,
		})
	}
	g.PCIe.Gen = cmp.Or(g.PCIe.Gen, g.PCIe.MaxGen)
	g.PCIe.Width = cmp.Or(g.PCIe.Width, g.PCIe.MaxWidth)
	g.ECC.Pending = cmp.Or(g.ECC.Pending, g.ECC.Current)
	g.ECC.Default = cmp.Or(g.ECC.Default, g.ECC.Current)
	g.MIG.Pending = cmp.Or(g.MIG.Pending, g.MIG.Current)
	g.Power.EnforcedLimitMW = cmp.Or(g.Power.EnforcedLimitMW, g.Power.DefaultLimitMW)
	g.Power.MinLimitMW = cmp.Or(g.Power.MinLimitMW, g.Power.DefaultLimitMW)
	g.Power.MaxLimitMW = cmp.Or(g.Power.MaxLimitMW, g.Power.DefaultLimitMW)
}

var (
	busIDForm = regexp.MustCompile(`^([0-9A-Fa-f]{4}|[0-9A-Fa-f]{8}):[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.0$`)
	uuidForm  = regexp.MustCompile(`^GPU-[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
)

// Validate reports the first field that makes no sense beside the others.
func (g GPU) Validate() error {
	m := g.Multiprocessor
	switch {
	case g.Name == "" || len(g.Name) > 70:
		return fieldError("name", "%q: want 1 to 70 characters", g.Name)
	case m.Count < 1:
		return fieldError("multiprocessor.count", "missing, and does not follow from num_gpu_cores and compute_capability %d.%d", g.Capability.Major, g.Capability.Minor)
	case m.MaxThreads < 1 || m.MaxBlocks < 1 || m.Registers < 1 || m.SharedBytes < 1:
		return fieldError("multiprocessor", "compute_capability %d.%d is not known: want max_threads, max_blocks, registers and shared_memory_bytes",
			g.Capability.Major, g.Capability.Minor)
	case m.BlockOptinBytes > m.SharedBytes:
		return fieldError("multiprocessor.shared_memory_per_block_optin_bytes", "%d: want at most shared_memory_bytes, %d", m.BlockOptinBytes, m.SharedBytes)
	case g.Memory.TotalBytes == 0:
		return fieldError("memory.total_bytes", "missing")
	case g.Memory.ReservedBytes >= g.Memory.TotalBytes:
		return fieldError("memory.reserved_bytes", "%d: want less than total_bytes, %d", g.Memory.ReservedBytes, g.Memory.TotalBytes)
	case g.Memory.ContextBytes >= g.Memory.Usable():
		return fieldError("memory.context_bytes", "%d: want less than what is usable, %d", g.Memory.ContextBytes, g.Memory.Usable())
	case g.Power.MinLimitMW > g.Power.DefaultLimitMW || g.Power.DefaultLimitMW > g.Power.MaxLimitMW:
		return fieldError("power.default_limit_mw", "%d: want %d to %d, the least and the greatest limit", g.Power.DefaultLimitMW, g.Power.MinLimitMW, g.Power.MaxLimitMW)
	case g.PCIe.Gen > g.PCIe.MaxGen || g.PCIe.Width > g.PCIe.MaxWidth:
		return fieldError("pcie", "the current link is wider or faster than the greatest")
	case g.PCI.BusID != "" && !busIDForm.MatchString(g.PCI.BusID):
		return fieldError("pci.bus_id", "%q: want the form 0000:1A:00.0", g.PCI.BusID)
	case g.UUID != "" && !uuidForm.MatchString(g.UUID):
		return fieldError("uuid", "%q: want the form GPU-01234567-89ab-cdef-0123-456789abcdef", g.UUID)
	}
	if err := g.Memory.Allocation.Validate(); err != nil {
		return fmt.Errorf("memory.allocation.%w", err)
	}
	if err := g.Engine.Validate(); err != nil {
		return fieldError("engine", "%v", err)
	}
	return g.checkOverride()
}

// String names the card and its size.
func (g GPU) String() string { return fmt.Sprintf("%s, %d bytes", g.Name, g.Memory.TotalBytes) }
