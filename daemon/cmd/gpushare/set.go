// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
)

func (t *terminal) setCommand() *cli.Command {
	return &cli.Command{
		Name: "set", Usage: "change the limits of a running container",
		ArgsUsage: "CONTAINER",
		UsageText: "gpushare set NAME --gpu-memory 12Gi\ngpushare set 3f2a --gpu-compute 40% --gpu-compute-max 60%\ngpushare set NAME --gpu-memory 6Gi --soft",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "gpu-memory", Usage: "limit of device memory, `SIZE` like 8Gi, 512Mi or 25%"},
			&cli.StringFlag{Name: "gpu-compute", Usage: "guaranteed `SHARE` of the GPU's time, like 30% or 0.3"},
			&cli.StringFlag{Name: "gpu-compute-max", Usage: "most GPU time that it may use, a `SHARE` or none"},
			&cli.StringFlag{Name: "gpu-profile", Usage: "memory and compute by `NAME`, like 1of4 or slice-4g, instead of the three above"},
			&cli.StringFlag{Name: "gpu-host-memory", Usage: "host memory for what does not fit into the limit, `SIZE` like 8Gi, 0B for none"},
			&cli.BoolFlag{Name: "soft", Usage: "allow a limit of memory, or of host memory, below what is in use: nothing is taken away, new allocations are refused"},
			outputFlag("table or json"),
		},
		Action: t.set,
	}
}

func (t *terminal) set(c *cli.Context) error {
	f, err := form(c, "table", "json")
	if err != nil {
		return err
	}
	if c.NArg() != 1 {
		return usagef("which container? Give one name or id: gpushare set CONTAINER --gpu-memory 8Gi (see: gpushare ps)")
	}
	req := v1.ResizeRequest{
		Memory: c.String("gpu-memory"), Compute: c.String("gpu-compute"), ComputeMax: c.String("gpu-compute-max"),
		Profile: c.String("gpu-profile"), HostMemory: c.String("gpu-host-memory"), Soft: c.Bool("soft"), CommandLine: true,
	}
	for _, name := range []string{"gpu-memory", "gpu-compute", "gpu-compute-max", "gpu-profile", "gpu-host-memory"} {
		if c.IsSet(name) && c.String(name) == "" {
			return usagef("--%s is empty; see: gpushare set --help", name)
		}
	}
	if err := checkWords(req); err != nil {
		return err
	}
	cl, err := client(c)
	if err != nil {
		return err
	}
	r, err := cl.Resize(c.Context, c.Args().First(), req)
	if err != nil {
		return err
	}
	if f == "json" {
		return t.json(r)
	}
	name := r.Name
	if name == "" {
		name = trunc(r.ID, false)
	}
	for i := range r.Old {
		fmt.Fprintf(t.out, "%s: GPU %d: %s\n", name, r.New[i].GPUIndex, changes(r.Old[i], r.New[i]))
	}
	return nil
}

// checkWords reads the quantities here too, so that a mistake is marked where it
// was typed.
func checkWords(req v1.ResizeRequest) error {
	if req.Memory == "" && req.Compute == "" && req.ComputeMax == "" && req.Profile == "" && req.HostMemory == "" {
		return usagef("nothing to change: give --gpu-memory, --gpu-compute, --gpu-compute-max, --gpu-profile or --gpu-host-memory")
	}
	if req.HostMemory != "" {
		if _, err := quantity.ParseHostMemory(req.HostMemory, quantity.Docker); err != nil {
			return flagError(&limiter.FieldError{Field: "host-memory", Err: err})
		}
	}
	if req.Profile != "" {
		_, err := limiter.Parse(limiter.Words{Memory: req.Memory, Compute: req.Compute, ComputeMax: req.ComputeMax, Profile: req.Profile}, quantity.Docker)
		if err != nil {
			return flagError(err)
		}
		return nil
	}
	if req.Memory != "" {
		if _, err := quantity.ParseMemory(req.Memory, quantity.Docker); err != nil {
			return flagError(&limiter.FieldError{Field: "memory", Err: err})
		}
	}
	if req.Compute != "" {
		if _, err := quantity.ParseShare(req.Compute); err != nil {
			return flagError(&limiter.FieldError{Field: "compute", Err: err})
		}
	}
	if req.ComputeMax != "" {
		if _, err := quantity.ParseCeiling(req.ComputeMax); err != nil {
			return flagError(&limiter.FieldError{Field: "compute-max", Err: err})
		}
	}
	return nil
}

// changes says old → new of what changed.
func changes(old, now v1.Limits) string {
	out := ""
	add := func(name, from, to string) {
		if from != to {
			if out != "" {
				out += ", "
			}
			out += name + " " + from + " → " + to
		}
	}
	from, to := quantity.FormatBytes(old.MemoryBytes), quantity.FormatBytes(now.MemoryBytes)
	if from == to && old.MemoryBytes != now.MemoryBytes { // differ by less than is shown
		from, to = fmt.Sprintf("%d B", old.MemoryBytes), fmt.Sprintf("%d B", now.MemoryBytes)
	}
	add("memory", from, to)
	add("host-memory", quantity.FormatBytes(old.HostMemoryBytes), quantity.FormatBytes(now.HostMemoryBytes))
	add("compute", guarantee(old.ComputeMilli), guarantee(now.ComputeMilli))
	add("compute-max", ceiling(old.ComputeMaxMilli), ceiling(now.ComputeMaxMilli))
	if out == "" {
		return "unchanged"
	}
	return out
}

func guarantee(milli uint32) string {
	if milli == 0 {
		return "no guarantee"
	}
	return quantity.FormatShare(milli)
}

func ceiling(milli uint32) string {
	if milli >= 1000 {
		return quantity.None
	}
	return quantity.FormatShare(milli)
}
