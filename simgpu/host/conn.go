// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/fault"
	"github.com/gpushare/gpushare/simgpu/wire"
)

var errProtocol = errors.New("malformed message")

// serveConn answers one client until its last copy of the socket closes.
func (h *Host) serveConn(conn *net.UnixConn) {
	defer conn.Close() //nolint:errcheck // nothing is lost
	pid, err := peer(conn)
	if err != nil {
		h.log.Debug("client refused", "err", err)
		return
	}
	buf := make([]byte, wire.MaxMessage)
	_ = conn.SetReadDeadline(time.Now().Add(helloPatience))
	req, data, err := receive(conn, buf, nil)
	if err != nil || req.Op != wire.OpHello {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	name := clientName(data)
	switch {
	case req.B != wire.Version:
		return
	case req.A == wire.KindClock && h.virtual != nil:
		h.serveClock(conn, req, pid, name, buf)
	case req.A == wire.KindCUDA:
		c, err := h.addClient(conn, pid, name)
		if err != nil {
			h.log.Warn("client refused", "pid", pid, "err", err)
			return
		}
		defer h.removeClient(c)
		if err := h.hello(conn, req, []int{c.fd, h.kickFD, h.nodeFD}); err != nil {
			return
		}
		h.loop(conn, buf, c.link, &c.fds, func(req *wire.Request, data []byte) (wire.Reply, []byte, bool) {
			return h.answer(c, req, data)
		})
	case req.A == wire.KindFaults:
		if err := h.hello(conn, req, []int{h.nodeFD}); err != nil {
			return
		}
		c := fault.Caller{PID: pid, Cgroup: cgroupPath(cgroupLine(pid))}
		h.loop(conn, buf, nil, nil, func(req *wire.Request, data []byte) (wire.Reply, []byte, bool) {
			r, out := h.faults.answer(c, req, data)
			return r, out, true
		})
	case req.A == wire.KindNVML:
		if err := h.hello(conn, req, []int{h.nodeFD}); err != nil {
			return
		}
		root := peerIsRoot(conn)
		h.loop(conn, buf, nil, nil, func(req *wire.Request, data []byte) (wire.Reply, []byte, bool) {
			r, out := h.query(req, data, root)
			return r, out, true
		})
	case req.A == wire.KindEvents:
		if err := send(conn, wire.Reply{Op: req.Op, ID: req.ID}, nil, nil); err != nil {
			return
		}
		h.serveEvents(conn, buf)
	}
}

// loop answers requests; l is the connection's place on a virtual clock, or nil;
// fds holds the descriptors that go with a message, nil if none do.
func (h *Host) loop(conn *net.UnixConn, buf []byte, l *link, fds *descriptors,
	answer func(*wire.Request, []byte) (wire.Reply, []byte, bool),
) {
	for {
		fds.reset()
		req, data, err := receive(conn, buf, fds)
		if err != nil {
			fds.reset()
			return
		}
		rep, out, wanted := answer(&req, data)
		rep.Op, rep.ID = req.Op, req.ID
		if wanted {
			err = send(conn, rep, out, fds.rights())
		}
		fds.reset()
		if err != nil {
			return
		}
		if l != nil {
			l.handled.Add(1)
			h.kick()
		}
	}
}

// hello sends a client its descriptors.
func (h *Host) hello(conn *net.UnixConn, req wire.Request, fds []int) error {
	return send(conn, wire.Reply{Op: req.Op, ID: req.ID}, nil, unix.UnixRights(fds...))
}

func peer(conn *net.UnixConn) (uint32, error) {
	cred, err := credentials(conn)
	if err != nil {
		return 0, err
	}
	return uint32(cred.Pid), nil
}

// peerIsRoot reports whether the client may do what the driver leaves to root.
func peerIsRoot(conn *net.UnixConn) bool {
	cred, err := credentials(conn)
	return err == nil && cred.Uid == 0
}

func credentials(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("look at client socket: %w", err)
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, fmt.Errorf("look at client socket: %w", err)
	}
	if cerr != nil {
		return nil, fmt.Errorf("read client's credentials: %w", cerr)
	}
	return cred, nil
}

const (
	requestSize = 40
	replySize   = 40
)

// receive reads one message. A client may send one descriptor with it; fds nil:
// none is taken.
func receive(conn *net.UnixConn, buf []byte, fds *descriptors) (wire.Request, []byte, error) {
	var oob [64]byte
	n, noob, _, _, err := conn.ReadMsgUnix(buf, oob[:])
	if noob > 0 {
		fds.take(oob[:noob])
	}
	if err != nil {
		return wire.Request{}, nil, fmt.Errorf("read request: %w", err)
	}
	if n < requestSize {
		return wire.Request{}, nil, errProtocol
	}
	e := binary.NativeEndian
	req := wire.Request{
		Op: e.Uint32(buf), ID: e.Uint32(buf[4:]), GPU: e.Uint32(buf[8:]), Ctx: e.Uint32(buf[12:]),
		A: e.Uint64(buf[16:]), B: e.Uint64(buf[24:]), Len: e.Uint32(buf[32:]),
	}
	if int(req.Len) != n-requestSize {
		return wire.Request{}, nil, errProtocol
	}
	return req, buf[requestSize:n], nil
}

func send(conn *net.UnixConn, r wire.Reply, data, rights []byte) error {
	e := binary.NativeEndian
	buf := make([]byte, 0, replySize+len(data))
	buf = e.AppendUint32(buf, r.Op)
	buf = e.AppendUint32(buf, r.ID)
	buf = e.AppendUint32(buf, uint32(r.Status))
	buf = e.AppendUint32(buf, uint32(len(data)))
	buf = e.AppendUint64(buf, r.A)
	buf = e.AppendUint64(buf, r.B)
	buf = e.AppendUint64(buf, r.C)
	buf = append(buf, data...)
	if _, _, err := conn.WriteMsgUnix(buf, rights, nil); err != nil {
		return fmt.Errorf("send reply: %w", err)
	}
	return nil
}
