// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package test runs C programs against the built simulated driver and checks
// what they see and what the simulator's own account says.
package test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/host"
)

var build, binary string

// sanitizer is that of the libraries and programs, asan or tsan; "": none.
var sanitizer = os.Getenv("SIMGPU_SAN")

// plain skips a test in a run with sanitizers.
func plain(t *testing.T, why string) {
	t.Helper()
	if sanitizer != "" {
		t.Skip("not with sanitizers: ", why)
	}
}

// ofLibraries skips a test in a run with the race detector, which sees the
// simulator and not what the libraries answer by themselves.
func ofLibraries(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("not with the race detector: it is about the libraries")
	}
}

func TestMain(m *testing.M) {
	build, binary = os.Getenv("SIMGPU_BUILD"), os.Getenv("SIMGPU_BIN")
	if build == "" || binary == "" {
		if out, err := exec.Command("make", "-C", "..", "build", "tests").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build simgpu: %v\n%s", err, out)
			os.Exit(1)
		}
		root, _ := filepath.Abs("../../build")
		build, binary = filepath.Join(root, "simgpu"), filepath.Join(root, "bin", "simgpu")
	}
	os.Exit(run(m))
}

// run runs the tests, with a simulator of their own where they are to find races:
// it is there that they would be.
func run(m *testing.M) int {
	if raceDetector {
		dir, err := os.MkdirTemp("", "simgpu-race-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // nothing is lost
		binary = filepath.Join(dir, "simgpu")
		if out, err := exec.Command("go", "build", "-race", "-o", binary, "../cmd/simgpu").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build simgpu: %v\n%s", err, out)
			return 1
		}
		// Otherwise each command stays for a second at its end.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	}
	return m.Run()
}

// node is a running host process.
type node struct {
	t     *testing.T
	dir   string
	admin *host.AdminClient
	pid   int
}

func up(t *testing.T, args ...string) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "simgpu-test-")
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"up", "--dir", dir, "--lib-dir", filepath.Join(build, "lib")}, args...)
	cmd := exec.Command(binary, args...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: dir, admin: host.NewAdminClient(filepath.Join(dir, "admin.sock")), pid: cmd.Process.Pid}
	t.Cleanup(func() {
		if out, err := exec.Command(binary, "down", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("down: %v: %s\nlog: %s", err, out, log.String())
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("host process: %v\n%s", err, log.String())
		}
		if !strings.Contains(log.String(), "SIMULATED") {
			t.Errorf("up did not say SIMULATED: %q", log.String())
		}
		_ = os.RemoveAll(dir)
	})
	eventually(t, func() error {
		_, err := n.admin.Status(context.Background())
		return err
	})
	return n
}

// patience is how long a test waits for what must happen: so long that a busy
// machine is no reason for it not to have happened.
const patience = time.Minute

// eventually retries until f succeeds.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("after %v: %v", patience, err)
}

func (n *node) status() host.Status {
	n.t.Helper()
	st, err := n.admin.Status(context.Background())
	if err != nil {
		n.t.Fatal(err)
	}
	return st
}

func (n *node) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(build, "test", name), args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run runs a program to its end and returns its output.
func (n *node) run(name string, args ...string) string {
	n.t.Helper()
	return n.finish(n.command(name, args...))
}

func (n *node) finish(cmd *exec.Cmd) string {
	n.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	timer := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Run(); err != nil {
		n.t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// proc is a program that runs beside the test.
type proc struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	errs  bytes.Buffer
}

// start starts a program and waits for its line "ready".
func (n *node) start(name string, args ...string) *proc {
	n.t.Helper()
	p := &proc{cmd: n.command(name, args...)}
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	p.lines = bufio.NewScanner(out)
	for p.lines.Scan() {
		if p.lines.Text() == "ready" {
			return p
		}
	}
	n.t.Fatalf("%s %v ended early: %s", name, args, p.errs.String())
	return nil
}

// used returns the memory used on GPU 0.
func (n *node) used() uint64 { return n.status().GPUs[0].UsedBytes }
