// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"crypto/rand"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// Device memory that several processes use.
//
// Its bytes lie in a memory file of this process's making. An exported
// descriptor is the writing end of a pipe whose reading end this process keeps:
// whoever has a copy open holds the memory, also a process that knows nothing of
// CUDA, and its closing is seen without anybody's word. Who sends such a
// descriptor back has proved that it was given one. A key serves where no
// descriptor travels (IPC handles); it holds nothing by itself.

// Bounds of the descriptors that one client can make this process keep; all of
// them together may keep half of what it can have, so that others can connect.
const (
	maxExports = 1024
	maxFiles   = 4096
)

// roomForFiles reports whether n more descriptors may be kept.
func (h *Host) roomForFiles(n int) bool {
	return h.files+len(h.exportEnds)+n <= h.mostFiles
}

// openFilesBound is half of what this process may open.
func openFilesBound() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return maxFiles
	}
	return int(min(l.Cur, 1<<20) / 2) //nolint:gosec // bounded
}

// sharing is what an object has once others may use it.
type sharing struct {
	fd      int // memory file, -1: none
	size    int64
	maker   *client // that asked for the file
	key     [wire.KeyBytes]byte
	note    []byte // what the exporter tells importers
	exports int    // descriptors that may be open
}

// fileID names an open file of this machine.
type fileID struct{ dev, ino uint64 }

// export is a descriptor that was given out.
type export struct {
	o      *object
	id     fileID
	end    int // reading end
	client *client
}

// descriptors go with a request and its answer.
type descriptors struct {
	got  int // of the client, -1: none
	send int // for the client, -1: none
}

// reset closes what the last message left.
func (d *descriptors) reset() {
	if d == nil {
		return
	}
	for _, fd := range []*int{&d.got, &d.send} {
		if *fd >= 0 {
			_ = unix.Close(*fd)
		}
		*fd = -1
	}
}

// rights is the control message with what is to be sent.
func (d *descriptors) rights() []byte {
	if d == nil || d.send < 0 {
		return nil
	}
	return unix.UnixRights(d.send)
}

// take keeps the first descriptor of a message and closes the others.
func (d *descriptors) take(oob []byte) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for i := range msgs {
		got, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			continue
		}
		for _, fd := range got {
			if d != nil && d.got < 0 {
				d.got = fd
				continue
			}
			_ = unix.Close(fd)
		}
	}
}

func (h *Host) sharingOf(o *object) *sharing {
	if o.shared == nil {
		o.shared = &sharing{fd: -1}
	}
	return o.shared
}

// shareRequest answers the requests about shared memory.
func (h *Host) shareRequest(c *client, req *wire.Request, data []byte) (wire.Reply, []byte) {
	if req.Op == wire.OpImport {
		return h.importObject(c, data)
	}
	o := c.allocs[req.A]
	if o == nil || len(data) > wire.NoteBytes {
		return wire.Reply{Status: wire.CUDAInvalidValue}, nil
	}
	switch req.Op {
	case wire.OpShare:
		return h.shareFile(c, o, req.B == 1), nil
	case wire.OpExport:
		if err := h.export(c, o, data); err != nil {
			h.log.Debug("export refused", "pid", c.pid, "err", err)
			return wire.Reply{Status: wire.CUDAOperatingSystem}, nil
		}
		return wire.Reply{}, nil
	}
	s := h.sharingOf(o)
	if s.key == [wire.KeyBytes]byte{} {
		_, _ = rand.Read(s.key[:]) // never fails
		h.keys[s.key] = o
		if len(s.note) == 0 {
			s.note = slices.Clone(data)
		}
	}
	return wire.Reply{}, s.key[:]
}

// shareFile sends the memory file of an object, which it makes if asked to.
func (h *Host) shareFile(c *client, o *object, create bool) wire.Reply {
	s := h.sharingOf(o)
	if s.fd < 0 {
		if !create || o.use == wire.UseToken {
			return wire.Reply{Status: wire.CUDAInvalidValue}
		}
		if c.files >= maxFiles || !h.roomForFiles(1) {
			return wire.Reply{Status: wire.CUDAOperatingSystem}
		}
		size := (int64(o.bytes) + 4095) &^ 4095
		fd, err := memoryFile("simgpu-shared", size)
		if err != nil {
			h.log.Warn("memory is not shared", "pid", c.pid, "err", err)
			return wire.Reply{Status: wire.CUDAOutOfMemory}
		}
		s.fd, s.size, s.maker = fd, size, c
		c.files++
		h.files++
	}
	fd, err := unix.FcntlInt(uintptr(s.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return wire.Reply{Status: wire.CUDAOperatingSystem}
	}
	c.fds.send = fd
	return wire.Reply{A: uint64(s.size)}
}

// memoryFile makes a memory file that nobody can cut off or grow.
func memoryFile(name string, size int64) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("create memory file %s: %w", name, err)
	}
	if err = unix.Ftruncate(fd, size); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("set up memory file %s of %d bytes: %w", name, size, err)
	}
	return fd, nil
}

// export makes a descriptor that holds o and puts it into the answer.
func (h *Host) export(c *client, o *object, note []byte) error {
	if c.exports >= maxExports || !h.roomForFiles(1) {
		return fmt.Errorf("more than %d descriptors", maxExports)
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return fmt.Errorf("make pipe: %w", err)
	}
	id, err := identify(p[0])
	if err == nil {
		// Hang-ups only: what a client may write into the pipe stays there.
		err = unix.EpollCtl(h.hangups.epoll, unix.EPOLL_CTL_ADD, p[0], &unix.EpollEvent{Fd: int32(p[0])})
	}
	if err != nil {
		_ = unix.Close(p[0])
		_ = unix.Close(p[1])
		return fmt.Errorf("watch pipe: %w", err)
	}
	s := h.sharingOf(o)
	s.exports++
	if len(s.note) == 0 {
		s.note = slices.Clone(note)
	}
	e := &export{o: o, id: id, end: p[0], client: c}
	h.exports[id], h.exportEnds[p[0]] = e, e
	c.exports++
	c.fds.send = p[1]
	return nil
}

func identify(fd int) (fileID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fileID{}, fmt.Errorf("look at descriptor: %w", err)
	}
	return fileID{dev: st.Dev, ino: st.Ino}, nil
}

// importObject gives c a handle of the object behind a key or a descriptor.
func (h *Host) importObject(c *client, data []byte) (wire.Reply, []byte) {
	var o *object
	if len(data) == wire.KeyBytes {
		o = h.keys[[wire.KeyBytes]byte(data)]
	} else if c.fds.got >= 0 && len(data) == 0 {
		if id, err := identify(c.fds.got); err == nil && h.exports[id] != nil {
			o = h.exports[id].o
		}
	}
	switch {
	case o == nil:
		return wire.Reply{Status: wire.CUDAInvalidValue}, nil
	case len(c.allocs) >= maxAllocations:
		return wire.Reply{Status: wire.CUDAOutOfMemory}, nil
	}
	if o.charged == nil { // only descriptors held it
		o.group.use[o.gpu].sub(o.bytes, o.use)
		o.charged, o.group = c, c.group
		c.use[o.gpu].add(o.bytes, o.use)
		c.group.use[o.gpu].add(o.bytes, o.use)
		h.tracedMemory(c, o.gpu, int64(o.bytes)) //nolint:gosec // at most the GPU's memory
	}
	return wire.Reply{A: c.hold(o), B: o.bytes, C: uint64(o.gpu)}, o.shared.note
}

// hangups sees the end of exported descriptors.
type hangups struct {
	epoll int
	stop  int // event file that ends the watch
}

func newHangups() (w hangups, err error) {
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return w, fmt.Errorf("watch descriptors: %w", err)
	}
	if w.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
		err = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, w.stop, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(w.stop)})
	}
	if err != nil {
		_ = unix.Close(w.epoll)
		return w, fmt.Errorf("watch descriptors: %w", err)
	}
	return w, nil
}

// watchExports frees what closed descriptors held, until endExports.
func (h *Host) watchExports() {
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(h.hangups.epoll, events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		h.mu.Lock()
		for _, ev := range events[:n] {
			if int(ev.Fd) == h.hangups.stop {
				h.mu.Unlock()
				return
			}
			h.hungUp(int(ev.Fd))
		}
		h.mu.Unlock()
	}
}

// hungUp drops the export behind an end if its descriptors are closed. It looks
// again: the number may be another export's since the event.
func (h *Host) hungUp(end int) {
	e := h.exportEnds[end]
	p := []unix.PollFd{{Fd: int32(end)}}
	if e == nil {
		return
	}
	if n, err := unix.Poll(p, 0); err == nil && n == 1 && p[0].Revents&unix.POLLHUP != 0 {
		h.dropExport(e)
	}
}

// seeHangups handles at once what the watch would handle soon: a program that has
// closed a descriptor finds the memory free.
func (h *Host) seeHangups() {
	var events [16]unix.EpollEvent
	for len(h.exports) > 0 {
		n, err := unix.EpollWait(h.hangups.epoll, events[:], 0)
		if err != nil || n <= 0 {
			return
		}
		before := len(h.exports)
		for _, ev := range events[:n] {
			h.hungUp(int(ev.Fd))
		}
		if len(h.exports) == before {
			return
		}
	}
}

func (h *Host) dropExport(e *export) {
	_ = unix.Close(e.end) // leaves the watch, too
	delete(h.exports, e.id)
	delete(h.exportEnds, e.end)
	e.client.exports--
	e.o.shared.exports--
	h.dropIfUnheld(e.o)
}

// endExports stops the watch and closes what is left.
func (h *Host) endExports() {
	_, _ = unix.Write(h.hangups.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	h.watching.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.exportEnds {
		h.dropExport(e)
	}
	_ = unix.Close(h.hangups.epoll)
	_ = unix.Close(h.hangups.stop)
}
