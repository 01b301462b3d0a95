// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"testing"
)

func TestWindowsSplitAtTheirBounds(t *testing.T) {
	var w windows
	start := 50*windowLength + windowLength/2
	w.add(7, start, start+windowLength, windowLength) // half of one window, half of the next
	w.add(8, start+windowLength, start+windowLength+windowLength/4, windowLength/4)
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
	w.add(9, (50+windowCount)*windowLength, (50+windowCount)*windowLength+10, 10)
	if x := w.at(50 + windowCount); x.byPID[7] != 0 || x.busy != 10 {
		t.Errorf("an old window shows in a new one: %+v", x)
	}
}

func TestConfigValidate(t *testing.T) {
	if err := testConfig().Validate(); err != nil {
		t.Errorf("good configuration: %v", err)
	}
	for name, spoil := range map[string]func(*Config){
		"no GPUs":       func(c *Config) { c.GPUs = nil },
		"too many GPUs": func(c *Config) { c.GPUs = slices.Repeat(c.GPUs[:1], 17) },
		"no memory":     func(c *Config) { c.GPUs[1].Memory.TotalBytes = 0 },
		"context":       func(c *Config) { c.GPUs[0].Memory.ContextBytes = c.GPUs[0].Memory.TotalBytes },
		"slice":         func(c *Config) { c.GPUs[0].Engine.Slice = 0 },
		"no SM":         func(c *Config) { c.GPUs[0].Multiprocessor.Count = 0 },
		"long name":     func(c *Config) { c.GPUs[0].Name = string(make([]byte, 80)) },
		"one UUID":      func(c *Config) { c.GPUs[0].UUID, c.GPUs[1].UUID = someUUID, someUUID },
	} {
		c := testConfig()
		spoil(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

const someUUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"

// What a profile says of a device's identity comes before what the host makes up.
func TestIdentity(t *testing.T) {
	p := testConfig().GPUs[0]
	g := newGPU(p, "x", 3)
	if g.info.PCIBus != 0x13 || string(g.info.Serial[:13]) != "1650000000003" {
		t.Errorf("made up: bus %x, serial %s", g.info.PCIBus, g.info.Serial)
	}
	p.UUID, p.Serial, p.PCI.BusID = someUUID, "42", "0001:3B:1e.0"
	g = newGPU(p, "x", 3)
	if g.uuid != someUUID || g.info.UUIDBytes[0] != 1 || g.info.UUIDBytes[15] != 0xef || string(g.info.Serial[:3]) != "42\x00" ||
		g.info.PCIDomain != 1 || g.info.PCIBus != 0x3b || g.info.PCIDevice != 0x1e || g.info.Attribute[attrPCIBus] != 0x3b {
		t.Errorf("from the profile: %s %+v", g.uuid, g.info)
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
