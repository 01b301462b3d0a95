// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Handlers of the CRI plugin that a private containerd knows.
const (
	// HandlerRunc is plain runc: gpushare is not in the way at all.
	HandlerRunc = "runc"
	// HandlerShim runs our shim by its runtime type.
	HandlerShim = "gpushare"
	// HandlerShimPath runs our shim by its path, with runc's options.
	HandlerShimPath = "gpushare-path"
	// HandlerWrapper runs the stock shim with our wrapper as its BinaryName.
	HandlerWrapper = "gpushare-binaryname"
)

// ShimType is our shim's runtime type, for ctr.
const ShimType = "io.containerd.gpushare.v1"

// The images that a private containerd has: the small root file system.
const (
	SmallImageName = "localhost/small:1"
	pauseImageName = "localhost/pause:1"
)

// ContainerdOptions say which containerd is wanted. The zero value is the machine's,
// without crictl.
type ContainerdOptions struct {
	// Bin is the folder of containerd, ctr and the stock shim; empty: on PATH.
	Bin string
	// Crictl is the crictl command; empty: the CRI helpers cannot be used.
	Crictl string
}

// Containerd is a private containerd with the CRI plugin.
type Containerd struct {
	// Version is what the program says it is, such as 2.4.2.
	Version string

	node *Node
	opts ContainerdOptions
	dir  string
}

// EngineBin is the folder of an engine that tests/setup/engines.sh builds. The
// error says how to build it if it is not there.
func EngineBin(ctx context.Context, root, name string) (string, error) {
	r := Run(ctx, nil, filepath.Join(root, "tests/setup/engines.sh"), "--where", name)
	if r.Err != nil {
		return "", r.Err
	}
	dir := strings.TrimSpace(r.Stdout)
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		return "", fmt.Errorf("find engine %s: not built: run tests/setup/engines.sh %s", name, name)
	}
	return dir, nil
}

// StartContainerd starts a containerd with a root, state and socket of its own,
// and gives it the small image made from the root file system in image. It belongs
// to the node: Close ends it.
func (n *Node) StartContainerd(ctx context.Context, image string, opts ContainerdOptions) (*Containerd, error) {
	c := &Containerd{node: n, opts: opts}
	r := Run(ctx, nil, c.program("containerd"), "--version")
	if r.Err != nil {
		return nil, fmt.Errorf("start containerd: %w", r.Err)
	}
	if c.Version = regexp.MustCompile(`\d+\.\d+\.\d+`).FindString(r.Stdout); c.Version == "" {
		return nil, fmt.Errorf("start containerd: no version in %q", r.Stdout)
	}
	c.dir = filepath.Join(n.Dir, "containerd-"+c.Version)
	for _, d := range []string{"cni/bin", "cni/conf", "fifo", "pods", "temp"} {
		if err := os.MkdirAll(filepath.Join(c.dir, d), 0o711); err != nil {
			return nil, fmt.Errorf("start containerd: %w", err)
		}
	}
	shim := filepath.Join(n.opts.Root, "build/bin/containerd-shim-gpushare-v1")
	if err := copyFile(shim, n.Bin(filepath.Base(shim)), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("start containerd: install shim: %w", err)
	}
	for name, text := range map[string]string{"config.toml": c.config(), "crictl.yaml": ""} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("start containerd: %w", err)
		}
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	n.containerds = append(n.containerds, c)
	return c, c.importImages(ctx, image)
}

// Start starts containerd, again after it was killed, and waits until it and its
// CRI plugin answer.
func (c *Containerd) Start(ctx context.Context) error {
	// Shims are looked for on PATH: the engine's own first, then ours.
	path := c.node.Dir + "/bin:" + os.Getenv("PATH")
	if c.opts.Bin != "" {
		path = c.opts.Bin + ":" + path
	}
	env := []string{"PATH=" + path, "TMPDIR=" + filepath.Join(c.dir, "temp")}
	p, err := c.node.start(c.name(), env, c.program("containerd"), "--config", filepath.Join(c.dir, "config.toml"))
	if err != nil {
		return err
	}
	c.node.add(p)
	return p.ready(ctx, func() error {
		if r := c.Ctr(ctx, "version"); r.Err != nil {
			return r.Err
		}
		if c.opts.Crictl == "" {
			return nil
		}
		return c.Crictl(ctx, "version").Err
	})
}

func (c *Containerd) name() string { return "containerd-" + c.Version }

// Process is the containerd that was started last.
func (c *Containerd) Process() *Process { return c.node.process(c.name()) }

// Dir is the folder of everything that is this containerd's.
func (c *Containerd) Dir() string { return c.dir }

func (c *Containerd) socket() string { return filepath.Join(c.dir, "ctrd.sock") }

func (c *Containerd) program(name string) string {
	if c.opts.Bin == "" {
		return name
	}
	return filepath.Join(c.opts.Bin, name)
}

// CtrArgs is the command line of a ctr command, for Talk.
func (c *Containerd) CtrArgs(args ...string) []string {
	return append([]string{c.program("ctr"), "--address", c.socket()}, args...)
}

// Ctr runs a ctr command.
func (c *Containerd) Ctr(ctx context.Context, args ...string) Result {
	return Run(ctx, nil, c.CtrArgs(args...)...)
}

// CtrRun is what a test wants of `ctr run`.
type CtrRun struct {
	ID string
	// Flags choose the runtime and more, such as --runtime or --env.
	Flags []string
	Args  []string
	// Detach leaves the container running, its output unread.
	Detach bool
}

// RunArgs is the command line of `ctr run`, for Talk. The container's cgroup is
// below the node's.
func (c *Containerd) RunArgs(r CtrRun) []string {
	args := []string{"run", "--fifo-dir", filepath.Join(c.dir, "fifo"), "--cgroup", c.node.cgroupParent() + "/" + r.ID}
	if r.Detach {
		args = append(args, "--detach", "--null-io")
	}
	args = append(args, r.Flags...)
	args = append(args, SmallImageName, r.ID)
	return c.CtrArgs(append(args, r.Args...)...)
}

// ExecArgs is the command line of `ctr task exec`, for Talk.
func (c *Containerd) ExecArgs(id string, args ...string) []string {
	return c.CtrArgs(append([]string{"task", "exec", "--fifo-dir", filepath.Join(c.dir, "fifo"),
		"--exec-id", fmt.Sprintf("e%d", time.Now().UnixNano()), id}, args...)...)
}

// CtrRemove ends and removes a container of `ctr run`, if it is there.
func (c *Containerd) CtrRemove(ctx context.Context, id string) {
	c.Ctr(ctx, "task", "delete", "--force", id)
	c.Ctr(ctx, "container", "delete", id)
}

// BundleFile is the path of a file in a running container's bundle, below
// namespace default for ctr's and k8s.io for the CRI plugin's.
func (c *Containerd) BundleFile(namespace, id, name string) string {
	return filepath.Join(c.dir, "state/io.containerd.runtime.v2.task", namespace, id, name)
}

// Shim is the shim process that serves a container, known by the bundle's
// containerd and the id that it was started for; nil if there is none.
func (c *Containerd) Shim(id string) *Process {
	return c.node.find("shim", func(argv []string) bool {
		return len(argv) > 1 && strings.HasPrefix(filepath.Base(argv[0]), "containerd-shim-") &&
			pair(argv, "-address", c.socket()) && pair(argv, "-id", id)
	})
}

// KillShim kills the shim that serves a container and removes its socket, which
// would stay. It says whether there was one.
func (c *Containerd) KillShim(id string) (bool, error) {
	p := c.Shim(id)
	if p == nil {
		return false, nil
	}
	sockets := p.listening()
	if err := p.Kill(); err != nil {
		return true, err
	}
	for _, s := range sockets {
		if err := os.Remove(s); err != nil && !errors.Is(err, os.ErrNotExist) {
			return true, fmt.Errorf("kill shim of %s: %w", id, err)
		}
	}
	return true, nil
}

// listening are the paths of the sockets that containerd gave the shim.
func (p *Process) listening() []string {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	inodes := map[string]string{}
	for line := range strings.SplitSeq(string(table), "\n") {
		if f := strings.Fields(line); len(f) == 8 && strings.HasPrefix(f[7], shimSockets) {
			inodes["socket:["+f[6]+"]"] = f[7]
		}
	}
	var paths []string
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID))
	for _, file := range files {
		if link, err := os.Readlink(file); err == nil && inodes[link] != "" {
			paths = append(paths, inodes[link])
		}
	}
	return paths
}

// shimSockets is where shims listen, whatever containerd's own directories are.
const shimSockets = "/run/containerd/s/"

func pair(argv []string, flag, value string) bool {
	for i := 1; i < len(argv); i++ {
		if argv[i-1] == flag && argv[i] == value {
			return true
		}
	}
	return false
}

// Close removes all that runs under this containerd, then ends it. Node.Close
// calls it, and ends by force what it could not.
func (c *Containerd) Close(ctx context.Context) error {
	if !c.Process().Alive() {
		if err := c.Start(ctx); err != nil {
			return err
		}
	}
	if c.opts.Crictl != "" {
		c.Crictl(ctx, "rmp", "--all", "--force")
	}
	for id := range strings.FieldsSeq(c.Ctr(ctx, "container", "list", "--quiet").Stdout) {
		c.CtrRemove(ctx, id)
	}
	return c.Process().Stop(10 * time.Second)
}

// sockets are those that the shims of the node's containers listen on. A shim that
// is killed leaves its own.
func (n *Node) sockets() []string {
	var found []string
	for _, name := range []string{"address", "bootstrap.json"} {
		files, _ := filepath.Glob(filepath.Join(n.Dir, "*/state/io.containerd.runtime.v2.task/*/*", name))
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			if path := regexp.MustCompile(`unix://(` + shimSockets + `[0-9a-f]+)`).FindSubmatch(data); path != nil {
				found = append(found, string(path[1]))
			}
		}
	}
	return found
}
