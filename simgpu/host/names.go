// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"time"

	"github.com/gpushare/gpushare/simgpu/kernel"
)

const (
	maxNames      = 1 << 20 // over all clients; further functions count as unnamed
	maxNameBytes  = 128 << 20
	maxKernelTime = kernel.MaxLength
)

// nameTable numbers kernel functions by name and knows how long each runs.
// Number 0 is any function without a name of its own.
type nameTable struct {
	rules  kernel.Table
	number map[string]uint32
	known  []function // by number
	bytes  int        // of all names
}

type function struct {
	name     string
	spec     kernel.Spec
	ruled    bool   // spec is a rule's; else the card's own default holds
	launches uint64 // that drew a length
}

func newNameTable(rules []kernel.Rule) (*nameTable, error) {
	t := &nameTable{number: map[string]uint32{}}
	for _, r := range rules {
		if err := t.rules.Set(r); err != nil {
			return nil, err //nolint:wrapcheck // says everything
		}
	}
	t.known = []function{t.function("")}
	return t, nil
}

func (t *nameTable) intern(name string) uint32 {
	if n, ok := t.number[name]; ok {
		return n
	}
	if len(t.known) >= maxNames || t.bytes+len(name) > maxNameBytes {
		return 0
	}
	t.bytes += len(name)
	n := uint32(len(t.known))
	t.number[name] = n
	t.known = append(t.known, t.function(name))
	return n
}

func (t *nameTable) function(name string) function {
	f := function{name: name}
	f.spec, f.ruled = t.rules.Find(name)
	return f
}

// of returns function n, the unnamed one if there is none.
func (t *nameTable) of(n uint32) *function {
	if int(n) >= len(t.known) {
		n = 0
	}
	return &t.known[n]
}

func (t *nameTable) set(r kernel.Rule) error {
	if err := t.rules.Set(r); err != nil {
		return err //nolint:wrapcheck // says everything
	}
	for i := range t.known {
		f := &t.known[i]
		f.spec, f.ruled = t.rules.Find(f.name)
	}
	return nil
}

// SetKernelTimes sets how long kernels run from now on, and how they end.
func (h *Host) SetKernelTimes(rules []kernel.Rule) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	for _, r := range rules {
		if err := h.names.set(r); err != nil {
			return err
		}
	}
	return nil
}

// SetKernelTime sets how long kernels of that name run from now on.
func (h *Host) SetKernelTime(name string, d time.Duration) error {
	if name == "" || d < 0 || d > maxKernelTime {
		return fmt.Errorf("kernel time %q=%v: want a name and 0 to %v", name, d, maxKernelTime)
	}
	return h.SetKernelTimes([]kernel.Rule{{Name: name, Spec: kernel.Spec{Fixed: d}}})
}
