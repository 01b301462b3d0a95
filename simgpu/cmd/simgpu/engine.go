// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/simgpu/host"
)

// policies are the slices of nvidia-smi compute-policy's classes, as a guide to
// it lists them; NVIDIA documents no figures.
var policies = map[string]time.Duration{
	"short": 2 * time.Millisecond, "medium": 10 * time.Millisecond, "long": 30 * time.Millisecond,
}

func engineCommand() *cli.Command {
	return &cli.Command{
		Name:      "engine",
		Usage:     "change how GPUs share their time, while they run",
		UsageText: "simgpu engine --dir DIR --slice 5ms --switch-cost 20us\nsimgpu engine --dir DIR --gpu 0 --timeslice long",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.IntFlag{Name: "gpu", Value: -1, Usage: "index of the GPU", DefaultText: "all"},
			&cli.DurationFlag{Name: "slice", Usage: "turn of a context while others have work", DefaultText: "unchanged"},
			&cli.StringFlag{Name: "timeslice", Usage: "the same by `CLASS`: short, medium or long"},
			&cli.DurationFlag{Name: "switch-cost", Usage: "engine time lost when contexts change", DefaultText: "unchanged"},
			&cli.DurationFlag{Name: "watchdog", Usage: "a kernel that hangs ends its context after this; 0: never", DefaultText: "unchanged"},
		},
		Action: func(c *cli.Context) error {
			change := host.EngineChange{GPU: c.Int("gpu")}
			for flag, to := range map[string]**time.Duration{
				"slice": &change.Slice, "switch-cost": &change.SwitchCost, "watchdog": &change.Watchdog,
			} {
				if c.IsSet(flag) {
					d := c.Duration(flag)
					*to = &d
				}
			}
			if class := c.String("timeslice"); class != "" {
				d, ok := policies[class]
				if !ok {
					return fmt.Errorf("timeslice %q: want short, medium or long", class)
				}
				if change.Slice != nil {
					return errors.New("engine: --slice and --timeslice say the same thing: give one of them")
				}
				change.Slice = &d
			}
			if change.Slice == nil && change.SwitchCost == nil && change.Watchdog == nil {
				return errors.New("engine: want --slice, --timeslice, --switch-cost or --watchdog")
			}
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			return a.SetEngine(c.Context, change) //nolint:wrapcheck // says everything
		},
	}
}
