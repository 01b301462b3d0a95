// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/internal/config"
)

func TestLowLevelRuntimeFloor(t *testing.T) {
	for text, want := range map[string]string{
		"runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\n": Warning,
		"runc version 1.1.12\ncommit: v1.1.12-0-g51d5e946\n":    Failure,
		"runc version 1.2.7\n":                                  Failure,
		"runc version 1.2.8\n":                                  OK,
		"runc version 1.3.2\n":                                  Failure,
		"runc version 1.3.3\n":                                  OK,
		"runc version 1.4.0\n":                                  OK,
		"runc version 1.5.3\n":                                  OK,
		"runc version 2.0.0\n":                                  OK,
		"crun version 1.8.1\n":                                  OK,
	} {
		c := lowLevel("/usr/sbin/runc", text)
		if c.State != want || (c.Fix == "") != (want == OK) {
			t.Errorf("%q: %+v, want %s", text, c, want)
		}
	}
}

func TestToolkitFloor(t *testing.T) {
	for text, want := range map[string]string{
		"NVIDIA Container Toolkit CLI version 1.17.8\ncommit: x\n": Warning,
		"NVIDIA Container Toolkit CLI version 1.19.0\n":            Warning,
		"NVIDIA Container Toolkit CLI version 1.19.1\n":            OK,
		"NVIDIA Container Toolkit CLI version 1.20.2\n":            OK,
	} {
		if c := toolkit(text); c.State != want || (c.Fix == "") != (want == OK) {
			t.Errorf("%q: %+v, want %s", text, c, want)
		}
	}
}

// healthy is a healthy node in a directory; each case spoils it.
func healthy(t *testing.T) Node {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: the checks ask who owns files")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, p := range []string{"gpushare-runtime", "gpushare-hook", "containerd-shim-gpushare-v1"} {
		write("bin/"+p, "", 0o755)
	}
	for _, l := range []string{"libcuda.so.1", "libnvidia-ml.so.1"} {
		write("lib/gpushare/"+l, "x", 0o755)
	}
	cuda, nvml := write("driver/libcuda.so.1", "", 0o755), write("driver/libnvidia-ml.so.1", "", 0o755)
	spec := write("driver/nvidia.json", `{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": "0", "containerEdits": {}}],
	  "containerEdits": {"mounts": [{"hostPath": "`+cuda+`", "containerPath": "/usr/lib/libcuda.so.1"}, {"hostPath": "`+nvml+`", "containerPath": "/usr/lib/libnvidia-ml.so.1"}]}}`, 0o644)
	file := write("etc/config.toml", "run_dir = \""+dir+"/run\"\ndriver_cdi_spec = \""+spec+"\"\n", 0o644)
	write("run/gpushared.sock", "", 0o600)
	if err := os.Mkdir(filepath.Join(dir, "run/c"), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return Node{
		Config: cfg, BinDir: filepath.Join(dir, "bin"), LibDir: filepath.Join(dir, "lib/gpushare"), Version: "1",
		DockerSocket: filepath.Join(dir, "none"), ContainerdSocket: filepath.Join(dir, "none"),
		Daemon: func(context.Context) (v1.Daemon, error) {
			return v1.Daemon{Version: "1", DriverVersion: "580.1", GPUs: []v1.GPU{{}}}, nil
		},
	}
}

func find(r Report, state, text string) *Check {
	for i, c := range r.Checks {
		if c.State == state && strings.Contains(c.Text, text) {
			return &r.Checks[i]
		}
	}
	return nil
}

func TestExamine(t *testing.T) {
	root := func(n *Node) string { return filepath.Dir(n.BinDir) }
	for name, c := range map[string]struct {
		spoil            func(n *Node) error
		state, text, fix string
	}{
		"healthy":             {func(*Node) error { return nil }, OK, "are root's alone", ""},
		"runtime gone":        {func(n *Node) error { return os.Remove(n.BinDir + "/gpushare-runtime") }, Failure, "gpushare-runtime", "make install"},
		"hook writable":       {func(n *Node) error { return os.Chmod(n.BinDir+"/gpushare-hook", 0o777) }, Failure, "can be written by others", "chmod go-w"},
		"shim not executable": {func(n *Node) error { return os.Chmod(n.BinDir+"/containerd-shim-gpushare-v1", 0o644) }, Failure, "cannot be executed", "chmod 0755"},
		"library a user's":    {func(n *Node) error { return os.Chown(n.LibDir+"/libcuda.so.1", 1000, 0) }, Failure, "belongs to uid 1000", "chown root:root"},
		"library gone":        {func(n *Node) error { return os.Remove(n.LibDir + "/libnvidia-ml.so.1") }, Failure, "libnvidia-ml.so.1", "make install"},
		"driver file gone":    {func(n *Node) error { return os.Remove(root(n) + "/driver/libcuda.so.1") }, Failure, "out of date, 1 files are missing", "nvidia-ctk cdi generate"},
		"no CDI":              {func(n *Node) error { return os.Remove(n.Config.DriverCDISpec) }, Failure, "CDI spec", "nvidia-ctk cdi generate"},
		"socket open":         {func(n *Node) error { return os.Chmod(n.Config.SocketPath(), 0o666) }, Failure, "can be used by others", "chmod 0600"},
		"directories open":    {func(n *Node) error { return os.Chmod(n.Config.ContainersDir(), 0o755) }, Failure, "can be used by others", "chmod 0700"},
		"bad config": {func(n *Node) error {
			_, n.ConfigErr = config.Parse("x.toml", []byte("run_dri = 1\n"))
			return nil
		}, Failure, "unknown key", "gpushare config check"},
		"override": {func(n *Node) error {
			return os.WriteFile(n.Config.Path, []byte("[override]\nprivileged = true\nhost_namespaces = false\n"), 0o644)
		}, Warning, "override.privileged", "sudoedit"},
		"extra mount": {func(n *Node) error {
			n.Config.ExtraDriverMounts = []string{"/a:/b"}
			return nil
		}, OK, "/a:/b", ""},
		"host memory": {func(n *Node) error {
			n.Config.HostMemory = "1Mi"
			return nil
		}, OK, "host_memory lends 1 MiB of this host's", ""},
		"too much host memory": {func(n *Node) error {
			n.Config.HostMemory = "999Ti"
			return nil
		}, Warning, `host_memory = "999Ti" lends containers more than this host has`, "sudoedit"},
		"other version": {func(n *Node) error { n.Version = "2"; return nil }, Warning, "version 1, this command 2", "gpushared"},
		"daemon down": {func(n *Node) error {
			n.Daemon = func(context.Context) (v1.Daemon, error) {
				return v1.Daemon{}, v1.Errorf(0, v1.CodeDaemonDown, "down")
			}
			return nil
		}, Failure, "down", "gpushared"},
		"run directory a user's": {func(n *Node) error { return os.Chown(n.Config.RunDir, 1000, 0) }, Failure, "belongs to uid 1000", "chown root:root"},
		"no GPU": {func(n *Node) error {
			n.Daemon = func(context.Context) (v1.Daemon, error) { return v1.Daemon{Version: "1", Reason: "none here"}, nil }
			return nil
		}, Failure, "none here", "nvidia-smi"},
		"no engine": {func(*Node) error { return nil }, Failure, "no running engine", "gpushare install"},
	} {
		t.Run(name, func(t *testing.T) {
			n := healthy(t)
			before := Examine(context.Background(), n)
			if err := c.spoil(&n); err != nil {
				t.Fatal(err)
			}
			r := Examine(context.Background(), n)
			found := find(r, c.state, c.text)
			if found == nil {
				t.Fatalf("no %s with %q in %+v", c.state, c.text, r.Checks)
			}
			if !strings.Contains(found.Fix, c.fix) || (found.Fix == "") != (c.state == OK) {
				t.Errorf("fix is %q, want %q", found.Fix, c.fix)
			}
			if name == "healthy" || name == "no engine" {
				if r.Failures != 1 { // no engine is there
					t.Errorf("failures: %+v", r.Checks)
				}
			} else if c.state == Failure && r.Failures <= before.Failures {
				t.Errorf("%d failures, were %d: %+v", r.Failures, before.Failures, r.Checks)
			}
			for _, one := range r.Checks {
				if (one.State == OK) != (one.Fix == "") {
					t.Errorf("a finding without one command to mend it: %+v", one)
				}
			}
		})
	}
}
