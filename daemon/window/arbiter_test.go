// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

// world follows an Arbiter's commands on a virtual clock and checks what must
// hold at every moment.
type world struct {
	t     *testing.T
	a     *Arbiter
	now   time.Duration
	words map[[2]string]map[Kind]uint32 // container, GPU
	// heldSince and held are per GPU: when somebody was first held, and the sum.
	heldSince map[string]time.Duration
	held      map[string]time.Duration
	longest   time.Duration
	opened    map[string]int // windows by container
}

func newWorld(t *testing.T) *world {
	return &world{t: t, a: New(100), words: make(map[[2]string]map[Kind]uint32), opened: make(map[string]int),
		heldSince: make(map[string]time.Duration), held: make(map[string]time.Duration)}
}

func (w *world) do(commands []Command) {
	w.t.Helper()
	for _, c := range commands {
		k := [2]string{c.Container, c.GPU}
		if w.words[k] == nil {
			w.words[k] = make(map[Kind]uint32)
		}
		if c.Kind == Window && c.Value != 0 {
			w.opened[c.Container]++
		}
		w.words[k][c.Kind] = c.Value
	}
	holding := make(map[string]bool)
	owners := make(map[string]string)
	for k, words := range w.words {
		if words[Hold] != 0 {
			holding[k[1]] = true
		}
		if words[Window] != 0 {
			if o, two := owners[k[1]]; two {
				w.t.Fatalf("%v: %s and %s both have a window on %s", w.now, o, k[0], k[1])
			}
			owners[k[1]] = k[0]
			if words[Hold] != 0 {
				w.t.Fatalf("%v: %s is held in its own window", w.now, k[0])
			}
		}
	}
	for k, words := range w.words {
		if o := owners[k[1]]; o != "" && o != k[0] && words[Hold] == 0 {
			w.t.Fatalf("%v: %s runs in the window of %s", w.now, k[0], o)
		}
	}
	for _, g := range []string{"G", "H"} {
		since, was := w.heldSince[g]
		switch {
		case holding[g] && !was:
			w.heldSince[g] = w.now
		case !holding[g] && was:
			d := w.now - since
			w.held[g] += d
			w.longest = max(w.longest, d)
			delete(w.heldSince, g)
		}
	}
}

// leave forgets the page too, as the daemon does.
func (w *world) leave(g, c string) {
	delete(w.words, [2]string{c, g})
	w.do(w.a.Leave(g, c, w.now))
}

// advance moves the clock, doing what falls due.
func (w *world) advance(d time.Duration) {
	w.t.Helper()
	end := w.now + d
	for ticks := 0; ; ticks++ {
		at, ok := w.a.Next(w.now)
		if !ok || at > end {
			w.now = end
			return
		}
		if ticks > 100000 {
			w.t.Fatalf("%v: the arbiter spins", w.now)
		}
		w.now = max(w.now, at)
		w.do(w.a.Tick(w.now))
	}
}

func (w *world) word(c, g string, kind Kind) uint32 { return w.words[[2]string{c, g}][kind] }

func TestWindow(t *testing.T) {
	w := newWorld(t)
	w.do(w.a.Join("G", "a", w.now))
	if w.word("a", "G", Alone) != 1 {
		t.Error("one container is not alone")
	}
	w.do(w.a.Ask("G", "a", ms, w.now))
	if _, ok := w.a.Next(w.now); ok {
		t.Error("a window was planned for a container that is alone")
	}
	w.do(w.a.Join("G", "b", w.now))
	w.do(w.a.Join("H", "c", w.now))
	if w.word("a", "G", Alone) != 0 || w.word("b", "G", Alone) != 0 || w.word("c", "H", Alone) != 1 {
		t.Error("alone is wrong with two on G and one on H")
	}
	w.do(w.a.Ask("G", "a", 10*ms, w.now))
	id := w.word("b", "G", Hold)
	if id == 0 || w.word("a", "G", Window) != 0 {
		t.Fatal("the neighbour is not held first")
	}
	w.advance(10 * ms)
	if w.word("a", "G", Window) != id {
		t.Fatal("the window did not open once the neighbour had run dry")
	}
	w.do(w.a.Join("G", "d", w.now))
	if w.word("d", "G", Hold) != id {
		t.Error("who comes in a window is not held")
	}
	w.advance(20 * ms)
	if w.word("a", "G", Window) != 0 || w.word("b", "G", Hold) != 0 || w.word("d", "G", Hold) != 0 {
		t.Error("the window did not end after three times the wall time")
	}
	if w.longest != 30*ms {
		t.Errorf("held for %v, want 30ms", w.longest)
	}
}

func TestDoneAndLeaveEndAWindow(t *testing.T) {
	for _, end := range []func(*world){
		func(w *world) { w.do(w.a.Done("G", "a", w.now)) },
		func(w *world) { w.leave("G", "a") },
	} {
		w := newWorld(t)
		for _, c := range []string{"a", "b", "c"} {
			w.do(w.a.Join("G", c, w.now))
		}
		w.do(w.a.Ask("G", "a", 10*ms, w.now))
		w.advance(12 * ms)
		end(w)
		if w.word("b", "G", Hold) != 0 || w.word("c", "G", Hold) != 0 || w.word("a", "G", Window) != 0 || w.longest != 12*ms {
			t.Errorf("held for %v, want 12ms", w.longest)
		}
	}
}

func TestLastNeighbourLeaves(t *testing.T) {
	w := newWorld(t)
	w.do(w.a.Join("G", "a", w.now))
	w.do(w.a.Join("G", "b", w.now))
	w.do(w.a.Ask("G", "a", 10*ms, w.now))
	w.advance(11 * ms)
	w.leave("G", "b")
	if w.word("a", "G", Window) != 0 || w.word("a", "G", Alone) != 1 {
		t.Error("a window stays open for one who is alone")
	}
}

// However often and with whatever wall time a tenant rings, the neighbours lose
// two per cent of their time and one burst.
func TestHostileRinger(t *testing.T) {
	const total = 5 * time.Minute
	for _, wall := range []time.Duration{0, 1, 300 * time.Microsecond, 10 * ms, time.Hour, math.MaxInt64} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprint(wall, done), func(t *testing.T) {
				w := newWorld(t)
				w.do(w.a.Join("G", "evil", w.now))
				w.do(w.a.Join("G", "good", w.now))
				for w.now < total {
					w.do(w.a.Ask("G", "evil", wall, w.now))
					w.advance(5 * ms)
					if done {
						w.do(w.a.Done("G", "evil", w.now))
					}
				}
				if most := total/Share + Burst; w.held["G"] > most {
					t.Errorf("held for %v in all, want at most %v", w.held["G"], most)
				}
				if w.longest > MaxHold {
					t.Errorf("held for %v at once, want at most %v", w.longest, MaxHold)
				}
			})
		}
	}
}

// Beside a tenant that rings for ever, one that asks now and then is served.
func TestServesTheOneWithLeastWindowTime(t *testing.T) {
	w := newWorld(t)
	for _, c := range []string{"evil", "good", "third"} {
		w.do(w.a.Join("G", c, w.now))
	}
	asked := 0
	for w.now < 10*time.Minute {
		w.do(w.a.Ask("G", "evil", time.Second, w.now))
		if w.now%(20*time.Second) == 0 {
			asked++
			for range 100 { // it rings every 20 ms while it waits
				w.do(w.a.Ask("G", "good", 3*ms, w.now))
			}
		}
		w.advance(20 * ms)
		if w.now%(20*time.Second) < 10*time.Second && w.opened["good"] < asked {
			w.do(w.a.Ask("G", "good", 3*ms, w.now))
		}
	}
	if w.opened["good"] < asked*9/10 {
		t.Errorf("%d windows of %d asked for", w.opened["good"], asked)
	}
	if w.opened["evil"] == 0 {
		t.Error("what was left was not used")
	}
}

// Random events: the invariants of do hold, and nobody is left held.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		for range 3000 {
			g := []string{"G", "H"}[r.IntN(2)]
			c := string(rune('a' + r.IntN(5)))
			switch r.IntN(5) {
			case 0:
				if w.a.gpus[g] == nil || w.a.gpus[g].members[c] == nil {
					w.do(w.a.Join(g, c, w.now))
				}
			case 1:
				if r.IntN(4) == 0 {
					w.leave(g, c)
				}
			case 2, 3:
				w.do(w.a.Ask(g, c, time.Duration(r.Int64N(int64(100*ms))), w.now))
			case 4:
				w.do(w.a.Done(g, c, w.now))
			}
			w.advance(time.Duration(r.Int64N(int64(20 * ms))))
		}
		w.advance(time.Minute)
		for k, words := range w.words {
			if words[Hold] != 0 || words[Window] != 0 {
				t.Fatalf("seed %d: %v is left with %v", seed, k, words)
			}
		}
		for _, g := range []string{"G", "H"} {
			if most := w.now/Share + Burst; w.held[g] > most {
				t.Errorf("seed %d: %s held for %v in %v", seed, g, w.held[g], w.now)
			}
		}
	}
}

func TestLengthNeverPassesHoldMax(t *testing.T) {
	for _, wall := range []time.Duration{math.MinInt64, -1, 0, ms, 49 * ms, 50 * ms, math.MaxInt64/3 + 1, math.MaxInt64} {
		if d := length(wall); d < MinHold || d > MaxHold {
			t.Errorf("length(%d) = %v", wall, d)
		}
	}
}
