// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

const (
	us = Time(1000)
	ms = Time(1000 * 1000)
)

// trace is a Sink that writes everything down.
type trace struct {
	strings.Builder
	done     map[*Stream][]Time
	recorded map[EventID]Time
	due      map[*Stream]uint64
	ran      map[*Context]Time
}

func newTrace() *trace {
	return &trace{
		done: map[*Stream][]Time{}, recorded: map[EventID]Time{},
		due: map[*Stream]uint64{}, ran: map[*Context]Time{},
	}
}

func (r *trace) Done(s *Stream, seq uint64, t Time) {
	r.done[s] = append(r.done[s], t)
	fmt.Fprintf(r, "done %v %d %d\n", s.Owner, seq, t)
}

func (r *trace) Began(s *Stream, tag uint64, t Time) {
	fmt.Fprintf(r, "began %v %d %d\n", s.Owner, tag, t)
}

func (r *trace) Preempted(s *Stream, tag uint64, t Time) {
	fmt.Fprintf(r, "preempted %v %d %d\n", s.Owner, tag, t)
}

func (r *trace) Recorded(e EventID, gen uint64, t Time) {
	r.recorded[e] = t
	fmt.Fprintf(r, "recorded %d %d %d\n", e, gen, t)
}

func (r *trace) HostDue(s *Stream, seq uint64, t Time) {
	r.due[s] = seq
	fmt.Fprintf(r, "due %v %d %d\n", s.Owner, seq, t)
}

func (r *trace) Ran(c *Context, on EngineKind, from, to, ns Time) {
	if on == Compute {
		r.ran[c] += ns
	}
	fmt.Fprintf(r, "ran %v %d %d %d %d\n", c.Owner, on, from, to, ns)
}

func (r *trace) Faulted(c *Context, code int32, t Time) {
	fmt.Fprintf(r, "faulted %v %d %d\n", c.Owner, code, t)
}

var _ Sink = (*trace)(nil)

func exec(d Time) Op              { return Op{Kind: Exec, Dur: d} }
func mark(e EventID, g uint64) Op { return Op{Kind: Mark, Event: e, Gen: g} }

// saturate keeps n operations of length d in s until the clock reaches end.
func saturate(m *Machine, end Time, step Time, load map[*Stream]Time) {
	for m.Now() < end {
		for s, d := range load {
			for s.Len() < int(10*step/d)+4 {
				m.Submit(s, exec(d))
			}
		}
		m.Advance(m.Now() + step)
	}
}

func TestTwoSaturatingContextsShareEvenly(t *testing.T) {
	for _, d := range [][2]Time{{1 * ms, 1 * ms}, {50 * us, 5 * ms}, {10 * us, 30 * ms}} {
		r := newTrace()
		m := New([]GPU{{Slice: 2 * ms}}, 0, r)
		a, b := m.AddContext(0, "a"), m.AddContext(0, "b")
		load := map[*Stream]Time{m.AddStream(a, Blocking, 0, "a0"): d[0], m.AddStream(b, Blocking, 0, "b0"): d[1]}
		saturate(m, 2000*ms, 1*ms, load)
		share := float64(a.Executed) / float64(a.Executed+b.Executed)
		if share < 0.498 || share > 0.502 {
			t.Errorf("kernels of %d and %d ns: share of the first %.4f, want 0.5", d[0], d[1], share)
		}
		if busy := a.Executed + b.Executed; busy != 2000*ms {
			t.Errorf("engine was busy %d of %d ns", busy, 2000*ms)
		}
		if r.ran[a] != a.Executed || r.ran[b] != b.Executed {
			t.Error("Ran and Executed differ")
		}
	}
}

func TestLongKernelIsPreemptedAndElapsedIncludesNeighbours(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms}}, 0, r)
	a, b := m.AddContext(0, "a"), m.AddContext(0, "b")
	sa, sb := m.AddStream(a, Blocking, 0, "a0"), m.AddStream(b, Blocking, 0, "b0")
	m.Submit(sa, mark(1, 1))
	m.Submit(sa, exec(5*ms))
	m.Submit(sa, mark(2, 1))
	m.Submit(sb, exec(100*ms))
	m.Advance(200 * ms)
	// a 0-2, b 2-4, a 4-6, b 6-8, a 8-9
	if got := r.recorded[2] - r.recorded[1]; got != 9*ms {
		t.Errorf("5 ms kernel beside a neighbour took %d ns, want 9 ms", got)
	}
	if got := r.done[sb][0]; got != 105*ms {
		t.Errorf("neighbour done at %d, want 105 ms", got)
	}
}

func TestIdleContextIsPassedOver(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms}}, 0, r)
	a := m.AddContext(0, "a")
	m.AddContext(0, "idle")
	sa := m.AddStream(a, Blocking, 0, "a0")
	m.Submit(sa, exec(7*ms))
	m.Advance(10 * ms)
	if r.done[sa][0] != 7*ms {
		t.Errorf("done at %d, want 7 ms", r.done[sa][0])
	}
	m.Submit(sa, exec(1*ms))
	m.Advance(20 * ms)
	if r.done[sa][1] != 11*ms {
		t.Errorf("second done at %d, want 11 ms", r.done[sa][1])
	}
}

func TestSwitchCost(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 1 * ms, SwitchCost: 100 * us}}, 0, r)
	a, b := m.AddContext(0, "a"), m.AddContext(0, "b")
	sa, sb := m.AddStream(a, Blocking, 0, "a0"), m.AddStream(b, Blocking, 0, "b0")
	m.Submit(sa, exec(2*ms))
	m.Submit(sb, exec(1*ms))
	m.Advance(50 * ms)
	// a 0-1, switch, b 1.1-2.1, switch, a 2.2-3.2
	if r.done[sb][0] != 2*ms+100*us || r.done[sa][0] != 3*ms+200*us {
		t.Errorf("done %v and %v", r.done[sb], r.done[sa])
	}
}

func TestStreamsOfOneContextRunInSubmissionOrder(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms}}, 0, r)
	c := m.AddContext(0, "c")
	legacy := m.AddStream(c, Legacy, 0, "legacy")
	x, y, free := m.AddStream(c, Blocking, 0, "x"), m.AddStream(c, Blocking, 0, "y"), m.AddStream(c, NonBlocking, 0, "free")
	m.Submit(x, Op{Kind: Host})
	m.Submit(legacy, exec(1*ms)) // behind x
	m.Submit(y, exec(1*ms))      // behind legacy
	m.Submit(free, exec(3*ms))   // behind nobody
	m.Advance(10 * ms)
	if r.due[x] != 1 || len(r.done[legacy]) != 0 || len(r.done[y]) != 0 || len(r.done[free]) != 1 {
		t.Fatalf("before release:\n%s", r.String())
	}
	m.Release(x, 2) // not the one that waits
	m.Advance(11 * ms)
	if len(r.done[x]) != 0 {
		t.Fatal("released by a wrong number")
	}
	m.Release(x, 1)
	m.Advance(20 * ms)
	if r.done[legacy][0] != 12*ms || r.done[y][0] != 13*ms {
		t.Errorf("after release:\n%s", r.String())
	}
}

func TestWaitAcrossGPUs(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms}, {Slice: 2 * ms}}, 0, r)
	a, b := m.AddContext(0, "a"), m.AddContext(1, "b")
	sa, sb := m.AddStream(a, Blocking, 0, "a0"), m.AddStream(b, Blocking, 0, "b0")
	m.Submit(sb, Op{Kind: Wait, Event: 9, Gen: 1})
	m.Submit(sb, exec(1*ms))
	m.Submit(sa, exec(4*ms))
	m.Submit(sa, mark(9, 1))
	m.Advance(50 * ms)
	if r.done[sb][1] != 5*ms {
		t.Errorf("waiter done at %v, want 5 ms", r.done[sb])
	}
}

func TestRemoveContextDropsItsWork(t *testing.T) {
	r := newTrace()
	m := New([]GPU{{Slice: 2 * ms}}, 0, r)
	a, b := m.AddContext(0, "a"), m.AddContext(0, "b")
	sa, sb := m.AddStream(a, Blocking, 0, "a0"), m.AddStream(b, Blocking, 0, "b0")
	m.Submit(sa, exec(1000*ms))
	m.Submit(sb, exec(3*ms))
	m.Advance(1 * ms)
	m.RemoveContext(a)
	m.Advance(50 * ms)
	if a.Executed != 1*ms || r.done[sb][0] != 4*ms {
		t.Errorf("a ran %d, b done %v", a.Executed, r.done[sb])
	}
	if m.Submit(sa, exec(1)) != 0 {
		t.Error("a removed context accepted work")
	}
}

func TestRemaining(t *testing.T) {
	m := New([]GPU{{Slice: 2 * ms}}, 0, newTrace())
	s := m.AddStream(m.AddContext(0, "a"), Blocking, 0, "s")
	m.Submit(s, exec(1*ms))
	last := m.Submit(s, exec(2*ms))
	m.Advance(500 * us)
	if got := s.Remaining(last); got != 2500*us {
		t.Errorf("remaining %d, want 2.5 ms", got)
	}
	if s.Remaining(last+1) != 0 {
		t.Error("unknown operation has a remaining time")
	}
	m.Advance(3 * ms)
	if s.Remaining(last) != 0 || s.Len() != 0 {
		t.Error("complete operation has a remaining time")
	}
}

// random drives a machine by a seeded script; step cuts Advance into pieces.
func random(seed int64, step Time) string {
	rng := rand.New(rand.NewSource(seed))
	r := newTrace()
	m := New([]GPU{
		{Slice: 2 * ms, SwitchCost: 20 * us, CopySlice: 100 * us},
		{Slice: 2 * ms, SMs: 8, Concurrent: 4},
	}, 0, r)
	var streams []*Stream
	for c := range 6 {
		ctx := m.AddContext(c%2, c)
		streams = append(streams, m.AddStream(ctx, Legacy, 0, c*10))
		for s := range 3 {
			streams = append(streams, m.AddStream(ctx, StreamKind(s%2), -s, c*10+s+1))
		}
	}
	at := Time(0)
	for i := range 3000 {
		at += Time(rng.Intn(60)) * us
		for m.Now()+step < at {
			m.Advance(m.Now() + step)
		}
		m.Advance(at)
		s := streams[rng.Intn(len(streams))]
		switch rng.Intn(6) {
		case 0:
			m.Submit(s, mark(EventID(i), 1))
		case 1:
			if i > 200 {
				m.Submit(s, Op{Kind: Wait, Event: EventID(i - 100 - rng.Intn(100)), Gen: uint64(rng.Intn(2))})
			}
		case 2:
			m.Submit(s, Op{Kind: Exec, On: CopyIn + EngineKind(rng.Intn(3)), Dur: Time(rng.Intn(900)) * us})
		case 3:
			m.Submit(s, Op{Kind: Exec, Dur: Time(rng.Intn(900)) * us, SMs: rng.Intn(9), Fault: int32(rng.Intn(400) / 399)})
		default:
			m.Submit(s, exec(Time(rng.Intn(4000))*us/8))
		}
	}
	m.Advance(at + 10000*ms)
	return r.String()
}

// dropRan removes the accounting lines, which follow the caller's steps.
func dropRan(s string) string {
	var b strings.Builder
	for _, l := range strings.Split(s, "\n") {
		if !strings.HasPrefix(l, "ran ") {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

func TestSameInputSameTrace(t *testing.T) {
	for seed := range int64(8) {
		if random(seed, 200*us) != random(seed, 200*us) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		if dropRan(random(seed, 200*us)) != dropRan(random(seed, 7*us)) {
			t.Fatalf("seed %d: the trace depends on the steps of Advance", seed)
		}
	}
}

func BenchmarkSubmitAndRun(b *testing.B) {
	m := New([]GPU{{Slice: 2 * ms}}, 0, nop{})
	s := m.AddStream(m.AddContext(0, "a"), Blocking, 0, "s")
	for i := 0; b.Loop(); i++ {
		m.Submit(s, exec(10*us))
		if i%64 == 63 {
			m.Advance(m.Now() + 640*us)
		}
	}
}

type nop struct{}

func (nop) Began(*Stream, uint64, Time)     {}
func (nop) Preempted(*Stream, uint64, Time) {}
func (nop) Done(*Stream, uint64, Time)      {}
func (nop) Recorded(EventID, uint64, Time)  {}
func (nop) HostDue(*Stream, uint64, Time)   {}
func (nop) Faulted(*Context, int32, Time)   {}

func (nop) Ran(*Context, EngineKind, Time, Time, Time) {}
