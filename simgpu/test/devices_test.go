// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpushare/gpushare/simgpu/api"
)

// TestVisibleDevices: a process sees the GPUs whose device node it may open.
func TestVisibleDevices(t *testing.T) {
	n := up(t, "--gpus", "3")
	var uuid []string
	for _, g := range n.status().GPUs {
		uuid = append(uuid, g.UUID)
	}
	list := func(cuda, nvml []int) string {
		var b strings.Builder
		for _, i := range cuda {
			fmt.Fprintf(&b, "cuda %s\n", uuid[i])
		}
		for _, i := range nvml {
			fmt.Fprintf(&b, "nvml %s\n", uuid[i])
		}
		return b.String()
	}
	all := []int{0, 1, 2}
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("this machine has a real driver's devices")
	}
	if got := n.run("devices"); got != list(all, all) {
		t.Errorf("without device nodes:\n%s", got)
	}
	for _, tc := range []struct {
		env  string
		cuda []int
	}{{"2,0", []int{2, 0}}, {"", nil}, {"1,7,0", []int{1}}, {uuid[1][:12], []int{1}}, {"0,0", []int{0}}} {
		cmd := n.command("devices")
		cmd.Env = append(cmd.Env, "CUDA_VISIBLE_DEVICES="+tc.env)
		if got := n.finish(cmd); got != list(tc.cuda, all) {
			t.Errorf("CUDA_VISIBLE_DEVICES=%s:\n%s", tc.env, got)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("device nodes need root")
	}
	// In a container /dev holds the nodes that it was given.
	dev := t.TempDir()
	for _, name := range []string{"nvidiactl", "nvidia1"} {
		if out, err := exec.Command("cp", "-a", filepath.Join(n.dir, "dev", name), dev).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dev, "null"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("mount --bind %s /dev && exec %s", dev, filepath.Join(build, "test", "devices"))
	cmd := exec.Command("unshare", "-m", "sh", "-c", script)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
	if got := n.finish(cmd); got != list([]int{1}, []int{1}) {
		t.Errorf("with one device node:\n%s", got)
	}
	// And without a node there is no GPU.
	if err := os.Remove(filepath.Join(dev, "nvidia1")); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command("unshare", "-m", "sh", "-c", script)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
	if got := n.finish(cmd); got != "" {
		t.Errorf("without a device node:\n%s", got)
	}
}

func TestHooks(t *testing.T) {
	n := up(t)
	bundle := t.TempDir()
	root := filepath.Join(bundle, "rootfs")
	lib := filepath.Join(root, "usr", "lib", "x86_64-linux-gnu")
	for _, d := range []string{lib, filepath.Join(root, "etc")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// What the mounts of the specification would put there.
	for _, name := range []string{"libcuda.so", "libnvidia-ml.so"} {
		full := name + "." + api.Default.Version
		if out, err := exec.Command("cp", filepath.Join(n.dir, "lib", full), lib).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	// A link out of the root must not be followed.
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "escape")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), []byte(`{"root":{"path":"rootfs"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(n.dir, "cdi-hooks", "nvidia.json"))
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		ContainerEdits struct {
			Hooks []struct {
				Path string
				Args []string
			}
		}
	}
	if err := json.Unmarshal(b, &spec); err != nil {
		t.Fatal(err)
	}
	hook := func(path string, args ...string) ([]byte, error) {
		cmd := exec.Command(path, args...)
		cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"ociVersion":"1.0.0","id":"x","pid":1,"bundle":%q}`, bundle))
		return cmd.CombinedOutput()
	}
	for range 2 { // links that exist are left alone
		for _, h := range spec.ContainerEdits.Hooks {
			if out, err := hook(h.Path, h.Args[1:]...); err != nil {
				t.Fatalf("%v: %v: %s", h.Args, err, out)
			}
		}
	}
	for _, name := range []string{"libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"} {
		if to, err := os.Readlink(filepath.Join(lib, name)); err != nil || !strings.HasPrefix(to, strings.Split(name, ".so")[0]) {
			t.Errorf("link %s to %q: %v", name, to, err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "etc", "ld.so.cache")); err != nil {
		t.Errorf("linker cache: %v", err)
	}
	out, err := hook(binary, "create-symlinks", "--link", "x::/escape/y")
	if _, serr := os.Lstat(filepath.Join(outside, "y")); serr == nil {
		t.Errorf("a link was made outside the root: %v %s", err, out)
	}
}
