// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"fmt"

	"github.com/gpushare/gpushare/limiter/quantity"
)

// Cap is the most that a request may mean on one GPU. The zero Cap caps nothing.
type Cap struct {
	// Name is where the cap was set, for messages, for example "cap.env".
	Name string

	memory           *quantity.Memory
	compute, ceiling uint32 // milli-GPU; 0 is not capped
	words            Words
}

// ParseCap reads the most of each of three words; an empty one is not capped. The
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
	if c.ceiling != 0 && c.ceiling < c.compute {
		return Cap{}, &FieldError{Field: "compute-max", Err: fmt.Errorf(
			"%s is below compute %s: no guarantee can be above its ceiling", w.ComputeMax, w.Compute)}
	}
	return c, nil
}

// Empty reports whether nothing is capped.
func (c Cap) Empty() bool { return c.memory == nil && c.compute == 0 && c.ceiling == 0 }

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

// CapError says which word of a request is above a cap.
type CapError struct {
	Cap, Field, Word string // where the cap was set, what it caps, as it was written
	Asked, Most      uint64 // bytes, or milli-GPU
}

func (e *CapError) Error() string {
	return fmt.Sprintf("%s asked, %s allowed (%s)", e.format(e.Asked), e.format(e.Most), e.Setting())
}

func (e *CapError) format(n uint64) string {
	if e.Field != "memory" {
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
	field := e.Field
	if field == "compute-max" {
		field = "compute_max"
	}
	return fmt.Sprintf("%s.%s = %q", e.Cap, field, e.Word)
}
