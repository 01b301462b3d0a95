// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gpushare/gpushare/daemon/engine"
	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/daemon/proc"
	"github.com/gpushare/gpushare/daemon/usage"
)

// sampleTime bounds what one report waits for the driver, all GPUs together.
const sampleTime = time.Second

// driverFigures asks the driver about the GPUs that the containers hold: what
// each container uses, by GPU UUID and container id. A figure that is missing is
// unknown.
func (m *Manager) driverFigures(ctx context.Context, all []entry) map[string]map[string]usage.Figure {
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	holders := make(map[string][]string)
	for _, e := range all {
		for _, g := range e.rec.GPUs {
			holders[g.UUID] = append(holders[g.UUID], e.rec.ID)
		}
	}
	owner := owners(all)
	out := make(map[string]map[string]usage.Figure, len(holders))
	for uuid, containers := range holders {
		s, err := m.node.sample(ctx, uuid)
		if err != nil {
			s = nvml.Sample{ProcessesErr: err}
		}
		out[uuid] = usage.Attribute(s, containers, owner)
	}
	return out
}

// owners returns a function that finds the container of a process: by its
// control group, else by its mount namespace, which all processes of a container
// share unless they leave it.
func owners(all []entry) func(pid int) string {
	known := make(map[int]string)
	var namespaces map[string]string // read when first needed
	return func(pid int) string {
		if id, ok := known[pid]; ok {
			return id
		}
		id := ownerByGroup(pid, all)
		if id == "" {
			ns, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/mnt")
			if err == nil && namespaces == nil {
				namespaces = mountNamespaces(all)
			}
			if err == nil {
				id = namespaces[ns]
			}
		}
		known[pid] = id
		return id
	}
}

// mountNamespaces names the container of each mount namespace.
func mountNamespaces(all []entry) map[string]string {
	out := make(map[string]string)
	for _, e := range all {
		if ns := mountNamespace(e.rec.Init); ns != "" {
			out[ns] = e.rec.ID
		}
	}
	return out
}

func ownerByGroup(pid int, all []entry) string {
	g, err := proc.GroupOf(pid)
	if err != nil {
		return ""
	}
	for _, e := range all {
		own := e.rec.Group
		if own.Usable() && own.Hierarchy == g.Hierarchy && (g.Path == own.Path || strings.HasPrefix(g.Path, own.Path+"/")) {
			return e.rec.ID
		}
	}
	return ""
}

// mountNamespace is the kernel's name of a container's mount namespace, "" if it
// has none of its own.
func mountNamespace(init proc.ID) string {
	if init.IsZero() || !init.Alive() {
		return ""
	}
	ns, err := os.Readlink("/proc/" + strconv.Itoa(init.PID) + "/ns/mnt")
	if err != nil {
		return ""
	}
	if own, err := os.Readlink("/proc/self/ns/mnt"); err != nil || own == ns {
		return ""
	}
	return ns
}

const (
	// sweepEvery is the least time between two rounds over the ledgers.
	sweepEvery = time.Second
	// sweepShare bounds what rounds cost: one part in so many of a core.
	sweepShare = 200
	// nameTries is how often docker is asked for a name.
	nameTries = 5
)

// sweepLoop reads every ledger now and then: for the rates of the last seconds,
// and to give back the slots of dead processes that their own container has not.
func (m *Manager) sweepLoop() {
	wait := sweepEvery
	for sleep(m.ctx, wait) {
		begin := time.Now()
		m.round.Store(max(int64(m.now()), 1))
		for _, e := range m.entries() {
			if u, err := e.c.read(m.now(), true); err == nil {
				m.countDenied(e.c, u)
			}
			m.askName(e)
		}
		m.mu.Lock()
		m.retryLeftoversLocked()
		m.mu.Unlock()
		m.round.Store(0)
		wait = max(sweepEvery, sweepShare*time.Since(begin))
	}
}

// namePod names a container of a pod, by what its bundle says.
func (m *Manager) namePod(e entry) {
	if e.rec.Engine != engine.Kubernetes && e.rec.Engine != engine.Containerd || e.rec.Name != "" {
		return
	}
	m.mu.Lock()
	tries := e.c.nameTries
	e.c.nameTries++
	m.mu.Unlock()
	if tries > 0 {
		return
	}
	if p, err := engine.PodOf(e.rec.Bundle); err == nil {
		m.nameContainer(e.c, p.String())
	}
}

// nameContainer keeps what a container is called.
func (m *Manager) nameContainer(c *container, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.containers[c.id] != c {
		return
	}
	c.rec.Name = name
	if err := m.store.Save(c.rec); err != nil {
		m.log.Warn("record not saved, carried on", "container", c.id, "err", err)
	}
}

// askName asks docker, behind the caller's back, what a container is called.
func (m *Manager) askName(e entry) {
	if m.namePod(e); e.rec.Engine != engine.Docker || e.rec.Name != "" || e.rec.Init.IsZero() || m.opt.DockerHost == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || e.c.nameTries >= nameTries {
		return
	}
	e.c.nameTries++
	m.wg.Go(func() {
		name, err := engine.DockerName(m.ctx, m.opt.DockerHost, e.c.id)
		if err != nil {
			m.log.Debug("name not known", "container", e.c.id, "err", err)
			return
		}
		m.nameContainer(e.c, name)
	})
}
