// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestWithoutRoot: an ordinary user has no device nodes and so no containers, and
// everything else.
func TestWithoutRoot(t *testing.T) {
	plain(t, "the programs run in the plain build")
	const nobody = 65534
	home := t.TempDir() // the build may lie where nobody else can read
	files := map[string]string{
		binary: "bin/simgpu", filepath.Join(build, "lib/libcuda.so.1"): "simgpu/lib/libcuda.so.1",
		filepath.Join(build, "lib/libnvidia-ml.so.1"): "simgpu/lib/libnvidia-ml.so.1",
	}
	for _, name := range append(slices.Clone(programs), "nvml", "attach") {
		files[filepath.Join(build, "test", name)] = name
	}
	for from, to := range files {
		path := filepath.Join(home, to)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(home, "node")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(home), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	as := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(home, name), args...)
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib"), "HOME="+dir)
		cmd.Dir = "/"
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	out := as("bin/simgpu", "up", "--dir", dir, "--gpus", "2", "--kernel-time", "slow5ms=5ms", "--kernel-time", "ms=1ms",
		"--kernel-time", "ten_ms=10ms", "--kernel-time", "waves=1ms/wave", "--condition", "loop=5", "--condition", "yes=1", "--condition", "third=2", "--detach")
	defer as("bin/simgpu", "down", "--dir", dir)
	if !strings.Contains(out, "SIMULATED") || !strings.Contains(out, "no containers") {
		t.Fatalf("up: %s", out)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "log")); err != nil || !strings.Contains(string(log), "no containers") {
		t.Errorf("the log does not say what is missing: %q %v", log, err)
	}
	for _, path := range []string{"dev/nvidia0", "cdi/nvidia.json", "cdi-hooks/nvidia.json"} {
		if _, err := os.Lstat(filepath.Join(dir, path)); err == nil {
			t.Errorf("%s exists", path)
		}
	}
	for _, name := range append(slices.Clone(programs), "nvml") {
		as(name)
	}
	if out := as("attach", "2"); !strings.HasPrefix(out, "all") {
		t.Errorf("attach: %q", out)
	}
	as("bin/simgpu", "kernel-time", "--dir", dir, "k=1ms")
	if out := as("bin/simgpu", "status", "--dir", dir, "-o", "json"); !strings.Contains(out, `"simulated": true`) {
		t.Errorf("status: %s", out)
	}
}

// TestRootOfNothing: root of a user namespace may not make device nodes either.
func TestRootOfNothing(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf("%s up --dir %s --lib-dir %s --detach && cat %s/log && %s down --dir %s",
		binary, dir, filepath.Join(build, "lib"), dir, binary, dir)
	out, err := exec.Command("unshare", "--user", "--map-root-user", "sh", "-c", script).CombinedOutput()
	if err != nil && strings.Contains(string(out), "unshare failed") {
		t.Skipf("this machine has no user namespaces: %s", out)
	}
	if err != nil || !strings.Contains(string(out), "no containers") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Lstat(filepath.Join(dir, "cdi", "nvidia.json")); err == nil {
		t.Error("a CDI specification of devices that do not exist")
	}
}
