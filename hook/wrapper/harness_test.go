// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

const libDir = "/usr/lib/x86_64-linux-gnu"

// binaryDir is what binary has made, once a test has asked for it.
var binaryDir string

// binary is the directory of the wrapper and the hook under test, built once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gpushare-runtime")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir, "../cmd/gpushare-runtime", "../cmd/gpushare-hook")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build: %w: %s", err, text)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if binaryDir != "" {
		os.RemoveAll(binaryDir)
	}
	os.Exit(code)
}

// machine is a host as the wrapper sees it: an installed prefix, a driver with
// its CDI spec, and a daemon that grants what it is asked for.
type machine struct {
	t      testing.TB
	dir    string
	runDir string
	wrap   string // the installed gpushare-runtime
	daemon *daemon
}

// need skips a test where containers cannot be made, and says why.
func need(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to make containers and device nodes")
	}
	for _, program := range []string{"runc", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: %v", program, err)
		}
	}
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	need(t)
	built, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, dir: t.TempDir()}
	m.runDir = m.path("run")
	m.wrap = m.path("prefix/bin/gpushare-runtime")
	for _, name := range []string{"gpushare-runtime", "gpushare-hook"} {
		program, err := os.ReadFile(filepath.Join(built, name))
		if err != nil {
			t.Fatal(err)
		}
		m.write("prefix/bin/"+name, string(program), 0o755)
	}
	m.write("prefix/lib/gpushare/libcuda.so.1", "our libcuda", 0o755)
	m.write("prefix/lib/gpushare/libnvidia-ml.so.1", "our libnvidia-ml", 0o755)
	for _, name := range []string{"libcuda.so.999.1", "libnvidia-ml.so.999.1", "libnvidia-ptxjitcompiler.so.999.1", "libnvidia-opencl.so.999.1"} {
		m.write("driver/lib/"+name, "real "+name, 0o644)
	}
	m.write("driver/run/sock", "driver's own", 0o644)
	for node, number := range map[string][2]uint32{
		"nvidia0": {195, 0}, "nvidia1": {195, 1}, "nvidiactl": {195, 255}, "nvidia-uvm": {510, 0}, "nvidia-modeset": {195, 254},
	} {
		m.node("driver/dev/"+node, number[0], number[1])
	}
	m.json("driver/cdi.json", m.cdi())
	m.config("")
	m.daemon = startDaemon(t, m.runDir)
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(name, text string, mode os.FileMode) {
	m.t.Helper()
	path := m.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) read(name string) string {
	m.t.Helper()
	data, err := os.ReadFile(m.path(name))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(data)
}

func (m *machine) json(name string, v any) {
	m.t.Helper()
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		m.t.Fatal(err)
	}
	m.write(name, string(data), 0o644)
}

func (m *machine) node(name string, major, minor uint32) {
	m.t.Helper()
	path := m.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(major, minor))); err != nil {
		m.t.Fatal(err)
	}
}

// config writes the machine's config.toml: top goes in front of the tables,
// tables behind.
func (m *machine) config(top string, tables ...string) {
	m.write("prefix/etc/gpushare/config.toml", fmt.Sprintf("run_dir = %q\ndriver_cdi_spec = %q\nextra_driver_mounts = [%q]\n%s\n%s\n",
		m.runDir, m.path("driver/cdi.json"), m.path("driver/run")+":/run/driver-own", top, strings.Join(tables, "\n")), 0o644)
}

func (m *machine) cdi() any {
	mounts := []any{}
	for _, name := range []string{"libcuda.so.999.1", "libnvidia-ml.so.999.1", "libnvidia-ptxjitcompiler.so.999.1", "libnvidia-opencl.so.999.1"} {
		mounts = append(mounts, map[string]any{
			"hostPath": m.path("driver/lib/" + name), "containerPath": libDir + "/" + name,
			"options": []string{"ro", "nosuid", "nodev", "bind"},
		})
	}
	node := func(name string) any {
		return map[string]any{"path": "/dev/" + name, "hostPath": m.path("driver/dev/" + name)}
	}
	device := func(name string, nodes ...any) any {
		return map[string]any{"name": name, "containerEdits": map[string]any{"deviceNodes": nodes}}
	}
	return map[string]any{
		"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu",
		"containerEdits": map[string]any{
			"mounts":      mounts,
			"deviceNodes": []any{node("nvidiactl"), node("nvidia-uvm"), node("nvidia-modeset")},
		},
		"devices": []any{device("0", node("nvidia0")), device("GPU-1", node("nvidia1"))},
	}
}

// bundle makes a bundle of which the shell runs script. edit, if any, changes
// the spec that runc itself proposes.
func (m *machine) bundle(name, script string, edit func(spec map[string]any)) string {
	m.t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		m.t.Fatal(err)
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		m.t.Fatal(err)
	}
	m.write(name+"/rootfs/bin/busybox", string(program), 0o755)
	// A GPU container needs a loader; the programs here do not.
	for from, to := range map[string]string{
		"/lib64/ld-linux-x86-64.so.2": "lib64/ld-linux-x86-64.so.2", libDir + "/libc.so.6": "lib/libc.so.6",
	} {
		data, err := os.ReadFile(from)
		if err != nil {
			m.t.Fatal(err)
		}
		m.write(name+"/rootfs/"+to, string(data), 0o755)
	}
	for _, applet := range []string{"sh", "cat", "ls", "env", "sleep", "dd", "mknod", "stat", "test"} {
		if err := os.Symlink("busybox", m.path(name+"/rootfs/bin/"+applet)); err != nil {
			m.t.Fatal(err)
		}
	}
	cmd := exec.Command("runc", "spec", "--bundle", m.path(name))
	if text, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("runc spec: %v: %s", err, text)
	}
	var spec map[string]any
	if err := json.Unmarshal([]byte(m.read(name+"/config.json")), &spec); err != nil {
		m.t.Fatal(err)
	}
	process := spec["process"].(map[string]any)
	process["terminal"] = false
	process["args"] = []any{"sh", "-c", script}
	spec["root"].(map[string]any)["readonly"] = false
	if edit != nil {
		edit(spec)
	}
	m.json(name+"/config.json", spec)
	return m.path(name)
}

// setenv adds variables to a spec's process.
func setenv(spec map[string]any, pairs ...string) {
	process := spec["process"].(map[string]any)
	env := process["env"].([]any)
	for _, pair := range pairs {
		env = append(env, pair)
	}
	process["env"] = env
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// runtime runs the wrapper with a root directory of its own.
func (m *machine) runtime(args ...string) result {
	m.t.Helper()
	return m.command(nil, append([]string{m.wrap, "--root", m.path("root")}, args...)...)
}

func (m *machine) command(env []string, argv ...string) result {
	m.t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = env
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// id returns a container id that no other test uses.
func (m *machine) id(name string) string {
	return fmt.Sprintf("gstest-%d-%s", os.Getpid(), name)
}

// annotations returns a spec edit that adds annotations.
func annotations(add map[string]any) func(map[string]any) {
	return func(spec map[string]any) {
		all := map[string]any{}
		if have, ok := spec["annotations"].(map[string]any); ok {
			all = have
		}
		maps.Copy(all, add)
		spec["annotations"] = all
	}
}

// withCgroup returns a bundle's spec with another control group.
func withCgroup(m *machine, bundle, path string) map[string]any {
	m.t.Helper()
	var spec map[string]any
	if err := json.Unmarshal([]byte(m.read(bundle+"/config.json")), &spec); err != nil {
		m.t.Fatal(err)
	}
	spec["linux"].(map[string]any)["cgroupsPath"] = path
	return spec
}
