// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

const (
	pollInterval = 200 * time.Microsecond // while anything is queued
	idleInterval = 250 * time.Millisecond // safety net against a lost wake
	shortestWait = 10 * time.Microsecond
	maxPending   = wire.RingEntries // operations of one client in the model
	spaceMark    = wire.RingEntries / 4
)

// arrival is a ring entry on its way into the model.
type arrival struct {
	at int64
	c  *client
	e  wire.Entry
}

// runEngine moves the model along until the host stops. It has a thread of its
// own: the Go runtime's timers are too coarse to wake a waiting client in time.
func (h *Host) runEngine() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -10) // refused without privilege: later wakes, same account
	for {
		h.mu.Lock()
		if h.stopped {
			h.mu.Unlock()
			return
		}
		value := atomic.LoadUint32(h.kickWord)
		h.catchUp(true)
		until := h.sleepUntil()
		h.mu.Unlock()
		if until > h.clock.now() {
			waitFutex(h.kickWord, value, until)
		}
	}
}

// catchUp takes what clients have submitted and simulates up to now.
// bounded leaves entries in the ring of a client that is far ahead.
func (h *Host) catchUp(bounded bool) {
	now := h.clock.now()
	h.batch = h.batch[:0]
	for _, c := range h.clients {
		h.batch = c.take(h.batch, now, bounded)
	}
	h.feed(now)
}

// catchUpOne does the same but takes the entries of one client only.
func (h *Host) catchUpOne(c *client) {
	now := h.clock.now()
	h.batch = c.take(h.batch[:0], now, false)
	h.feed(now)
}

func (h *Host) feed(now int64) {
	slices.SortStableFunc(h.batch, func(a, b arrival) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		case a.c.id != b.c.id:
			return int(a.c.id) - int(b.c.id)
		}
		return 0
	})
	for i := range h.batch {
		a := &h.batch[i]
		if a.at > h.machine.Now() {
			h.machine.Advance(a.at)
		}
		h.submit(a.c, &a.e)
	}
	h.machine.Advance(max(now, h.machine.Now()))
	for _, c := range h.clients {
		c.publish()
	}
}

// submit puts one entry into the model; an entry that makes no sense is
// dropped, which only its sender notices.
func (h *Host) submit(c *client, e *wire.Entry) {
	if e.Stream >= wire.StreamSlots || c.streams[e.Stream] == nil {
		return
	}
	s := c.streams[e.Stream]
	op := sim.Op{}
	switch e.Kind {
	case wire.EntryKernel:
		op.Dur = h.names.lengthOf(e.Arg)
		c.launches++
	case wire.EntryGraph:
		g := c.graphs[e.Arg]
		if g == nil {
			return
		}
		op.Dur = g.length(h.names)
		c.launches += g.kernels
	case wire.EntryEvent, wire.EntryWait:
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
	default:
		return
	}
	c.pending++
	h.machine.Submit(s.sim, op)
}

// sleepUntil says when the engine thread must look again, and tells clients
// whether they must wake it for new work.
func (h *Host) sleepUntil() int64 {
	now := h.clock.now()
	next := h.machine.Next()
	if next == sim.Never {
		h.setAwake(false)
		for _, c := range h.clients {
			if c.pending < maxPending && load64(&c.shm.Head) != c.tail {
				h.setAwake(true)
				return now
			}
		}
		return now + idleInterval.Nanoseconds()
	}
	h.setAwake(true)
	until := now + pollInterval.Nanoseconds()
	for _, c := range h.clients {
		for _, s := range c.live {
			wanted := load64(&c.shm.Stream[s.slot].Wanted)
			if wanted <= s.done {
				continue
			}
			left := s.sim.Remaining(wanted)
			if t := max(now+left, next, now+shortestWait.Nanoseconds()); t < until {
				until = t
			}
		}
	}
	return until
}

// setAwake publishes the state of the engine thread to every client. The
// atomic store is a full barrier: a client that still sees the old state has
// put its entry where the caller looks next.
func (h *Host) setAwake(on bool) {
	if h.awake == on {
		return
	}
	h.awake = on
	for _, c := range h.clients {
		c.publishAwake(on)
	}
}
