// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/calibrate"
	"github.com/gpushare/gpushare/daemon/directory"
	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/limiter"
)

const (
	gib      = 1 << 30
	overhead = 300 << 20 // what a context costs on the test's GPUs
)

// fakeNVML is a driver with two GPUs of 24 GiB.
type fakeNVML struct {
	mu        sync.Mutex
	err       error
	lost      bool // GPU 1 is not listed any more
	total     uint64
	processes map[int][]nvml.Process
	sampleErr error
	listErr   error // processes are not known
}

func gpuUUID(i int) string { return fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i) }

func (f *fakeNVML) Inventory(context.Context) (nvml.Inventory, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nvml.Inventory{}, f.err
	}
	inv := nvml.Inventory{DriverVersion: "575.57.08"}
	for i := range 2 {
		if i == 1 && f.lost {
			break
		}
		inv.Devices = append(inv.Devices, nvml.Device{Index: i, UUID: gpuUUID(i), Name: "Test (SIMULATED)", MemoryTotal: f.total})
	}
	return inv, nil
}

func (f *fakeNVML) Sample(_ context.Context, uuid string) (nvml.Sample, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range 2 {
		if gpuUUID(i) == uuid {
			return nvml.Sample{UsedBytes: 1 * gib, UsedKnown: true, Processes: f.processes[i], ProcessesErr: f.listErr}, f.sampleErr
		}
	}
	return nvml.Sample{}, errors.New("no such GPU")
}

// world is a node for a test.
type world struct {
	t    *testing.T
	base string
	nvml *fakeNVML
	m    *Manager
	// Default is the node's default share.
	share  limiter.Words
	policy Policy
	log    io.Writer // nil: nowhere
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounts containers' directories: needs root")
	}
	w := &world{t: t, base: t.TempDir(), nvml: &fakeNVML{total: 24 * gib, processes: make(map[int][]nvml.Process)}}
	t.Cleanup(func() {
		if w.m != nil {
			w.m.Close()
		}
		ids, _ := directory.List(w.containers())
		for _, id := range ids {
			directory.Remove(w.containers(), id)
		}
	})
	w.start()
	return w
}

func (w *world) containers() string { return filepath.Join(w.base, "run", "c") }
func (w *world) root() string       { return filepath.Join(w.base, "runc") }

// start begins a daemon; stop ends it, as restart does in between.
func (w *world) start() {
	w.t.Helper()
	log := w.log
	if log == nil {
		log = io.Discard
	}
	m, err := New(context.Background(), Options{
		RunDir: filepath.Join(w.base, "run"), StateDir: filepath.Join(w.base, "state"), Default: w.share, Policy: w.policy, NVML: w.nvml,
		Measure: func(context.Context, string) (calibrate.Figures, error) {
			return calibrate.Figures{ContextBytes: overhead}, nil
		},
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.m = m
}

func (w *world) restart() {
	w.t.Helper()
	w.m.Close()
	w.start()
}

// process starts a process that stays until it is ended; it returns its PID.
func (w *world) process(argv ...string) *exec.Cmd {
	w.t.Helper()
	if len(argv) == 0 {
		argv = []string{"sleep", "600"}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { end(cmd) })
	return cmd
}

func end(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

func (w *world) request(id string, pid int, r v1.Request) v1.ClaimRequest {
	return v1.ClaimRequest{ID: id, Bundle: "/run/x/io.containerd.runtime.v2.task/moby/" + id, RuntimeRoot: w.root(), PID: pid, Request: r, Source: v1.SourceEnv}
}

// claim claims for a claimant that lives.
func (w *world) claim(id string, r v1.Request) (v1.Claim, *exec.Cmd, error) {
	w.t.Helper()
	claimant := w.process()
	c, err := w.m.Claim(context.Background(), w.request(id, claimant.Process.Pid, r))
	return c, claimant, err
}

func (w *world) mustClaim(id string, r v1.Request) (v1.Claim, *exec.Cmd) {
	w.t.Helper()
	c, cmd, err := w.claim(id, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return c, cmd
}

// run makes a container of a claim: a process that the runtime's state names as
// its first one. The claimant ends, as `runc create` does.
func (w *world) run(id string, claimant *exec.Cmd, argv ...string) *exec.Cmd {
	w.t.Helper()
	init := w.process(argv...)
	w.writeState(id, init.Process.Pid)
	end(claimant)
	w.eventually("container "+id+" starts", func() bool {
		c, err := w.m.Container(context.Background(), id)
		return err == nil && c.Phase == v1.PhaseRunning
	})
	return init
}

func (w *world) writeState(id string, pid int) {
	w.t.Helper()
	p, err := proc.Lookup(pid)
	if err != nil {
		w.t.Fatal(err)
	}
	dir := filepath.Join(w.root(), id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp")
	text := fmt.Sprintf(`{"init_process_pid":%d,"init_process_start":%d}`, p.PID, p.Start)
	if err := errors.Join(os.WriteFile(tmp, []byte(text), 0o600), os.Rename(tmp, filepath.Join(dir, "state.json"))); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not within 10 s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// gone reports whether nothing is left of a container.
func (w *world) gone(id string) bool {
	_, err := w.m.Container(context.Background(), id)
	_, dir := os.Lstat(filepath.Join(w.containers(), id))
	_, rec := os.Lstat(filepath.Join(w.base, "run", "state", id+".json"))
	return v1.Code(err) == v1.CodeNotFound && errors.Is(dir, fs.ErrNotExist) && errors.Is(rec, fs.ErrNotExist)
}

func (w *world) empty() {
	w.t.Helper()
	for _, d := range []string{w.containers(), filepath.Join(w.base, "run", "state")} {
		entries, err := os.ReadDir(d)
		if err != nil || len(entries) > 0 {
			w.t.Errorf("left in %s: %v, %v", d, entries, err)
		}
	}
	info, _ := os.ReadFile("/proc/self/mountinfo")
	if strings.Contains(string(info), w.containers()) {
		w.t.Error("a mount is left")
	}
	for _, g := range w.m.Daemon(context.Background()).GPUs {
		if g.MemoryPromisedBytes != 0 || g.ComputePromisedMilli != 0 || g.Containers != 0 {
			w.t.Errorf("still promised: %+v", g)
		}
	}
}

// TestMain fails if the tests leave descriptors or goroutines behind.
func TestMain(m *testing.M) {
	before := openFiles()
	code := m.Run()
	if code == 0 {
		code = leaked(before)
	}
	os.Exit(code)
}

func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

func leaked(files int) int {
	deadline := time.Now().Add(5 * time.Second)
	for {
		runtime.GC()
		g, f := runtime.NumGoroutine(), openFiles()
		// The runtime's poller keeps two descriptors once it has been used.
		if g <= 2 && f <= files+4 {
			return 0
		}
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			fmt.Fprintf(os.Stderr, "leak: %d goroutines, %d descriptors (%d at the start)\n%s\n", g, f, files, buf[:runtime.Stack(buf, true)])
			return 1
		}
		time.Sleep(10 * time.Millisecond)
	}
}
