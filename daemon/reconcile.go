// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/directory"
	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/daemon/state"
	"github.com/gpushare/gpushare/limiter/region"
)

// Faults that a container keeps until it ends.
const (
	faultDirectory = "its directory is gone: restart the container"
	faultPage      = "its limits page is damaged: restart the container"
	faultVersion   = "its limits page is of another version of gpushare, which goes on to hold them: restart the container to change them"
	faultRecord    = "its record was lost and rebuilt from its limits page"
)

// reconcile takes up what an earlier daemon left: records first, then
// directories without one. What has ended is removed, what lives is kept, even
// if it cannot be held to its limits any more: its share stays promised.
func (m *Manager) reconcile() error {
	records, corrupt, err := m.store.Load()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, bad := range corrupt {
		m.warnLocked(fmt.Sprintf("record of container %s set aside: %v", short(bad.ID), bad.Err))
	}
	for _, r := range records {
		m.resumeLocked(r)
	}
	ids, err := directory.List(m.containersDir())
	if err != nil {
		return err
	}
	for _, id := range ids {
		if m.containers[id] == nil {
			m.adoptLocked(id)
		}
	}
	return nil
}

// warnLocked keeps a warning for whoever asks the daemon how it is.
func (m *Manager) warnLocked(text string) {
	m.log.Warn("state needs attention", "err", text)
	m.events.Add(v1.Event{Reason: v1.EventStateDamaged, Message: text})
	const most = 20
	if len(m.warnings) < most {
		m.warnings = append(m.warnings, text)
	}
}

// resumeLocked takes up the container of a record, or removes what is left of it.
func (m *Manager) resumeLocked(r *state.Record) {
	c := &container{id: r.ID, rec: r, resumed: true}
	if r.BootID != m.bootID {
		m.discardLocked(r.ID, "of an earlier boot")
		return
	}
	dir, err := directory.Open(m.containersDir(), r.ID)
	if err == nil {
		c.dir = dir
	}
	if m.settleLocked(c); !m.aliveLocked(c) {
		c.close()
		const why = "ended while the daemon was away"
		m.discardLocked(r.ID, why)
		m.noteLocked(c, v1.EventReleased, "%s; free again: %s", why, grantedWords(r.GPUs, r.HostMemoryBytes))
		return
	}
	if err == nil {
		if err = checkPage(dir.Limits, r); err != nil {
			r.Fault = faultPage
			dir.Close()
			c.dir = nil
		} else {
			if r.Fault == faultVersion { // of a daemon in between
				r.Fault = ""
			}
			restorePage(dir.Limits, r)
		}
	} else {
		r.Fault = faultDirectory
		switch {
		case errors.Is(err, region.ErrVersion):
			r.Fault = faultVersion
		case !errors.Is(err, directory.ErrNotMounted):
			r.Fault = faultPage
		}
	}
	if err != nil {
		m.warnLocked(fmt.Sprintf("container %s is not held to its limits any more: %v", short(r.ID), err))
		if err := m.store.Save(r); err != nil {
			m.log.Warn("record not saved, carried on", "container", r.ID, "err", err)
		}
	}
	m.addLocked(c)
	m.log.Info("container taken up", "container", r.ID, "pid", r.Init.PID)
	m.noteLocked(c, v1.EventTakenUp, "pid %d, %s", r.Init.PID, grantedWords(r.GPUs, r.HostMemoryBytes))
}

// discardLocked removes what is left of a container that nobody lives of.
func (m *Manager) discardLocked(id, why string) {
	if err := directory.Remove(m.containersDir(), id); err != nil {
		m.leftovers[id] = true
		m.log.Warn("directory not removed, will be tried again", "container", id, "err", err)
	}
	if err := m.store.Remove(id); err != nil {
		m.log.Warn("record not removed, a restart drops it", "container", id, "err", err)
	}
	m.log.Info("container released", "container", id, "why", why)
}

// checkPage reports whether a page is the record's: the same GPUs in the same
// order.
func checkPage(l *region.Limits, r *state.Record) error {
	if l.GPUs() != len(r.GPUs) {
		return fmt.Errorf("limits page of %s: %d GPUs, its record has %d", short(r.ID), l.GPUs(), len(r.GPUs))
	}
	for i, g := range r.GPUs {
		if formatUUID(l.GPU(i).UUID) != g.UUID {
			return fmt.Errorf("limits page of %s: GPU %d is %s, its record says %s", short(r.ID), i, formatUUID(l.GPU(i).UUID), g.UUID)
		}
	}
	return nil
}

// restorePage writes the record's limits where the page differs: the daemon may
// have died between the two.
func restorePage(l *region.Limits, r *state.Record) {
	for i, g := range r.GPUs {
		writePage(l, i, limitOf(g))
	}
	if l.HostMemory() != r.HostMemoryBytes {
		l.SetHostMemory(r.HostMemoryBytes)
	}
}

// formatUUID writes a UUID as the management library does.
func formatUUID(u [16]byte) string {
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// adoptLocked deals with a directory that has no record: if processes of a
// container have it mounted, the record is rebuilt from the limits page, else the
// directory is removed.
func (m *Manager) adoptLocked(id string) {
	dir, err := directory.Open(m.containersDir(), id)
	if err != nil {
		m.discardLocked(id, "directory without a record or a page")
		return
	}
	pids, err := proc.Mounted(dir.Device, mountPoint)
	if err != nil || len(pids) == 0 {
		dir.Close()
		m.discardLocked(id, "directory without a record or a process")
		return
	}
	init := oldest(pids)
	if init.IsZero() {
		dir.Close()
		m.discardLocked(id, "ended while the daemon was away")
		return
	}
	r := &state.Record{ID: id, BootID: m.bootID, Created: time.Now().UTC(), Init: init, Claimant: init, Fault: faultRecord, HostMemoryBytes: dir.Limits.HostMemory()}
	if g, err := proc.GroupOf(init.PID); err == nil && g != m.self {
		r.Group = g
	}
	for i := range dir.Limits.GPUs() {
		p := dir.Limits.GPU(i)
		uuid := formatUUID(p.UUID)
		info, _ := m.node.find(uuid)
		r.GPUs = append(r.GPUs, state.GPU{UUID: uuid, Index: info.Index, MemoryBytes: p.MemoryLimit, ComputeMilli: p.ComputeMilli, CeilingMilli: p.CeilingMilli})
	}
	r.Request = v1.Request{Memory: fmt.Sprintf("%dB", r.GPUs[0].MemoryBytes)}
	if err := m.store.Save(r); err != nil {
		m.log.Warn("record not saved, carried on", "container", id, "err", err)
	}
	m.warnLocked(fmt.Sprintf("container %s: %s", short(id), faultRecord))
	c := &container{id: id, rec: r, dir: dir, resumed: true}
	m.addLocked(c)
	m.noteLocked(c, v1.EventTakenUp, "pid %d, %s; %s", r.Init.PID, grantedWords(r.GPUs, r.HostMemoryBytes), faultRecord)
}

// oldest returns the process that started first: a container's first one is
// older than all that it starts.
func oldest(pids []int) proc.ID {
	var first proc.ID
	slices.Sort(pids)
	for _, pid := range pids {
		id, err := proc.Lookup(pid)
		if err == nil && (first.IsZero() || id.Start < first.Start) {
			first = id
		}
	}
	return first
}

// retryLeftoversLocked tries again to remove directories.
func (m *Manager) retryLeftoversLocked() {
	for id := range m.leftovers {
		if m.containers[id] != nil || directory.Remove(m.containersDir(), id) == nil {
			delete(m.leftovers, id)
			m.log.Info("directory removed", "container", id, "path", filepath.Join(m.containersDir(), id))
		}
	}
}
