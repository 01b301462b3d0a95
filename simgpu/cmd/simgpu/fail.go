// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/simgpu/fault"
	"github.com/gpushare/gpushare/simgpu/host"
)

func failCommand() *cli.Command {
	return &cli.Command{
		Name: "fail", ArgsUsage: "[ID]",
		Usage: "make calls of the driver fail or be slow",
		UsageText: "simgpu fail --dir DIR --call cuMemAlloc --nth 7 --rc CUDA_ERROR_OUT_OF_MEMORY\n" +
			"simgpu fail --dir DIR --call nvmlDeviceGetMemoryInfo --rc 15 --gpu 0 --outputs garbage\n" +
			"simgpu fail --dir DIR --call cuCtxSynchronize --delay 50ms --every 3\n" +
			"simgpu fail --dir DIR --list\nsimgpu fail --dir DIR --clear [ID]",
		Flags: []cli.Flag{
			dirFlag(),
			&cli.StringFlag{Name: "call", Usage: "`NAME` of the call, in all its forms; =NAME: only this one"},
			&cli.StringFlag{Name: "rc", Usage: "`RESULT` that it returns, a number or a name"},
			&cli.StringFlag{Name: "outputs", Usage: "`WHAT` becomes of its results: untouched (default) and garbage do not make the call, written does; garbage with --rc 0: made, then nonsense"},
			&cli.Uint64Flag{Name: "nth", Usage: "only the `N`th call, or from it on with --every or --count", DefaultText: "every one"},
			&cli.Uint64Flag{Name: "every", Usage: "each `N`th call", DefaultText: "1"},
			&cli.Uint64Flag{Name: "count", Usage: "at most `N` calls", DefaultText: "no end"},
			&cli.UintFlag{Name: "gpu", Usage: "only calls about GPU `N` or made in a context there", DefaultText: "any"},
			&cli.UintFlag{Name: "pid", Usage: "only calls of process `PID`", DefaultText: "any"},
			&cli.StringFlag{Name: "cgroup", Usage: "only calls of processes whose control group's path has `TEXT` in it"},
			&cli.BoolFlag{Name: "per-process", Usage: "count each process's calls by themselves"},
			&cli.StringFlag{Name: "delay", Usage: "let the call wait for `TIME` before, at most 1m"},
			&cli.BoolFlag{Name: "list", Usage: "show the rules and how often each has hit"},
			&cli.BoolFlag{Name: "clear", Usage: "take back the rule ID, or all"},
		},
		Action: fail,
	}
}

func fail(c *cli.Context) error {
	a, err := adminOf(c)
	if err != nil {
		return err
	}
	switch {
	case c.Bool("list"):
		rules, err := a.Faults(c.Context)
		if err != nil {
			return err //nolint:wrapcheck // says everything
		}
		return listFaults(rules)
	case c.Bool("clear"):
		id := 0
		if c.NArg() > 0 {
			if id, err = strconv.Atoi(c.Args().First()); err != nil || id < 1 {
				return fmt.Errorf("clear %q: want the number of a rule", c.Args().First())
			}
		}
		return a.RemoveFault(c.Context, id) //nolint:wrapcheck // says everything
	case c.String("call") == "":
		return errors.New("fail: say --call NAME, --list or --clear")
	case c.NArg() > 0:
		return fmt.Errorf("fail: %q is no flag", c.Args().First())
	}
	return addFault(c, a)
}

// small reads a flag whose number must fit 32 bits: cut off, it would mean
// another one.
func small(c *cli.Context, name string) (uint32, error) {
	v := c.Uint(name)
	if uint64(v) > math.MaxUint32 {
		return 0, fmt.Errorf("--%s %d: at most %d", name, v, uint32(math.MaxUint32))
	}
	return uint32(v), nil
}

func addFault(c *cli.Context, a *host.AdminClient) error {
	s := fault.Spec{
		Call: c.String("call"), Nth: c.Uint64("nth"), Every: c.Uint64("every"), Count: c.Uint64("count"),
		RC: fault.Text(c.String("rc")), Outputs: c.String("outputs"),
		Cgroup: c.String("cgroup"), PerProcess: c.Bool("per-process"), Delay: c.String("delay"),
	}
	var err error
	if s.PID, err = small(c, "pid"); err != nil {
		return err
	}
	for _, f := range []string{"nth", "every", "count", "pid"} {
		if c.IsSet(f) && (c.Value(f) == uint64(0) || c.Value(f) == uint(0)) {
			return fmt.Errorf("fail: --%s must be at least 1", f)
		}
	}
	if c.IsSet("gpu") {
		gpu, err := small(c, "gpu")
		if err != nil {
			return err
		}
		s.GPU = &gpu
	}
	r, err := a.AddFault(c.Context, s)
	if err != nil {
		return err //nolint:wrapcheck // says everything
	}
	fmt.Printf("rule %d: %s\n", r.ID, strings.Join(r.Names, " "))
	return nil
}

func listFaults(rules []fault.Rule) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tCALL\tRESULT\tOUTPUTS\tWHEN\tWHOSE\tCALLS\tHITS")
	for _, r := range rules {
		_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", r.ID, r.Call, r.Result(), r.OutputsText(), r.When(), r.Whose(), r.Calls, r.Hits)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
