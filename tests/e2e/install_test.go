// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// withoutUs are options for a node whose docker does not know gpushare yet.
func withoutUs(edit func(n *node.Node, daemon map[string]any)) node.Options {
	return node.Options{Memory: "4GiB", EditDaemon: func(n *node.Node, daemon map[string]any) {
		delete(daemon["runtimes"].(map[string]any), node.Runtime)
		if edit != nil {
			edit(n, daemon)
		}
	}}
}

// probed puts the probe program where `gpushare install` looks for it.
func probed(t *testing.T, n *node.Node) *node.Node {
	t.Helper()
	place(t, "build/lib/gpushare-probe", filepath.Join(n.Dir, "lib/gpushare/probe"))
	return n
}

func place(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, from))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// docked calls install or uninstall for the node's docker.
func docked(t *testing.T, n *node.Node, command string, flags ...string) node.Result {
	t.Helper()
	return n.CLI(within(t), append([]string{command, "--engine", "docker", "--socket", filepath.Join(n.Dir, "docker.sock")}, flags...)...)
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// knows asks the node's docker whether it lists our runtime.
func knows(t *testing.T, n *node.Node) bool {
	t.Helper()
	r := n.Docker(within(t), "info", "--format", "{{json .Runtimes}}")
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return strings.Contains(r.Stdout, `"gpushare"`)
}

// clean fails the test if a probe has left a container, an image or a file behind.
func clean(t *testing.T, n *node.Node, before []byte) {
	t.Helper()
	file := filepath.Join(n.Dir, "daemon.json")
	if now := content(t, file); !bytes.Equal(before, now) {
		t.Errorf("daemon.json is not what it was:\n%s\nnow:\n%s", before, now)
	}
	if knows(t, n) {
		t.Error("docker still lists the runtime")
	}
	noProbe(t, n)
	if left, _ := filepath.Glob(filepath.Join(n.Dir, "*gpushare*")); len(left) > 0 {
		t.Errorf("left beside daemon.json: %q", left)
	}
}

func noProbe(t *testing.T, n *node.Node) {
	t.Helper()
	if r := n.Docker(within(t), "ps", "-aq", "--filter", "label=gpushare.probe"); r.Err != nil || r.Stdout != "" {
		t.Errorf("probe containers are left: %q, %v", r.Stdout, r.Err)
	}
	if r := n.Docker(within(t), "images", "-q", "gpushare-probe"); r.Err != nil || r.Stdout != "" {
		t.Errorf("probe images are left: %q, %v", r.Stdout, r.Err)
	}
}

func TestInstallDocker(t *testing.T) {
	generations(t, withoutUs(nil), func(t *testing.T, n *node.Node) { installDocker(t, probed(t, n)) })
}

// A docker that has no runtimes but its own runc, which most have: dockerd forgets
// none when it reads a file without any.
func TestInstallDockerWithoutOtherRuntimes(t *testing.T) {
	alone := withoutUs(func(_ *node.Node, daemon map[string]any) { delete(daemon, "runtimes") })
	generations(t, alone, func(t *testing.T, n *node.Node) {
		installDocker(t, probed(t, n))

		// A change that is taken back is forgotten, too.
		before := content(t, filepath.Join(n.Dir, "daemon.json"))
		place(t, "LICENSE", filepath.Join(n.Dir, "lib/gpushare/probe"))
		if r := docked(t, n, "install"); r.Err == nil || !strings.Contains(r.Stderr, "GS-ENGINE-UNDONE") {
			t.Errorf("install with a probe that cannot run: %v\n%s", r.Err, r.Stderr)
		}
		clean(t, n, before)
	})
}

func installDocker(t *testing.T, n *node.Node) {
	file := filepath.Join(n.Dir, "daemon.json")
	before := content(t, file)

	r := docked(t, n, "install", "--dry-run")
	if r.Err != nil || !strings.Contains(r.Stdout, `+    "gpushare": {`) {
		t.Fatalf("dry run: %v\n%s", r.Err, r.Stdout)
	}
	clean(t, n, before)

	if r = docked(t, n, "install"); r.Err != nil {
		t.Fatal(r.Err)
	}
	if !strings.Contains(r.Stderr, "a probe container was denied at its limit") {
		t.Errorf("install does not say that the limit was tried: %s", r.Stderr)
	}
	noProbe(t, n)
	fill := n.Docker(within(t), "run", "--rm", "--runtime", "gpushare", "--network", "none", "-e", "GPUSHARE_MEMORY=1Gi", "small", "alloc", "--fill")
	if fill.Err != nil || !strings.Contains(fill.Stdout, "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("a container with a limit: %v\n%s", fill.Err, fill.Stdout)
	}

	installed, info := content(t, file), stat(t, file)
	if r = docked(t, n, "install"); r.Err != nil || !strings.Contains(r.Stderr, "no change") {
		t.Fatalf("second install: %v\n%s", r.Err, r.Stderr)
	}
	if now := stat(t, file); !bytes.Equal(installed, content(t, file)) || !now.ModTime().Equal(info.ModTime()) || !os.SameFile(info, now) {
		t.Error("the second install wrote daemon.json")
	}

	if r = docked(t, n, "uninstall"); r.Err != nil {
		t.Fatal(r.Err)
	}
	clean(t, n, before)
	if r = docked(t, n, "uninstall"); r.Err != nil || !strings.Contains(r.Stderr, "no change") {
		t.Errorf("second uninstall: %v\n%s", r.Err, r.Stderr)
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// Whatever makes a probe fail, docker's configuration is as it was, docker does not
// list the runtime, and the reason is said.
func TestInstallDockerIsTakenBack(t *testing.T) {
	n := probed(t, up(t, withoutUs(nil)))
	before := content(t, filepath.Join(n.Dir, "daemon.json"))
	plain := "#!/bin/sh\nexec runc \"$@\"\n"
	for _, c := range []struct {
		name, want string
		code       int
		spoil      func(t *testing.T) (repair func())
	}{
		{"a runtime that does nothing", "no driver library was put into the container", 1, func(t *testing.T) func() {
			return swap(t, n.Bin("gpushare-runtime"), []byte(plain))
		}},
		{"library missing", "libcuda.so.1", 1, func(t *testing.T) func() {
			return swap(t, filepath.Join(n.Dir, "lib/gpushare/1/libcuda.so.1"), nil)
		}},
		{"probe program missing", "the probe program is missing", 6, func(t *testing.T) func() {
			return swap(t, filepath.Join(n.Dir, "lib/gpushare/probe"), nil)
		}},
		{"runtime missing", "gpushare-runtime is not there", 6, func(t *testing.T) func() {
			return swap(t, n.Bin("gpushare-runtime"), nil)
		}},
		{"runtime not executable", "cannot be executed", 6, func(t *testing.T) func() {
			return mode(t, n.Bin("gpushare-runtime"), 0o644)
		}},
		{"runtime writable by all", "can be written by others", 6, func(t *testing.T) func() {
			return mode(t, n.Bin("gpushare-runtime"), 0o777)
		}},
		{"daemon down", "nothing was changed", 3, func(t *testing.T) func() {
			if err := n.Daemon().Stop(10 * time.Second); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := n.StartDaemon(within(t)); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			repair := c.spoil(t)
			r := docked(t, n, "install")
			repair()
			if r.Code != c.code || !strings.Contains(r.Stderr, c.want) {
				t.Errorf("status %d, want %d, and %q in:\n%s", r.Code, c.code, c.want, r.Stderr)
			}
			t.Logf("%s", r.Stderr)
			clean(t, n, before)
		})
	}
	if r := docked(t, n, "install"); r.Err != nil {
		t.Errorf("after all repairs: %v", r.Err)
	}
}

// swap gives a file another content, or takes it away for nil, until repair.
func swap(t *testing.T, path string, data []byte) (repair func()) {
	t.Helper()
	old := path + ".aside"
	if err := os.Rename(path, old); err != nil {
		t.Fatal(err)
	}
	if data != nil {
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Rename(old, path); err != nil {
			t.Fatal(err)
		}
	}
}

func mode(t *testing.T, path string, m os.FileMode) (repair func()) {
	t.Helper()
	if err := os.Chmod(path, m); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// A runtime given by its type is one that docker before 24 replaces by plain runc
// without a word. It is neither overwritten nor taken for ours.
func TestInstallDockerRuntimeType(t *testing.T) {
	n := probed(t, up(t, withoutUs(func(n *node.Node, daemon map[string]any) {
		daemon["runtimes"].(map[string]any)[node.Runtime] = map[string]string{"runtimeType": "io.containerd.gpushare.v1"}
	})))
	file := filepath.Join(n.Dir, "daemon.json")
	before := content(t, file)
	r := docked(t, n, "install")
	if r.Code != 6 || !strings.Contains(r.Stderr, "runtimeType") || !strings.Contains(r.Stderr, fmt.Sprintf("%s: line ", file)) {
		t.Errorf("status %d:\n%s", r.Code, r.Stderr)
	}
	if !bytes.Equal(before, content(t, file)) {
		t.Error("daemon.json was changed")
	}
}

// TestInstallDockerInterrupted ends installs by Ctrl-C and by SIGKILL at many moments:
// daemon.json is the old or the new one, whole, after a Ctrl-C the old one unless the
// install was done, and the next install and uninstall leave nothing behind.
func TestInstallDockerInterrupted(t *testing.T) {
	n := probed(t, up(t, withoutUs(nil)))
	file := filepath.Join(n.Dir, "daemon.json")
	before := content(t, file)
	begin := time.Now()
	if r := docked(t, n, "install"); r.Err != nil {
		t.Fatal(r.Err)
	}
	whole, after := time.Since(begin), content(t, file)
	if r := docked(t, n, "uninstall"); r.Err != nil {
		t.Fatal(r.Err)
	}
	const moments = 16
	ended := map[int]int{}
	for i := range moments {
		sig := []os.Signal{os.Interrupt, syscall.SIGKILL}[i%2]
		cmd := exec.Command(n.Bin("gpushare"), "--config", n.ConfigFile(), "install", "--engine", "docker", "--socket", filepath.Join(n.Dir, "docker.sock"))
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The moment is what is tried here; nothing depends on what it hits.
		time.Sleep(whole * time.Duration(i+1) / moments)
		_ = cmd.Process.Signal(sig)
		_ = cmd.Wait()
		code := cmd.ProcessState.ExitCode()
		ended[code]++
		now := content(t, file)
		switch {
		case !bytes.Equal(now, before) && !bytes.Equal(now, after):
			t.Fatalf("daemon.json is neither the old nor the new one:\n%s", now)
		case sig == os.Interrupt && (code == 0) != bytes.Equal(now, after):
			t.Errorf("status %d and daemon.json\n%s\n%s", code, now, said.String())
		case sig == os.Interrupt && code != 0 && code != 130 && code != -1: // -1: before it could listen for signals
			t.Errorf("status %d:\n%s", code, said.String())
		}
		if sig == os.Interrupt {
			noProbe(t, n)
		}
		if r := docked(t, n, "install"); r.Err != nil {
			t.Errorf("install after %v: %v", sig, r.Err)
		}
		if r := docked(t, n, "uninstall"); r.Err != nil {
			t.Errorf("uninstall after %v: %v", sig, r.Err)
		}
		clean(t, n, before)
	}
	t.Logf("an install takes %v; statuses of %d that were ended: %v", whole.Round(time.Millisecond), moments, ended)
	if ended[130] == 0 {
		t.Error("no Ctrl-C came in time")
	}
}
