// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command gpushared is the daemon of a node.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/daemon/calibrate"
	"github.com/gpushare/gpushare/internal/config"
	"github.com/gpushare/gpushare/internal/version"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == calibrate.HelperArg {
		if err := calibrate.Helper(os.Args[2], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(run(os.Args, os.Stderr))
}

// run returns the exit status.
func run(args []string, stderr io.Writer) int {
	app := &cli.App{
		Name:            "gpushared",
		Usage:           "keep account of this node's GPUs and give containers their share",
		Version:         version.String(),
		HideHelpCommand: true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "config", Usage: "read `FILE` instead of the config.toml beside the binary or in /etc/gpushare"},
			&cli.StringFlag{Name: "run-dir", Usage: "use `DIR` instead of the run_dir of config.toml"},
			&cli.StringFlag{Name: "log-level", Value: "info", Usage: "`LEVEL` of what is logged on stderr: debug, info, warn or error"},
		},
		Action:         action(stderr),
		ErrWriter:      stderr,
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   func(_ *cli.Context, err error, _ bool) error { return usageError{err} },
	}
	err := app.Run(args)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "gpushared: %v\n", err)
	if errors.As(err, &usageError{}) {
		return 2
	}
	return 1
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func action(stderr io.Writer) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Present() {
			return usageError{fmt.Errorf("unexpected argument %q", c.Args().First())}
		}
		var level slog.Level
		if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
			return usageError{fmt.Errorf("--log-level %q: write debug, info, warn or error", c.String("log-level"))}
		}
		if os.Getuid() != 0 {
			return errors.New("must run as root: it mounts containers' directories and reads the driver's account of all processes")
		}
		cfg, err := configuration(c.String("config"))
		if err != nil {
			return err
		}
		if d := c.String("run-dir"); d != "" {
			cfg.RunDir = d
		}
		log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
		// The first signal ends the daemon in order; at the second the default
		// action, which is to die, is in force again.
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		context.AfterFunc(ctx, stop)
		signal.Ignore(syscall.SIGPIPE)
		return serve(ctx, cfg, log)
	}
}

func configuration(path string) (*config.Config, error) {
	if path != "" {
		return config.Load(path)
	}
	return config.Find()
}
