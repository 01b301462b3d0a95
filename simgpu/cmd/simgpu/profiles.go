// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/simgpu/profile"
)

func profilesCommand() *cli.Command {
	return &cli.Command{
		Name:      "profiles",
		Usage:     "list the cards that can be simulated, or print one's profile to copy and edit",
		ArgsUsage: "[PROFILE]",
		UsageText: "simgpu profiles\nsimgpu profiles h100 > mine.yaml",
		Action: func(c *cli.Context) error {
			switch c.NArg() {
			case 0:
				return listProfiles()
			case 1:
				text, err := profile.Text(c.Args().First())
				if err != nil {
					return err //nolint:wrapcheck // says everything
				}
				_, err = os.Stdout.Write(text)
				return err //nolint:wrapcheck // a pipe that closed
			}
			return errors.New("profiles: want one name at most")
		},
	}
}

func listProfiles() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "PROFILE\tCARD (SIMULATED)\tMEMORY\tSMS\tCAPABILITY\tMIG\tNVLINK\tDRIVER")
	for _, name := range profile.Names() {
		p, err := profile.Load(name)
		if err != nil {
			return err //nolint:wrapcheck // says everything
		}
		g := p.GPU
		yes := func(n int) string {
			if n > 0 {
				return fmt.Sprint(n)
			}
			return "-"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d.%d\t%s\t%s\t%s\n", name, g.Name, quantity.FormatBytes(g.Memory.TotalBytes),
			g.Multiprocessor.Count, g.Capability.Major, g.Capability.Minor, yes(g.MIG.MaxInstances), yes(g.NVLink.Links), p.Driver)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
