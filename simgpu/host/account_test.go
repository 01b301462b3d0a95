// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/wire"
)

func TestWindowsSplitAtTheirBounds(t *testing.T) {
	var w windows
	start := 50*windowLength + windowLength/2
	w.add(7, start, start+windowLength) // half of one window, half of the next
	w.add(8, start+windowLength, start+windowLength+windowLength/4)
	for i, want := range map[int64]uint32{50: 50, 51: 75, 52: 0} {
		if got := percent(w.at(i).busy); got != want {
			t.Errorf("window %d: %d %%, want %d", i, got, want)
		}
	}
	if got := percent(w.at(51).byPID[8]); got != 25 {
		t.Errorf("process 8: %d %%, want 25", got)
	}
	if got := w.latest(52*windowLength + 1); got.index != 51 {
		t.Errorf("latest complete window is %d, want 51", got.index)
	}
	// A later window takes the place of one that is out of the history.
	w.add(9, (50+windowCount)*windowLength, (50+windowCount)*windowLength+10)
	if x := w.at(50 + windowCount); x.byPID[7] != 0 || x.busy != 10 {
		t.Errorf("an old window shows in a new one: %+v", x)
	}
}

func TestNames(t *testing.T) {
	n := newNameTable(map[string]time.Duration{"k": time.Millisecond})
	k, other := n.intern("k"), n.intern("other")
	if n.intern("k") != k || k == other || k == 0 {
		t.Errorf("numbers %d and %d", k, other)
	}
	if n.lengthOf(k) != 1e6 || n.lengthOf(other) != DefaultKernelTime.Nanoseconds() || n.lengthOf(1<<31) != n.lengthOf(0) {
		t.Error("wrong lengths")
	}
	n.set("other", time.Second)
	if n.lengthOf(other) != 1e9 {
		t.Error("a length did not change")
	}
	g := graph{parts: []wire.GraphPart{{Function: k, Count: 3}, {Function: other, Count: 2}}}
	if got := g.length(n); got != 3e6+2e9 {
		t.Errorf("graph runs %d ns", got)
	}
	g.parts[1].Count = 1<<32 - 1
	if got := g.length(n); got != maxKernelTime.Nanoseconds() {
		t.Errorf("an endless graph runs %d ns", got)
	}
}

func TestConfigValidate(t *testing.T) {
	if err := testConfig().Validate(); err != nil {
		t.Errorf("good configuration: %v", err)
	}
	for name, spoil := range map[string]func(*Config){
		"no GPUs":       func(c *Config) { c.GPUs = 0 },
		"too many GPUs": func(c *Config) { c.GPUs = 17 },
		"no memory":     func(c *Config) { c.MemoryBytes = 0 },
		"context":       func(c *Config) { c.ContextBytes = c.MemoryBytes },
		"slice":         func(c *Config) { c.Slice = 0 },
		"switch cost":   func(c *Config) { c.SwitchCost = -1 },
		"no SM":         func(c *Config) { c.Multiprocessors = 0 },
		"long name":     func(c *Config) { c.Model = string(make([]byte, 80)) },
	} {
		c := testConfig()
		spoil(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestUUIDsAreStableAndDistinct(t *testing.T) {
	_, a := uuidOf("x", 0)
	_, again := uuidOf("x", 0)
	_, b := uuidOf("x", 1)
	_, c := uuidOf("y", 0)
	if a != again || a == b || a == c || len(a) != 40 {
		t.Errorf("%s %s %s %s", a, again, b, c)
	}
}
