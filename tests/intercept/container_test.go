// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package intercept tests the interception libraries without containers: each
// program runs in a mount namespace of its own whose /run/gpushare is a directory
// that the test made with limiter/region, as the daemon makes it.
//
// It needs root. The libraries come from build/lib, or from the directory that
// GPUSHARE_TEST_LIB names (the sanitizer builds).
package intercept

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/limiter/region"
)

const mib = 1 << 20

// container stands for what the daemon makes for one container.
type container struct {
	t      *testing.T
	dir    string
	limits *region.Limits
	// driver and nvml are the real libraries; empty is none.
	driver, nvml string
	env          []string
}

// root returns the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// libraries is the directory of the libraries under test.
func libraries(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GPUSHARE_TEST_LIB")
	if dir == "" {
		dir = filepath.Join(root(t), "build/lib")
	}
	if _, err := os.Stat(filepath.Join(dir, "libcuda.so.1")); err != nil {
		t.Fatalf("libraries under test: %v; run make -C cuda-intercept", err)
	}
	return dir
}

// sanitizer is what the libraries under test are built with, and programs must be.
func sanitizer() string {
	switch filepath.Base(os.Getenv("GPUSHARE_TEST_LIB")) {
	case "asan":
		return "address,undefined"
	case "tsan":
		return "thread"
	}
	return ""
}

func sanitized() bool { return sanitizer() != "" }

// counting tells that the libraries count which lines run, which takes time and files
// at the end of each process.
func counting() bool { return filepath.Base(os.Getenv("GPUSHARE_TEST_LIB")) == "coverage" }

// long leaves a test to make test: it takes more than five seconds.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: make test runs it")
	}
}

// newContainer makes a container's directory on a tmpfs of its own.
func newContainer(t *testing.T, gpus ...region.GPULimit) *container {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root for mount namespaces")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,size=16m"); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	c := &container{t: t, dir: dir}
	if err := os.Mkdir(filepath.Join(dir, "driver"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"driver/cuda.real", "driver/nvml.real"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if len(gpus) == 0 {
		return c
	}
	var err error
	if c.limits, err = region.CreateLimits(filepath.Join(dir, "limits"), gpus); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.limits.Close() })
	if err := region.CreateLedger(filepath.Join(dir, "ledger"), len(gpus)); err != nil {
		t.Fatal(err)
	}
	return c
}

// enter is what a container engine does for us: the directory read-only, the
// ledger writable, the real libraries under their private names.
const enter = `
mount --make-rprivate /
mount --bind "$GS_DIR" /run/gpushare
[ -z "$GS_DRIVER" ] || mount --bind "$GS_DRIVER" /run/gpushare/driver/cuda.real
[ -z "$GS_NVML" ] || mount --bind "$GS_NVML" /run/gpushare/driver/nvml.real
mount -o remount,bind,ro /run/gpushare
[ ! -e "$GS_DIR/ledger" ] || mount --bind "$GS_DIR/ledger" /run/gpushare/ledger
exec "$@"`

// command prepares a program that runs in the container. It ends with the test.
func (c *container) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	c.t.Helper()
	if err := os.MkdirAll("/run/gpushare", 0o755); err != nil {
		c.t.Fatal(err)
	}
	argv := []string{"-m", "sh", "-euc", enter, "sh"}
	if sanitizer() == "thread" {
		argv = append(argv, "setarch", "-R") // its shadow memory has a fixed place
	}
	argv = append(append(argv, program), args...)
	cmd := exec.CommandContext(ctx, "unshare", argv...)
	cmd.Env = append(os.Environ(), "GS_DIR="+c.dir, "GS_DRIVER="+c.driver, "GS_NVML="+c.nvml,
		"LD_LIBRARY_PATH="+libraries(c.t), "UBSAN_OPTIONS=print_stacktrace=1",
		// The kernel's own addresses, and a stand-in driver that leaks by design.
		"ASAN_OPTIONS=detect_leaks=0")
	cmd.Env = append(cmd.Env, c.env...)
	return cmd
}

// run runs a program in the container and returns what it wrote.
func (c *container) run(program string, args ...string) (string, error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	cmd := c.command(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// compile builds a C file of cuda-intercept/test and returns the program.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	src := filepath.Join(root(t), "cuda-intercept")
	dir := t.TempDir()
	if counting() { // its counts are read when the test is over
		dir = countingDir(t)
	}
	out := filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".c"))
	args := []string{"-std=gnu17", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror",
		"-I", filepath.Join(src, "include"), "-I", filepath.Join(src, "test"), "-o", out}
	switch sanitizer() {
	case "thread":
		args = append(args, "-fsanitize=thread", "-Wno-tsan")
	case "address,undefined":
		args = append(args, "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
	}
	if counting() {
		args = append(args, "--coverage", "-fprofile-update=atomic")
	}
	for i, f := range strings.Fields(name) {
		if counting() { // sources of one name would share a file of counts
			text, err := os.ReadFile(filepath.Join(src, "test", f))
			if err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(dir, fmt.Sprintf("test%d.c", i))
			if err := os.WriteFile(at, text, 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, "-I", filepath.Join(src, "test", filepath.Dir(f)), at)
			continue
		}
		args = append(args, filepath.Join(src, "test", f))
	}
	args = append(append(args, flags...), "-ldl", "-lpthread")
	if msg, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", name, err, msg)
	}
	return out
}

func countingDir(t *testing.T) string {
	t.Helper()
	programs := filepath.Join(os.Getenv("GPUSHARE_TEST_LIB"), "programs")
	if err := os.MkdirAll(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(programs, filepath.Base(t.Name())+"-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// standIn builds the stand-in driver library.
func standIn(t *testing.T) string {
	t.Helper()
	return buildStandIn(t, "test/fake/*.c", "libcuda.so.1", "-Wl,-Bsymbolic")
}

// standInNVML builds the stand-in NVML, which calls itself through its PLT.
func standInNVML(t *testing.T) string {
	t.Helper()
	return buildStandIn(t, "test/nvml/*.c", "libnvidia-ml.so.1", "-fplt")
}

func buildStandIn(t *testing.T, pattern, soname, flag string) string {
	t.Helper()
	src := filepath.Join(root(t), "cuda-intercept")
	out := filepath.Join(t.TempDir(), "standin.so")
	args := []string{"-std=gnu17", "-g", "-O1", "-fPIC", "-shared", flag, "-Wl,-soname," + soname,
		"-Wall", "-Wextra", "-Werror", "-I", filepath.Join(src, "include"), "-o", out}
	files, err := filepath.Glob(filepath.Join(src, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command("gcc", append(args, files...)...).CombinedOutput(); err != nil {
		t.Fatalf("compile stand-in %s: %v\n%s", soname, err, msg)
	}
	return out
}

// standInUUID is what the stand-in driver says of its device.
func standInUUID(dev byte) [16]byte { return [16]byte{0: 0xfa, 15: dev + 1} }
