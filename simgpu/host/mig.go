// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// mig is how a GPU is cut.
type mig struct {
	instances []*gpuInstance // by id
	made      uint32         // instances ever made, part of their UUIDs
}

type gpuInstance struct {
	id    uint32
	shape migShape
	start uint32
	parts []*computeInstance
	used  uint64 // bytes of its memory in use
}

type computeInstance struct {
	id, start, slices uint32
	uuid              string
}

// migUse is the MIG instance that a client works in.
type migUse struct {
	in     bool
	gi, ci uint32
}

const noID = math.MaxUint32

// setMIG switches MIG mode. Mode changes wait for a reset on real cards before
// Hopper; here they happen as soon as nothing uses the GPU.
func (h *Host) setMIG(i int, on uint64) int32 {
	m := &h.gpus[i].nvml
	if m.facts.MIG.MaxInstances == 0 {
		return nvmlNotSupported
	}
	if on > 1 {
		return nvmlInvalidArgument
	}
	m.fixed.MIGPending = uint32(on)
	if m.fixed.MIG == uint32(on) {
		return 0
	}
	if len(m.mig.instances) > 0 || h.contexts(h.gpus[i]) > 0 {
		return nvmlInUse
	}
	m.fixed.MIG = uint32(on)
	h.emit(i, eventMIGConfig, 0)
	return 0
}

func (h *Host) migQuery(i int, req *wire.Request) (rep wire.Reply, out []byte) {
	m := &h.gpus[i].nvml
	if m.facts.MIG.MaxInstances == 0 {
		return wire.Reply{Status: nvmlNotSupported}, nil
	}
	switch req.Op {
	case wire.OpMIGShapes:
		for k := range m.facts.MIG.Profiles {
			s := m.shape(&m.facts.MIG.Profiles[k])
			out = append(out, encode(&s)...)
		}
		return rep, out
	case wire.OpMIGList:
		list := h.migList(i)
		for k := range list {
			out = append(out, encode(&list[k])...)
		}
		return rep, out
	}
	if m.fixed.MIG == 0 {
		return wire.Reply{Status: nvmlNotSupported}, nil
	}
	switch req.Op {
	case wire.OpMIGCreate:
		gi, status := h.createInstance(i, uint32(req.A), req.B) //nolint:gosec // compared only
		if status != 0 {
			return wire.Reply{Status: status}, nil
		}
		rep.A, rep.B = uint64(gi.id), uint64(gi.start)
	case wire.OpMIGDestroy:
		rep.Status = h.destroyInstance(i, uint32(req.A)) //nolint:gosec // compared only
	case wire.OpCICreate:
		ci, status := h.createPart(i, uint32(req.A), uint32(req.B), uint32(req.B>>32)) //nolint:gosec // halves
		if status != 0 {
			return wire.Reply{Status: status}, nil
		}
		rep.A = uint64(ci.id)
	case wire.OpCIDestroy:
		rep.Status = h.destroyPart(i, uint32(req.A), uint32(req.B)) //nolint:gosec // compared only
	default:
		rep.Status = nvmlInvalidArgument
	}
	return rep, nil
}

// free lists where an instance of shape p can start now.
func (m *management) free(p *migShape) (starts []uint32) {
	same, slicesUsed := uint32(0), uint32(0)
	taken := uint32(0) // memory slices
	for _, gi := range m.mig.instances {
		taken |= (1<<gi.shape.Size - 1) << gi.start
		slicesUsed += gi.shape.Slices
		if gi.shape.Index == p.Index {
			same++
		}
	}
	if same >= p.Count || slicesUsed+p.Slices > m.facts.MIG.MaxInstances {
		return nil
	}
	for _, s := range p.Starts {
		if taken&((1<<p.Size-1)<<s) == 0 {
			starts = append(starts, s)
		}
	}
	return starts
}

// remaining is how many more instances of shape p fit in.
func (m *management) remaining(p *migShape) (n uint32) {
	kept := slices.Clone(m.mig.instances)
	for {
		at := m.free(p)
		if len(at) == 0 {
			m.mig.instances = kept
			return n
		}
		m.mig.instances = append(m.mig.instances, &gpuInstance{shape: *p, start: at[len(at)-1]})
		n++
	}
}

func (m *management) shape(p *migShape) wire.MIGShape {
	s := wire.MIGShape{
		Index: p.Index, ID: p.ID, Slices: p.Slices, Count: p.Count, Multiprocessors: p.SMs,
		SliceMultiprocessors: m.facts.MIG.computeSMs(*p, 1), Size: p.Size, MemoryMiB: p.MemoryMiB,
		Remaining: m.remaining(p), Engines: engines(p),
	}
	copy(s.Name[:len(s.Name)-1], "MIG "+p.Name)
	for _, at := range p.Starts {
		s.Starts |= 1 << at
	}
	if p.P2P {
		s.P2P = 1
	}
	return s
}

func engines(p *migShape) [6]uint32 {
	return [6]uint32{p.Copy, p.Decoders, p.Encoders, p.JPEG, p.OFA}
}

func (h *Host) createInstance(i int, id uint32, start uint64) (*gpuInstance, int32) {
	m := &h.gpus[i].nvml
	k := slices.IndexFunc(m.facts.MIG.Profiles, func(p migShape) bool { return p.ID == id })
	if k < 0 {
		return nil, nvmlInvalidArgument
	}
	p := &m.facts.MIG.Profiles[k]
	at := m.free(p)
	if start != math.MaxUint64 {
		if !slices.Contains(p.Starts, uint32(start)) { //nolint:gosec // compared only
			return nil, nvmlInvalidArgument
		}
		at = slices.DeleteFunc(at, func(s uint32) bool { return uint64(s) != start })
	}
	if len(at) == 0 {
		return nil, nvmlInsufficientResources
	}
	gi := &gpuInstance{shape: *p, start: at[len(at)-1], id: firstFree(1, func(n uint32) bool { return m.instance(n) != nil })}
	m.mig.instances = append(m.mig.instances, gi)
	slices.SortFunc(m.mig.instances, func(a, b *gpuInstance) int { return cmp.Compare(a.id, b.id) })
	h.emit(i, eventMIGConfig, 0)
	return gi, 0
}

func firstFree(n uint32, taken func(uint32) bool) uint32 {
	for taken(n) {
		n++
	}
	return n
}

func (m *management) instance(id uint32) *gpuInstance {
	for _, gi := range m.mig.instances {
		if gi.id == id {
			return gi
		}
	}
	return nil
}

func (h *Host) destroyInstance(i int, id uint32) int32 {
	m := &h.gpus[i].nvml
	gi := m.instance(id)
	switch {
	case gi == nil:
		return nvmlNotFound
	case len(gi.parts) > 0:
		return nvmlInUse
	}
	m.mig.instances = slices.DeleteFunc(m.mig.instances, func(o *gpuInstance) bool { return o == gi })
	h.emit(i, eventMIGConfig, 0)
	return 0
}

// partSlices are the compute slices of a compute instance's profile number.
func partSlices(number uint32) uint32 {
	return map[uint32]uint32{0: 1, 1: 2, 2: 3, 3: 4, 4: 7, 5: 8, 6: 6, 7: 1}[number]
}

func partProfile(n uint32) uint32 { return map[uint32]uint32{1: 0, 2: 1, 3: 2, 4: 3, 7: 4}[n] }

func (h *Host) createPart(i int, id, number, start uint32) (*computeInstance, int32) {
	g := h.gpus[i]
	gi := g.nvml.instance(id)
	if gi == nil {
		return nil, nvmlNotFound
	}
	n := partSlices(number)
	if !slices.Contains(computeSlices(gi.shape.Slices), n) {
		return nil, nvmlInvalidArgument
	}
	taken := uint32(0)
	for _, p := range gi.parts {
		taken |= (1<<p.slices - 1) << p.start
	}
	at := uint32(noID)
	for s := uint32(0); s+n <= gi.shape.Slices; s += n {
		if taken&((1<<n-1)<<s) == 0 && (start == noID || start == s) {
			at = s
			break
		}
	}
	if at == noID {
		return nil, nvmlInsufficientResources
	}
	g.nvml.mig.made++
	sum := sha256.Sum256(fmt.Appendf(nil, "simgpu/%s/mig/%d", g.uuid, g.nvml.mig.made))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	ci := &computeInstance{start: at, slices: n, id: firstFree(0, func(k uint32) bool { return gi.part(k) != nil }),
		uuid: fmt.Sprintf("MIG-%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])}
	gi.parts = append(gi.parts, ci)
	slices.SortFunc(gi.parts, func(a, b *computeInstance) int { return cmp.Compare(a.id, b.id) })
	h.emit(i, eventMIGConfig, 0)
	return ci, 0
}

func (gi *gpuInstance) part(id uint32) *computeInstance {
	for _, p := range gi.parts {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (h *Host) destroyPart(i int, id, part uint32) int32 {
	gi := h.gpus[i].nvml.instance(id)
	if gi == nil || gi.part(part) == nil {
		return nvmlNotFound
	}
	for _, c := range h.clients {
		if c.use[i].contexts > 0 && c.inInstance(i, int64(id), int64(part)) {
			return nvmlInUse
		}
	}
	gi.parts = slices.DeleteFunc(gi.parts, func(o *computeInstance) bool { return o.id == part })
	h.emit(i, eventMIGConfig, 0)
	return 0
}

// migList describes the GPU instances of GPU i, each followed by its compute instances.
func (h *Host) migList(i int) (out []wire.MIGInstance) {
	m := &h.gpus[i].nvml
	index := uint32(0)
	for _, gi := range m.mig.instances {
		w := wire.MIGInstance{
			GI: gi.id, CI: noID, Profile: gi.shape.ID, Start: gi.start, Size: gi.shape.Size, Slices: gi.shape.Slices,
			Multiprocessors: gi.shape.SMs, Index: noID, MemoryBytes: gi.shape.MemoryMiB << 20, UsedBytes: gi.used,
			Engines: engines(&gi.shape),
		}
		out = append(out, w)
		for _, p := range gi.parts {
			w.CI, w.Profile, w.Start, w.Size, w.Slices, w.Index = p.id, partProfile(p.slices), p.start, p.slices, p.slices, index
			w.Multiprocessors = m.facts.MIG.computeSMs(gi.shape, p.slices)
			w.UUID = [48]byte{}
			copy(w.UUID[:], p.uuid)
			out = append(out, w)
			index++
		}
	}
	return out
}

// inInstance reports whether c works in a MIG instance of GPU i; -1 means any.
func (c *client) inInstance(i int, gi, ci int64) bool {
	if gi < 0 {
		return true
	}
	u := &c.mig[i]
	return u.in && int64(u.gi) == gi && (ci < 0 || int64(u.ci) == ci)
}
