// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpushare/gpushare/internal/suggest"
	"github.com/gpushare/gpushare/simgpu/api"
)

// driverFlags are those of up that choose the driver.
func driverFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "driver", Usage: "`RELEASE` of the driver: " + strings.Join(branches(), ", "),
			DefaultText: api.Default.Branch + ", or the profile's",
		},
	}
}

func branches() []string {
	var out []string
	for _, d := range api.Drivers {
		out = append(out, d.Branch)
	}
	return out
}

// driverOf returns the driver that the flag names, else the one that the profiles
// want, and what is to be said about it.
func driverOf(c *cli.Context, wanted []string) (d api.Driver, note string, err error) {
	name := c.String("driver")
	if name == "" {
		if len(wanted) > 1 {
			return d, "", fmt.Errorf("the profiles want drivers %s: choose one with --driver", strings.Join(wanted, " and "))
		}
		if len(wanted) == 1 {
			name = wanted[0]
		}
	}
	if d, err = api.FindDriver(name); err == nil {
		return d, "", nil
	}
	// Files of NVIDIA's mock name one of very many versions.
	if older, ok := nearestDriver(name); ok && !c.IsSet("driver") {
		return older, fmt.Sprintf("driver %s is not simulated: %s instead", name, older.Version), nil
	}
	if s := suggest.Nearest(name, branches()); s != "" {
		err = fmt.Errorf("%w; did you mean %s?", err, s)
	}
	return d, "", err //nolint:wrapcheck // says everything
}

// nearestDriver returns the newest driver that is no newer than a full version.
func nearestDriver(version string) (best api.Driver, ok bool) {
	branch, _, full := strings.Cut(version, ".")
	n, err := strconv.Atoi(branch)
	if err != nil || !full {
		return best, false
	}
	for _, d := range api.Drivers {
		if b, err := strconv.Atoi(d.Branch); err == nil && b <= n {
			best, ok = d, true
		}
	}
	return best, ok
}
