// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package window

import (
	"sync"
	"testing"
	"time"

	"github.com/gpushare/gpushare/limiter/region"
)

var _ Page = (*region.Limits)(nil)

type fakePage struct {
	mu                  sync.Mutex
	hold, window, alone uint32
	changed             chan struct{}
}

func newFakePage() *fakePage { return &fakePage{changed: make(chan struct{}, 100)} }

func (p *fakePage) set(word *uint32, v uint32) {
	p.mu.Lock()
	*word = v
	p.mu.Unlock()
	p.changed <- struct{}{}
}
func (p *fakePage) SetHold(_ int, v uint32)   { p.set(&p.hold, v) }
func (p *fakePage) SetWindow(_ int, v uint32) { p.set(&p.window, v) }
func (p *fakePage) SetAlone(_ int, v bool) {
	if v {
		p.set(&p.alone, 1)
	} else {
		p.set(&p.alone, 0)
	}
}

func (p *fakePage) wait(t *testing.T, what string, ok func(*fakePage) bool) {
	t.Helper()
	late := time.After(5 * time.Second)
	for {
		p.mu.Lock()
		done := ok(p)
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-p.changed:
		case <-late:
			t.Fatalf("%s: never", what)
		}
	}
}

func TestRunner(t *testing.T) {
	r := NewRunner()
	a, b := newFakePage(), newFakePage()
	a.hold, a.window = 7, 7 // left by a daemon that died
	r.Join("a", a, []string{"G"})
	if a.hold != 0 || a.window != 0 || a.alone != 1 {
		t.Errorf("after Join: hold %d, window %d, alone %d", a.hold, a.window, a.alone)
	}
	r.Join("b", b, []string{"H", "G"})
	r.Ask("a", 0, 5*time.Millisecond)
	r.Ask("a", 1, time.Second) // no such GPU
	r.Ask("x", 0, time.Second) // no such container
	b.wait(t, "hold", func(p *fakePage) bool { return p.hold != 0 })
	a.wait(t, "window", func(p *fakePage) bool { return p.window != 0 })
	a.wait(t, "window ends", func(p *fakePage) bool { return p.window == 0 })
	b.wait(t, "hold ends", func(p *fakePage) bool { return p.hold == 0 })
	r.Leave("b")
	a.wait(t, "alone", func(p *fakePage) bool { return p.alone == 1 })
	c := newFakePage()
	r.Join("c", c, []string{"G"})
	r.Ask("c", 0, time.Second)
	a.wait(t, "hold", func(p *fakePage) bool { return p.hold != 0 })
	r.Close()
	if a.hold != 0 || c.window != 0 {
		t.Error("Close leaves somebody held")
	}
	r.Join("d", newFakePage(), []string{"G"})
	r.Close()
}
