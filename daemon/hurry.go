// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import "time"

// How often and for how long the end of a container is looked for that somebody is
// about to end. A runtime gives up after 10 s.
const (
	hurryEvery = 25 * time.Millisecond
	hurryFor   = 10 * time.Second
)

// hurryLocked has the end of a container that lives noticed at once: somebody who is
// about to end it, by force, has asked for its release. Its watcher hears of the end
// when the first process has been reaped, and that can be seconds after its last code
// ran: see proc.ID.Ending.
func (m *Manager) hurryLocked(c *container) {
	if c.hurried || m.closed {
		return
	}
	c.hurried = true
	m.wg.Go(func() {
		for end := time.Now().Add(hurryFor); time.Now().Before(end) && sleep(m.ctx, hurryEvery); {
			if m.released(c) {
				return
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		c.hurried = false
	})
}

// released releases a container that has ended, and says whether it is gone.
func (m *Manager) released(c *container) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.aliveLocked(c) && !m.closed {
		m.releaseLocked(c, "ended")
	}
	return m.containers[c.id] != c
}
