// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// serviceTimeout bounds one systemctl command.
const serviceTimeout = 90 * time.Second

// systemd says whether this host is run by systemd.
func systemd() bool {
	info, err := os.Stat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// systemctl runs one command and returns its output.
func systemctl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", args...).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) && len(failed.Stderr) > 0 {
			return "", fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, lastLine(string(failed.Stderr)))
		}
		return "", fmt.Errorf("systemctl %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// unitOf returns the systemd unit whose main process is pid, one of those given.
func unitOf(ctx context.Context, pid int, units ...string) string {
	if !systemd() {
		return ""
	}
	for _, u := range units {
		if main, err := systemctl(ctx, "show", "--property", "MainPID", "--value", u); err == nil && main == fmt.Sprint(pid) {
			return u
		}
	}
	return ""
}

// DaemonUnit is gpushared's systemd unit.
const DaemonUnit = "gpushared.service"

// StartDaemon enables and starts gpushared where systemd has its unit. started says
// that it was not running before; there is no error if there is no unit.
func StartDaemon(ctx context.Context) (started bool, err error) {
	if !systemd() {
		return false, nil
	}
	if _, err := systemctl(ctx, "cat", DaemonUnit); err != nil {
		return false, nil
	}
	if state, _ := systemctl(ctx, "show", "--property", "ActiveState", "--value", DaemonUnit); state == "active" {
		return false, nil
	}
	if _, err := systemctl(ctx, "enable", "--now", DaemonUnit); err != nil {
		return false, fmt.Errorf("start the daemon: %w", err)
	}
	return true, nil
}
