// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const all = `
run_dir = "/run/x/"
state_dir = "/var/x"
library_dir = "/opt/x/lib"
runtimes = ["crun", "/usr/bin/runc"]
driver_cdi_spec = "/sim/cdi/nvidia.json"
nvml_library = "/sim/lib/libnvidia-ml.so.1"
cuda_library = "/sim/lib/libcuda.so.1"
extra_driver_mounts = ["/sim/run:/run/simgpu"]
docker_host = "unix:///x.sock"
compat = "refuse"
[default_share]
memory = "8Gi"
compute = "30%"
compute_max = "none"
`
	got, err := Parse("x.toml", []byte(all))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		RunDir: "/run/x", StateDir: "/var/x", LibraryDir: "/opt/x/lib",
		Runtimes: []string{"crun", "/usr/bin/runc"}, DriverCDISpec: "/sim/cdi/nvidia.json",
		NVMLLibrary: "/sim/lib/libnvidia-ml.so.1", CUDALibrary: "/sim/lib/libcuda.so.1",
		ExtraDriverMounts: []string{"/sim/run:/run/simgpu"}, DockerHost: "unix:///x.sock", Compat: "refuse",
		DefaultShare: Share{Memory: "8Gi", Compute: "30%", ComputeMax: "none"}, Path: "x.toml",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	empty, err := Parse("x.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	def := Default()
	def.Path = "x.toml"
	if !reflect.DeepEqual(empty, def) {
		t.Errorf("empty file: got %+v, want the defaults", empty)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"unknown key":        {"run_dri = \"/x\"\n", `line 1: unknown key "run_dri": did you mean run_dir?`},
		"unknown nested key": {"\n[default_share]\nmemroy = \"1Gi\"\n", `line 3: unknown key "default_share.memroy": did you mean default_share.memory?`},
		"wrong type":         {"run_dir = 5\n", "line 1"},
		"syntax":             {"run_dir = \n", "line 1"},
		"relative run_dir":   {"run_dir = \"run\"\n", "not an absolute path"},
		"empty run_dir":      {"run_dir = \"\"\n", "run_dir is empty"},
		"unknown compat":     {"compat = \"mask\"\n", `"route", "host" or "refuse"`},
		"no runtimes":        {"runtimes = []\n", "runtimes is empty"},
		"relative runtime":   {"runtimes = [\"./runc\"]\n", "plain name or an absolute path"},
		"half a mount":       {"extra_driver_mounts = [\"/x\"]\n", "host:container"},
		"relative mount":     {"extra_driver_mounts = [\"/x:y\"]\n", "host:container"},
		"three-part mount":   {"extra_driver_mounts = [\"/x:/y:rw\"]\n", "host:container"},
	} {
		_, err := Parse("x.toml", []byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %q", name, err, c.want)
		}
	}
}

func TestFind(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: the search asks who owns the tree")
	}
	root := t.TempDir()
	exe := filepath.Join(root, "prefix", "bin", "gpushare-runtime")
	own := filepath.Join(root, "prefix", "etc", "gpushare", "config.toml")
	system := filepath.Join(root, "system.toml")
	for _, p := range []string{exe, own} {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(exe, "", 0o755)
	check := func(what, wantRunDir string, wantErr error) {
		t.Helper()
		c, err := find(exe, system)
		if !errors.Is(err, wantErr) {
			t.Fatalf("%s: error %v, want %v", what, err, wantErr)
		}
		if err == nil && c.RunDir != wantRunDir {
			t.Errorf("%s: run_dir %q, want %q", what, c.RunDir, wantRunDir)
		}
	}
	check("no file", DefaultRunDir, nil)
	write(system, `run_dir = "/system"`, 0o644)
	check("system's file", "/system", nil)
	write(own, `run_dir = "/own"`, 0o644)
	check("own file first", "/own", nil)
	write(own, `run_dir = "/own"`, 0o666)
	check("own file writable by all", "", ErrUnsafe)
	write(own, `run_dir = "/own"`, 0o644)
	if err := os.Chmod(filepath.Dir(exe), 0o775); err != nil {
		t.Fatal(err)
	}
	check("binary's directory writable by group", "", ErrUnsafe)
	if err := os.Chmod(filepath.Dir(exe), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(root, "prefix"), 1000, 0); err != nil {
		t.Fatal(err)
	}
	check("prefix owned by a user", "", ErrUnsafe)
}

func TestLibraryDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{LibraryDir: dir}
	if got, err := c.LibraryDirectory(); err != nil || got != dir {
		t.Errorf("plain directory: %q, %v; want %q", got, err, dir)
	}
	v1 := filepath.Join(dir, "v1")
	if err := os.Mkdir(v1, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("v1", filepath.Join(dir, "current")); err != nil {
		t.Fatal(err)
	}
	if got, err := c.LibraryDirectory(); err != nil || got != v1 {
		t.Errorf("behind current: %q, %v; want %q", got, err, v1)
	}
	if _, err := (&Config{LibraryDir: filepath.Join(dir, "absent")}).LibraryDirectory(); err == nil {
		t.Error("absent directory: no error")
	}
}
