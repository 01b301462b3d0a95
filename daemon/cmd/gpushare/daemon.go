// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter/quantity"
)

func (t *terminal) daemonCommand() *cli.Command {
	return &cli.Command{
		Name: "daemon", Usage: "say how the daemon and this node's GPUs are; exit status 3 if it is down, 4 if no GPU is usable",
		UsageText: "gpushare daemon\ngpushare daemon -o json",
		Flags:     []cli.Flag{outputFlag("table or json")},
		Action: func(c *cli.Context) error {
			f, err := form(c, "table", "json")
			if err != nil {
				return err
			}
			cl, err := client(c)
			if err != nil {
				return err
			}
			d, err := cl.Daemon(c.Context)
			if err != nil {
				return err
			}
			if f == "json" {
				err = t.json(d)
			} else {
				t.simulated(d.Simulated)
				err = daemonTable(t.out, d)
			}
			if err == nil && d.Reason != "" {
				// The daemon works; what it is for does not.
				return v1.Errorf(0, v1.CodeNoGPU, "no NVIDIA GPU is usable on this node: %s", d.Reason)
			}
			return err
		},
	}
}

func daemonTable(out io.Writer, d v1.Daemon) error {
	driver := d.DriverVersion
	if driver == "" {
		driver = "none"
	}
	fmt.Fprintf(out, "gpushared %s, pid %d, at unix://%s\ndriver %s, %d containers\n", d.Version, d.PID, d.Socket, driver, d.Containers)
	if d.HostMemoryBytes > 0 || d.HostMemoryPromisedBytes > 0 {
		fmt.Fprintf(out, "host memory lent to containers: %s of %s promised\n", quantity.FormatBytes(d.HostMemoryPromisedBytes), quantity.FormatBytes(d.HostMemoryBytes))
	}
	if d.Reason != "" {
		fmt.Fprintf(out, "no usable GPU: %s\n", d.Reason)
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(out, "warning: %s\n", w)
	}
	for _, g := range d.GPUs {
		for _, why := range g.CostsUnknown {
			fmt.Fprintf(out, "GPU %d: charged on sight, since its cost is not known: %s\n", g.Index, why)
		}
	}
	if len(d.GPUs) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "GPU\tNAME\tMEMORY\tPROMISED\tUSED\tCOMPUTE PROMISED\tCONTAINERS\tCONTEXT\tSTATE")
	for _, g := range d.GPUs {
		used, state, ctx := "?", "ok", quantity.FormatBytes(g.ContextBytes)
		if g.MemoryUsedBytes != nil {
			used = quantity.FormatBytes(*g.MemoryUsedBytes)
		}
		if g.Reason != "" {
			state = g.Reason
		}
		if !g.ContextMeasured {
			ctx += " (assumed)"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", g.Index, g.Name, quantity.FormatBytes(g.MemoryTotalBytes),
			quantity.FormatBytes(g.MemoryPromisedBytes), used, quantity.FormatShare(g.ComputePromisedMilli), g.Containers, ctx, state)
	}
	return w.Flush()
}
