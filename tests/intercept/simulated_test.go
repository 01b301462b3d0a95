// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/limiter/region"
)

const contextBytes = 16 * mib

// node is a running simulated node; figures from it are its own account.
type node struct {
	t   *testing.T
	dir string
	bin string
	// card tells that its driver takes memory as a real one does, in blocks.
	card bool
	h100 bool // all of its cards are
}

type gpuStatus struct {
	UUID string `json:"uuid"`
	Used uint64 `json:"used_bytes"`
	High uint64 `json:"high_bytes"`
}

// simulate starts a node with one GPU of 8 GiB whose contexts cost contextBytes.
func simulate(t *testing.T) *node {
	t.Helper()
	return simulateGPUs(t, 1)
}

// simulateGPUs starts a node with more flags of simgpu up; 0 GPUs leaves their number
// to the profile. GPUSHARE_TEST_DRIVER names
// another driver than the default; the tests that need newer calls fail over an old one.
// GPUSHARE_TEST_PROFILE names another card; the tests that count bytes fail on one that
// rounds.
func simulateGPUs(t *testing.T, gpus int, flags ...string) *node {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	n := &node{t: t, dir: t.TempDir(), bin: filepath.Join(root(t), "build/bin/simgpu")}
	if _, err := os.Stat(n.bin); err != nil {
		t.Fatalf("simulator: %v; run make simgpu", err)
	}
	args := []string{"up", "--dir", n.dir, "--memory", "8GiB", "--context-overhead", fmt.Sprintf("%dMiB", contextBytes/mib)}
	if gpus > 0 {
		args = append(args, "--gpus", fmt.Sprint(gpus))
	}
	if driver := os.Getenv("GPUSHARE_TEST_DRIVER"); driver != "" {
		args = append(args, "--driver", driver)
	}
	if profile := os.Getenv("GPUSHARE_TEST_PROFILE"); profile != "" {
		args = append(args, "--profile", profile)
	}
	args = append(args, flags...)
	for i, arg := range args[1:] {
		if args[i] == "--profile" {
			n.card = arg != "exact" && arg != "null"
			n.h100 = arg == "h100"
		}
	}
	cmd := exec.Command(n.bin, args...)
	var msg strings.Builder
	cmd.Stdout, cmd.Stderr = &msg, &msg
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	for range 200 {
		if exec.Command(n.bin, "status", "--dir", n.dir, "-o", "json").Run() == nil {
			return n
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("the simulator does not start:\n%s", msg.String())
	return nil
}

// gpus is the simulator's account of its GPUs.
func (n *node) gpus() []gpuStatus {
	n.t.Helper()
	out, err := exec.Command(n.bin, "status", "--dir", n.dir, "-o", "json").Output()
	if err != nil {
		n.t.Fatalf("simgpu status: %v", err)
	}
	var s struct {
		GPUs []gpuStatus `json:"gpus"`
	}
	if err := json.Unmarshal(out, &s); err != nil || len(s.GPUs) == 0 {
		n.t.Fatalf("simgpu status: %v, %s", err, out)
	}
	return s.GPUs
}

// gpu is the account of the first one.
func (n *node) gpu() gpuStatus { return n.gpus()[0] }

// container makes a container with that limit on the node's GPU.
func (n *node) container(limit uint64) *container {
	n.t.Helper()
	return n.containerOn(n.limit(0, limit))
}

// limit is a page's entry for one of the node's GPUs.
func (n *node) limit(gpu int, bytes uint64) region.GPULimit {
	n.t.Helper()
	g := region.GPULimit{MemoryLimit: bytes, ContextBytes: contextBytes, CeilingMilli: 1000, Alone: 1}
	if n.card {
		g.BlockBytes = 2 * mib
	}
	if n.h100 { // as TestCalibration finds it
		g.ModuleBytes, g.StackThreads, g.GraphNodeBytes = 2*mib, 132*2048, 10486
	}
	uuid := n.gpus()[gpu].UUID
	id, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(uuid, "GPU-"), "-", ""))
	if err != nil || copy(g.UUID[:], id) != 16 {
		n.t.Fatalf("uuid %q: %v", uuid, err)
	}
	return g
}

func (n *node) containerOn(gpus ...region.GPULimit) *container {
	n.t.Helper()
	c := newContainer(n.t, gpus...)
	c.driver = filepath.Join(n.dir, "lib/libcuda.so.1")
	c.nvml = filepath.Join(n.dir, "lib/libnvidia-ml.so.1")
	c.env = []string{"SIMGPU_SOCKET=" + filepath.Join(n.dir, "run/sock")}
	return c
}

// ledger is the sum of the container's ledger for each GPU.
func (c *container) ledger() []uint64 {
	c.t.Helper()
	l, err := region.OpenLedger(filepath.Join(c.dir, "ledger"), c.limits.GPUs())
	if err != nil {
		c.t.Fatal(err)
	}
	defer l.Close()
	u, err := l.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	var sums []uint64
	for i, g := range u.GPU {
		sums = append(sums, standing(g, c.limits.GPU(i)))
	}
	return sums
}

// standing is what is charged: what is announced, guesses that nobody has looked at,
// and growth.
func standing(u region.GPUUsage, page region.GPULimit) uint64 {
	sum := u.Bytes + page.Growth
	if u.GuessMark > page.SettleDone {
		sum += u.Guess
	}
	return sum
}

// held is a program that runs until it is let go or killed.
type held struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	lines []string // before "holding"
}

// start runs a program up to its line "holding", or just starts it.
func (c *container) start(wait bool, program string, args ...string) *held {
	c.t.Helper()
	cmd := c.command(context.Background(), program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	h := &held{cmd: cmd, in: in, out: bufio.NewScanner(out)}
	c.t.Cleanup(h.kill)
	if !wait {
		return h
	}
	for h.out.Scan() {
		if h.out.Text() == "holding" {
			return h
		}
		h.lines = append(h.lines, h.out.Text())
	}
	c.t.Fatalf("%v ended before it held on: %q", args, h.lines)
	return nil
}

// next is the next line that the program writes.
func (h *held) next() (string, error) {
	if !h.out.Scan() {
		return "", cmp.Or(h.out.Err(), io.EOF)
	}
	return h.out.Text(), nil
}

// answer lets a program go on that waits for a byte.
func (h *held) answer() { _, _ = h.in.Write([]byte{'\n'}) }

func (h *held) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}
