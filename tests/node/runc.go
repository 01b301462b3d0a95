// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Bundle is an OCI bundle for the wrapper without any engine.
type Bundle struct {
	ID, Dir string

	node *Node
}

// Spec is what a test wants in a bundle's config.json.
type Spec struct {
	Rootfs      string // copied into the bundle
	Args        []string
	Env         []string
	Annotations map[string]string
	// Edit changes the decoded config.json at the end; may be nil.
	Edit func(map[string]any)
}

// NewBundle writes a bundle called id, starting from what `runc spec` writes.
func (n *Node) NewBundle(ctx context.Context, id string, s Spec) (*Bundle, error) {
	b := &Bundle{ID: id, Dir: filepath.Join(n.Dir, "bundles", id), node: n}
	if err := os.Mkdir(b.Dir, 0o711); err != nil {
		return nil, fmt.Errorf("make bundle: %w", err)
	}
	if r := Run(ctx, nil, "cp", "-a", s.Rootfs, filepath.Join(b.Dir, "rootfs")); r.Err != nil {
		return nil, fmt.Errorf("make bundle: %w", r.Err)
	}
	if r := Run(ctx, nil, "runc", "spec", "--bundle", b.Dir); r.Err != nil {
		return nil, fmt.Errorf("make bundle: %w", r.Err)
	}
	file := filepath.Join(b.Dir, "config.json")
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("make bundle: %w", err)
	}
	var spec map[string]any
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, fmt.Errorf("make bundle: %w", err)
	}
	process := spec["process"].(map[string]any)
	process["terminal"] = false
	process["args"] = s.Args
	env := []string{"PATH=/usr/bin:/bin"}
	process["env"] = append(env, s.Env...)
	// Without CAP_SYS_RESOURCE a raised limit is refused.
	delete(process, "rlimits")
	// What Docker gives a container and `runc spec` does not: su needs them.
	capabilities := process["capabilities"].(map[string]any)
	for _, set := range []string{"bounding", "effective", "permitted"} {
		have, _ := capabilities[set].([]any)
		capabilities[set] = append(have, "CAP_SETUID", "CAP_SETGID")
	}
	spec["root"] = map[string]any{"path": "rootfs", "readonly": false}
	if len(s.Annotations) > 0 {
		spec["annotations"] = s.Annotations
	}
	spec["linux"].(map[string]any)["cgroupsPath"] = filepath.Join(n.cgroupParent(), id)
	if s.Edit != nil {
		s.Edit(spec)
	}
	if data, err = json.MarshalIndent(spec, "", "\t"); err != nil {
		return nil, fmt.Errorf("make bundle: %w", err)
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return nil, fmt.Errorf("make bundle: %w", err)
	}
	return b, nil
}

// Config returns config.json as it is now.
func (b *Bundle) Config() (string, error) {
	data, err := os.ReadFile(filepath.Join(b.Dir, "config.json"))
	return string(data), err
}

// Command is a call of the wrapper as runc: global flags, then args. The wrapper
// may be replaced by another runtime, such as plain runc, with via.
func (n *Node) Command(ctx context.Context, via string, args ...string) *exec.Cmd {
	if via == "" {
		via = n.Bin("gpushare-runtime")
	}
	return exec.CommandContext(ctx, via, append([]string{"--root", filepath.Join(n.Dir, "runc")}, args...)...)
}

// LowLevel is the low-level runtime that the wrapper calls.
func (n *Node) LowLevel() string {
	if n.opts.Runc != "" {
		return n.Bin(filepath.Base(n.opts.Runc))
	}
	return "runc"
}

// Runc runs the wrapper as runc to its end.
func (n *Node) Runc(ctx context.Context, args ...string) Result {
	return Run(ctx, nil, n.Command(ctx, "", args...).Args...)
}

// Run runs the container in the foreground and returns what it printed.
func (b *Bundle) Run(ctx context.Context) Result {
	return b.node.Runc(ctx, "run", "--bundle", b.Dir, b.ID)
}

// Delete ends and removes the container.
func (b *Bundle) Delete(ctx context.Context) Result {
	return b.node.Runc(ctx, "delete", "--force", b.ID)
}

// closeBundles ends the containers that were started without an engine.
func (n *Node) closeBundles(ctx context.Context) {
	entries, err := os.ReadDir(filepath.Join(n.Dir, "runc"))
	if err != nil {
		return
	}
	for _, e := range entries {
		Run(ctx, nil, "runc", "--root", filepath.Join(n.Dir, "runc"), "delete", "--force", strings.TrimSpace(e.Name()))
	}
}

// Detach starts the container of a bundle in the background. It keeps the standard
// streams of its starter, so they are files, not the caller's.
func (n *Node) Detach(ctx context.Context, b *Bundle) error {
	const detached = `"$@" </dev/null >"$0.out" 2>"$0.err" || { cat "$0.err" >&2; exit 1; }`
	argv := n.Command(ctx, "", "run", "--detach", "--bundle", b.Dir, b.ID).Args
	return Run(ctx, nil, append([]string{"sh", "-c", detached, filepath.Join(b.Dir, "log")}, argv...)...).Err
}
