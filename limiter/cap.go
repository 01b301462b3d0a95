// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"fmt"
	"strings"

	"github.com/gpushare/gpushare/limiter/quantity"
)

// Cap is the most that a request may mean on one GPU. The zero Cap caps nothing.
type Cap struct {
	// Name is where the cap was set, for messages, for example "cap.env".
	Name string

	memory           *quantity.Memory
	compute, ceiling uint32 // milli-GPU; 0 is not capped
	host             *uint64
	words            Words
}

// fieldHostMemory is the word of Words.HostMemory.
const fieldHostMemory = "host-memory"

// ParseCap reads the most of each word but the profile; an empty one is not capped. The
// error is a *FieldError.
func ParseCap(name string, w Words) (Cap, error) {
	c := Cap{Name: name, words: w}
	if w.Memory != "" {
		m, err := quantity.ParseMemory(w.Memory, quantity.Strict)
		if err != nil {
			return Cap{}, &FieldError{Field: "memory", Err: err}
		}
		c.memory = &m
	}
	var err error
	if w.Compute != "" {
		if c.compute, err = quantity.ParseShare(w.Compute); err != nil {
			return Cap{}, &FieldError{Field: "compute", Err: err}
		}
	}
	if w.ComputeMax != "" {
		if c.ceiling, err = quantity.ParseCeiling(w.ComputeMax); err != nil {
			return Cap{}, &FieldError{Field: "compute-max", Err: err}
		}
	}
	if w.HostMemory != "" {
		host, err := quantity.ParseHostMemory(w.HostMemory, quantity.Strict)
		if err != nil {
			return Cap{}, &FieldError{Field: fieldHostMemory, Err: err}
		}
		c.host = &host
	}
	if c.ceiling != 0 && c.ceiling < c.compute {
		return Cap{}, &FieldError{Field: "compute-max", Err: fmt.Errorf(
			"%s is below compute %s: no guarantee can be above its ceiling", w.ComputeMax, w.Compute)}
	}
	return c, nil
}

// Empty reports whether nothing is capped.
func (c Cap) Empty() bool { return c == Cap{Name: c.Name, words: c.words} }

// apply returns l, or a *CapError if it is above the cap on a GPU with that many
// bytes to give. open says that nobody asked for l's ceiling: it is then brought
// down to the cap.
func (c Cap) apply(l Limit, open bool, usable uint64) (Limit, error) {
	if c.memory != nil {
		if most := c.memory.Bytes(usable); l.MemoryBytes > most {
			return Limit{}, &CapError{Cap: c.Name, Field: "memory", Word: c.words.Memory, Asked: l.MemoryBytes, Most: most}
		}
	}
	if c.compute != 0 && l.ComputeMilli > c.compute {
		return Limit{}, &CapError{Cap: c.Name, Field: "compute", Word: c.words.Compute, Asked: uint64(l.ComputeMilli), Most: uint64(c.compute)}
	}
	if c.ceiling != 0 && l.CeilingMilli > c.ceiling {
		if !open || l.ComputeMilli > c.ceiling {
			return Limit{}, &CapError{Cap: c.Name, Field: "compute-max", Word: c.words.ComputeMax, Asked: uint64(l.CeilingMilli), Most: uint64(c.ceiling)}
		}
		l.CeilingMilli = c.ceiling
	}
	return l, nil
}

// Host returns the host memory that the request means, in bytes, or a *CapError if
// it is above one of its caps.
func (r Request) Host() (uint64, error) {
	for _, c := range r.Caps {
		if c.host != nil && r.HostBytes > *c.host {
			return 0, &CapError{Cap: c.Name, Field: fieldHostMemory, Word: c.words.HostMemory, Asked: r.HostBytes, Most: *c.host}
		}
	}
	return r.HostBytes, nil
}

// CapError says which word of a request is above a cap.
type CapError struct {
	Cap, Field, Word string // where the cap was set, what it caps, as it was written
	Asked, Most      uint64 // bytes, or milli-GPU
}

func (e *CapError) Error() string {
	return fmt.Sprintf("%s asked, %s allowed (%s)", e.format(e.Asked), e.format(e.Most), e.Setting())
}

func (e *CapError) format(n uint64) string {
	if e.Field != "memory" && e.Field != fieldHostMemory {
		return quantity.FormatShare(uint32(n))
	}
	// Three digits would not show such a difference.
	if e.Asked-e.Most < e.Most/100 {
		return fmt.Sprintf("%d bytes", n)
	}
	return quantity.FormatBytes(n)
}

// Setting is the cap as it stands in the configuration.
func (e *CapError) Setting() string {
	return fmt.Sprintf("%s.%s = %q", e.Cap, strings.ReplaceAll(e.Field, "-", "_"), e.Word)
}
