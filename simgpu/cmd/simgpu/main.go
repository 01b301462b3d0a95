// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Command simgpu runs a node of SIMULATED GPUs: the host process, the files of
// the node, and the operator's view of both. Under the name simgpu-cdi-hook it
// is the container hook that the node's CDI specification names.
package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/internal/version"
)

func main() {
	app := &cli.App{
		Name:    "simgpu",
		Usage:   "run a node of SIMULATED GPUs",
		Version: version.String(),
		Commands: []*cli.Command{
			upCommand(), statusCommand(), downCommand(), kernelTimeCommand(), engineCommand(), conditionCommand(),
			profilesCommand(), clockCommand(), traceCommand(), failCommand(), killCommand(), reviveCommand(),
			setCommand(), migCommand(),
			createSymlinksCommand(), updateLdcacheCommand(),
		},
		ExitErrHandler: func(*cli.Context, error) {},
	}
	if err := app.Run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "simgpu:", err)
		os.Exit(1)
	}
}

func dirFlag() cli.Flag {
	return &cli.StringFlag{Name: "dir", Usage: "the node's `DIRECTORY`", Required: true}
}
