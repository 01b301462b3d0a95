// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package node brings up a whole node for tests and for the demo: a simulated
// NVIDIA driver, gpushared, a private containerd and dockerd, and takes it down.
//
// Everything lies under one directory: binaries with their config.toml beside
// them, sockets, data roots, logs. Nothing in /etc is read or written, no engine
// of the machine is touched, and after Close no process, mount, cgroup or file of
// the node is left. The node's GPUs are SIMULATED.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Options say what node is wanted. The zero value is one 80 GiB GPU with Docker.
type Options struct {
	// Root is the checkout that has been built.
	Root string
	// Dir is the node's directory; empty makes a new one. It must lie in a tree
	// that only root can write.
	Dir string
	// GPUs is how many there are; 0 means 1.
	GPUs int
	// Profile is what the GPUs are like, as "simgpu up --profile" takes it; empty means
	// the card whose accounts are exact.
	Profile string
	// Memory is each GPU's size as simgpu takes it; empty means 80GiB, or with a
	// Profile that of its card.
	Memory string
	// KernelTimes are simgpu's kernel lengths, such as "spin=50us".
	KernelTimes []string
	// Simgpu are more arguments of "simgpu up", such as a driver.
	Simgpu []string
	// NoEngine leaves out containerd and dockerd.
	NoEngine bool
	// CDIHooks uses the form of the driver's CDI spec that has hooks.
	CDIHooks bool
	// EnginePath goes before PATH for dockerd and containerd, which are taken from
	// it if it has them; EngineEnv are more of their variables.
	EnginePath string
	EngineEnv  []string
	// Runc is the low-level runtime that the wrapper calls; empty: this machine's.
	Runc string
	// EditDaemon changes dockerd's configuration before it starts; may be nil.
	EditDaemon func(n *Node, daemon map[string]any)
	// DefaultMemory is the node's default share; empty: there is none.
	DefaultMemory string
	// Config is more lines of config.toml, tables last.
	Config string
}

// Node is a running node.
type Node struct {
	Dir string `json:"dir"`
	// Processes in the order of their start.
	Processes []*Process `json:"processes"`

	opts        Options
	containerds []*Containerd // that another program's Load does not know
}

// Base is the parent of the nodes' directories. It is not below /tmp: what root
// executes must lie where nobody else can write.
const Base = "/var/lib"

// Start brings a node up, or takes down again what it has started and says why.
func Start(ctx context.Context, opts Options) (n *Node, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("start node: root is needed for containers, mounts and device nodes")
	}
	if opts.GPUs == 0 {
		opts.GPUs = 1
	}
	if opts.Memory == "" && opts.Profile == "" {
		opts.Memory = "80GiB"
	}
	if opts.Dir == "" {
		if opts.Dir, err = os.MkdirTemp(Base, "gpushare-test-"); err != nil {
			return nil, fmt.Errorf("start node: %w", err)
		}
	} else if err := os.Mkdir(opts.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	n = &Node{Dir: opts.Dir, opts: opts}
	begun := n // what a return of nil must not forget
	defer func() {
		if err != nil {
			err = errors.Join(err, begun.Close())
		}
	}()
	if err := os.Chmod(n.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	for _, d := range []string{"log", "bin", "lib/gpushare", "etc/gpushare", "run", "state", "docker", "runc", "bundles"} {
		if err := os.MkdirAll(filepath.Join(n.Dir, d), 0o755); err != nil {
			return nil, fmt.Errorf("start node: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	steps := []func(context.Context) error{n.install, n.startSimulator, n.configure, n.StartDaemon}
	if !opts.NoEngine {
		steps = append(steps, n.startEngine)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return n, n.save()
}

// install lays out the tree that the binaries run from.
func (n *Node) install(context.Context) error {
	for _, b := range []string{"gpushare-runtime", "gpushare-hook", "containerd-shim-gpushare-v1", "gpushared", "gpushare", "simgpu"} {
		if err := copyFile(filepath.Join(n.opts.Root, "build/bin", b), n.Bin(b), 0o755); err != nil {
			return fmt.Errorf("install %s: %w", b, err)
		}
	}
	if n.opts.Runc != "" {
		// A copy: the wrapper takes only what lies where nobody but root can write.
		if err := copyFile(n.opts.Runc, n.LowLevel(), 0o755); err != nil {
			return fmt.Errorf("install %s: %w", n.opts.Runc, err)
		}
	}
	version := filepath.Join(n.Dir, "lib/gpushare/1")
	if err := os.MkdirAll(version, 0o755); err != nil {
		return fmt.Errorf("install libraries: %w", err)
	}
	for _, l := range []string{"libcuda.so.1", "libnvidia-ml.so.1"} {
		if err := copyFile(filepath.Join(n.opts.Root, "build/lib", l), filepath.Join(version, l), 0o755); err != nil {
			return fmt.Errorf("install %s: %w", l, err)
		}
	}
	if err := os.Symlink("1", filepath.Join(n.Dir, "lib/gpushare/current")); err != nil {
		return fmt.Errorf("install libraries: %w", err)
	}
	return nil
}

// Bin is the path of one of the node's binaries.
func (n *Node) Bin(name string) string { return filepath.Join(n.Dir, "bin", name) }

// RunDir is gpushared's run directory.
func (n *Node) RunDir() string { return filepath.Join(n.Dir, "run") }

// ConfigFile is the node's config.toml.
func (n *Node) ConfigFile() string { return filepath.Join(n.Dir, "etc/gpushare/config.toml") }

// configure writes config.toml: our part, then the lines that simgpu wrote.
func (n *Node) configure(context.Context) error {
	driver, err := os.ReadFile(filepath.Join(n.simDir(), "gpushare.toml"))
	if err != nil {
		return fmt.Errorf("configure node: %w", err)
	}
	text := fmt.Sprintf("run_dir = %q\nstate_dir = %q\ndocker_host = %q\n",
		n.RunDir(), filepath.Join(n.Dir, "state"), "unix://"+n.dockerSocket())
	if n.opts.Runc != "" {
		text += fmt.Sprintf("runtimes = [%q]\n", n.LowLevel())
	}
	text += string(driver)
	if n.opts.CDIHooks {
		text = withCDI(text, filepath.Join(n.simDir(), "cdi-hooks/nvidia.json"))
	}
	if n.opts.DefaultMemory != "" {
		text += fmt.Sprintf("\n[default_share]\nmemory = %q\n", n.opts.DefaultMemory)
	}
	if n.opts.Config != "" {
		text += "\n" + n.opts.Config
	}
	if err := os.WriteFile(n.ConfigFile(), []byte(text), 0o644); err != nil {
		return fmt.Errorf("configure node: %w", err)
	}
	return nil
}

// StartDaemon starts gpushared and waits until it answers.
func (n *Node) StartDaemon(ctx context.Context) error {
	p, err := n.start("gpushared", nil, n.Bin("gpushared"), "--config", n.ConfigFile())
	if err != nil {
		return err
	}
	n.add(p)
	return p.ready(ctx, func() error {
		return Run(ctx, nil, n.Bin("gpushare"), "--config", n.ConfigFile(), "daemon").Err
	})
}

// Daemon is the gpushared that was started last.
func (n *Node) Daemon() *Process { return n.process("gpushared") }

// CLI runs the node's gpushare command.
func (n *Node) CLI(ctx context.Context, args ...string) Result {
	return Run(ctx, nil, append([]string{n.Bin("gpushare"), "--config", n.ConfigFile()}, args...)...)
}

func (n *Node) process(name string) *Process {
	for i := len(n.Processes) - 1; i >= 0; i-- {
		if n.Processes[i].Name == name {
			return n.Processes[i]
		}
	}
	return nil
}

func (n *Node) add(p *Process) {
	n.Processes = append(n.Processes, p)
	_ = n.save() // so that another program can end a node whose starter was killed
}

func (n *Node) save() error {
	data, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return fmt.Errorf("save node: %w", err)
	}
	if err := os.WriteFile(filepath.Join(n.Dir, "node.json"), data, 0o644); err != nil {
		return fmt.Errorf("save node: %w", err)
	}
	return nil
}

// Load returns the node that an earlier program left in dir. The error is
// fs.ErrNotExist if there is none.
func Load(dir string) (*Node, error) {
	data, err := os.ReadFile(filepath.Join(dir, "node.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dir); err == nil {
			return &Node{Dir: dir}, nil // died before its first process
		}
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("load node: %w", err)
	}
	n := &Node{}
	if err := json.Unmarshal(data, n); err != nil {
		return nil, fmt.Errorf("load node %s: %w", dir, err)
	}
	n.Dir = dir
	return n, nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, mode); err != nil {
		return err
	}
	return os.Chmod(to, mode) // the umask may have taken bits
}
