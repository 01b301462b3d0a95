// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"sync"
	"time"
)

// Page is what a Runner writes of a container's limits page. A *region.Limits
// is one.
type Page interface {
	SetHold(gpu int, id uint32)
	SetWindow(gpu int, id uint32)
	SetAlone(gpu int, alone bool)
}

// Runner applies an Arbiter to pages in real time. Its methods may be called by
// several goroutines. It starts none; a timer fires while something is due.
type Runner struct {
	mu       sync.Mutex
	arbiter  *Arbiter
	pages    map[string]placed
	start    time.Time
	timer    *time.Timer
	closed   bool
	finished sync.WaitGroup // timer calls in progress
}

type placed struct {
	page Page
	gpus []string // by the page's index
}

// NewRunner returns a Runner without containers.
func NewRunner() *Runner {
	now := time.Now()
	return &Runner{arbiter: New(uint32(now.UnixMilli())), pages: make(map[string]placed), start: now}
}

// Join places a container, whose page lists those GPUs in that order. What an
// earlier daemon left in the page's hold and window words is cleared.
func (r *Runner) Join(container string, page Page, gpus []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.pages[container]; ok || r.closed {
		return
	}
	r.pages[container] = placed{page: page, gpus: gpus}
	for i, g := range gpus {
		page.SetHold(i, 0)
		page.SetWindow(i, 0)
		r.apply(r.arbiter.Join(g, container, r.now()))
	}
	r.arm()
}

// Leave takes a container away; its page is not touched after Leave returned.
func (r *Runner) Leave(container string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.pages[container]
	if !ok {
		return
	}
	delete(r.pages, container)
	for _, g := range p.gpus {
		r.apply(r.arbiter.Leave(g, container, r.now()))
	}
	r.arm()
}

// Ask asks for a window for the container on the GPU at that index of its page.
func (r *Runner) Ask(container string, index uint32, wall time.Duration) {
	r.each(container, index, func(gpu string) []Command {
		return r.arbiter.Ask(gpu, container, max(wall, 0), r.now())
	})
}

// Done says that the container needs no window on that GPU any more.
func (r *Runner) Done(container string, index uint32) {
	r.each(container, index, func(gpu string) []Command {
		return r.arbiter.Done(gpu, container, r.now())
	})
}

func (r *Runner) each(container string, index uint32, f func(gpu string) []Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.pages[container]
	if !ok || r.closed || uint64(index) >= uint64(len(p.gpus)) {
		return
	}
	r.apply(f(p.gpus[index]))
	r.arm()
}

// Close lets go of everybody who is held and ends the timer.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	for _, p := range r.pages {
		for i := range p.gpus {
			p.page.SetWindow(i, 0)
			p.page.SetHold(i, 0)
		}
	}
	clear(r.pages)
	if r.timer != nil && r.timer.Stop() {
		r.finished.Done()
	}
	r.mu.Unlock()
	r.finished.Wait()
}

func (r *Runner) now() time.Duration { return time.Since(r.start) }

func (r *Runner) apply(commands []Command) {
	for _, c := range commands {
		p, ok := r.pages[c.Container]
		if !ok {
			continue
		}
		for i, g := range p.gpus {
			if g != c.GPU {
				continue
			}
			switch c.Kind {
			case Hold:
				p.page.SetHold(i, c.Value)
			case Window:
				p.page.SetWindow(i, c.Value)
			case Alone:
				p.page.SetAlone(i, c.Value != 0)
			}
		}
	}
}

// arm sets the timer to what is due next.
func (r *Runner) arm() {
	if r.timer != nil && r.timer.Stop() {
		r.finished.Done()
	}
	r.timer = nil
	now := r.now()
	at, ok := r.arbiter.Next(now)
	if !ok || r.closed {
		return
	}
	r.finished.Add(1)
	r.timer = time.AfterFunc(max(at-now, 0), func() {
		defer r.finished.Done()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed {
			return
		}
		r.apply(r.arbiter.Tick(r.now()))
		r.arm()
	})
}
