// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"sync/atomic"
	"unsafe"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/trace"
	"github.com/gpushare/gpushare/simgpu/wire"
)

const sizeShared = unsafe.Sizeof(wire.Shared{})

// sink publishes what the model says. Host.mu is held.
type sink Host

var _ sim.Sink = (*sink)(nil)

func (k *sink) Done(ss *sim.Stream, seq uint64, t sim.Time) {
	s, ok := ss.Owner.(*stream)
	if !ok {
		ss.Owner.(*branch).ended(seq)
		return
	}
	c := s.c
	before := s.done
	c.pending -= int(s.base + seq - s.done)
	s.done = s.base + seq
	k.trace.ended(s, s.done, t)
	slot := &c.shm.Stream[s.slot]
	store64(&slot.Done, s.done)
	if w := load64(&slot.Wanted); w == s.done || (w < s.done && w > before) {
		c.wake = true
	}
	if s.closing && ss.Len() == 0 {
		c.freeStream(s)
	}
}

func (k *sink) Recorded(e sim.EventID, gen uint64, t sim.Time) {
	if e>>32 == 0 {
		k.shared.all[e].recorded(gen)
		return
	}
	c := k.clients[uint32(e>>32)]
	if c == nil || uint32(e) >= wire.EventSlots { // of the branches of a graph
		return
	}
	slot := &c.shm.Event[uint32(e)%wire.EventSlots]
	if c.shares[uint32(e)] != nil || load64(&slot.Generation) > gen {
		return // an event that is gone, or a record that a newer one has overtaken
	}
	store64(&slot.TimeNS, uint64(t))
	store64(&slot.Generation, gen)
}

func (k *sink) HostDue(ss *sim.Stream, seq uint64, t sim.Time) {
	s := ss.Owner.(*stream)
	c := s.c
	k.trace.head(s, trace.HostDue, t)
	store64(&c.shm.HostDue[c.hostHead%wire.HostSlots], uint64(s.slot)<<48|(s.base+seq)&(1<<48-1))
	c.hostHead++
	atomic.StoreUint32(&c.shm.HostHead, c.hostHead)
	c.wakeHost = true
}

func (k *sink) Began(ss *sim.Stream, _ uint64, t sim.Time) {
	if s, ok := ss.Owner.(*stream); ok {
		k.trace.head(s, trace.Begin, t)
	}
}

func (k *sink) Preempted(ss *sim.Stream, _ uint64, t sim.Time) {
	if s, ok := ss.Owner.(*stream); ok {
		k.trace.head(s, trace.Preempt, t)
	}
}

func (k *sink) Ran(sc *sim.Context, on sim.EngineKind, from, to, ns sim.Time) {
	cc := sc.Owner.(*clientContext)
	g := k.gpus[cc.gpu]
	for _, u := range []*usage{&cc.c.use[cc.gpu], &cc.c.group.use[cc.gpu], &g.use} {
		if on == sim.Compute {
			u.ran += ns
		} else {
			u.copied += ns
		}
	}
	if on == sim.Compute {
		g.nvml.total += ns
		g.windows.add(cc.c.pid, from, to, ns)
	}
}

// Faulted lets the client know: its calls in the context fail from now on.
func (k *sink) Faulted(sc *sim.Context, code int32, t sim.Time) {
	cc := sc.Owner.(*clientContext)
	k.trace.client(cc.c, t, trace.Fault, cc.gpu, int(cc.id), arg("code", int64(code)))
	atomic.StoreUint32(&cc.c.shm.ContextFault[cc.id%wire.ContextSlots], uint32(code))
	cc.c.wake = true
	(*Host)(k).xidOf(cc.gpu, code)
	k.log.Info("context broken", "pid", cc.c.pid, "gpu", cc.gpu, "code", code)
}
