// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

const inspect = `
cat ` + libDir + `/libcuda.so.1; echo
cat ` + libDir + `/libcuda.so.999.1; echo
cat ` + libDir + `/libnvidia-ml.so.1; echo
cat ` + libDir + `/libnvidia-ptxjitcompiler.so.999.1; echo
cat /run/gpushare/driver/cuda.real; echo
cat /run/gpushare/driver/nvml.real; echo
cat /run/driver-own/sock; echo
test -e ` + libDir + `/libnvidia-opencl.so.999.1 && echo opencl is there
echo x 2>/dev/null >/run/gpushare/limits && echo limits can be written
echo x 2>/dev/null >/run/gpushare/new && echo a file can be made
echo x 2>/dev/null >` + libDir + `/libcuda.so.1 && echo the library can be written
echo written >/run/gpushare/ledger && cat /run/gpushare/ledger
ls /dev | while read n; do case $n in nvidia*) stat -c '%n %t:%T %a' /dev/$n;; esac; done
env | while read v; do case $v in NVIDIA*) echo $v;; esac; done
`

const inspected = `our libcuda
our libcuda
our libnvidia-ml
real libnvidia-ptxjitcompiler.so.999.1
real libcuda.so.999.1
real libnvidia-ml.so.999.1
driver's own
written
/dev/nvidia-uvm 1fe:0 666
/dev/nvidia0 c3:0 666
/dev/nvidiactl c3:ff 666
NVIDIA_VISIBLE_DEVICES=void
`

func TestRunGPUContainer(t *testing.T) {
	m := newMachine(t)
	b := m.bundle("b", inspect, func(spec map[string]any) {
		setenv(spec, "GPUSHARE_MEMORY=8Gi", "GPUSHARE_COMPUTE=30%", "NVIDIA_VISIBLE_DEVICES=all")
	})
	id := m.id("gpu")
	for _, turn := range []string{"first", "again in the same bundle"} {
		r := m.runtime("run", "--bundle", b, id)
		if r.code != 0 || r.stdout != inspected || r.stderr != "" {
			t.Fatalf("%s: exit %d\n%s\nstderr %s\nwant\n%s", turn, r.code, r.stdout, r.stderr, inspected)
		}
	}
	claims, _ := m.daemon.seen()
	if len(claims) != 2 {
		t.Fatalf("%d claims, want 2", len(claims))
	}
	got := claims[0]
	want := v1.ClaimRequest{ID: id, Bundle: b, RuntimeRoot: m.path("root"), PID: got.PID,
		Request: v1.Request{Memory: "8Gi", Compute: "30%"}, Source: "env"}
	if !reflect.DeepEqual(got, want) || got.PID <= 1 {
		t.Errorf("claim %+v, want %+v", got, want)
	}
	if second := claims[1]; second.Request != want.Request {
		t.Errorf("second claim %+v, want the request %+v", second, want.Request)
	}
}

// Mounts of the image's or the user's making may lie above ours; ours win.
func TestRunWithMountsInTheWay(t *testing.T) {
	m := newMachine(t)
	m.write("evil/libcuda.so.1", "evil", 0o755)
	b := m.bundle("b", inspect, func(spec map[string]any) {
		setenv(spec, "GPUSHARE_MEMORY=8Gi")
		bind := func(source, destination string) any {
			return map[string]any{"type": "bind", "source": source, "destination": destination, "options": []any{"rbind", "rw"}}
		}
		spec["mounts"] = append(spec["mounts"].([]any),
			map[string]any{"type": "tmpfs", "source": "tmpfs", "destination": "/run"},
			map[string]any{"type": "tmpfs", "source": "tmpfs", "destination": "/run/gpushare"},
			bind(m.path("evil"), libDir),
			bind(m.path("evil/libcuda.so.1"), libDir+"/libcuda.so.1"),
		)
	})
	r := m.runtime("run", "--bundle", b, m.id("covered"))
	if r.code != 0 || r.stdout != inspected || r.stderr != "" {
		t.Fatalf("exit %d\n%s\nstderr %s\nwant\n%s", r.code, r.stdout, r.stderr, inspected)
	}
}

func TestCreateStartDelete(t *testing.T) {
	m := newMachine(t)
	b := m.bundle("b", "sleep 60", func(spec map[string]any) { setenv(spec, "GPUSHARE_MEMORY=8Gi") })
	id := m.id("life")
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	defer m.runtime("delete", "--force", id)
	for _, args := range [][]string{{"create", "--bundle", b, id}, {"start", id}} {
		// A detached container keeps its creator's stdio: nothing may read it.
		cmd := append([]string{"sh", "-c", `exec "$@" >/dev/null 2>&1 </dev/null`, "sh", m.wrap, "--root", m.path("root")}, args...)
		if r := m.command(os.Environ(), cmd...); r.code != 0 {
			t.Fatalf("%s: %+v", args[0], r)
		}
	}
	r := m.runtime("exec", id, "sh", "-c", "env -i cat "+libDir+"/libcuda.so.1")
	if r.code != 0 || r.stdout != "our libcuda" {
		t.Errorf("exec: %+v", r)
	}
	if r := m.runtime("delete", id); r.code == 0 {
		t.Error("delete of a running container worked")
	}
	if _, released := m.daemon.seen(); len(released) != 0 {
		t.Errorf("released %q while the container runs", released)
	}
	if r := m.runtime("kill", id, "KILL"); r.code != 0 {
		t.Fatalf("kill: %+v", r)
	}
	waitStopped(t, m, "root", id)
	if r := m.runtime("delete", id); r.code != 0 {
		t.Errorf("delete: %+v", r)
	}
	if _, released := m.daemon.seen(); len(released) != 1 || released[0] != id {
		t.Errorf("released %q, want %q once", released, id)
	}
	// One that lives is told of if it is to be killed.
	b = m.bundle("forced", "sleep 60", func(spec map[string]any) { setenv(spec, "GPUSHARE_MEMORY=8Gi") })
	for _, args := range [][]string{{"create", "--bundle", b, id}, {"start", id}} {
		cmd := append([]string{"sh", "-c", `exec "$@" >/dev/null 2>&1 </dev/null`, "sh", m.wrap, "--root", m.path("root")}, args...)
		if r := m.command(os.Environ(), cmd...); r.code != 0 {
			t.Fatalf("%s: %+v", args[0], r)
		}
	}
	if r := m.runtime("delete", "--force", id); r.code != 0 {
		t.Errorf("delete --force: %+v", r)
	}
	if _, released := m.daemon.seen(); len(released) != 2 {
		t.Errorf("released %q, want %q twice", released, id)
	}
	if _, err := os.Stat(filepath.Join(m.path("root"), id)); err == nil {
		t.Error("runc's state is still there")
	}
}

func waitStopped(t *testing.T, m *machine, root, id string) {
	t.Helper()
	for range 200 {
		var state struct{ Status string }
		r := m.command(os.Environ(), m.wrap, "--root", m.path(root), "state", id)
		if err := json.Unmarshal([]byte(r.stdout), &state); err != nil {
			t.Fatalf("state: %v: %+v", err, r)
		}
		if state.Status == "stopped" {
			return
		}
		m.command(nil, "/bin/sleep", "0.02")
	}
	t.Fatal("container does not stop")
}

func TestNonGPUContainerIsUntouched(t *testing.T) {
	m := newMachine(t)
	m.daemon.stop() // also with the daemon down
	b := m.bundle("b", "echo plain", func(spec map[string]any) {
		setenv(spec, "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
		annotations(map[string]any{"org.example/x": "1"})(spec)
	})
	odd := strings.Replace(m.read("b/config.json"), `"ociVersion"`, "\"x-big\": 12345678901234567890.10,\n  \"ociVersion\"", 1)
	m.write("b/config.json", odd, 0o640)
	before, err := os.Stat(m.path("b/config.json"))
	if err != nil {
		t.Fatal(err)
	}
	r := m.runtime("run", "--bundle", b, m.id("plain"))
	if r.code != 0 || r.stdout != "plain\n" || r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	after, err := os.Stat(m.path("b/config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if m.read("b/config.json") != odd || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Error("config.json was rewritten")
	}
	if claims, _ := m.daemon.seen(); len(claims) != 0 {
		t.Errorf("claims %+v", claims)
	}
}
