// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/host"
	"github.com/gpushare/gpushare/simgpu/node"
)

func downCommand() *cli.Command {
	return &cli.Command{
		Name:  "down",
		Usage: "stop the GPUs and wait until they are gone; the node's files stay",
		Flags: []cli.Flag{dirFlag()},
		Action: func(c *cli.Context) error {
			dir, err := directory(c)
			if err != nil {
				return err
			}
			if dir, err = filepath.Abs(dir); err != nil {
				return fmt.Errorf("find node directory: %w", err)
			}
			pid, err := host.NewAdminClient(node.Layout{Dir: dir}.Admin()).Stop(c.Context)
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
				fmt.Printf("no GPUs are up in %s\n", dir)
				return nil
			}
			if err != nil {
				return err //nolint:wrapcheck // says everything
			}
			return gone(pid)
		},
	}
}

// gone waits until a process has ended.
func gone(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch host process %d: %w", pid, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing is lost
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000) //nolint:gosec // a descriptor
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n == 0 {
			return fmt.Errorf("stop host process %d: it still runs after 10 s", pid)
		}
		return nil
	}
}
