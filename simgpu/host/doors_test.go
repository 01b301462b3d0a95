// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestDoors(t *testing.T) {
	d := newDoors(0)
	n := 0
	for d.enter("/a") {
		n++
	}
	if n != leastConns*3/4 || !d.enter("/b") {
		t.Errorf("one group has %d of %d places, or all", n, leastConns)
	}
	for range n {
		d.leave("/a")
	}
	d.leave("/b")
	if d.open != 0 || len(d.byGroup) != 0 {
		t.Errorf("places are still taken: %+v", d)
	}
}

// A tenant that connects as often as it can, and says nothing, ends nothing:
// what is too many is refused at once, and there is room again when it goes.
func TestManyConnections(t *testing.T) {
	h, path := serve(t)
	h.doors.mu.Lock()
	h.doors.most = 40
	h.doors.mu.Unlock()
	var held []*net.UnixConn
	for range 200 {
		held = append(held, dial(t, path))
	}
	refused := 0
	places := h.doors.most * 3 / 4
	for i, c := range held {
		wait := 5 * time.Second
		if i < places {
			wait = time.Millisecond
		}
		_ = c.SetReadDeadline(time.Now().Add(wait))
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			refused++
		}
	}
	if want := len(held) - places; refused != want {
		t.Errorf("%d connections are refused, want %d", refused, want)
	}
	for _, c := range held {
		_ = c.Close()
	}
	eventuallyFree(t, h)
	healthy(t, h, path)
}

func eventuallyFree(t *testing.T, h *Host) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		h.doors.mu.Lock()
		n := h.doors.open
		h.doors.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d places are still taken", n)
		}
	}
}

// Want of descriptors is no end of serving.
func TestWanting(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("accept: %w", unix.EMFILE): true, unix.ECONNABORTED: true, net.ErrClosed: false, nil: false,
	} {
		if wanting(err) != want {
			t.Errorf("%v: want again: %v", err, !want)
		}
	}
}
