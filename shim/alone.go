// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"sync"
	"time"
)

// aloneAfter is how long a shim waits for a first or a next container. containerd
// asks for it at once after start, and ends a shim whose last one it has deleted; one
// that it has lost sight of, because it was killed in between, would stay for ever.
const aloneAfter = time.Minute

// alone ends a shim that serves nobody. end is called after a time in which no
// container was made or removed; it must do nothing while there is one.
type alone struct {
	after time.Duration
	end   func()

	mu    sync.Mutex
	calls int // under way
	timer *time.Timer
}

func newAlone(after time.Duration, end func()) *alone {
	a := &alone{after: after, end: end}
	a.timer = time.AfterFunc(after, a.fire)
	return a
}

func (a *alone) fire() {
	a.mu.Lock()
	quiet := a.calls == 0
	a.mu.Unlock()
	if quiet {
		a.end()
	}
}

// begin notes a call that makes or removes a container, done its end.
func (a *alone) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	a.timer.Stop()
}

func (a *alone) done() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls--; a.calls == 0 {
		a.timer.Reset(a.after)
	}
}
