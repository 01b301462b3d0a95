// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/simgpu/fault"
	"github.com/gpushare/gpushare/simgpu/host"
)

// lostFlag has no default: nobody should lose GPU 0 by leaving it out.
func lostFlag() cli.Flag {
	return &cli.IntFlag{Name: "gpu", Usage: "`NUMBER` of the GPU (required)", Value: -1, DefaultText: "none"}
}

func lostGPU(c *cli.Context) (int, error) {
	if c.Int("gpu") < 0 {
		return 0, errors.New("which GPU? write --gpu NUMBER; simgpu status shows them")
	}
	return c.Int("gpu"), nil
}

func killCommand() *cli.Command {
	return &cli.Command{
		Name:      "kill-gpu",
		Usage:     "lose a GPU: its processes' calls fail from then on, new ones do not see it",
		UsageText: "simgpu kill-gpu --dir DIR --gpu 0\nsimgpu kill-gpu --dir DIR --gpu 0 --xid 48",
		Flags: []cli.Flag{
			dirFlag(),
			lostFlag(),
			&cli.UintFlag{Name: "xid", Value: 79, Usage: "what the kernel driver reports: 79 fallen off the bus, 48 uncorrectable memory error, …"},
			&cli.StringFlag{Name: "rc", Usage: "`RESULT` of CUDA calls from then on, a number or a name", DefaultText: "as the XID has it"},
		},
		Action: func(c *cli.Context) error {
			gpu, err := lostGPU(c)
			if err != nil {
				return err
			}
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			xid, err := small(c, "xid")
			if err != nil {
				return err
			}
			k := host.Kill{GPU: gpu, XID: xid, RC: fault.Text(c.String("rc"))}
			return a.KillGPU(c.Context, k) //nolint:wrapcheck // says everything
		},
	}
}

func reviveCommand() *cli.Command {
	return &cli.Command{
		Name:  "revive-gpu",
		Usage: "reset a lost GPU; refused while processes hold it",
		Flags: []cli.Flag{dirFlag(), lostFlag()},
		Action: func(c *cli.Context) error {
			gpu, err := lostGPU(c)
			if err != nil {
				return err
			}
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			return a.ReviveGPU(c.Context, gpu) //nolint:wrapcheck // says everything
		},
	}
}
