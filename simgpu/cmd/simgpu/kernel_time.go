// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

func kernelTimeCommand() *cli.Command {
	return &cli.Command{
		Name:      "kernel-time",
		Usage:     "set how long kernels run, by function name",
		ArgsUsage: "NAME=TIME…",
		Flags:     []cli.Flag{dirFlag()},
		Action: func(c *cli.Context) error {
			times, err := parseTimes(c.Args().Slice())
			if err != nil {
				return err
			}
			if len(times) == 0 {
				return errors.New("kernel-time: want NAME=TIME, for example k=50us")
			}
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			return a.SetKernelTimes(c.Context, times) //nolint:wrapcheck // says everything
		},
	}
}

func parseTimes(args []string) (map[string]time.Duration, error) {
	m := map[string]time.Duration{}
	for _, a := range args {
		i := strings.LastIndex(a, "=")
		if i <= 0 {
			return nil, fmt.Errorf("kernel time %q: want NAME=TIME, for example k=50us", a)
		}
		d, err := time.ParseDuration(a[i+1:])
		if err != nil || d < 0 {
			return nil, fmt.Errorf("kernel time %q: want a time like 50us or 5ms", a)
		}
		m[a[:i]] = d
	}
	return m, nil
}
