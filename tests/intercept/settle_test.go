// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/simgpu/host"
)

// watched is a node with the daemon: it calibrates the card and settles what the
// driver takes unannounced. Every figure here is SIMULATED.
type watched struct {
	*node
	base   string
	client *v1.Client
	cmd    *exec.Cmd
	log    *bytes.Buffer
}

// watch starts a node of that profile and the daemon beside it.
func watch(t *testing.T, flags ...string) *watched {
	t.Helper()
	w := &watched{node: simulateGPUs(t, 1, append([]string{"--memory", "40GiB"}, flags...)...), base: t.TempDir()}
	config := fmt.Sprintf("run_dir = %q\nstate_dir = %q\nnvml_library = %q\ncuda_library = %q\n", w.runDir(), filepath.Join(w.base, "state"),
		filepath.Join(w.dir, "lib/libnvidia-ml.so.1"), filepath.Join(w.dir, "lib/libcuda.so.1"))
	if err := os.WriteFile(filepath.Join(w.base, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	w.client = v1.NewClient(filepath.Join(w.runDir(), v1.SocketName))
	w.startDaemon()
	t.Cleanup(w.stopDaemon)
	return w
}

func (w *watched) runDir() string { return filepath.Join(w.base, "run") }

func (w *watched) startDaemon() {
	w.t.Helper()
	w.cmd = exec.Command(filepath.Join(root(w.t), "build/bin/gpushared"), "--config", filepath.Join(w.base, "config.toml"))
	w.cmd.Env = append(os.Environ(), "SIMGPU_SOCKET="+filepath.Join(w.dir, "run/sock"))
	w.log = &bytes.Buffer{}
	w.cmd.Stderr = w.log
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	waitFor(w.t, "the daemon", func() bool {
		d, err := w.client.Daemon(context.Background())
		return err == nil && d.PID == w.cmd.Process.Pid && len(d.GPUs) == 1
	})
}

func (w *watched) stopDaemon() {
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	_ = w.cmd.Wait()
	if w.t.Failed() {
		w.t.Logf("the daemon's log:\n%s", w.log)
	}
}

// settled is a container that the daemon has placed, with a first process that the
// others join.
type settled struct {
	*container
	w    *watched
	id   string
	init *exec.Cmd
}

func (w *watched) claim(id, memory string) *settled {
	w.t.Helper()
	claimant := exec.Command("sleep", "600")
	if err := claimant.Start(); err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = claimant.Process.Kill(); _ = claimant.Wait() }()
	runc := filepath.Join(w.base, "runc")
	got, err := w.client.Claim(context.Background(), v1.ClaimRequest{
		ID: id, Bundle: filepath.Join(w.base, "bundle", id), RuntimeRoot: runc, PID: claimant.Process.Pid,
		Request: v1.Request{Memory: memory}, Source: v1.SourceEnv,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	c := &settled{container: &container{t: w.t, dir: got.Directory}, w: w, id: id}
	c.driver, c.nvml = filepath.Join(w.dir, "lib/libcuda.so.1"), filepath.Join(w.dir, "lib/libnvidia-ml.so.1")
	c.env = []string{"SIMGPU_SOCKET=" + filepath.Join(w.dir, "run/sock")}
	c.init = c.container.command(context.Background(), "sleep", "600")
	if err := c.init.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = c.init.Process.Kill()
		_ = c.init.Wait()
		waitFor(w.t, "the end of container "+id, func() bool {
			_, err := w.client.Container(context.Background(), id)
			return v1.Code(err) == v1.CodeNotFound
		})
	})
	waitFor(w.t, "the first process", func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", c.init.Process.Pid))
		return err == nil && string(name) == "sleep\n"
	})
	p, err := proc.Lookup(c.init.Process.Pid)
	if err != nil {
		w.t.Fatal(err)
	}
	state := filepath.Join(runc, id)
	text := fmt.Sprintf(`{"init_process_pid":%d,"init_process_start":%d}`, p.PID, p.Start)
	if err := os.MkdirAll(state, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "new"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(state, "new"), filepath.Join(state, "state.json")); err != nil {
		w.t.Fatal(err)
	}
	waitFor(w.t, "container "+id, func() bool { return c.figures().Phase == v1.PhaseRunning })
	return c
}

// tenant starts a program in the container, as exec does.
func (c *settled) tenant(program string) *session {
	c.t.Helper()
	s := c.session("nsenter", "-t", fmt.Sprint(c.init.Process.Pid), "-m", program)
	if !s.out.Scan() || s.out.Text() != "0" {
		c.t.Fatalf("the tenant does not start: %q", s.out.Text())
	}
	return s
}

// figures is what the daemon shows of the container.
func (c *settled) figures() v1.Container {
	c.t.Helper()
	got, err := c.w.client.Container(context.Background(), c.id)
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

func (c *settled) gpuFigures() v1.ContainerGPU { return c.figures().GPUs[0] }

// agrees waits until what is charged to the container is what the driver says of it,
// within one per cent, twice in a row.
func (c *settled) agrees(what string, driver func() uint64) {
	c.t.Helper()
	var g v1.ContainerGPU
	var want uint64
	for end := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		g, want = c.gpuFigures(), driver()
		sum := g.MemoryLedgerBytes + g.MemoryGrowthBytes
		if d := max(sum, want) - min(sum, want); d*100 <= want && g.OverrunBytes == 0 {
			c.t.Logf("SIMULATED: %s: charged %d (growth %d), the driver's figure %d", what, sum, g.MemoryGrowthBytes, want)
			return
		}
		if time.Now().After(end) {
			c.t.Errorf("%s: own account %d, growth %d, overrun %d; the driver's figure is %d", what, g.MemoryLedgerBytes, g.MemoryGrowthBytes, g.OverrunBytes, want)
			return
		}
	}
}

// profile is a card whose modules cost 20 MiB and whose streams 8, which no call tells.
func growingProfile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "simgpu/profile/cards/h100.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	grown := strings.Replace(string(text), "module_bytes: 2097152", "module_bytes: 20971520\n      stream_bytes: 8388608", 1)
	if grown == string(text) {
		t.Fatal("the profile has no module_bytes")
	}
	path := filepath.Join(t.TempDir(), "grown.yaml")
	if err := os.WriteFile(path, []byte(grown), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The driver adds 300 MiB for a context and 20 for each loaded module, and something
// for streams: the container's figure is the driver's all the same.
func TestSettledFigure(t *testing.T) {
	w := watch(t, "--profile", growingProfile(t), "--context-overhead", "300MiB")
	program := compile(t, "settle.c")
	a := w.claim("a", "8Gi")
	s := a.tenant(program)
	used := func() uint64 { return w.gpu().Used }
	s.want("0", "ctx")
	a.agrees("a context", used)
	for range 5 {
		s.want("0", "mod")
	}
	a.agrees("five modules", used)
	s.want("0", "alloc %d", 300*mib+1)
	for range 3 {
		s.want("0", "stream")
	}
	a.agrees("memory and streams", used)
	s.want("0", "stack 4096")
	s.want("0", "ctx")
	s.want("0", "mod")
	a.agrees("a second context and a stack", used)
	other := a.tenant(program)
	other.want("0", "ctx")
	other.want("0", "mod")
	a.agrees("a second process", used)
	// The daemon dies and comes back: nothing is forgotten, nothing charged twice.
	before := a.gpuFigures().MemoryGrowthBytes
	w.stopDaemon()
	s.want("0", "alloc %d", 64*mib)
	w.startDaemon()
	if g := a.gpuFigures(); g.MemoryGrowthBytes != before {
		t.Errorf("growth %d after a restart, %d before", g.MemoryGrowthBytes, before)
	}
	a.agrees("after a restart", used)
	other.close()
	for range 1 {
		s.want("0", "unmod")
	}
	s.want("0", "endctx")
	a.agrees("most of it gone", used)
	if f := a.figures(); f.State != v1.StateEnforced {
		t.Errorf("%s: %s", f.State, f.Reason)
	}
	s.close()
}

// What the driver takes unasked may pass the limit. It is charged up to the limit, the
// rest is told; nothing more is granted until it is back, and neighbours notice nothing.
func TestOverrun(t *testing.T) {
	w := watch(t, "--profile", growingProfile(t), "--context-overhead", "300MiB")
	program := compile(t, "settle.c")
	a, b := w.claim("a", "1Gi"), w.claim("b", "1Gi")
	s, neighbour := a.tenant(program), b.tenant(program)
	s.want("0", "ctx")
	neighbour.want("0", "ctx")
	s.want("0", "alloc %d", 64*mib)
	s.want("0", "alloc %d", (1024-300-64-4)*mib)
	for range 5 { // 40 MiB, of which 4 are left
		s.want("0", "stream")
	}
	const limit = 1024 * mib
	waitFor(t, "the growth", func() bool { return a.gpuFigures().MemoryGrowthBytes == 40*mib })
	if g := a.gpuFigures(); g.MemoryUsedBytes != limit || g.OverrunBytes != 36*mib {
		t.Errorf("used %d, overrun %d", g.MemoryUsedBytes, g.OverrunBytes)
	}
	s.want("2", "alloc 1")
	s.want("2", "mod")
	s.want("2", "stack 2048")
	neighbour.want("0", "alloc %d", (1024-300)*mib)
	neighbour.want("2", "alloc 1")
	if g := b.gpuFigures(); g.OverrunBytes != 0 || g.MemoryUsedBytes != limit {
		t.Errorf("the neighbour: %+v", g)
	}
	s.want("0", "free") // the large one
	waitFor(t, "the end of the overrun", func() bool { return a.gpuFigures().OverrunBytes == 0 })
	s.want("0", "alloc %d", 200*mib)
	waitFor(t, "both events", func() bool {
		var told []string
		for _, e := range a.figures().Details.Events {
			told = append(told, e.Reason)
		}
		return slices.Contains(told, v1.EventOverrun) && slices.Contains(told, v1.EventOverrunEnded)
	})
	s.close()
	neighbour.close()
}

// The driver has no figure of processes: the container is degraded, what was learnt
// before stands, guesses stand, and the limit is held.
func TestNoFigure(t *testing.T) {
	w := watch(t, "--profile", "h100", "--context-overhead", "300MiB")
	program := compile(t, "settle.c")
	a := w.claim("a", "1Gi")
	s := a.tenant(program)
	s.want("0", "ctx")
	s.want("0", "mod")
	waitFor(t, "the module's growth", func() bool {
		g := a.gpuFigures()
		return g.MemoryGrowthBytes == 2*mib && g.MemoryUsedBytes == w.gpu().Used
	})
	fail := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(w.bin, append([]string{"fail", "--dir", w.dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("simgpu fail: %v\n%s", err, out)
		}
	}
	fail("--call", "nvmlDeviceGetComputeRunningProcesses", "--rc", "3")
	waitFor(t, "degraded", func() bool {
		f := a.figures()
		return f.State == v1.StateDegraded && f.Reason == "no driver figure" && f.GPUs[0].MemoryDriverBytes == nil
	})
	growth := a.gpuFigures().MemoryGrowthBytes
	s.want("0", "mod")
	// The second module's guesses stand: for its function, and for its code.
	s.want("2", "alloc %d", (1024-300-2-2)*mib)
	s.want("0", "alloc %d", (1024-300-2-4)*mib)
	s.want("2", "alloc 1")
	if g := a.gpuFigures(); g.MemoryGrowthBytes != growth || w.gpu().Used > 1024*mib {
		t.Errorf("growth %d, before %d; the driver holds %d", g.MemoryGrowthBytes, growth, w.gpu().Used)
	}
	s.want("0", "free")
	fail("--clear")
	waitFor(t, "enforced", func() bool { return a.figures().State == v1.StateEnforced })
	a.agrees("known again", func() uint64 { return w.gpu().Used })
	s.close()
}

// Two hundred modules are launched for the first time, at once, where fifty have room.
func TestBurstAtTheLimit(t *testing.T) {
	w := watch(t, "--profile", "h100", "--context-overhead", "300MiB")
	a := w.claim("a", "1Gi")
	s := a.tenant(compile(t, "settle.c"))
	s.want("0", "ctx")
	s.want("0", "alloc %d", (1024-300-100)*mib)
	if err := host.NewAdminClient(filepath.Join(w.dir, "admin.sock")).Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	var granted, refused, failed int
	if _, err := fmt.Sscan(s.do("burst 200"), &granted, &refused, &failed); err != nil {
		t.Fatal(err)
	}
	const limit = 1024 * mib
	high := w.gpu().High
	t.Logf("SIMULATED: %d granted, %d refused; the card's figure was %d at most, the limit is %d", granted, refused, high, limit)
	if high > limit || failed > 0 || granted < 25 {
		t.Errorf("%d bytes over the limit; %d granted, %d refused, %d failed", max(high, limit)-limit, granted, refused, failed)
	}
	a.agrees("afterwards", func() uint64 { return w.gpu().Used })
	// What a settled burst has left is there for whoever asks.
	if left := limit - w.gpu().Used; left >= 2*mib {
		waitFor(t, "the rest", func() bool { return s.do("alloc %d", left) == "0" })
	}
	s.close()
}

// A long run of modules, memory and limits, at random and often at the limit: all is
// given back, and what is charged at the end is the context.
func TestNoDrift(t *testing.T) {
	w := watch(t, "--profile", "h100", "--context-overhead", "300MiB")
	program := compile(t, "settle.c")
	a := w.claim("a", "1Gi")
	first, second := a.tenant(program), a.tenant(program)
	first.want("0", "ctx")
	second.want("0", "ctx")
	for seed := range 3 {
		fmt.Fprintf(first.in, "random 3000 %d\n", seed)
		second.want("0", "random 3000 %d", 100+seed)
		if !first.out.Scan() || first.out.Text() != "0" {
			t.Fatalf("the first tenant: %q", first.out.Text())
		}
	}
	waitFor(t, "no drift", func() bool {
		g := a.gpuFigures()
		return g.MemoryLedgerBytes+g.MemoryGrowthBytes == w.gpu().Used && g.MemoryUsedBytes == 600*mib
	})
	first.close()
	second.close()
	waitFor(t, "nothing", func() bool { g := a.gpuFigures(); return g.MemoryUsedBytes == 0 && g.MemoryGrowthBytes == 0 })
}

// What a calibration finds, on a card that counts to the byte and on one that does not.
func TestCalibration(t *testing.T) {
	for profile, want := range map[string]v1.GPU{
		"exact": {ContextBytes: 300 * mib, NextContextBytes: 300 * mib, BlockBytes: 512},
		"h100": {ContextBytes: 300 * mib, NextContextBytes: 300 * mib, BlockBytes: 2 * mib, ModuleBytes: 2 * mib,
			StackThreads: 132 * 2048, GraphNodeBytes: 10486},
	} {
		w := watch(t, "--profile", profile, "--context-overhead", "300MiB")
		d, err := w.client.Daemon(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		g := d.GPUs[0]
		if g.ContextBytes != want.ContextBytes || !g.ContextMeasured || g.NextContextBytes != want.NextContextBytes || g.BlockBytes != want.BlockBytes ||
			g.ModuleBytes != want.ModuleBytes || g.StackThreads != want.StackThreads || g.GraphNodeBytes != want.GraphNodeBytes || len(g.CostsUnknown) > 0 {
			t.Errorf("%s: %+v", profile, g)
		}
	}
}
