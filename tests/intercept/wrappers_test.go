// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/region"
)

// The memory wrappers against a stand-in driver that keeps its own account; the
// cases are in cuda-intercept/test/wrappers.c.
func TestWrappers(t *testing.T) {
	c := newContainer(t, region.GPULimit{
		UUID: standInUUID(0), MemoryLimit: 1024 * mib, ContextBytes: 100 * mib, CeilingMilli: 1000,
	})
	c.driver = standIn(t)
	if out, err := c.run(compile(t, "wrappers.c")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// The rarer functions of each kind, by the same account:
// cuda-intercept/test/abis.c.
func TestABIs(t *testing.T) {
	c := newContainer(t, region.GPULimit{
		UUID: standInUUID(0), MemoryLimit: 1024 * mib, ContextBytes: 100 * mib, CeilingMilli: 1000,
	})
	c.driver = standIn(t)
	if out, err := c.run(compile(t, "abis.c")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// The driver fails at what we ask it: cuda-intercept/test/vain.c.
func TestAskedInVain(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver = standIn(t)
	if out, err := c.run(compile(t, "vain.c")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// The views of NVML, and the guard that keeps them from the real library's own
// questions; the cases are in cuda-intercept/test/nvmlguard.c.
func TestNVMLGuard(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.nvml = standInNVML(t)
	if out, err := c.run(compile(t, "nvmlguard.c")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	// No page: nothing of the card is shown.
	c = newContainer(t)
	c.nvml = standInNVML(t)
	out, err := c.run(compile(t, "nvmlguard.c"))
	if err == nil || !strings.Contains(out, "(dev, &m) = 4, want 0") || !strings.Contains(out, "(dev, &n, list) = 4, want 0") {
		t.Errorf("without a page: %v\n%s", err, out)
	}
}

// Of what NVML tells of single processes, a program sees its container's own:
// cuda-intercept/test/own.c.
func TestOwnProcesses(t *testing.T) {
	c := newContainer(t, standInLimit())
	c.driver, c.nvml = standIn(t), standInNVML(t)
	if out, err := c.run(compile(t, "own.c")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// generated is the directory of the generated code under test.
func generated(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("GPUSHARE_TEST_GEN"); dir != "" {
		return dir
	}
	return filepath.Join(root(t), "cuda-intercept/gen")
}

// Each launching entry point and the gate; see cuda-intercept/test/launches.c. It
// needs no container: nothing of it touches the ledger.
func TestLaunches(t *testing.T) {
	src := filepath.Join(root(t), "cuda-intercept")
	program := compile(t, "launches.c", "-I", filepath.Join(src, "src"), "-I", generated(t),
		filepath.Join(src, "src/cuda_launch.c"), filepath.Join(generated(t), "cuda_hooks.c"),
		"-no-pie", "-Wl,--unresolved-symbols=ignore-all") // the bodies of all other rows
	if out, err := exec.Command(program).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRegistry(t *testing.T) {
	src := filepath.Join(root(t), "cuda-intercept/src")
	program := compile(t, "registry.c", "-I", src, filepath.Join(src, "registry.c"))
	if out, err := exec.Command(program).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
