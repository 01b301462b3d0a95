// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/host"
)

// card writes a profile that is exact but for some lines of its device, and
// returns its path.
func card(t *testing.T, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "card.yaml")
	if err := os.WriteFile(path, []byte("base: exact\ndevice_defaults:\n"+lines+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What a profile says of its engines is how kernels of programs run.
func TestEngineOfProfile(t *testing.T) {
	for _, c := range []struct {
		engine string
		want   float64 // ms that a kernel of 1 ms takes beside a process that has always work
	}{
		// It has a part of a turn, then waits for the neighbour's.
		{"  engine: {slice: 500us}", 2},
		{"  engine: {slice: 500us, switch_cost: 100us}", 2.4},
		// The neighbour's kernel of 50 ms is not stopped for it.
		{"  engine: {slice: 500us, preemption: kernel}", 51},
		{"  engine: {sharing: mps}", 1},
	} {
		n := upTimed(t, "--profile", card(t, c.engine), "--kernel-time", "short=1ms", "--kernel-time", "lead=900us", "--kernel-time", "long=50ms")
		n.beside("load", "long", "60")
		if ms := n.grid("short", 1, 32); math.Abs(ms-c.want) > c.want/10 {
			t.Errorf("%s: %v ms, want about %v", c.engine, ms, c.want)
		}
	}
	n := upTimed(t, "--profile", card(t, "  engine: {kernel_time: 7ms}"), "--kernel-time", "lead=1ms")
	near(t, "a kernel that no rule names", n.grid("k", 1, 32), 7)
	n = upTimed(t, "--profile", card(t, "  engine: {watchdog: 20ms}"), "--kernel-time", "trap=10us+trap",
		"--kernel-time", "stray=illegal-address", "--kernel-time", "stuck=hang")
	n.timed("broken")
}

// contains reports whether text has all of the parts.
func contains(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}

// The same seed gives the same lengths, another one others.
func TestSeedOfProfile(t *testing.T) {
	length := func(seed string) float64 {
		n := upTimed(t, "--profile", card(t, "  engine: {seed: "+seed+"}"), "--kernel-time", "v=1ms~30%", "--kernel-time", "lead=1ms")
		return n.grid("v", 1, 32)
	}
	if a, b, c := length("1"), length("1"), length("2"); a != b || a == c {
		t.Errorf("seeds 1, 1 and 2: %v, %v and %v ms", a, b, c)
	}
}

// The first context of a process costs more than its next ones; each stream its
// share.
func TestGrowthOfProfile(t *testing.T) {
	n := up(t, "--profile", card(t, "  memory: {context_bytes: 300MiB, allocation: {context_next_bytes: 40MiB, stream_bytes: 1MiB}}"))
	c := n.caller("init", "context 0")
	want := func(what string, bytes uint64) {
		t.Helper()
		if u := n.used(); u != bytes {
			t.Errorf("%s: %d bytes, want %d", what, u, bytes)
		}
	}
	want("a context", 300*mib)
	c.want("create 0", "0")
	want("a second one", 340*mib)
	c.want("stream", "0")
	want("a stream", 341*mib)
	other := n.caller("init", "context 0")
	want("another process", 641*mib)
	_ = other
}

// A card whose driver does not tell the memory of processes, and whose samples
// come out together.
func TestMonitoringOfProfile(t *testing.T) {
	n := up(t, "--profile", card(t, "  monitoring: {process_memory: unavailable}"))
	n.start("load", "-hold", "1000", "30")
	if out := n.run("nvml"); !contains(out, "process ", " 18446744073709551615") {
		t.Errorf("process list: %s", out)
	}
	n = upTimed(t, "--profile", card(t, "  monitoring: {sample_batch: 5s}"), "--kernel-time", "k=2ms")
	n.beside("load", "k", "60")
	n.move(host.ClockMove{ByNS: 3e9})
	if out, err := n.command("nvml").CombinedOutput(); err == nil || !contains(string(out), "nvmlDeviceGetSamples", "gave 6,") {
		t.Errorf("a sample before its batch: %v %s", err, out)
	}
	n.move(host.ClockMove{ByNS: 3e9})
	if out := n.run("nvml"); !contains(out, "util ") {
		t.Errorf("no sample after its batch: %s", out)
	}
}
