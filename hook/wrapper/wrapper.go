// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package wrapper is gpushare-runtime: it stands in for the low-level OCI
// runtime, edits the spec of GPU containers on create and run, and becomes the
// runtime by execve, so that pid, exit code, signals and terminal stay right.
//
// It fails closed for GPU containers, with a reason on stderr and in the
// engine's --log, and leaves everything else alone to the byte. Nothing in its
// environment steers it.
package wrapper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/hook"
	"github.com/gpushare/gpushare/hook/node"
	"github.com/gpushare/gpushare/internal/config"
)

// claims is the part of the daemon that a wrapper needs.
type claims interface {
	Claim(context.Context, v1.ClaimRequest) (v1.Claim, error)
	Release(context.Context, string) error
}

var _ claims = (*v1.Client)(nil)

// Runtime is one invocation's surroundings.
type Runtime struct {
	Version string
	Stdout  io.Writer
	Stderr  io.Writer
}

// Main does what args, without the program's name, ask for. It returns an exit
// code, or does not return because the process has become the low-level runtime.
func (r *Runtime) Main(args []string) int {
	if len(args) == 1 && args[0] == "--gpushare-version" {
		fmt.Fprintf(r.Stdout, "gpushare-runtime %s\n", r.Version)
		return 0
	}
	inv := parse(args)
	if err := r.guarded(inv, args); err != nil {
		report(r.Stderr, inv, err, time.Now())
		return 1
	}
	return 0
}

// guarded turns a panic into a refusal: an engine shows a reason only if the
// log has one.
func (r *Runtime) guarded(inv *invocation, args []string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &hook.Refusal{Code: hook.CodeInternal, Message: fmt.Sprintf("gpushare-runtime broke down, nothing was started: %v: please report this", p)}
		}
	}()
	return r.run(inv, args)
}

func (r *Runtime) run(inv *invocation, args []string) error {
	makes := touches(inv.command) && !inv.help
	c, err := config.Find()
	if err != nil {
		if makes {
			return &hook.Refusal{Code: hook.CodeConfig, Message: err.Error()}
		}
		// A broken file must not keep containers from being stopped.
		c = config.Default()
	}
	low, err := node.LowLevelRuntime(c.Runtimes)
	if err != nil {
		return &hook.Refusal{Code: hook.CodeRuntime, Message: err.Error()}
	}
	undo := func() {}
	daemon := v1.NewClient(c.SocketPath())
	switch {
	case makes:
		if undo, err = prepare(c, inv, low, daemon); err != nil {
			return err
		}
	case inv.command == "delete" && !inv.help && inv.unsure == "" && len(inv.ids) == 1:
		release(c, inv, low, daemon)
	}
	if makes || (inv.command == "exec" && inv.unsure == "") {
		if err := closeOnExec(inv.preserveFDs); err != nil {
			undo()
			return err
		}
	}
	err = execRuntime(low, args)
	undo()
	return &hook.Refusal{Code: hook.CodeRuntime, Message: err.Error()}
}

// prepare claims a share for a GPU container and edits its spec. The function
// that it returns gives the claim back.
func prepare(c *config.Config, inv *invocation, low string, daemon claims) (undo func(), err error) {
	nothing := func() {}
	if inv.unsure != "" {
		return nothing, &hook.Refusal{Code: hook.CodeUsage, Message: fmt.Sprintf(
			"flag %q is unknown, so the command line cannot be read for certain: write its value behind a = sign", inv.unsure)}
	}
	if inv.config != "" {
		return nothing, &hook.Refusal{Code: hook.CodeUsage, Message: "--config is not supported: put the spec into the bundle as config.json"}
	}
	b, err := openBundle(inv.bundle)
	if missing(err) {
		return nothing, nil // the low-level runtime says so in its own words
	}
	if err != nil {
		return nothing, &hook.Refusal{Code: hook.CodeSpec, Message: err.Error()}
	}
	defer b.close()
	data, err := b.read()
	if missing(err) {
		return nothing, nil
	}
	if err != nil {
		return nothing, &hook.Refusal{Code: hook.CodeSpec, Message: err.Error()}
	}
	p, err := plan(c, inv, b, data)
	if p == nil || err != nil {
		return nothing, err
	}
	return p.carryOut(c, inv, low, b, daemon)
}

// missing says whether err is that of a file or directory that is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

// planned is a GPU container that may be claimed for: all that can be refused
// without asking the daemon has been checked.
type planned struct {
	spec       *hook.Spec
	ask        hook.Ask
	host       *hook.Host
	driver     *hook.Driver
	cuda, nvml string
	hook       string
	bundle     string
}

// plan returns nil for a container that is none of our business.
func plan(c *config.Config, inv *invocation, b *bundle, data []byte) (*planned, error) {
	spec, err := hook.Parse(data)
	if err != nil {
		return nil, err
	}
	ask, err := spec.Ask()
	if err != nil {
		return nil, err
	}
	host, err := node.Host(c, b.path)
	if err != nil {
		return nil, err
	}
	reasons := spec.Reasons(ask, host)
	if len(reasons) == 0 {
		return nil, nil
	}
	if inv.command == "restore" {
		return nil, &hook.Refusal{Code: hook.CodeRestore, Message: "restore of a GPU container refused: a checkpoint holds no GPU state: start the container anew"}
	}
	if len(inv.ids) != 1 || !regular(inv.ids[0]) {
		return nil, &hook.Refusal{Code: hook.CodeUsage, Message: fmt.Sprintf("GPU container refused: %s needs exactly one container id of letters, digits and _+-. but has %q", inv.command, inv.ids)}
	}
	if err := spec.Check(host); err != nil {
		return nil, err
	}
	p := &planned{spec: spec, host: host, bundle: b.path}
	d := c.DefaultShare
	if p.ask, err = ask.WithDefault(d.Memory, d.Compute, d.ComputeMax, reasons); err != nil {
		return nil, err
	}
	if p.driver, err = node.LoadDriver(c.DriverCDISpec); err != nil {
		return nil, &hook.Refusal{Code: hook.CodeDriver, Message: "GPU container refused: " + err.Error()}
	}
	if p.cuda, p.nvml, err = node.Libraries(c); err != nil {
		return nil, &hook.Refusal{Code: hook.CodeConfig, Message: "GPU container refused: " + err.Error()}
	}
	if p.hook, err = node.HookProgram(); err != nil {
		return nil, &hook.Refusal{Code: hook.CodeHook, Message: "GPU container refused: " + err.Error()}
	}
	return p, nil
}

// carryOut claims, edits and writes. It gives the claim back if it fails.
func (p *planned) carryOut(c *config.Config, inv *invocation, low string, b *bundle, daemon claims) (undo func(), err error) {
	id := inv.ids[0]
	claim, err := daemon.Claim(context.Background(), v1.ClaimRequest{
		ID: id, Bundle: b.path, RuntimeRoot: runtimeRoot(inv, low), PID: os.Getpid(),
		MountLabel: p.spec.MountLabel(), Source: p.ask.Source,
		Request: v1.Request{Memory: p.ask.Memory, Compute: p.ask.Compute, ComputeMax: p.ask.ComputeMax, GPU: p.ask.GPU},
	})
	if err != nil {
		return func() {}, fmt.Errorf("GPU container refused: %w", err)
	}
	undo = func() { _ = daemon.Release(context.Background(), id) }
	defer func() {
		if err != nil {
			undo()
			undo = func() {}
		}
	}()
	grant, err := p.grant(c, &claim)
	if err != nil {
		return undo, err
	}
	if err := p.spec.Edit(p.driver, grant, p.host); err != nil {
		return undo, err
	}
	data, err := p.spec.Bytes()
	if err != nil {
		return undo, err
	}
	return undo, b.replace(data)
}

func (p *planned) grant(c *config.Config, claim *v1.Claim) (*hook.Grant, error) {
	if want := filepath.Join(c.ContainersDir(), claim.ID); claim.Directory != want {
		return nil, fmt.Errorf("use claim %s: the daemon names the directory %q, config.toml says %q: do both read the same config.toml?", claim.ID, claim.Directory, want)
	}
	g := &hook.Grant{
		ID: claim.ID, Directory: claim.Directory, CUDA: p.cuda, NVML: p.nvml,
		Hook: p.hook, Compat: c.Compat, Bundle: p.bundle,
	}
	if len(claim.GPUs) == 0 {
		return nil, fmt.Errorf("use claim %s: the daemon granted no GPU", claim.ID)
	}
	for _, gpu := range claim.GPUs {
		name, err := p.driver.DeviceName(gpu.CDIDevice, gpu.UUID, fmt.Sprint(gpu.Index))
		if err != nil {
			return nil, err
		}
		g.Devices = append(g.Devices, name)
	}
	for _, m := range c.ExtraDriverMounts {
		source, destination, err := config.SplitMount(m)
		if err != nil {
			return nil, err
		}
		g.Extra = append(g.Extra, hook.Bind{Source: source, Destination: destination})
	}
	return g, nil
}

// runtimeRoot is where the low-level runtime keeps its containers' states.
func runtimeRoot(inv *invocation, low string) string {
	if inv.root == "" {
		return filepath.Join("/run", filepath.Base(low))
	}
	if abs, err := filepath.Abs(inv.root); err == nil {
		return abs
	}
	return inv.root
}
