// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Where containerd is by default.
const (
	containerdSocket = "/run/containerd/containerd.sock"
	containerdConfig = "/etc/containerd/config.toml"
	dropInName       = "99-gpushare.toml"
	shimType         = "io.containerd.gpushare.v1"
)

// annotations reach a container's specification, and so our shim, by these patterns;
// a star does not match a slash.
var annotations = []any{"gpushare.io/*"}

// containerd tells containerd's CRI plugin of our handler.
type containerd struct {
	opts    Options
	proc    *process // nil: not running
	binary  string
	shim    string
	main    *file
	release release
	before  *dump
	want    bool // the handler is to be there afterwards
	ctr     string
}

func newContainerd(ctx context.Context, o Options) (*containerd, error) {
	c := &containerd{opts: o, shim: filepath.Join(o.BinDir, "containerd-shim-gpushare-v1")}
	if c.opts.Socket == "" {
		c.opts.Socket = containerdSocket
		if _, err := os.Stat(containerdSocket); errors.Is(err, fs.ErrNotExist) {
			if name, _ := generated(c.opts.Config, "", k3sSocket); name != "" {
				if _, err := os.Stat(k3sSocket); err == nil {
					return nil, c.refuseGenerated(name)
				}
			}
		}
	}
	var err error
	path := c.opts.Config
	if c.proc, err = listener(ctx, c.opts.Socket); err == nil {
		c.binary = c.proc.exe
		reads, given := c.proc.flag("config", "c")
		if !given {
			reads = containerdConfig
		}
		if path != "" && !sameFile(path, reads) {
			return nil, refuse("the containerd behind %s (pid %d) reads %s, not %s", c.opts.Socket, c.proc.pid, reads, path)
		}
		path = reads
	} else if !o.DryRun && !(o.NoRestart && o.NoProbe) {
		return nil, refuse("containerd does not answer at %s: %w; start it, or name its socket with --socket, or only write the file with --no-restart --no-probe", c.opts.Socket, err)
	}
	if path == "" {
		path = containerdConfig
	}
	if name, _ := generated(path, c.binary, c.opts.Socket); name != "" {
		return nil, c.refuseGenerated(name)
	}
	if c.binary == "" {
		c.binary = o.Program
	}
	if _, err := os.Stat(c.binary); c.binary == "" || err != nil {
		if c.binary, err = exec.LookPath("containerd"); err != nil {
			return nil, refuse("there is no containerd on the PATH, and none answers at %s", c.opts.Socket)
		}
	}
	c.ctr = filepath.Join(filepath.Dir(c.binary), "ctr")
	if _, err := os.Stat(c.ctr); err != nil {
		c.ctr, _ = exec.LookPath("ctr")
	}
	if c.release, err = containerdVersion(ctx, c.binary); err != nil {
		return nil, err
	}
	if c.main, err = readFile(path); err != nil {
		return nil, err
	}
	return c, nil
}

func sameFile(a, b string) bool {
	x, errA := filepath.Abs(a)
	y, errB := filepath.Abs(b)
	if errA == nil && errB == nil && x == y {
		return true
	}
	i, errA := os.Stat(a)
	j, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(i, j)
}

// plan decides where our handler goes: a file of our own where containerd reads one
// and merges it, else the end of its main file.
func (c *containerd) plan(ctx context.Context, install bool) (*edit, error) {
	parsed, err := parseTOML(c.main.path, c.main.data)
	if err != nil {
		return nil, err
	}
	if c.before, err = configDump(ctx, c.binary, c.main.real); err != nil {
		if c.main.exists {
			return nil, refuse("%s: %w", c.main.path, err)
		}
		if c.before, err = c.dumpEmpty(ctx); err != nil {
			return nil, refuse("%s is not there: %w", c.main.path, err)
		}
	}
	dir := dropInDir(c.main, parsed)
	c.want = install
	if !install {
		return c.planRemoval(dir)
	}
	if name := c.before.disabled(); name != "" {
		return nil, refuse("%s disables containerd's CRI plugin (disabled_plugins has %q, as docker's own package writes it), so there is nothing to register a handler with; for Kubernetes take the entry out and restart containerd; docker wants --engine docker, and ctr and nerdctl need no configuration: --runtime io.containerd.gpushare.v1", c.main.path, name)
	}
	if c.before.plugin == "" {
		return nil, refuse("%s has no CRI plugin to register a handler with", c.binary)
	}
	if err := c.onPath(); err != nil {
		return nil, err
	}
	handler, notes := c.handler()
	if same := at(c.before.runtimes(), Handler); same != nil && contains(same, handler) {
		return &edit{file: c.main, after: c.main.content(), base: c.main.content(), notes: []string{"no change: containerd's configuration has the handler"}}, nil
	}
	version := versionOf(parsed)
	if dir != "" && c.before.plugin == criRuntime {
		return c.planDropIn(ctx, dir, version, parsed, handler, notes)
	}
	return c.planMain(ctx, version, handler, notes)
}

// dumpAlone is the dump of a content in a place of its own.
func (c *containerd) dumpAlone(ctx context.Context, data []byte) (*dump, error) {
	dir, err := os.MkdirTemp("", "gpushare-containerd-")
	if err != nil {
		return nil, fmt.Errorf("try a configuration: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, fmt.Errorf("try a configuration: %w", err)
	}
	return configDump(ctx, c.binary, file)
}

// dumpEmpty is what containerd runs on without a file. 1.x has no dump of that, but
// an empty file means the same.
func (c *containerd) dumpEmpty(ctx context.Context) (*dump, error) {
	return c.dumpAlone(ctx, []byte("version = 2\n"))
}

// dropInDir is the directory that the main file itself imports *.toml from. The
// import that 2.2 and newer have by default is not read unless the file says it.
func dropInDir(main *file, parsed tree) string {
	list, _ := parsed["imports"].([]any)
	for _, one := range list {
		pattern, _ := one.(string)
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(filepath.Dir(main.path), pattern)
		}
		if filepath.Base(pattern) == "*.toml" && !strings.ContainsAny(filepath.Dir(pattern), "*?[") &&
			filepath.Dir(pattern) != filepath.Dir(main.path) {
			return filepath.Dir(pattern)
		}
	}
	return ""
}

// handler is our runtime table: what the default runtime has, with our shim.
func (c *containerd) handler() (tree, []string) {
	var notes []string
	h, options := tree{}, tree{}
	name, _ := c.before.cri()["default_runtime_name"].(string)
	patterns := map[string][]any{"pod_annotations": slices.Clone(annotations), "container_annotations": slices.Clone(annotations)}
	for k, v := range at(c.before.runtimes(), name) {
		switch k {
		case "options":
			for o, v := range at(c.before.runtimes(), name, "options") {
				if o == "BinaryName" && !isPlainRuntime(v) {
					if text, _ := v.(string); text != "" {
						notes = append(notes, fmt.Sprintf("BinaryName %q of runtime %q is not taken over: gpushare has to be the last step before runc", text, name))
					}
					continue
				}
				if !zero(v) {
					options[o] = v
				}
			}
		case "runtime_type", "runtime_path", "runtime_engine", "runtime_root":
		case "pod_annotations", "container_annotations":
			list, _ := v.([]any)
			for _, one := range list {
				if !slices.Contains(patterns[k], one) {
					patterns[k] = append(patterns[k], one)
				}
			}
		default:
			if !zero(v) {
				h[k] = v
			}
		}
	}
	h["runtime_type"] = "io.containerd.runc.v2"
	if c.byType() {
		h["runtime_type"] = shimType
	}
	h["runtime_path"] = c.shim
	h["pod_annotations"], h["container_annotations"] = patterns["pod_annotations"], patterns["container_annotations"]
	h["privileged_without_host_devices"] = true
	if len(options) > 0 {
		h["options"] = options
	}
	return h, notes
}

// byType says that the handler has to name our shim by its type, which containerd
// looks for on its PATH: the CRI plugin before 1.6.21 forgets runtime_path, and would
// run plain runc without a word.
func (c *containerd) byType() bool { return c.release.before(release{1, 6, 21}) }

// onPath refuses a containerd that has to find our shim by name and would not.
func (c *containerd) onPath() error {
	if !c.byType() || c.proc == nil {
		return nil
	}
	for _, dir := range append(filepath.SplitList(c.proc.env("PATH")), filepath.Dir(c.binary)) {
		if sameFile(filepath.Join(dir, filepath.Base(c.shim)), c.shim) {
			return nil
		}
	}
	return refuse("containerd %d.%d.%d finds shims only on its PATH (%s), where %s is not: link it there, for example ln -s %s /usr/local/bin/",
		c.release[0], c.release[1], c.release[2], c.proc.env("PATH"), filepath.Base(c.shim), c.shim)
}

func isPlainRuntime(v any) bool {
	text, _ := v.(string)
	return slices.Contains([]string{"runc", "crun"}, filepath.Base(text))
}

func zero(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case []any:
		return len(v) == 0
	}
	return true
}
