// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"github.com/gpushare/gpushare/simgpu/kernel"
	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// shape reads what sg_shape of lib/launch.c packs: 40 bits of blocks, 11 of
// threads in a block, 6 of blocks that a multiprocessor holds. A launch that
// does not say the last is taken to need no registers or shared memory.
func (g *gpu) shape(packed uint64) kernel.Shape {
	s := kernel.Shape{Blocks: packed & (1<<40 - 1), Resident: uint32(packed >> 51 & 0x3f)}
	if s.Resident == 0 {
		warps := (uint32(packed>>40&0x7ff) + 31) / 32
		m := g.profile.Multiprocessor
		s.Resident = min(max(uint32(m.MaxThreads)/32/max(warps, 1), 1), uint32(max(m.MaxBlocks, 1))) //nolint:gosec // small
	}
	return s
}

// specOf returns how long a function runs on the GPU.
func (g *gpu) specOf(f *function) *kernel.Spec {
	if f.ruled {
		return &f.spec
	}
	return &g.usual
}

// varies reports whether two launches of a function can be of different lengths.
func (h *Host) varies(cc *clientContext, number uint32) bool {
	return h.gpus[cc.gpu].specOf(h.names.of(number)).Sigma > 0
}

// kernelOp describes one launch of a function in c to the model. It is to be
// called once for each, since it draws the length of those that vary.
func (h *Host) kernelOp(cc *clientContext, number uint32, packed uint64) sim.Op {
	g, f := h.gpus[cc.gpu], h.names.of(number)
	sms := g.info.Multiprocessors
	if cc.sms > 0 {
		sms = cc.sms
	}
	spec := g.specOf(f)
	sh := g.shape(packed)
	op := sim.Op{Kind: sim.Exec, SMs: int(sh.SMs(sms)), Tag: uint64(number)}
	op.Dur = spec.Vary(spec.Length(sh, sms), h.engineOf(cc.gpu).Seed, f.name, f.launches)
	f.launches++
	switch spec.End {
	case kernel.Trap:
		op.Fault = wire.CUDALaunchFailed
	case kernel.IllegalAddress:
		op.Fault = wire.CUDAIllegalAddress
	case kernel.Hang:
		if d := h.engineOf(cc.gpu).Watchdog; d > 0 {
			op.Dur, op.Fault = d.Nanoseconds(), wire.CUDALaunchTimeout
		}
	case kernel.Normal:
	}
	return op
}

// copyOp describes a copy or fill. What makes no sense takes no time.
func (h *Host) copyOp(cc *clientContext, e *wire.Entry) sim.Op {
	way := e.Arg & wire.CopyWay
	op := sim.Op{Kind: sim.Exec, On: sim.CopyWithin, SMs: 1, Tag: uint64(way)<<32 | 1<<63}
	c := h.engineOf(cc.gpu).Copy
	link := c.Device
	switch {
	case e.Kind == wire.EntryFill:
		op.On, op.SMs = sim.Compute, 0 // a fill is a kernel of the driver's
	case way == wire.CopyHtoD:
		op.On, link = sim.CopyIn, c.HostToDevice
	case way == wire.CopyDtoH:
		op.On, link = sim.CopyOut, c.DeviceToHost
	case way == wire.CopyPeer:
		link = c.Peer
	case way == wire.CopyHost:
		link = profile.Link{} // the caller's own processor has done it
	}
	op.Dur = link.Length(e.Arg64, e.Arg>>wire.CopyPiecesShift, e.Arg&wire.CopyPinned != 0)
	return op
}

// submit puts one entry into the model; an entry that makes no sense is
// dropped, which only its sender notices.
func (h *Host) submit(c *client, e *wire.Entry) {
	if e.Stream >= wire.StreamSlots || c.streams[e.Stream] == nil {
		h.lostRecord(c, e)
		return
	}
	s := c.streams[e.Stream]
	cc := s.ctx
	if s.sms > 0 { // a green context's
		share := *cc
		share.sms = min(s.sms, h.gpus[cc.gpu].info.Multiprocessors)
		cc = &share
	}
	op := sim.Op{}
	switch e.Kind {
	case wire.EntryKernel:
		op = h.kernelOp(cc, e.Arg, e.Arg64)
		c.launches++
	case wire.EntryGraph:
		g := c.graphs[e.Arg]
		if g == nil {
			return
		}
		times := graphTimes(e)
		c.launches += g.kernels * times
		h.submitGraph(s, cc, e, g, times)
		return
	case wire.EntryEvent, wire.EntryWait:
		if e.Arg&wire.EventShared != 0 {
			op = c.sharedOp(e)
			break
		}
		if e.Arg >= wire.EventSlots {
			return
		}
		op.Kind = sim.Mark
		if e.Kind == wire.EntryWait {
			op.Kind = sim.Wait
		}
		op.Event, op.Gen = c.event(e.Arg), e.Arg64
	case wire.EntryHost:
		op.Kind = sim.Host
	case wire.EntryCopy, wire.EntryFill:
		op = h.copyOp(cc, e)
	default:
		return
	}
	h.submitOp(s, e, op)
}

// submitOp puts the operation of an entry into the model, and reports whether
// the context took it.
func (h *Host) submitOp(s *stream, e *wire.Entry, op sim.Op) bool {
	c := s.c
	c.pending++
	h.submitted(s, e)
	if h.machine.Submit(s.sim, op) != 0 {
		return true
	}
	h.refused(s)
	// The context is broken. Nobody is to wait for what it does not do.
	c.pending--
	s.base++
	s.done++
	store64(&c.shm.Stream[s.slot].Done, s.done)
	c.wake = true
	if op.Kept {
		h.machine.Record(op.Event, op.Gen)
	}
	return false
}

// breakContext ends the work of a context with a sticky error.
func (h *Host) breakContext(cc *clientContext, code int32) {
	h.machine.Fail(cc.sim, code)
	cc.c.publish()
}

// engineOf returns the settings of a GPU's engines.
func (h *Host) engineOf(gpu int) *profile.Engine { return &h.gpus[gpu].profile.Engine }

// simGPU turns a profile's settings into the model's.
func simGPU(e profile.Engine, sms uint32) sim.GPU {
	g := sim.GPU{
		Slice: e.Slice.Nanoseconds(), SwitchCost: e.SwitchCost.Nanoseconds(), CopySlice: e.Copy.Slice.Nanoseconds(),
		SMs: int(sms), Concurrent: e.Concurrent, Shared: e.Sharing == "mps",
	}
	if e.Preemption == "kernel" {
		g.Preempt = sim.BetweenKernels
	}
	return g
}
