// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
	"github.com/gpushare/gpushare/simgpu/profile"
)

func launches(st host.Status, pid int) uint64 {
	for _, p := range st.Processes {
		if int(p.PID) == pid {
			return p.Launches
		}
	}
	return 0
}

// Copies of a card that has copy engines take their time on them, and the calls
// wait as documented.
func TestCopiesTakeTime(t *testing.T) {
	p, err := profile.Load("h100")
	if err != nil {
		t.Fatal(err)
	}
	n := upTimed(t, "--profile", "h100", "--kernel-time", "slow=150ms")
	c := p.GPU.Engine.Copy
	n.timed("copies", fmt.Sprint(c.HostToDevice.PinnedMBps), fmt.Sprint(c.Device.PinnedMBps))
	n.timed("batch")
	if u := n.used(); u != 0 {
		t.Errorf("%d bytes in use afterwards", u)
	}
}

// A fault ends the work of its context; another process beside it goes on, also
// beside a kernel that never ends.
func TestFaultsStayInTheirContext(t *testing.T) {
	n := up(t, "--kernel-time", "trap=10us+trap", "--kernel-time", "stray=illegal-address", "--kernel-time", "stuck=hang",
		"--watchdog", "20ms", "--kernel-time", "k=200us")
	beside := n.start("load", "k", "60")
	n.run("broken")
	from := n.status()
	eventually(t, func() error {
		to := n.status()
		if got := launches(to, beside.cmd.Process.Pid) - launches(from, beside.cmd.Process.Pid); got < 500 {
			return fmt.Errorf("the neighbour launched %d kernels", got)
		}
		return nil
	})
}

func TestNeighbourOfAHangGetsHalf(t *testing.T) {
	n := upTimed(t, "--kernel-time", "stuck=hang", "--kernel-time", "k=1ms")
	stuck, beside := n.beside("load", "stuck", "60"), n.beside("load", "k", "60")
	n.move(host.ClockMove{ByNS: (10 * time.Millisecond).Nanoseconds()})
	from := n.status()
	n.move(host.ClockMove{ByNS: time.Second.Nanoseconds()})
	to := n.status()
	a, b := n.share(from, to, stuck.cmd.Process.Pid), n.share(from, to, beside.cmd.Process.Pid)
	if math.Abs(a-0.5) > 0.01 || math.Abs(b-0.5) > 0.01 {
		t.Errorf("shares %.3f and %.3f, want one half each", a, b)
	}
}

// grid returns how many ms a kernel takes from the end of the one before it.
func (n *node) grid(name string, blocks, threads int, env ...string) (ms float64) {
	n.t.Helper()
	cmd := n.command("grid", name, fmt.Sprint(blocks), fmt.Sprint(threads))
	cmd.Env = append(cmd.Env, env...)
	out := n.timedCommand(cmd)
	if _, err := fmt.Sscan(out, &ms); err != nil {
		n.t.Fatalf("grid printed %q: %v", out, err)
	}
	return ms
}

// Rules from a file, by pattern, by waves; a rule on the command line wins.
func TestKernelRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	if err := os.WriteFile(file, []byte("# by waves\nw*=1ms/wave\nk=7ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := upTimed(t, "--kernel-times", file, "--kernel-time", "k=2ms", "--kernel-time", "lead=20ms")
	for _, c := range []struct {
		name          string
		blocks, block int
		want          float64 // ms
	}{
		{"k", 1, 256, 2}, {"wave", 1, 256, 1}, {"wave", 1056, 256, 1}, {"wave", 1057, 256, 2}, {"wave", 1057, 32, 1},
		{"wave", 8448, 256, 8}, {"other", 1, 1, 0.01},
	} {
		near(t, fmt.Sprintf("%s, %d blocks of %d", c.name, c.blocks, c.block), n.grid(c.name, c.blocks, c.block), c.want)
	}
}

// Order and overlap of the streams of one context, on a card that runs one
// kernel after another and on one that does not.
func TestOrderOfStreams(t *testing.T) {
	for profile, most := range map[string]string{"exact": "1", "a100": "128"} {
		t.Run(profile, func(t *testing.T) {
			n := upTimed(t, "--profile", profile, "--kernel-time", "ten_ms=10ms", "--kernel-time", "lead=50ms")
			n.timed("order", most)
		})
	}
}

// One kernel beside a process that has always work takes twice as long by time
// slices; under MPS as long as alone, unless it has too few multiprocessors.
func TestSharingByMPS(t *testing.T) {
	for _, c := range []struct {
		sharing, percent string
		want             float64 // ms
	}{{"time-slice", "", 79}, {"mps", "", 40}, {"mps", "50", 80}} {
		n := upTimed(t, "--sharing", c.sharing, "--kernel-time", "k=1ms", "--kernel-time", "w=40ms/wave", "--kernel-time", "lead=30ms")
		n.beside("load", "k", "60")
		var env []string
		if c.percent != "" {
			env = []string{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=" + c.percent}
		}
		// 8 blocks on each of 131 multiprocessors: the neighbour has the other.
		if ms := n.grid("w", 1048, 256, env...); math.Abs(ms-c.want) > 0.03*c.want {
			t.Errorf("%s %s: %v ms, want %v", c.sharing, c.percent, ms, c.want)
		}
	}
}

// A slice changes while kernels run: the turn of a saturating neighbour is what
// a short kernel waits for.
func TestEngineCommand(t *testing.T) {
	n := upTimed(t, "--kernel-time", "k=5ms", "--kernel-time", "short=1ms", "--kernel-time", "lead=900us")
	n.beside("load", "k", "60")
	simgpu := func(args ...string) error {
		out, err := exec.Command(binary, append([]string{"engine", "--dir", n.dir}, args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("engine %v: %w: %s", args, err, out)
		}
		return nil
	}
	// lead and short fit into one turn of 2 ms: nothing comes in between.
	near(t, "slices of 2 ms", n.grid("short", 1, 32), 1)
	if err := simgpu("--gpu", "0", "--slice", "500us"); err != nil {
		t.Fatal(err)
	}
	// Now short takes parts of three turns, with two of the neighbour between.
	near(t, "slices of 0.5 ms", n.grid("short", 1, 32), 2)
	if err := simgpu("--timeslice", "long"); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]string{{}, {"--slice", "1us"}, {"--gpu", "7", "--slice", "1ms"}, {"--timeslice", "x"}, {"--slice", "1ms", "--timeslice", "long"}} {
		if err := simgpu(bad...); err == nil {
			t.Errorf("engine %v worked", bad)
		}
	}
}
