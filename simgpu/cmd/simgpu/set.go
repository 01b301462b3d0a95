// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/simgpu/host"
)

func gpuFlag() cli.Flag {
	return &cli.StringFlag{Name: "gpu", Value: "0", Usage: "index or UUID of a GPU, or all"}
}

func setCommand() *cli.Command {
	var keys strings.Builder
	keys.WriteString("What can be set:\n")
	w := tabwriter.NewWriter(&keys, 0, 0, 2, ' ', 0)
	for _, s := range host.Settings() {
		_, _ = fmt.Fprintf(w, "  %s\t%s (%s)\n", s.Key, s.Help, s.Unit)
	}
	_ = w.Flush()
	keys.WriteString("auto hands a value back to the model. Names of NVIDIA's nvml-mock-ctl are taken too.")
	return &cli.Command{
		Name:        "set",
		Usage:       "set what the management library (NVML) shows of a GPU: temp=95",
		UsageText:   "simgpu set --dir DIR --gpu 0 temp=95 fan=80\nsimgpu set --dir DIR --gpu all temp=auto",
		ArgsUsage:   "KEY=VALUE…",
		Description: keys.String(),
		Flags:       []cli.Flag{dirFlag(), gpuFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return errors.New("set: want KEY=VALUE, for example temp=95")
			}
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			return a.Set(c.Context, c.String("gpu"), c.Args().Slice()) //nolint:wrapcheck // says everything
		},
	}
}

// readings writes what the management library shows, a line a GPU.
func readings(st host.Status) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nGPU\tTEMP\tPOWER\tFAN\tSM CLOCK\tBUSY\tSTATE\tSET")
	for i, g := range st.GPUs {
		state := fmt.Sprintf("P%d", g.PState)
		if g.Lost {
			state = "lost"
		}
		_, _ = fmt.Fprintf(w, "%d\t%d C\t%d W\t%d%%\t%d MHz\t%d%%\t%s\t%s\n", i, g.TemperatureC, g.PowerMW/1000, g.FanPercent,
			g.SMClockMHz, g.Utilization, state, strings.Join(g.Set, " "))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return migDevices(st)
}

func migDevices(st host.Status) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	head := "\nGPU\tGI\tCI\tSHAPE\tSTART\tMEMORY\tUSED\tSMS\tMIG DEVICE"
	for i, g := range st.GPUs {
		for _, m := range g.Instances {
			if head != "" {
				_, _ = fmt.Fprintln(w, head)
				head = ""
			}
			_, _ = fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%d\t%s\t%s\t%d\t%s\n", i, m.GPUInstance, m.ComputeInstance, m.Shape, m.Start,
				quantity.FormatBytes(m.MemoryBytes), quantity.FormatBytes(m.UsedBytes), m.SMs, m.UUID)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// shapes splits a list of MIG shapes.
func shapes(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

func migCommand() *cli.Command {
	flags := []cli.Flag{dirFlag(), gpuFlag()}
	return &cli.Command{
		Name:  "mig",
		Usage: "cut a GPU into MIG instances",
		Flags: []cli.Flag{dirFlag()},
		Subcommands: []*cli.Command{{
			Name: "create", Usage: "create instances", ArgsUsage: "SHAPE…", Flags: flags,
			UsageText: "simgpu mig create --dir DIR --gpu 0 3g.40gb 2g.20gb",
			Action: func(c *cli.Context) error {
				names := shapes(strings.Join(c.Args().Slice(), ","))
				if len(names) == 0 {
					return errors.New("mig create: want shapes, for example 3g.40gb")
				}
				a, err := adminOf(c)
				if err != nil {
					return err
				}
				return a.CreateMIG(c.Context, c.String("gpu"), names) //nolint:wrapcheck // says everything
			},
		}, {
			Name: "destroy", Usage: "destroy GPU instances and what is in them", ArgsUsage: "GPU-INSTANCE…", Flags: flags,
			UsageText: "simgpu mig destroy --dir DIR --gpu 0 1 2   (numbers as simgpu mig list shows them)",
			Action: func(c *cli.Context) error {
				var ids []uint32
				for _, s := range c.Args().Slice() {
					n, err := strconv.ParseUint(s, 10, 32)
					if err != nil {
						return fmt.Errorf("mig destroy: GPU instance %q: want its number, see simgpu mig list", s)
					}
					ids = append(ids, uint32(n))
				}
				if len(ids) == 0 {
					return errors.New("mig destroy: want numbers of GPU instances, see simgpu mig list")
				}
				a, err := adminOf(c)
				if err != nil {
					return err
				}
				return a.DestroyMIG(c.Context, c.String("gpu"), ids) //nolint:wrapcheck // says everything
			},
		}, {
			Name: "list", Usage: "list the MIG devices of all GPUs", UsageText: "simgpu mig list --dir DIR", Flags: []cli.Flag{dirFlag()},
			Action: func(c *cli.Context) error {
				a, err := adminOf(c)
				if err != nil {
					return err
				}
				st, err := a.Status(c.Context)
				if err != nil {
					return err //nolint:wrapcheck // says everything
				}
				for _, g := range st.GPUs {
					if len(g.Instances) > 0 {
						fmt.Println("SIMULATED MIG devices")
						return migDevices(st)
					}
				}
				fmt.Println("no MIG devices")
				return nil
			},
		}},
	}
}
