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
	begun    uint64    // kernels begun
	heads    int       // streams whose next operation is for this engine
	since    Time      // start of what is not yet accounted
	ready    Time      // end of a context switch
	sliceEnd Time
	draining bool // the turn is over as soon as nothing runs
}

func (e *engine) shared() bool { return e.kind == Compute && e.gpu.cfg.Shared }

// parallel reports whether more than one operation can run at once.
func (e *engine) parallel() bool {
	return e.kind == Compute && (e.gpu.cfg.Shared || e.gpu.cfg.Concurrent > 1)
}

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
		op := s.head()
		t = min(t, e.since+(op.work+Time(op.alloc)-1)/Time(op.alloc))
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
		s.run(d)
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
		n := Time(s.head().alloc)
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
		if op.work > 0 {
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
	e.grow()
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

// room returns how many multiprocessors are left for what s is to run.
func (e *engine) room(s *Stream) int {
	free, own := e.gpu.cfg.SMs, s.ctx.limit
	for _, o := range e.running {
		free -= o.head().alloc
		if o.ctx == s.ctx {
			own -= o.head().alloc
		}
	}
	if s.ctx.limit > 0 && e.shared() {
		free = min(free, own)
	}
	return max(free, 0)
}

// grow gives what others have left to those that run with less than they can
// use, in the order in which they began.
func (e *engine) grow() {
	if !e.parallel() {
		return
	}
	for _, s := range e.running {
		if op := s.head(); op.alloc < op.need {
			op.alloc += min(op.need-op.alloc, e.room(s))
		}
	}
}

// canBegin reports whether s can begin beside what runs: kernels while there is
// a multiprocessor for them, what is no kernel always.
func (e *engine) canBegin(s *Stream) bool {
	if slices.Contains(e.running, s) {
		return false
	}
	op := s.head()
	if op.work == 0 || op.Kind != Exec {
		return true
	}
	if !e.shared() && len(e.running) >= e.gpu.cfg.Concurrent {
		return false
	}
	return e.room(s) > 0
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
	case !e.parallel():
		return nil
	}
	return e.cur.pick(e, e.canBegin)
}

// sharedCandidate takes turns among the contexts, a kernel each.
func (e *engine) sharedCandidate() *Stream {
	var best *Stream
	for _, c := range e.gpu.contexts {
		s := c.pick(e, e.canBegin)
		switch {
		case s == nil:
		case best == nil, s.priority < best.priority:
			best = s
		case s.priority == best.priority && c.began < best.ctx.began:
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
		if op.work > 0 {
			e.account() // what runs already, up to now
			e.since = e.m.now
			if e.parallel() {
				op.alloc = min(op.need, e.room(s))
			}
			e.begun++
			s.ctx.began = e.begun
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
		e.m.record(op.Event, op.Gen)
	case Fork:
		if e.m.events[op.Event] < op.Gen {
			e.m.events[op.Event] = op.Gen
		}
		op.Kind, op.Event = Wait, op.Join
		return
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
	e.grow()
	if e.cur == c {
		e.cur, e.draining = nil, false
		e.ready = e.m.now
	}
	if e.last == c {
		e.last = nil
	}
}
