// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
)

const (
	mib = uint64(1) << 20
	gib = uint64(1) << 30
)

// programs are those of test/c that need no argument and check by themselves.
var programs = []string{
	"batch",
	"exports",
	"graphmem",
	"arraycopy",
	"handles",
	"image",
	"memops",
	"memory",
	"occupancy",
	"threads",
	"vmm",
}

// timedPrograms also check simulated times, or what is not over yet.
var timedPrograms = []string{
	"capture",
	"core",
	"graph",
	"graphnodes",
	"green",
}

func TestPrograms(t *testing.T) {
	times := []string{"--gpus", "2", "--kernel-time", "slow5ms=5ms", "--kernel-time", "ms=1ms", "--kernel-time", "ten_ms=10ms",
		"--kernel-time", "waves=1ms/wave", "--condition", "loop=4", "--condition", "yes=1"}
	wall, virtual := up(t, times...), upTimed(t, times...)
	all(t, wall, programs, (*node).run)
	if sanitizer == "tsan" {
		// Its own thread sleeps on the machine's clock, where simulated time would wait for it.
		t.Setenv("SIMGPU_WALL", "1")
		all(t, wall, timedPrograms, (*node).run)
	} else {
		all(t, virtual, timedPrograms, (*node).timed)
	}
	wall.run("fork", "before")
}

// all runs programs to their ends; nothing may be left of them.
func all(t *testing.T, n *node, names []string, run func(n *node, name string, args ...string) string) {
	t.Helper()
	n.mustRun("condition", "loop=5", "third=2")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			n := *n
			n.t = t
			t.Log(run(&n, name))
		})
	}
	if u := n.used(); u != 0 {
		t.Errorf("%d bytes in use after all programs ended", u)
	}
}

// On the wall clock a wait takes as long as the kernel that is waited for: never
// less, and more only by what the machine has else to do.
func TestTheWallClockIsTheMachines(t *testing.T) {
	n := up(t, "--kernel-time", "k=200ms", "--kernel-time", "lead=200ms")
	again(t, func() error {
		from := time.Now()
		out := n.run("grid", "k", "1", "1")
		wall := time.Since(from)
		var ms float64
		if _, err := fmt.Sscan(out, &ms); err != nil || ms < 200 || wall < 400*time.Millisecond {
			t.Fatalf("200 ms after 200 ms: %s ms in %v (%v)", out, wall, err)
		}
		if wall > time.Second {
			return fmt.Errorf("two kernels of 200 ms were over after %v", wall)
		}
		return nil
	})
}

func TestAccountOfMemory(t *testing.T) {
	n := up(t, "--memory", "4GiB", "--context-overhead", "100MiB")
	a := n.start("load", "-hold", fmt.Sprint(gib+1), "30")
	want := 100*mib + gib + 512
	st := n.status()
	if len(st.Processes) != 1 {
		t.Fatalf("%d processes", len(st.Processes))
	}
	p := st.Processes[0]
	if int(p.PID) != a.cmd.Process.Pid || p.Command != "load" || p.GPUs[0].UsedBytes != want || p.GPUs[0].Contexts != 1 {
		t.Errorf("process is %+v, want pid %d and %d bytes", p, a.cmd.Process.Pid, want)
	}
	b := n.start("load", "-hold", fmt.Sprint(gib), "30")
	both := want + 100*mib + gib
	if u := n.used(); u != both {
		t.Errorf("two processes use %d, want %d", u, both)
	}
	// Killed: everything comes back at once, the high-water marks stay.
	_ = b.cmd.Process.Kill()
	eventually(t, func() error {
		if u := n.used(); u != want {
			return fmt.Errorf("%d bytes in use after a kill, want %d", u, want)
		}
		return nil
	})
	_ = a.cmd.Process.Kill()
	eventually(t, func() error {
		if u := n.used(); u != 0 {
			return fmt.Errorf("%d bytes in use after both kills", u)
		}
		return nil
	})
	st = n.status()
	if len(st.Processes) != 0 || st.GPUs[0].HighBytes != both || len(st.Cgroups) != 1 || st.Cgroups[0].GPUs[0].HighBytes != both {
		t.Errorf("after both: %+v, want a high-water mark of %d", st, both)
	}
	line, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || !strings.Contains(string(line), st.Cgroups[0].Line) {
		t.Errorf("cgroup line %q is not one of ours: %s", st.Cgroups[0].Line, line)
	}
	if err := n.admin.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	if st = n.status(); st.GPUs[0].HighBytes != 0 || len(st.Cgroups) != 0 {
		t.Errorf("after reset: %+v", st)
	}
	// A context that does not fit is refused like memory.
	n.start("load", "-hold", fmt.Sprint(4*gib-150*mib), "30")
	out, err := n.command("load", "-hold", "1", "1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cuCtxCreate_v2(ctx, 0, 0) gave 2") {
		t.Errorf("second context: %v %s", err, out)
	}
}

func TestForkKeepsMemoryExecDoesNot(t *testing.T) {
	n := up(t, "--context-overhead", "1MiB")
	for _, tc := range []struct {
		mode  string
		keeps uint64
	}{{"fork", 65 * mib}, {"exec", 0}} {
		t.Run(tc.mode, func(t *testing.T) {
			cmd := n.command("fork", tc.mode)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			child := 0
			for sc := bufio.NewScanner(out); sc.Scan() && sc.Text() != "ready"; {
				if _, err := fmt.Sscanf(sc.Text(), "child %d", &child); err != nil {
					t.Fatalf("%s: %v", sc.Text(), err)
				}
			}
			if child == 0 {
				t.Fatal("no child: its checks failed")
			}
			defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()
			if _, err := cmd.Process.Wait(); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() error {
				if u := n.used(); u != tc.keeps {
					return fmt.Errorf("%d bytes in use after the parent's end, want %d", u, tc.keeps)
				}
				return nil
			})
			time.Sleep(100 * time.Millisecond) // what is kept stays
			if u := n.used(); u != tc.keeps {
				t.Errorf("%d bytes in use a while after the parent's end, want %d", u, tc.keeps)
			}
			if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
				t.Fatalf("child is gone: %v", err)
			}
			eventually(t, func() error {
				if u := n.used(); u != 0 {
					return fmt.Errorf("%d bytes in use after the child's end", u)
				}
				return nil
			})
		})
	}
}

func TestTwoProcessesShareTime(t *testing.T) {
	n := upTimed(t, "--kernel-time", "a=50us", "--kernel-time", "b=5ms")
	second := func() (from, to host.Status) {
		from = n.status()
		n.move(host.ClockMove{ByNS: time.Second.Nanoseconds()})
		return from, n.status()
	}
	a := n.beside("load", "a", "60")
	from, to := second()
	if busy := n.share(from, to, 0); busy < 0.999 {
		t.Errorf("one process keeps the GPU busy for %.4f of the time", busy)
	}
	b := n.beside("load", "b", "60")
	from, to = second()
	sa, sb := n.share(from, to, a.cmd.Process.Pid), n.share(from, to, b.cmd.Process.Pid)
	t.Logf("50 us kernels %.4f, 5 ms kernels %.4f of the time (SIMULATED)", sa, sb)
	if busy := n.share(from, to, 0); math.Abs(busy-sa-sb) > 1e-9 || busy > 1 {
		t.Errorf("the GPU was busy for %.4f of the time, its processes for %.4f", busy, sa+sb)
	}
	if d := to.Cgroups[0].GPUs[0].GPUTimeNS - from.Cgroups[0].GPUs[0].GPUTimeNS; math.Abs(float64(d)/1e9-sa-sb) > 1e-9 {
		t.Errorf("the cgroup's time %d differs from its processes'", d)
	}
	if math.Abs(sa-0.5) > 0.01 || math.Abs(sb-0.5) > 0.01 {
		t.Errorf("shares %.3f and %.3f, want one half each", sa, sb)
	}
}

// again tries a measurement four times.
func again(t *testing.T, f func() error) {
	t.Helper()
	var err error
	for range 4 {
		if err = f(); err == nil {
			return
		}
		t.Log(err)
	}
	t.Error(err)
}

// share returns the part of the time between two looks for which a process, or
// with pid 0 anybody, had GPU 0.
func (n *node) share(from, to host.Status, pid int) float64 {
	n.t.Helper()
	of := func(st host.Status) int64 {
		if pid == 0 {
			return st.GPUs[0].GPUTimeNS
		}
		for _, p := range st.Processes {
			if int(p.PID) == pid {
				return p.GPUs[0].GPUTimeNS
			}
		}
		n.t.Fatalf("no process %d", pid)
		return 0
	}
	return float64(of(to)-of(from)) / float64(to.TimeNS-from.TimeNS)
}

func TestKernelTimeChangesLive(t *testing.T) {
	n := upTimed(t, "--kernel-time", "k=1us")
	n.beside("load", "k", "60")
	launched := func() uint64 {
		before := n.status().Processes[0].Launches
		n.move(host.ClockMove{ByNS: (100 * time.Millisecond).Nanoseconds()})
		return n.status().Processes[0].Launches - before
	}
	if got := launched(); got < 90_000 {
		t.Errorf("%d kernels of 1 us in 100 ms", got)
	}
	if out, err := exec.Command(binary, "kernel-time", "--dir", n.dir, "k=2ms").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	launched() // what is queued
	if got := launched(); got > 50+128 {
		t.Errorf("%d kernels of 2 ms in 100 ms", got)
	}
}

func TestNVML(t *testing.T) {
	n := upTimed(t, "--gpus", "2", "--context-overhead", "10MiB", "--kernel-time", "k=2ms")
	busy := n.beside("load", "k", "60")
	hold := n.beside("share", fmt.Sprint(gib))
	n.move(host.ClockMove{ByNS: (600 * time.Millisecond).Nanoseconds()}) // several sampling periods
	out := n.run("nvml")
	for _, want := range []string{
		"count 2", "uuid " + n.status().GPUs[0].UUID, "(SIMULATED)",
		fmt.Sprintf("used %d total %d", gib+20*mib, 80*gib),
		fmt.Sprintf("process %d %d\n", hold.cmd.Process.Pid, gib+10*mib),
		fmt.Sprintf("process %d %d\n", busy.cmd.Process.Pid, 10*mib),
		fmt.Sprintf("util %d ", busy.cmd.Process.Pid),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("NVML does not say %q:\n%s", want, out)
		}
	}
	i := strings.Index(out, "gpu ")
	if v, err := strconv.Atoi(strings.Fields(out[i:])[1]); err != nil || v < 99 || v > 100 {
		t.Errorf("utilisation %d: %v", v, err)
	}
}

func TestStatusCommand(t *testing.T) {
	n := up(t)
	n.start("load", "-hold", "1000", "30")
	out, err := exec.Command(binary, "status", "--dir", n.dir).Output()
	if err != nil || !strings.Contains(string(out), "SIMULATED") || !strings.Contains(string(out), " load") {
		t.Errorf("table: %v\n%s", err, out)
	}
	if out, err = exec.Command(binary, "status", "--dir", n.dir, "-o", "json").Output(); err != nil {
		t.Fatal(err)
	}
	var st host.Status
	if err := json.Unmarshal(out, &st); err != nil || !st.Simulated || len(st.Processes) != 1 {
		t.Errorf("json: %v\n%s", err, out)
	}
	if out, err := exec.Command(binary, "up", "--dir", n.dir).CombinedOutput(); err == nil {
		t.Errorf("a second up on the same directory worked: %s", out)
	}
	for _, bad := range [][]string{{"--gpus", "0"}, {"--gpus", "17"}, {"--memory", "80"}, {"--kernel-time", "x"}, {"--slice", "1ns"}} {
		args := append([]string{"up", "--dir", filepath.Join(n.dir, "other")}, bad...)
		if out, err := exec.Command(binary, args...).CombinedOutput(); err == nil {
			t.Errorf("up %v worked: %s", bad, out)
		}
	}
}

func TestDetach(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command(binary, "up", "--dir", dir, "--lib-dir", filepath.Join(build, "lib"), "--detach").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "SIMULATED") {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	if out, err := exec.Command(binary, "down", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && !strings.Contains(string(state), ") Z ") {
		t.Errorf("process %d is still there: %s", pid, state)
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "sock")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket is still there: %v", err)
	}
}

// A library that is closed keeps its connection and its thread: it stays, so that
// opening it again finds them.
func TestLibrariesAreClosedAndOpenedAgain(t *testing.T) {
	n := up(t)
	n.run("unload", filepath.Join(n.dir, "lib/libcuda.so.1"), filepath.Join(n.dir, "lib/libnvidia-ml.so.1"))
}
