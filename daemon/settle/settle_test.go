// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package settle

import (
	"math/rand/v2"
	"testing"
)

// look is one whose ledger stands still.
func look(announced, driver uint64) Look {
	return Look{Before: announced, After: announced, Driver: driver, Known: true}
}

func TestTake(t *testing.T) {
	moving := func(before, after, driver uint64) Look {
		return Look{Before: before, After: after, Driver: driver, Known: true}
	}
	for name, c := range map[string]struct {
		start   uint64
		looks   []Look
		growth  uint64
		settled uint32 // the newest, 0 for none
	}{
		"one look proves nothing":          {0, []Look{look(100, 120)}, 0, 0},
		"two do":                           {0, []Look{look(100, 120), look(100, 120)}, 20, 1},
		"rise to the lower of two":         {0, []Look{look(100, 120), look(100, 150)}, 20, 1},
		"rise with the third":              {0, []Look{look(100, 120), look(100, 150), look(100, 150)}, 50, 2},
		"fall to the higher of two":        {50, []Look{look(100, 110), look(100, 130)}, 30, 1},
		"between two, it stays":            {15, []Look{look(100, 110), look(100, 120)}, 15, 1},
		"all given back":                   {50, []Look{look(100, 100), look(100, 100)}, 0, 1},
		"the driver has less":              {50, []Look{look(100, 60), look(100, 60)}, 0, 1},
		"a spike":                          {5, []Look{look(100, 105), look(100, 900), look(100, 105)}, 5, 2},
		"charged, not yet taken":           {20, []Look{moving(100, 200, 120), moving(200, 200, 220)}, 20, 0},
		"taken, and freed after the look":  {20, []Look{moving(200, 100, 220), look(100, 120)}, 20, 0},
		"always moving, at last":           {0, []Look{moving(1, 2, 12), moving(1, 2, 12), moving(1, 2, 12), moving(1, 2, 12), moving(1, 2, 12)}, 10, 4},
		"dead, and the driver not yet":     {0, []Look{{Before: 10, After: 10, Dead: 90, Driver: 100, Known: true}, {Before: 10, After: 10, Dead: 90, Driver: 100, Known: true}}, 0, 0},
		"unknown keeps what stands":        {20, []Look{{}, {}, {}}, 20, 0},
		"unknown in between starts anew":   {0, []Look{look(100, 120), {}, look(100, 120)}, 0, 0},
		"known again":                      {0, []Look{{}, look(100, 120), look(100, 120)}, 20, 2},
		"from before a restart":            {70, []Look{look(100, 170)}, 70, 0},
		"a ledger that says far too much":  {0, []Look{look(1<<64-1, 100), look(1<<64-1, 100)}, 0, 1},
		"a ledger and its dead overflow":   {0, []Look{{Before: 1 << 63, After: 1 << 63, Dead: 1 << 63, Driver: 5, Known: true}, look(0, 5)}, 0, 0},
		"a ledger that was emptied":        {0, []Look{look(0, 500), look(0, 500)}, 500, 1},
		"known zero is not unknown":        {30, []Look{look(0, 0), look(0, 0)}, 0, 1},
		"a guess ends between the samples": {0, []Look{look(100, 102), look(100, 104), look(100, 104)}, 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(c.start)
			newest := uint32(0)
			for i, l := range c.looks {
				l.Number = uint32(i + 1)
				if n, ok := s.Take(l); ok {
					newest = n
				}
			}
			if s.Growth() != c.growth || newest != c.settled {
				t.Errorf("growth %d, settled %d; want %d and %d", s.Growth(), newest, c.growth, c.settled)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	s := New(0)
	for i := range unknownMost {
		if s.Unknown() {
			t.Fatalf("unknown after %d looks", i)
		}
		s.Take(Look{Number: uint32(i + 1)})
	}
	if !s.Unknown() {
		t.Error("not unknown")
	}
	if s.Take(look(1, 1)); s.Unknown() {
		t.Error("unknown with a figure")
	}
}

// What the driver takes unannounced is in the growth of the look that settles it,
// however allocations come and go around the looks; and once all stands still, growth
// is exactly that.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s := New(uint64(r.IntN(1000)))
		var announced, hidden uint64
		step := func() uint64 { // a program goes on: charge, take, free, refund
			announced = uint64(r.IntN(5)) * 100
			return announced
		}
		atLook, quiet := make(map[uint32]uint64), make(map[uint32]bool)
		for n := uint32(1); n < 50; n++ {
			hidden += uint64(r.IntN(3))
			atLook[n] = hidden
			before := step()
			driver := announced + hidden
			after := before
			if r.IntN(3) == 0 {
				after = step()
			}
			quiet[n] = before == after
			settled, ok := s.Take(Look{Number: n, Before: before, After: after, Driver: driver, Known: true})
			if ok && quiet[settled] && quiet[n] && s.Growth() < atLook[settled] {
				t.Fatalf("look %d: growth %d, the driver had taken %d", settled, s.Growth(), atLook[settled])
			}
		}
		for n := uint32(50); n < 53; n++ {
			s.Take(Look{Number: n, Before: announced, After: announced, Driver: announced + hidden, Known: true})
		}
		if s.Growth() != hidden {
			t.Fatalf("growth %d, the driver took %d", s.Growth(), hidden)
		}
	}
}
