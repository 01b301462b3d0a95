// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// maxHolds bounds how often one shared event can be open: each record is told
// to all of them.
const maxHolds = 4096

// sharedEvent is an event that several processes may use. Its records are
// numbered here, over all of them, and a number that was given out becomes
// complete in any case: by the record, by the end of the context or stream that
// was to make it, or by the end of the client. So nobody waits for the dead.
type sharedEvent struct {
	id         sim.EventID // below those of any client
	key        [wire.KeyBytes]byte
	maker      uint32 // client that made it, which may not open it
	last, done uint64 // newest record asked for, newest complete
	holds      []*eventHold
}

// eventHold is a client's use of a shared event, in a slot of its events.
type eventHold struct {
	e                *sharedEvent
	c                *client
	slot             uint32
	asked, submitted uint64 // newest numbers of the client's own records
}

// sharedEvents are all of them. An unused one is used again; its numbers go on,
// so that what is left in the model of an earlier use means nothing.
type sharedEvents struct {
	all    []*sharedEvent // by id
	unused []*sharedEvent
	byKey  map[[wire.KeyBytes]byte]*sharedEvent
	users  map[*client]struct{}
}

func newSharedEvents() sharedEvents {
	return sharedEvents{byKey: map[[wire.KeyBytes]byte]*sharedEvent{}, users: map[*client]struct{}{}}
}

// eventRequest answers the requests about shared events.
func (h *Host) eventRequest(c *client, req *wire.Request, data []byte) (wire.Reply, []byte) {
	if req.A >= wire.EventSlots {
		return wire.Reply{Status: wire.CUDAInvalidValue}, nil
	}
	slot := uint32(req.A) //nolint:gosec // bounded
	hold := c.shares[slot]
	switch {
	case req.Op == wire.OpEventShare && hold == nil:
		return h.shareEvent(c, slot, data)
	case req.Op == wire.OpEventShare:
		return wire.Reply{Status: wire.CUDAInvalidValue}, nil
	case hold == nil:
		return wire.Reply{Status: wire.CUDAInvalidHandle}, nil
	case req.Op == wire.OpEventRecord:
		e := hold.e
		e.last++
		hold.asked = e.last
		for _, o := range e.holds {
			store64(&o.c.shm.Event[o.slot].TimeNS, e.last)
		}
		return wire.Reply{A: e.last}, nil
	}
	h.catchUpOne(c) // what is in the ring names it
	h.dropHold(hold)
	h.kick()
	return wire.Reply{}, nil
}

// shareEvent makes slot of c the event of a key, or a new one if there is none.
func (h *Host) shareEvent(c *client, slot uint32, key []byte) (wire.Reply, []byte) {
	var e *sharedEvent
	switch len(key) {
	case 0:
		e = h.shared.make(c)
	case wire.KeyBytes:
		e = h.shared.byKey[[wire.KeyBytes]byte(key)]
	}
	switch {
	case e == nil:
		return wire.Reply{Status: wire.CUDAInvalidHandle}, nil
	case len(key) > 0 && e.maker == c.id:
		return wire.Reply{Status: wire.CUDAInvalidContext}, nil
	case len(e.holds) >= maxHolds:
		return wire.Reply{Status: wire.CUDAOutOfMemory}, nil
	}
	o := &eventHold{e: e, c: c, slot: slot}
	e.holds = append(e.holds, o)
	c.shares[slot] = o
	h.shared.users[c] = struct{}{}
	store64(&c.shm.Event[slot].Generation, e.done)
	store64(&c.shm.Event[slot].TimeNS, e.last)
	return wire.Reply{}, e.key[:]
}

func (s *sharedEvents) make(c *client) *sharedEvent {
	var e *sharedEvent
	if n := len(s.unused); n > 0 {
		e, s.unused = s.unused[n-1], s.unused[:n-1]
	} else {
		e = &sharedEvent{id: sim.EventID(len(s.all))}
		s.all = append(s.all, e)
	}
	e.maker, e.done = c.id, e.last
	_, _ = rand.Read(e.key[:]) // never fails
	s.byKey[e.key] = e
	return e
}

// dropHold ends a client's use of an event. Its slot counts as complete.
func (h *Host) dropHold(o *eventHold) {
	e, c := o.e, o.c
	if o.asked > o.submitted { // a record that never came
		h.machine.Record(e.id, o.asked)
	}
	if delete(c.shares, o.slot); len(c.shares) == 0 {
		delete(h.shared.users, c)
	}
	e.holds = slices.DeleteFunc(e.holds, func(x *eventHold) bool { return x == o })
	o.publish(e.last)
	if len(e.holds) == 0 {
		delete(h.shared.byKey, e.key)
		h.shared.unused = append(h.shared.unused, e)
	}
}

// dropEvents ends all of a client's.
func (h *Host) dropEvents(c *client) {
	for _, slot := range slices.Sorted(maps.Keys(c.shares)) {
		h.dropHold(c.shares[slot])
	}
}

// recorded tells all users that a record is complete. Machine.Record and the
// engines come here, through the sink.
func (e *sharedEvent) recorded(gen uint64) {
	if gen <= e.done {
		return
	}
	e.done = gen
	for _, o := range e.holds {
		o.publish(gen)
	}
}

func (o *eventHold) publish(gen uint64) {
	store64(&o.c.shm.Event[o.slot].Generation, gen)
	if atomic.LoadUint32(&o.c.shm.EventWaiters) != 0 {
		atomic.AddUint32(&o.c.shm.DoneFutex, 1)
		wakeFutex(&o.c.shm.DoneFutex)
	}
}

// sharedOp is the operation of an entry about a shared event. One that makes no
// sense passes at once: a client may record only with a number it was given.
func (c *client) sharedOp(e *wire.Entry) sim.Op {
	o := c.shares[e.Arg&^wire.EventShared]
	switch {
	case o == nil, e.Kind == wire.EntryEvent && e.Arg64 > o.asked:
		return sim.Op{Kind: sim.Wait}
	case e.Kind == wire.EntryWait:
		return sim.Op{Kind: sim.Wait, Event: o.e.id, Gen: e.Arg64}
	}
	o.submitted = max(o.submitted, e.Arg64)
	return sim.Op{Kind: sim.Mark, Kept: true, Event: o.e.id, Gen: e.Arg64}
}

// lostRecord completes a record whose stream is gone.
func (h *Host) lostRecord(c *client, e *wire.Entry) {
	if e.Kind != wire.EntryEvent || e.Arg&wire.EventShared == 0 {
		return
	}
	if op := c.sharedOp(e); op.Kept {
		h.machine.Record(op.Event, op.Gen)
	}
}

// nextWake returns when a thread that waits for a shared event can be woken at
// the earliest.
func (s *sharedEvents) nextWake(now, next int64) int64 {
	for c := range s.users {
		if next != sim.Never && atomic.LoadUint32(&c.shm.EventWaiters) != 0 {
			return max(next, now+shortestWait.Nanoseconds())
		}
	}
	return sim.Never
}
