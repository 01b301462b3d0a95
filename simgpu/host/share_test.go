// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"math/rand"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// exchange is ask with data and descriptors both ways: pass -1 for none.
func (c *tenant) exchange(req wire.Request, data []byte, pass int) (st int32, a uint64, out []byte, fd int) {
	c.t.Helper()
	var rights []byte
	if pass >= 0 {
		rights = unix.UnixRights(pass)
	}
	if _, _, err := c.conn.WriteMsgUnix(message(req, data), rights, nil); err != nil {
		c.t.Fatal(err)
	}
	buf, oob := make([]byte, wire.MaxMessage), make([]byte, 64)
	_ = c.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, noob, _, _, err := c.conn.ReadMsgUnix(buf, oob)
	if err != nil || n < replySize {
		c.t.Fatalf("answer to %+v: %d bytes, %v", req, n, err)
	}
	fd = -1
	if noob > 0 {
		if msgs, err := unix.ParseSocketControlMessage(oob[:noob]); err == nil {
			if fds, err := unix.ParseUnixRights(&msgs[0]); err == nil {
				fd = fds[0]
			}
		}
	}
	return int32(binary.NativeEndian.Uint32(buf[8:])), binary.NativeEndian.Uint64(buf[16:]), buf[replySize:n], fd
}

func (c *tenant) must(req wire.Request, data []byte, pass int) (a uint64, out []byte, fd int) {
	c.t.Helper()
	st, a, out, fd := c.exchange(req, data, pass)
	if st != 0 {
		c.t.Fatalf("%+v: %d", req, st)
	}
	return a, out, fd
}

// holds waits until GPU 0 has so many bytes in use, of which orphans are nobody's.
func holds(t *testing.T, h *Host, used, orphans uint64) Status {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		st := h.Status()
		if g := st.GPUs[0]; g.UsedBytes == used && g.OrphanBytes == orphans {
			return st
		} else if time.Now().After(end) {
			t.Fatalf("%d bytes in use, %d of them nobody's; want %d, %d", g.UsedBytes, g.OrphanBytes, used, orphans)
		}
	}
}

func TestAccountMovesWithTheLastHolder(t *testing.T) {
	h, path := serve(t)
	a, b := join(t, path), join(t, path)
	id, _, _ := a.must(wire.Request{Op: wire.OpAlloc, A: 1 << 20}, nil, -1)
	_, key, _ := a.must(wire.Request{Op: wire.OpKey, A: id}, []byte("note"), -1)
	_, note, _ := b.must(wire.Request{Op: wire.OpImport}, key, -1)
	if string(note) != "note" {
		t.Errorf("the importer is told %q", note)
	}
	st := holds(t, h, 1<<20, 0)
	if n := st.Processes[0].GPUs[0].UsedBytes + st.Processes[1].GPUs[0].UsedBytes; n != 1<<20 {
		t.Errorf("the two processes are charged %d", n)
	}
	_ = a.conn.Close()
	for end := time.Now().Add(3 * time.Second); len(h.Status().Processes) != 1 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if st = h.Status(); st.Processes[0].GPUs[0].UsedBytes != 1<<20 || st.Processes[0].GPUs[0].Memory["linear"] != 1<<20 {
		t.Errorf("the importer is charged %+v", st.Processes[0].GPUs[0])
	}
	_ = b.conn.Close()
	holds(t, h, 0, 0)
	c := join(t, path)
	if st, _, _, _ := c.exchange(wire.Request{Op: wire.OpImport}, key, -1); st == 0 {
		t.Error("a key of memory that is gone was taken")
	}
}

func TestDescriptorHoldsMemory(t *testing.T) {
	h, path := serve(t)
	a := join(t, path)
	id, _, _ := a.must(wire.Request{Op: wire.OpAlloc, A: 1 << 20, B: wire.UsePhysical}, nil, -1)
	_, _, file := a.must(wire.Request{Op: wire.OpShare, A: id, B: 1}, nil, -1)
	if _, err := unix.Pwrite(file, []byte("bytes"), 100); err != nil {
		t.Fatal(err)
	}
	if unix.Ftruncate(file, 0) == nil || unix.Ftruncate(file, 1<<30) == nil {
		t.Error("the memory file can be cut off or blown up")
	}
	_, _, fd := a.must(wire.Request{Op: wire.OpExport, A: id}, []byte("n"), -1)
	_, _ = unix.Write(fd, make([]byte, 1<<20)) // what is written into it says nothing
	_ = a.conn.Close()
	holds(t, h, 1<<20, 1<<20) // only the descriptor is left
	b := join(t, path)
	other, _, _ := b.must(wire.Request{Op: wire.OpImport}, nil, fd)
	_ = unix.Close(fd)
	holds(t, h, 1<<20, 0)
	_, _, same := b.must(wire.Request{Op: wire.OpShare, A: other}, nil, -1)
	buf := make([]byte, 5)
	if _, err := unix.Pread(same, buf, 100); err != nil || string(buf) != "bytes" {
		t.Errorf("the importer reads %q: %v", buf, err)
	}
	_ = unix.Close(file)
	_ = unix.Close(same)
	b.must(wire.Request{Op: wire.OpFree, A: other}, nil, -1)
	holds(t, h, 0, 0)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.exports)+len(h.exportEnds)+len(h.keys)+h.files != 0 {
		t.Errorf("%d exports, %d ends, %d keys, %d files are kept", len(h.exports), len(h.exportEnds), len(h.keys), h.files)
	}
}

// A client cannot make the host keep more descriptors than the bound.
func TestDescriptorsAreBounded(t *testing.T) {
	h, path := serve(t)
	c := join(t, path)
	id, _, _ := c.must(wire.Request{Op: wire.OpAlloc, A: 4096}, nil, -1)
	var fds []int
	for range maxExports + 10 {
		st, _, _, fd := c.exchange(wire.Request{Op: wire.OpExport, A: id}, nil, -1)
		if (st == 0) != (len(fds) < maxExports) {
			t.Fatalf("export %d: %d", len(fds), st)
		}
		if fd >= 0 {
			fds = append(fds, fd)
		}
	}
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	_ = c.conn.Close()
	healthy(t, h, path)
}

func TestNonsenseAboutSharing(t *testing.T) {
	h, path := serve(t)
	rng := rand.New(rand.NewSource(5))
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close() //nolint:errcheck // read only
	var keys [][]byte
	var files []int
	for range 12 {
		c := join(t, path)
		for range 300 {
			req := wire.Request{
				Op: uint32(64 + rng.Intn(6)), GPU: uint32(rng.Intn(3)),
				A: uint64(rng.Intn(60)), B: uint64(rng.Intn(4)),
			}
			switch rng.Intn(4) {
			case 0:
				req.Op, req.A, req.B = wire.OpAlloc, uint64(rng.Intn(1<<20)), uint64(rng.Intn(12))
			case 1:
				req.Op = wire.OpFree
			}
			if rng.Intn(20) == 0 {
				req.A, req.B = rng.Uint64(), rng.Uint64()
			}
			data := make([]byte, []int{0, 0, 16, 300}[rng.Intn(4)])
			rng.Read(data)
			if len(keys) > 0 && len(data) == 16 && rng.Intn(2) == 0 {
				data = keys[rng.Intn(len(keys))]
			}
			pass := -1
			if rng.Intn(3) == 0 {
				pass = int(null.Fd())
				if len(files) > 0 {
					pass = files[rng.Intn(len(files))]
				}
			}
			st, _, out, fd := c.exchange(req, data, pass)
			if st == 0 && req.Op == wire.OpKey {
				keys = append(keys, out)
			}
			if fd >= 0 {
				files = append(files, fd)
			}
			if len(files) > 20 {
				_ = unix.Close(files[0])
				files = files[1:]
			}
		}
		_ = c.conn.Close()
	}
	for _, fd := range files {
		_ = unix.Close(fd)
	}
	healthy(t, h, path)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seeHangups()
	if len(h.exports)+len(h.keys)+h.files != 0 {
		t.Errorf("%d exports, %d keys, %d files are kept", len(h.exports), len(h.keys), h.files)
	}
}

// Managed memory is pushed out by what others need, longest unused first, and
// learns of it.
func TestManagedMemoryMakesWay(t *testing.T) {
	cfg := testConfig()
	cfg.GPUs[0].Memory.Allocation.ManagedMigrates = true
	h, path := serveWith(t, cfg)
	total := h.gpus[0].info.MemoryBytes
	a, b := join(t, path), join(t, path)
	old, _, _ := a.must(wire.Request{Op: wire.OpAlloc, B: wire.UseManaged}, nil, -1)
	young, _, _ := a.must(wire.Request{Op: wire.OpAlloc, B: wire.UseManaged}, nil, -1)
	a.must(wire.Request{Op: wire.OpResize, A: old, B: total / 2}, nil, -1)
	a.must(wire.Request{Op: wire.OpResize, A: young, B: total / 2}, nil, -1)
	b.must(wire.Request{Op: wire.OpAlloc, A: total / 4}, nil, -1)
	for id, want := range map[uint64]uint64{old: total / 4, young: total / 2} {
		if now, _, _ := a.must(wire.Request{Op: wire.OpResize, A: id, B: 1<<64 - 1}, nil, -1); now != want {
			t.Errorf("%d bytes are left of %d, want %d", now, total/2, want)
		}
	}
	if st, _, _, _ := b.exchange(wire.Request{Op: wire.OpAlloc, A: total}, nil, -1); st != wire.CUDAOutOfMemory {
		t.Errorf("more than there is: %d", st)
	}
	b.must(wire.Request{Op: wire.OpAlloc, A: total / 4 * 3}, nil, -1)
	holds(t, h, total, 0)
	_ = a.conn.Close()
	_ = b.conn.Close()
	holds(t, h, 0, 0)
}
