// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"net/http"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/directory"
	"github.com/gpushare/gpushare/daemon/doorbell"
	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/limiter/region"
)

// mountPoint is where a container sees its directory.
const mountPoint = "/run/gpushare"

// addLocked takes a container up: its neighbours learn of it, its doorbell is
// heard, its end is waited for.
func (m *Manager) addLocked(c *container) {
	m.containers[c.id] = c
	ctx, stop := context.WithCancel(m.ctx)
	c.stop = stop
	uuids := make([]string, 0, len(c.rec.GPUs))
	for _, g := range c.rec.GPUs {
		uuids = append(uuids, g.UUID)
	}
	if c.dir == nil {
		m.windows.Join(c.id, noPage{}, uuids)
	} else {
		m.windows.Join(c.id, c.dir.Limits, uuids)
		conn := c.dir.Control
		m.wg.Go(func() { doorbell.Serve(conn, len(uuids), func(d region.Doorbell) { m.ring(c.id, d) }) })
	}
	m.wg.Go(func() { m.watch(ctx, c) })
}

// ring passes a tenant's doorbell on.
func (m *Manager) ring(id string, d region.Doorbell) {
	switch d.Kind {
	case region.DoorbellPrice:
		m.windows.Ask(id, d.GPU, doorbell.Wall(d))
	case region.DoorbellDone:
		m.windows.Done(id, d.GPU)
	case region.DoorbellSettle:
		m.wantLook(id)
	}
}

// watch follows a container from its claim to its end and releases it then.
func (m *Manager) watch(ctx context.Context, c *container) {
	init, ok := m.awaitInit(ctx, c)
	if !ok {
		return
	}
	m.askName(entry{c, m.recordOf(c)})
	if h, err := proc.Open(init); err == nil {
		err := h.Wait(ctx)
		h.Close()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.log.Warn("wait for container, polled instead", "container", c.id, "err", err)
		}
	}
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		m.mu.Lock()
		if ctx.Err() != nil {
			m.mu.Unlock()
			return
		}
		if !m.aliveLocked(c) {
			m.releaseLocked(c, "ended")
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		if !sleep(ctx, wait) {
			return
		}
	}
}

// awaitInit waits until the runtime has started the container and returns its
// first process. It returns false when the claim has been released, or ctx ended.
func (m *Manager) awaitInit(ctx context.Context, c *container) (proc.ID, bool) {
	m.mu.Lock()
	claimant := c.rec.Claimant
	m.mu.Unlock()
	ended := make(chan struct{})
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	h, err := proc.Open(claimant)
	if err != nil {
		close(ended) // it has ended already
	} else {
		m.wg.Go(func() {
			defer close(ended)
			_ = h.Wait(waiting)
			h.Close()
		})
	}
	begin := time.Now()
	for {
		m.mu.Lock()
		if ctx.Err() != nil {
			m.mu.Unlock()
			return proc.ID{}, false
		}
		m.confirmLocked(c)
		if !c.rec.Init.IsZero() {
			init := c.rec.Init
			m.mu.Unlock()
			return init, true
		}
		// The claimant was looked at before the state was: if it had ended by
		// then, the state it left is final.
		if over(ended) {
			if m.settleLocked(c); c.rec.Init.IsZero() {
				m.releaseLocked(c, "never started")
				m.mu.Unlock()
				return proc.ID{}, false
			}
			m.mu.Unlock()
			continue
		}
		if m.abandonedLocked(c) {
			m.releaseLocked(c, "never started")
			m.mu.Unlock()
			return proc.ID{}, false
		}
		m.mu.Unlock()
		// A runtime takes some 50 ms to start a container; one that has not after
		// seconds is stuck, or waits for somebody.
		wait := 10 * time.Millisecond
		switch since := time.Since(begin); {
		case since > 10*time.Second:
			wait = time.Second
		case since > time.Second:
			wait = 100 * time.Millisecond
		}
		select {
		case <-ended:
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sleep waits; it returns false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// confirmLocked looks whether the runtime has started a pending container.
func (m *Manager) confirmLocked(c *container) {
	if !c.rec.Init.IsZero() || c.rec.RuntimeRoot == "" {
		return
	}
	init, err := proc.RuntimeInit(c.rec.RuntimeRoot, c.id)
	if err != nil {
		if !errors.Is(err, proc.ErrNoState) && !errors.Is(err, proc.ErrGone) {
			m.log.Debug("runtime state not read", "container", c.id, "err", err)
		}
		return
	}
	// A state that is older than the claim is a former container's of that id.
	if init.Start < c.rec.Claimant.Start {
		return
	}
	m.startedLocked(c, init)
}

// settleLocked is confirmLocked that does not give a container up, whose claimant
// has ended, before it has looked for it everywhere.
func (m *Manager) settleLocked(c *container) {
	m.confirmLocked(c)
	if c.rec.Init.IsZero() && !c.rec.Claimant.Alive() {
		m.confirmByMountLocked(c)
	}
}

// confirmByMountLocked looks for a pending container that the runtime's state does
// not tell of, because it is elsewhere or cannot be read: whoever has the
// directory mounted is a process of it. Else a container that lives would lose its
// place.
func (m *Manager) confirmByMountLocked(c *container) {
	if c.dir == nil {
		return
	}
	pids, err := proc.Mounted(c.dir.Device, mountPoint)
	if err != nil || len(pids) == 0 {
		return
	}
	if init := oldest(pids); !init.IsZero() {
		m.log.Warn("the runtime's state was not found, container known by its mount", "container", c.id, "path", c.rec.RuntimeRoot)
		m.startedLocked(c, init)
	}
}

// startedLocked notes a container's first process.
func (m *Manager) startedLocked(c *container, init proc.ID) {
	c.rec.Init = init
	// A group that the container shares with others cannot tell its processes.
	if g, err := proc.GroupOf(init.PID); err == nil && g != m.self && g != c.claimGroup {
		c.rec.Group = g
	}
	if err := m.store.Save(c.rec); err != nil {
		m.log.Warn("record not saved, a restart looks it up again", "container", c.id, "err", err)
	}
	m.log.Info("container started", "container", c.id, "pid", init.PID)
	m.noteLocked(c, v1.EventStarted, "pid %d", init.PID)
}

// aliveLocked reports whether anything of the container lives, or may still come
// to.
func (m *Manager) aliveLocked(c *container) bool {
	r := c.rec
	if r.Init.IsZero() {
		return r.Claimant.Alive()
	}
	if r.Init.Alive() && !r.Init.Ending() {
		return true
	}
	// Processes leave their group after the driver's files are closed; a first process
	// that has may stay for long, until others have been reaped.
	if r.Group.Usable() {
		if pids, err := m.tree.Processes(r.Group); err == nil {
			return len(pids) > 0
		}
	}
	if r.Init.Alive() {
		return true
	}
	if c.dir == nil {
		return false
	}
	pids, err := proc.Mounted(c.dir.Device, mountPoint)
	return err == nil && len(pids) > 0
}

// Release gives a claim back. Who calls it may be the low-level runtime that is
// about to remove a container: one that lives is not released, since runtimes
// refuse that too; it is when it ends. caller is the caller's PID.
func (m *Manager) Release(id string, caller int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.containers[id]
	if c == nil {
		return v1.Errorf(http.StatusNotFound, v1.CodeNotFound, "no container %.80q holds a claim; see: gpushare ps", id)
	}
	m.settleLocked(c)
	// The claimant gives up its own claim while it lives.
	withdrawn := c.rec.Init.IsZero() && caller == c.rec.Claimant.PID
	if !withdrawn && m.aliveLocked(c) {
		m.hurryLocked(c)
		return v1.Errorf(http.StatusConflict, v1.CodeConflict, "container %s lives; its claim is released when it ends", short(id))
	}
	m.releaseLocked(c, "released")
	return nil
}

// releaseLocked forgets a container and takes its directory away.
func (m *Manager) releaseLocked(c *container, why string) {
	if m.containers[c.id] != c {
		return
	}
	delete(m.containers, c.id)
	m.windows.Leave(c.id)
	c.close()
	// The record goes last: if we die in between, the next daemon finds it and
	// finishes.
	if err := directory.Remove(m.containersDir(), c.id); err != nil {
		m.leftovers[c.id] = true
		m.log.Warn("directory not removed, will be tried again", "container", c.id, "err", err)
	}
	if err := m.store.Remove(c.id); err != nil {
		m.log.Warn("record not removed, a restart drops it", "container", c.id, "err", err)
	}
	m.log.Info("container released", "container", c.id, "why", why)
	m.noteLocked(c, v1.EventReleased, "%s; free again: %s", why, grantedWords(c.rec.GPUs, c.rec.HostMemoryBytes))
}
