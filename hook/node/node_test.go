// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/internal/config"
)

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// elfHeader is the start of a library for the machine of that number.
func elfHeader(machine byte) string {
	return "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x03\x00" + string([]byte{machine, 0})
}

func TestLoadDriver(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "libcuda.so.1"), elfHeader(62), 0o644)
	write(t, filepath.Join(dir, "i386", "libcuda.so.1"), elfHeader(3), 0o644)
	write(t, filepath.Join(dir, "aarch64", "libcuda.so.1"), elfHeader(183), 0o644)
	json := `{"cdiVersion":"0.6.0","kind":"nvidia.com/gpu","containerEdits":{
		"deviceNodes":[{"path":"/dev/nvidiactl","hostPath":"/dev/null"},{"path":"/dev/nvidia-uvm","type":"c","major":510},{"path":"/dev/absent"}],
		"mounts":[{"hostPath":"DIR/libcuda.so.1","containerPath":"/lib64/libcuda.so.1"},
			{"hostPath":"DIR/i386/libcuda.so.1","containerPath":"/lib/libcuda.so.1"},
			{"hostPath":"DIR/aarch64/libcuda.so.1","containerPath":"/a/libcuda.so.1"},
			{"hostPath":"DIR/absent.so","containerPath":"/lib64/libcuda.so.2"}]},
		"devices":[{"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/nvidia0","hostPath":"/dev/zero"}]}}]}`
	yaml := `
cdiVersion: 0.6.0
kind: nvidia.com/gpu
containerEdits:
  deviceNodes:
  - {path: /dev/nvidiactl, hostPath: /dev/null}
  - {path: /dev/nvidia-uvm, type: c, major: 510}
  - path: /dev/absent
  mounts:
  - {hostPath: DIR/libcuda.so.1, containerPath: /lib64/libcuda.so.1}
  - {hostPath: DIR/i386/libcuda.so.1, containerPath: /lib/libcuda.so.1}
  - {hostPath: DIR/aarch64/libcuda.so.1, containerPath: /a/libcuda.so.1}
  - {hostPath: DIR/absent.so, containerPath: /lib64/libcuda.so.2}
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - {path: /dev/nvidia0, hostPath: /dev/zero}
`
	for name, text := range map[string]string{"x.json": json, "x.yaml": yaml} {
		d, err := LoadDriver(write(t, filepath.Join(dir, name), strings.ReplaceAll(text, "DIR", dir), 0o644))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		nodes := d.Spec.ContainerEdits.DeviceNodes
		if n := nodes[0]; n.Type != "c" || n.Major != 1 || n.Minor != 3 {
			t.Errorf("%s: node of /dev/null is %+v", name, n)
		}
		if n := nodes[1]; n.Type != "c" || n.Major != 510 || n.Minor != 0 {
			t.Errorf("%s: node with numbers is %+v", name, n)
		}
		if n := nodes[2]; n.Type != "" {
			t.Errorf("%s: absent node is %+v", name, n)
		}
		if n := d.Spec.Devices[0].ContainerEdits.DeviceNodes[0]; n.Minor != 5 {
			t.Errorf("%s: node of /dev/zero is %+v", name, n)
		}
		var kept []string
		for _, m := range d.Spec.ContainerEdits.Mounts {
			kept = append(kept, m.ContainerPath)
		}
		if want := []string{"/lib64/libcuda.so.1", "/lib64/libcuda.so.2"}; !reflect.DeepEqual(kept, want) {
			t.Errorf("%s: mounts %q, want %q", name, kept, want)
		}
	}
}

func TestLoadDriverRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"another kind": {`{"kind":"example.com/x"}`, `kind is "example.com/x"`},
		"garbage":      {"{\x00", "read the driver's CDI spec"},
		"YAML garbage": {"a: [\n", "read the driver's CDI spec"},
		"null entry":   {`{"kind":"nvidia.com/gpu","containerEdits":{"mounts":[null]}}`, "an entry is null"},
		"too large":    {strings.Repeat(" ", maxSpec+1), "is larger than"},
	} {
		_, err := LoadDriver(write(t, filepath.Join(dir, "x"), c.text, 0o644))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want one line with %q", name, err, c.want)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadDriver(pipe); err == nil {
		t.Error("a pipe was read")
	}
}

func TestNVIDIAMajors(t *testing.T) {
	text := "Character devices:\n  1 mem\n195 nvidia\n195 nvidia-modeset\n234 nvidia-caps-imex-channels\n235 nvidia-caps\n510 nvidia-uvm\n511 xnvidia\n\nBlock devices:\n  8 sd\n259 nvidia-block\n"
	if got, want := nvidiaMajors([]byte(text)), []int64{195, 195, 234, 235, 510}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestHost(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	h, err := Host(config.Default(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{"link": "/dev", dir + "/link": "/dev", "/dev/../dev": "/dev", "/absent/x": "/absent/x", "absent": dir + "/absent"} {
		if got := h.Real(in); got != want {
			t.Errorf("real path of %s is %s, want %s", in, got, want)
		}
	}
	if !h.SameNamespace("pid", "/proc/self/ns/pid") || h.SameNamespace("pid", "/proc/self/ns/ipc") || h.SameNamespace("pid", "/absent") {
		t.Error("namespaces are told apart wrongly")
	}
}

func TestLowLevelRuntime(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the search asks who owns the file")
	}
	dir := t.TempDir()
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	good := write(t, filepath.Join(dir, "good"), "x", 0o755)
	if got, err := lowLevelRuntime([]string{filepath.Join(dir, "absent"), good}, self); err != nil || got != good {
		t.Errorf("%q, %v; want %q", got, err, good)
	}
	link := filepath.Join(dir, "runc")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	nvidia := write(t, filepath.Join(dir, "nvidia-container-runtime.cdi"), "x", 0o755)
	nvidiaLink := filepath.Join(dir, "low")
	if err := os.Symlink(nvidia, nvidiaLink); err != nil {
		t.Fatal(err)
	}
	user := write(t, filepath.Join(dir, "user"), "x", 0o755)
	if err := os.Chown(user, 1000, 0); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"ourselves by a link": {link, "itself"},
		"writable by group":   {write(t, filepath.Join(dir, "group"), "x", 0o775), "can be written by others"},
		"a user's":            {user, "belongs to uid 1000"},
		"no program":          {write(t, filepath.Join(dir, "data"), "x", 0o644), "no program"},
		"a directory":         {dir, "no program"},
		"NVIDIA's":            {nvidia, "over our limits"},
		"NVIDIA's by a link":  {nvidiaLink, "over our limits"},
		"absent":              {"no-such-runtime", "none of no-such-runtime is installed"},
	} {
		// The good one behind must not be taken instead.
		names := []string{c.path, good}
		if name == "absent" {
			names = names[:1]
		}
		if got, err := lowLevelRuntime(names, self); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestLibraries(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the libraries must be root's")
	}
	dir := t.TempDir()
	v1 := filepath.Join(dir, "v1")
	cuda := write(t, filepath.Join(v1, "libcuda.so.1"), "x", 0o755)
	nvml := write(t, filepath.Join(v1, "libnvidia-ml.so.1"), "x", 0o755)
	if err := os.Symlink("v1", filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	c := &config.Config{LibraryDir: dir}
	gotCUDA, gotNVML, err := Libraries(c)
	if err != nil || gotCUDA != cuda || gotNVML != nvml {
		t.Errorf("%q, %q, %v", gotCUDA, gotNVML, err)
	}
	for name, text := range map[string]string{"empty": "", "for i386": elfHeader(3)} {
		write(t, nvml, text, 0o755)
		if _, _, err := Libraries(c); err == nil || !strings.Contains(err.Error(), nvml) {
			t.Errorf("a library that is %s: %v", name, err)
		}
	}
	if err := os.Chmod(nvml, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Libraries(c); !errors.Is(err, config.ErrUnsafe) {
		t.Errorf("a library that all can write: %v", err)
	}
	if err := os.Remove(nvml); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Libraries(c); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing library: %v", err)
	}
}

func FuzzSpec(f *testing.F) {
	f.Add([]byte(`{"kind":"nvidia.com/gpu","devices":[{"name":"0"}]}`))
	f.Add([]byte("kind: nvidia.com/gpu\ndevices:\n- name: \"0\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := parseSpec(data)
		if err == nil && spec.Kind != "nvidia.com/gpu" {
			t.Errorf("kind %q", spec.Kind)
		}
	})
}
