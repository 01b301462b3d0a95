// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
)

// out runs a command that is to succeed and returns what it printed.
func (n *node) out(args ...string) string {
	n.t.Helper()
	out, err := n.simgpu(args...)
	if err != nil {
		n.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(out)
}

// on runs a subcommand, whose name comes before --dir.
func (n *node) on(command string, args ...string) (string, error) {
	out, err := simgpu(n.t, append([]string{command, args[0], "--dir", n.dir}, args[1:]...)...)
	return strings.TrimSpace(out), err
}

// The clock by its commands: where it starts, steps, runs, and what holds it.
func TestClockCommand(t *testing.T) {
	n := up(t, "--clock", "virtual", "--start", "10s", "--grace", "50ms", "--kernel-time", "k=2ms")
	clock := func(want string, args ...string) {
		t.Helper()
		if got, err := n.on("clock", args...); err != nil || got != want {
			t.Errorf("clock %v: %v %q, want %q", args, err, got, want)
		}
	}
	var s host.ClockState
	if err := json.Unmarshal([]byte(n.out("clock", "-o", "json")), &s); err != nil || !s.Virtual || s.NowNS != 10e9 {
		t.Errorf("at the start: %+v, %v", s, err)
	}
	clock("10.01s", "step", "10ms")
	clock("11s", "run", "--until", "11s")
	clock("", "hold")
	p := n.beside("load", "k", "60")
	if !n.clock().Held {
		t.Error("the clock is not held")
	}
	clock("", "release")
	if n.clock().Held {
		t.Error("the clock is held after its release")
	}
	clock("12s", "run", "--until", "12s")
	if got := n.status().Processes[0].Launches; got < 500 {
		t.Errorf("%d launches of 2 ms in a second", got)
	}
	_ = p.cmd.Process.Kill()
	eventually(t, func() error {
		if c := n.clock().Clients; len(c) != 0 {
			return fmt.Errorf("clients: %+v", c)
		}
		return nil
	})
	n.move(host.ClockMove{UntilNS: 13e9}) // past what was queued
	n.beside("grid", "k", "1", "1")
	if got, err := n.on("clock", "run", "--idle"); err != nil || n.clock().NextNS >= 0 || n.clock().NowNS < 13e9+2e6 {
		t.Errorf("run --idle: %v %q, the next event is at %d", err, got, n.clock().NextNS)
	}
	for _, bad := range [][]string{{"step", "-1ms"}, {"step"}, {"run"}, {"run", "--idle", "--until", "15s"}, {"run", "--until", "1s"}} {
		if got, err := n.on("clock", bad...); err == nil {
			t.Errorf("clock %v: %q", bad, got)
		}
	}
	// A program that computes for ever: a move gives up when its patience is over.
	n.beside("tenant", "spin")
	began := time.Now()
	if got, err := n.on("clock", "step", "--patience", "300ms", "1ms"); err == nil {
		t.Errorf("a step beside a program that does not come back: %q", got)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("patience of 300 ms was over after %v", took)
	}
}

// What a launch takes its program is what --call-cost says.
func TestCallCost(t *testing.T) {
	for cost, want := range map[string]uint64{"0s": 20000, "100us": 400} { // in 40 ms
		n := upTimed(t, "--call-cost", cost, "--kernel-time", "k=1us")
		n.beside("load", "k", "60")
		n.move(host.ClockMove{ByNS: (40 * time.Millisecond).Nanoseconds()})
		if got := n.status().Processes[0].Launches; (want == 400) != (got <= 400) || got < want/2 {
			t.Errorf("calls that take %s: %d launches in 40 ms, want about %d", cost, got, want)
		}
	}
}

// The trace is printed as it was written, and in the form of trace viewers.
func TestTraceCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	n := upTimed(t, "--trace", file, "--kernel-time", "k=2ms", "--kernel-time", "lead=1ms")
	n.grid("k", 1, 32)
	text := n.out("trace")
	written, err := os.ReadFile(file)
	if err != nil || strings.TrimSpace(string(written)) != text {
		t.Errorf("%v: %d bytes in the file, %d printed", err, len(written), len(text))
	}
	if !strings.Contains(text, "lead") {
		t.Errorf("no kernel in the trace: %s", text)
	}
	var chrome any
	if err := json.Unmarshal([]byte(n.out("trace", "--chrome")), &chrome); err != nil || !strings.Contains(fmt.Sprint(chrome), "lead") {
		t.Errorf("for viewers: %v, %v", err, chrome)
	}
}

// Rules come from a file too, while the node runs, with all that a rule can say.
func TestKernelTimeCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte("w*=1ms/wave\nk=7ms\ntrap=10us+trap\nstray=illegal-address\nstuck=hang\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := upTimed(t, "--kernel-time", "k=1ms", "--kernel-time", "lead=20ms", "--watchdog", "20ms")
	n.mustRun("kernel-time", "--file", file, "v=1ms~30%")
	near(t, "k", n.grid("k", 1, 32), 7)
	near(t, "two waves", n.grid("wave", 1057, 256), 2)
	if a, b := n.grid("v", 1, 32), n.grid("v", 1, 32); a == b || a < 0.2 || a > 5 {
		t.Errorf("lengths that vary: %v and %v ms", a, b)
	}
	n.timed("broken")
}

// High-water marks and times begin anew.
func TestStatusReset(t *testing.T) {
	n := up(t)
	n.run("load", "-hold", "1000", "0")
	if g := n.status().GPUs[0]; g.HighBytes == 0 {
		t.Fatalf("%+v", g)
	}
	n.out("status", "--reset")
	if s := n.status(); s.GPUs[0].HighBytes != 0 || len(s.Cgroups) != 0 {
		t.Errorf("after a reset: %+v", s)
	}
}

// What a change of context costs is lost for both.
func TestSwitchCost(t *testing.T) {
	for _, live := range []bool{false, true} {
		var n *node
		if live {
			n = upTimed(t, "--kernel-time", "k=5ms")
			n.mustRun("engine", "--switch-cost", "1ms")
		} else {
			n = upTimed(t, "--kernel-time", "k=5ms", "--switch-cost", "1ms")
		}
		a, b := n.beside("load", "k", "60"), n.beside("load", "k", "60")
		n.move(host.ClockMove{ByNS: 1e8})
		from := n.status()
		n.move(host.ClockMove{ByNS: 1e9})
		to := n.status()
		// Turns of 2 ms with 1 ms between them.
		x, y := n.share(from, to, a.cmd.Process.Pid), n.share(from, to, b.cmd.Process.Pid)
		if x < 0.32 || x > 0.35 || y < 0.32 || y > 0.35 {
			t.Errorf("live %v: shares %.3f and %.3f, want a third each", live, x, y)
		}
	}
}

// The watchdog is set, and taken back, while the node runs.
func TestWatchdogCommand(t *testing.T) {
	n := upTimed(t, "--kernel-time", "trap=10us+trap", "--kernel-time", "stray=illegal-address", "--kernel-time", "stuck=hang")
	n.mustRun("engine", "--watchdog", "20ms")
	n.timed("broken")
	n.mustRun("engine", "--watchdog", "0s")
	p := n.beside("load", "stuck", "60")
	from := n.status()
	n.move(host.ClockMove{ByNS: 10e9})
	if got := n.share(from, n.status(), p.cmd.Process.Pid); got < 0.5 {
		t.Errorf("a kernel that never ends had %.2f of the time", got)
	}
}

// A slice that the flag gives holds from the start.
func TestSliceFlag(t *testing.T) {
	n := upTimed(t, "--slice", "500us", "--kernel-time", "k=5ms", "--kernel-time", "short=1ms", "--kernel-time", "lead=900us")
	n.beside("load", "k", "60")
	near(t, "slices of 0.5 ms", n.grid("short", 1, 32), 2)
}

// A look at the clock takes a program what --read-cost says.
func TestReadCost(t *testing.T) {
	for cost, want := range map[string]uint64{"1ms": 500 * 128, "10ms": 50 * 128} { // load looks once in 128 launches
		n, _ := upVirtual(t, "--read-cost", cost, "--kernel-time", "z=0s")
		n.begin("a", "load", "z", "60")
		n.move(host.ClockMove{ByNS: 5e8})
		if got := n.status().Processes[0].Launches; got < want*9/10 || got > want*11/10 {
			t.Errorf("looks that take %s: %d launches in 500 ms, want about %d", cost, got, want)
		}
	}
}
