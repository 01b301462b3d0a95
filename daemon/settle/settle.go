// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package settle decides, from looks at the driver's figure, how much device memory
// the driver took for a container beyond what its ledger announces: its growth.
//
// A look reads the ledger, asks the driver, and reads the ledger again. Neither stands
// still meanwhile, so one look alone proves nothing: growth rises to what two looks in
// a row both show at least, and falls to what both show at most. A guess that a process
// made before the first of the two began is then part of the growth.
package settle

// noisyMost is how many looks in a row may find the ledger moving before one of them
// counts as if it had stood still.
const noisyMost = 4

// unknownMost is how many looks in a row may have no figure before that is told.
const unknownMost = 3

// Look is one look at one container on one GPU. All sizes are bytes.
type Look struct {
	Number uint32
	// Before and After are what the ledger announces, by living processes.
	Before, After uint64
	// Dead is what the ledger still counts for processes that have ended: the driver
	// may have freed it, or not yet.
	Dead uint64
	// Driver is the driver's figure, if Known.
	Driver uint64
	Known  bool
}

// span is what a look says of the growth.
type span struct {
	number uint32
	least  uint64
	most   uint64
	quiet  bool // the ledger stood still
}

// Settler is one container's growth on one GPU. The zero value has none.
type Settler struct {
	growth  uint64
	last    span
	valid   bool // last is one
	noisy   int
	unknown int
}

// New returns a Settler that goes on from what an earlier one has found.
func New(growth uint64) *Settler { return &Settler{growth: growth} }

// Growth is what stands now.
func (s *Settler) Growth() uint64 { return s.growth }

// Unknown reports whether the driver has had no figure for a while.
func (s *Settler) Unknown() bool { return s.unknown >= unknownMost }

// Take takes a look in. It returns the number of the look that is settled: everything
// that the driver had taken when that one began is in the growth. It returns false if
// none is settled that was not before.
func (s *Settler) Take(l Look) (settled uint32, ok bool) {
	if !l.Known {
		// What stands stays: it is better than nothing.
		s.valid, s.noisy = false, 0
		s.unknown++
		return 0, false
	}
	s.unknown = 0
	now := span{
		number: l.Number,
		least:  less(l.Driver, plus(max(l.Before, l.After), l.Dead)),
		most:   less(l.Driver, min(l.Before, l.After)),
		quiet:  l.Before == l.After && l.Dead == 0,
	}
	before := s.last
	s.last = now
	if !s.valid {
		s.valid = true
		return 0, false
	}
	s.growth = max(s.growth, min(before.least, now.least))
	s.growth = min(s.growth, max(before.most, now.most))
	if before.quiet && now.quiet {
		s.noisy = 0
		return before.number, true
	}
	if s.noisy++; s.noisy < noisyMost {
		return 0, false
	}
	s.noisy = 0
	return before.number, true
}

func less(a, b uint64) uint64 { return a - min(a, b) }

func plus(a, b uint64) uint64 {
	if a+b < a {
		return 1<<64 - 1
	}
	return a + b
}
