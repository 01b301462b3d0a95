// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// TestThreeCommands goes the way of somebody with a machine that has docker and a
// (SIMULATED) GPU, from a built checkout to a container that is held to its limit, and
// says how long each of the three commands took. No time is asserted: it is the
// machine's.
func TestThreeCommands(t *testing.T) {
	n := up(t, withoutUs(nil))
	prefix := filepath.Join(n.Dir, "prefix")
	if err := os.MkdirAll(filepath.Join(prefix, "etc/gpushare"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The simulated driver's lines; a node with a driver needs no file.
	config := filepath.Join(prefix, "etc/gpushare/config.toml")
	if err := os.WriteFile(config, content(t, n.ConfigFile()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := n.Daemon().Stop(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	lap := start
	took := func(what string) {
		t.Logf("%-70s %6.1f s", what, time.Since(lap).Seconds())
		lap = time.Now()
	}

	if r := node.Run(within(t), nil, "make", "-C", root, "install", "PREFIX="+prefix); r.Err != nil {
		t.Fatal(r.Err)
	}
	took("make install (from a built checkout)")

	// Where systemd runs the machine, `gpushare install` starts the daemon.
	daemon := exec.Command(filepath.Join(prefix, "bin/gpushared"))
	daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Signal(syscall.SIGTERM)
		_ = daemon.Wait()
	})
	gpushare := filepath.Join(prefix, "bin/gpushare")
	soon(t, limit, "the installed daemon answers", func() bool {
		return node.Run(within(t), nil, gpushare, "daemon").Err == nil
	})
	took("gpushared & (not a command of its own where systemd starts it)")

	if r := node.Run(within(t), nil, gpushare, "install", "--engine", "docker", "--socket", filepath.Join(n.Dir, "docker.sock")); r.Err != nil {
		t.Fatal(r.Err)
	}
	took("gpushare install --engine docker, its probe included")

	r := n.Docker(within(t), "run", "--rm", "--runtime=gpushare", "--network", "none", "-e", "GPUSHARE_MEMORY=1Gi", "small", "alloc", "--fill")
	if r.Err != nil || !strings.Contains(r.Stdout, "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Fatalf("the first container: %v\n%s", r.Err, r.Stdout)
	}
	took("docker run --runtime=gpushare -e GPUSHARE_MEMORY=1Gi …")
	t.Logf("%-70s %6.1f s", "three commands, SIMULATED GPU", time.Since(start).Seconds())
}
