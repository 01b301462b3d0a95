// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package window

import "time"

// length is how long a window for a kernel of that wall time is.
func length(wall time.Duration) time.Duration {
	// Compared before it is multiplied: the wall time is the tenant's word.
	if wall >= MaxHold/3 {
		return MaxHold
	}
	return max(3*wall, MinHold)
}

// refill brings the balance up to now.
func (g *gpu) refill(now time.Duration) {
	if now > g.balanceAt {
		g.balance = min(Burst, g.balance+(now-g.balanceAt)/Share)
		g.balanceAt = now
	}
}

// decayed is the window time that m has had, older time counting less.
func (m *member) decayed(now time.Duration) time.Duration {
	d := m.spent
	for t := now - m.at; t > 0 && d > 0; t -= memory {
		if t >= memory {
			d /= 2
		} else {
			d -= time.Duration(float64(d) * float64(t) / float64(2*memory))
		}
	}
	return d
}

// first returns the member to serve next, nil if nobody asks.
func (g *gpu) first(now time.Duration) *member {
	var best *member
	var least time.Duration
	for _, m := range g.sorted() {
		if m.ask != nil && now >= m.ask.expires {
			m.ask = nil
		}
		if m.ask == nil {
			continue
		}
		if d := m.decayed(now); best == nil || d < least {
			best, least = m, d
		}
	}
	return best
}

// start opens a window for whoever is first, if one may be opened now.
func (a *Arbiter) start(g *gpu, now time.Duration) {
	if g.active != nil || now < g.rest || len(g.members) < 2 {
		return
	}
	m := g.first(now)
	if m == nil {
		return
	}
	long := length(m.ask.wall)
	g.refill(now)
	if g.balance < long {
		return
	}
	m.ask = nil
	a.id++
	if a.id == 0 {
		a.id = 1
	}
	// What the neighbours had queued before they were held is still running. A
	// third of the window is for that: the tenant's samples are taken after it.
	g.active = &window{owner: m, id: a.id, begin: now, open: now + long/3, end: now + long}
	for _, other := range g.sorted() {
		if other != m {
			a.emit(other, g, Hold, a.id)
		}
	}
}

// close ends the window of g and charges it.
func (a *Arbiter) close(g *gpu, now time.Duration) {
	w := g.active
	g.active = nil
	// A window that is given back at once is charged too: opening it made others
	// look at their pages.
	took := max(now-w.begin, MinHold)
	g.refill(now)
	g.balance -= took
	g.rest = now + took // the neighbours get as much time back before the next
	w.owner.spent = w.owner.decayed(now) + took
	w.owner.at = now
	if g.members[w.owner.name] == w.owner && w.told {
		a.emit(w.owner, g, Window, 0)
	}
	for _, other := range g.sorted() {
		if other != w.owner {
			a.emit(other, g, Hold, 0)
		}
	}
}

// next is the time at which g has something to do.
func (g *gpu) next(now time.Duration) (time.Duration, bool) {
	if w := g.active; w != nil {
		if !w.told {
			return w.open, true
		}
		return w.end, true
	}
	if len(g.members) < 2 {
		return 0, false
	}
	m := g.first(now)
	if m == nil {
		return 0, false
	}
	at := g.balanceAt
	if lack := length(m.ask.wall) - g.balance; lack > 0 {
		at += lack * Share
	}
	return max(at, g.rest), true
}
