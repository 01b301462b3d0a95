// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package usage turns what a container's ledger and the driver say into figures:
// rates over the last seconds, and memory by whichever account is larger.
//
// A ledger is the tenant's own word. Counters may jump or run backwards; what
// follows from them is bounded and never used against anybody else.
package usage

import (
	"time"

	"github.com/gpushare/gpushare/limiter/region"
)

const (
	// span is the time over which rates are taken.
	span = 5 * time.Second
	// moment is the time over which a container is told how busy it keeps a GPU.
	moment = time.Second
	// recent is the time in which a launch without a price counts as now.
	recent = 2 * time.Second
	// spacing is the least time between two samples that are kept.
	spacing = 250 * time.Millisecond
	// kept is how many samples cover the span at that spacing.
	kept = int(span/spacing) + 2
)

// Rates are a container's rates on one GPU.
type Rates struct {
	ComputeMilli   uint32 // GPU time charged, milli-GPU, at most 1000
	ThrottledMilli uint32 // thread time waited, thousandths, at most 1000
	Unpriced       bool   // launches are being charged by wall time
}

// Tracker keeps a container's last samples. It must be used by one goroutine at
// a time. Times are durations since any fixed moment.
type Tracker struct {
	samples []sample // oldest first
	peak    []uint64 // highest bytes seen, by GPU
}

type sample struct {
	at  time.Duration
	gpu []region.GPUAccount
}

// Observe takes in what the ledger says now.
func (t *Tracker) Observe(now time.Duration, u region.Usage) {
	if len(t.peak) != len(u.GPU) {
		t.peak = make([]uint64, len(u.GPU))
		t.samples = nil
	}
	s := sample{at: now, gpu: make([]region.GPUAccount, len(u.GPU))}
	for i, g := range u.GPU {
		s.gpu[i] = g.GPUAccount
		t.peak[i] = max(t.peak[i], g.Bytes, g.Peak)
	}
	// Two in quick succession: the newer replaces the one before, so that many
	// readers do not push the history out.
	if n := len(t.samples); n > 1 && now-t.samples[n-2].at < spacing {
		t.samples[n-1] = s
		return
	}
	if len(t.samples) == kept {
		copy(t.samples, t.samples[1:])
		t.samples = t.samples[:kept-1]
	}
	t.samples = append(t.samples, s)
}

// Peak is the most memory that the container was seen to use on the GPU, bytes.
func (t *Tracker) Peak(gpu int) uint64 {
	if gpu >= len(t.peak) {
		return 0
	}
	return t.peak[gpu]
}

// since returns the newest sample that is at least d older than the last one,
// else the oldest.
func (t *Tracker) since(d time.Duration) (from, to sample, ok bool) {
	n := len(t.samples)
	if n < 2 {
		return sample{}, sample{}, false
	}
	to = t.samples[n-1]
	from = t.samples[0]
	for _, s := range t.samples[:n-1] {
		if to.at-s.at >= d {
			from = s
		}
	}
	return from, to, to.at > from.at
}

// Rates returns the rates on one GPU over the last seconds, zero while there are
// no two samples.
func (t *Tracker) Rates(gpu int) Rates {
	var r Rates
	from, to, ok := t.since(span)
	if !ok || gpu >= len(to.gpu) {
		return r
	}
	dt := uint64(to.at - from.at)
	r.ComputeMilli = milli(from.gpu[gpu].ChargedNs, to.gpu[gpu].ChargedNs, dt)
	r.ThrottledMilli = milli(from.gpu[gpu].ThrottledNs, to.gpu[gpu].ThrottledNs, dt)
	from, to, _ = t.since(recent)
	r.Unpriced = to.gpu[gpu].Unpriced > from.gpu[gpu].Unpriced
	return r
}

// BusyMilli is the GPU time that was charged over the last second or so, milli-GPU.
func (t *Tracker) BusyMilli(gpu int) uint32 {
	from, to, ok := t.since(moment)
	if !ok || gpu >= len(to.gpu) {
		return 0
	}
	return milli(from.gpu[gpu].ChargedNs, to.gpu[gpu].ChargedNs, uint64(to.at-from.at))
}

// milli is (to-from)/dt in thousandths, 0 to 1000. dt is not 0.
func milli(from, to, dt uint64) uint32 {
	if to < from {
		return 0
	}
	d := to - from
	if d >= dt {
		return region.MilliGPU
	}
	// d < dt, and dt is an interval of this process's life: no overflow.
	return uint32((d*region.MilliGPU + dt/2) / dt)
}
