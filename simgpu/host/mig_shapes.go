// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"

	"github.com/gpushare/gpushare/simgpu/profile"
)

// migLayout is what a card can be cut into. The zero value cannot be cut.
type migLayout struct {
	MaxInstances uint32
	Slices       uint32 // of memory: the units of a placement
	Profiles     []migShape
}

// migShape is one shape of a GPU instance.
type migShape struct {
	Name      string // 3g.40gb, as nvidia-smi shows it behind "MIG "
	Index     uint32 // NVML_GPU_INSTANCE_PROFILE_…
	ID        uint32 // as in nvidia-smi mig -lgip
	Slices    uint32 // of compute
	Count     uint32
	SMs       uint32
	MemoryMiB uint64
	Size      uint32 // memory slices
	Starts    []uint32
	Copy      uint32
	Decoders  uint32
	Encoders  uint32
	JPEG      uint32
	OFA       uint32
	P2P       bool
}

// Numbers of nvml.h for shapes: NVML_GPU_INSTANCE_PROFILE_n_SLICE.
const (
	slice1, slice2, slice3, slice4, slice7, slice1Rev1, slice1Rev2 = 0, 1, 2, 3, 4, 7, 9
)

// sevenths makes the shapes of the cards that have seven compute and eight
// memory slices. The placements are those of NVIDIA's MIG user guide.
func sevenths(sm [7]uint32, mib [7]uint64, names [7]string, media [7][4]uint32) migLayout {
	every := []uint32{0, 1, 2, 3, 4, 5, 6}
	p := []migShape{
		{Index: slice1, ID: 19, Slices: 1, Count: 7, Size: 1, Starts: every, Copy: 1},
		{Index: slice1Rev1, ID: 20, Slices: 1, Count: 1, Size: 1, Starts: every, Copy: 1},
		{Index: slice1Rev2, ID: 15, Slices: 1, Count: 4, Size: 2, Starts: []uint32{0, 2, 4, 6}, Copy: 1},
		{Index: slice2, ID: 14, Slices: 2, Count: 3, Size: 2, Starts: []uint32{0, 2, 4}, Copy: 2},
		{Index: slice3, ID: 9, Slices: 3, Count: 2, Size: 4, Starts: []uint32{0, 4}, Copy: 3},
		{Index: slice4, ID: 5, Slices: 4, Count: 1, Size: 4, Starts: []uint32{0}, Copy: 4},
		{Index: slice7, ID: 0, Slices: 7, Count: 1, Size: 8, Starts: []uint32{0}, Copy: 7},
	}
	for i := range p {
		p[i].Name, p[i].SMs, p[i].MemoryMiB = names[i], sm[i], mib[i]
		p[i].Decoders, p[i].Encoders, p[i].JPEG, p[i].OFA = media[i][0], media[i][1], media[i][2], media[i][3]
	}
	return migLayout{MaxInstances: 7, Slices: 8, Profiles: p}
}

// layoutOf returns what a card can be cut into, by its PCI device id; a card
// that is not known is cut like an H100, with memory in proportion.
func layoutOf(p *profile.GPU) migLayout {
	if p.MIG.MaxInstances == 0 {
		return migLayout{}
	}
	switch p.PCI.DeviceID >> 16 {
	case 0x20b0:
		return a100Shapes()
	case 0x20b2, 0x20b5:
		m := a100Shapes()
		for i, n := range []string{"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"} {
			m.Profiles[i].Name = n
			m.Profiles[i].MemoryMiB = []uint64{9728, 9728, 19968, 19968, 40192, 40192, 80384}[i]
		}
		return m
	case 0x2335:
		return h200Shapes()
	case 0x2901:
		return b200Shapes()
	case 0x2bb1, 0x2bb5:
		return rtxPro6000Shapes()
	}
	m := h100Shapes()
	for i := range m.Profiles {
		q := &m.Profiles[i]
		q.MemoryMiB = min(q.MemoryMiB, p.Memory.TotalBytes>>20*uint64(q.Size)/uint64(m.Slices))
	}
	return m
}

// Sizes: user guide for A100 and H100, go-nvml's mock for H200 and B200.
func a100Shapes() migLayout {
	return sevenths([7]uint32{14, 14, 14, 28, 42, 56, 98},
		[7]uint64{4864, 4864, 9856, 9856, 19968, 19968, 40192},
		[7]string{"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"},
		[7][4]uint32{{}, {1, 0, 1, 1}, {1}, {1}, {2}, {2}, {5, 0, 1, 1}})
}

func h100Shapes() migLayout {
	m := sevenths([7]uint32{16, 16, 26, 32, 60, 64, 132},
		[7]uint64{9856, 9856, 20096, 20096, 40448, 40448, 81152},
		[7]string{"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
		[7][4]uint32{{1, 0, 1}, {1, 0, 1, 1}, {1, 0, 1}, {2, 0, 2}, {3, 0, 3}, {4, 0, 4}, {7, 0, 7, 1}})
	m.Profiles[len(m.Profiles)-1].Copy = 8
	return m
}

func h200Shapes() migLayout {
	m := h100Shapes()
	for i, n := range []string{"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"} {
		m.Profiles[i].Name = n
		m.Profiles[i].MemoryMiB = []uint64{16384, 16384, 33280, 33280, 71424, 71424, 143104}[i]
	}
	return m
}

func b200Shapes() migLayout {
	return sevenths([7]uint32{18, 18, 30, 36, 70, 72, 148},
		[7]uint64{23552, 23552, 46080, 46080, 91648, 91648, 182784},
		[7]string{"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"},
		[7][4]uint32{{1, 0, 1}, {1, 0, 1, 1}, {1, 0, 1}, {2, 0, 2}, {3, 0, 3}, {4, 0, 4}, {7, 0, 7, 1}})
}

// The workstation card has four slices; its graphics shapes are left out.
func rtxPro6000Shapes() migLayout {
	return migLayout{MaxInstances: 4, Slices: 4, Profiles: []migShape{
		{Name: "1g.24gb", Index: slice1, ID: 14, Slices: 1, Count: 4, SMs: 46, MemoryMiB: 24192, Size: 1,
			Starts: []uint32{0, 1, 2, 3}, Copy: 1, Decoders: 1, Encoders: 1, JPEG: 1},
		{Name: "1g.24gb+me", Index: slice1Rev1, ID: 21, Slices: 1, Count: 1, SMs: 46, MemoryMiB: 24192, Size: 1,
			Starts: []uint32{0, 1, 2, 3}, Copy: 1, Decoders: 1, Encoders: 1, JPEG: 1, OFA: 1},
		{Name: "2g.48gb", Index: slice2, ID: 5, Slices: 2, Count: 2, SMs: 94, MemoryMiB: 48512, Size: 2,
			Starts: []uint32{0, 2}, Copy: 2, Decoders: 2, Encoders: 2, JPEG: 2},
		{Name: "4g.96gb", Index: slice4, ID: 0, Slices: 4, Count: 1, SMs: 188, MemoryMiB: 97280, Size: 4,
			Starts: []uint32{0}, Copy: 4, Decoders: 4, Encoders: 4, JPEG: 4, OFA: 1},
	}}
}

// find returns the shape called name ("3g.40gb", with or without "MIG "), or by
// its profile number in decimal.
func (m migLayout) find(name string) (migShape, error) {
	name = strings.TrimPrefix(strings.TrimSpace(name), "MIG ")
	var known []string
	for _, p := range m.Profiles {
		if p.Name == name || fmt.Sprint(p.ID) == name {
			return p, nil
		}
		known = append(known, p.Name)
	}
	if len(known) == 0 {
		return migShape{}, fmt.Errorf("MIG profile %q: this card cannot be cut", name)
	}
	return migShape{}, fmt.Errorf("MIG profile %q: this card has %s", name, strings.Join(known, ", "))
}

// computeSlices are the sizes that a compute instance can have inside a GPU
// instance of n slices.
func computeSlices(n uint32) []uint32 {
	var out []uint32
	for _, s := range []uint32{1, 2, 3, 4, 7} {
		if s > n || (n == 4 && s == 3) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// computeSMs is how many multiprocessors a compute instance of s slices has.
// The last slices of an instance come with what does not divide evenly.
func (m migLayout) computeSMs(p migShape, s uint32) uint32 {
	if s == p.Slices || len(m.Profiles) == 0 {
		return p.SMs
	}
	return s * m.Profiles[0].SMs
}
