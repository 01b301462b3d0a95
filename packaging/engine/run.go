// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/internal/config"
)

// undoTimeout bounds taking a change back, also after an interrupt.
const undoTimeout = 30 * time.Second

// reloadTimeout is how long an engine may take to read a new configuration.
const reloadTimeout = 10 * time.Second

func open(ctx context.Context, o Options) (driver, error) {
	if os.Geteuid() != 0 {
		return nil, refuse("root is needed to change an engine's configuration: run this with sudo")
	}
	switch o.Engine {
	case Docker:
		return newDocker(ctx, o)
	case Containerd:
		return newContainerd(ctx, o)
	}
	return nil, refuse("no engine is called %q; docker and containerd are known", o.Engine)
}

// Install tells an engine of gpushare and checks that a container is held to its
// limit. A second call finds nothing to change and only checks. Where a check fails
// or ctx ends, everything is as before and the error is ErrRolledBack; ErrRefused is
// returned before anything was touched.
func Install(ctx context.Context, o Options) error {
	d, err := open(ctx, o)
	if err != nil {
		return err
	}
	if err := o.ready(ctx); err != nil {
		return err
	}
	e, err := d.plan(ctx, true)
	if err != nil {
		return err
	}
	for _, n := range e.notes {
		o.Say("note: %s", n)
	}
	same := bytes.Equal(e.file.content(), e.after) && e.file.exists == (e.after != nil)
	if o.DryRun {
		o.show(e, same)
		return nil
	}
	undo := func() error { return nil }
	if same {
		o.Say("no change: %s has %q already", e.file.path, Handler)
	} else {
		unlock, err := e.file.lock()
		if err != nil {
			return err
		}
		defer unlock()
		if undo, err = e.commit(); err != nil {
			return err
		}
		o.Say("written: %s (%s)", e.file.path, original(e))
	}
	err = o.settle(ctx, d, same)
	if err == nil || same {
		return err
	}
	return rollBack(ctx, d, e.file.content(), undo, err)
}

// original says what an uninstall puts back.
func original(e *edit) string {
	if e.base == nil {
		return "there was no such file before"
	}
	return "the original is kept as " + e.file.backupPath()
}

// settle makes the engine take the files, and checks that it has.
func (o Options) settle(ctx context.Context, d driver, same bool) error {
	if err := d.check(ctx); err != nil {
		return err
	}
	todo := ""
	have, err := d.knows(ctx)
	if !same || err != nil || !have {
		if todo, err = d.activate(ctx); err != nil {
			return err
		}
		if todo != "" {
			o.Say("still to do: %s; then run this again to check it", todo)
		} else if err := o.await(ctx, d, true); err != nil {
			return err
		}
	}
	if todo == "" {
		o.Say("%s knows %q", o.Engine, Handler)
	}
	if o.NoProbe || (todo != "" && o.Engine == Docker) {
		return nil
	}
	node, err := o.Node(ctx)
	if err != nil {
		return err
	}
	limit, err := probeLimit(node)
	if err != nil {
		return err
	}
	begin := time.Now()
	err = d.probe(ctx, limit)
	if err != nil && strings.Contains(err.Error(), string("["+v1.CodeNoFit+"]")) {
		o.Say("no probe: the GPUs have no %d MiB left for it; run this again when they have", limit>>20)
		return nil
	}
	if err != nil {
		return err
	}
	o.Say("a probe container was denied at its limit of %d MiB (%.1f s)", limit>>20, time.Since(begin).Seconds())
	return nil
}

// await waits until the engine has our handler, or has it no more.
func (o Options) await(ctx context.Context, d driver, want bool) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	for {
		have, err := d.knows(ctx)
		if err == nil && have == want {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond): // engines say nothing when they have read their files
			continue
		}
		verb := "does not know"
		if !want {
			verb = "still knows"
		}
		if err != nil && !errors.Is(err, ctx.Err()) {
			return fmt.Errorf("ask %s whether it knows %q: %w", o.Engine, Handler, err)
		}
		return fmt.Errorf("%s was told to read its configuration, and %s %q after %v; its log says why (journalctl -u %s)", o.Engine, verb, Handler, reloadTimeout, o.Engine)
	}
}

// probeLimit is a limit that a small program can reach: a context and a little more.
func probeLimit(node v1.Daemon) (uint64, error) {
	var most uint64
	for _, g := range node.GPUs {
		if g.Reason == "" {
			most = max(most, g.ContextBytes)
		}
	}
	if most == 0 {
		return 0, &v1.Error{Code: v1.CodeNoGPU, Message: "gpushared has no usable GPU to probe with: " + node.Reason}
	}
	const mib = 1 << 20
	return (most+mib-1)/mib*mib + 64*mib, nil
}

// ready refuses what could not work before anything is touched.
func (o Options) ready(ctx context.Context) error {
	programs := map[string]string{Docker: "gpushare-runtime", Containerd: "containerd-shim-gpushare-v1"}
	path := filepath.Join(o.BinDir, programs[o.Engine])
	info, err := os.Stat(path)
	if err != nil {
		return refuse("%s is not there: %w", path, err)
	}
	if info.Mode()&0o111 == 0 {
		return refuse("%s cannot be executed (mode %04o)", path, info.Mode().Perm())
	}
	if err := config.CheckRootOwned(path); err != nil {
		return refuse("the engine would run %s as root: %w", path, err)
	}
	if o.DryRun || o.NoProbe {
		return nil
	}
	if _, err := probeProgram(o); err != nil {
		return refuse("%w", err)
	}
	node, err := o.Node(ctx)
	if err == nil {
		_, err = probeLimit(node)
	}
	if err != nil {
		return fmt.Errorf("%w; nothing was changed, since no container could be tried; --no-probe does without", err)
	}
	return nil
}

func (o Options) show(e *edit, same bool) {
	if same {
		o.Say("no change: %s is as it should be", e.file.path)
		return
	}
	fmt.Fprint(o.Out, Diff(e.file.path, e.file.content(), e.after))
	o.Say("nothing was touched (--dry-run). %s", e.activation)
}

// rollBack puts the old content back and makes the engine take it.
func rollBack(ctx context.Context, d driver, old []byte, undo func() error, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	forgetErr := forget(ctx, d, old) // the file is put back whatever the engine says
	if err := undo(); err != nil {
		return fmt.Errorf("%w; and the old configuration could not be put back: %w", cause, err)
	}
	// What is left to do is what was left before: the engine runs as it did.
	if _, err := d.activate(ctx); err != nil || forgetErr != nil {
		err = errors.Join(forgetErr, err)
		return fmt.Errorf("%w (%w, but the engine has not read it: %w)", cause, ErrRolledBack, err)
	}
	return fmt.Errorf("%w (%w)", cause, ErrRolledBack)
}

// Uninstall takes gpushare out of an engine's configuration: the file is as it was,
// byte for byte, or, if somebody has edited it since, without our key.
func Uninstall(ctx context.Context, o Options) error {
	d, err := open(ctx, o)
	if err != nil {
		return err
	}
	e, err := d.plan(ctx, false)
	if err != nil {
		return err
	}
	same := bytes.Equal(e.file.content(), e.after) && e.file.exists == (e.after != nil)
	if same {
		o.Say("no change: %s does not have %q", e.file.path, Handler)
		if o.DryRun {
			return nil
		}
		return e.file.forget()
	}
	for _, n := range e.notes {
		o.Say("note: %s", n)
	}
	if o.DryRun {
		o.show(e, same)
		return nil
	}
	if l, ok := d.(interface {
		users(context.Context) []string
	}); ok {
		if names := l.users(ctx); len(names) > 0 {
			o.Say("note: containers made with the runtime %q cannot be started again without it: %s", Handler, strings.Join(names, ", "))
		}
	}
	unlock, err := e.file.lock()
	if err != nil {
		return err
	}
	defer unlock()
	undo := func() error { return e.file.put(e.file.content()) }
	err = forget(ctx, d, e.after)
	if err == nil {
		err = e.file.put(e.after)
	}
	if err == nil {
		err = o.unsettle(ctx, d)
	}
	if err != nil {
		return rollBack(ctx, d, e.file.content(), undo, err)
	}
	o.Say("taken out: %s is without %q", e.file.path, Handler)
	return e.file.forget()
}

func (o Options) unsettle(ctx context.Context, d driver) error {
	if err := d.check(ctx); err != nil {
		return err
	}
	todo, err := d.activate(ctx)
	if err != nil {
		return err
	}
	if todo != "" {
		o.Say("still to do: %s", todo)
		return nil
	}
	if err := o.await(ctx, d, false); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}
