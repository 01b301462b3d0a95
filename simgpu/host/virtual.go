// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// How often the engine thread looks at threads that do not say what they do.
const (
	lookFirst = 50 * time.Microsecond
	lookLast  = 5 * time.Millisecond
	lookIdle  = 50 * time.Millisecond // while time may not pass
)

const (
	maxTurns  = 1000    // granted before others may have the lock
	manyTurns = 1 << 20 // at one moment: somebody does not let time pass
)

// virtual moves a virtual clock. Its fields are guarded by Host.mu.
//
// Time passes only while every thread of every client waits. Of the threads
// that may go on at a moment one at a time is granted its turn, in an order that
// does not depend on the machine, and the next one when all wait again. When
// none may go on, time jumps to the next event, but not beyond limit.
type virtual struct {
	cfg     Clock
	limit   int64 // time may pass up to here
	hold    bool  // nobody is granted a turn unless time is being moved
	moving  bool  // a request moves the clock
	idle    bool  // it does so until nothing is left to happen
	crowd   crowd
	future  []arrival // submitted by threads that are ahead of the node, by time
	settled bool      // nothing happens before the next request
	changed chan struct{}
	turns   uint64
	atOnce  int // at this moment

	busySince int64 // wall clock: since when clients have been running; 0: they are not
	looks     int
	told      map[*process]bool // named in the log since they last waited
	blamed    []string
}

func newVirtual(cfg Clock) *virtual {
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	return &virtual{
		cfg: cfg, limit: cfg.Start.Nanoseconds(), changed: make(chan struct{}),
		crowd: newCrowd(), told: map[*process]bool{},
	}
}

func (c Clock) validate() error {
	switch {
	case c.Start < 0:
		return fmt.Errorf("start of the clock %v: must not be negative", c.Start)
	case c.Grace < 0:
		return fmt.Errorf("grace %v: must not be negative", c.Grace)
	}
	for _, d := range []time.Duration{c.CallCost, c.QueryCost, c.ReadCost} {
		if d < 0 || d > maxCost {
			return fmt.Errorf("cost of a call %v: must be 0 to %v", d, maxCost)
		}
	}
	if c.Virtual && c.QueryCost == 0 {
		return errors.New("query cost 0: a program that asks in a loop would ask for ever")
	}
	return nil
}

// runVirtual is the engine thread on a virtual clock.
func (h *Host) runVirtual() {
	for {
		h.mu.Lock()
		if h.stopped {
			h.mu.Unlock()
			return
		}
		value := atomic.LoadUint32(&h.kicks.Word)
		wait := h.conduct()
		h.mu.Unlock()
		waitFutex(&h.kicks.Word, value, h.clock.wall()+wait.Nanoseconds())
	}
}

// conduct lets happen what can, and says how long to wait for a kick.
func (h *Host) conduct() time.Duration {
	v := h.virtual
	for range maxTurns {
		if h.stopped {
			break
		}
		if !v.quiet(h) {
			return v.patience(h)
		}
		v.busySince, v.looks = 0, 0
		if v.atOnce < manyTurns {
			v.blamed = nil
			clear(v.told)
		}
		now := h.clock.now()
		h.takeAll()
		if v.hold && !v.moving {
			return h.settle()
		}
		w, next := v.crowd.choose(h, now)
		if w != nil {
			v.turns++
			if v.atOnce++; v.atOnce >= manyTurns {
				v.blame(h, w.l.p, fmt.Sprintf("has gone on %d times and lets no time pass", v.atOnce))
			}
			w.grant(now)
			continue
		}
		next = min(next, h.machine.Next())
		if len(v.future) > 0 {
			next = min(next, v.future[0].at)
		}
		if next > v.limit {
			if v.limit > now && !v.idle {
				h.passTo(v.limit)
			}
			return h.settle()
		}
		h.passTo(max(next, now))
	}
	return 0
}

// passTo lets time pass to t, the next event or earlier.
func (h *Host) passTo(t int64) {
	if t > h.clock.now() {
		h.trace.flush()
		h.virtual.crowd.newMoment()
		h.virtual.atOnce = 0
	}
	h.clock.virtual.Store(t)
	atomic.StoreUint64(&h.node.NowNS, uint64(t))
	h.machine.Advance(t)
	h.submitDue(t)
}

// settle says that nothing happens before the next request or client.
func (h *Host) settle() time.Duration {
	if v := h.virtual; !v.settled {
		h.trace.sync()
		v.settled = true
		close(v.changed)
		v.changed = make(chan struct{})
	}
	return lookIdle
}

// takeAll takes what clients have submitted, in their order; what was submitted
// later than now, by a thread ahead of the node, waits for its time.
func (h *Host) takeAll() {
	for _, p := range h.virtual.crowd.order {
		for _, l := range p.links {
			if l.c != nil {
				h.takeInto(l.c, true)
			}
		}
	}
	h.submitDue(h.clock.now())
}

// takeOne hands over all that c has submitted, before a request of its: a thread
// that asks is next to the node's time.
func (h *Host) takeOne(c *client) {
	h.takeInto(c, false)
	v := h.virtual
	v.future = slices.DeleteFunc(v.future, func(a arrival) bool {
		if a.c != c {
			return false
		}
		c.future--
		h.submit(c, &a.e)
		return true
	})
}

// takeInto moves a client's entries from its ring into future.
func (h *Host) takeInto(c *client, bounded bool) {
	now := h.clock.now()
	h.batch = c.take(h.batch[:0], sim.Never, bounded)
	for _, a := range h.batch {
		s := (*stream)(nil)
		if a.e.Stream < wire.StreamSlots {
			s = c.streams[a.e.Stream]
		}
		if s == nil {
			h.lostRecord(c, &a.e)
			continue
		}
		// The order within a stream is that of the ring, whichever threads wrote.
		s.last = min(max(int64(min(a.e.TimeNS, 1<<62)), s.last, now), now+maxAhead)
		a.at = s.last
		h.virtual.insert(a)
		c.future++
	}
	if load64(&c.shm.Tail) != c.tail {
		store64(&c.shm.Tail, c.tail)
	}
}

// maxAhead bounds how far ahead of the node a client may claim to be.
const maxAhead = int64(10 * time.Second)

func (v *virtual) insert(a arrival) {
	n := len(v.future)
	if n > 0 && v.future[n-1].at > a.at {
		n, _ = slices.BinarySearchFunc(v.future, a.at, func(o arrival, at int64) int {
			if o.at <= at {
				return -1
			}
			return 1
		})
	}
	v.future = slices.Insert(v.future, n, a)
}

// submitDue hands over what was submitted up to now.
func (h *Host) submitDue(now int64) {
	v := h.virtual
	n := 0
	for ; n < len(v.future) && v.future[n].at <= now; n++ {
		a := &v.future[n]
		a.c.future--
		h.submit(a.c, &a.e)
	}
	v.future = slices.Delete(v.future, 0, n)
}

// forget drops what a client that is gone has submitted for later.
func (v *virtual) forget(c *client) {
	v.future = slices.DeleteFunc(v.future, func(a arrival) bool { return a.c == c })
}

// quiet reports whether every thread of every client waits.
func (v *virtual) quiet(h *Host) bool {
	p, why := v.crowd.running(v.ignored(h))
	if p == nil {
		return true
	}
	if v.busySince == 0 {
		v.busySince = h.clock.wall()
	}
	if h.clock.wall()-v.busySince < v.cfg.Grace.Nanoseconds() {
		return false
	}
	v.blame(h, p, why)
	return false
}

func (v *virtual) blame(h *Host, p *process, why string) {
	v.blamed = []string{p.String() + " has not come back; waiting for it: it " + why}
	if !v.told[p] {
		v.told[p] = true
		h.log.Warn("a client keeps the virtual clock waiting", "pid", p.pid, "client", p.String(), "why", why,
			"lenient", v.cfg.Lenient)
	}
}

// ignored returns the clients that a lenient clock does not wait for any more.
func (v *virtual) ignored(*Host) map[*process]bool {
	if v.cfg.Lenient {
		return v.told
	}
	return nil
}

// patience says when to look again at threads that run.
func (v *virtual) patience(h *Host) time.Duration {
	v.settled = false
	v.looks++
	d := lookFirst << min(v.looks/4, 8)
	last := lookLast
	if !v.moving {
		last = lookIdle
	}
	return min(d, last)
}
