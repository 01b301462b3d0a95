// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "slices"

type engine struct {
	m    *Machine
	gpu  *gpu
	kind EngineKind

	turn     int       // index of cur, or of the last context that had it
	cur      *Context  // whose turn it is; nil on a shared engine
	last     *Context  // context whose state is loaded
	running  []*Stream // in the order in which they began or were resumed
	heads    int       // streams whose next operation is for this engine
	since    Time      // start of what is not yet accounted
	ready    Time      // end of a context switch
	sliceEnd Time
	draining bool // the turn is over as soon as nothing runs
}

func (e *engine) shared() bool { return e.kind == Compute && e.gpu.cfg.Shared }

func (e *engine) slice() Time {
	if e.kind != Compute {
		return e.gpu.cfg.CopySlice
	}
	return e.gpu.cfg.Slice
}

// next returns when the engine changes state by itself.
func (e *engine) next() Time {
	if len(e.running) == 0 {
		if e.cur != nil && e.ready > e.m.now {
			return e.ready
		}
		return Never
	}
	t := Never
	for _, s := range e.running {
		t = min(t, e.since+s.head().remaining)
	}
	if e.cur != nil && !e.draining {
		t = min(t, e.sliceEnd)
	}
	return t
}

// account charges what runs for the time up to now.
func (e *engine) account() {
	if len(e.running) == 0 || e.m.now <= e.since {
		return
	}
	from, d := e.since, e.m.now-e.since
	e.since = e.m.now
	for _, s := range e.running {
		s.head().remaining -= d
		s.progress(d)
	}
	if e.cur != nil {
		e.charge(e.cur, from, d)
		return
	}
	// A shared engine's time is its users' in proportion to what they occupy.
	var who []*Context
	sms, all, left := map[*Context]Time{}, Time(0), d
	for _, s := range e.running {
		if sms[s.ctx] == 0 {
			who = append(who, s.ctx)
		}
		n := Time(s.head().sms(&e.gpu.cfg))
		sms[s.ctx] += n
		all += n
	}
	for i, c := range who {
		ns := left
		if i < len(who)-1 {
			ns = d * sms[c] / all
		}
		left -= ns
		e.charge(c, from, ns)
	}
}

func (e *engine) charge(c *Context, from, ns Time) {
	if e.kind == Compute {
		c.Executed += ns
	}
	e.m.sink.Ran(c, e.kind, from, e.m.now, ns)
}

// fire handles the change that next announced.
func (e *engine) fire() {
	e.account()
	for i := 0; i < len(e.running); {
		s := e.running[i]
		op := s.head()
		if op.remaining > 0 {
			i++
			continue
		}
		e.running = slices.Delete(e.running, i, i+1)
		if op.Fault == 0 {
			s.complete(e.m)
			continue
		}
		e.fault(s.ctx, op.Fault)
		i = 0
	}
	if e.cur != nil && e.m.now >= e.sliceEnd && !e.draining {
		switch {
		case e.other() < 0:
			e.sliceEnd = e.m.now + e.slice()
		case e.kind == Compute && e.gpu.cfg.Preempt == BetweenKernels:
			e.draining = true
		default:
			for _, s := range e.running {
				e.m.sink.Preempted(s, s.head().Tag, e.m.now) // to be resumed later
			}
			e.running, e.cur = e.running[:0], nil
		}
	}
	if e.draining && len(e.running) == 0 {
		e.cur = nil
	}
	e.schedule()
}

// fault breaks a context, and on a shared engine its neighbours as well.
func (e *engine) fault(c *Context, code int32) {
	if !e.shared() {
		e.m.fail(c, code)
		return
	}
	for _, o := range slices.Clone(e.gpu.contexts) {
		e.m.fail(o, code)
	}
}

// other returns the index of the next context after the present one that has
// work, or -1.
func (e *engine) other() int {
	n := len(e.gpu.contexts)
	for i := 1; i <= n; i++ {
		k := (e.turn + i) % n
		if c := e.gpu.contexts[k]; c != e.cur && c.pick(e, nil) != nil {
			return k
		}
	}
	return -1
}

// room reports whether s can begin beside what runs.
func (e *engine) room(s *Stream) bool {
	if slices.Contains(e.running, s) {
		return false
	}
	op := s.head()
	if len(e.running) == 0 || op.remaining == 0 || op.Kind != Exec {
		return true
	}
	// A shared engine takes as many kernels as have room.
	if !e.shared() && len(e.running) >= e.gpu.cfg.Concurrent {
		return false
	}
	used, own := op.sms(&e.gpu.cfg), 0
	for _, o := range e.running {
		n := o.head().sms(&e.gpu.cfg)
		used += n
		if o.ctx == s.ctx {
			own += n
		}
	}
	if s.ctx.limit > 0 && own > 0 && own+op.sms(&e.gpu.cfg) > s.ctx.limit {
		return false
	}
	return used <= e.gpu.cfg.SMs
}

// candidate returns a stream that can begin now, or nil.
func (e *engine) candidate() *Stream {
	switch {
	case e.draining:
		return nil
	case e.shared():
		return e.sharedCandidate()
	case e.cur == nil:
		return nil
	case len(e.running) == 0:
		return e.cur.pick(e, nil)
	case e.kind != Compute || e.gpu.cfg.Concurrent == 1:
		return nil
	}
	// What needs no multiprocessor never waits for one; kernels begin in
	// order, so that a large one is not passed by small ones for ever.
	waiting := func(s *Stream) bool { return !slices.Contains(e.running, s) }
	if s := e.cur.pick(e, func(s *Stream) bool {
		return waiting(s) && (s.head().Kind != Exec || s.head().remaining == 0)
	}); s != nil {
		return s
	}
	if s := e.cur.pick(e, waiting); s != nil && e.room(s) {
		return s
	}
	return nil
}

func (e *engine) sharedCandidate() *Stream {
	var best *Stream
	for _, c := range e.gpu.contexts {
		if s := c.pick(e, e.room); s != nil && (best == nil || before(s, best)) {
			best = s
		}
	}
	return best
}

// schedule starts what can start now and reports whether anything completed or
// began.
func (e *engine) schedule() bool {
	if e.heads == 0 && len(e.running) == 0 && e.ready <= e.m.now {
		e.cur = nil // whoever comes next begins a turn of its own
		return false
	}
	changed := false
	for e.ready <= e.m.now {
		if s := e.candidate(); s != nil {
			changed = true
			e.begin(s)
			continue
		}
		if len(e.running) > 0 || e.shared() {
			return changed
		}
		e.cur = nil
		k := e.other()
		if k < 0 {
			return changed
		}
		e.enter(k)
	}
	return changed
}

// enter gives the turn to the context with index k.
func (e *engine) enter(k int) {
	e.turn, e.cur, e.draining = k, e.gpu.contexts[k], false
	e.ready = e.m.now
	if e.kind == Compute && e.last != nil && e.last != e.cur {
		e.ready += e.gpu.cfg.SwitchCost
	}
	e.last = e.cur
	e.sliceEnd = e.ready + e.slice()
}

// begin starts, or resumes, the first operation of s.
func (e *engine) begin(s *Stream) {
	op := s.head()
	switch op.Kind {
	case Exec:
		if op.remaining > 0 {
			e.account() // what runs already, up to now
			e.since = e.m.now
			e.running = append(e.running, s)
			op.begun = true
			e.m.sink.Began(s, op.Tag, e.m.now)
			return
		}
		if op.Fault != 0 {
			e.fault(s.ctx, op.Fault)
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

// leave ends what a context has on the engine.
func (e *engine) leave(c *Context) {
	e.account()
	e.running = slices.DeleteFunc(e.running, func(s *Stream) bool { return s.ctx == c })
	if e.cur == c {
		e.cur, e.draining = nil, false
		e.ready = e.m.now
	}
	if e.last == c {
		e.last = nil
	}
}
