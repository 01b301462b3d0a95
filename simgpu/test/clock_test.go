// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
	"github.com/gpushare/gpushare/simgpu/trace"
)

// upVirtual starts a node with a virtual clock, held, and a trace.
func upVirtual(t *testing.T, args ...string) (n *node, file string) {
	t.Helper()
	plain(t, "the time library is not built with them")
	file = filepath.Join(t.TempDir(), "trace")
	n = up(t, append([]string{
		"--clock", "virtual", "--trace", file,
		"--kernel-time", "short=20us", "--kernel-time", "middle=300us", "--kernel-time", "long=5ms",
	}, args...)...)
	if err := n.admin.HoldClock(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	return n, file
}

// begin starts a program on the node's clock and waits until it is known there.
func (n *node) begin(name string, args ...string) *exec.Cmd {
	n.t.Helper()
	before := len(n.clock().Clients)
	cmd := n.command(args[0], args[1:]...)
	cmd.Env = append(cmd.Env, "SIMGPU_CLIENT="+name, "LD_PRELOAD="+filepath.Join(n.dir, "lib", "libsimgpu-time.so"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if n.t.Failed() {
			n.t.Logf("%s: %s", name, out.String())
		}
	})
	eventually(n.t, func() error {
		if got := len(n.clock().Clients); got != before+1 {
			return fmt.Errorf("%d clients, want %d", got, before+1)
		}
		return nil
	})
	return cmd
}

func (n *node) clock() host.ClockState {
	n.t.Helper()
	s, err := n.admin.Clock(context.Background())
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

// move moves the clock, and fails if that takes a minute.
func (n *node) move(m host.ClockMove) host.ClockState {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := n.admin.MoveClock(ctx, m)
	if err != nil {
		n.t.Fatalf("move the clock by %+v: %v", m, err)
	}
	return s
}

// ended waits for a program that is to end well.
func ended(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%v: %v", cmd.Args, err)
		}
	case <-time.After(patience):
		t.Errorf("%v does not end", cmd.Args)
	}
}

// hog keeps the machine's processors busy for the length of a test.
func hog(t *testing.T) {
	for range runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
}

func TestTwoTenantsLeaveTheSameTraceOnABusyMachine(t *testing.T) {
	plain(t, "the time library is not built with them")
	run := func(t *testing.T, busy bool) []byte {
		n, file := upVirtual(t, "--switch-cost", "20us", "--call-cost", "1250ns", "--query-cost", "100us")
		if busy {
			hog(t)
		}
		a := n.begin("a", "tenant", "1", "60", "threads")
		b := n.begin("b", "tenant", "2", "60")
		c := n.begin("b", "tenant", "3", "60", "threads")
		n.move(host.ClockMove{ByNS: 1}) // together, from the first moment
		for range 10 {
			n.move(host.ClockMove{ByNS: (37 * time.Millisecond).Nanoseconds()})
		}
		n.move(host.ClockMove{Idle: true})
		for _, cmd := range []*exec.Cmd{a, b, c} {
			ended(t, cmd)
		}
		n.move(host.ClockMove{ByNS: 1})
		if _, err := n.admin.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := n.admin.Trace(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(file); err != nil || !bytes.Equal(b, out.Bytes()) {
			t.Errorf("the file and what the simulator hands out differ: %v", err)
		}
		return out.Bytes()
	}
	var first []byte
	t.Run("quiet", func(t *testing.T) { first = run(t, false) })
	for i := range 2 {
		t.Run(fmt.Sprintf("busy%d", i), func(t *testing.T) {
			if again := run(t, true); !bytes.Equal(first, again) {
				t.Errorf("traces of %d and %d bytes differ, first here:\n%s", len(first), len(again), difference(first, again))
			}
		})
	}
	seen := map[string]int{}
	if err := trace.Each(bytes.NewReader(first), func(e trace.Event) error {
		seen[e.What]++
		seen[e.Client]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{
		trace.Attach, trace.Detach, trace.ContextCreate, trace.ContextEnd, trace.Memory, trace.Submit, trace.Begin,
		trace.Preempt, trace.End, trace.HostDue, "a", "b", "b-2",
	} {
		if seen[what] == 0 {
			t.Errorf("no %q in the trace: %v", what, seen)
		}
	}
	t.Logf("%d bytes: %v", len(first), seen)
}

func difference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			from := max(0, i-3)
			return fmt.Sprintf("line %d:\n%s\n--- and\n%s", i+1, bytes.Join(x[from:min(i+4, len(x))], []byte("\n")),
				bytes.Join(y[from:min(i+4, len(y))], []byte("\n")))
		}
	}
	return "one is longer"
}

func TestTheTimeLibraryKnowsEveryWayToWait(t *testing.T) {
	n, _ := upVirtual(t)
	began := time.Now()
	cmd := n.begin("", "vtime")
	s := n.move(host.ClockMove{Idle: true})
	ended(t, cmd)
	t.Logf("%v in %v", time.Duration(s.NowNS), time.Since(began))
}

func TestProgramsRunByTheClockWithoutTheTimeLibrary(t *testing.T) {
	n, _ := upVirtual(t)
	if err := n.admin.HoldClock(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	// What takes no time, or only the GPU's, needs no time library.
	p := n.start("tenant", "query", "10")
	s := n.move(host.ClockMove{ByNS: 0})
	if s.NowNS != 0 || len(s.Clients) != 1 || s.Clients[0].Waiting != 1 {
		t.Errorf("at the start: %+v", s)
	}
	// 10 kernels of 5 ms, asked for every microsecond: the last time with success.
	s = n.move(host.ClockMove{Idle: true})
	if s.NowNS != (50 * time.Millisecond).Nanoseconds() {
		t.Errorf("10 kernels of 5 ms are over at %v", time.Duration(s.NowNS))
	}
	if p.lines.Scan(); p.lines.Text() != "49990" {
		t.Errorf("asked %s times, want once in each microsecond but the last", p.lines.Text())
	}
}

func TestNothingHappensBeyondTheStep(t *testing.T) {
	n, _ := upVirtual(t)
	n.begin("a", "tenant", "launches", "6400")
	launched := func() uint64 { return n.status().Processes[0].Launches }
	n.move(host.ClockMove{ByNS: 1})
	for i := range int64(20) {
		// 64 kernels of 20 us and 30 ms of thought: one round is 31.28 ms.
		want := (1 + 31_280_000*i)
		if s := n.move(host.ClockMove{UntilNS: 31_280_000*i + 1}); s.NowNS != want || launched() != uint64(64*(i+1)) {
			t.Fatalf("at %d (want %d): %d launches, want %d", s.NowNS, want, launched(), 64*(i+1))
		}
		if s := n.move(host.ClockMove{UntilNS: 31_280_000*(i+1) - 1}); launched() != uint64(64*(i+1)) || s.NextNS != s.NowNS+1 {
			t.Fatalf("one before the next round: %d launches, next at %d, now %d", launched(), s.NextNS, s.NowNS)
		}
	}
	if _, err := n.admin.MoveClock(t.Context(), host.ClockMove{UntilNS: 5}); err == nil {
		t.Error("the clock went back")
	}
	before := n.clock().NowNS
	time.Sleep(50 * time.Millisecond) // of the wall clock: means nothing here
	if now := n.clock().NowNS; now != before {
		t.Errorf("time passed by itself: %d, then %d", before, now)
	}
}

// named waits until a move that does not end says why.
func (n *node) named(want string) {
	n.t.Helper()
	eventually(n.t, func() error {
		ctx, cancel := context.WithTimeout(n.t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := n.admin.MoveClock(ctx, host.ClockMove{ByNS: 1e9})
		if err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("moving the clock gave %w, want %q named", err, want)
		}
		return nil
	})
}

func TestAProgramThatDoesNotComeBackIsNamed(t *testing.T) {
	n, _ := upVirtual(t, "--grace", "100ms")
	cmd := n.begin("busy", "tenant", "spin")
	n.begin("other", "tenant", "launches", "64")
	n.named(fmt.Sprintf("pid %d (tenant)", cmd.Process.Pid))
	if s := n.clock(); s.NowNS != 0 {
		t.Errorf("time went on to %v without it", time.Duration(s.NowNS))
	}
	// Its end is not waited for.
	_ = cmd.Process.Kill()
	if s := n.move(host.ClockMove{ByNS: 1e9}); s.NowNS != 1e9 {
		t.Errorf("after its end the clock stands at %v", time.Duration(s.NowNS))
	}
}

func TestALenientClockGoesOn(t *testing.T) {
	n, _ := upVirtual(t, "--grace", "50ms", "--lenient")
	n.begin("busy", "tenant", "spin")
	if s := n.move(host.ClockMove{ByNS: 1e9}); s.NowNS != 1e9 {
		t.Errorf("the clock stands at %v", time.Duration(s.NowNS))
	}
}

func TestASleepOnTheMachinesClockIsNamed(t *testing.T) {
	n, _ := upVirtual(t, "--grace", "50ms")
	if err := n.admin.HoldClock(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	n.start("load", "-hold", "1000", "30") // without the time library
	n.named("sleeps on the machine's clock")
}

func TestAKilledProgramDoesNotStopTheClock(t *testing.T) {
	n, _ := upVirtual(t, "--query-cost", "100us")
	a := n.begin("a", "tenant", "5", "100000", "threads")
	b := n.begin("b", "tenant", "6", "100", "threads")
	n.move(host.ClockMove{ByNS: 1})
	for i := range int64(20) {
		n.move(host.ClockMove{ByNS: 1_234_567 * (i + 1)})
	}
	_ = a.Process.Kill()
	n.move(host.ClockMove{ByNS: 1e9})
	for n.clock().NextNS >= 0 {
		n.move(host.ClockMove{ByNS: 1e9})
	}
	ended(t, b)
	var gone *exec.ExitError
	if err := a.Wait(); !errors.As(err, &gone) {
		t.Errorf("%v", err)
	}
	n.move(host.ClockMove{ByNS: 1})
	if u := n.used(); u != 0 {
		t.Errorf("%d bytes in use after all have ended", u)
	}
}

func TestAMinuteOfManyLaunches(t *testing.T) {
	n, _ := upVirtual(t)
	var cmds []*exec.Cmd
	for _, name := range []string{"a", "b"} {
		cmds = append(cmds, n.begin(name, "tenant", "launches", "122880"))
	}
	began := time.Now()
	n.move(host.ClockMove{UntilNS: (60 * time.Second).Nanoseconds()})
	wall := time.Since(began)
	var launched uint64
	for _, p := range n.status().Processes {
		launched += p.Launches
	}
	if launched < 100_000 {
		t.Errorf("%d launches in 60 s", launched)
	}
	t.Logf("SIMULATED: 60 s with %d launches in %v", launched, wall)
	for _, c := range cmds {
		_ = c.Process.Kill()
	}
}

// A program that others start is waited for from its first moment, although it is
// known to the clock only when it has begun.
func TestProgramsThatStartProgramsStayOnTheClock(t *testing.T) {
	n, _ := upVirtual(t)
	if err := n.admin.HoldClock(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `sleep 3; (sleep 4; echo "$(date +%s)") | { read a; sleep 5; echo "$a $(date +%s)"; }`)
	cmd.Env = append(os.Environ(), "SIMGPU_SOCKET="+filepath.Join(n.dir, "run", "sock"),
		"LD_PRELOAD="+filepath.Join(n.dir, "lib", "libsimgpu-time.so"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, func() error {
		if len(n.clock().Clients) == 0 {
			return errors.New("no client")
		}
		return nil
	})
	n.move(host.ClockMove{UntilNS: (100 * time.Second).Nanoseconds()})
	ended(t, cmd)
	epoch := host.VirtualEpoch.Unix()
	if want := fmt.Sprintf("%d %d\n", epoch+7, epoch+12); out.String() != want {
		t.Errorf("it says %q, want %q", out.String(), want)
	}
}

func TestTheWallClockCannotBeMoved(t *testing.T) {
	n := up(t)
	if _, err := n.admin.StepClock(t.Context(), time.Second); err == nil {
		t.Error("a wall clock was moved")
	}
	if err := n.admin.Trace(t.Context(), &bytes.Buffer{}); err == nil {
		t.Error("a trace was read that nobody writes")
	}
	if s := n.clock(); s.Virtual {
		t.Errorf("%+v", s)
	}
	out, err := exec.Command(binary, "up", "--dir", filepath.Join(n.dir, "other"), "--read-cost", "1us").CombinedOutput()
	if err == nil {
		t.Errorf("up with a cost on the wall clock worked: %s", out)
	}
}
