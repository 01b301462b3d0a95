// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/simgpu/host"
	"github.com/gpushare/gpushare/simgpu/node"
)

func adminOf(c *cli.Context) (*host.AdminClient, error) {
	dir, err := directory(c)
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find node directory: %w", err)
	}
	return host.NewAdminClient(node.Layout{Dir: dir}.Admin()), nil
}

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show the simulator's own account of memory and GPU time",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.StringFlag{Name: "o", Usage: "output `FORMAT`: table or json", Value: "table"},
			&cli.BoolFlag{Name: "reset", Usage: "reset high-water marks and GPU times instead"},
		},
		Action: func(c *cli.Context) error {
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			if c.Bool("reset") {
				return a.Reset(c.Context) //nolint:wrapcheck // says everything
			}
			st, err := a.Status(c.Context)
			if err != nil {
				return err //nolint:wrapcheck // says everything
			}
			switch c.String("o") {
			case "json":
				e := json.NewEncoder(os.Stdout)
				e.SetIndent("", "  ")
				return e.Encode(st) //nolint:wrapcheck // a pipe that closed
			case "table":
				return table(st)
			}
			return fmt.Errorf("output format %q: want table or json", c.String("o"))
		},
	}
}

func table(st host.Status) error {
	fmt.Printf("SIMULATED GPUs, driver %s, CUDA %d.%d\n", st.Driver, st.CUDA/1000, st.CUDA%1000/10)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "GPU\tPROFILE\tNAME\tMEMORY")
	for _, g := range st.GPUs {
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", g.GPU, g.Profile, g.Name, quantity.FormatBytes(g.NVMLBytes))
	}
	_, _ = fmt.Fprintln(w)
	row := func(kind, name string, u host.Use) {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%d\t%v\n", kind, name, u.GPU,
			quantity.FormatBytes(u.UsedBytes), quantity.FormatBytes(u.HighBytes), u.Contexts,
			time.Duration(u.GPUTimeNS).Round(time.Microsecond))
	}
	_, _ = fmt.Fprintln(w, "KIND\tNAME\tGPU\tUSED\tHIGH\tCONTEXTS\tGPU TIME")
	for _, g := range st.GPUs {
		row("gpu", g.UUID, g.Use)
	}
	idle := func(u host.Use) bool { return u.HighBytes == 0 && u.GPUTimeNS == 0 && u.Contexts == 0 }
	for _, p := range st.Processes {
		for _, u := range p.GPUs {
			if !idle(u) {
				row("process", fmt.Sprintf("%d %s", p.PID, p.Command), u)
			}
		}
	}
	for _, g := range st.Cgroups {
		for _, u := range g.GPUs {
			if !idle(u) {
				row("cgroup", g.Path, u)
			}
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return readings(st)
}
