// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package sim is a deterministic model of GPUs that share their time between
// contexts. It owns no clock, thread or lock: the caller says what was
// submitted when and up to which moment to simulate, and is told through a Sink
// what happened. The same calls give the same trace.
//
// A GPU has one compute engine and a copy engine for each direction. On each
// engine, contexts with work take turns of one slice and a context without work
// is passed over at once; an operation is preempted at the end of a slice and
// resumed later. Within a context one kernel runs at a time, or, if the GPU is
// so configured, as many as there are multiprocessors for, the last of them
// slower if what is left is less than it can use; among the streams that may
// run, the higher priority goes first, then the earlier submission.
package sim

// Time is a moment or a length in nanoseconds.
type Time = int64

// Never is later than any event.
const Never Time = 1<<63 - 1

// Kind says what an operation of a stream does.
type Kind uint8

// Exec occupies an engine for Dur. Mark records an event. Wait holds the
// stream until an event is recorded. Host holds it until Release. Fork records
// an event, then holds the stream until another one is. All but the first take
// place on the engine of the operation before them.
const (
	Exec Kind = iota
	Mark
	Wait
	Host
	Fork
)

// EngineKind names an engine of a GPU.
type EngineKind uint8

// Copies that do not touch host memory, also those to another GPU, share
// CopyWithin.
const (
	Compute EngineKind = iota
	CopyIn             // host to device
	CopyOut            // device to host
	CopyWithin
	engineKinds
)

// EventID names an event over all contexts of the machine.
type EventID uint64

// Op is one operation in a stream.
type Op struct {
	Kind  Kind
	On    EngineKind // Exec
	Here  bool       // Wait: on that engine, since the next operation is
	SMs   int        // Exec on Compute: multiprocessors that it can use; 0: all
	Fault int32      // Exec: not 0: its end breaks the context, with this code
	Dur   Time       // Exec: length on an otherwise idle engine
	Tag   uint64     // the caller's own word for it, told to Began and Preempted
	Kept  bool       // Mark: counts as recorded also if its context ends before it
	Event EventID    // Mark, Wait, Fork: recorded
	Gen   uint64     // Mark: this record's number; Wait: the record waited for; Fork: both
	Join  EventID    // Fork: waited for
}

// Sink is told what happens, in simulated order. It must not call back into
// the machine.
type Sink interface {
	// Began says that s occupies an engine from now on with its first operation.
	Began(s *Stream, tag uint64, t Time)
	// Preempted says that it does no more, though not complete.
	Preempted(s *Stream, tag uint64, t Time)
	// Done says that s is complete up to its seq-th operation (from 1).
	Done(s *Stream, seq uint64, t Time)
	// Recorded says that record gen of e completed.
	Recorded(e EventID, gen uint64, t Time)
	// HostDue says that s waits for Release of its seq-th operation.
	HostDue(s *Stream, seq uint64, t Time)
	// Ran says that c occupied an engine from one moment to another, of which
	// it is charged ns: less than all of it if it shared the engine.
	Ran(c *Context, on EngineKind, from, to, ns Time)
	// Faulted says that c is broken: what it held is dropped, and Done has
	// been said of it.
	Faulted(c *Context, code int32, t Time)
}

// Preemption says when a context with a neighbour leaves the compute engine.
type Preemption uint8

// AtOnce is hardware that stops a kernel anywhere; BetweenKernels lets the
// running ones end first.
const (
	AtOnce Preemption = iota
	BetweenKernels
)

// GPU sets what the owner of a GPU can set.
type GPU struct {
	Slice      Time // turn of a context on the compute engine while another one has work
	SwitchCost Time // compute engine time lost at a change of context
	CopySlice  Time // turn on a copy engine; 0: Slice
	SMs        int  // multiprocessors; 0: 1
	// Concurrent bounds the kernels of one context that run at once; 0 and 1
	// are one.
	Concurrent int
	Preempt    Preemption
	// Shared lets kernels of all contexts run at once, as under MPS, instead
	// of by turns. A fault then breaks all contexts of the GPU.
	Shared bool
}

// Machine is a set of GPUs under one clock.
type Machine struct {
	sink    Sink
	now     Time
	gpus    []*gpu
	engines []*engine // of all GPUs
	events  map[EventID]uint64
	ordinal uint64 // submission order over all streams
}

type gpu struct {
	cfg      GPU
	contexts []*Context // in turn order
	engine   [engineKinds]*engine
}

// New returns a machine at time start.
func New(gpus []GPU, start Time, sink Sink) *Machine {
	m := &Machine{sink: sink, now: start, events: map[EventID]uint64{}}
	for _, cfg := range gpus {
		g := &gpu{}
		g.set(cfg)
		for k := range engineKinds {
			e := &engine{m: m, gpu: g, kind: k}
			g.engine[k] = e
			m.engines = append(m.engines, e)
		}
		m.gpus = append(m.gpus, g)
	}
	return m
}

func (g *gpu) set(cfg GPU) {
	cfg.SMs = max(cfg.SMs, 1)
	cfg.Concurrent = max(cfg.Concurrent, 1)
	if cfg.CopySlice <= 0 {
		cfg.CopySlice = cfg.Slice
	}
	g.cfg = cfg
}

// Configure changes a GPU's settings; a new slice holds from the next turn on.
// Whether the GPU is Shared stays as it was.
func (m *Machine) Configure(gpu int, cfg GPU) {
	cfg.Shared = m.gpus[gpu].cfg.Shared
	m.gpus[gpu].set(cfg)
	m.scheduleAll()
}

// Now returns the time that has been simulated.
func (m *Machine) Now() Time { return m.now }

// AddContext creates a context on a GPU; owner is the caller's own word for it.
func (m *Machine) AddContext(gpu int, owner any) *Context {
	g := m.gpus[gpu]
	c := &Context{Owner: owner, GPU: gpu, gpu: g}
	g.contexts = append(g.contexts, c)
	return c
}

// LimitSMs bounds the multiprocessors that c can occupy at once on a Shared
// GPU; 0 is no bound.
func (m *Machine) LimitSMs(c *Context, n int) { c.limit = n }

// RemoveContext drops a context with all its work, at the present moment.
func (m *Machine) RemoveContext(c *Context) {
	m.drop(c)
	m.scheduleAll()
}

// Fail breaks a context as a kernel's fault does, at the present moment.
func (m *Machine) Fail(c *Context, code int32) {
	m.fail(c, code)
	m.scheduleAll()
}

func (m *Machine) fail(c *Context, code int32) {
	if c.gone {
		return
	}
	busy := m.drop(c)
	for _, s := range busy {
		s.done += uint64(s.len())
		s.ops, s.first = nil, 0
		m.sink.Done(s, s.done, m.now)
	}
	m.sink.Faulted(c, code, m.now)
}

// AddStream creates a stream in c. Of two streams of a context, the one with
// the numerically lower priority goes first.
func (m *Machine) AddStream(c *Context, kind StreamKind, priority int, owner any) *Stream {
	s := &Stream{Owner: owner, ctx: c, kind: kind, priority: priority}
	if kind == Legacy && c.legacy == nil {
		c.legacy = s
	}
	return s
}

// SetPriority changes the priority of s for what has not begun.
func (m *Machine) SetPriority(s *Stream, priority int) { s.priority = priority }

// Submit puts op at the end of s. The caller has advanced to the moment of
// submission. It returns the operation's sequence number in s, from 1, or 0 if
// the context takes no more work.
func (m *Machine) Submit(s *Stream, op Op) uint64 {
	if s.ctx.gone {
		return 0
	}
	m.ordinal++
	seq := s.push(op, m.ordinal)
	s.head().engine(s).schedule()
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

// Record records gen of e without a stream, at the present moment.
func (m *Machine) Record(e EventID, gen uint64) {
	m.record(e, gen)
	m.scheduleAll()
}

func (m *Machine) record(e EventID, gen uint64) {
	if m.events[e] < gen {
		m.events[e] = gen
	}
	m.sink.Recorded(e, gen, m.now)
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

// settle reschedules engines until nothing changes: a record on one engine may
// free a stream of another.
func (m *Machine) settle() {
	for again := true; again; {
		again = false
		for _, e := range m.engines {
			if e.schedule() {
				again = true
			}
		}
	}
}
