// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package limiter is the model of a share: what a container may ask for, what it
// then holds, and whether a GPU has room for it. It imports nothing of the
// project but its own subpackages, and everything else imports it.
package limiter

import (
	"errors"
	"fmt"

	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

// ErrNoMemory is returned when a request names no memory and the node has no
// default for it.
var ErrNoMemory = errors.New("no memory limit: write one, for example 8Gi")

// Words is a share as somebody wrote it; an empty word was not given.
type Words struct {
	Memory     string // quantity.ParseMemory
	Compute    string // quantity.ParseShare: the guarantee
	ComputeMax string // quantity.ParseCeiling
	Profile    string // ParseProfile; stands for the three above
	// HostMemory is quantity.ParseHostMemory: memory of the host beside the
	// share, which a profile does not set.
	HostMemory string
}

// Empty reports whether nothing was asked for.
func (w Words) Empty() bool { return w == Words{} }

// Or returns w, or fallback if w is empty. The two never mix: half of one share
// and half of another is what nobody asked for. Only a missing memory word is
// taken from the fallback, and a profile lacks none.
func (w Words) Or(fallback Words) Words {
	if w.Empty() {
		return fallback
	}
	if w.Memory == "" && w.Profile == "" {
		w.Memory = fallback.Memory
	}
	if w == (Words{HostMemory: w.HostMemory}) {
		w.Profile = fallback.Profile
	}
	return w
}

// Request is a share that was understood.
type Request struct {
	Memory       quantity.Memory
	ComputeMilli uint32 // guarantee, milli-GPU; 0 if none was asked for
	CeilingMilli uint32 // ceiling, milli-GPU; 1000 is none
	// Profile stands in the place of the three if it is one.
	Profile Profile
	// HostBytes of the host's memory may hold what does not fit into the limit; 0 is
	// none. It is the container's, whatever its GPUs.
	HostBytes uint64
	// Caps are what the request may mean at most.
	Caps []Cap

	open bool // nobody wrote a ceiling, nor a guarantee that would be one
}

// Parse reads a share. Without compute there is no guarantee and no ceiling;
// with compute alone the ceiling is the same. It returns ErrNoMemory, a
// *FieldError around a *quantity.Error, or a *FieldError for a ceiling below the
// guarantee, for a name that is no profile or for a word beside a profile.
func Parse(w Words, mode quantity.Mode) (Request, error) {
	var host uint64
	if w.HostMemory != "" {
		var err error
		if host, err = quantity.ParseHostMemory(w.HostMemory, mode); err != nil {
			return Request{}, &FieldError{Field: fieldHostMemory, Err: err}
		}
	}
	r, err := parseShare(w, mode)
	r.HostBytes = host
	return r, err
}

// parseShare reads what is asked of the GPU.
func parseShare(w Words, mode quantity.Mode) (Request, error) {
	if w.Profile != "" {
		return parseProfile(w)
	}
	if w.Memory == "" {
		return Request{}, ErrNoMemory
	}
	m, err := quantity.ParseMemory(w.Memory, mode)
	if err != nil {
		return Request{}, &FieldError{Field: "memory", Err: err}
	}
	r := Request{Memory: m, CeilingMilli: region.MilliGPU, open: w.Compute == "" && w.ComputeMax == ""}
	if w.Compute != "" {
		if r.ComputeMilli, err = quantity.ParseShare(w.Compute); err != nil {
			return Request{}, &FieldError{Field: "compute", Err: err}
		}
		r.CeilingMilli = r.ComputeMilli
	}
	if w.ComputeMax != "" {
		if r.CeilingMilli, err = quantity.ParseCeiling(w.ComputeMax); err != nil {
			return Request{}, &FieldError{Field: "compute-max", Err: err}
		}
	}
	if r.CeilingMilli < r.ComputeMilli {
		return Request{}, &FieldError{Field: "compute-max", Err: fmt.Errorf(
			"%s is below the guaranteed %s; write at least %s, or leave it out",
			quantity.FormatShare(r.CeilingMilli), quantity.FormatShare(r.ComputeMilli), quantity.FormatShare(r.ComputeMilli))}
	}
	return r, nil
}

func parseProfile(w Words) (Request, error) {
	if w != (Words{Profile: w.Profile, HostMemory: w.HostMemory}) {
		return Request{}, &FieldError{Field: "profile", Err: fmt.Errorf(
			"%.40q sets memory and compute by itself: leave out the other words, or write those and no profile", w.Profile)}
	}
	p, err := ParseProfile(w.Profile)
	if err != nil {
		return Request{}, &FieldError{Field: "profile", Err: err}
	}
	return Request{Profile: p}, nil
}

// FieldError says which word of a share was refused.
type FieldError struct {
	Field string // memory, compute, compute-max, profile or host-memory
	Err   error
}

func (e *FieldError) Error() string { return e.Field + " " + e.Err.Error() }

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// Limit is what one container holds of one GPU.
type Limit struct {
	MemoryBytes  uint64
	ComputeMilli uint32 // guaranteed, milli-GPU
	CeilingMilli uint32 // most, milli-GPU; 1000 is no ceiling
}

// On returns the limit that the request means on a GPU whose limits may add up to
// usable bytes. It returns a *ProfileError or a *CapError if it means none there.
func (r Request) On(usable uint64) (l Limit, err error) {
	if !r.Profile.IsZero() {
		if l, err = r.Profile.On(usable); err != nil {
			return Limit{}, err
		}
	} else {
		l = Limit{MemoryBytes: r.Memory.Bytes(usable), ComputeMilli: r.ComputeMilli, CeilingMilli: r.CeilingMilli}
	}
	for _, c := range r.Caps {
		if l, err = c.apply(l, r.open, usable); err != nil {
			return Limit{}, err
		}
	}
	return l, nil
}
