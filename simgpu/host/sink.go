// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"sync/atomic"
	"unsafe"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

const sizeShared = unsafe.Sizeof(wire.Shared{})

// sink publishes what the model says. Host.mu is held.
type sink Host

var _ sim.Sink = (*sink)(nil)

func (k *sink) Done(ss *sim.Stream, seq uint64, _ sim.Time) {
	s := ss.Owner.(*stream)
	c := s.c
	s.done = s.base + seq
	c.pending--
	slot := &c.shm.Stream[s.slot]
	store64(&slot.Done, s.done)
	if load64(&slot.Wanted) == s.done {
		c.wake = true
	}
	if s.closing && ss.Len() == 0 {
		c.freeStream(s)
	}
}

func (k *sink) Recorded(e sim.EventID, gen uint64, t sim.Time) {
	c := k.clients[uint32(e>>32)]
	if c == nil {
		return
	}
	slot := &c.shm.Event[uint32(e)%wire.EventSlots]
	store64(&slot.TimeNS, uint64(t))
	store64(&slot.Generation, gen)
}

func (k *sink) HostDue(ss *sim.Stream, seq uint64, _ sim.Time) {
	s := ss.Owner.(*stream)
	c := s.c
	store64(&c.shm.HostDue[c.hostHead%wire.HostSlots], uint64(s.slot)<<48|(s.base+seq)&(1<<48-1))
	c.hostHead++
	atomic.StoreUint32(&c.shm.HostHead, c.hostHead)
	c.wakeHost = true
}

func (k *sink) Ran(sc *sim.Context, from, to sim.Time) {
	cc := sc.Owner.(*clientContext)
	d := to - from
	cc.c.use[cc.gpu].ran += d
	cc.c.group.use[cc.gpu].ran += d
	g := k.gpus[cc.gpu]
	g.use.ran += d
	g.windows.add(cc.c.pid, from, to)
}
