// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// simDir is simgpu's own directory: to everything else on the node an installed
// NVIDIA driver.
func (n *Node) simDir() string { return filepath.Join(n.Dir, "sim") }

// DriverLibraries is the directory of the simulated driver's libraries on the host.
func (n *Node) DriverLibraries() string { return filepath.Join(n.simDir(), "lib") }

// DriverCDI is the directory of the driver's CDI specification.
func (n *Node) DriverCDI() string { return filepath.Join(n.simDir(), "cdi") }

// Devices is the directory of the simulated device nodes on the host.
func (n *Node) Devices() string { return filepath.Join(n.simDir(), "dev") }

// startSimulator starts the simulated driver and waits until it answers.
func (n *Node) startSimulator(ctx context.Context) error {
	args := []string{n.Bin("simgpu"), "up", "--dir", n.simDir(), "--gpus", strconv.Itoa(n.opts.GPUs),
		"--lib-dir", filepath.Join(n.opts.Root, "build/simgpu/lib")}
	if n.opts.Profile != "" {
		args = append(args, "--profile", n.opts.Profile)
	}
	if n.opts.Memory != "" {
		args = append(args, "--memory", n.opts.Memory)
	}
	for _, k := range n.opts.KernelTimes {
		args = append(args, "--kernel-time", k)
	}
	args = append(args, n.opts.Simgpu...)
	p, err := n.start("simgpu", nil, args...)
	if err != nil {
		return err
	}
	n.add(p)
	return p.ready(ctx, func() error {
		if _, err := os.Stat(filepath.Join(n.simDir(), "gpushare.toml")); err != nil {
			return err
		}
		return n.Sim(ctx, "status").Err
	})
}

// Sim runs a simgpu subcommand on the node's simulator.
func (n *Node) Sim(ctx context.Context, args ...string) Result {
	argv := append([]string{n.Bin("simgpu"), args[0], "--dir", n.simDir()}, args[1:]...)
	return Run(ctx, nil, argv...)
}

var cdiLine = regexp.MustCompile(`(?m)^driver_cdi_spec\s*=.*$`)

// withCDI replaces the CDI spec that a config.toml names.
func withCDI(text, spec string) string {
	return cdiLine.ReplaceAllLiteralString(text, fmt.Sprintf("driver_cdi_spec = %q", spec))
}

// Account is what the simulator says that a container used, over all its GPUs and
// processes, also those that are gone.
type Account struct {
	MemoryBytes    uint64 // now
	HighWaterBytes uint64 // the most at one time
	GPUTimeNs      uint64 // executed
	At             int64  // when the account was taken, CLOCK_MONOTONIC nanoseconds
}

// simStatus is the part of `simgpu status -o json` that is used here.
type simStatus struct {
	TimeNS  int64 `json:"time_ns"`
	Cgroups []struct {
		Path string `json:"path"`
		GPUs []struct {
			UsedBytes uint64 `json:"used_bytes"`
			HighBytes uint64 `json:"high_bytes"`
			GPUTimeNS uint64 `json:"gpu_time_ns"`
		} `json:"gpus"`
	} `json:"cgroups"`
}

// Account returns the simulator's account of the container whose cgroup's last
// part has id in it; all zero if it has not used a GPU yet. For a container with
// one GPU the high-water mark is exact; for more it is the sum of each GPU's.
func (n *Node) Account(ctx context.Context, id string) (Account, error) {
	r := n.Sim(ctx, "status", "-o", "json")
	if r.Err != nil {
		return Account{}, r.Err
	}
	var st simStatus
	if err := json.Unmarshal([]byte(r.Stdout), &st); err != nil {
		return Account{}, fmt.Errorf("read simgpu status: %w", err)
	}
	a := Account{At: st.TimeNS}
	for _, c := range st.Cgroups {
		if !strings.Contains(filepath.Base(c.Path), id) {
			continue
		}
		for _, g := range c.GPUs {
			a.MemoryBytes += g.UsedBytes
			a.HighWaterBytes += g.HighBytes
			a.GPUTimeNs += g.GPUTimeNS
		}
	}
	return a, nil
}
