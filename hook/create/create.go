// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package create is what gpushare does with a bundle before the low-level OCI
// runtime sees it, whoever starts that runtime: the wrapper or the shim. It
// refuses, claims a share from the daemon, and edits config.json in place.
//
// A container that is no GPU container, and a pod's sandbox, are left alone to
// the byte, and nobody is asked about them. Everything about GPU containers fails
// closed. No variable of its environment steers it, and it starts no process.
package create

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/hook"
	"github.com/gpushare/gpushare/hook/node"
	"github.com/gpushare/gpushare/internal/config"
)

// Container is a container that is about to be made.
type Container struct {
	// ID is the runtime's id for it. BadID says what is wrong if there is none.
	ID, BadID string
	// Bundle is the directory of config.json.
	Bundle string
	// RuntimeRoot is where the low-level runtime keeps its containers' states; the
	// container's own is RuntimeRoot/ID/state.json.
	RuntimeRoot string
	// PID is the claimant: if it ends before the container has started, so does
	// the claim.
	PID int
	// Restore is set for a container that is to be made from a checkpoint.
	Restore bool
}

// Claims is the part of the daemon that is needed.
type Claims interface {
	Claim(context.Context, v1.ClaimRequest) (v1.Claim, error)
	Release(context.Context, string) error
}

var _ Claims = (*v1.Client)(nil)

// Prepared is a bundle that may go to the low-level runtime. A nil one is valid.
type Prepared struct {
	// Claimed says whether it is a GPU container, which holds a claim now.
	Claimed bool

	id     string
	daemon Claims
}

// Undo gives the claim back, if there is one: for a container that was not made
// after all. It takes as long as the daemon's answer, at most the client's
// deadline.
func (p *Prepared) Undo() {
	if p == nil || !p.Claimed {
		return
	}
	p.Claimed = false
	_ = p.daemon.Release(context.Background(), p.id)
}

// Prepare claims a share for a GPU container and edits its spec. A bundle that is
// not there is left to the low-level runtime, which says so in its own words.
// Errors are one line, made by *hook.Refusal or *v1.Error where a code fits; nothing
// is left behind then.
func Prepare(ctx context.Context, c *config.Config, ct Container, daemon Claims) (*Prepared, error) {
	b, err := openBundle(ct.Bundle)
	if missing(err) {
		return &Prepared{}, nil
	}
	if err != nil {
		return nil, &hook.Refusal{Code: hook.CodeSpec, Message: err.Error()}
	}
	defer b.close()
	data, err := b.read()
	if missing(err) {
		return &Prepared{}, nil
	}
	if err != nil {
		return nil, &hook.Refusal{Code: hook.CodeSpec, Message: err.Error()}
	}
	p, err := plan(c, &ct, b, data)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return &Prepared{}, nil
	}
	return p.carryOut(ctx, c, &ct, b, daemon)
}

// WithoutConfig is for a config.toml that cannot be used, which why says: a GPU
// container is refused with that, and any other may go to the low-level runtime, so
// that a slip in the file does not keep a node's other containers from starting.
func WithoutConfig(ct Container, why error) error {
	b, err := openBundle(ct.Bundle)
	if missing(err) {
		return nil
	}
	broken := &hook.Refusal{Code: hook.CodeConfig, Message: why.Error()}
	if err != nil {
		return broken
	}
	defer b.close()
	data, err := b.read()
	if missing(err) {
		return nil
	}
	if err != nil {
		return broken
	}
	if _, reasons, err := look(config.Default(), b, data); err != nil || len(reasons) > 0 {
		return broken
	}
	return nil
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
	exposed    []string // what node policy allows it
}

// look reads a spec. The reasons say what makes it a GPU container's; there are none
// for a container that is none of our business.
func look(c *config.Config, b *bundle, data []byte) (p *planned, reasons []string, err error) {
	p = &planned{bundle: b.path}
	if p.spec, err = hook.Parse(data); err != nil {
		return nil, nil, err
	}
	if p.ask, err = p.spec.Ask(); err != nil {
		return nil, nil, err
	}
	if p.host, err = node.Host(c, b.path); err != nil {
		return nil, nil, err
	}
	return p, p.spec.Reasons(p.ask, p.host), nil
}

// plan returns nil for a container that is none of our business.
func plan(c *config.Config, ct *Container, b *bundle, data []byte) (*planned, error) {
	p, reasons, err := look(c, b, data)
	if err != nil || len(reasons) == 0 {
		return nil, err
	}
	if ct.Restore {
		return nil, &hook.Refusal{Code: hook.CodeRestore, Message: "restore of a GPU container refused: a checkpoint holds no GPU state: start the container anew"}
	}
	if ct.BadID != "" {
		return nil, &hook.Refusal{Code: hook.CodeUsage, Message: "GPU container refused: " + ct.BadID}
	}
	if !ValidID(ct.ID) {
		return nil, &hook.Refusal{Code: hook.CodeUsage, Message: fmt.Sprintf("GPU container refused: a container id is made of letters, digits and _+-. but this is %q", ct.ID)}
	}
	if p.exposed, err = p.spec.Check(p.host, hook.Override{Privileged: c.Override.Privileged, HostNamespaces: c.Override.HostNamespaces}); err != nil {
		return nil, err
	}
	d := c.DefaultShare
	share := hook.Ask{Memory: d.Memory, Compute: d.Compute, ComputeMax: d.ComputeMax, Profile: d.Profile, HostMemory: d.HostMemory}
	if p.ask, err = p.ask.WithDefault(share, reasons); err != nil {
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
func (p *planned) carryOut(ctx context.Context, c *config.Config, ct *Container, b *bundle, daemon Claims) (*Prepared, error) {
	claim, err := daemon.Claim(ctx, v1.ClaimRequest{
		ID: ct.ID, Bundle: b.path, RuntimeRoot: ct.RuntimeRoot, PID: ct.PID,
		MountLabel: p.spec.MountLabel(), Source: p.ask.Source,
		Request: v1.Request{Memory: p.ask.Memory, Compute: p.ask.Compute, ComputeMax: p.ask.ComputeMax, Profile: p.ask.Profile, HostMemory: p.ask.HostMemory, GPU: p.ask.GPU},
		Exposed: p.exposed,
	})
	if err != nil {
		giveUp(ctx, daemon, ct.ID, err)
		return nil, fmt.Errorf("GPU container refused: %w", err)
	}
	done := &Prepared{Claimed: true, id: ct.ID, daemon: daemon}
	if err := p.edit(c, &claim, b); err != nil {
		done.Undo()
		return nil, err
	}
	return done, nil
}

func (p *planned) edit(c *config.Config, claim *v1.Claim, b *bundle) error {
	grant, err := p.grant(c, claim)
	if err != nil {
		return err
	}
	if err := p.spec.Edit(p.driver, grant, p.host); err != nil {
		return err
	}
	data, err := p.spec.Bytes()
	if err != nil {
		return err
	}
	return b.replace(data)
}

func (p *planned) grant(c *config.Config, claim *v1.Claim) (*hook.Grant, error) {
	if want := filepath.Join(c.ContainersDir(), claim.ID); claim.Directory != want {
		return nil, fmt.Errorf("use claim %s: the daemon names the directory %q, config.toml says %q: do both read the same config.toml?", claim.ID, claim.Directory, want)
	}
	g := &hook.Grant{
		ID: claim.ID, Directory: claim.Directory, CUDA: p.cuda, NVML: p.nvml,
		Hook: p.hook, Compat: c.Compat, Bundle: p.bundle,
		EveryDevice: slices.Contains(p.exposed, hook.ExposedPrivileged), HookErrors: hookErrors(os.Stderr),
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

// ValidID says whether the container id is one that every runtime accepts.
func ValidID(id string) bool {
	return id != "" && id != "." && id != ".." && len(id) <= 255 && !slices.ContainsFunc([]byte(id), func(c byte) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_+-.", c) >= 0)
	})
}
