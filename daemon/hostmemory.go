// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net/http"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
)

// hostMemoryOf is the host memory that a request means under its caps, in bytes.
func hostMemoryOf(want limiter.Request) (uint64, error) {
	n, err := want.Host()
	if err != nil {
		return 0, v1.Errorf(http.StatusForbidden, v1.CodeCap,
			"host-memory: %w, set by this node's administrator in config.toml: ask for less, or have the cap raised", err)
	}
	return n, nil
}

// hostPromisedLocked is how much of the host's memory the containers hold
// together, without one of them.
func (m *Manager) hostPromisedLocked(besides string) uint64 {
	sum := uint64(0)
	for id, c := range m.containers {
		if id == besides {
			continue
		}
		if sum += c.rec.HostMemoryBytes; sum < c.rec.HostMemoryBytes {
			return 1<<64 - 1
		}
	}
	return sum
}

// admitHostLocked reports whether the node lends that much of its memory to one
// more container, or to one that has besides for its id. The GPUs have no part in it.
func (m *Manager) admitHostLocked(want uint64, besides string) error {
	lends := m.opt.Policy.HostMemoryBytes
	switch promised := m.hostPromisedLocked(besides); {
	case want == 0:
		return nil
	case lends == 0:
		return v1.Errorf(http.StatusForbidden, v1.CodeCap,
			"host-memory: %s asked, and this node lends none of its memory to containers: leave it out, or have its administrator write host_memory = %q, say, in config.toml and restart gpushared",
			quantity.FormatBytes(want), "64Gi")
	case promised >= lends || want > lends-promised:
		free := uint64(0)
		if promised < lends {
			free = lends - promised
		}
		return v1.Errorf(http.StatusConflict, v1.CodeNoFit,
			"host-memory: %s asked, %s of the %s that this node lends to containers are not promised to others (host_memory in config.toml): ask for less. Who holds what: gpushare ps",
			quantity.FormatBytes(want), quantity.FormatBytes(free), quantity.FormatBytes(lends))
	}
	return nil
}

// resizeHostLocked is the host memory of a container after a change. What is not
// raised is never refused for want of room.
func (m *Manager) resizeHostLocked(c *container, ch change, soft bool) (uint64, error) {
	old := c.rec.HostMemoryBytes
	if ch.host == nil {
		return old, nil
	}
	want := *ch.host
	if want > old {
		return want, m.admitHostLocked(want, c.id)
	}
	u, _ := c.read(m.now(), false)
	if used := u.HostBytes; want < old && want < used && !soft {
		return 0, v1.Errorf(http.StatusConflict, v1.CodeMemInUse,
			"cannot lower the host memory of %[1]s to %[2]s: %[3]s are in use. Lower it for new allocations only: gpushare set %[1]s --gpu-host-memory %[4]s --soft",
			m.nameLocked(c), quantity.FormatBytes(want), quantity.FormatBytes(used), ch.asked.HostMemory)
	}
	return want, nil
}
