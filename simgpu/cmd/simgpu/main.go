// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command simgpu runs a node of SIMULATED GPUs: the host process, the files of
// the node, and the operator's view of both. Under the name simgpu-cdi-hook it
// is the container hook that the node's CDI specification names.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/internal/commandline"
	"github.com/gpushare/gpushare/internal/version"
)

func main() {
	app := &cli.App{
		Name:  "simgpu",
		Usage: "run a node of SIMULATED GPUs",
		UsageText: "simgpu up --dir DIR --profile 4xa100,2xt4 --detach\n" +
			"LD_LIBRARY_PATH=DIR/lib your-cuda-program\n" +
			"simgpu status --dir DIR\n" +
			"simgpu down --dir DIR\n" +
			"simgpu COMMAND --help",
		Version:         version.String(),
		HideHelpCommand: true,
		Commands: []*cli.Command{
			upCommand(), statusCommand(), downCommand(), profilesCommand(), // the node
			kernelTimeCommand(), engineCommand(), conditionCommand(), clockCommand(), traceCommand(), // time
			setCommand(), migCommand(), // what NVML shows
			failCommand(), killCommand(), reviveCommand(), // what goes wrong
			createSymlinksCommand(), updateLdcacheCommand(),
		},
		Action:         unknown(""),
		OnUsageError:   onUsageError,
		ExitErrHandler: func(*cli.Context, error) {},
	}
	prepare("simgpu", app.Commands)
	if err := app.Run(commandline.Reorder(os.Args, app)); err != nil {
		fmt.Fprintln(os.Stderr, "simgpu:", err)
		os.Exit(1)
	}
}

// prepare lets commands say in a line what is wrong with how they were typed.
func prepare(parent string, commands []*cli.Command) {
	for _, c := range commands {
		name := parent + " " + c.Name
		c.OnUsageError = onUsageError
		c.HideHelpCommand = true
		switch {
		case len(c.Subcommands) > 0 && c.Action == nil:
			c.Action = unknown(name)
		case len(c.Subcommands) == 0 && c.ArgsUsage == "" && !c.Hidden && c.Name != "up": // which knows what was meant
			c.Action = noArguments(name, c.Action)
		}
		prepare(name, c.Subcommands)
	}
}

func onUsageError(c *cli.Context, err error, _ bool) error { return commandline.Flag(c, err) }

// unknown is the action of what only has commands, of the program itself if name
// is empty: help, or an error if it was given a word that is none of them.
func unknown(name string) cli.ActionFunc {
	return func(c *cli.Context) error {
		word, commands := c.Args().First(), c.App.Commands
		if name != "" {
			commands = c.Command.Subcommands
		}
		switch {
		case word != "" && word != "help":
			return commandline.Command(strings.TrimSpace("simgpu "+strings.TrimPrefix(name, "simgpu ")), word, commands)
		case name == "":
			return cli.ShowAppHelp(c)
		}
		return cli.ShowSubcommandHelp(c)
	}
}

// noArguments refuses words that a command would not look at.
func noArguments(name string, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Present() {
			if _, err := directory(c); err != nil {
				return err
			}
			return fmt.Errorf("%q: %s takes no such word; see: %s --help", c.Args().First(), name, name)
		}
		return action(c)
	}
}

// dirFlag is required, by adminOf and directory, whose error is one line.
func dirFlag() cli.Flag {
	return &cli.StringFlag{Name: "dir", Usage: "the node's `DIRECTORY` (required)"}
}

// directory returns what --dir says, of the command or of one around it.
func directory(c *cli.Context) (string, error) {
	for _, x := range c.Lineage() {
		if dir := x.String("dir"); dir != "" {
			return dir, nil
		}
	}
	if c.Args().Present() {
		return "", fmt.Errorf("the node's directory is missing: write --dir %s, if that is it", c.Args().First())
	}
	return "", errors.New("the node's directory is missing: write --dir DIR")
}
