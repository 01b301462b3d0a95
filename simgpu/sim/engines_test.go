// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"
)

func copyOp(on EngineKind, d Time) Op { return Op{Kind: Exec, On: on, Dur: d} }

func TestCopiesOverlapKernelsOfOtherStreams(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms}}, 0, r)
	c := m.AddContext(0, "c")
	k, in, out := m.AddStream(c, NonBlocking, 0, "k"), m.AddStream(c, NonBlocking, 0, "in"), m.AddStream(c, NonBlocking, 0, "out")
	m.Submit(k, exec(5*ms))
	m.Submit(in, copyOp(CopyIn, 4*ms))
	m.Submit(in, mark(1, 1))
	m.Submit(out, copyOp(CopyOut, 3*ms))
	m.Submit(out, Op{Kind: Wait, Event: 1, Gen: 1})
	m.Submit(out, copyOp(CopyOut, 1*ms))
	m.Submit(in, exec(1*ms)) // behind the copy and behind k's kernel
	m.Advance(20 * ms)
	if got := r.done[k][0]; got != 5*ms {
		t.Errorf("kernel done at %d, want 5 ms", got)
	}
	// The record is the copy's: it does not wait for the kernel to end.
	if got := r.recorded[1]; got != 4*ms {
		t.Errorf("record behind the copy at %d, want 4 ms", got)
	}
	if got := r.done[out]; got[0] != 3*ms || got[2] != 5*ms {
		t.Errorf("copies out done at %v, want 3 and 5 ms", got)
	}
	if got := r.done[in][2]; got != 6*ms {
		t.Errorf("kernel behind the copy done at %d, want 6 ms", got)
	}
	if c.Executed != 6*ms {
		t.Errorf("compute engine charged %d ns: copies count as kernels", c.Executed)
	}
}

func TestContextsShareACopyEngineFairly(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms, CopySlice: 100 * us}}, 0, r)
	a, b := m.AddContext(0, "a"), m.AddContext(0, "b")
	sa, sb := m.AddStream(a, Blocking, 0, "a0"), m.AddStream(b, Blocking, 0, "b0")
	m.Submit(sa, copyOp(CopyIn, 100*ms))
	for range 50 {
		m.Submit(sb, copyOp(CopyIn, 1*ms))
	}
	m.Advance(200 * ms)
	// A copy of one piece and many small ones: half the engine each.
	if got := r.done[sb][49]; got < 99*ms || got > 101*ms {
		t.Errorf("50 ms of small copies took %d ns beside a large one, want 100 ms", got)
	}
	if got := r.done[sa][0]; got != 150*ms {
		t.Errorf("large copy done at %d, want 150 ms", got)
	}
}

func TestHigherPriorityGoesFirst(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms}}, 0, r)
	c := m.AddContext(0, "c")
	low, high := m.AddStream(c, NonBlocking, 0, "low"), m.AddStream(c, NonBlocking, -5, "high")
	for range 4 {
		m.Submit(low, exec(1*ms))
	}
	m.Submit(high, exec(1*ms))
	m.Advance(20 * ms)
	// The kernel that has begun is not preempted by priority.
	if got := r.done[high][0]; got != 2*ms {
		t.Errorf("high priority done at %d, want 2 ms", got)
	}
	if got := r.done[low][3]; got != 5*ms {
		t.Errorf("low priority done at %d, want 5 ms", got)
	}
}

func TestKernelsOfAContextRunAtOnceWhileThereIsRoom(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms, SMs: 100, Concurrent: 8}}, 0, r)
	c, other := m.AddContext(0, "c"), m.AddContext(0, "other")
	var s []*Stream
	for i := range 4 {
		s = append(s, m.AddStream(c, NonBlocking, 0, i))
		m.Submit(s[i], Op{Kind: Exec, Dur: 1 * ms, SMs: 40})
	}
	// 40 + 40 of 100, and 20 for the third, which so does half of its work.
	m.Advance(10 * ms)
	for i, want := range []Time{1 * ms, 1 * ms, 1500 * us, 2 * ms} {
		if got := r.done[s[i]][0]; got != want {
			t.Errorf("kernel %d done at %d, want %d", i, got, want)
		}
	}
	if c.Executed != 2*ms {
		t.Errorf("engine time %d, want 2 ms: time counts once", c.Executed)
	}
	// Preempted together, resumed together.
	o := m.AddStream(other, NonBlocking, 0, "o")
	for i := range 2 {
		m.Submit(s[i], Op{Kind: Exec, Dur: 3 * ms, SMs: 40})
	}
	m.Submit(o, exec(2*ms))
	m.Advance(30 * ms)
	if a, b, n := r.done[s[0]][1], r.done[s[1]][1], r.done[o][0]; a != 15*ms || b != 15*ms || n != 14*ms {
		t.Errorf("done at %d, %d and neighbour %d, want 15, 15 and 14 ms", a, b, n)
	}
}

func TestBetweenKernelsLetsAKernelEnd(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms, Preempt: BetweenKernels}}, 0, r)
	a, b := m.AddContext(0, "a"), m.AddContext(0, "b")
	sa, sb := m.AddStream(a, Blocking, 0, "a0"), m.AddStream(b, Blocking, 0, "b0")
	m.Submit(sa, exec(5*ms))
	m.Submit(sa, exec(1*ms))
	m.Submit(sb, exec(1*ms))
	m.Advance(50 * ms)
	if r.done[sa][0] != 5*ms || r.done[sb][0] != 6*ms || r.done[sa][1] != 7*ms {
		t.Errorf("a done at %v, b at %v; want 5, 7 and 6 ms", r.done[sa], r.done[sb])
	}
}

func TestFaultBreaksItsContextOnly(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms}}, 0, r)
	a, b := m.AddContext(0, "a"), m.AddContext(0, "b")
	sa, sb := m.AddStream(a, Blocking, 0, "a0"), m.AddStream(b, Blocking, 0, "b0")
	side := m.AddStream(a, NonBlocking, 0, "a1")
	m.Submit(sa, Op{Kind: Exec, Dur: 1 * ms, Fault: 719})
	m.Submit(sa, exec(1*ms))
	m.Submit(sa, mark(7, 1))
	m.Submit(side, copyOp(CopyIn, 50*ms))
	m.Submit(sb, exec(3*ms))
	m.Advance(50 * ms)
	if got := r.done[sb]; len(got) != 1 || got[0] != 4*ms {
		t.Errorf("neighbour done at %v, want 4 ms", got)
	}
	if len(r.recorded) != 0 || sa.Len() != 0 || side.Len() != 0 {
		t.Errorf("a broken context's work: recorded %v, left %d and %d", r.recorded, sa.Len(), side.Len())
	}
	if m.Submit(sa, exec(1)) != 0 {
		t.Error("a broken context accepted work")
	}
	m.RemoveContext(a)
	m.Submit(sb, exec(1*ms))
	if m.Advance(60 * ms); len(r.done[sb]) != 2 {
		t.Error("the neighbour does not go on")
	}
}

func TestSharedGPU(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms, SMs: 100, Shared: true}}, 0, r)
	a, b := m.AddContext(0, "a"), m.AddContext(0, "b")
	m.LimitSMs(a, 40)
	sa, sb := m.AddStream(a, Blocking, 0, "a0"), m.AddStream(b, Blocking, 0, "b0")
	a1 := m.AddStream(a, NonBlocking, 0, "a1")
	m.Submit(sa, Op{Kind: Exec, Dur: 4 * ms, SMs: 30})
	m.Submit(a1, Op{Kind: Exec, Dur: 1 * ms, SMs: 20}) // has 10: a's bound is 40
	m.Submit(sb, Op{Kind: Exec, Dur: 4 * ms, SMs: 60})
	m.Advance(2 * ms)
	if r.done[a1][0] != 2*ms || a.Executed != 2*ms*40/100 || a.Executed+b.Executed != 2*ms {
		t.Errorf("a1 done at %v, charged %d and %d; want 2 ms, 40 and 60 percent of 2 ms", r.done[a1], a.Executed, b.Executed)
	}
	m.Advance(4 * ms)
	if r.done[sa][0] != 4*ms || r.done[sb][0] != 4*ms {
		t.Errorf("done at %v and %v: two clients do not run at once", r.done[sa], r.done[sb])
	}
	m.Submit(sb, Op{Kind: Exec, Dur: 4 * ms, SMs: 70})
	m.Submit(sa, Op{Kind: Exec, Dur: 1 * ms, SMs: 30, Fault: 719})
	m.Advance(20 * ms)
	if m.Submit(sb, exec(1)) != 0 {
		t.Error("a fault of one client of a shared GPU left the other alone")
	}
}

// A client with many kernels queued does not keep out one that comes later.
func TestClientsOfASharedGPUTakeTurns(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms, SMs: 100, Shared: true}}, 0, r)
	sa := m.AddStream(m.AddContext(0, "a"), Blocking, 0, "a0")
	sb := m.AddStream(m.AddContext(0, "b"), Blocking, 0, "b0")
	for range 100 {
		m.Submit(sa, exec(1*ms))
	}
	m.Advance(500 * us)
	for range 3 {
		m.Submit(sb, exec(1*ms))
	}
	m.Advance(50 * ms)
	if got := r.done[sb]; !slices.Equal(got, []Time{2 * ms, 4 * ms, 6 * ms}) {
		t.Errorf("the later client is done at %v, want 2, 4 and 6 ms", got)
	}
	// A small kernel leaves room for a large one, which then takes all.
	sc, sd := m.AddStream(m.AddContext(0, "c"), Blocking, 0, "c0"), m.AddStream(m.AddContext(0, "d"), Blocking, 0, "d0")
	m.Advance(200 * ms)
	from := m.Now()
	m.Submit(sc, Op{Kind: Exec, Dur: 10 * ms, SMs: 1})
	m.Submit(sd, exec(1*ms))
	m.Advance(from + 20*ms)
	if got := r.done[sd][0] - from; got != (100*ms+98)/99 {
		t.Errorf("a kernel for 100 multiprocessors on 99 took %d ns", got)
	}
}

func TestConfigureHoldsFromTheNextTurn(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 10 * ms}}, 0, r)
	a, b := m.AddContext(0, "a"), m.AddContext(0, "b")
	sa, sb := m.AddStream(a, Blocking, 0, "a0"), m.AddStream(b, Blocking, 0, "b0")
	m.Submit(sa, exec(30*ms))
	m.Submit(sb, exec(1*ms))
	m.Submit(sb, exec(4*ms))
	m.Advance(1 * ms)
	m.Configure(0, GPU{Slice: 1 * ms})
	m.Advance(100 * ms)
	// a 0-10, then turns of 1 ms: b 10-11, a, b 12-13, a, b, a, b, a, b 18-19
	if got := r.done[sb]; !slices.Equal(got, []Time{11 * ms, 19 * ms}) {
		t.Errorf("b done at %v, want 11 and 19 ms", got)
	}
}
