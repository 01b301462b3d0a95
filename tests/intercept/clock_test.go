// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
)

// virtually runs a program in a container with that ceiling for some seconds of a
// virtual clock, alone on its GPU, and returns how many kernels of 1 ms it could
// launch, the GPU time that it had, and the trace.
func virtually(t *testing.T, program string, ceiling uint32, seconds int) (launched int, share float64, trace string) {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), bin: filepath.Join(root(t), "build/bin/simgpu")}
	cmd := exec.Command(n.bin, "up", "--dir", n.dir, "--memory", "8GiB", "--context-overhead", "16MiB",
		"--clock", "virtual", "--call-cost", "1us", "--trace", filepath.Join(n.dir, "trace"), "--kernel-time", "steady=1ms", "--detach")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("simgpu up: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command(n.bin, "down", "--dir", n.dir).Run() })
	g := n.limit(0, 1024*mib)
	g.ComputeMilli, g.CeilingMilli = ceiling, ceiling
	c := n.containerOn(g)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run := c.command(ctx, "env", "LD_PRELOAD="+filepath.Join(n.dir, "lib/libsimgpu-time.so"), program, fmt.Sprint(seconds))
	run.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	a := host.NewAdminClient(filepath.Join(n.dir, "admin.sock"))
	for { // it has nothing to wait on: the simulator says it only if asked
		if s, err := a.Clock(ctx); err != nil {
			t.Fatal(err)
		} else if len(s.Clients) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	s, err := a.MoveClock(ctx, host.ClockMove{Idle: true})
	if err != nil {
		t.Fatal(err)
	}
	st, err := a.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	launched, err = strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	var b bytes.Buffer
	if err := a.Trace(ctx, &b); err != nil {
		t.Fatal(err)
	}
	return launched, float64(st.GPUs[0].GPUTimeNS) / float64(s.NowNS), b.String()
}

// The launch gate as it is, in the time of a clock that the test moves: a minute's
// figure in a few seconds, and the same one each time.
func TestTheGateOnAVirtualClock(t *testing.T) {
	long(t)
	if sanitized() {
		t.Skip("the time library is not built with sanitizers")
	}
	program := compile(t, "steady.c")
	for _, ceiling := range []uint32{100, 250, 600} {
		began := time.Now()
		n, share, first := virtually(t, program, ceiling, 60)
		t.Logf("ceiling %d: SIMULATED: %d kernels of 1 ms in a minute, %.2f %% of GPU time, %v of wall time",
			ceiling, n, 100*share, time.Since(began).Round(time.Millisecond))
		if want := float64(ceiling) / 1000; share < want-0.01 || share > want+0.01 {
			t.Errorf("ceiling %d: %.2f %% of GPU time", ceiling, 100*share)
		}
		if again, _, second := virtually(t, program, ceiling, 60); again != n || first != second {
			t.Errorf("ceiling %d: %d kernels, then %d; traces of %d and %d bytes", ceiling, n, again, len(first), len(second))
		}
	}
}
