// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/packaging/engine"
)

// Codes of a refused and of an undone change of an engine's configuration.
const (
	codeEngineRefused = "GS-ENGINE-REFUSED"
	codeEngineUndone  = "GS-ENGINE-UNDONE"
)

// exitInterrupted is a shell's for a program that SIGINT ended.
const exitInterrupted = 130

func engineFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "engine", Usage: "`ENGINE`: docker or containerd, or both with a comma"},
		&cli.BoolFlag{Name: "dry-run", Usage: "show what would change and touch nothing"},
		&cli.StringFlag{Name: "config", Usage: "the engine's configuration `FILE`, if not the one it reads"},
		&cli.StringFlag{Name: "socket", Usage: "the engine's `SOCKET`, if not the usual one"},
		&cli.BoolFlag{Name: "no-restart", Usage: "reload or restart no engine; say what to run"},
		&cli.BoolFlag{Name: "no-probe", Usage: "start no container to see whether its limit holds"},
	}
}

func (t *terminal) installCommand() *cli.Command {
	return &cli.Command{
		Name: "install", Usage: "tell docker or containerd of gpushare, and check that a limit holds",
		UsageText: "gpushare install --engine docker --dry-run\ngpushare install --engine docker\ngpushare install --engine containerd",
		Flags:     engineFlags(),
		Action:    func(c *cli.Context) error { return t.engines(c, true) },
	}
}

func (t *terminal) uninstallCommand() *cli.Command {
	return &cli.Command{
		Name: "uninstall", Usage: "take gpushare out of docker's or containerd's configuration",
		UsageText: "gpushare uninstall --engine docker --dry-run\ngpushare uninstall --engine docker",
		Flags:     engineFlags(),
		Action:    func(c *cli.Context) error { return t.engines(c, false) },
	}
}

// engines changes one engine after the other; the first that fails ends it.
func (t *terminal) engines(c *cli.Context, install bool) error {
	if a := c.Args().First(); a != "" {
		if a == engine.Docker || a == engine.Containerd {
			return usagef("unexpected argument %q: write gpushare %s --engine %s", a, c.Command.Name, a)
		}
		return usagef("unexpected argument %q; see: gpushare %s --help", a, c.Command.Name)
	}
	names, err := engineNames(c)
	if err != nil {
		return err
	}
	o, err := t.engineOptions(c)
	if err != nil {
		return err
	}
	// The first Ctrl-C takes the change back, a second one ends at once.
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if install && !o.DryRun {
		started, err := engine.StartDaemon(ctx)
		if err != nil {
			return err
		}
		if started {
			o.Say("started %s, now and at each boot", engine.DaemonUnit)
		}
	}
	for _, name := range names {
		o.Engine = name
		change := engine.Uninstall
		if install {
			change = engine.Install
		}
		if err := change(ctx, o); err != nil {
			return engineError(ctx, err)
		}
	}
	return nil
}

func engineNames(c *cli.Context) ([]string, error) {
	names := c.StringSlice("engine")
	if len(names) == 0 {
		return nil, usagef("which engine? write --engine docker or --engine containerd")
	}
	for _, n := range names {
		if n != engine.Docker && n != engine.Containerd {
			return nil, usagef("--engine %q: write docker or containerd; podman and CRI-O are configured by hand", n)
		}
	}
	if len(names) > 1 && (c.String("config") != "" || c.String("socket") != "") {
		return nil, usagef("--config and --socket are one engine's: name one engine")
	}
	return names, nil
}

func (t *terminal) engineOptions(c *cli.Context) (engine.Options, error) {
	exe, err := os.Executable()
	if err != nil {
		return engine.Options{}, fmt.Errorf("find the own binary: %w", err)
	}
	// The command's own --config is the engine's; ours stands before the command.
	ours := c.Lineage()[1]
	cfg, err := configuration(ours)
	if err != nil {
		return engine.Options{}, err
	}
	lib := cfg.LibraryDir
	if lib == "" {
		lib = filepath.Join(filepath.Dir(filepath.Dir(exe)), "lib", "gpushare")
	}
	return engine.Options{
		Config: c.String("config"), Socket: strings.TrimPrefix(c.String("socket"), "unix://"),
		BinDir: filepath.Dir(exe), LibDir: lib,
		DryRun: c.Bool("dry-run"), NoRestart: c.Bool("no-restart"), NoProbe: c.Bool("no-probe"),
		Node: func(ctx context.Context) (v1.Daemon, error) {
			cl, err := client(ours)
			if err != nil {
				return v1.Daemon{}, err
			}
			return cl.Daemon(ctx)
		},
		Out: t.out,
		Say: func(format string, args ...any) { fmt.Fprintln(t.err, "gpushare: "+fmt.Sprintf(format, args...)) },
	}, nil
}

// engineError gives an error its exit status, and a code if it has none.
func engineError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		if errors.Is(err, engine.ErrRolledBack) {
			err = fmt.Errorf("interrupted: %w", engine.ErrRolledBack)
		} else {
			err = fmt.Errorf("interrupted: %w", err)
		}
		return statusError{err, exitInterrupted}
	case v1.Code(err) != "":
		return err
	case errors.Is(err, engine.ErrRefused):
		return statusError{fmt.Errorf("%w  [%s]", err, codeEngineRefused), exitRefused}
	case errors.Is(err, engine.ErrRolledBack):
		return fmt.Errorf("%w  [%s]", err, codeEngineUndone)
	}
	return err
}
