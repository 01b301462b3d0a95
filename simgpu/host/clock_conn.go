// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// clientName returns the name that a client gives itself, or "" if it has none
// that can be written into a trace.
func clientName(b []byte) string {
	if len(b) >= wire.MaxName {
		return ""
	}
	for _, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return ""
		}
	}
	return string(b)
}

// serveClock serves the time library of a process: its threads wait in a table
// of their own, and it asks nothing.
func (h *Host) serveClock(conn *net.UnixConn, req wire.Request, pid uint32, name string, buf []byte) {
	fd, mem, err := sharedFile("simgpu-waits", int(sizeWaits), 0)
	if err != nil {
		h.log.Warn("time library refused", "pid", pid, "err", err)
		return
	}
	defer unix.Close(fd)                            //nolint:errcheck // nothing is lost
	defer unix.Munmap(mem)                          //nolint:errcheck // nothing is lost
	waits := (*wire.Waits)(unsafe.Pointer(&mem[0])) //nolint:gosec // layout pinned by wire.TestHeader
	h.mu.Lock()
	if h.stopped || len(h.virtual.crowd.order) >= 1<<16 {
		h.mu.Unlock()
		return
	}
	l := h.virtual.crowd.enter(conn, pid, name, nil, waits)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.leave(l)
		h.kick()
	}()
	if err := h.hello(conn, req, []int{fd, h.kickFD, h.nodeFD}); err != nil {
		return
	}
	h.loop(conn, buf, l, nil, func(*wire.Request, []byte) (wire.Reply, []byte, bool) {
		return wire.Reply{Status: wire.CUDAInvalidValue}, nil, true
	})
}

// leave takes a connection off the virtual clock.
func (h *Host) leave(l *link) {
	v := h.virtual
	v.crowd.leave(l)
	if len(l.p.links) == 0 {
		delete(v.told, l.p)
	}
}
