// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	descriptorsEach = 3  // of a connection: its socket, its memory, its place on a virtual clock
	descriptorsOwn  = 64 // of this process itself and of the operator's connections
	leastConns      = 8  // with however few descriptors
	mostConns       = 1 << 16
	acceptAgain     = 10 * time.Millisecond
	helloPatience   = 30 * time.Second // a connection that says nothing holds a place
)

// doors bounds the connections, so that a tenant that makes many can neither
// take the last descriptor of this process nor shut the others out: the
// processes of one control group have at most three quarters of the places.
type doors struct {
	mu      sync.Mutex
	most    int
	open    int
	byGroup map[string]int
}

func newDoors(descriptors int) *doors {
	n := (descriptors - descriptorsOwn) / descriptorsEach
	return &doors{most: min(max(n, leastConns), mostConns), byGroup: map[string]int{}}
}

// enter takes a place for a process of a control group, if there is one.
func (d *doors) enter(group string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open >= d.most || d.byGroup[group] >= d.most*3/4 {
		return false
	}
	d.open++
	d.byGroup[group]++
	return true
}

func (d *doors) leave(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open--
	if d.byGroup[group]--; d.byGroup[group] == 0 {
		delete(d.byGroup, group)
	}
}

// wanting reports whether accept failed for want of something that comes back,
// or because of the client.
func wanting(err error) bool {
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED, unix.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// accept lets serve answer each connection of l until l is closed or ctx ends.
func (h *Host) accept(ctx context.Context, l *net.UnixListener, serve func(*net.UnixConn)) error {
	for {
		c, err := l.AcceptUnix()
		if wanting(err) {
			h.log.Warn("a client is not heard", "err", err)
			select {
			case <-time.After(acceptAgain):
				continue
			case <-ctx.Done():
			}
		}
		if err != nil {
			return fmt.Errorf("accept clients: %w", err)
		}
		pid, err := peer(c)
		group := cgroupLine(pid)
		if err != nil || !h.doors.enter(group) {
			h.log.Debug("client refused", "pid", pid, "err", errFull)
			_ = c.Close()
			continue
		}
		h.conns.Add(1)
		go func() {
			defer h.conns.Done()
			defer h.doors.leave(group)
			serve(c)
		}()
	}
}
