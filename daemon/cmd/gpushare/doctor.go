// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/internal/version"
	"github.com/gpushare/gpushare/packaging/doctor"
)

func (t *terminal) doctorCommand() *cli.Command {
	return &cli.Command{
		Name: "doctor", Usage: "look for what keeps limits from holding; exit status 1 if there is something",
		UsageText: "gpushare doctor\ngpushare doctor -o json",
		Flags: []cli.Flag{
			outputFlag("table or json"),
			&cli.StringFlag{Name: "docker-socket", Usage: "look at the docker at `SOCKET`"},
			&cli.StringFlag{Name: "containerd-socket", Usage: "look at the containerd at `SOCKET`"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unexpected argument %q; see: gpushare doctor --help", c.Args().First())
			}
			f, err := form(c, "table", "json")
			if err != nil {
				return err
			}
			if os.Geteuid() != 0 {
				return errors.New("root is needed to ask the daemon and the engines: run this with sudo")
			}
			exe, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find the own binary: %w", err)
			}
			n := doctor.Node{
				BinDir: filepath.Dir(exe), LibDir: filepath.Join(filepath.Dir(filepath.Dir(exe)), "lib", "gpushare"),
				Version:      version.String(),
				DockerSocket: strings.TrimPrefix(c.String("docker-socket"), "unix://"), ContainerdSocket: strings.TrimPrefix(c.String("containerd-socket"), "unix://"),
				Daemon: func(ctx context.Context) (v1.Daemon, error) {
					cl, err := client(c)
					if err != nil {
						return v1.Daemon{}, err
					}
					return cl.Daemon(ctx)
				},
			}
			n.Config, n.ConfigErr = configuration(c)
			r := doctor.Examine(c.Context, n)
			if f == "json" {
				err = t.json(r)
			} else {
				t.simulated(r.Simulated)
				err = doctorTable(t.out, r)
			}
			if err == nil && r.Failures > 0 {
				return statusError{errSaid, exitFailed}
			}
			return err
		},
	}
}

// errSaid is an error of which the output says everything already.
var errSaid = errors.New("said already")

func doctorTable(out io.Writer, r doctor.Report) error {
	mark := map[string]string{doctor.OK: "ok", doctor.Warning: "WARNING", doctor.Failure: "FAILURE"}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	area := ""
	for _, c := range r.Checks {
		shown := c.Area
		if c.Area == area {
			shown = ""
		}
		area = c.Area
		fmt.Fprintf(w, "%s\t%s\t%s\n", shown, mark[c.State], oneLine(c.Text))
		if c.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", oneLine(c.Fix))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s, %s\n", many(r.Failures, "failure"), many(r.Warnings, "warning"))
	return err
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
