// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var everyEngine = flag.Bool("engines", false, "try every containerd that is built, which takes long")

// containerds are the real programs that a test's configurations are read by: the
// machine's own and the 2.4 that tests/setup/engines.sh builds, by version; with
// -engines all that it has built.
func containerds(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(path string) {
		if r, err := containerdVersion(context.Background(), path); err == nil {
			found[fmt.Sprintf("%d.%d", r[0], r[1])] = path
		}
	}
	if path, err := exec.LookPath("containerd"); err == nil {
		add(path)
	}
	which := "2.4*"
	if *everyEngine {
		which = "*"
	}
	built, _ := filepath.Glob("../../.cache/engines/containerd-" + which + "/bin/containerd")
	for _, path := range built {
		if abs, err := filepath.Abs(path); err == nil {
			add(abs)
		}
	}
	if len(found) == 0 {
		t.Skip("no containerd on the PATH and none built by tests/setup/engines.sh")
	}
	for _, v := range []string{"1.6", "2.4"} {
		if found[v] == "" {
			t.Logf("skipped: containerd %s is not here", v)
		}
	}
	return found
}

// fixture is a configuration of containerd. DIR in it is where it lies.
type fixture struct {
	text  string
	files map[string]string // others, by name
	only  string            // "1" or "2": read by that major version alone
	// dropIn says that a file of our own is expected with containerd 2.
	dropIn bool
	// not is what must not be in the handler.
	want, not string
}

const v2 = `plugins."io.containerd.grpc.v1.cri"`
const v3 = `plugins."io.containerd.cri.v1.runtime"`

var goodContainerd = map[string]fixture{
	"absent":            {text: "\x00"},
	"empty":             {text: ""},
	"comments alone":    {text: "# nothing yet\n"},
	"version 2":         {text: "version = 2\n"},
	"no last line end":  {text: "version = 2"},
	"CRLF":              {text: "version = 2\r\n\r\n[" + v2 + "]\r\n  sandbox_image = \"localhost/pause:1\"\r\n", only: "1"},
	"debian's":          {text: "version = 2\n\n[plugins]\n  [" + v2 + "]\n    [" + v2 + ".cni]\n      bin_dir = \"/usr/lib/cni\"\n      conf_dir = \"/etc/cni/net.d\"\n  [plugins.\"io.containerd.internal.v1.opt\"]\n    path = \"/var/lib/containerd/opt\"\n"},
	"version 1":         {text: "[plugins.cri]\n  sandbox_image = \"localhost/pause:1\"\n", only: "1"},
	"systemd's cgroups": {text: "version = 2\n[" + v2 + ".containerd.runtimes.runc]\n  runtime_type = \"io.containerd.runc.v2\"\n  [" + v2 + ".containerd.runtimes.runc.options]\n    SystemdCgroup = true\n", want: "SystemdCgroup = true"},
	"another default": {text: "version = 2\n[" + v2 + ".containerd]\n  default_runtime_name = \"nvidia\"\n[" + v2 + ".containerd.runtimes.nvidia]\n  runtime_type = \"io.containerd.runc.v2\"\n  pod_annotations = [\"nvidia.com/*\"]\n  base_runtime_spec = \"/etc/containerd/base.json\"\n  [" + v2 + ".containerd.runtimes.nvidia.options]\n    BinaryName = \"/usr/bin/nvidia-container-runtime\"\n    SystemdCgroup = true\n",
		want: `pod_annotations = ["gpushare.io/*", "nvidia.com/*"]`, not: "nvidia-container-runtime"},
	"crun":                   {text: "version = 2\n[" + v2 + ".containerd]\n  default_runtime_name = \"crun\"\n[" + v2 + ".containerd.runtimes.crun]\n  runtime_type = \"io.containerd.runc.v2\"\n  [" + v2 + ".containerd.runtimes.crun.options]\n    BinaryName = \"/usr/bin/crun\"\n", want: `BinaryName = "/usr/bin/crun"`},
	"comments in odd places": {text: "version = 2 # two\n#[plugins]\n[" + v2 + "] # the CRI plugin\n  # a \"quoted\" [bracket]\n  sandbox_image = 'localhost/pause:1' # here\n", only: "1"},
	"imports, nothing there": {text: "version = 2\nimports = [\"DIR/conf.d/*.toml\"]\n", dropIn: true},
	"imports, others there": {text: "version = 2\nimports = [\"DIR/conf.d/*.toml\"]\n[debug]\n  level = \"info\"\n", dropIn: true,
		files: map[string]string{"conf.d/10-site.toml": "version = 2\n[" + v2 + ".containerd]\n  snapshotter = \"native\"\n"}, only: "2"},
	"imports of one file": {text: "version = 2\nimports = [\"DIR/site.toml\"]\n",
		files: map[string]string{"site.toml": "version = 2\n[debug]\n  level = \"info\"\n"}},
	"imports, relative": {text: "version = 2\nimports = [\"conf.d/*.toml\"]\n", dropIn: true, only: "2"},
	"version 3":         {text: "version = 3\n[" + v3 + ".containerd]\n  default_runtime_name = \"runc\"\n", only: "2"},
	"version 3, imports": {text: "version = 3\nimports = [\"DIR/conf.d/*.toml\"]\n[" + v3 + ".containerd.runtimes.runc]\n  runtime_type = \"io.containerd.runc.v2\"\n  [" + v3 + ".containerd.runtimes.runc.options]\n    SystemdCgroup = true\n",
		only: "2", dropIn: true, want: "SystemdCgroup = true"},
	"version 4":          {text: "version = 4\n[plugins.\"io.containerd.server.v1.grpc\"]\n  address = \"/run/other.sock\"\n", only: "2.4"},
	"version 4, imports": {text: "version = 4\nimports = [\"DIR/conf.d/*.toml\"]\n", only: "2.4", dropIn: true},
	"runtimes inline":    {text: "version = 2\n[" + v2 + ".containerd]\n  runtimes = { runc = { runtime_type = \"io.containerd.runc.v2\" } }\n", only: "2"},
	"another handler":    {text: "version = 2\n[" + v2 + ".containerd.runtimes.kata]\n  runtime_type = \"io.containerd.kata.v2\"\n"},
}

// each runs a test with each containerd that reads a fixture.
func eachContainerd(t *testing.T, test func(t *testing.T, p *place, version string, name string, f fixture)) {
	for version, binary := range containerds(t) {
		for name, f := range goodContainerd {
			if !strings.HasPrefix(version, f.only) {
				continue
			}
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.containerd(binary)
				for other, text := range f.files {
					path := filepath.Join(p.dir, other)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					p.write(path, []byte(text), 0o644)
				}
				f.text = strings.ReplaceAll(f.text, "DIR", p.dir)
				if f.text != "\x00" {
					p.write(filepath.Join(p.dir, "config.toml"), []byte(f.text), 0o640)
				}
				test(t, p, version, name, f)
			})
		}
	}
}

func TestContainerdInstallAndUninstall(t *testing.T) {
	eachContainerd(t, func(t *testing.T, p *place, version, name string, f fixture) {
		file, dropIn := filepath.Join(p.dir, "config.toml"), filepath.Join(p.dir, "conf.d", dropInName)
		before, names := p.snapshot(), p.names()
		was := p.dump(t, file)
		if err := p.install(Containerd, file); err != nil {
			t.Fatal(err)
		}
		written := file
		if f.dropIn && version[0] == '2' {
			written = dropIn
			if !bytes.Equal(p.read(file), []byte(f.text)) {
				t.Error("the main file was written beside the drop-in")
			}
		} else {
			if _, err := os.Stat(dropIn); err == nil {
				t.Error("a drop-in was written where it replaces the table of the CRI plugin, or is not read")
			}
			if f.text != "\x00" {
				kept(t, []byte(f.text), p.read(file))
			}
		}
		_, text, _ := strings.Cut("\n"+string(p.read(written)), markBegin)
		if text == "" {
			text = string(p.read(written))
		}
		if !strings.Contains(text, f.want) || f.not != "" && strings.Contains(text, f.not) {
			t.Errorf("want %q and not %q in\n%s", f.want, f.not, text)
		}
		// The judge is containerd itself: all as before, and one handler more.
		is := p.dump(t, file)
		if found := was.compare(is); len(found) > 0 {
			t.Errorf("containerd sees other changes: %v", found)
		}
		h := at(is.runtimes(), Handler)
		kind := "io.containerd.runc.v2"
		if r, _ := containerdVersion(context.Background(), p.program); r.before(release{1, 6, 21}) {
			kind = shimType // runtime_path is forgotten there
		}
		for k, want := range map[string]any{
			"runtime_type": kind, "runtime_path": filepath.Join(p.bin, "containerd-shim-gpushare-v1"),
			"privileged_without_host_devices": true,
		} {
			if h[k] != want {
				t.Errorf("%s is %v, want %v", k, h[k], want)
			}
		}
		for _, k := range []string{"pod_annotations", "container_annotations"} {
			if list, _ := h[k].([]any); !slices.Contains(list, any("gpushare.io/*")) {
				t.Errorf("%s is %v", k, h[k])
			}
		}
		installed := p.snapshot()
		if err := p.install(Containerd, file); err != nil || !strings.Contains(p.said.String(), "no change") {
			t.Errorf("second install: %v, %s", err, p.said.String())
		}
		if now := p.snapshot(); now != installed {
			t.Errorf("second install changed something:\n%s\nnow:\n%s", installed, now)
		}
		if err := p.uninstall(Containerd, file); err != nil {
			t.Fatal(err)
		}
		if now := p.snapshot(); stripTimes(now) != stripTimes(before) || !slices.Equal(names, p.names()) {
			t.Errorf("uninstall did not put back what was there:\n%s\nnow:\n%s", before, now)
		}
	})
}

// On 1.x an imported file's table of the CRI plugin replaces the main file's, so that
// nothing that is added to the main file would count.
func TestContainerdRefusesWhatImportsReplace(t *testing.T) {
	for version, binary := range containerds(t) {
		if version[0] != '1' {
			continue
		}
		t.Run(version, func(t *testing.T) {
			p := newPlace(t)
			p.containerd(binary)
			file, site := filepath.Join(p.dir, "config.toml"), filepath.Join(p.dir, "site.toml")
			p.write(file, []byte("version = 2\nimports = [\"site.toml\"]\n"), 0o644)
			p.write(site, []byte("version = 2\n["+v2+".containerd]\n  snapshotter = \"native\"\n"), 0o644)
			before := p.snapshot()
			if err := p.install(Containerd, file); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "and replaces it") {
				t.Errorf("got %v", err)
			}
			if now := p.snapshot(); now != before {
				t.Errorf("touched:\n%s\nnow:\n%s", before, now)
			}
		})
	}
}

// What containerd does not read, or cannot be added to, is left alone.
func TestContainerdLeavesBrokenFilesAlone(t *testing.T) {
	for version, binary := range containerds(t) {
		for name, c := range map[string]struct{ text, want, only string }{
			"garbage":              {"version = 2\n}{\n", "line 2, column 1", ""},
			"duplicate key":        {"version = 2\nroot = \"/a\"\nroot = \"/b\"\n", "line 3", ""},
			"duplicate table":      {"version = 2\n[grpc]\n[debug]\n[grpc]\n", "line 4", ""},
			"somebody's own":       {"version = 2\n[" + v2 + ".containerd.runtimes.gpushare]\n  runtime_type = \"io.containerd.runc.v2\"\n", "that this program did not write", ""},
			"unknown version":      {"version = 9\n", "containerd", "2"},
			"CRI disabled":         {"disabled_plugins = [\"cri\"]\n", "disables containerd's CRI plugin", ""},
			"CRI disabled by name": {"version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n", "disables containerd's CRI plugin", ""},
			"runtimes inline":      {"version = 2\n[" + v2 + ".containerd]\n  runtimes = { runc = { runtime_type = \"io.containerd.runc.v2\" } }\n", "define the handler by hand", "1"},
		} {
			if !strings.HasPrefix(version, c.only) {
				continue
			}
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.containerd(binary)
				file := filepath.Join(p.dir, "config.toml")
				p.write(file, []byte(c.text), 0o644)
				before := p.snapshot()
				err := p.install(Containerd, file)
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if now := p.snapshot(); now != before {
					t.Errorf("touched:\n%s\nnow:\n%s", before, now)
				}
			})
		}
	}
}

func TestContainerdUninstallAfterEdits(t *testing.T) {
	const text = "version = 2\n[" + v2 + "]\n  sandbox_image = \"localhost/pause:1\"\n"
	for version, binary := range containerds(t) {
		if version[0] != '1' {
			continue
		}
		for name, c := range map[string]struct{ edit, with, want string }{
			"before ours":      {"pause:1", "pause:2", strings.Replace(text, "pause:1", "pause:2", 1)},
			"after ours":       {markEnd + "\n", markEnd + "\n[debug]\n  level = \"info\"\n", text + "[debug]\n  level = \"info\"\n"},
			"comments dropped": {markBegin, "# site", text + "\n# site\n" + markEnd + "\n"},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				p.containerd(binary)
				file := filepath.Join(p.dir, "config.toml")
				p.write(file, []byte(text), 0o644)
				if err := p.install(Containerd, file); err != nil {
					t.Fatal(err)
				}
				p.write(file, bytes.Replace(p.read(file), []byte(c.edit), []byte(c.with), 1), 0o644)
				if err := p.uninstall(Containerd, file); err != nil {
					t.Fatal(err)
				}
				now := p.dump(t, file)
				if at(now.runtimes(), Handler) != nil {
					t.Error("containerd still has the handler")
				}
				if got := string(p.read(file)); name != "comments dropped" && got != c.want {
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
				if !strings.Contains(p.said.String(), "has been edited since") || len(p.names()) != 1 {
					t.Errorf("said %q, left %q", p.said.String(), p.names())
				}
			})
		}
	}
}

// k3s and rke2 write their configuration anew; what to do is said, nothing is done.
func TestContainerdRefusesGenerated(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"k3s", "rke2"} {
		o := p.options(Containerd, "/var/lib/rancher/"+name+"/agent/etc/containerd/config.toml")
		err := Install(context.Background(), o)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), name+" writes") {
			t.Errorf("%s: got %v", name, err)
		}
		for _, want := range []string{"config-v3.toml.tmpl", `{{ template "base" . }}`, "containerd-shim-gpushare-v1", criRuntime, criV2} {
			if !strings.Contains(p.out.String(), want) {
				t.Errorf("%s: %q is not in what to write:\n%s", name, want, p.out.String())
			}
		}
	}
}

// containerd puts one containerd before all others on the search path of the place.
func (p *place) containerd(binary string) { p.program = binary }

func (p *place) dump(t *testing.T, file string) *dump {
	t.Helper()
	c := &containerd{binary: p.program}
	var d *dump
	var err error
	if _, missing := os.Stat(file); missing != nil {
		d, err = c.dumpEmpty(context.Background())
	} else {
		d, err = configDump(context.Background(), p.program, file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}
