// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/simgpu/trace"
)

func traceFlag() cli.Flag {
	return &cli.StringFlag{Name: "trace", Usage: "write what happens to `FILE`; beyond 256 MiB it goes on from the start, the part before in FILE.1"}
}

// traceOf returns the absolute path: the host process may run elsewhere.
func traceOf(c *cli.Context) (string, error) {
	if c.String("trace") == "" {
		return "", nil
	}
	p, err := filepath.Abs(c.String("trace"))
	if err != nil {
		return "", fmt.Errorf("find trace: %w", err)
	}
	return p, nil
}

func traceCommand() *cli.Command {
	return &cli.Command{
		Name:  "trace",
		Usage: "print the trace so far of a node that was started with --trace",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.BoolFlag{Name: "chrome", Usage: "as JSON for chrome://tracing and ui.perfetto.dev"},
		},
		Action: func(c *cli.Context) error {
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			if !c.Bool("chrome") {
				return a.Trace(c.Context, os.Stdout) //nolint:wrapcheck // says everything
			}
			r, w := io.Pipe()
			go func() { w.CloseWithError(a.Trace(c.Context, w)) }()
			return trace.Chrome(r, os.Stdout) //nolint:wrapcheck // says everything
		},
	}
}
