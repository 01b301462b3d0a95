// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package realdriver tests the interception libraries over NVIDIA's own driver
// libraries, without a GPU: that they load, that what is not hooked falls
// through, that every answer of cuGetProcAddress that we hook is ours, and that
// NVML's calls to itself do not meet our views.
//
// GPUSHARE_REAL_DRIVER names a directory with libcuda.so.1 and libnvidia-ml.so.1;
// by default fetch.sh gets Debian's packages of several driver series. Those that
// cannot be had are skipped with the reason. The tests need root.
package realdriver

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/limiter/region"
)

// NVIDIA's libraries make /dev/nvidiactl where it is missing: they get a /dev of
// their own, or every simulated driver on the machine would take this node for one
// with the device.
const enter = `
mount --make-rprivate /
mount -t tmpfs -o size=64k dev /dev
mknod -m 0666 /dev/null c 1 3
mknod -m 0666 /dev/zero c 1 5
mknod -m 0666 /dev/urandom c 1 9
mount --bind "$GS_DIR" /run/gpushare
mount --bind "$GS_DRIVER/libcuda.so.1" /run/gpushare/driver/cuda.real
mount --bind "$GS_DRIVER/libnvidia-ml.so.1" /run/gpushare/driver/nvml.real
exec "$@"`

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// series are the driver releases that fetch.sh knows: CUDA 11.4, 12.0, 12.2, 12.4
// and 12.5.
var series = []string{"470", "525", "535", "550", "555"}

// eachDriver runs a test over the real libraries of every series.
func eachDriver(t *testing.T, test func(t *testing.T, real string)) {
	if os.Getuid() != 0 {
		t.Skip("needs root for mount namespaces")
	}
	if dir := os.Getenv("GPUSHARE_REAL_DRIVER"); dir != "" {
		test(t, dir)
		return
	}
	for _, s := range series {
		t.Run(s, func(t *testing.T) { test(t, fetch(t, s)) })
	}
}

// fetch returns the directory of the real libraries of one series.
func fetch(t *testing.T, series string) string {
	t.Helper()
	var out, msg bytes.Buffer
	cmd := exec.Command("./fetch.sh", series)
	cmd.Stdout, cmd.Stderr = &out, &msg
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 77 {
		t.Skip(strings.TrimSpace(msg.String()))
	}
	if err != nil {
		t.Fatalf("fetch.sh: %v\n%s", err, msg.String())
	}
	return strings.TrimSpace(out.String())
}

func compile(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	cmd := exec.Command("gcc", "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror",
		"-I", filepath.Join(root(t), "cuda-intercept/include"), "-o", out, filepath.Join("testdata", name), "-ldl")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", name, err, msg)
	}
	return out
}

// container makes a container's directory for one GPU.
func container(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll("/run/gpushare", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "driver"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cuda.real", "nvml.real"} {
		if err := os.WriteFile(filepath.Join(dir, "driver", name), nil, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	l, err := region.CreateLimits(filepath.Join(dir, "limits"), []region.GPULimit{{UUID: [16]byte{1}, MemoryLimit: 1 << 30, CeilingMilli: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := region.CreateLedger(filepath.Join(dir, "ledger"), 1); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs a program over ours, or over the bare driver if lib is that.
func run(t *testing.T, real, lib, stdin, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command("unshare", append([]string{"-m", "sh", "-euc", enter, "sh", program}, args...)...)
	cmd.Env = append(os.Environ(), "GS_DIR="+container(t), "GS_DRIVER="+real, "LD_LIBRARY_PATH="+lib)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", filepath.Base(program), err, out)
	}
	return string(out)
}

func ours(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(root(t), "build/lib")
	if _, err := os.Stat(filepath.Join(dir, "libcuda.so.1")); err != nil {
		t.Fatalf("%v; run make -C cuda-intercept", err)
	}
	return dir
}

// Without a GPU the driver refuses to start; through us, in its own words.
func TestStart(t *testing.T) {
	eachDriver(t, func(t *testing.T, real string) {
		program := compile(t, "start.c")
		bare := run(t, real, real, "", program)
		if !strings.HasPrefix(bare, "cuInit 100\n") {
			t.Logf("the bare driver says %q", bare)
		}
		if got := run(t, real, ours(t), "", program); got != bare {
			t.Errorf("over ours:\n%sbare:\n%s", got, bare)
		}
	})
}

func TestLookups(t *testing.T) {
	eachDriver(t, func(t *testing.T, real string) {
		symbols, bases := hooked(t, "cuda.def")
		names := exported(t, filepath.Join(real, "libcuda.so.1"), true)
		var list []string
		for _, n := range names {
			if strings.HasPrefix(n, "cu") && !slices.Contains(symbols, n) {
				list = append(list, n)
			}
		}
		missing := 0
		for _, s := range symbols {
			if slices.Contains(names, s) {
				list = append(list, "+"+s)
			} else {
				list = append(list, "-"+s)
				missing++ // newer than this driver
			}
		}
		for _, b := range bases {
			list = append(list, "."+b)
		}
		t.Logf("%d hooked names are newer than this driver", missing)
		t.Log(run(t, real, ours(t), strings.Join(list, "\n"), compile(t, "lookups.c")))
	})
}

// What runtimes ask for at start is answered with exactly the function meant.
func TestReplay(t *testing.T) {
	requests, err := os.ReadFile("testdata/requests.tsv")
	if err != nil {
		t.Fatal(err)
	}
	program := compile(t, "replay.c")
	eachDriver(t, func(t *testing.T, real string) {
		out := run(t, real, ours(t), string(requests), program)
		t.Log(out)
		all := 0
		for _, m := range regexp.MustCompile(`(?m): (\d+) requests, ([1-9]\d+) answered by our wrapper, `).FindAllStringSubmatch(out, -1) {
			asked, _ := strconv.Atoi(m[1])
			all += asked
		}
		if all != 7195 {
			t.Errorf("%d requests were tried, of 7195", all)
		}
	})
}

var plt = regexp.MustCompile(`\b(jmp|call)q?\s+[0-9a-f]+ <(nvml\w+)@plt>`)

// The real NVML calls its own exports through its PLT, and so us. A call returns
// into the real library, which the guard sees; a jump would return to the
// program, and a view would be taken for the program's own question.
func TestNVMLGuard(t *testing.T) {
	eachDriver(t, func(t *testing.T, real string) {
		path := filepath.Join(real, "libnvidia-ml.so.1")
		out, err := exec.Command("objdump", "-d", "--no-show-raw-insn", path).Output()
		if err != nil {
			t.Skipf("objdump: %v", err)
		}
		views, _ := hooked(t, "nvml.def")
		jumps, calls := map[string]int{}, map[string]int{}
		for _, m := range plt.FindAllStringSubmatch(string(out), -1) {
			if m[1] == "jmp" {
				jumps[m[2]]++
			} else {
				calls[m[2]]++
			}
		}
		if len(calls) == 0 {
			t.Error("no call through the PLT found: the pattern or the library has changed")
		}
		for name := range jumps {
			if slices.Contains(views, name) {
				t.Errorf("the real library jumps to %s", name)
			}
		}
		for _, v := range views {
			if calls[v] > 0 {
				t.Logf("the real library calls %s %d times", v, calls[v])
			}
		}
		t.Logf("jumps: %v", jumps)
	})
}
