// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package kernel says how long a simulated kernel runs and how it ends, from
// rules that the operator sets by function name. Programs do not see them.
//
// A rule is NAME=SPEC. NAME is a function's name, in which * stands for any
// text. SPEC is a sum of terms:
//
//	5ms              a fixed part
//	2us/wave         so much for each wave of blocks
//	trap             its end breaks its context: CUDA_ERROR_LAUNCH_FAILED
//	illegal-address  likewise: CUDA_ERROR_ILLEGAL_ADDRESS
//	hang             it never ends, unless the card has a watchdog
//	~10%             lengths vary: log-normal, median 1, this sigma
//
// for example "3us+2us/wave~10%" or "1ms+trap". A wave is what the
// multiprocessors hold at once: there are ceil(blocks / (multiprocessors ×
// resident blocks of one)) of them.
package kernel

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxLength bounds the length of a kernel.
const MaxLength = 24 * time.Hour

// End is how a kernel ends.
type End uint8

// Trap and IllegalAddress break the context; Hang never ends.
const (
	Normal End = iota
	Trap
	IllegalAddress
	Hang
)

var words = map[string]End{"trap": Trap, "illegal-address": IllegalAddress, "hang": Hang}

// Spec is the right side of a rule.
type Spec struct {
	Fixed   time.Duration
	PerWave time.Duration
	Sigma   float64 // of the log-normal factor; 0: no variation
	End     End
}

// Shape is what a launch asks of the multiprocessors.
type Shape struct {
	Blocks   uint64
	Resident uint32 // blocks that one multiprocessor holds at once; 0 counts as 1
}

var errTime = errors.New("want a time like 50us, 2us/wave, trap, illegal-address or hang, joined by +, and perhaps ~10%")

// ParseSpec reads the right side of a rule.
func ParseSpec(text string) (s Spec, err error) {
	body, sigma, varies := strings.Cut(text, "~")
	if varies {
		p, err := strconv.ParseFloat(strings.TrimSuffix(sigma, "%"), 64)
		if err != nil || !(p >= 0 && p <= 200) {
			return Spec{}, fmt.Errorf("kernel time %q: variation %q: want 0%% to 200%%", text, sigma)
		}
		s.Sigma = p / 100
	}
	for term := range strings.SplitSeq(body, "+") {
		term = strings.TrimSpace(term)
		if end, ok := words[term]; ok {
			s.End = end
			continue
		}
		part := &s.Fixed
		for _, unit := range []string{"/block-wave", "/wave"} {
			if t, ok := strings.CutSuffix(term, unit); ok {
				part, term = &s.PerWave, t
			}
		}
		d, err := time.ParseDuration(term)
		if err != nil || d < 0 || d > MaxLength || *part > MaxLength-d {
			return Spec{}, fmt.Errorf("kernel time %q: %w", text, errTime)
		}
		*part += d
	}
	return s, nil
}

// String writes s as ParseSpec reads it.
func (s Spec) String() string {
	var terms []string
	if s.Fixed > 0 || (s.PerWave == 0 && s.End == Normal) {
		terms = append(terms, s.Fixed.String())
	}
	if s.PerWave > 0 {
		terms = append(terms, s.PerWave.String()+"/wave")
	}
	for word, end := range words {
		if end == s.End {
			terms = append(terms, word)
		}
	}
	out := strings.Join(terms, "+")
	if s.Sigma > 0 {
		out += "~" + strconv.FormatFloat(s.Sigma*100, 'g', -1, 64) + "%"
	}
	return out
}

// Waves returns how often the multiprocessors must be filled.
func (sh Shape) Waves(sms uint32) uint64 {
	at := uint64(max(sms, 1)) * uint64(max(sh.Resident, 1))
	return sh.Blocks/at + min(sh.Blocks%at, 1)
}

// SMs returns how many of the multiprocessors the launch occupies.
func (sh Shape) SMs(sms uint32) uint32 {
	r := uint64(max(sh.Resident, 1))
	n := sh.Blocks/r + min(sh.Blocks%r, 1)
	return uint32(min(max(n, 1), uint64(max(sms, 1)))) //nolint:gosec // at most sms
}

// Length returns how long a launch runs on sms multiprocessors, without what
// varies, in nanoseconds.
func (s Spec) Length(sh Shape, sms uint32) int64 {
	if s.End == Hang {
		return MaxLength.Nanoseconds()
	}
	n := s.Fixed.Nanoseconds()
	if w := s.PerWave.Nanoseconds(); w > 0 {
		waves := sh.Waves(sms)
		if waves > uint64(MaxLength.Nanoseconds()/w) {
			return MaxLength.Nanoseconds()
		}
		n += int64(waves) * w //nolint:gosec // bounded above
	}
	return min(n, MaxLength.Nanoseconds())
}

// Vary returns n times the factor of the k-th launch of a function.
func (s Spec) Vary(n int64, seed uint64, name string, k uint64) int64 {
	if s.Sigma <= 0 || s.End == Hang {
		return n
	}
	h := seed ^ 0xcbf29ce484222325
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	u1, u2 := unit(h+2*k+1), unit(h+2*k+2)
	z := math.Sqrt(-2*math.Log(u1)) * math.Cos(2*math.Pi*u2)
	f := min(max(math.Exp(s.Sigma*z), 0.1), 10)
	return min(int64(float64(n)*f), MaxLength.Nanoseconds())
}

// unit turns a number into one of (0, 1], evenly spread (splitmix64).
func unit(x uint64) float64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return (float64(x>>11) + 1) / (1 << 53)
}
