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
	linger       = 20 * time.Millisecond // a ring is still looked at after its last work
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
	if h.virtual != nil {
		h.runVirtual()
		return
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -10) // refused without privilege: later wakes, same account
	scanned := atomic.LoadUint32(&h.kicks.Scan)
	idle := true
	for {
		h.mu.Lock()
		if h.stopped {
			h.mu.Unlock()
			return
		}
		value := atomic.LoadUint32(&h.kicks.Word)
		// A client that was not looked at says so; and look at all now and
		// then, should one have been cheated of its word.
		if scan := atomic.LoadUint32(&h.kicks.Scan); scan != scanned || idle {
			scanned = scan
			h.wakeAll()
		}
		h.catchUp()
		until := h.sleepUntil()
		idle = h.machine.Next() == sim.Never
		if idle {
			h.trace.sync()
		}
		h.mu.Unlock()
		if until > h.clock.now() {
			waitFutex(&h.kicks.Word, value, until)
		}
	}
}

// wakeAll makes active every client that has new entries.
func (h *Host) wakeAll() {
	for _, c := range h.clients {
		if !c.active && load64(&c.shm.Head) != c.tail {
			h.activate(c)
		}
	}
}

// activate puts a client among those whose rings are looked at.
func (h *Host) activate(c *client) {
	if c.active {
		return
	}
	c.active, c.busyAt = true, h.clock.now()
	c.publishAwake(true)
	h.active = append(h.active, c)
}

// deactivate stops looking at a client's ring, unless it has new entries. The
// atomic store is a full barrier: a client that still sees the old state has
// put its entry where the caller looks next.
func (c *client) deactivate() bool {
	c.publishAwake(false)
	if load64(&c.shm.Head) != c.tail && c.pending < maxPending {
		c.publishAwake(true)
		return false
	}
	c.active = false
	return true
}

// catchUp takes what active clients have submitted and simulates up to now. It
// leaves entries in the ring of a client that is far ahead.
func (h *Host) catchUp() {
	if h.virtual != nil {
		h.takeAll()
		return
	}
	now := h.clock.now()
	h.batch = h.batch[:0]
	for _, c := range h.active {
		h.batch = c.take(h.batch, now, true)
	}
	h.feed(now)
}

// catchUpOne does the same but takes all the entries of one client only.
func (h *Host) catchUpOne(c *client) {
	if h.virtual != nil {
		h.takeOne(c)
		return
	}
	now := h.clock.now()
	h.activate(c)
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
		case a.c.id < b.c.id:
			return -1
		case a.c.id > b.c.id:
			return 1
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
	for _, c := range h.active {
		c.publish()
	}
}

// sleepUntil says when the engine thread must look again, and lets clients
// without work wake it for new work.
func (h *Host) sleepUntil() int64 {
	now := h.clock.now()
	next := h.machine.Next()
	until := now + pollInterval.Nanoseconds()
	if next == sim.Never {
		until = now + idleInterval.Nanoseconds()
	}
	until = min(until, h.shared.nextWake(now, next))
	h.active = slices.DeleteFunc(h.active, func(c *client) bool {
		if c.pending > 0 {
			c.busyAt = now
		}
		if next == sim.Never || now-c.busyAt > linger.Nanoseconds() {
			if c.deactivate() {
				return true
			}
			until = now
		}
		until = min(until, c.nextWake(now, next))
		return false
	})
	return until
}

// nextWake returns when a thread of c that waits can be woken at the earliest.
func (c *client) nextWake(now, next int64) int64 {
	until := int64(sim.Never)
	for _, s := range c.live {
		wanted := load64(&c.shm.Stream[s.slot].Wanted)
		if wanted <= s.done {
			continue
		}
		until = min(until, max(now+s.sim.Remaining(wanted-s.base), next, now+shortestWait.Nanoseconds()))
	}
	return until
}
