// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"maps"
	"time"
)

const (
	maxNames      = 1 << 20 // over all clients; further functions count as unnamed
	maxKernelTime = 24 * time.Hour
)

// nameTable numbers kernel functions by name and knows how long each runs.
// Number 0 is any function without a name of its own.
type nameTable struct {
	times  map[string]time.Duration
	usual  time.Duration // of functions that times does not name
	number map[string]uint32
	length []int64 // by number, nanoseconds
}

func newNameTable(times map[string]time.Duration, usual time.Duration) *nameTable {
	return &nameTable{
		times: maps.Clone(times), usual: usual, number: map[string]uint32{},
		length: []int64{usual.Nanoseconds()},
	}
}

func (t *nameTable) intern(name string) uint32 {
	if n, ok := t.number[name]; ok {
		return n
	}
	if len(t.length) >= maxNames {
		return 0
	}
	n := uint32(len(t.length))
	t.number[name] = n
	t.length = append(t.length, t.timeOf(name))
	return n
}

func (t *nameTable) timeOf(name string) int64 {
	if d, ok := t.times[name]; ok {
		return d.Nanoseconds()
	}
	return t.usual.Nanoseconds()
}

// lengthOf returns the length of function n, the default if there is none.
func (t *nameTable) lengthOf(n uint32) int64 {
	if int(n) >= len(t.length) {
		n = 0
	}
	return t.length[n]
}

func (t *nameTable) set(name string, d time.Duration) {
	if t.times == nil {
		t.times = map[string]time.Duration{}
	}
	t.times[name] = d
	if n, ok := t.number[name]; ok {
		t.length[n] = d.Nanoseconds()
	}
}

// SetKernelTime sets how long kernels of that name run from now on.
func (h *Host) SetKernelTime(name string, d time.Duration) error {
	if name == "" || d < 0 || d > maxKernelTime {
		return fmt.Errorf("kernel time %q=%v: want a name and 0 to %v", name, d, maxKernelTime)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names.set(name, d)
	return nil
}
