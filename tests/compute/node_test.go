// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package compute tests shares of GPU time without containers: the interception
// library over a SIMULATED GPU, limits pages made as the daemon makes them, the
// daemon's own arbiter of pricing windows, and programs in mount namespaces of
// their own. Shares are read from the simulator's account, not from ours.
//
// It needs root, and what `make build` makes.
package compute

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/daemon/doorbell"
	"github.com/gpushare/gpushare/daemon/window"
	"github.com/gpushare/gpushare/limiter/region"
)

const gib = 1 << 30

// built returns a file that the build makes.
func built(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../build", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run make build", err)
	}
	return path
}

// node is a SIMULATED GPU and the daemon's arbiter.
type node struct {
	t       *testing.T
	dir     string
	uuid    [16]byte
	windows *window.Runner
}

// startNode starts one GPU whose kernels run as long as times say ("short=50us").
// GPUSHARE_TEST_PROFILE names another card than the one whose accounts are exact.
func startNode(t *testing.T, times ...string) *node {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for mount namespaces")
	}
	n := &node{t: t, dir: t.TempDir(), windows: window.NewRunner()}
	t.Cleanup(n.windows.Close)
	args := []string{"up", "--dir", n.dir, "--detach"}
	if profile := os.Getenv("GPUSHARE_TEST_PROFILE"); profile != "" {
		args = append(args, "--profile", profile)
	}
	for _, k := range times {
		args = append(args, "--kernel-time", k)
	}
	// What else the machine does must not stop the clocks of a simulation that runs
	// in real time.
	args = append([]string{"-n", "-15", built(t, "bin/simgpu")}, args...)
	if out, err := exec.Command("nice", args...).CombinedOutput(); err != nil {
		t.Fatalf("simgpu up: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(built(t, "bin/simgpu"), "down", "--dir", n.dir).CombinedOutput(); err != nil {
			t.Errorf("simgpu down: %v\n%s", err, out)
		}
	})
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(n.status().GPUs[0].UUID, "GPU-"), "-", ""))
	if err != nil || len(raw) != 16 {
		t.Fatalf("UUID of the GPU: %x, %v", raw, err)
	}
	copy(n.uuid[:], raw)
	return n
}

// account is what these tests read of `simgpu status`.
type account struct {
	TimeNS int64 `json:"time_ns"`
	GPUs   []struct {
		UUID      string `json:"uuid"`
		GPUTimeNS int64  `json:"gpu_time_ns"`
	} `json:"gpus"`
	Processes []struct {
		PID  int `json:"pid"`
		GPUs []struct {
			GPUTimeNS int64 `json:"gpu_time_ns"`
		} `json:"gpus"`
	} `json:"processes"`
}

func (n *node) status() account {
	n.t.Helper()
	out, err := exec.Command(built(n.t, "bin/simgpu"), "status", "--dir", n.dir, "-o", "json").Output()
	if err != nil {
		n.t.Fatalf("simgpu status: %v", err)
	}
	var a account
	if err := json.Unmarshal(out, &a); err != nil {
		n.t.Fatalf("simgpu status: %v", err)
	}
	return a
}

func (a account) ran(p *process) int64 {
	for _, q := range a.Processes {
		if q.PID == p.cmd.Process.Pid {
			return q.GPUs[0].GPUTimeNS
		}
	}
	return 0
}

// total is the GPU time that everybody has had, also who is gone.
type total struct{ ran, at int64 }

func (n *node) ranAll() total {
	n.t.Helper()
	a := n.status()
	return total{a.GPUs[0].GPUTimeNS, a.TimeNS}
}

func (a total) since(b total) (ran, took float64) {
	return float64(a.ran - b.ran), float64(a.at - b.at)
}

// share is what processes of a container are to have of the GPU together, in percent.
type share struct {
	what    string
	c       *container
	of      []*process
	percent float64
}

// figure is what they had, what part of the time their launches waited for it, and
// for what part of the time the host let a program wait for a core.
type figure struct{ percent, waited, delayed float64 }

func (n *node) measure(d time.Duration, shares []share) []figure {
	n.t.Helper()
	waited, delayed := make([]uint64, len(shares)), make([]float64, len(shares))
	for i, s := range shares {
		waited[i], delayed[i] = s.c.usage().ThrottledNs, runDelay(s.of)
	}
	before := n.status()
	time.Sleep(d)
	after := n.status()
	out := make([]figure, len(shares))
	for i, s := range shares {
		took := float64(after.TimeNS - before.TimeNS)
		out[i].waited = 100 * float64(s.c.usage().ThrottledNs-waited[i]) / took
		out[i].delayed = 100 * (runDelay(s.of) - delayed[i]) / took
		for _, p := range s.of {
			out[i].percent += 100 * float64(after.ran(p)-before.ran(p)) / took
		}
	}
	return out
}

// runDelay is how long processes have been ready to run and had no core, in ns.
func runDelay(ps []*process) float64 {
	var sum float64
	for _, p := range ps {
		var ran, delayed float64
		raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", p.cmd.Process.Pid))
		_, _ = fmt.Sscan(string(raw), &ran, &delayed)
		sum += delayed
	}
	return sum
}

// Too much is never excused. Too little is none if the program hardly ever waited
// for its share: it did not ask for more. Else it is measured again, and fails,
// unless the host kept the programs off its cores each time (they could not ask: a
// share is kept for 20 ms only): then the test is skipped.
const (
	attempts  = 5
	unlimited = 5 // percent of the time
	starved   = 2
)

// expect measures for d and wants each share to tolerance points.
func (n *node) expect(t *testing.T, d time.Duration, tolerance float64, shares ...share) {
	t.Helper()
	excused := 0
	for range attempts {
		short, busy := false, false
		for i, got := range n.measure(d, shares) {
			s := shares[i]
			t.Logf("%s: %.2f %% of GPU time (SIMULATED), want %.0f; waited %.0f %% of the time, without a core %.1f %%",
				s.what, got.percent, s.percent, got.waited, got.delayed)
			if got.percent > s.percent+tolerance {
				t.Errorf("%s: %.2f %% of GPU time, more than %.0f points above %.0f", s.what, got.percent, tolerance, s.percent)
			}
			short = short || got.percent < s.percent-tolerance && got.waited > unlimited
			busy = busy || got.delayed > starved
		}
		if !short {
			return
		}
		if busy {
			excused++
		}
	}
	if excused == attempts {
		t.Skipf("no verdict: the host kept the programs off its cores in each of %d measurements", attempts)
	}
	t.Errorf("no measurement of %d within %.0f points", attempts, tolerance)
}

// container is a container's directory, on a tmpfs of its own, and its doorbell.
type container struct {
	node   *node
	name   string
	dir    string
	limits *region.Limits
	ledger *region.Ledger
}

// place makes a container with a ceiling in milli-GPU.
func (n *node) place(name string, ceiling uint32) *container {
	t := n.t
	t.Helper()
	c := &container{node: n, name: name, dir: t.TempDir()}
	if err := unix.Mount("tmpfs", c.dir, "tmpfs", 0, "mode=0755,size=16m"); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(c.dir, unix.MNT_DETACH) })
	if err := os.Mkdir(filepath.Join(c.dir, "driver"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "driver/cuda.real"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	var err error
	c.limits, err = region.CreateLimits(filepath.Join(c.dir, "limits"), []region.GPULimit{{
		UUID: n.uuid, MemoryLimit: 4 * gib, ContextBytes: 300 << 20, ComputeMilli: ceiling, CeilingMilli: ceiling,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.limits.Close() })
	path := filepath.Join(c.dir, "ledger")
	if err := region.CreateLedger(path, 1); err != nil {
		t.Fatal(err)
	}
	if c.ledger, err = region.OpenLedger(path, 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.ledger.Close() })
	c.listen()
	n.windows.Join(name, c.limits, []string{"gpu"})
	t.Cleanup(c.leave) // before its page is unmapped
	return c
}

// listen answers the container's doorbell until the test ends.
func (c *container) listen() {
	t := c.node.t
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(c.dir, "control.sock"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		buf := make([]byte, 256)
		for {
			n, err := conn.Read(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			d, err := doorbell.Parse(buf[:max(n, 0)], 1)
			switch {
			case err != nil:
				t.Errorf("container %s rings: %v", c.name, err)
			case d.Kind == region.DoorbellDone:
				c.node.windows.Done(c.name, d.GPU)
			default:
				c.node.windows.Ask(c.name, d.GPU, doorbell.Wall(d))
			}
		}
	})
	t.Cleanup(func() { conn.Close(); done.Wait() })
}

func (c *container) leave() { c.node.windows.Leave(c.name) }

func (c *container) usage() region.GPUAccount {
	c.node.t.Helper()
	u, err := c.ledger.Read()
	if err != nil {
		c.node.t.Fatal(err)
	}
	return u.GPU[0].GPUAccount
}

// agrees checks over a second that the container's own account of GPU time is the
// simulator's.
func (c *container) agrees(ps ...*process) {
	t := c.node.t
	t.Helper()
	for range attempts {
		charged, from := c.usage().ChargedNs, time.Now()
		theirs := c.node.measure(time.Second, []share{{c: c, of: ps}})[0].percent
		ours := 100 * float64(c.usage().ChargedNs-charged) / float64(time.Since(from))
		t.Logf("container %s: charged %.1f %%, ran %.1f %% (SIMULATED)", c.name, ours, theirs)
		if math.Abs(ours-theirs) < 2+0.03*theirs {
			return
		}
	}
	t.Errorf("container %s: the accounts differ in each of %d measurements", c.name, attempts)
}

type process struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
}

// enter is what a container engine does: the directory read-only, the ledger
// writable, the driver's real library under its private name.
const enter = `
mount --make-rprivate /
mount --bind "$GS_DIR" /run/gpushare
mount --bind "$GS_DRIVER" /run/gpushare/driver/cuda.real
mount -o remount,bind,ro /run/gpushare
mount --bind "$GS_DIR/ledger" /run/gpushare/ledger
exec "$@"`

// start starts a program in the container.
func (c *container) start(args ...string) *process {
	t := c.node.t
	t.Helper()
	if err := os.MkdirAll("/run/gpushare", 0o755); err != nil {
		t.Fatal(err)
	}
	driver, err := filepath.EvalSymlinks(filepath.Join(c.node.dir, "lib/libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	argv := append([]string{"-n", "-10", "unshare", "-m", "sh", "-euc", enter, "sh"}, args...)
	p := &process{cmd: exec.CommandContext(ctx, "nice", argv...), cancel: cancel}
	p.cmd.Env = append(os.Environ(), "GS_DIR="+c.dir, "GS_DRIVER="+driver,
		"SIMGPU_SOCKET="+filepath.Join(c.node.dir, "run/sock"),
		"LD_LIBRARY_PATH="+filepath.Dir(built(t, "lib/libcuda.so.1")))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	ready := make([]byte, 256)
	if n, err := out.Read(ready); err != nil || !strings.HasPrefix(string(ready[:n]), "running") {
		t.Fatalf("%v says %q, %v", args, ready[:max(n, 0)], err)
	}
	return p
}

func (p *process) stop() {
	p.cancel()
	_ = p.cmd.Wait()
}

// saturate starts a program that launches without end.
func (c *container) saturate(kernel, mode string) *process {
	c.node.t.Helper()
	return c.start(built(c.node.t, "tests/saturate"), "--kernel", kernel, "--mode", mode)
}

// mixed starts a program of several threads, streams and kernels: see programs/mixed.c.
func (c *container) mixed(args ...string) *process {
	t := c.node.t
	t.Helper()
	program := filepath.Join(t.TempDir(), "mixed")
	out, err := exec.Command("gcc", "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread",
		"-I", "../../cuda-intercept/include", "-o", program, "programs/mixed.c", "-ldl").CombinedOutput()
	if err != nil {
		t.Fatalf("build mixed.c: %v\n%s", err, out)
	}
	return c.start(append([]string{program}, args...)...)
}
