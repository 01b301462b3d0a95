// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Lock makes this process the one that runs the node, until it ends or calls
// unlock. Another one that does so is an error that names it.
func (l Layout) Lock() (unlock func(), err error) {
	if err := os.MkdirAll(l.Dir, 0o755); err != nil { //nolint:gosec // tenants read below it
		return nil, fmt.Errorf("create node directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(l.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock node directory: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = f.Close()
		pid, _ := os.ReadFile(l.PIDFile())
		return nil, fmt.Errorf("start node in %s: it is up already (pid %s): use another directory, or simgpu down --dir %s",
			l.Dir, strings.TrimSpace(string(pid)), l.Dir)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock node directory: %w", err)
	}
	return func() { _ = f.Close() }, nil
}
