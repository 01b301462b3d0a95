// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/kernel"
	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

func TestKernelOps(t *testing.T) {
	cfg := testConfig()
	cfg.GPUs[0].Engine.Watchdog = time.Second
	cfg.Kernels, _ = kernel.ParseRules([]string{"k=1ms", "w*=1us/wave", "bad=2ms+trap", "stuck=hang", "v=1ms~20%"})
	h, err := New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	cc := &clientContext{}
	k, other := h.names.intern("k"), h.names.intern("other")
	if h.names.intern("k") != k || k == other || k == 0 {
		t.Errorf("numbers %d and %d", k, other)
	}
	// 4 multiprocessors, 8 blocks of 256 threads on each: 33 blocks are two waves.
	const shape = 256 << 40
	for name, want := range map[string]sim.Op{
		"k":     {Dur: 1e6, SMs: 4},
		"other": {Dur: 1e4, SMs: 4},
		"wave":  {Dur: 2e3, SMs: 4},
		"bad":   {Dur: 2e6, SMs: 4, Fault: 719},
		"stuck": {Dur: 1e9, SMs: 4, Fault: 702},
	} {
		want.Tag = uint64(h.names.intern(name))
		if got := h.kernelOp(cc, h.names.intern(name), shape|33); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if a, b := h.kernelOp(cc, 1<<31, 1), h.kernelOp(cc, 0, 1); a.Dur != b.Dur || a.SMs != 1 {
		t.Errorf("a function that does not exist: %+v", a)
	}
	v := h.names.intern("v")
	if a, b := h.kernelOp(cc, v, 1), h.kernelOp(cc, v, 1); a.Dur == b.Dur {
		t.Error("two launches that are to vary have one length")
	}
	if err := h.SetKernelTime("other", time.Second); err != nil || h.kernelOp(cc, other, 1).Dur != 1e9 {
		t.Errorf("a length did not change: %v", err)
	}
	g := graph{parts: []wire.GraphPart{{Function: k, Count: 3}, {Function: other, Count: 2}}}
	if got := h.planGraph(cc, &g, 1).sum; got.Dur != 3e6+2e9 {
		t.Errorf("graph runs %d ns", got.Dur)
	}
	if got := h.planGraph(cc, &g, 4).sum; got.Dur != 4*(3e6+2e9) {
		t.Errorf("graph runs %d ns in four runs", got.Dur)
	}
	if err := h.SetKernelTime("k", 2*time.Millisecond); err != nil || h.planGraph(cc, &g, 1).sum.Dur != 6e6+2e9 {
		t.Errorf("a length did not change in a graph that was launched before: %v", err)
	}
	vary := graph{parts: []wire.GraphPart{{Function: v, Count: 1}}}
	if h.planGraph(cc, &vary, 1).sum.Dur == h.planGraph(cc, &vary, 1).sum.Dur {
		t.Error("two launches of a graph that are to vary have one length")
	}
	g = graph{parts: g.parts}
	g.parts[1].Count = 1<<32 - 1
	if got := h.planGraph(cc, &g, 1).sum; got.Dur > maxKernelTime.Nanoseconds() || got.Dur < maxKernelTime.Nanoseconds()-2e9 {
		t.Errorf("an endless graph runs %d ns", got.Dur)
	}
	g = graph{parts: append([]wire.GraphPart{{Function: h.names.intern("bad"), Count: 5}}, g.parts...)}
	if got := h.planGraph(cc, &g, 3).sum; got.Dur != 2e6 || got.Fault != 719 {
		t.Errorf("a graph that fails at once: %+v", got)
	}
}

// Names stay for ever, so all of them together are bounded, also by their length.
func TestNamesAreBounded(t *testing.T) {
	n, err := newNameTable(nil)
	if err != nil {
		t.Fatal(err)
	}
	first := n.intern("first")
	n.bytes = maxNameBytes - 10
	if n.intern("0123456789a") != 0 || n.intern("0123456789") == 0 || n.intern("b") != 0 || n.intern("first") != first {
		t.Errorf("%d bytes of names are kept, %d are wanted", n.bytes, maxNameBytes)
	}
}

// Everybody waits while a graph is gone through: a long one is once, whoever
// launches it.
func TestLongGraphIsPlannedOnce(t *testing.T) {
	h, err := New(testConfig(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	g := graph{parts: make([]wire.GraphPart, maxGraphParts)}
	for i := range g.parts {
		g.parts[i] = wire.GraphPart{Count: 1, Branch: uint32(i % 2), Kind: wire.PartKernel}
	}
	begin := time.Now()
	want := h.planGraph(&clientContext{}, &g, 1).sum
	once := time.Since(begin)
	begin = time.Now()
	for i := range uint64(1000) {
		if got := h.planGraph(&clientContext{sms: uint32(i)}, &g, i+1).sum; got.Dur < want.Dur {
			t.Fatalf("launch %d runs %d ns, the first %d", i, got.Dur, want.Dur)
		}
	}
	if d := time.Since(begin); d > 100*once {
		t.Errorf("a thousand launches took %v, the first one %v", d, once)
	}
}

func TestCopyOps(t *testing.T) {
	cfg := testConfig()
	cfg.GPUs[0].Engine.Copy = profile.Copy{
		HostToDevice: profile.Link{PinnedMBps: 20000, PageableMBps: 5000, Latency: 10 * time.Microsecond},
		DeviceToHost: profile.Link{PinnedMBps: 10000},
		Device:       profile.Link{PinnedMBps: 1000000, Latency: time.Microsecond},
		Peer:         profile.Link{PinnedMBps: 100000},
	}
	h, err := New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	const mb = 1000 * 1000
	for _, c := range []struct {
		kind, arg uint32
		bytes     uint64
		on        sim.EngineKind
		want      int64
	}{
		{wire.EntryCopy, wire.CopyHtoD | wire.CopyPinned, 20 * mb, sim.CopyIn, 1e6 + 1e4},
		{wire.EntryCopy, wire.CopyHtoD, 20 * mb, sim.CopyIn, 4e6 + 1e4},
		{wire.EntryCopy, wire.CopyHtoD | wire.CopyPinned | 5<<wire.CopyPiecesShift, 20 * mb, sim.CopyIn, 1e6 + 5e4},
		{wire.EntryCopy, wire.CopyDtoH, 10 * mb, sim.CopyOut, 1e6},
		{wire.EntryCopy, wire.CopyDtoD, 1000 * mb, sim.CopyWithin, 1e6 + 1e3},
		{wire.EntryCopy, wire.CopyPeer, 100 * mb, sim.CopyWithin, 1e6},
		{wire.EntryCopy, wire.CopyHost, 100 * mb, sim.CopyWithin, 0},
		{wire.EntryFill, 0, 1000 * mb, sim.Compute, 1e6 + 1e3},
		{wire.EntryCopy, wire.CopyHtoD, 1<<64 - 1, sim.CopyIn, maxKernelTime.Nanoseconds()},
	} {
		got := h.copyOp(&clientContext{}, &wire.Entry{Kind: c.kind, Arg: c.arg, Arg64: c.bytes})
		if got.Dur != c.want || got.On != c.on {
			t.Errorf("kind %d, %#x, %d bytes: %d ns on %d, want %d on %d", c.kind, c.arg, c.bytes, got.Dur, got.On, c.want, c.on)
		}
	}
}

// Beside others a process may be seen only if it ran last.
func TestDeflatedUtilization(t *testing.T) {
	var w windows
	w.add(1, 0, windowLength/2, windowLength/2)
	if got := w.at(0).shown(1, true); got != 50 {
		t.Errorf("alone: %d %%, want 50", got)
	}
	w.add(2, windowLength/2, windowLength, windowLength/2)
	x := w.at(0)
	if x.shown(1, true) != 0 || x.shown(2, true) != 50 || x.shown(1, false) != 50 || percent(x.busy) != 100 {
		t.Errorf("beside another: %d and %d %%", x.shown(1, true), x.shown(2, true))
	}
}

// A client that goes on submitting to a broken context is told that all is
// done, and costs the model nothing.
func TestBrokenContextSwallowsWork(t *testing.T) {
	h, path := serve(t)
	if err := h.SetKernelTimes([]kernel.Rule{{Name: "bad", Spec: kernel.Spec{End: kernel.Trap}}}); err != nil {
		t.Fatal(err)
	}
	c := join(t, path)
	_, ctx := c.ask(wire.Request{Op: wire.OpCtxCreate}, nil)
	_, slot := c.ask(wire.Request{Op: wire.OpStreamCreate, Ctx: uint32(ctx)}, nil)
	_, bad := c.ask(wire.Request{Op: wire.OpFunction}, []byte("bad"))
	submit := func(n int) {
		for range n {
			head := load64(&c.shm.Head)
			c.shm.Ring[head%wire.RingEntries] = wire.Entry{Kind: wire.EntryKernel, Stream: uint32(slot), Arg: uint32(bad), Arg64: 1}
			store64(&c.shm.Head, head+1)
		}
		h.Status() // simulates up to now
	}
	start := load64(&c.shm.Stream[slot].Done)
	for round := range uint64(3) {
		submit(500)
		if got, want := load64(&c.shm.Stream[slot].Done)-start, 500*(round+1); got != want {
			t.Errorf("round %d: %d operations done, want %d", round, got, want)
		}
	}
	if got := c.shm.ContextFault[ctx%wire.ContextSlots]; got != wire.CUDALaunchFailed {
		t.Errorf("the context's fault is %d, want %d", got, wire.CUDALaunchFailed)
	}
	if st := h.Status(); st.Processes[0].Pending != 0 {
		t.Errorf("%d operations pending", st.Processes[0].Pending)
	}
	_ = c.conn.Close()
	healthy(t, h, path)
}
