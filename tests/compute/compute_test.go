// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package compute

import (
	"math"
	"testing"
	"time"
)

// settle is how long a tenant may take to learn what its kernels cost.
const settle = time.Second

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	t.Logf("%s: %.2f %% of GPU time (SIMULATED), want %.0f", what, got, want)
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s: %.2f %% of GPU time, more than %.0f points from %.0f", what, got, tolerance, want)
	}
}

// Two tenants that ask for all they can get have 60 and 20 percent of GPU time,
// although one's kernels are a hundred times as long, and each alone has no more
// than its own.
func TestShares(t *testing.T) {
	for _, mode := range []string{"async", "sync", "graph"} {
		t.Run(mode, func(t *testing.T) {
			short := "50us"
			if mode == "sync" {
				// Waiting for each kernel costs the program tens of microseconds: by
				// itself it cannot reach 60 % with 50 us.
				short = "500us"
			}
			n := startNode(t, "short="+short, "long=5ms")
			a := n.place("a", 600)
			p := a.saturate("short", mode)
			time.Sleep(settle)
			near(t, "short kernels alone", n.shares(2*time.Second, p)[0], 60, 3)
			a.agrees(p)
			b := n.place("b", 200)
			q := b.saturate("long", mode)
			time.Sleep(settle)
			both := n.shares(4*time.Second, p, q)
			near(t, "short kernels beside long ones", both[0], 60, 3)
			near(t, "long kernels beside short ones", both[1], 20, 3)
			a.agrees(p)
			b.agrees(q)
			p.stop()
			a.leave()
			near(t, "long kernels alone", n.shares(2*time.Second, q)[0], 20, 3)
		})
	}
}

// Both start at once and nobody knows a price yet.
func TestColdStart(t *testing.T) {
	n := startNode(t, "short=50us", "long=5ms")
	a, b := n.place("a", 600), n.place("b", 200)
	p, q := a.saturate("short", "async"), b.saturate("long", "async")
	time.Sleep(settle)
	both := n.shares(4*time.Second, p, q)
	near(t, "short kernels", both[0], 60, 3)
	near(t, "long kernels", both[1], 20, 3)
	before := a.usage().Unpriced + b.usage().Unpriced
	time.Sleep(time.Second)
	if now := a.usage().Unpriced + b.usage().Unpriced; now != before {
		t.Errorf("%d launches more without a price, long after the start", now-before)
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
			near(t, kernel+" kernels after a resize", n.shares(time.Second, p)[0], float64(milli)/10, 4)
		}
		p.stop()
		c.leave()
	}
}

// The processes of a container share its share, evenly, whatever they run.
func TestProcesses(t *testing.T) {
	n := startNode(t, "short=50us", "long=5ms")
	a, b := n.place("a", 400), n.place("b", 300)
	p1, p2 := a.saturate("long", "async"), a.saturate("long", "async")
	q := b.saturate("short", "async")
	time.Sleep(2 * settle)
	got := n.shares(4*time.Second, p1, p2, q)
	near(t, "both processes", got[0]+got[1], 40, 4)
	near(t, "one process", got[0], 20, 4)
	near(t, "the neighbour", got[2], 30, 4)
}

// Without a ceiling the GPU is used up, and a neighbour keeps its share.
func TestUncapped(t *testing.T) {
	n := startNode(t, "short=50us", "long=5ms")
	a := n.place("a", 1000)
	p := a.saturate("short", "async")
	time.Sleep(settle)
	near(t, "alone", n.shares(2*time.Second, p)[0], 100, 3)
	q := n.place("b", 200).saturate("long", "async")
	time.Sleep(settle)
	both := n.shares(3*time.Second, p, q)
	near(t, "without a ceiling", both[0], 80, 4)
	near(t, "its neighbour", both[1], 20, 3)
}

// Held by a daemon that is gone, a tenant goes on after a while.
func TestDeadDaemon(t *testing.T) {
	n := startNode(t, "short=50us")
	a := n.place("a", 600)
	p := a.saturate("short", "async")
	time.Sleep(settle)
	a.limits.SetHold(0, 12345)
	near(t, "while held", n.shares(150*time.Millisecond, p)[0], 0, 15)
	time.Sleep(300 * time.Millisecond)
	near(t, "held by nobody", n.shares(2*time.Second, p)[0], 60, 3)
}
