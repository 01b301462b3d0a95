// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/simgpu/host"
)

// clockFlags are those of up that set the node's clock, and what is kept of it.
func clockFlags() []cli.Flag {
	return []cli.Flag{
		traceFlag(),
		&cli.StringFlag{Name: "clock", Value: "wall", Usage: "`CLOCK` of the node: wall, or virtual (simgpu clock moves it)"},
		&cli.DurationFlag{Name: "start", Usage: "virtual clock: the first moment"},
		&cli.BoolFlag{Name: "lenient", Usage: "virtual clock: do not wait for a client that is away for longer than the grace"},
		&cli.DurationFlag{Name: "grace", Value: time.Second, Usage: "virtual clock: how long a client may be away before it is named"},
		&cli.DurationFlag{Name: "call-cost", Usage: "virtual clock: what a launch, a copy or an event takes the program"},
		&cli.DurationFlag{Name: "query-cost", Value: host.DefaultQueryCost, Usage: "virtual clock: what a query takes that is answered with \"not ready\""},
		&cli.DurationFlag{Name: "read-cost", Value: host.DefaultReadCost, Usage: "virtual clock: what a look at the clock takes"},
	}
}

func clockOf(c *cli.Context) (host.Clock, error) {
	k := host.Clock{
		Start: c.Duration("start"), Lenient: c.Bool("lenient"), Grace: c.Duration("grace"),
		CallCost: c.Duration("call-cost"), QueryCost: c.Duration("query-cost"), ReadCost: c.Duration("read-cost"),
	}
	switch c.String("clock") {
	case "virtual":
		k.Virtual = true
	case "wall":
		for _, f := range []string{"start", "lenient", "grace", "call-cost", "query-cost", "read-cost"} {
			if c.IsSet(f) {
				return k, fmt.Errorf("--%s: only with --clock virtual", f)
			}
		}
	default:
		return k, fmt.Errorf("clock %q: want wall or virtual", c.String("clock"))
	}
	return k, nil
}

func clockCommand() *cli.Command {
	patience := &cli.DurationFlag{Name: "patience", Value: time.Minute, Usage: "wall time after which to give up"}
	move := func(c *cli.Context, m host.ClockMove) error {
		a, err := adminOf(c)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context, c.Duration("patience"))
		defer cancel()
		s, err := a.MoveClock(ctx, m)
		if err != nil {
			return err //nolint:wrapcheck // says everything
		}
		fmt.Println(time.Duration(s.NowNS))
		return nil
	}
	hold := func(on bool) cli.ActionFunc {
		return func(c *cli.Context) error {
			a, err := adminOf(c)
			if err != nil {
				return err
			}
			return a.HoldClock(c.Context, on) //nolint:wrapcheck // says everything
		}
	}
	return &cli.Command{
		Name:  "clock",
		Usage: "show or move a virtual clock",
		Flags: []cli.Flag{dirFlag(), &cli.StringFlag{Name: "o", Usage: "output `FORMAT`: text or json", Value: "text"}},
		UsageText: "simgpu clock --dir DIR\nsimgpu clock step --dir DIR 10ms\n" +
			"simgpu clock run --dir DIR --until 60s\nsimgpu clock run --dir DIR --idle",
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknown("simgpu clock")(c)
			}
			return showClock(c)
		},
		Subcommands: []*cli.Command{
			{
				Name: "step", Usage: "let so much time pass; 0: let clients do what they can at this moment",
				ArgsUsage: "TIME", Flags: []cli.Flag{dirFlag(), patience},
				Action: func(c *cli.Context) error {
					d, err := time.ParseDuration(c.Args().First())
					if err != nil || d < 0 || c.NArg() != 1 {
						return fmt.Errorf("clock step %q: want one time with a unit, for example 10ms", strings.Join(c.Args().Slice(), " "))
					}
					return move(c, host.ClockMove{ByNS: d.Nanoseconds()})
				},
			},
			{
				Name: "run", Usage: "let time pass as fast as it can",
				Flags: []cli.Flag{
					dirFlag(), patience,
					&cli.DurationFlag{Name: "until", Usage: "to this moment"},
					&cli.BoolFlag{Name: "idle", Usage: "until nothing is left to happen"},
				},
				Action: func(c *cli.Context) error {
					if c.IsSet("until") == c.Bool("idle") {
						return errors.New("clock run: want --until TIME or --idle")
					}
					return move(c, host.ClockMove{UntilNS: c.Duration("until").Nanoseconds(), Idle: c.Bool("idle")})
				},
			},
			{Name: "hold", Usage: "keep clients where they are until time is moved", Flags: []cli.Flag{dirFlag()}, Action: hold(true)},
			{Name: "release", Usage: "undo hold", Flags: []cli.Flag{dirFlag()}, Action: hold(false)},
		},
	}
}

func showClock(c *cli.Context) error {
	a, err := adminOf(c)
	if err != nil {
		return err
	}
	s, err := a.Clock(c.Context)
	if err != nil {
		return err //nolint:wrapcheck // says everything
	}
	if c.String("o") == "json" {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(s) //nolint:wrapcheck // a pipe that closed
	}
	if !s.Virtual {
		fmt.Println("wall clock (start a node with --clock virtual to move time)")
		return nil
	}
	fmt.Printf("SIMULATED: virtual clock at %v\n", time.Duration(s.NowNS))
	if s.NextNS >= 0 {
		fmt.Printf("next: %v\n", time.Duration(s.NextNS))
	}
	for _, w := range s.Waiting {
		fmt.Println(w)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for i, k := range s.Clients {
		if i == 0 {
			_, _ = fmt.Fprintln(w, "CLIENT\tPID\tTHREADS\tWAITING\tTIME LIBRARY")
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%v\n", k.Key, k.PID, k.Threads, k.Waiting, k.TimeLibrary)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
