// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

func (t *terminal) psCommand() *cli.Command {
	return &cli.Command{
		Name: "ps", Usage: "list the containers that hold a share and what they use",
		UsageText: "gpushare ps\ngpushare ps -q\ngpushare ps -o wide --no-trunc\ngpushare ps -o json",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "only the containers' ids"},
			&cli.BoolFlag{Name: "no-trunc", Usage: "ids in full"},
			outputFlag("table, wide or json"),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unexpected argument %q; see: gpushare ps --help", c.Args().First())
			}
			f, err := form(c, "table", "wide", "json")
			if err != nil {
				return err
			}
			cl, err := client(c)
			if err != nil {
				return err
			}
			list, err := cl.Containers(c.Context)
			if err != nil {
				return err
			}
			switch {
			case c.Bool("quiet"):
				for _, one := range list.Containers {
					fmt.Fprintln(t.out, trunc(one.ID, c.Bool("no-trunc")))
				}
				return nil
			case f == "json":
				return t.json(list)
			}
			t.simulated(list.Simulated)
			return psTable(t.out, list, f == "wide", c.Bool("no-trunc"))
		},
	}
}

// psTable writes one row for each container and GPU. There is a column HOSTMEM if
// any container has host memory.
func psTable(out io.Writer, list v1.ContainerList, wide, full bool) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	lent := slices.ContainsFunc(list.Containers, func(c v1.Container) bool { return hostMemory(c) != "-" })
	head := "CONTAINER\tENGINE\tGPU\tMEMORY\tCOMPUTE\tTHROTTLED\tDENIED\tSTATE"
	if wide {
		head = "CONTAINER\tID\tENGINE\tPID\tPROCS\tGPU\tUUID\tMEMORY\tPEAK\tDRIVER\tCOMPUTE\tTHROTTLED\tDENIED\tLAUNCHES\tSTATE"
	}
	if lent {
		head = strings.Replace(head, "\tCOMPUTE", "\tHOSTMEM\tCOMPUTE", 1)
	}
	fmt.Fprintln(w, head)
	for _, c := range list.Containers {
		host := ""
		if lent {
			host = hostMemory(c) + "\t"
		}
		for _, g := range c.GPUs {
			id := trunc(c.ID, full)
			name := c.Name
			if name == "" {
				name = id
			}
			if !wide {
				fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s%s\t%s\t%d\t%s\n", name, c.Engine, g.Index,
					memory(g), host, compute(g), percent(g.ThrottledMilli), g.Denied, condition(c))
				continue
			}
			driver := "?"
			if g.MemoryDriverBytes != nil {
				driver = quantity.FormatBytes(*g.MemoryDriverBytes)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s%s\t%s\t%d\t%d\t%s\n", name, id, c.Engine, c.PID, c.Processes,
				g.Index, g.UUID, memory(g), quantity.FormatBytes(g.MemoryPeakBytes), driver,
				host, compute(g), percent(g.ThrottledMilli), g.Denied, g.Launches, condition(c))
		}
	}
	return w.Flush()
}

// hostMemory is use and limit of the host's memory; the container's, so the same
// for each of its GPUs.
func hostMemory(c v1.Container) string {
	if c.HostMemoryLimitBytes == 0 && c.HostMemoryUsedBytes == 0 {
		return "-"
	}
	return part(c.HostMemoryUsedBytes, c.HostMemoryLimitBytes)
}

func trunc(id string, full bool) string {
	if full {
		return id
	}
	return v1.ShortID(id)
}

// memory is use and limit of the GPU's memory.
func memory(g v1.ContainerGPU) string { return part(g.MemoryUsedBytes, g.MemoryLimitBytes) }

// part is use and limit in the limit's unit; without a limit, which was taken back
// while it was in use, in that of the use.
func part(used, limit uint64) string {
	for _, u := range []struct {
		shift uint
		unit  string
	}{{40, "TiB"}, {30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if limit >= 1<<u.shift || limit == 0 && used >= 1<<u.shift {
			one := float64(uint64(1) << u.shift)
			return fmt.Sprintf("%.1f/%.1f %s", float64(used)/one, float64(limit)/one, u.unit)
		}
	}
	return fmt.Sprintf("%d/%d B", used, limit)
}

// compute is use and share: the guarantee, and the ceiling where it differs.
func compute(g v1.ContainerGPU) string {
	share := quantity.FormatShare(g.ComputeMilli)
	switch open := g.ComputeMaxMilli >= region.MilliGPU; {
	case g.ComputeMilli == g.ComputeMaxMilli:
	case g.ComputeMilli == 0 && open:
		share = "-"
	case g.ComputeMilli == 0:
		share = "max " + quantity.FormatShare(g.ComputeMaxMilli)
	case open:
		share += "+"
	default:
		share += "-" + quantity.FormatShare(g.ComputeMaxMilli)
	}
	return percent(g.ComputeUsedMilli) + "/" + share
}

// percent is thousandths as whole per cent.
func percent(milli uint32) string { return fmt.Sprintf("%d%%", (milli+5)/10) }

func condition(c v1.Container) string {
	s := c.State
	if c.Reason != "" {
		s += ": " + c.Reason
	}
	if c.Phase == v1.PhasePending {
		s += " (starting)"
	}
	return s
}
