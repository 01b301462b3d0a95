// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/simgpu/host"
	"github.com/gpushare/gpushare/simgpu/node"
	"github.com/gpushare/gpushare/simgpu/profile"
)

// setup is what the flags of up say.
type setup struct {
	host   host.Config
	layout node.Layout
	notes  []string // what the operator should know
}

func settings(c *cli.Context) (*setup, error) {
	dir, err := directory(c)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("find node directory: %w", err)
	}
	if c.NArg() > 0 {
		return nil, fmt.Errorf("up: %q is no flag; did you mean --profile %s?", c.Args().First(), c.Args().First())
	}
	spec := c.String("profile")
	if c.IsSet("gpus") {
		if n := c.Int("gpus"); n < 1 || n > profile.MaxGPUs {
			return nil, fmt.Errorf("gpus %d: must be 1 to %d", n, profile.MaxGPUs)
		}
		if strings.ContainsRune(spec, ',') || profile.Counts(spec) {
			return nil, fmt.Errorf("gpus %d: profile %s says how many, too: give one of them", c.Int("gpus"), spec)
		}
		spec = fmt.Sprintf("%dx%s", c.Int("gpus"), spec)
	}
	n, err := profile.ParseNode(spec)
	if err != nil {
		return nil, err //nolint:wrapcheck // says everything
	}
	for i := range n.GPUs {
		if err := override(c, &n.GPUs[i]); err != nil {
			return nil, err
		}
	}
	driver, note, err := driverOf(c, n.Drivers)
	if err != nil {
		return nil, err
	}
	s := &setup{
		host:   host.Config{GPUs: n.GPUs, Driver: driver, Seed: dir},
		layout: node.Layout{Dir: dir, Version: driver.Version},
	}
	for _, f := range n.Ignored {
		s.notes = append(s.notes, "not simulated, ignored: "+f)
	}
	if note != "" {
		s.notes = append(s.notes, note)
	}
	if s.host.Conditions, err = parseConditions(c.StringSlice("condition")); err != nil {
		return nil, err
	}
	if s.host.Kernels, err = kernelRules(c.StringSlice("kernel-time"), c.StringSlice("kernel-times")); err != nil {
		return nil, err
	}
	if err := faultsOf(c, s); err != nil {
		return nil, err
	}
	if s.host.Clock, err = clockOf(c); err != nil {
		return nil, err
	}
	if s.host.Trace, err = traceOf(c); err != nil {
		return nil, err
	}
	return s, s.host.Validate() //nolint:wrapcheck // says everything
}

// override puts the flags that were given over a card.
func override(c *cli.Context, g *profile.GPU) (err error) {
	bytes := func(flag string, to *uint64) {
		if err == nil && c.IsSet(flag) {
			if *to, err = parseBytes(c.String(flag)); err != nil {
				err = fmt.Errorf("%s: %w", flag, err)
			}
		}
	}
	length := func(flag string, to *time.Duration, least, most time.Duration) {
		if err == nil && c.IsSet(flag) {
			if *to = c.Duration(flag); *to < least || *to > most {
				err = fmt.Errorf("%s %v: must be %v to %v", flag, *to, least, most)
			}
		}
	}
	bytes("memory", &g.Memory.TotalBytes)
	bytes("context-overhead", &g.Memory.ContextBytes)
	length("slice", &g.Engine.Slice, 10*time.Microsecond, 10*time.Second)
	length("switch-cost", &g.Engine.SwitchCost, 0, time.Second)
	length("watchdog", &g.Engine.Watchdog, 0, 24*time.Hour)
	if err == nil && c.IsSet("memory") && g.Memory.TotalBytes < 1<<20 {
		err = fmt.Errorf("memory %d bytes: must be at least 1 MiB", g.Memory.TotalBytes)
	}
	if c.IsSet("sharing") {
		g.Engine.Sharing = c.String("sharing")
	}
	if c.IsSet("model") {
		g.Name = c.String("model")
	}
	if c.IsSet("sms") {
		if c.Uint("sms") < 1 || c.Uint("sms") > 1024 {
			return fmt.Errorf("sms %d: must be 1 to 1024", c.Uint("sms"))
		}
		g.Multiprocessor.Count = int(c.Uint("sms")) //nolint:gosec // bounded above
	}
	return err
}

// maxSocketPath is what the address of a socket has room for.
const maxSocketPath = 107

// check finds out early what would go wrong late.
func (s *setup) check() error {
	l := s.layout
	for _, p := range []string{l.Socket(), l.Admin()} {
		if len(p) > maxSocketPath {
			return fmt.Errorf("start node in %s: the path of its socket %s would have %d bytes, the system takes %d: use a shorter directory",
				l.Dir, p, len(p), maxSocketPath)
		}
	}
	if err := os.MkdirAll(l.Dir, 0o755); err != nil { //nolint:gosec // tenants read below it
		return fmt.Errorf("create node directory: %w", err)
	}
	if err := unix.Access(l.Dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("start node in %s: the directory is not writable: %w", l.Dir, err)
	}
	unlock, err := l.Lock() // the host process takes it again
	if err != nil {
		return err //nolint:wrapcheck // says everything
	}
	unlock()
	return nil
}

func parseBytes(s string) (uint64, error) {
	if s == "0" {
		return 0, nil
	}
	q, err := quantity.ParseMemory(s, quantity.Strict)
	if err != nil || q.IsPercent() {
		return 0, fmt.Errorf("%q: want bytes with a unit, for example 24GiB or 500MiB", s)
	}
	return q.Bytes(0), nil
}
