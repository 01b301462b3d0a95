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
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/hook"
	"github.com/gpushare/gpushare/hook/create"
	"github.com/gpushare/gpushare/hook/node"
	"github.com/gpushare/gpushare/internal/config"
)

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
	c, broken := config.Find()
	if broken != nil {
		// That must not keep containers from being stopped, nor those without a GPU
		// from being started.
		c = config.Default()
	}
	low, err := node.LowLevelRuntime(c.Runtimes)
	if err != nil {
		return &hook.Refusal{Code: hook.CodeRuntime, Message: err.Error()}
	}
	daemon := v1.NewClient(c.SocketPath())
	var prepared *create.Prepared
	switch {
	case makes:
		if prepared, err = prepare(c, broken, inv, low, daemon); err != nil {
			return err
		}
	case inv.command == "delete" && !inv.help && inv.unsure == "" && len(inv.ids) == 1:
		release(c, inv, low, daemon)
	}
	if makes || (inv.command == "exec" && inv.unsure == "") {
		if err := closeOnExec(inv.preserveFDs); err != nil {
			prepared.Undo()
			return err
		}
	}
	err = execRuntime(low, args)
	prepared.Undo()
	return &hook.Refusal{Code: hook.CodeRuntime, Message: err.Error()}
}

// prepare claims a share for a GPU container and edits its spec. broken says why c is
// not what the administrator wrote.
func prepare(c *config.Config, broken error, inv *invocation, low string, daemon create.Claims) (*create.Prepared, error) {
	if inv.unsure != "" {
		return nil, &hook.Refusal{Code: hook.CodeUsage, Message: fmt.Sprintf(
			"flag %q is unknown, so the command line cannot be read for certain: write its value behind a = sign", inv.unsure)}
	}
	if inv.config != "" {
		return nil, &hook.Refusal{Code: hook.CodeUsage, Message: "--config is not supported: put the spec into the bundle as config.json"}
	}
	ct := create.Container{
		Bundle: inv.bundle, RuntimeRoot: runtimeRoot(inv, low), PID: os.Getpid(), // which becomes the runtime
		Restore: inv.command == "restore",
	}
	if len(inv.ids) == 1 {
		ct.ID = inv.ids[0]
	} else {
		ct.BadID = fmt.Sprintf("%s needs exactly one container id but has %q", inv.command, inv.ids)
	}
	if broken != nil {
		return nil, create.WithoutConfig(ct, broken)
	}
	return create.Prepare(context.Background(), c, ct, daemon)
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
