// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package sim is a deterministic model of GPUs that share their time between
// contexts. It owns no clock, thread or lock: the caller says what was
// submitted when and up to which moment to simulate, and is told through a Sink
// what happened. The same calls give the same trace.
//
// One compute engine a GPU. Contexts with work take turns of one slice; a
// context without work is passed over at once; a kernel is preempted at the end
// of a slice and resumed later. Within a context one kernel runs at a time, in
// submission order among the streams that may run.
package sim

// Time is a moment or a length in nanoseconds.
type Time = int64

// Never is later than any event.
const Never Time = 1<<63 - 1

// Kind says what an operation of a stream does.
type Kind uint8

// Exec occupies the engine for Dur. Mark records an event. Wait holds the
// stream until an event is recorded. Host holds it until Release.
const (
	Exec Kind = iota
	Mark
	Wait
	Host
)

// EventID names an event over all contexts of the machine.
type EventID uint64

// Op is one operation in a stream.
type Op struct {
	Kind  Kind
	Dur   Time    // Exec: length on an otherwise idle engine
	Event EventID // Mark, Wait
	Gen   uint64  // Mark: this record's number; Wait: the record waited for
}

// Sink is told what happens, in simulated order. It must not call back into
// the machine.
type Sink interface {
	// Done says that the seq-th operation of s (from 1) is complete.
	Done(s *Stream, seq uint64, t Time)
	// Recorded says that record gen of e completed.
	Recorded(e EventID, gen uint64, t Time)
	// HostDue says that s waits for Release of its seq-th operation.
	HostDue(s *Stream, seq uint64, t Time)
	// Ran says that c occupied its engine.
	Ran(c *Context, from, to Time)
}

// Config sets what the owner of a GPU can set.
type Config struct {
	GPUs       int
	Slice      Time // turn of a context while another one has work
	SwitchCost Time // engine time lost at a change of context
}

// Machine is a set of GPUs under one clock.
type Machine struct {
	cfg     Config
	sink    Sink
	now     Time
	engines []*engine
	events  map[EventID]uint64
	ordinal uint64 // submission order over all streams
}

// New returns a machine at time start.
func New(cfg Config, start Time, sink Sink) *Machine {
	m := &Machine{cfg: cfg, sink: sink, now: start, events: map[EventID]uint64{}}
	for range cfg.GPUs {
		m.engines = append(m.engines, &engine{m: m})
	}
	return m
}

// Now returns the time that has been simulated.
func (m *Machine) Now() Time { return m.now }

// AddContext creates a context on a GPU; owner is the caller's own word for it.
func (m *Machine) AddContext(gpu int, owner any) *Context {
	e := m.engines[gpu]
	c := &Context{Owner: owner, GPU: gpu, e: e}
	e.contexts = append(e.contexts, c)
	return c
}

// RemoveContext drops a context with all its work, at the present moment.
func (m *Machine) RemoveContext(c *Context) {
	c.e.remove(c)
	m.scheduleAll()
}

// AddStream creates a stream in c.
func (m *Machine) AddStream(c *Context, kind StreamKind, owner any) *Stream {
	s := &Stream{Owner: owner, ctx: c, kind: kind}
	if kind == Legacy && c.legacy == nil {
		c.legacy = s
	}
	return s
}

// Submit puts op at the end of s. The caller has advanced to the moment of
// submission. It returns the operation's sequence number in s, from 1.
func (m *Machine) Submit(s *Stream, op Op) uint64 {
	if s.ctx.gone {
		return 0
	}
	m.ordinal++
	seq := s.push(op, m.ordinal)
	s.ctx.e.schedule()
	m.settle()
	return seq
}

// Release lets a stream go on that waits in its seq-th operation, a Host one.
func (m *Machine) Release(s *Stream, seq uint64) {
	if s.len() == 0 || s.done+1 != seq || !s.head().hostDue || s.ctx.gone {
		return
	}
	s.complete(m)
	m.scheduleAll()
}

// Forget drops what is known of an event whose owner is gone.
func (m *Machine) Forget(e EventID) { delete(m.events, e) }

// Next returns the time of the next change that needs no further call.
func (m *Machine) Next() Time {
	t := Never
	for _, e := range m.engines {
		t = min(t, e.next())
	}
	return t
}

// Advance simulates up to and including t.
func (m *Machine) Advance(t Time) {
	for {
		n := m.Next()
		if n > t {
			break
		}
		m.now = max(m.now, n)
		for _, e := range m.engines {
			if e.next() <= m.now {
				e.fire()
			}
		}
		m.settle()
	}
	if t > m.now {
		m.now = t
	}
	for _, e := range m.engines {
		e.account()
	}
}

// scheduleAll looks at every engine, then at those that events have freed.
func (m *Machine) scheduleAll() {
	for _, e := range m.engines {
		e.schedule()
	}
	m.settle()
}

// settle reschedules idle engines until nothing changes: a record on one
// engine may free a stream of another.
func (m *Machine) settle() {
	for again := true; again; {
		again = false
		for _, e := range m.engines {
			if e.idle() && e.schedule() {
				again = true
			}
		}
	}
}
