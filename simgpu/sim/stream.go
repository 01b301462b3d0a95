// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "slices"

// StreamKind says how a stream is ordered against its context's default stream.
type StreamKind uint8

// Blocking streams and the Legacy default stream wait for each other's earlier
// work; NonBlocking ones do not.
const (
	Blocking StreamKind = iota
	NonBlocking
	Legacy
)

// Stream is a queue of operations that complete in order.
type Stream struct {
	Owner any

	ctx      *Context
	kind     StreamKind
	priority int
	ops      []queued
	first    int        // index of the head in ops
	home     EngineKind // of the newest operation
	done     uint64     // operations complete
	enqueued Time       // engine time ever queued here
	executed Time       // of which has run
}

type queued struct {
	Op
	ordinal uint64
	// What is left is work: time times multiprocessors, of which the operation
	// can use need at once, and while it runs has alloc. On an engine for one
	// operation both are 1.
	work    Time
	need    int
	alloc   int
	total   Time // Stream.enqueued at this operation's end
	hostDue bool
	begun   bool // it has run, and is to be resumed before others begin
}

func (op *queued) engine(s *Stream) *engine { return s.ctx.gpu.engine[op.On] }

// Context returns the context that s belongs to.
func (s *Stream) Context() *Context { return s.ctx }

// Len returns how many operations are not complete.
func (s *Stream) Len() int { return s.len() }

func (s *Stream) len() int      { return len(s.ops) - s.first }
func (s *Stream) head() *queued { return &s.ops[s.first] }

// run lets the head, which runs, run for d.
func (s *Stream) run(d Time) {
	op := s.head()
	op.work -= d * Time(op.alloc)
	s.executed += d * Time(op.alloc) / Time(op.need)
}

func (s *Stream) push(op Op, ordinal uint64) uint64 {
	if op.Kind != Exec || op.Dur < 0 {
		op.Dur = 0
	}
	if (op.Kind != Exec && !op.Here) || op.On >= engineKinds {
		op.On = s.home
	}
	s.home = op.On
	if s.first > 64 && s.first > len(s.ops)/2 {
		s.ops = append(s.ops[:0], s.ops[s.first:]...)
		s.first = 0
	}
	s.enqueued += op.Dur
	q := queued{Op: op, ordinal: ordinal, need: 1, alloc: 1, total: s.enqueued}
	if e := q.engine(s); e.parallel() {
		if q.need = op.SMs; q.need <= 0 || q.need > e.gpu.cfg.SMs {
			q.need = e.gpu.cfg.SMs
		}
	}
	q.work = op.Dur * Time(q.need)
	s.ops = append(s.ops, q)
	if s.len() == 1 {
		s.ctx.busy = append(s.ctx.busy, s)
		s.head().engine(s).heads++
	}
	return s.done + uint64(s.len())
}

// complete takes the head off.
func (s *Stream) complete(m *Machine) {
	s.head().engine(s).heads--
	s.executed = s.head().total
	s.first++
	s.done++
	if s.len() == 0 {
		s.ops, s.first = s.ops[:0], 0
		if k := slices.Index(s.ctx.busy, s); k >= 0 {
			s.ctx.busy = slices.Delete(s.ctx.busy, k, k+1)
		}
	} else {
		s.head().engine(s).heads++
	}
	m.sink.Done(s, s.done, m.now)
}

// eligible reports whether the head may run.
func (s *Stream) eligible(m *Machine) bool {
	op := s.head()
	if op.hostDue {
		return false
	}
	if op.Kind == Wait && m.events[op.Event] < op.Gen {
		return false
	}
	switch s.kind {
	case Legacy:
		for _, o := range s.ctx.busy {
			if o != s && o.kind == Blocking && o.head().ordinal < op.ordinal {
				return false
			}
		}
	case Blocking:
		if l := s.ctx.legacy; l != nil && l != s && l.len() > 0 && l.head().ordinal < op.ordinal {
			return false
		}
	}
	return true
}

// Remaining returns the engine time that s itself still needs until its seq-th
// operation is complete: a lower bound of the time to wait. It is 0 for an
// operation that is complete or not yet submitted.
func (s *Stream) Remaining(seq uint64) Time {
	if seq <= s.done || seq > s.done+uint64(s.len()) {
		return 0
	}
	return s.ops[s.first+int(seq-s.done)-1].total - s.executed
}
