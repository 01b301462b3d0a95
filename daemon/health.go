// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"time"
)

// stuckAfter is how long one round over the ledgers may take. It waits for
// nothing but the kernel, so that a slow driver is no reason.
const stuckAfter = 10 * time.Second

// Health returns nil if the Manager makes progress: its lock can be had and the
// round over the ledgers does not hang. It does not return while the lock is
// held, so a caller must bound its wait.
func (m *Manager) Health() error {
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return errClosed
	}
	if begin := m.round.Load(); begin != 0 {
		if since := m.now() - time.Duration(begin); since > stuckAfter {
			return fmt.Errorf("the round over the containers' ledgers has hung for %s", since.Round(time.Second))
		}
	}
	return nil
}

// Simulated reports whether a GPU of the node is.
func (m *Manager) Simulated() bool { return m.node.simulated() }

// Containers is how many hold a claim.
func (m *Manager) Containers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.containers)
}
