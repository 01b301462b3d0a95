// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

func layout(t *testing.T) Layout {
	t.Helper()
	built := t.TempDir()
	for _, name := range libraries {
		if err := os.WriteFile(filepath.Join(built, name+".1"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := Layout{Dir: t.TempDir(), Version: "1.2.3", GPUs: []GPU{
		{UUID: "GPU-a", Model: "A", BusID: "0000:1A:00.0", MIG: true}, {UUID: "GPU-b", Model: "B", BusID: "0000:3b:00.0"},
	}}
	self := filepath.Join(built, "self")
	if err := os.WriteFile(self, []byte("binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A larger node of another release was here before.
	old := l
	old.Version, old.GPUs = "0.9.1", append(l.GPUs, GPU{UUID: "GPU-c", BusID: "0000:ff:00.0"})
	for _, x := range []Layout{old, l, l} {
		containers, err := x.Write(built, self)
		if err != nil {
			t.Fatal(err)
		}
		if !containers {
			t.Skip("device nodes and with them CDI need the right to make them")
		}
	}
	return l
}

func read(t *testing.T, path string) specs.Spec {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var s specs.Spec
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

func TestSpecs(t *testing.T) {
	l := layout(t)
	plain := read(t, filepath.Join(l.Dir, "cdi", "nvidia.json"))
	hooked := read(t, filepath.Join(l.Dir, "cdi-hooks", "nvidia.json"))
	for _, s := range []specs.Spec{plain, hooked} {
		if s.Kind != "nvidia.com/gpu" || s.Version == "" {
			t.Errorf("kind %q, version %q", s.Kind, s.Version)
		}
		var names []string
		for _, d := range s.Devices {
			names = append(names, d.Name)
			want := 1
			if d.Name == "all" {
				want = 2
			}
			if len(d.ContainerEdits.DeviceNodes) != want {
				t.Errorf("device %s has %d nodes", d.Name, len(d.ContainerEdits.DeviceNodes))
			}
		}
		if got := strings.Join(names, " "); got != "0 GPU-a 1 GPU-b all" {
			t.Errorf("devices %s", got)
		}
		for _, m := range s.ContainerEdits.Mounts {
			if _, err := os.Stat(m.HostPath); err != nil {
				t.Errorf("mount of what is not there: %v", err)
			}
			if o := strings.Join(m.Options, ","); !strings.HasPrefix(o, "ro,nosuid,nodev") {
				t.Errorf("mount options %s", o)
			}
		}
	}
	mounts := func(s specs.Spec) string {
		var out []string
		for _, m := range s.ContainerEdits.Mounts {
			out = append(out, filepath.Base(m.ContainerPath))
		}
		return strings.Join(out, " ")
	}
	if got := mounts(plain); got != "simgpu libcuda.so.1.2.3 libcuda.so.1 libcuda.so libnvidia-ml.so.1.2.3 libnvidia-ml.so.1" {
		t.Errorf("plain mounts %s", got)
	}
	if got := mounts(hooked); got != "simgpu libcuda.so.1.2.3 libnvidia-ml.so.1.2.3" {
		t.Errorf("mounts beside hooks %s", got)
	}
	if len(plain.ContainerEdits.Hooks) != 0 || len(hooked.ContainerEdits.Hooks) != 2 {
		t.Errorf("%d and %d hooks", len(plain.ContainerEdits.Hooks), len(hooked.ContainerEdits.Hooks))
	}
	for _, h := range hooked.ContainerEdits.Hooks {
		if st, err := os.Stat(h.Path); err != nil || st.Mode()&0o111 == 0 || h.HookName != "createContainer" {
			t.Errorf("hook %+v: %v", h, err)
		}
	}
}

// A partitioned GPU is handed out by its instances.
func TestInstances(t *testing.T) {
	l := layout(t)
	l.GPUs[0].Instances = []MIGInstance{
		{UUID: "MIG-1", Instance: 1, Compute: 0}, {UUID: "MIG-2", Instance: 2, Compute: 0}, {UUID: "MIG-3", Instance: 2, Compute: 1},
	}
	if _, err := l.Write(filepath.Join(l.Dir, "built"), "/proc/self/exe"); err == nil {
		t.Fatal("written from libraries that are not there")
	}
	built := t.TempDir()
	for _, name := range libraries {
		if err := os.WriteFile(filepath.Join(built, name+".1"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Write(built, "/proc/self/exe"); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, d := range read(t, filepath.Join(l.Dir, "cdi", "nvidia.json")).Devices {
		for _, n := range d.ContainerEdits.DeviceNodes {
			if st, err := os.Stat(n.HostPath); err != nil || st.Mode()&os.ModeCharDevice == 0 {
				t.Errorf("device %s of %s: %v", n.HostPath, d.Name, err)
			}
			got[d.Name] = append(got[d.Name], strings.TrimPrefix(n.Path, "/dev/nvidia"))
		}
	}
	for name, want := range map[string]string{
		"0": "", "GPU-a": "", "1": "1", "GPU-b": "1", "0:0": "0 -caps/nvidia-cap12 -caps/nvidia-cap13",
		"0:2": "0 -caps/nvidia-cap21 -caps/nvidia-cap23", "MIG-3": "0 -caps/nvidia-cap21 -caps/nvidia-cap23",
	} {
		if s := strings.Join(got[name], " "); s != want {
			t.Errorf("device %s has nodes %q, want %q", name, s, want)
		}
	}
	b, err := os.ReadFile(filepath.Join(l.Dir, "proc/driver/nvidia/capabilities/gpu0/mig/gi2/ci1/access"))
	if err != nil || !strings.HasPrefix(string(b), "DeviceFileMinor: 23\n") {
		t.Errorf("capability %q: %v", b, err)
	}
}

func TestFiles(t *testing.T) {
	l := layout(t)
	for link, want := range map[string]string{
		"lib/libcuda.so.1": "libcuda.so", "lib/libcuda.so": "libcuda.so",
		"lib/libnvidia-ml.so.1": "libnvidia-ml.so", "lib/libnvidia-ml.so.1.2.3": "libnvidia-ml.so",
	} {
		if b, err := os.ReadFile(filepath.Join(l.Dir, link)); err != nil || string(b) != want {
			t.Errorf("%s holds %q: %v", link, b, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(l.Lib(), "simgpu.sock")); err != nil || filepath.Join(l.Lib(), to) != l.Socket() {
		t.Errorf("socket link %q: %v", to, err)
	}
	b, err := os.ReadFile(filepath.Join(l.Dir, "gpushare.toml"))
	if err != nil || !strings.Contains(string(b), `extra_driver_mounts = ["`+l.Run()+`:/run/simgpu"]`) {
		t.Errorf("configuration: %v\n%s", err, b)
	}
	if to, err := os.Readlink(filepath.Join(l.Lib(), "libcuda.so")); err != nil || to != "libcuda.so.1" {
		t.Errorf("libcuda.so is a link to %s: %v", to, err)
	}
	for _, root := range []string{"usr/lib64", "usr/lib/x86_64-linux-gnu"} {
		if _, err := os.Stat(filepath.Join(l.Dir, root, "libcuda.so.1.2.3")); err != nil {
			t.Errorf("not a driver root: %v", err)
		}
	}
	for _, gone := range []string{"lib/libcuda.so.0.9.1", "dev/nvidia2", "proc/driver/nvidia/gpus/0000:ff:00.0"} {
		if _, err := os.Lstat(filepath.Join(l.Dir, gone)); err == nil {
			t.Errorf("%s of the node before is left", gone)
		}
	}
	for name, want := range map[string]string{
		"nvidia/version": "1.2.3  (SIMULATED)", "nvidia/params": "ModifyDeviceFiles: 1",
		"nvidia/gpus/0000:1a:00.0/information": "GPU UUID: \t GPU-a", "nvidia/gpus/0000:3b:00.0/information": "Device Minor: \t 1\n",
		"nvidia/capabilities/mig/config": "DeviceFileMinor: 1\n", "nvidia-caps/mig-minors": "gpu1/gi14/ci7/access 272\n",
	} {
		if b, err := os.ReadFile(filepath.Join(l.Dir, "proc", "driver", name)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s holds %q: %v", name, b, err)
		}
	}
	seen := map[string]bool{}
	for _, d := range l.deviceNodes() {
		seen[d.name] = true
		if st, err := os.Stat(filepath.Join(l.Dev(), d.name)); err != nil || st.Mode()&os.ModeCharDevice == 0 || st.Mode().Perm() != d.mode {
			t.Errorf("device %s: %v %v", d.name, st, err)
		}
	}
	for _, name := range []string{"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps/nvidia-cap1"} {
		if !seen[name] {
			t.Errorf("no device %s", name)
		}
	}
}
