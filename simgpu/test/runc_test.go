// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	cdi "tags.cncf.io/container-device-interface/specs-go"
)

// rootfs makes a root file system with what a C program needs and the programs.
func rootfs(t *testing.T, programs ...string) string {
	t.Helper()
	root := t.TempDir()
	copies := map[string]string{"/lib64/ld-linux-x86-64.so.2": "lib64/ld-linux-x86-64.so.2"}
	for _, lib := range []string{"libc.so.6", "libdl.so.2", "libpthread.so.0", "libm.so.6"} {
		copies["/lib/x86_64-linux-gnu/"+lib] = "usr/lib/x86_64-linux-gnu/" + lib
	}
	for _, p := range programs {
		copies[filepath.Join(build, "test", p)] = p
	}
	for from, to := range copies {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Skipf("a root file system without an image needs this machine's C library: %v", err)
		}
		path := filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"etc", "dev", "proc", "run"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// inject applies a device of a CDI specification to a decoded config.json, as an
// engine does.
func inject(t *testing.T, config map[string]any, specFile, device string) {
	t.Helper()
	b, err := os.ReadFile(specFile)
	if err != nil {
		t.Fatal(err)
	}
	var spec cdi.Spec
	if err := json.Unmarshal(b, &spec); err != nil {
		t.Fatal(err)
	}
	edits := []cdi.ContainerEdits{spec.ContainerEdits}
	for _, d := range spec.Devices {
		if d.Name == device {
			edits = append(edits, d.ContainerEdits)
		}
	}
	if len(edits) != 2 {
		t.Fatalf("%s has no device %s", specFile, device)
	}
	process, linux := config["process"].(map[string]any), config["linux"].(map[string]any)
	list := func(m map[string]any, key string, more ...any) {
		have, _ := m[key].([]any)
		m[key] = append(have, more...)
	}
	for _, e := range edits {
		for _, v := range e.Env {
			list(process, "env", v)
		}
		for _, m := range e.Mounts {
			list(config, "mounts", map[string]any{"source": m.HostPath, "destination": m.ContainerPath, "type": "bind", "options": m.Options})
		}
		for _, d := range e.DeviceNodes {
			var st unix.Stat_t
			if err := unix.Stat(d.HostPath, &st); err != nil {
				t.Fatalf("device %s: %v", d.HostPath, err)
			}
			major, minor := unix.Major(st.Rdev), unix.Minor(st.Rdev)
			list(linux, "devices", map[string]any{"path": d.Path, "type": "c", "major": major, "minor": minor, "fileMode": 0o666, "uid": 0, "gid": 0})
			list(linux["resources"].(map[string]any), "devices",
				map[string]any{"allow": true, "type": "c", "major": major, "minor": minor, "access": "rwm"})
		}
		for _, h := range e.Hooks {
			hooks, _ := config["hooks"].(map[string]any)
			if hooks == nil {
				hooks = map[string]any{}
				config["hooks"] = hooks
			}
			list(hooks, h.HookName, map[string]any{"path": h.Path, "args": h.Args})
		}
	}
}

// container makes a command that runs argv in a container with a GPU of the node,
// by runc and the node's own CDI specification and nothing else.
func (n *node) container(id, form, device string, root string, argv ...string) *exec.Cmd {
	n.t.Helper()
	bundle, state := n.t.TempDir(), n.t.TempDir()
	if out, err := exec.Command("runc", "spec", "--bundle", bundle).CombinedOutput(); err != nil {
		n.t.Fatalf("runc spec: %v %s", err, out)
	}
	file := filepath.Join(bundle, "config.json")
	b, err := os.ReadFile(file)
	if err != nil {
		n.t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(b, &config); err != nil {
		n.t.Fatal(err)
	}
	process := config["process"].(map[string]any)
	process["terminal"], process["args"] = false, argv
	delete(process, "rlimits") // a raised limit needs a right that a builder may lack
	config["root"] = map[string]any{"path": root, "readonly": false}
	config["linux"].(map[string]any)["cgroupsPath"] = "/" + id // goes with the container
	inject(n.t, config, filepath.Join(n.dir, form, "nvidia.json"), device)
	if b, err = json.Marshal(config); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		out, err := exec.Command("runc", "--root", state, "delete", "--force", id).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "does not exist") {
			n.t.Errorf("delete container %s: %v %s", id, err, out)
		}
	})
	return exec.Command("runc", "--root", state, "run", "--bundle", bundle, id)
}
