// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHostileBundles(t *testing.T) {
	m := newMachine(t)
	for i, c := range []struct {
		name, want string
		spoil      func(config string) error
	}{
		{"link", "symbolic link", func(config string) error {
			m.write("elsewhere.json", m.read("good/config.json"), 0o644)
			return os.Symlink(m.path("elsewhere.json"), config)
		}},
		{"pipe", "no regular file", func(config string) error { return unix.Mkfifo(config, 0o644) }},
		{"directory", "no regular file", func(config string) error { return os.Mkdir(config, 0o755) }},
		{"device", "no regular file", func(config string) error {
			return unix.Mknod(config, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5)))
		}},
		{"huge", "larger than", func(config string) error {
			if err := os.WriteFile(config, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(config, 1<<30)
		}},
		{"garbage", "cannot be read", func(config string) error { return os.WriteFile(config, []byte("{\"a\":\x00}"), 0o644) }},
		{"empty", "cannot be read", func(config string) error { return os.WriteFile(config, nil, 0o644) }},
		{"name twice", "twice", func(config string) error {
			return os.WriteFile(config, []byte(`{"linux":{"devices":[{"path":"/dev/nvidia0"}]},"linux":{}}`), 0o644)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.t = t
			if i == 0 {
				m.bundle("good", "echo started", asks)
			}
			b := m.bundle("bad-"+string(rune('a'+i)), "echo started", asks)
			config := filepath.Join(b, "config.json")
			if err := os.Remove(config); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(config); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(config)
			if err != nil {
				t.Fatal(err)
			}
			id := m.id("hostile")
			log := m.path("hostile-" + string(rune('a'+i)))
			r := m.command(os.Environ(), m.wrap, "--root", m.path("root"), "--log", log, "--log-format", "json", "run", "--bundle", b, id)
			if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, c.want) || !strings.Contains(r.stderr, "[GS-SPEC]") || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("%+v; want %q", r, c.want)
			}
			if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), `"level":"error"`) {
				t.Errorf("log %q, %v", text, err)
			}
			if after, err := os.Lstat(config); err != nil || !os.SameFile(before, after) {
				t.Errorf("config.json was replaced: %v", err)
			}
		})
	}
}

// What runc itself refuses, it refuses in its own words.
func TestMissingBundle(t *testing.T) {
	m := newMachine(t)
	for _, args := range [][]string{{"create", "--bundle", m.path("absent"), "x"}, {"run", "--bundle", m.dir, "x"}, {"create"}, {"create", "a", "b"}, {"nonsense"}} {
		got := m.command(os.Environ(), append([]string{m.wrap}, args...)...)
		want := m.command(os.Environ(), append([]string{"runc"}, args...)...)
		if got.code == 0 || got.code != want.code || got.stdout != want.stdout || undated(got.stderr) != undated(want.stderr) {
			t.Errorf("%q:\n got %+v\nwant %+v", args, got, want)
		}
	}
}

// undated takes the time off a line of runc's log.
func undated(s string) string {
	if _, rest, ok := strings.Cut(s, " level="); ok {
		return rest
	}
	return s
}

func TestRestoreOfGPUContainer(t *testing.T) {
	m := newMachine(t)
	refused(t, m, m.bundle("b", "true", asks), "restore", "restore of a GPU container refused", "[GS-RESTORE]")
	plain := m.bundle("plain", "true", nil)
	if r := m.runtime("restore", "--bundle", plain, m.id("r")); strings.Contains(r.stderr, "gpushare") || r.code == 0 {
		t.Errorf("restore of a plain container: %+v", r)
	}
}

func TestUnreadableCommandLine(t *testing.T) {
	m := newMachine(t)
	b := m.bundle("b", "echo started", asks)
	for _, args := range [][]string{
		{"--brand-new", "run", "--bundle", b, "x"},
		{"--brand-new", "state", "run", "--bundle", b, "x"},
		{"run", "--brand-new", "y", "--bundle", b, "x"},
	} {
		r := m.runtime(args...)
		if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, "[GS-USAGE]") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := m.runtime("run", "--config", b+"/config.json", "x"); r.code != 1 || !strings.Contains(r.stderr, "[GS-USAGE]") {
		t.Errorf("--config: %+v", r)
	}
	if claims, _ := m.daemon.seen(); len(claims) != 0 {
		t.Errorf("claims %+v", claims)
	}
}

func TestBadConfiguration(t *testing.T) {
	m := newMachine(t)
	b := m.bundle("b", "echo started", asks)
	plain := m.bundle("plain", "echo plain", nil)
	for name, c := range map[string]struct{ top, want string }{
		"unknown key":      {`run_dirr = "/x"`, "run_dirr"},
		"no runtime":       {`runtimes = ["no-such-runtime"]`, "no-such-runtime"},
		"ourselves":        {`runtimes = ["` + m.path("prefix/bin/gpushare-runtime") + `"]`, "itself"},
		"no libraries":     {`library_dir = "/nonexistent"`, "/nonexistent"},
		"writable runtime": {`runtimes = ["` + m.path("evil-runc") + `"]`, "can be written by others"},
	} {
		m.write("evil-runc", "#!/bin/sh\necho evil\n", 0o777)
		m.config(c.top)
		refused(t, m, b, "create", c.want)
		r := m.runtime("run", "--bundle", plain, m.id("plain"))
		if (name == "no libraries" || name == "unknown key") && r.stdout != "plain\n" {
			t.Errorf("%s: a plain container: %+v", name, r)
		}
		if strings.Contains(r.stdout+r.stderr, "evil\n") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	m.config(`run_dirr = "/x"`)
	if r := m.runtime("list", "-q"); r.code != 0 || r.stderr != "" {
		t.Errorf("list with a broken config.toml: %+v", r)
	}
	m.write("owned-by-user", "#!/bin/sh\n", 0o755)
	if err := os.Chown(m.path("owned-by-user"), 1000, 0); err != nil {
		t.Fatal(err)
	}
	m.config(`runtimes = ["` + m.path("owned-by-user") + `"]`)
	refused(t, m, b, "create", "belongs to uid 1000", "[GS-RUNTIME]")
	m.config("")
	if err := os.Remove(m.path("driver/cdi.json")); err != nil {
		t.Fatal(err)
	}
	refused(t, m, b, "create", "CDI spec", "[GS-DRIVER]")
}
