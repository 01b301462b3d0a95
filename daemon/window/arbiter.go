// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

// Package window gives containers short exclusive windows on a GPU, in which
// they learn what a kernel of theirs costs without their neighbours' time in it.
//
// In a window the other containers on the GPU are held: they start nothing new.
// A window is asked for by a tenant, so everything about it is bounded by what
// the asker cannot influence: a window lasts at most three times the wall time
// that the asker names and never more than MaxHold; all windows on a GPU
// together take at most Share of its time, beyond one Burst; the container that
// has had the least window time is served first. Who dies while holding stops
// nobody: tenants obey a hold word for region.HoldMax and no longer.
//
// Arbiter is the arithmetic on an injected clock; Runner applies it to limits
// pages.
package window

import (
	"slices"
	"time"
)

const (
	// MinHold and MaxHold bound the length of one window, draining included.
	MinHold = time.Millisecond
	MaxHold = 150 * time.Millisecond
	// Share is the part of a GPU's time that windows may take, as one in so many.
	Share = 50 // 2 %
	// Burst is how much window time a GPU can save up.
	Burst = 200 * time.Millisecond
	// askLife is how long a request that was not served is remembered. A tenant
	// that still needs it rings again.
	askLife = 2 * time.Second
	// memory is the time in which a container's past window time counts half.
	memory = time.Minute
)

// Kind is the word of a limits page that a Command sets.
type Kind int

// Words of a limits page.
const (
	Hold Kind = iota
	Window
	Alone
)

// Command sets one word of one container's limits page for one GPU.
type Command struct {
	Container, GPU string
	Kind           Kind
	Value          uint32
}

// Arbiter decides who is held when. Times are durations since any fixed moment
// and must not go back. It must be used by one goroutine at a time.
type Arbiter struct {
	gpus map[string]*gpu
	id   uint32
	out  []Command
}

type gpu struct {
	name    string
	members map[string]*member
	// balance is the window time that may be given, as of balanceAt.
	balance   time.Duration
	balanceAt time.Duration
	rest      time.Duration // no window starts before
	active    *window
}

type member struct {
	name  string
	alone bool // what its page says
	told  bool // its page says something
	ask   *ask
	spent time.Duration // window time had, halved every memory, as of spentAt
	at    time.Duration
}

type ask struct {
	wall    time.Duration
	expires time.Duration
}

type window struct {
	owner *member
	id    uint32
	begin time.Duration
	open  time.Duration // the neighbours' queues have had time to run dry
	end   time.Duration
	told  bool // the owner's page says that it is open
}

// New returns an Arbiter without containers. Windows are numbered from seed on,
// so that a daemon's first number is not its predecessor's last.
func New(seed uint32) *Arbiter {
	return &Arbiter{gpus: make(map[string]*gpu), id: seed}
}

func (a *Arbiter) emit(m *member, g *gpu, kind Kind, value uint32) {
	a.out = append(a.out, Command{Container: m.name, GPU: g.name, Kind: kind, Value: value})
}

func (a *Arbiter) take() []Command {
	out := a.out
	a.out = nil
	return out
}

// Join places a container on a GPU. Its page must be new: hold and window 0.
func (a *Arbiter) Join(gpuID, container string, now time.Duration) []Command {
	g := a.gpus[gpuID]
	if g == nil {
		g = &gpu{name: gpuID, members: make(map[string]*member), balance: Burst, balanceAt: now}
		a.gpus[gpuID] = g
	}
	if g.members[container] != nil {
		return nil
	}
	m := &member{name: container, at: now}
	g.members[container] = m
	if g.active != nil {
		a.emit(m, g, Hold, g.active.id)
	}
	a.tellAlone(g)
	return a.take()
}

// Leave takes a container off a GPU. Nothing is said to its own page any more.
func (a *Arbiter) Leave(gpuID, container string, now time.Duration) []Command {
	g := a.gpus[gpuID]
	if g == nil || g.members[container] == nil {
		return nil
	}
	m := g.members[container]
	delete(g.members, container)
	if w := g.active; w != nil && (w.owner == m || len(g.members) < 2) {
		a.close(g, now)
	}
	a.tellAlone(g)
	a.start(g, now)
	return a.take()
}

// tellAlone brings the alone words up to date.
func (a *Arbiter) tellAlone(g *gpu) {
	alone := len(g.members) == 1
	for _, m := range g.sorted() {
		if m.told && m.alone == alone {
			continue
		}
		m.told, m.alone = true, alone
		value := uint32(0)
		if alone {
			value = 1
		}
		a.emit(m, g, Alone, value)
	}
}

// sorted returns the members by name: the same events give the same commands.
func (g *gpu) sorted() []*member {
	out := make([]*member, 0, len(g.members))
	for _, m := range g.members {
		out = append(out, m)
	}
	slices.SortFunc(out, func(x, y *member) int {
		if x.name < y.name {
			return -1
		}
		return 1
	})
	return out
}

// Ask asks for a window in which a kernel fits whose last wall time is given. A
// container has one request at most; a further one replaces the wall time.
func (a *Arbiter) Ask(gpuID, container string, wall, now time.Duration) []Command {
	g := a.gpus[gpuID]
	if g == nil || g.members[container] == nil || len(g.members) < 2 {
		return nil // alone: every moment is a window
	}
	m := g.members[container]
	if g.active != nil && g.active.owner == m {
		return nil
	}
	m.ask = &ask{wall: wall, expires: now + askLife}
	a.start(g, now)
	return a.take()
}

// Done ends the container's window, or withdraws its request.
func (a *Arbiter) Done(gpuID, container string, now time.Duration) []Command {
	g := a.gpus[gpuID]
	if g == nil || g.members[container] == nil {
		return nil
	}
	m := g.members[container]
	m.ask = nil
	if g.active != nil && g.active.owner == m {
		a.close(g, now)
		a.start(g, now)
	}
	return a.take()
}

// Tick does what is due. Call it at the time that Next gives.
func (a *Arbiter) Tick(now time.Duration) []Command {
	for _, g := range a.gpus {
		if w := g.active; w != nil {
			switch {
			case now >= w.end:
				a.close(g, now)
			case now >= w.open && !w.told:
				w.told = true
				a.emit(w.owner, g, Window, w.id)
			}
		}
		a.start(g, now)
	}
	return a.take()
}

// Next returns the time at which Tick has something to do, false if never.
func (a *Arbiter) Next(now time.Duration) (time.Duration, bool) {
	var at time.Duration
	found := false
	for _, g := range a.gpus {
		t, ok := g.next(now)
		if ok && (!found || t < at) {
			at, found = t, true
		}
	}
	return at, found
}
