// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"sync"
	"testing"
	"time"
)

// settle is how long tenants may take to learn what their kernels cost.
const settle = 2 * time.Second

func of(ps ...*process) []*process { return ps }

// Two tenants that ask for all they can get have 60 and 20 percent of GPU time,
// although one's kernels are a hundred times as long, and each alone has no more
// than its own.
func TestShares(t *testing.T) {
	// Waiting for each kernel costs the program tens of microseconds: by itself it
	// cannot reach 60 % with 50 us.
	for mode, short := range map[string]string{"async": "50us", "sync": "500us", "graph": "50us"} {
		t.Run(mode, func(t *testing.T) {
			n := startNode(t, "short="+short, "long=5ms")
			a := n.place("a", 600)
			p := a.saturate("short", mode)
			time.Sleep(settle)
			n.expect(t, 2*time.Second, 2, share{"short kernels alone", a, of(p), 60})
			a.agrees(p)
			b := n.place("b", 200)
			q := b.saturate("long", mode)
			time.Sleep(settle)
			n.expect(t, 4*time.Second, 2,
				share{"short kernels beside long ones", a, of(p), 60},
				share{"long kernels beside short ones", b, of(q), 20})
			a.agrees(p)
			b.agrees(q)
			p.stop()
			a.leave()
			n.expect(t, 2*time.Second, 2, share{"long kernels alone", b, of(q), 20})
		})
	}
}

// Both start at once and nobody knows a price yet.
func TestColdStart(t *testing.T) {
	n := startNode(t, "short=50us", "long=5ms")
	a, b := n.place("a", 600), n.place("b", 200)
	p, q := a.saturate("short", "async"), b.saturate("long", "async")
	time.Sleep(settle)
	n.expect(t, 4*time.Second, 2, share{"short kernels", a, of(p), 60}, share{"long kernels", b, of(q), 20})
	before := a.usage().Unpriced + b.usage().Unpriced
	time.Sleep(time.Second)
	if now := a.usage().Unpriced + b.usage().Unpriced; now != before {
		t.Errorf("%d launches more without a price, long after the start", now-before)
	}
}

// A program whose every launch has another shape is never priced. It is held to its
// share all the same, alone and beside a neighbour.
func TestNewShapes(t *testing.T) {
	n := startNode(t, "short=50us", "long=5ms")
	a := n.place("a", 200)
	p := a.saturate("long", "vary")
	time.Sleep(settle)
	n.expect(t, 3*time.Second, 3, share{"new shapes alone", a, of(p), 20})
	b := n.place("b", 300)
	q := b.saturate("short", "async")
	time.Sleep(settle)
	n.expect(t, 3*time.Second, 3, share{"the neighbour", b, of(q), 30})
	// Wall time holds the neighbour's slices: it may get less than its share.
	if got := n.measure(3*time.Second, []share{{"new shapes", a, of(p), 20}}); got[0].percent > 23 {
		t.Errorf("new shapes beside a neighbour: %.2f %% of GPU time, want at most 23", got[0].percent)
	}
}

// Launches of half a second, of which nobody knows that: few of them go before the
// first one has ended.
func TestLongUnknown(t *testing.T) {
	n := startNode(t, "long=5ms")
	a := n.place("a", 200)
	before := n.ranAll()
	a.start(built(t, "tests/saturate"), "--kernel", "long", "--mode", "graph", "--nodes", "100")
	time.Sleep(8 * time.Second)
	if ran, took := n.ranAll().since(before); ran > 0.6*took {
		t.Errorf("%.1f of the first %.1f s of GPU time (SIMULATED)", ran/1e9, took/1e9)
	}
}

// A new ceiling is in force 50 ms after it was written.
func TestResize(t *testing.T) {
	n := startNode(t, "short=50us", "long=5ms")
	for _, kernel := range []string{"short", "long"} {
		c := n.place(kernel, 200)
		p := c.saturate(kernel, "async")
		time.Sleep(settle)
		for _, milli := range []uint32{750, 250, 500} {
			c.limits.SetShare(0, milli, milli)
			time.Sleep(50 * time.Millisecond)
			n.expect(t, time.Second, 3, share{kernel + " kernels after a resize", c, of(p), float64(milli) / 10})
		}
		p.stop()
		c.leave()
	}
}

// The processes of a container share its share, evenly.
func TestProcesses(t *testing.T) {
	n := startNode(t, "short=50us", "long=5ms")
	a, b := n.place("a", 400), n.place("b", 300)
	p1, p2 := a.saturate("long", "async"), a.saturate("long", "async")
	q := b.saturate("short", "async")
	time.Sleep(2 * settle)
	n.expect(t, 4*time.Second, 3,
		share{"both processes", a, of(p1, p2), 40}, share{"one of them", a, of(p1), 20}, share{"the neighbour", b, of(q), 30})
}

// Threads, streams and kernels of all lengths in one process, beside another such.
func TestMixed(t *testing.T) {
	n := startNode(t, "k1=10us", "k2=70us", "k3=400us", "k4=2500us", "long=5ms")
	a, b := n.place("a", 350), n.place("b", 250)
	p := a.mixed("3", "4", "k1", "k2", "k3", "k4", "k3", "k1")
	q := b.mixed("-2", "1", "long", "k2", "k3")
	time.Sleep(2 * settle)
	n.expect(t, 4*time.Second, 3, share{"three threads of four streams", a, of(p), 35}, share{"two threads", b, of(q), 25})
}

// A program that is killed again and again takes nothing with it: neither its
// share nor more than that.
func TestKilled(t *testing.T) {
	n := startNode(t, "short=50us", "long=5ms")
	a, b := n.place("a", 300), n.place("b", 200)
	q := b.saturate("long", "async")
	p := a.saturate("short", "async")
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for {
			victim := a.saturate("short", "async")
			select {
			case <-stop:
				victim.stop()
				return
			case <-time.After(70 * time.Millisecond):
				victim.stop() // SIGKILL
			}
		}
	})
	time.Sleep(settle)
	before := n.ranAll()
	n.expect(t, 3*time.Second, 3, share{"the neighbour", b, of(q), 20})
	ran, took := n.ranAll().since(before)
	t.Logf("everybody: %.2f %% of GPU time (SIMULATED)", 100*ran/took)
	if got := 100 * ran / took; got > 53 || got < 40 {
		t.Errorf("both containers together: %.2f %% of GPU time, want 50", got)
	}
	close(stop)
	killer.Wait()
	n.expect(t, 2*time.Second, 3, share{"what was not killed", a, of(p), 30})
}

// Without a ceiling the GPU is used up, and a neighbour keeps its share.
func TestUncapped(t *testing.T) {
	n := startNode(t, "short=50us", "long=5ms")
	a, b := n.place("a", 1000), n.place("b", 200)
	b.leave()
	p := a.saturate("short", "async")
	time.Sleep(settle)
	n.expect(t, 2*time.Second, 3, share{"alone", a, of(p), 100})
	n.windows.Join("b", b.limits, []string{"gpu"})
	q := b.saturate("long", "async")
	time.Sleep(settle)
	n.expect(t, 3*time.Second, 3, share{"without a ceiling", a, of(p), 80}, share{"its neighbour", b, of(q), 20})
}

// Held by a daemon that is gone, a tenant goes on after a while.
func TestDeadDaemon(t *testing.T) {
	n := startNode(t, "short=50us")
	a := n.place("a", 600)
	p := a.saturate("short", "async")
	time.Sleep(settle)
	a.limits.SetHold(0, 12345)
	n.expect(t, 150*time.Millisecond, 15, share{"while held", a, of(p), 0})
	time.Sleep(300 * time.Millisecond)
	n.expect(t, 2*time.Second, 2, share{"held by nobody", a, of(p), 60})
}
