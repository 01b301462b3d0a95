// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"io/fs"
	"os"
)

// A claimant may outlive its claim: a shim serves all containers of a pod. If it gets
// no answer, or a container comes and goes while there is no daemon, nobody tells us.
// The engine removes the bundle of a container that it gave up or deleted.

// sees says whether there is a bundle at path. Where the engine's files are not ours
// to see, nothing can be learned from their absence.
func sees(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// abandonedLocked says whether a claim whose container has not started will not have
// one any more: its bundle was there and is gone, and no process has the container's
// directory mounted.
func (m *Manager) abandonedLocked(c *container) bool {
	if !c.rec.BundleSeen || !c.rec.Init.IsZero() {
		return false
	}
	if _, err := os.Lstat(c.rec.Bundle); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	m.confirmLocked(c) // it may have started meanwhile
	if c.rec.Init.IsZero() {
		m.confirmByMountLocked(c)
	}
	return c.rec.Init.IsZero()
}
