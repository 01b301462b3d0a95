// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/state"
	"github.com/gpushare/gpushare/daemon/usage"
	"github.com/gpushare/gpushare/internal/version"
	"github.com/gpushare/gpushare/limiter"
	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

// entry is a container as it is at one moment.
type entry struct {
	c   *container
	rec state.Record
}

// entries returns the containers, oldest first.
func (m *Manager) entries() []entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]entry, 0, len(m.containers))
	for _, c := range m.containers {
		out = append(out, entry{c, copyRecord(c)})
	}
	slices.SortFunc(out, func(a, b entry) int {
		return cmp.Or(a.rec.Created.Compare(b.rec.Created), cmp.Compare(a.rec.ID, b.rec.ID))
	})
	return out
}

func copyRecord(c *container) state.Record {
	r := *c.rec
	r.GPUs = slices.Clone(r.GPUs)
	return r
}

func (m *Manager) recordOf(c *container) state.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return copyRecord(c)
}

// List returns what all containers may use and use.
func (m *Manager) List(ctx context.Context) v1.ContainerList {
	all := m.entries()
	figures := m.driverFigures(ctx, all)
	out := v1.ContainerList{APIVersion: v1.APIVersion, Simulated: m.node.simulated(), Containers: []v1.Container{}}
	for _, e := range all {
		out.Containers = append(out.Containers, m.describe(e, figures))
	}
	return out
}

// Container returns one of them.
func (m *Manager) Container(ctx context.Context, ref string) (v1.Container, error) {
	m.mu.Lock()
	c, err := m.lookLocked(ref)
	m.mu.Unlock()
	if err != nil {
		return v1.Container{}, err
	}
	all := m.entries()
	figures := m.driverFigures(ctx, all)
	for _, e := range all {
		if e.c == c {
			out := m.describe(e, figures)
			out.APIVersion = v1.APIVersion
			out.Details = m.details(e)
			return out, nil
		}
	}
	return v1.Container{}, notFound(ref)
}

// usedBytes is what a container uses on each of its GPUs, by the larger account.
func (m *Manager) usedBytes(ctx context.Context, c *container) []uint64 {
	all := m.entries()
	figures := m.driverFigures(ctx, all)
	u, _ := c.read(m.now(), false)
	m.mu.Lock()
	gpus := c.rec.GPUs
	m.mu.Unlock()
	out := make([]uint64, len(gpus))
	for i, g := range gpus {
		var ledger uint64
		if i < len(u.GPU) {
			page, _ := c.page(i)
			ledger = charged(u.GPU[i], page)
		}
		out[i] = usage.Larger(ledger, figures[g.UUID][c.id])
	}
	return out
}

// page is what the container's page says of one of its GPUs, and whether the driver
// has had no figure of it for a while.
func (c *container) page(i int) (page region.GPULimit, unknown bool) {
	c.acct.Lock()
	defer c.acct.Unlock()
	if c.closed || c.dir == nil || i >= c.dir.Limits.GPUs() {
		return region.GPULimit{}, false
	}
	return c.dir.Limits.GPU(i), i < len(c.settle.gpus) && c.settle.gpus[i].Unknown()
}

// read reads the container's ledger; sweep also gives dead processes' slots back.
func (c *container) read(now time.Duration, sweep bool) (region.Usage, error) {
	c.acct.Lock()
	defer c.acct.Unlock()
	return c.readLocked(now, sweep)
}

func (c *container) readLocked(now time.Duration, sweep bool) (region.Usage, error) {
	if c.closed || c.dir == nil {
		return c.last, errLost
	}
	f := c.dir.Ledger.Read
	if sweep {
		f = c.dir.Ledger.Sweep
	}
	u, err := f()
	c.lastErr = err
	if err != nil {
		return c.last, err
	}
	c.last = u
	c.tracker.Observe(now, u)
	for i := range c.dir.Limits.GPUs() {
		c.dir.Limits.SetBusy(i, c.tracker.BusyMilli(i))
	}
	return u, nil
}

// describe says what one container may use and uses.
func (m *Manager) describe(e entry, figures map[string]map[string]usage.Figure) v1.Container {
	r := e.rec
	u, err := e.c.read(m.now(), false)
	out := v1.Container{
		ID: r.ID, Name: r.Name, Engine: r.Engine, Phase: v1.PhasePending, PID: r.Init.PID,
		Processes: u.Processes, Source: r.Source, Request: r.Request, Created: r.Created,
		ExportTables: u.ExportTables, Exposed: r.Exposed,
		HostMemoryLimitBytes: r.HostMemoryBytes, HostMemoryUsedBytes: u.HostBytes,
	}
	if !r.Init.IsZero() {
		out.Phase = v1.PhaseRunning
	}
	var reasons []string
	for _, e := range r.Exposed {
		reasons = append(reasons, exposedReason(e))
	}
	if r.Fault != "" {
		reasons = append(reasons, r.Fault)
	} else if err != nil {
		reasons = append(reasons, "its ledger is damaged: restart the container")
	}
	for i, g := range r.GPUs {
		row, why := m.describeGPU(e.c, i, g, u, figures[g.UUID][r.ID])
		out.GPUs = append(out.GPUs, row)
		for _, w := range why {
			if !slices.Contains(reasons, w) {
				reasons = append(reasons, w)
			}
		}
	}
	out.State = v1.StateEnforced
	if len(reasons) > 0 {
		out.State, out.Reason = v1.StateDegraded, strings.Join(reasons, "; ")
	}
	return out
}

func (m *Manager) describeGPU(c *container, i int, g state.GPU, u region.Usage, driver usage.Figure) (v1.ContainerGPU, []string) {
	info, found := m.node.find(g.UUID)
	row := v1.ContainerGPU{
		Index: g.Index, UUID: g.UUID, Name: info.Name, MemoryLimitBytes: g.MemoryBytes,
		ComputeMilli: g.ComputeMilli, ComputeMaxMilli: g.CeilingMilli,
	}
	c.acct.Lock()
	rates, peak := c.tracker.Rates(i), c.tracker.Peak(i)
	c.acct.Unlock()
	page, unknown := c.page(i)
	var all uint64
	if i < len(u.GPU) {
		a := u.GPU[i]
		row.MemoryLedgerBytes = a.Bytes
		row.MemoryGrowthBytes, row.MemoryGuessedBytes, all = page.Growth, guessed(a, page), charged(a, page)
		row.ChargedNs, row.ThrottledNs, row.Throttles, row.Launches = a.ChargedNs, a.ThrottledNs, a.Throttles, a.Launches
		row.Denied, row.DeniedBytes, row.Unpriced = a.Denied, a.DeniedBytes, a.Unpriced
	}
	all = usage.Larger(all, driver)
	row.MemoryUsedBytes = min(all, g.MemoryBytes)
	row.OverrunBytes = all - row.MemoryUsedBytes
	row.MemoryPeakBytes = max(peak, all)
	row.ComputeUsedMilli, row.ThrottledMilli = rates.ComputeMilli, rates.ThrottledMilli
	var why []string
	switch {
	case !found:
		why = append(why, fmt.Sprintf("GPU %d is gone", g.Index))
	case info.Err != nil:
		why = append(why, fmt.Sprintf("GPU %d: %v", g.Index, info.Err))
	}
	if driver.BusyKnown {
		row.ComputeDriverMilli = &driver.BusyMilli
		if driver.Unseen(g.CeilingMilli, rates.ComputeMilli) {
			why = append(why, fmt.Sprintf("busy for %d%% of the time by the driver's account, %d%% by its own", driver.BusyMilli/10, rates.ComputeMilli/10))
		}
	}
	if driver.Known && !unknown {
		row.MemoryDriverBytes = &driver.Bytes
		if driver.Bytes > g.MemoryBytes {
			why = append(why, fmt.Sprintf("%s over its limit by the driver's account", quantity.FormatBytes(driver.Bytes-g.MemoryBytes)))
		}
	} else {
		why = append(why, "no driver figure")
	}
	if found && !info.measured {
		why = append(why, "context size unknown")
	}
	if rates.Unpriced {
		why = append(why, "unpriced")
	}
	return row, why
}

// Daemon says how the daemon is and what the node has.
func (m *Manager) Daemon(ctx context.Context) v1.Daemon {
	if _, err := m.node.list(); err != nil {
		m.node.refresh(ctx)
	}
	m.refreshIfStale()
	gpus, err := m.node.list()
	m.mu.Lock()
	out := v1.Daemon{
		APIVersion: v1.APIVersion, Version: version.String(), PID: os.Getpid(), Started: m.started.UTC(),
		Socket: filepath.Join(m.opt.RunDir, v1.SocketName), RunDir: m.opt.RunDir, DriverVersion: m.node.driverVersion(),
		Simulated: m.node.simulated(), Containers: len(m.containers), Warnings: slices.Clone(m.warnings), GPUs: []v1.GPU{},
	}
	places := m.placesLocked(gpus, "")
	out.HostMemoryBytes, out.HostMemoryPromisedBytes = m.opt.Policy.HostMemoryBytes, m.hostPromisedLocked("")
	m.mu.Unlock()
	if err != nil {
		out.Reason = err.Error()
	}
	for i, g := range gpus {
		out.GPUs = append(out.GPUs, m.describeNodeGPU(ctx, g, places[i].Promised))
	}
	return out
}

func (m *Manager) describeNodeGPU(ctx context.Context, g gpuInfo, promised limiter.Promised) v1.GPU {
	row := v1.GPU{
		Index: g.Index, UUID: g.UUID, Name: g.Name, Simulated: g.Simulated(),
		MemoryTotalBytes: g.MemoryTotal, MemoryUsableBytes: g.usable(),
		MemoryPromisedBytes: promised.MemoryBytes, ComputePromisedMilli: promised.ComputeMilli, Containers: promised.Containers,
		ContextBytes: g.costs.ContextBytes, ContextMeasured: g.measured,
		NextContextBytes: g.costs.NextContextBytes, BlockBytes: g.costs.BlockBytes, ModuleBytes: g.costs.ModuleBytes,
		StackThreads: g.costs.StackThreads, GraphNodeBytes: g.costs.GraphNodeBytes, CostsUnknown: slices.Clone(g.costs.Unknown),
	}
	if g.Err != nil {
		row.Reason = g.Err.Error()
		return row
	}
	if s, err := m.node.sample(ctx, g.UUID); err == nil && s.UsedKnown {
		row.MemoryUsedBytes = &s.UsedBytes
	}
	return row
}
