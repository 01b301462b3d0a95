// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// Operations of graphs that one client can have in the model. What is beyond
// runs as one operation each.
const maxBranchOps = 1 << 14

// maxPieces is how many pieces a graph can have and ever be split.
const maxPieces = maxBranchOps / 4

const graphTag = 1 << 62 // of what is no single kernel

// branch is a queue of the model in which one branch of a graph runs. The
// client knows nothing of it: its own stream waits until all branches are done.
type branch struct {
	c   *client
	sim *sim.Stream
	ops uint64 // ever submitted
	end uint64 // of which are complete
}

// piece is an operation of a branch, a mark behind one, or what waits for it.
type piece struct {
	branch uint32
	kind   pieceKind
	at     point // mark: this one; join: the one that is waited for
	op     sim.Op
}

type pieceKind uint8

const (
	workPiece pieceKind = iota
	markPiece
	joinPiece
)

// point is a place in a branch: behind its first n parts.
type point struct {
	branch uint32
	n      uint64
}

// plan is one run of a graph on the engines of a GPU.
type plan struct {
	pieces []piece
	sum    sim.Op // all of it as one operation
	split  bool   // parts of it can overlap: other engines, or other kernels
	many   bool   // it has more pieces than are kept: it runs as one operation
}

// planKey is what a plan depends on beside its graph.
type planKey struct {
	gpu     int
	sms     uint32
	changes uint64
}

const (
	// maxDrawn is how many parts a graph may have for its kernels' lengths to
	// follow each launch: of a longer one the first launch on a GPU decides what
	// is drawn, and of how many multiprocessors.
	maxDrawn = 4096
	maxPlans = 64 // kept of one graph
)

// planGraph describes times runs of a graph to the model. A graph that has been
// launched before is not gone through again: a client can submit a thousand
// launches of a long one at a stroke, and everybody would wait.
func (h *Host) planGraph(cc *clientContext, g *graph, times uint64) plan {
	key := planKey{cc.gpu, cc.sms, h.changes}
	long := len(g.parts) > maxDrawn
	if long {
		key.sms = 0
	}
	p := g.plans[key]
	if p == nil {
		var varies bool
		p, varies = h.newPlan(cc, g)
		if long || !varies {
			if g.plans == nil || len(g.plans) >= maxPlans {
				g.plans = map[planKey]*plan{}
			}
			g.plans[key] = p
		}
	}
	if times == 1 || p.sum.Fault != 0 { // nothing comes after a fault
		return *p
	}
	q := plan{sum: p.sum, split: p.split, many: p.many, pieces: slices.Clone(p.pieces)}
	q.sum.Dur = repeated(q.sum.Dur, times)
	for i := range q.pieces {
		q.pieces[i].op.Dur = repeated(q.pieces[i].op.Dur, times)
	}
	return q
}

// newPlan describes one run of a graph, and says whether the next may be of
// another length. Neighbours in a branch that need the same engine become one
// operation, unless another branch waits for the first of them.
func (h *Host) newPlan(cc *clientContext, g *graph) (p *plan, varies bool) {
	p = &plan{sum: sim.Op{Kind: sim.Exec, Tag: graphTag}}
	most := maxKernelTime.Nanoseconds()
	var open [wire.PartBranches]int // index of the last piece, if it can grow, plus one
	var parts [wire.PartBranches]uint64
	var kinds [4]bool
	var used [wire.PartBranches]bool
	add := func(x piece) {
		if p.many = p.many || len(p.pieces) >= maxPieces; !p.many {
			p.pieces = append(p.pieces, x)
		}
	}
	for _, part := range g.parts {
		if part.Kind == wire.PartJoin {
			open[part.Branch] = 0
			add(piece{branch: part.Branch, kind: joinPiece, at: point{part.Other, part.Bytes}})
			continue
		}
		op, n := h.partOp(cc, &part)
		varies = varies || part.Kind == wire.PartKernel && h.varies(cc, part.Function)
		if op.Fault != 0 {
			n = min(n, 1)
		}
		op.Dur = repeated(op.Dur, n)
		if n > 0 && (op.Dur > 0 || op.Fault != 0) {
			p.sum.On = op.On
			p.sum.Dur = min(most, p.sum.Dur+op.Dur)
			p.sum.SMs = widest(p.sum.SMs, op.SMs, count(kinds[:]) == 0)
			kinds[op.On], used[part.Branch] = true, true
			if k := open[part.Branch]; k > 0 && k <= len(p.pieces) && p.pieces[k-1].op.On == op.On {
				last := &p.pieces[k-1].op
				last.Dur = min(most, last.Dur+op.Dur)
				last.SMs = widest(last.SMs, op.SMs, false)
				last.Fault = op.Fault
			} else {
				add(piece{branch: part.Branch, op: op})
				open[part.Branch] = len(p.pieces)
			}
		}
		if op.Fault != 0 {
			p.sum.Fault = op.Fault
			break
		}
		parts[part.Branch]++
		if at := (point{part.Branch, parts[part.Branch]}); g.waited[at] {
			add(piece{branch: part.Branch, kind: markPiece, at: at})
			open[part.Branch] = 0
		}
	}
	engines, branches := count(kinds[:]), count(used[:])
	p.split = engines > 1 || (branches > 1 && h.engineOf(cc.gpu).Concurrent > 1)
	if p.many {
		p.pieces, p.split = nil, false
	}
	if engines > 1 {
		p.sum.On = sim.Compute
	}
	return p, varies
}

// partOp describes one part, and how often it runs.
func (h *Host) partOp(cc *clientContext, part *wire.GraphPart) (op sim.Op, times uint64) {
	times = 1
	switch part.Kind {
	case wire.PartKernel:
		op, times = h.kernelOp(cc, part.Function, part.Shape), uint64(part.Count)
	case wire.PartFill:
		op = h.copyOp(cc, &wire.Entry{Kind: wire.EntryFill, Arg64: part.Bytes})
	default:
		op = h.copyOp(cc, &wire.Entry{Kind: wire.EntryCopy, Arg: part.Function & 0xffff, Arg64: part.Bytes})
	}
	op.Tag = graphTag
	return op, times
}

// widest returns how many multiprocessors two kernels need of which one runs
// after the other; 0 is all.
func widest(a, b int, first bool) int {
	if first {
		return b
	}
	if a == 0 || b == 0 {
		return 0
	}
	return max(a, b)
}

func count(v []bool) (n int) {
	for _, x := range v {
		if x {
			n++
		}
	}
	return n
}

// submitGraph puts times runs of a graph into s: as one operation of all their
// time, or, where parts can overlap, as one that lets queues of their own go
// and waits for them.
func (h *Host) submitGraph(s *stream, cc *clientContext, e *wire.Entry, g *graph, times uint64) {
	c := s.c
	p := h.planGraph(cc, g, times)
	if !p.split || c.inBranches+4*len(p.pieces)+2*int(wire.PartBranches) > maxBranchOps {
		h.submitOp(s, e, p.sum)
		return
	}
	c.markGen++
	gen := c.markGen
	start, end := c.innerEvent(s, 0), c.innerEvent(s, 1)
	if !h.submitOp(s, e, sim.Op{Kind: sim.Fork, Event: start, Join: end, Gen: gen}) {
		return
	}
	r := launchedGraph{h: h, s: s, start: start, gen: gen, marks: map[point]uint64{}}
	for i := range p.pieces {
		r.piece(&p.pieces[i])
	}
	r.finish(end)
}

// launchedGraph submits the branches of one launch.
type launchedGraph struct {
	h      *Host
	s      *stream
	start  sim.EventID
	gen    uint64
	marks  map[point]uint64
	branch [wire.PartBranches]struct {
		begun bool
		waits []sim.Op // before its next operation, on the same engine as that
	}
}

func (r *launchedGraph) piece(x *piece) {
	r.begin(x.branch)
	switch x.kind {
	case workPiece:
		r.flush(x.branch, x.op.On, true)
		r.h.putBranch(r.s, x.branch, x.op)
	case markPiece:
		r.mark(x.at)
	case joinPiece:
		r.wait(x.branch, x.at)
	}
}

func (r *launchedGraph) begin(k uint32) {
	if b := &r.branch[k]; !b.begun {
		b.begun = true
		b.waits = append(b.waits, sim.Op{Kind: sim.Wait, Event: r.start, Gen: r.gen})
	}
}

func (r *launchedGraph) flush(k uint32, on sim.EngineKind, here bool) {
	b := &r.branch[k]
	for _, op := range b.waits {
		op.On, op.Here = on, here
		r.h.putBranch(r.s, k, op)
	}
	b.waits = b.waits[:0]
}

// mark records that a branch has come to a point.
func (r *launchedGraph) mark(at point) {
	c := r.s.c
	r.flush(at.branch, 0, false)
	c.markGen++
	r.marks[at] = c.markGen
	r.h.putBranch(r.s, at.branch, sim.Op{Kind: sim.Mark, Event: c.innerEvent(r.s, 2+at.branch), Gen: c.markGen})
}

// wait lets a branch wait for a point of another one. A point that was never
// marked is one that a client made up.
func (r *launchedGraph) wait(k uint32, at point) {
	if gen := r.marks[at]; gen > 0 && at.branch != k {
		b := &r.branch[k]
		b.waits = append(b.waits, sim.Op{Kind: sim.Wait, Event: r.s.c.innerEvent(r.s, 2+at.branch), Gen: gen})
	}
}

// finish records end when all branches are done.
func (r *launchedGraph) finish(end sim.EventID) {
	r.begin(0)
	for k := uint32(1); k < wire.PartBranches; k++ {
		if last := (point{k, 1<<64 - 1}); r.branch[k].begun {
			r.mark(last)
			r.wait(0, last)
		}
	}
	r.flush(0, 0, false)
	r.h.putBranch(r.s, 0, sim.Op{Kind: sim.Mark, Event: end, Gen: r.gen})
}

// innerEvent names an event that no client can name: beyond the slots.
func (c *client) innerEvent(s *stream, k uint32) sim.EventID {
	return c.event(wire.EventSlots + s.slot*(wire.PartBranches+2) + k)
}

// putBranch puts op at the end of a branch of s.
func (h *Host) putBranch(s *stream, b uint32, op sim.Op) {
	c := s.c
	if s.branches[b] == nil {
		x := &branch{c: c}
		x.sim = h.machine.AddStream(s.ctx.sim, sim.NonBlocking, s.priority, x)
		s.branches[b] = x
	}
	x := s.branches[b]
	c.inBranches++
	x.ops++
	if h.machine.Submit(x.sim, op) == 0 {
		c.inBranches--
		x.ops--
	}
}

// ended says that a branch has come to its seq-th operation.
func (x *branch) ended(seq uint64) {
	x.c.inBranches -= int(seq - x.end) //nolint:gosec // small
	x.end = seq
}
