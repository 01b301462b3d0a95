// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
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

// Devices is the directory of the simulated device nodes on the host.
func (n *Node) Devices() string { return filepath.Join(n.simDir(), "dev") }

// startSimulator starts the simulated driver and waits until it answers.
func (n *Node) startSimulator(ctx context.Context) error {
	args := []string{n.Bin("simgpu"), "up", "--dir", n.simDir(), "--gpus", strconv.Itoa(n.opts.GPUs),
		"--memory", n.opts.Memory, "--lib-dir", filepath.Join(n.opts.Root, "build/simgpu/lib")}
	for _, k := range n.opts.KernelTimes {
		args = append(args, "--kernel-time", k)
	}
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

// ContainerKey is the last part of the cgroup path of a container, which is how
// the simulator's account knows it.
func ContainerKey(cgroup string) string { return cgroup[strings.LastIndexByte(cgroup, '/')+1:] }
