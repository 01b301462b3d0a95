// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/limiter/region"
)

func account(a region.GPUAccount, bytes uint64) region.Usage {
	return region.Usage{GPU: []region.GPUUsage{{Bytes: bytes, GPUAccount: a}}}
}

// A container that is charged 30 % reads 30 % within seconds, however often it
// is looked at, and 0 % a span after it stopped.
func TestRates(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second} {
		var tr Tracker
		charged := uint64(0)
		now := time.Duration(0)
		for ; now < 20*time.Second; now += every {
			tr.Observe(now, account(region.GPUAccount{ChargedNs: charged, ThrottledNs: 2 * charged}, 0))
			charged += uint64(every) * 3 / 10
		}
		if r := tr.Rates(0); r.ComputeMilli < 290 || r.ComputeMilli > 310 || r.ThrottledMilli < 580 || r.ThrottledMilli > 620 {
			t.Errorf("every %v: %+v, want 300 and 600", every, r)
		}
		for end := now + span + 2*every + spacing; now < end; now += every {
			tr.Observe(now, account(region.GPUAccount{ChargedNs: charged}, 0))
		}
		if r := tr.Rates(0); r.ComputeMilli != 0 {
			t.Errorf("every %v: %+v after it stopped", every, r)
		}
	}
}

// What a container is told of itself follows within little more than a second.
func TestBusyMilli(t *testing.T) {
	for _, every := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, time.Second} {
		var tr Tracker
		charged, now := uint64(0), time.Duration(0)
		for _, share := range []uint64{0, 700, 200, 1000, 0} {
			for end := now + moment + spacing + 2*every; now < end; now += every {
				tr.Observe(now, account(region.GPUAccount{ChargedNs: charged}, 0))
				charged += uint64(every) * share / region.MilliGPU
			}
			if got := uint64(tr.BusyMilli(0)); got < share-min(share, 5) || got > share+5 {
				t.Errorf("every %v: busy %d milli, want %d", every, got, share)
			}
		}
		if got := tr.BusyMilli(1); got != 0 {
			t.Errorf("a GPU that it does not hold: %d", got)
		}
	}
	if got := new(Tracker).BusyMilli(0); got != 0 {
		t.Errorf("nothing seen: %d", got)
	}
}

func TestUnpricedIsNow(t *testing.T) {
	var tr Tracker
	step := func(from, to time.Duration, unpriced uint64) {
		for now := from; now < to; now += 500 * time.Millisecond {
			tr.Observe(now, account(region.GPUAccount{Unpriced: unpriced}, 0))
		}
	}
	step(0, time.Second, 0)
	step(time.Second, 2*time.Second, 5)
	if !tr.Rates(0).Unpriced {
		t.Error("launches without a price were not noticed")
	}
	step(2*time.Second, 5*time.Second, 5)
	if tr.Rates(0).Unpriced {
		t.Error("an old launch without a price still counts")
	}
}

func TestPeak(t *testing.T) {
	var tr Tracker
	tr.Observe(0, account(region.GPUAccount{Peak: 5}, 9))
	tr.Observe(1, account(region.GPUAccount{Peak: 7}, 1))
	if tr.Peak(0) != 9 || tr.Peak(3) != 0 {
		t.Errorf("Peak = %d, %d", tr.Peak(0), tr.Peak(3))
	}
	if r := tr.Rates(3); r != (Rates{}) {
		t.Errorf("Rates of a GPU that it does not hold: %+v", r)
	}
}

// A ledger that the tenant scribbles over gives bounded figures.
func TestHostileCounters(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var tr Tracker
	for i := range 5000 {
		v := r.Uint64()
		tr.Observe(time.Duration(i)*100*time.Millisecond, account(region.GPUAccount{ChargedNs: v, ThrottledNs: r.Uint64(), Unpriced: r.Uint64(), Peak: v}, v))
		if got := tr.Rates(0); got.ComputeMilli > 1000 || got.ThrottledMilli > 1000 {
			t.Fatalf("%+v", got)
		}
	}
	if len(tr.samples) > kept {
		t.Errorf("%d samples kept, want at most %d", len(tr.samples), kept)
	}
}

func TestAttribute(t *testing.T) {
	owner := func(pid int) string { return map[int]string{1: "a", 2: "a", 3: "b", 5: "gone"}[pid] }
	s := nvml.Sample{Processes: []nvml.Process{
		{PID: 1, Bytes: 10, Known: true, BusyMilli: 700, BusyKnown: true}, {PID: 2, Bytes: 5, Known: true, BusyMilli: 600, BusyKnown: true}, {PID: 3}, {PID: 4, Bytes: 99, Known: true}, {PID: 5, Bytes: 1, Known: true},
	}}
	got := Attribute(s, []string{"a", "b", "c"}, owner)
	want := map[string]Figure{"a": {Bytes: 15, Known: true, BusyMilli: 1000, BusyKnown: true}, "b": {}, "c": {Known: true}}
	for c, f := range want {
		if got[c] != f {
			t.Errorf("%s: %+v, want %+v", c, got[c], f)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	s.ProcessesErr = errors.New("no")
	if f := Attribute(s, []string{"a"}, owner)["a"]; f.Known {
		t.Error("a figure that the driver does not have is known")
	}
	if Larger(5, Figure{Bytes: 9, Known: true}) != 9 || Larger(5, Figure{Bytes: 9}) != 5 || Larger(5, Figure{Bytes: 1, Known: true}) != 5 {
		t.Error("Larger")
	}
}

func TestUnseen(t *testing.T) {
	for name, c := range map[string]struct {
		busy, ceiling, ledger uint32
		want                  bool
	}{
		"ledger emptied":            {970, 200, 0, true},
		"idle":                      {0, 200, 0, false},
		"at its share":              {220, 200, 200, false},
		"slices of neighbours":      {390, 200, 200, false},
		"no ceiling":                {1000, 1000, 0, false},
		"a long launch, charged":    {1000, 200, 950, false},
		"little more than it says":  {350, 200, 0, false},
		"much more than it may use": {900, 100, 100, true},
	} {
		f := Figure{BusyMilli: c.busy, BusyKnown: true}
		if got := f.Unseen(c.ceiling, c.ledger); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (Figure{BusyMilli: 1000}).Unseen(1, 0) {
		t.Error("a figure that the driver did not give counts")
	}
}
