// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/simgpu/fault"
)

// faultFlags are those of up that make the driver worse than it is.
func faultFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "absent", Usage: "`NAME` that the driver's libraries lack, in all its forms (=NAME: only that one); may be repeated"},
		&cli.StringFlag{Name: "faults", Usage: "YAML `FILE` of calls that fail (see simgpu fail)"},
	}
}

// faultsOf puts them into s, whose driver is known.
func faultsOf(c *cli.Context, s *setup) error {
	for _, name := range c.StringSlice("absent") {
		names, _, err := fault.Names(s.host.Driver, strings.TrimSpace(name))
		if err != nil {
			return fmt.Errorf("absent: %w", err)
		}
		s.layout.Absent = append(s.layout.Absent, names...)
	}
	path := c.String("faults")
	if path == "" {
		return nil
	}
	var err error
	if s.host.Faults, err = fault.ReadFile(path); err != nil {
		return err //nolint:wrapcheck // says everything
	}
	if err := fault.Check(s.host.Driver, s.host.Faults); err != nil {
		return fmt.Errorf("faults %s: %w", path, err)
	}
	return nil
}
