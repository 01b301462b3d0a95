// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const plainJSON = "{\n    \"debug\": true\n}\n"

// A link stays a link; what it names is written, in its own directory.
func TestSymlinkedFile(t *testing.T) {
	p := newPlace(t)
	real, link := filepath.Join(p.dir, "real"), filepath.Join(p.dir, "etc", "daemon.json")
	for _, d := range []string{real, filepath.Dir(link)} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	target := filepath.Join(real, "site.json")
	p.write(target, []byte(plainJSON), 0o600)
	if err := os.Symlink("../real/site.json", link); err != nil {
		t.Fatal(err)
	}
	before := p.snapshot()
	if err := p.install(Docker, link); err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(link); err != nil || to != "../real/site.json" {
		t.Errorf("the link is %q, %v", to, err)
	}
	wantRuntime(t, p.read(target), filepath.Join(p.bin, "gpushare-runtime"), plainJSON)
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", info, err)
	}
	if err := p.uninstall(Docker, link); err != nil {
		t.Fatal(err)
	}
	if now := p.snapshot(); stripTimes(now) != stripTimes(before) {
		t.Errorf("before:\n%s\nnow:\n%s", before, now)
	}
}

// Files that others can change decide what root runs only after their owner has been
// told; nothing is written beside them.
func TestUnsafeFilesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir, file string) error
		want  string
	}{
		"writable by all":     {func(_, f string) error { return os.Chmod(f, 0o666) }, "can be written by others than root"},
		"writable by a group": {func(_, f string) error { return os.Chmod(f, 0o664) }, "can be written by others than root"},
		"a user's":            {func(_, f string) error { return os.Chown(f, 1000, 0) }, "belongs to uid 1000"},
		"in a user's folder":  {func(d, _ string) error { return os.Chown(d, 1000, 0) }, "belongs to uid 1000"},
		"in an open folder":   {func(d, _ string) error { return os.Chmod(d, 0o777) }, "can be written by others than root"},
		"a folder":            {func(_, f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o755)) }, "is not a regular file"},
		"a pipe":              {func(_, f string) error { return errors.Join(os.Remove(f), syscall.Mkfifo(f, 0o644)) }, "is not a regular file"},
		"a link to nothing":   {func(_, f string) error { return errors.Join(os.Remove(f), os.Symlink("gone", f)) }, "is a link to a file that is not there"},
		"no such place":       {func(d, _ string) error { return os.RemoveAll(filepath.Dir(d)) }, "no place for"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			dir := filepath.Join(p.dir, "a", "b")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "daemon.json")
			p.write(file, []byte(plainJSON), 0o644)
			if err := c.spoil(dir, file); err != nil {
				t.Fatal(err)
			}
			before := p.snapshot()
			for _, change := range []func(string, string) error{p.install, p.uninstall} {
				if err := change(Docker, file); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}
			if now := p.snapshot(); now != before {
				t.Errorf("touched:\n%s\nnow:\n%s", before, now)
			}
		})
	}
}

// A directory that cannot be written, and one that fills up between the backup and
// the file: the old state, whole.
func TestUnwritableDirectory(t *testing.T) {
	for _, c := range []struct {
		name, options string
		flags         uintptr
		want          error
	}{
		{"read-only", "size=1m", unix.MS_RDONLY, unix.EROFS},
		// Room for the file, its backup and the record, not for the new file.
		{"full", "size=1m,nr_inodes=4", 0, unix.ENOSPC},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			file := filepath.Join(p.dir, "daemon.json")
			if err := unix.Mount("tmpfs", p.dir, "tmpfs", 0, c.options+",mode=0755"); err != nil {
				t.Skipf("cannot mount a tmpfs here: %v", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(p.dir, unix.MNT_DETACH) })
			p.write(file, []byte(plainJSON), 0o644)
			if c.flags != 0 {
				if err := unix.Mount("", p.dir, "", unix.MS_REMOUNT|c.flags, ""); err != nil {
					t.Fatal(err)
				}
			}
			before := p.snapshot()
			if err := p.install(Docker, file); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if now := p.snapshot(); stripTimes(now) != stripTimes(before) {
				t.Errorf("before:\n%s\nnow:\n%s", before, now)
			}
		})
	}
}

func TestDryRunTouchesNothing(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.dir, "daemon.json")
	p.write(file, []byte(plainJSON), 0o644)
	before := p.snapshot()
	o := p.options(Docker, file)
	o.DryRun = true
	if err := Install(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := "--- a" + file + "\n+++ b" + file + "\n" + `@@ -1,3 +1,8 @@
 {
-    "debug": true
+    "debug": true,
+    "runtimes": {
+        "gpushare": {
+            "path": "` + filepath.Join(p.bin, "gpushare-runtime") + `"
+        }
+    }
 }
`
	if p.out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", p.out.String(), want)
	}
	if now := p.snapshot(); now != before {
		t.Errorf("touched:\n%s\nnow:\n%s", before, now)
	}
	if err := p.install(Docker, file); err != nil {
		t.Fatal(err)
	}
	o = p.options(Docker, file)
	o.DryRun = true
	if err := Uninstall(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(p.out.String(), "-    \"runtimes\": {\n") || !strings.Contains(p.out.String(), "@@ -1,8 +1,3 @@") {
		t.Errorf("uninstall shows\n%s", p.out.String())
	}
}

// While one install is at work, another is told so.
func TestTwoAtOnce(t *testing.T) {
	p := newPlace(t)
	path := filepath.Join(p.dir, "daemon.json")
	p.write(path, []byte(plainJSON), 0o644)
	f, err := readFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := f.lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.install(Docker, path); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "another gpushare install") {
		t.Errorf("got %v", err)
	}
	unlock()
	if err := p.install(Docker, path); err != nil {
		t.Error(err)
	}
}

// A runtime of our name that somebody else wrote stays.
func TestUninstallLeavesAnothersRuntime(t *testing.T) {
	for name, c := range map[string]struct{ engine, text string }{
		"docker":     {Docker, `{"runtimes": {"gpushare": {"path": "/opt/mine"}}}`},
		"containerd": {Containerd, "version = 2\n[" + v2 + ".containerd.runtimes.gpushare]\n  runtime_type = \"io.containerd.runc.v2\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			for _, p.program = range containerds(t) {
			}
			file := filepath.Join(p.dir, "file")
			p.write(file, []byte(c.text), 0o644)
			before := p.snapshot()
			_ = p.uninstall(c.engine, file)
			if now := p.snapshot(); now != before {
				t.Errorf("touched:\n%s\nnow:\n%s", before, now)
			}
		})
	}
}

// A backup that somebody has changed is not put back.
func TestForgedBackup(t *testing.T) {
	p := newPlace(t)
	path := filepath.Join(p.dir, "daemon.json")
	p.write(path, []byte(plainJSON), 0o644)
	if err := p.install(Docker, path); err != nil {
		t.Fatal(err)
	}
	p.write(path+".gpushare-backup", []byte(`{"default-runtime": "evil"}`), 0o600)
	if err := p.uninstall(Docker, path); err != nil {
		t.Fatal(err)
	}
	if got := string(p.read(path)); got != plainJSON {
		t.Errorf("got %q", got)
	}
	if len(p.names()) != 1 {
		t.Errorf("left: %q", p.names())
	}
}
