// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/gpushare/gpushare/internal/config"
)

// validate lets dockerd read a file without starting, as 23.0 and newer can.
func validate(ctx context.Context, dockerd, file string) error {
	if err := config.CheckRootOwned(dockerd); err != nil {
		return fmt.Errorf("%s would be run as root: %w", dockerd, err)
	}
	ctx, cancel := context.WithTimeout(ctx, dumpTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, dockerd, "--validate", "--config-file", file).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "unknown flag") {
		return fmt.Errorf("dockerd cannot read it: %w: %s", err, lastLine(string(out)))
	}
	return nil
}

// activation says how the running containerd comes to read its files again.
func (c *containerd) activation() string {
	return "containerd has to be restarted; containers go on, their shims stay"
}

// activate restarts containerd where systemd runs it, and says what to run where not.
func (c *containerd) activate(ctx context.Context) (string, error) {
	if c.proc == nil {
		return "start containerd", nil
	}
	unit := unitOf(ctx, c.proc.pid, "containerd.service")
	if unit == "" {
		return fmt.Sprintf("restart containerd (pid %d, %s); containers go on", c.proc.pid, c.proc.exe), nil
	}
	if c.opts.NoRestart {
		return "restart containerd: systemctl restart " + unit, nil
	}
	if _, err := systemctl(ctx, "restart", unit); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	for {
		p, err := listener(ctx, c.opts.Socket)
		if err == nil && p.pid != c.proc.pid {
			c.proc = p
			return "", nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("containerd was restarted and does not answer at %s within %v", c.opts.Socket, reloadTimeout)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// knows asks the running CRI plugin whether it has our handler.
func (c *containerd) knows(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	handlers, err := criHandlers(ctx, c.opts.Socket)
	_, known := handlers[Handler]
	return known, err
}
