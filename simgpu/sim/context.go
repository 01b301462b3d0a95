// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "slices"

// Context is one address space on one GPU, the unit that takes turns.
type Context struct {
	Owner    any
	GPU      int
	Executed Time // compute engine time charged so far

	gpu    *gpu
	busy   []*Stream // streams that hold work
	legacy *Stream
	limit  int    // LimitSMs
	began  uint64 // when, in order of beginnings, it last began a kernel on a shared engine
	gone   bool
}

// before reports whether the head of a goes before that of b.
func before(a, b *Stream) bool {
	x, y := a.head(), b.head()
	switch {
	case x.begun != y.begun:
		return x.begun
	case a.priority != b.priority:
		return a.priority < b.priority
	}
	return x.ordinal < y.ordinal
}

// pick returns the stream of c that is to run next on e, or nil; want is asked
// about streams that could.
func (c *Context) pick(e *engine, want func(*Stream) bool) *Stream {
	var best *Stream
	for _, s := range c.busy {
		op := s.head()
		if op.On != e.kind || (best != nil && !before(s, best)) || !s.eligible(e.m) || (want != nil && !want(s)) {
			continue
		}
		best = s
	}
	return best
}

// drop takes a context off all engines and returns its streams that held work.
func (m *Machine) drop(c *Context) []*Stream {
	for _, e := range c.gpu.engine {
		e.leave(c)
	}
	k := slices.Index(c.gpu.contexts, c)
	if k < 0 {
		return nil
	}
	c.gpu.contexts = slices.Delete(c.gpu.contexts, k, k+1)
	for _, e := range c.gpu.engine {
		if e.turn >= k && e.turn > 0 {
			e.turn--
		}
	}
	busy := c.busy
	for _, s := range busy {
		s.head().engine(s).heads--
		for i := range s.ops[s.first:] {
			if op := &s.ops[s.first+i]; op.Kind == Mark && op.Kept {
				m.record(op.Event, op.Gen)
			}
		}
	}
	c.gone, c.busy = true, nil
	return busy
}
