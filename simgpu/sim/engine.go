// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "slices"

// Context is one address space on one GPU, the unit that takes turns.
type Context struct {
	Owner    any
	GPU      int
	Executed Time // engine time used so far

	e      *engine
	busy   []*Stream // streams that hold work
	active *Stream   // stream whose kernel has begun and is not complete
	legacy *Stream
	gone   bool
}

// pick returns the stream whose first operation may run and was submitted
// first, or nil.
func (c *Context) pick() *Stream {
	if c.active != nil {
		return c.active
	}
	var best *Stream
	for _, s := range c.busy {
		if s.eligible() && (best == nil || s.head().ordinal < best.head().ordinal) {
			best = s
		}
	}
	return best
}

type engine struct {
	m        *Machine
	contexts []*Context // in turn order
	turn     int        // index of cur, or of the last context that had it
	cur      *Context
	last     *Context // context whose state is loaded
	running  *Stream
	since    Time // start of the part of the running kernel not yet accounted
	ready    Time // end of a context switch
	sliceEnd Time
}

func (e *engine) idle() bool { return e.running == nil && e.ready <= e.m.now }

// next returns when the engine changes state by itself.
func (e *engine) next() Time {
	switch {
	case e.running != nil:
		end := e.since + e.running.head().remaining
		return min(end, e.sliceEnd)
	case e.cur != nil && e.ready > e.m.now:
		return e.ready
	}
	return Never
}

// account charges the running kernel for the time up to now.
func (e *engine) account() {
	if e.running == nil || e.m.now <= e.since {
		return
	}
	d := e.m.now - e.since
	e.running.head().remaining -= d
	e.running.progress(d)
	e.cur.Executed += d
	e.m.sink.Ran(e.cur, e.since, e.m.now)
	e.since = e.m.now
}

// fire handles the change that next announced.
func (e *engine) fire() {
	e.account()
	if s := e.running; s != nil && s.head().remaining <= 0 {
		e.running = nil
		e.cur.active = nil
		s.complete(e.m)
	}
	if e.cur != nil && e.m.now >= e.sliceEnd {
		if e.other() < 0 {
			e.sliceEnd = e.m.now + e.m.cfg.Slice
		} else {
			e.running = nil // its context's active stream: resumed later
			e.cur = nil
		}
	}
	e.schedule()
}

// other returns the index of the next context after the present one that has
// work, or -1.
func (e *engine) other() int {
	n := len(e.contexts)
	for i := 1; i <= n; i++ {
		k := (e.turn + i) % n
		if c := e.contexts[k]; c != e.cur && c.pick() != nil {
			return k
		}
	}
	return -1
}

// schedule starts what can start now and reports whether anything completed or
// began.
func (e *engine) schedule() bool {
	changed := false
	for e.idle() {
		var s *Stream
		if e.cur != nil {
			s = e.cur.pick()
		}
		if s == nil {
			e.cur = nil
			k := e.other()
			if k < 0 {
				return changed
			}
			e.enter(k)
			continue
		}
		changed = true
		e.begin(s)
	}
	return changed
}

// enter gives the turn to the context with index k.
func (e *engine) enter(k int) {
	e.turn, e.cur = k, e.contexts[k]
	e.ready = e.m.now
	if e.last != nil && e.last != e.cur {
		e.ready += e.m.cfg.SwitchCost
	}
	e.last = e.cur
	e.sliceEnd = e.ready + e.m.cfg.Slice
}

// begin starts, or resumes, the first operation of s.
func (e *engine) begin(s *Stream) {
	op := s.head()
	switch op.Kind {
	case Exec:
		if op.remaining > 0 {
			e.running, e.since, e.cur.active = s, e.m.now, s
			return
		}
	case Mark:
		if e.m.events[op.Event] < op.Gen {
			e.m.events[op.Event] = op.Gen
		}
		e.m.sink.Recorded(op.Event, op.Gen, e.m.now)
	case Host:
		op.hostDue = true
		e.m.sink.HostDue(s, s.done+1, e.m.now)
		return
	}
	s.complete(e.m)
}

// remove takes a context off the engine.
func (e *engine) remove(c *Context) {
	if e.cur == c {
		e.account()
		e.running, e.cur = nil, nil
		e.ready = e.m.now
	}
	if e.last == c {
		e.last = nil
	}
	k := slices.Index(e.contexts, c)
	if k < 0 {
		return
	}
	e.contexts = slices.Delete(e.contexts, k, k+1)
	if e.turn >= k && e.turn > 0 {
		e.turn--
	}
	c.gone, c.busy, c.active = true, nil, nil
}
