// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"slices"
	"time"

	v1 "github.com/gpushare/gpushare/daemon/api/v1"
	"github.com/gpushare/gpushare/daemon/nvml"
	"github.com/gpushare/gpushare/daemon/settle"
	"github.com/gpushare/gpushare/daemon/usage"
	"github.com/gpushare/gpushare/limiter/quantity"
	"github.com/gpushare/gpushare/limiter/region"
)

const (
	// settleEvery is how often it is asked whose ledger has moved, settleIdle how often
	// a container is looked at whose ledger has not.
	settleEvery = time.Second
	settleIdle  = 2 * time.Second
	// settleGap is the least time between two looks at a container; it doubles with
	// each look in a row that settles nothing.
	settleGap = 5 * time.Millisecond
	// settleShare bounds what looks cost: one part in so many of a core.
	settleShare = 20
	// looksPerSecond and looksBurst bound what one container can cause.
	looksPerSecond = 40
	looksBurst     = 20
)

// settling is what the settling of one container remembers. It is guarded by the
// container's acct.
type settling struct {
	gpus   []*settle.Settler
	seen   []uint64 // what the ledger announced at the last look
	over   []bool   // told to be over the limit
	wanted bool     // a process asked for a look
	barren int      // looks in a row that have settled nothing
	tokens float64  // looks that the container may still cause at once
	at     time.Duration
	next   time.Duration // no look before
}

// wantLook notes that a process of the container asks for a look.
func (m *Manager) wantLook(id string) {
	m.mu.Lock()
	c := m.containers[id]
	m.mu.Unlock()
	if c == nil {
		return
	}
	c.acct.Lock()
	c.settle.wanted = true
	c.acct.Unlock()
	select {
	case m.settleWake <- struct{}{}:
	default: // the loop is awake
	}
}

// settleLoop compares what containers announce with the driver's figure: at once if a
// process asks for it, within a second if its ledger moved, and now and then anyway.
func (m *Manager) settleLoop() {
	wait := settleEvery
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.settleWake:
		case <-time.After(wait):
		}
		begin := time.Now()
		wait = m.settleRound(m.ctx)
		if pause := settleShare * time.Since(begin); !sleep(m.ctx, min(pause, settleEvery)) {
			return
		}
	}
}

// settleRound looks at the containers whose turn it is and returns when the next
// round is due at the latest.
func (m *Manager) settleRound(ctx context.Context) time.Duration {
	all := m.entries()
	var due, soon []entry
	wait := settleEvery
	for _, e := range all {
		switch d := e.c.lookDue(m.now()); {
		case d == 0:
			due = append(due, e)
		case d > 0:
			wait = min(wait, d)
			if d < settleIdle/2 && e.c.mayLook(m.now()) {
				soon = append(soon, e)
			}
		}
	}
	if len(due) == 0 {
		return wait
	}
	// The driver is asked once for all.
	due = append(due, soon...)
	m.look(ctx, due, all)
	for _, e := range due {
		if d := e.c.lookDue(m.now()); d >= 0 {
			wait = min(wait, d)
		}
	}
	return wait
}

// lookDue returns how long it is until the container is to be looked at, 0 for now,
// negative for no time that is known yet.
func (c *container) lookDue(now time.Duration) time.Duration {
	c.acct.Lock()
	defer c.acct.Unlock()
	s := &c.settle
	if c.closed || c.dir == nil {
		return -1
	}
	switch {
	case s.wanted || s.barren > 0 || c.unsettledLocked():
		return max(0, s.next-now)
	case slices.ContainsFunc(c.last.GPU, func(g region.GPUUsage) bool { return g.Bytes > 0 }) || c.grownLocked():
		return max(0, s.at+settleIdle-now)
	}
	return -1
}

// mayLook reports whether nothing is in the way of a look before its time.
func (c *container) mayLook(now time.Duration) bool {
	c.acct.Lock()
	defer c.acct.Unlock()
	return now >= c.settle.next && now >= c.settle.at+settleIdle/2
}

// unsettledLocked reports whether the ledger has moved since the last look, or has a
// guess that no look has covered. The ledger is the tenant's word: it only says that a
// look is due, and how often that is believed is bounded.
func (c *container) unsettledLocked() bool {
	for i, g := range c.last.GPU {
		if i >= len(c.settle.seen) || g.Bytes != c.settle.seen[i] || g.Guess > 0 && g.GuessMark > c.dir.Limits.GPU(i).SettleDone {
			return true
		}
	}
	return false
}

func (c *container) grownLocked() bool {
	for i := range c.dir.Limits.GPUs() {
		if c.dir.Limits.GPU(i).Growth > 0 {
			return true
		}
	}
	return false
}

// begin starts a look: its number, and what the ledger announces.
func (c *container) begin(now time.Duration) (number uint32, u region.Usage, err error) {
	c.acct.Lock()
	defer c.acct.Unlock()
	if c.closed || c.dir == nil {
		return 0, u, errLost
	}
	s := &c.settle
	s.tokens = min(looksBurst, s.tokens+(now-s.at).Seconds()*looksPerSecond) - 1
	s.at, s.wanted = now, false
	number = c.dir.Limits.BeginSettle()
	u, err = c.readLocked(now, false)
	return number, u, err
}

// look looks at the containers of due once.
func (m *Manager) look(ctx context.Context, due, all []entry) {
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	numbers, before := make([]uint32, len(due)), make([]region.Usage, len(due))
	holders := make(map[string][]string)
	for i, e := range due {
		var err error
		if numbers[i], before[i], err = e.c.begin(m.now()); err != nil {
			numbers[i] = 0
			continue
		}
		for _, g := range e.rec.GPUs {
			holders[g.UUID] = append(holders[g.UUID], e.rec.ID)
		}
	}
	figures := make(map[string]gpuFigures, len(holders))
	owner := owners(all)
	for uuid, containers := range holders {
		s, err := m.node.fresh(ctx, uuid)
		if err != nil {
			s = nvml.Sample{ProcessesErr: err}
		}
		strangers := slices.ContainsFunc(s.Processes, func(p nvml.Process) bool { return p.Bytes > 0 && owner(p.PID) == "" })
		figures[uuid] = gpuFigures{usage.Attribute(s, containers, owner), strangers}
	}
	for i, e := range due {
		if numbers[i] == 0 {
			e.c.barrenLook(m.now())
			continue
		}
		m.settle(e, numbers[i], before[i], figures)
	}
}

// gpuFigures are the driver's figures of one GPU.
type gpuFigures struct {
	by map[string]usage.Figure
	// strangers is set if processes hold memory that are of no container known here.
	strangers bool
}

// settle ends a look at one container.
func (m *Manager) settle(e entry, number uint32, before region.Usage, figures map[string]gpuFigures) {
	c := e.c
	c.acct.Lock()
	if c.closed || c.dir == nil {
		c.acct.Unlock()
		return
	}
	after, err := c.readLocked(m.now(), false)
	n := min(len(e.rec.GPUs), len(before.GPU), len(after.GPU))
	s := &c.settle
	for i := len(s.gpus); i < n; i++ {
		s.gpus = append(s.gpus, settle.New(c.dir.Limits.GPU(i).Growth))
		s.seen, s.over = append(s.seen, 0), append(s.over, false)
	}
	done := err == nil
	sums, announced := make([]uint64, n), make([]uint64, n)
	for i := range n {
		b, a, g := before.GPU[i], after.GPU[i], figures[e.rec.GPUs[i].UUID]
		f := g.by[e.rec.ID]
		// Nothing of what it says to hold is anybody's that we know: its processes have
		// other numbers here than the driver tells.
		blind := f.Bytes == 0 && g.strangers && min(b.Bytes, a.Bytes) > 0
		settled, ok := s.gpus[i].Take(settle.Look{
			Number: number, Before: b.Bytes, After: a.Bytes, Dead: max(b.Dead, a.Dead), Driver: f.Bytes, Known: f.Known && !blind && err == nil,
		})
		page := c.dir.Limits.GPU(i)
		if !ok {
			settled, done = page.SettleDone, false
		}
		c.dir.Limits.EndSettle(i, settled, s.gpus[i].Growth())
		s.seen[i] = a.Bytes
		sums[i], announced[i] = charged(a, c.dir.Limits.GPU(i)), a.Bytes
	}
	c.restLocked(m.now(), done)
	c.acct.Unlock()
	m.tellOverruns(c, sums, announced)
}

// charged is all that is charged to a container on a GPU: what its ledger announces,
// guesses that no look has covered, and growth.
func charged(u region.GPUUsage, page region.GPULimit) uint64 {
	return saturated(saturated(u.Bytes, guessed(u, page)), page.Growth)
}

// guessed is the part of it that no look has covered.
func guessed(u region.GPUUsage, page region.GPULimit) uint64 {
	if u.GuessMark > page.SettleDone {
		return u.Guess
	}
	return 0
}

func saturated(a, b uint64) uint64 {
	if a+b < a {
		return 1<<64 - 1
	}
	return a + b
}

// barrenLook notes a look that came to nothing.
func (c *container) barrenLook(now time.Duration) {
	c.acct.Lock()
	defer c.acct.Unlock()
	c.restLocked(now, false)
}

// restLocked says when the next look may be.
func (c *container) restLocked(now time.Duration, settled bool) {
	s := &c.settle
	if settled {
		s.barren = 0
	} else {
		s.barren++
	}
	gap := settleEvery
	if s.barren < 8 {
		gap = min(gap, settleGap<<max(0, s.barren-1))
	}
	if s.tokens < 0 {
		gap = max(gap, time.Duration(-s.tokens/looksPerSecond*float64(time.Second)))
	}
	s.next = now + gap
}

// tellOverruns keeps events when a container comes to be over its limit, by what the
// driver took unasked or because the limit was lowered below what it has, and when it
// is back.
func (m *Manager) tellOverruns(c *container, sums, announced []uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.containers[c.id] != c {
		return
	}
	for i, sum := range sums {
		limit := c.rec.GPUs[i].MemoryBytes
		c.acct.Lock()
		was := c.settle.over[i]
		c.settle.over[i] = sum > limit
		c.acct.Unlock()
		index := c.rec.GPUs[i].Index
		switch {
		case sum > limit && !was:
			why := "the driver took %s beyond the limit of %s on GPU %d"
			if announced[i] > limit && c.loweredLocked() {
				why = "%s beyond the limit of %s on GPU %d are in use since gpushare set lowered it"
			}
			e := m.eventLocked(c, v1.EventOverrun, why+"; new allocations are refused until that much is freed",
				quantity.FormatBytes(sum-limit), quantity.FormatBytes(limit), index)
			e.GPU = &index
			m.events.AddLimited("overrun "+c.id, stateRate, e)
		case sum <= limit && was:
			e := m.eventLocked(c, v1.EventOverrunEnded, "within the limit of %s on GPU %d again", quantity.FormatBytes(limit), index)
			e.GPU = &index
			m.events.AddLimited("overrun ended "+c.id, stateRate, e)
		}
	}
}

// loweredLocked reports whether the memory limit is one that gpushare set wrote.
func (c *container) loweredLocked() bool {
	_, memory := c.rec.Set[v1.LimitMemory]
	_, profile := c.rec.Set[v1.LimitProfile]
	return memory || profile
}
