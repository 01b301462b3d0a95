// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/simgpu/kernel"
)

func kernelTimeCommand() *cli.Command {
	return &cli.Command{
		Name:      "kernel-time",
		Usage:     "set how long kernels run and how they end, by function name",
		UsageText: "simgpu kernel-time --dir DIR k=50us 'gemm*=3us+2us/wave~10%' bad=1ms+trap stuck=hang\nsimgpu kernel-time --dir DIR --file FILE",
		ArgsUsage: "NAME=TIME…",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.StringSliceFlag{Name: "file", Usage: "`FILE` of such rules, one a line; may be repeated"},
		},
		Action: func(c *cli.Context) error {
			rules, err := kernelRules(c.Args().Slice(), c.StringSlice("file"))
			if err != nil {
				return err
			}
			if len(rules) == 0 {
				return errors.New("kernel-time: want NAME=TIME, for example k=50us")
			}
			times := make([]string, len(rules))
			for i, r := range rules {
				times[i] = r.Name + "=" + r.Spec.String()
			}
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			return a.SetKernelTimes(c.Context, times) //nolint:wrapcheck // says everything
		},
	}
}

// kernelRules reads rules from files and then from texts, which so win.
func kernelRules(texts, files []string) (rules []kernel.Rule, err error) {
	for _, path := range files {
		f, err := os.Open(path) //nolint:gosec // the operator's path
		if err != nil {
			return nil, fmt.Errorf("read kernel times: %w", err)
		}
		some, err := kernel.ReadRules(f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("read kernel times from %s: %w", path, err)
		}
		rules = append(rules, some...)
	}
	more, err := kernel.ParseRules(texts)
	return append(rules, more...), err //nolint:wrapcheck // says everything
}
