// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/simgpu/host"
)

func conditionCommand() *cli.Command {
	return &cli.Command{
		Name:      "condition",
		Usage:     "set what conditional nodes of graphs get, by the name of a kernel near them",
		UsageText: "simgpu condition --dir DIR solve_step=20 found=1",
		Description: `Kernels do nothing, so what they would decide comes from here. KERNEL is the name of
a kernel that the node depends on, or of one in the body of a while. VALUE is 0 or 1
for an if, how often for a while, which body for a switch; at most 1000000.`,
		ArgsUsage: "KERNEL=VALUE…",
		Flags:     []cli.Flag{dirFlag()},
		Action: func(c *cli.Context) error {
			values, err := parseConditions(c.Args().Slice())
			if err != nil {
				return err
			}
			if len(values) == 0 {
				return errors.New("condition: want KERNEL=VALUE, for example solve_step=20")
			}
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			return a.SetConditions(c.Context, values) //nolint:wrapcheck // says everything
		},
	}
}

func parseConditions(args []string) (map[string]uint64, error) {
	m := map[string]uint64{}
	for _, a := range args {
		i := strings.LastIndex(a, "=")
		if i <= 0 {
			return nil, fmt.Errorf("condition %q: want KERNEL=VALUE, for example solve_step=20", a)
		}
		v, err := strconv.ParseUint(a[i+1:], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("condition %q: want a whole number", a)
		}
		if v > host.MaxCondition {
			return nil, fmt.Errorf("condition %q: want at most %d", a, host.MaxCondition)
		}
		m[a[:i]] = v
	}
	return m, nil
}
