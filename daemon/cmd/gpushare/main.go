// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command gpushare shows and changes what containers may use of this node's
// GPUs, and starts containers with a share.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/internal/commandline"
	"github.com/gpushare/gpushare/internal/config"
	"github.com/gpushare/gpushare/internal/version"
)

func main() {
	t := &terminal{out: os.Stdout, err: os.Stderr, exec: execve}
	os.Exit(t.run(os.Args))
}

// terminal is where a command is typed: its output, and how it becomes another
// program.
type terminal struct {
	out, err io.Writer
	exec     func(argv []string) error
}

// run returns the exit status.
func (t *terminal) run(args []string) int {
	app := &cli.App{
		Name:            "gpushare",
		Usage:           "let containers share this node's GPUs, each held to its share",
		UsageText:       "gpushare install --engine docker      (once, as root)\ngpushare run --gpu-memory 8Gi --gpu-compute 30% --rm IMAGE [COMMAND …]\ngpushare ps\ngpushare set NAME --gpu-memory 12Gi\ngpushare inspect NAME\ngpushare events -f\ngpushare daemon",
		Version:         version.String(),
		HideHelpCommand: true,
		Writer:          t.out,
		ErrWriter:       t.err,
		ExitErrHandler:  func(*cli.Context, error) {},
		OnUsageError:    onUsageError,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "host", Aliases: []string{"H"}, EnvVars: []string{"GPUSHARE_HOST"}, Usage: "talk to the daemon at `SOCKET`, for example unix:///run/gpushare/gpushared.sock"},
			&cli.StringFlag{Name: "config", Usage: "read `FILE` instead of the config.toml beside the binary or in /etc/gpushare"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() && c.Args().First() != "help" {
				return usagef("%w", commandline.Command("gpushare", c.Args().First(), c.App.Commands))
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			t.runCommand(), t.psCommand(), t.setCommand(), t.inspectCommand(), t.eventsCommand(), t.daemonCommand(), t.configCommand(),
			t.installCommand(), t.uninstallCommand(), t.doctorCommand(), t.versionCommand(),
		},
	}
	for _, c := range app.Commands {
		for _, c := range append([]*cli.Command{c}, c.Subcommands...) {
			c.OnUsageError = onUsageError
			c.HideHelpCommand = true
		}
	}
	return t.report(app.Run(commandline.Reorder(args, app, "run")))
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	return usagef("%w", commandline.Flag(c, err, "gpu-"))
}

// client returns a client of the daemon that the flags or config.toml name.
func client(c *cli.Context) (*v1.Client, error) {
	if h := c.String("host"); h != "" {
		return v1.NewClient(h), nil
	}
	cfg, err := configuration(c)
	if err != nil {
		return nil, err
	}
	return v1.NewClient(cfg.SocketPath()), nil
}

func configuration(c *cli.Context) (*config.Config, error) {
	if path := c.String("config"); path != "" {
		return config.Load(path)
	}
	return config.Find()
}

func outputFlag(forms string) cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "table", Usage: "write `FORM`: " + forms}
}

// form returns the output form asked for, one of those allowed.
func form(c *cli.Context, allowed ...string) (string, error) {
	want := c.String("output")
	for _, a := range allowed {
		if a == want {
			return want, nil
		}
	}
	return "", usagef("--output %q: write one of %s", want, strings.Join(allowed, ", "))
}

func (t *terminal) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "say which version this is",
		Flags: []cli.Flag{outputFlag("table or json")},
		Action: func(c *cli.Context) error {
			f, err := form(c, "table", "json")
			if err != nil {
				return err
			}
			if f == "json" {
				return t.json(map[string]string{"apiVersion": v1.APIVersion, "version": version.String()})
			}
			_, err = fmt.Fprintln(t.out, "gpushare", version.String())
			return err
		},
	}
}
