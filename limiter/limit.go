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
}

// Empty reports whether nothing was asked for.
func (w Words) Empty() bool { return w == Words{} }

// Or returns w, or fallback if w is empty. The two never mix: half of one share
// and half of another is what nobody asked for. Only a missing memory word is
// taken from the fallback.
func (w Words) Or(fallback Words) Words {
	if w.Empty() {
		return fallback
	}
	if w.Memory == "" {
		w.Memory = fallback.Memory
	}
	return w
}

// Request is a share that was understood.
type Request struct {
	Memory       quantity.Memory
	ComputeMilli uint32 // guarantee, milli-GPU; 0 if none was asked for
	CeilingMilli uint32 // ceiling, milli-GPU; 1000 is none
}

// Parse reads a share. Without compute there is no guarantee and no ceiling;
// with compute alone the ceiling is the same. It returns ErrNoMemory, a
// *FieldError around a *quantity.Error, or a *FieldError for a ceiling below the
// guarantee.
func Parse(w Words, mode quantity.Mode) (Request, error) {
	if w.Memory == "" {
		return Request{}, ErrNoMemory
	}
	m, err := quantity.ParseMemory(w.Memory, mode)
	if err != nil {
		return Request{}, &FieldError{Field: "memory", Err: err}
	}
	r := Request{Memory: m, CeilingMilli: region.MilliGPU}
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

// FieldError says which word of a share was refused.
type FieldError struct {
	Field string // memory, compute or compute-max
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

// On returns the limit that the request means on a GPU with that much memory.
func (r Request) On(totalBytes uint64) Limit {
	return Limit{MemoryBytes: r.Memory.Bytes(totalBytes), ComputeMilli: r.ComputeMilli, CeilingMilli: r.CeilingMilli}
}
