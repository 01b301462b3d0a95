// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Engines parse what these commands print: it must be runc's, to the byte.
func TestOtherCommandsAreRuncs(t *testing.T) {
	m := newMachine(t)
	m.daemon.stop()
	for _, args := range [][]string{
		{"--version"}, {"-v"}, {"features"}, {"--help"}, {}, {"create", "--help"}, {"list", "--format", "json"},
		{"state", "absent"}, {"kill", "absent", "KILL"}, {"delete", "absent"}, {"delete", "--force", "absent"},
		{"start", "absent"}, {"exec", "absent", "true"}, {"update", "--memory", "1", "absent"}, {"events", "absent"},
		{"delete", "../c"}, {"--no-such-flag", "list"},
	} {
		if len(args) > 0 && args[0] != "--version" && args[0] != "-v" {
			args = append([]string{"--root", m.path("root")}, args...)
		}
		got := m.command(os.Environ(), append([]string{m.wrap}, args...)...)
		want := m.command(os.Environ(), append([]string{"runc"}, args...)...)
		if got.code != want.code || got.stdout != want.stdout || undated(got.stderr) != undated(want.stderr) {
			t.Errorf("%q:\n got %+v\nwant %+v", args, got, want)
		}
	}
	r := m.command(os.Environ(), m.wrap, "--gpushare-version")
	if r.code != 0 || !regexp.MustCompile(`^gpushare-runtime \d+\.\d+\.\d+\S*\n$`).MatchString(r.stdout) {
		t.Errorf("--gpushare-version: %+v", r)
	}
}

// Nothing in the environment may choose what is run, read or asked.
func TestHostileEnvironment(t *testing.T) {
	m := newMachine(t)
	m.write("evil/runc", "#!/bin/sh\necho evil\n", 0o755)
	m.write("evil/gpushare/config.toml", `runtimes = ["`+m.path("evil/runc")+`"]`, 0o644)
	b := m.bundle("b", "cat "+libDir+"/libcuda.so.1", asks)
	env := []string{
		"PATH=" + m.path("evil"), "HOME=" + m.path("evil"), "XDG_CONFIG_HOME=" + m.path("evil"), "XDG_RUNTIME_DIR=" + m.path("evil"),
		"TMPDIR=/nonexistent", "HTTP_PROXY=http://127.0.0.1:1", "http_proxy=http://127.0.0.1:1", "ALL_PROXY=socks5://127.0.0.1:1",
		"GPUSHARE_CONFIG=" + m.path("evil/gpushare/config.toml"), "GPUSHARE_RUNTIMES=evil", "GPUSHARE_MEMORY=1Gi", "GPUSHARE_DISABLE=1",
		"CUDA_DISABLE_CONTROL=true", "LISTEN_FDS=junk", "LISTEN_PID=-1", "LC_ALL=xx", "TZ=/etc/passwd",
	}
	r := m.command(env, m.wrap, "--root", m.path("root"), "run", "--bundle", b, m.id("env"))
	if r.code != 0 || r.stdout != "our libcuda" || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	claims, _ := m.daemon.seen()
	if len(claims) != 1 || claims[0].Request.Memory != "8Gi" {
		t.Errorf("claims %+v", claims)
	}
	// A plain container stays plain, whatever the caller's environment says.
	plain := m.bundle("plain", "echo plain", nil)
	if r := m.command(env, m.wrap, "--root", m.path("root"), "run", "--bundle", plain, m.id("plain")); r.stdout != "plain\n" {
		t.Errorf("plain: %+v", r)
	}
	// runc gets its environment as it came.
	m.write("show", "#!/bin/sh\nexec /usr/bin/env\n", 0o755)
	m.config(`runtimes = ["` + m.path("show") + `"]`)
	got := strings.Fields(m.command(env, m.wrap, "state", "x").stdout)
	for _, v := range env {
		if !slices.Contains(got, v) {
			t.Errorf("%s did not reach the low-level runtime", v)
		}
	}
}

// The wrapper becomes runc: same process, and no descriptor of its caller's
// but those that are meant for the container.
func TestBecomesRunc(t *testing.T) {
	m := newMachine(t)
	m.write("show", "#!/bin/sh\necho pid $$\nls -1 /proc/$$/fd\n", 0o755)
	m.config(`runtimes = ["` + m.path("show") + `"]`)
	plain := m.bundle("plain", "true", nil)
	gpu := m.bundle("gpu", "true", asks)
	for _, c := range []struct {
		args []string
		env  []string
		want string
	}{
		{[]string{"run", "--bundle", plain, "x"}, nil, "0 1 2"},
		{[]string{"create", "--bundle", gpu, "x"}, nil, "0 1 2"},
		{[]string{"create", "--preserve-fds", "2", "--bundle", gpu, "x"}, nil, "0 1 2 3 4"},
		{[]string{"exec", "--preserve-fds=1", "x", "sh"}, nil, "0 1 2 3"},
		{[]string{"exec", "x", "sh", "--preserve-fds=3"}, nil, "0 1 2"},
		{[]string{"state", "x"}, nil, "0 1 2 3 4 5"},
	} {
		cmd := exec.Command(m.wrap, c.args...)
		for range 3 {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		// The script's own shell holds one more, at 10 or above.
		var fds []string
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		for _, fd := range lines[1:] {
			if len(fd) == 1 {
				fds = append(fds, fd)
			}
		}
		if got := strings.Join(fds, " "); got != c.want {
			t.Errorf("%q: descriptors %s, want %s", c.args, got, c.want)
		}
		if want := fmt.Sprintf("pid %d", cmd.Process.Pid); lines[0] != want {
			t.Errorf("%q: %s, want %s", c.args, lines[0], want)
		}
	}
}

func TestListenFDsPass(t *testing.T) {
	m := newMachine(t)
	m.write("show", "#!/bin/sh\nls -1 /proc/$$/fd\n", 0o755)
	m.config(`runtimes = ["` + m.path("show") + `"]`)
	plain := m.bundle("plain", "true", nil)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"`, "sh", m.wrap, "run", "--bundle", plain, "x")
	cmd.ExtraFiles = []*os.File{null, null}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if fds := strings.Fields(string(out)); !slices.Contains(fds, "3") || slices.Contains(fds, "4") {
		t.Errorf("descriptors %q, want 3 and not 4", fds)
	}
}

func TestEditKeepsModeAndOwner(t *testing.T) {
	m := newMachine(t)
	b := m.bundle("b", "true", asks)
	config := filepath.Join(b, "config.json")
	if err := os.Chmod(config, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(config, 1234, 5678); err != nil {
		t.Fatal(err)
	}
	if r := m.runtime("run", "--bundle", b, m.id("mode")); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	info, err := os.Stat(config)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	if info.Mode().Perm() != 0o640 || stat.Uid != 1234 || stat.Gid != 5678 {
		t.Errorf("mode %v, owner %d:%d", info.Mode(), stat.Uid, stat.Gid)
	}
	entries, err := os.ReadDir(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "rootfs" && e.Name() != "config.json" {
			t.Errorf("%s is left in the bundle", e.Name())
		}
	}
}

func TestTextLog(t *testing.T) {
	m := newMachine(t)
	m.daemon.stop()
	b := m.bundle("b", "true", asks)
	log := m.path("log.txt")
	m.write("log.txt", "before\n", 0o600)
	r := m.runtime("--log", log, "run", "--bundle", b, "x")
	text := m.read("log.txt")
	if r.code != 1 || !regexp.MustCompile(`^before\ntime="[^"]+" level=error msg="gpushare: .*\[GS-DAEMON-DOWN\]"\n$`).MatchString(text) {
		t.Errorf("exit %d, log %q", r.code, text)
	}
	// A log that cannot be written costs neither the reason nor the exit code.
	r = m.runtime("--log", "/nonexistent/log", "run", "--bundle", b, "x")
	if r.code != 1 || !strings.Contains(r.stderr, "[GS-DAEMON-DOWN]") {
		t.Errorf("%+v", r)
	}
}

// Another runtime root may hold a container of the same id, which is not ours.
func TestDeleteOfNamesakeReleasesNothing(t *testing.T) {
	m := newMachine(t)
	gpu := m.bundle("gpu", "sleep 60", asks)
	plain := m.bundle("plain", "sleep 60", nil)
	id := m.id("twin")
	start := func(root, bundle string) {
		t.Helper()
		for _, args := range [][]string{{"create", "--bundle", bundle, id}, {"start", id}} {
			argv := append([]string{"/bin/sh", "-c", `exec "$@" >/dev/null 2>&1 </dev/null`, "sh", m.wrap, "--root", m.path(root)}, args...)
			if r := m.command(os.Environ(), argv...); r.code != 0 {
				t.Fatalf("%s in %s: %+v", args[0], root, r)
			}
		}
	}
	start("root", gpu)
	defer m.runtime("delete", "--force", id)
	_, before := m.daemon.seen()
	// runc 1.1 refuses two containers in one control group: give it its own.
	m.json("plain/config.json", withCgroup(m, "plain", "/"+m.id("other")))
	start("other", plain)
	if r := m.command(os.Environ(), m.wrap, "--root", m.path("other"), "kill", id, "KILL"); r.code != 0 {
		t.Fatalf("kill: %+v", r)
	}
	waitStopped(t, m, "other", id)
	if r := m.command(os.Environ(), m.wrap, "--root", m.path("other"), "delete", "--force", id); r.code != 0 {
		t.Fatalf("delete: %+v", r)
	}
	if _, after := m.daemon.seen(); len(after) != len(before) {
		t.Errorf("released %q", after)
	}
}
