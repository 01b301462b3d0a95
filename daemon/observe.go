// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

const (
	// observeEvery is how often the driver is asked whether limits are held, for
	// the events; whoever lists the containers asks it anyway.
	observeEvery = 10 * time.Second
	// throttledFrom is the share of time, in thousandths, from which waiting is an
	// event.
	throttledFrom = 200
	// deniedEvery and throttledEvery are the least time between two events of a
	// container: it can cause them as often as it likes.
	deniedEvery    = time.Minute
	throttledEvery = 5 * time.Minute
)

// seen is what the events of a container have told so far.
type seen struct {
	denied      []uint64 // of each GPU
	deniedAt    time.Time
	throttledAt time.Time
	state       string // StateEnforced or a reason; empty: nothing was told
}

func (m *Manager) observeLoop() {
	wait := observeEvery
	for sleep(m.ctx, wait) {
		begin := time.Now()
		m.observe(m.ctx)
		wait = max(observeEvery, min(sweepShare*time.Since(begin), 6*observeEvery))
	}
}

// observe looks at the containers for what is worth an event.
func (m *Manager) observe(ctx context.Context) {
	for _, c := range m.List(ctx).Containers {
		m.mu.Lock()
		if own := m.containers[c.ID]; own != nil {
			m.compareLocked(own, c)
		}
		m.mu.Unlock()
	}
	gpus, _ := m.node.list()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range gpus {
		index, lost := g.Index, m.lost[g.UUID]
		switch {
		case g.Err != nil && !lost:
			m.events.AddLimited("lost "+g.UUID, stateRate, v1.Event{GPU: &index, Reason: v1.EventGPULost, Message: fmt.Sprintf("%s: %v", g.UUID, g.Err)})
		case g.Err == nil && lost:
			m.events.AddLimited("found "+g.UUID, stateRate, v1.Event{GPU: &index, Reason: v1.EventGPUFound, Message: g.UUID + " can be used again"})
		}
		m.lost[g.UUID] = g.Err != nil
	}
}

// compareLocked keeps events for what has changed of a container.
func (m *Manager) compareLocked(own *container, c v1.Container) {
	now := v1.StateEnforced
	if c.State != v1.StateEnforced {
		now = c.Reason
	}
	switch {
	case now == own.seen.state || c.Phase != v1.PhaseRunning:
	case now != v1.StateEnforced:
		m.events.AddLimited("degraded "+own.id, stateRate, m.eventLocked(own, v1.EventDegraded, "%s", now))
	case own.seen.state != "":
		m.events.AddLimited("enforced "+own.id, stateRate, m.eventLocked(own, v1.EventEnforced, "limits are held again; before: %s", own.seen.state))
	}
	if c.Phase == v1.PhaseRunning {
		own.seen.state = now
	}
	for _, g := range c.GPUs {
		if g.ThrottledMilli >= throttledFrom && (own.seen.throttledAt.IsZero() || time.Since(own.seen.throttledAt) >= throttledEvery) {
			own.seen.throttledAt = time.Now()
			e := m.eventLocked(own, v1.EventThrottled, "launches waited %d%% of the last seconds: %d%% of GPU %d used, ceiling %s; see: gpushare set --help",
				g.ThrottledMilli/10, g.ComputeUsedMilli/10, g.Index, quantity.FormatShare(g.ComputeMaxMilli))
			index := g.Index
			e.GPU = &index
			m.events.Add(e)
		}
	}
}

// countDenied keeps an event if allocations were refused since the last look.
// The counters are the tenant's own word and may say anything.
func (m *Manager) countDenied(c *container, u region.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.seen.denied == nil {
		c.seen.denied = make([]uint64, len(c.rec.GPUs))
		for i := range min(len(u.GPU), len(c.rec.GPUs)) {
			if c.resumed { // what was told before is not known
				c.seen.denied[i] = u.GPU[i].Denied
			}
		}
	}
	if !c.seen.deniedAt.IsZero() && time.Since(c.seen.deniedAt) < deniedEvery {
		return
	}
	for i := range u.GPU {
		if i >= len(c.rec.GPUs) {
			return
		}
		before, a := c.seen.denied[i], u.GPU[i]
		c.seen.denied[i] = a.Denied
		if a.Denied <= before {
			continue
		}
		c.seen.deniedAt = time.Now()
		g := c.rec.GPUs[i]
		page, _ := c.page(i)
		beside := ""
		if host := c.rec.HostMemoryBytes; host > 0 {
			beside = fmt.Sprintf(", and %s of %s of host memory", quantity.FormatBytes(u.HostBytes), quantity.FormatBytes(host))
		}
		e := m.eventLocked(c, v1.EventDenied, "%d allocations refused on GPU %d at its limit of %s, %s in use now%s, %s refused in all; more: gpushare set %s --gpu-memory …",
			a.Denied-before, g.Index, quantity.FormatBytes(g.MemoryBytes), quantity.FormatBytes(min(charged(a, page), g.MemoryBytes)), beside, quantity.FormatBytes(a.DeniedBytes), m.nameLocked(c))
		index := g.Index
		e.GPU = &index
		m.events.Add(e)
	}
}

// validOrEmpty keeps nonsense that somebody calls an id out of the events.
func validOrEmpty(id string) string {
	if len(id) > 128 || slices.ContainsFunc([]byte(id), func(b byte) bool { return b <= ' ' || b > '~' }) {
		return ""
	}
	return id
}
