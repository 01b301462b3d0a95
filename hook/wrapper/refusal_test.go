// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
)

// refused runs create and checks that it is refused: exit code 1, nothing on
// stdout, one line on stderr and the same line as runc-style JSON in --log,
// no container, and config.json as it was.
func refused(t *testing.T, m *machine, bundle, command string, want ...string) {
	t.Helper()
	id := m.id("refused")
	log := filepath.Join(t.TempDir(), "log.json")
	before, _ := os.ReadFile(filepath.Join(bundle, "config.json"))
	r := m.command(os.Environ(), m.wrap, "--root", m.path("root"), "--log", log, "--log-format", "json", command, "--bundle", bundle, id)
	if r.code != 1 || r.stdout != "" {
		t.Errorf("exit %d, stdout %q, stderr %q; want exit 1 and no output", r.code, r.stdout, r.stderr)
	}
	line := strings.TrimSuffix(r.stderr, "\n")
	if strings.Contains(line, "\n") || !strings.HasPrefix(line, "gpushare: ") {
		t.Errorf("stderr %q is not one line of ours", r.stderr)
	}
	for _, w := range want {
		if !strings.Contains(line, w) {
			t.Errorf("stderr %q does not say %q", line, w)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var entry map[string]string
	if err := json.Unmarshal(text, &entry); err != nil {
		t.Fatalf("log %q: %v", text, err)
	}
	if entry["level"] != "error" || entry["msg"] != line || len(entry) != 3 {
		t.Errorf("log %q does not repeat %q", text, line)
	}
	if _, err := time.Parse(time.RFC3339, entry["time"]); err != nil {
		t.Errorf("log %q: %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(m.path("root"), id)); err == nil {
		t.Error("there is a container")
	}
	if after, _ := os.ReadFile(filepath.Join(bundle, "config.json")); string(after) != string(before) {
		t.Error("config.json was changed")
	}
}

func asks(spec map[string]any) { setenv(spec, "GPUSHARE_MEMORY=8Gi") }

func TestRefusals(t *testing.T) {
	m := newMachine(t)
	add := func(path string, entry any) func(map[string]any) {
		return func(spec map[string]any) {
			names := strings.Split(path, ".")
			for _, name := range names[:len(names)-1] {
				spec = spec[name].(map[string]any)
			}
			last := names[len(names)-1]
			list, _ := spec[last].([]any)
			spec[last] = append(list, entry)
		}
	}
	hostPID := func(spec map[string]any) {
		asks(spec)
		linux := spec["linux"].(map[string]any)
		linux["namespaces"] = []any{map[string]any{"type": "mount"}, map[string]any{"type": "ipc"}, map[string]any{"type": "pid", "path": "/proc/self/ns/pid"}}
	}
	privileged := func(spec map[string]any) {
		add("linux.resources.devices", map[string]any{"allow": true, "access": "rwm"})(spec)
		add("process.capabilities.bounding", "CAP_SYS_ADMIN")(spec)
		add("process.capabilities.bounding", "CAP_SYS_MODULE")(spec)
		add("process.capabilities.bounding", "CAP_SYS_RAWIO")(spec)
	}
	bind := func(source string) any {
		return map[string]any{"type": "bind", "source": source, "destination": "/x", "options": []any{"rbind"}}
	}
	if err := os.Symlink("/dev", m.path("dev-link")); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		name string
		edit func(map[string]any)
		want []string
	}{
		{"GPU by node, no share", add("linux.devices", map[string]any{"path": "/dev/nvidia0", "type": "c", "major": 195, "minor": 0}), []string{"GPUSHARE_MEMORY=8Gi", "/dev/nvidia0", "[GS-NO-SHARE]"}},
		{"--gpus all, no share", func(spec map[string]any) {
			spec["hooks"] = map[string]any{"prestart": []any{map[string]any{"path": "/usr/bin/nvidia-container-runtime-hook", "args": []any{"nvidia-container-runtime-hook", "prestart"}}}}
		}, []string{"GPUSHARE_MEMORY=8Gi", "[GS-NO-SHARE]"}},
		{"--privileged", privileged, []string{"--privileged", "GPUSHARE_MEMORY=8Gi", "[GS-PRIVILEGED]"}},
		{"bind of /dev", add("mounts", bind("/dev")), []string{"/dev", "[GS-BIND]"}},
		{"bind of a link to /dev", add("mounts", bind(m.path("dev-link"))), []string{"/dev", "[GS-BIND]"}},
		{"bind of /dev, relative", add("mounts", bind("../../../../../../../../../../dev")), []string{"/dev", "[GS-BIND]"}},
		{"bind of our run directory", func(spec map[string]any) { asks(spec); add("mounts", bind(m.runDir))(spec) }, []string{"where limits are kept", "[GS-BIND]"}},
		{"host pid", hostPID, []string{"--pid=host", "[GS-HOST-NS]"}},
		{"unknown word", func(spec map[string]any) { setenv(spec, "GPUSHARE_MEM=8Gi") }, []string{"did you mean GPUSHARE_MEMORY?", "[GS-ANN]"}},
		{"control characters", func(spec map[string]any) { setenv(spec, "GPUSHARE_\nx\x1b[31m=8Gi") }, []string{"is unknown", "[GS-ANN]"}},
		{"half a request", func(spec map[string]any) { setenv(spec, "GPUSHARE_COMPUTE=30%") }, []string{"names no memory", "[GS-NO-SHARE]"}},
		{"contradiction", func(spec map[string]any) {
			asks(spec)
			annotations(map[string]any{"gpushare.io/memory": "4Gi"})(spec)
		}, []string{`"8Gi"`, `"4Gi"`, "[GS-ASK]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := m.bundle("b"+string(rune('a'+i)), "echo started", c.edit)
			refused(t, m, b, "create", c.want...)
			refused(t, m, b, "run", c.want...)
		})
	}
	if claims, _ := m.daemon.seen(); len(claims) != 0 {
		t.Errorf("the daemon was asked: %+v", claims)
	}
}

func TestDaemonRefuses(t *testing.T) {
	m := newMachine(t)
	m.daemon.refusal = &v1.Error{Code: "GS-NO-FIT", Message: "no GPU has 8 GiB free: the largest that fits is 2Gi"}
	b := m.bundle("b", "echo started", asks)
	refused(t, m, b, "run", "GPU container refused: no GPU has 8 GiB free", "[GS-NO-FIT]")
}

func TestDaemonDown(t *testing.T) {
	m := newMachine(t)
	m.daemon.stop()
	b := m.bundle("b", "echo started", asks)
	refused(t, m, b, "create", "GPU container refused", m.runDir, "Start it as root: gpushared", "[GS-DAEMON-DOWN]")

	// A socket that nobody listens at, as a killed daemon leaves it.
	socket := filepath.Join(m.runDir, v1.SocketName)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	refused(t, m, b, "create", "GPU container refused", "Start it as root: gpushared", "[GS-DAEMON-DOWN]")
}

// A daemon that accepts and never answers must not hang the engine.
func TestDaemonHangs(t *testing.T) {
	m := newMachine(t)
	m.daemon.stop()
	l, err := net.Listen("unix", filepath.Join(m.runDir, v1.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := m.bundle("b", "echo started", asks)
	start := time.Now()
	refused(t, m, b, "create", "GPU container refused", "[GS-TIMEOUT]")
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("took %v", d)
	}
}

// A claim whose spec cannot be edited is given back.
func TestClaimIsReleasedOnFailure(t *testing.T) {
	m := newMachine(t)
	m.daemon.gpus = []v1.GrantedGPU{{Index: 7, UUID: "GPU-7", CDIDevice: "GPU-7"}}
	b := m.bundle("b", "echo started", asks)
	refused(t, m, b, "create", "GPU-7", "[GS-DRIVER]")
	if _, released := m.daemon.seen(); len(released) != 1 {
		t.Errorf("released %q, want one", released)
	}
}

func TestDefaultShare(t *testing.T) {
	m := newMachine(t)
	m.config("", "[default_share]", `memory = "4Gi"`, `compute = "20%"`)
	b := m.bundle("b", "cat "+libDir+"/libcuda.so.1", func(spec map[string]any) {
		linux := spec["linux"].(map[string]any)
		linux["devices"] = []any{map[string]any{"path": "/dev/nvidia1", "type": "c", "major": 195, "minor": 1}}
	})
	if r := m.runtime("run", "--bundle", b, m.id("default")); r.stdout != "our libcuda" || r.code != 0 {
		t.Errorf("%+v", r)
	}
	claims, _ := m.daemon.seen()
	if len(claims) != 1 || claims[0].Source != "default" || claims[0].Request != (v1.Request{Memory: "4Gi", Compute: "20%"}) {
		t.Errorf("claims %+v", claims)
	}
}
