// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/profile"
)

// TestProfileReachesPrograms: what a profile says is what a CUDA program sees,
// every attribute of every card of a mixed node.
func TestProfileReachesPrograms(t *testing.T) {
	const spec = "t4,a100,a100-80gb,l40s,h100,h200,b200,rtx4090,rtx-pro-6000,2xexact"
	t.Setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID") // CUDA's numbers are then the profile's and NVML's
	n := up(t, "--profile", spec, "--driver", "newest")
	want, err := profile.ParseNode(spec)
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]string{}
	for line := range strings.Lines(n.run("attributes")) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		facts[f[0]+" "+f[1]] = f[2]
	}
	for d, g := range want.GPUs {
		attrs := g.Attributes()
		expect := map[string]any{
			"name": g.Name + " (SIMULATED)", "total": g.Memory.Usable(), "clock": attrs[13], "shared": attrs[8],
			"known": profile.AttributesKnown(n.status().CUDA),
			"33":    0x10 + d, "85": d,
		}
		for a := 1; a < profile.AttributesKnown(n.status().CUDA); a++ {
			if k := fmt.Sprint(a); expect[k] == nil {
				expect[k] = attrs[a]
			}
		}
		for k, v := range expect {
			if got := facts[fmt.Sprintf("%d %s", d, k)]; got != fmt.Sprint(v) {
				t.Errorf("%s (device %d): %s is %q, want %v", g.Profile, d, k, got, v)
			}
		}
	}
	for i, g := range n.status().GPUs {
		if g.Profile != want.GPUs[i].Profile || g.NVMLBytes != want.GPUs[i].Memory.TotalBytes || g.MemoryBytes != want.GPUs[i].Memory.Usable() {
			t.Errorf("status of GPU %d: %+v", i, g)
		}
	}
}

// TestDriverOfNode: the flag comes before the profile, and the libraries, the
// versions and the attributes that are known are those of the release.
func TestDriverOfNode(t *testing.T) {
	mock := filepath.Join(t.TempDir(), "mock.yaml")
	if err := os.WriteFile(mock, []byte("base: h100\nsystem: {driver_version: 560.35.03}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args    []string
		version string
		known   int
	}{
		{[]string{"--profile", "h100"}, "580.95.05", profile.AttributesKnown(13000)},
		{[]string{"--profile", "h100", "--driver", "470"}, "470.256.02", profile.AttributesKnown(11040)},
		{[]string{"--driver", "535"}, "535.261.03", profile.AttributesKnown(12020)},
		{[]string{"--profile", mock, "--driver", "450"}, "450.248.02", profile.AttributesKnown(11000)},
		{nil, "575.57.08", profile.AttributesKnown(12090)},
	} {
		t.Run(tc.version, func(t *testing.T) {
			n := up(t, tc.args...)
			if got := n.status().Driver; got != tc.version {
				t.Errorf("driver %s", got)
			}
			if to, err := os.Readlink(filepath.Join(n.dir, "lib", "libcuda.so.1")); err != nil || to != "libcuda.so."+tc.version {
				t.Errorf("library %s: %v", to, err)
			}
			if out := n.run("attributes"); !strings.Contains(out, fmt.Sprintf("0 known %d\n", tc.known)) {
				t.Errorf("not %d attributes", tc.known)
			}
			if v, err := os.ReadFile(filepath.Join(n.dir, "proc", "driver", "nvidia", "version")); err != nil || !strings.Contains(string(v), tc.version) {
				t.Errorf("version %q: %v", v, err)
			}
		})
	}
	out, err := simgpu(t, "up", "--dir", t.TempDir(), "--lib-dir", "/none", "--profile", mock)
	if err == nil || !strings.Contains(out, "libcuda") { // it gets as far as the libraries
		t.Errorf("a version that is not simulated: %v %s", err, out)
	}
}

// TestFlagsOverrideProfile: a flag counts for every GPU of a profile.
func TestFlagsOverrideProfile(t *testing.T) {
	n := up(t, "--profile", "a100,t4", "--memory", "8GiB", "--model", "mine", "--sms", "7")
	for _, g := range n.status().GPUs {
		if g.Name != "mine (SIMULATED)" || g.NVMLBytes != 8<<30 || g.MemoryBytes >= 8<<30 {
			t.Errorf("%+v", g)
		}
	}
	if out := n.run("attributes"); strings.Count(out, " 16 7\n") != 2 {
		t.Error("not 7 multiprocessors on both")
	}
}

func simgpu(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	return string(out), err
}

// TestUpRefuses: what cannot start says why, and what to do.
func TestUpRefuses(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, strings.Repeat("d", 100))
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--profile", "h10"}, "did you mean h100?"},
		{[]string{"--profile", "4xh100", "--gpus", "2"}, "give one of them"},
		{[]string{"--profile", "h100,t4", "--gpus", "2"}, "give one of them"},
		{[]string{"--gpus", "17"}, "must be 1 to 16"},
		{[]string{"--profile", "exact,h100"}, "want drivers 575 and 580: choose one with --driver"},
		{[]string{"--driver", "536"}, "did you mean 535?"},
		{[]string{"--gpus", "0"}, "must be 1 to 16"},
		{[]string{"--memory", "80GHz"}, "memory"},
		{[]string{"--memory", "1KiB"}, "at least 1 MiB"},
		{[]string{"--slice", "1us"}, "must be 10µs to 10s"},
		{[]string{"--context-overhead", "90GiB"}, "context_bytes"},
		{[]string{"--sms", "0"}, "must be 1 to 1024"},
		{[]string{"h100"}, "did you mean --profile h100?"},
		{[]string{"--dir", long}, "use a shorter directory"},
		{[]string{"--dir", "/proc/none"}, "create node directory"},
		{[]string{"--lib-dir", filepath.Join(dir, "none")}, "libcuda"},
	} {
		args := append([]string{"up", "--dir", dir, "--lib-dir", filepath.Join(build, "lib")}, tc.args...)
		out, err := simgpu(t, args...)
		if err == nil || !strings.Contains(out, tc.want) || strings.Count(out, "\n") > 3 {
			t.Errorf("%v: %v %q, want %q", tc.args, err, out, tc.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "sock")); err == nil {
		t.Error("a socket without anybody behind it is left")
	}
}

// TestSecondUp: one host process a directory, however it ended before; down twice
// is as good as once.
func TestSecondUp(t *testing.T) {
	n := up(t, "--profile", "null")
	for _, detach := range []string{"--detach=false", "--detach"} {
		out, err := simgpu(t, "up", "--dir", n.dir, "--lib-dir", filepath.Join(build, "lib"), detach)
		if err == nil || !strings.Contains(out, fmt.Sprintf("it is up already (pid %d)", n.pid)) {
			t.Errorf("a second up: %v %q", err, out)
		}
	}
	dir := t.TempDir()
	for range 2 {
		if out, err := simgpu(t, "down", "--dir", dir); err != nil || !strings.Contains(out, "no GPUs are up") {
			t.Errorf("down of what is down: %v %q", err, out)
		}
	}
	for _, args := range [][]string{{"status"}, {"kernel-time", "k=1ms"}} {
		out, err := simgpu(t, append([]string{args[0], "--dir", dir}, args[1:]...)...)
		if err == nil || !strings.Contains(out, "no GPUs are up in "+dir+": start some with simgpu up") || strings.Contains(out, "http") {
			t.Errorf("%v of what is down: %v %q", args, err, out)
		}
	}
	// After a kill the sockets are left; they stand in nobody's way.
	out, err := simgpu(t, "up", "--dir", dir, "--lib-dir", filepath.Join(build, "lib"), "--detach")
	if err != nil || !strings.Contains(out, "SIMULATED") {
		t.Fatalf("up: %v %q", err, out)
	}
	var pid int
	b, err := os.ReadFile(filepath.Join(dir, "pid"))
	if _, serr := fmt.Sscan(string(b), &pid); err != nil || serr != nil {
		t.Fatal(err, serr)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		out, err = simgpu(t, "up", "--dir", dir, "--lib-dir", filepath.Join(build, "lib"), "--detach", "--profile", "2xt4")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if out, err = simgpu(t, "status", "--dir", dir); err != nil || !strings.Contains(out, "Tesla T4 (SIMULATED)") || !strings.Contains(out, "SIMULATED GPUs, driver") {
		t.Errorf("status: %v %q", err, out)
	}
	if out, err = simgpu(t, "down", "--dir", dir); err != nil {
		t.Errorf("down: %v %q", err, out)
	}
	for _, name := range []string{"run/sock", "admin.sock", "pid"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left after down", name)
		}
	}
}

// TestInterrupt: Ctrl-C leaves no socket.
func TestInterrupt(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(binary, "up", "--dir", dir, "--lib-dir", filepath.Join(build, "lib"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		_, err := os.Stat(filepath.Join(dir, "pid"))
		return err
	})
	_ = cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("up: %v", err)
	}
	for _, name := range []string{"run/sock", "admin.sock", "pid"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left after an interrupt", name)
		}
	}
}

func TestProfilesCommand(t *testing.T) {
	out, err := simgpu(t, "profiles")
	if err != nil {
		t.Fatal(err, out)
	}
	for _, name := range profile.Names() {
		if !strings.Contains(out, "\n"+name+" ") {
			t.Errorf("%s is not listed:\n%s", name, out)
		}
	}
	out, err = simgpu(t, "profiles", "h100")
	path := filepath.Join(t.TempDir(), "copy.yaml")
	if err != nil || os.WriteFile(path, []byte(out), 0o600) != nil {
		t.Fatal(err, out)
	}
	mine, err := profile.Load(path)
	want, _ := profile.Load("h100")
	want.GPU.Profile = "copy"
	if err != nil || fmt.Sprint(mine.GPU) != fmt.Sprint(want.GPU) {
		t.Errorf("a copy of h100 is %+v: %v", mine.GPU, err)
	}
}

// TestPeers: cards of one kind reach each other as the kind does, others do not.
func TestPeers(t *testing.T) {
	t.Setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID") // as they stand there
	n := up(t, "--profile", "2xh100,2xt4,2xrtx4090,2xa100")
	for pair, link := range map[string]string{
		"0 1": "nvlink", "2 3": "pcie", "4 5": "none", "6 7": "nvlink", "0 2": "none", "0 6": "none", "3 4": "none",
	} {
		n.run("peer", append(strings.Fields(pair), link)...)
	}
}
