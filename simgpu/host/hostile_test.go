// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/kernel"
	"github.com/gpushare/gpushare/simgpu/profile"
	"github.com/gpushare/gpushare/simgpu/wire"
)

func testConfig() Config {
	p, err := profile.Load(profile.Exact)
	if err != nil {
		panic(err)
	}
	g := p.GPU
	g.Name, g.Memory.TotalBytes, g.Memory.ContextBytes, g.Multiprocessor.Count = "test", 1<<30, 1<<20, 4
	return Config{
		GPUs: []profile.GPU{g, g}, Seed: "test", Kernels: []kernel.Rule{{Name: "k", Spec: kernel.Spec{Fixed: time.Millisecond}}},
	}
}

// serve runs a host for the length of a test.
func serve(t *testing.T) (*Host, string) {
	t.Helper()
	return serveWith(t, testConfig())
}

func serveWith(t *testing.T, cfg Config) (*Host, string) {
	t.Helper()
	h, err := New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("serve: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("serve did not end")
		}
	})
	return h, path
}

// tenant is a client without the library's good manners.
type tenant struct {
	t    *testing.T
	conn *net.UnixConn
	shm  *wire.Shared
	mem  []byte
}

func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func message(req wire.Request, data []byte) []byte {
	e := binary.NativeEndian
	b := e.AppendUint32(nil, req.Op)
	b = e.AppendUint32(b, req.ID)
	b = e.AppendUint32(b, req.GPU)
	b = e.AppendUint32(b, req.Ctx)
	b = e.AppendUint64(b, req.A)
	b = e.AppendUint64(b, req.B)
	b = e.AppendUint32(b, uint32(len(data)))
	b = e.AppendUint32(b, 0)
	return append(b, data...)
}

func join(t *testing.T, path string) *tenant {
	t.Helper()
	c := dial(t, path)
	if _, err := c.Write(message(wire.Request{Op: wire.OpHello, A: wire.KindCUDA, B: wire.Version}, nil)); err != nil {
		t.Fatal(err)
	}
	buf, oob := make([]byte, wire.MaxMessage), make([]byte, 256)
	_, n, _, _, err := c.ReadMsgUnix(buf, oob)
	if err != nil {
		t.Fatal(err)
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 {
		t.Fatalf("control messages: %v %v", msgs, err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 3 {
		t.Fatalf("descriptors: %v %v", fds, err)
	}
	mem, err := unix.Mmap(fds[0], 0, int(sizeShared), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	// The host's memory can be neither cut off nor blown up.
	if err := unix.Ftruncate(fds[0], 0); err == nil {
		t.Error("the shared memory can be cut off")
	}
	if err := unix.Ftruncate(fds[1], 1<<20); err == nil {
		t.Error("the shared page can be blown up")
	}
	if m, err := unix.Mmap(fds[2], 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		_ = unix.Munmap(m)
		t.Error("a client can write what others read of the node")
	}
	if _, err := unix.Pwrite(fds[2], []byte{1}, 0); err == nil {
		t.Error("a client can write into the node's file")
	}
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return &tenant{t: t, conn: c, shm: asShared(mem), mem: mem}
}

// ask sends one request and returns status and answer.
func (c *tenant) ask(req wire.Request, data []byte) (int32, uint64) {
	c.t.Helper()
	if _, err := c.conn.Write(message(req, data)); err != nil {
		c.t.Fatal(err)
	}
	buf := make([]byte, wire.MaxMessage)
	_ = c.conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, err := c.conn.Read(buf)
	if err != nil || n < replySize {
		c.t.Fatalf("answer to %+v: %d bytes, %v", req, n, err)
	}
	return int32(binary.NativeEndian.Uint32(buf[8:])), binary.NativeEndian.Uint64(buf[16:])
}

// healthy checks that an honest client is still served.
func healthy(t *testing.T, h *Host, path string) {
	t.Helper()
	c := join(t, path)
	if st, _ := c.ask(wire.Request{Op: wire.OpCtxCreate}, nil); st != 0 {
		t.Fatalf("context: %d", st)
	}
	if st, id := c.ask(wire.Request{Op: wire.OpAlloc, A: 1000}, nil); st != 0 {
		t.Fatalf("allocation: %d", st)
	} else if st, _ := c.ask(wire.Request{Op: wire.OpFree, A: id}, nil); st != 0 {
		t.Fatalf("free: %d", st)
	}
	_ = c.conn.Close()
	for end := time.Now().Add(3 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		st := h.Status()
		if len(st.Processes) == 0 {
			for _, g := range st.GPUs {
				if g.UsedBytes != 0 {
					t.Fatalf("%d bytes in use without a client", g.UsedBytes)
				}
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d clients left", len(st.Processes))
		}
	}
}

func TestMalformedMessages(t *testing.T) {
	h, path := serve(t)
	rng := rand.New(rand.NewSource(1))
	for range 300 {
		c := dial(t, path)
		b := make([]byte, rng.Intn(wire.MaxMessage+100)+1)
		rng.Read(b)
		if rng.Intn(2) == 0 {
			copy(b, message(wire.Request{Op: wire.OpHello, A: uint64(rng.Intn(4)), B: uint64(rng.Intn(3))}, nil))
		}
		_, _ = c.Write(b)
		_ = c.Close()
	}
	healthy(t, h, path)
}

func TestNonsenseRequests(t *testing.T) {
	h, path := serve(t)
	rng := rand.New(rand.NewSource(2))
	var ops []uint32
	for op := range uint32(20) {
		ops = append(ops, op)
	}
	ops = append(ops, wire.OpStreamPriority)
	for range 20 {
		c := join(t, path)
		for range 400 {
			req := wire.Request{
				Op: ops[rng.Intn(len(ops))], GPU: uint32(rng.Intn(3)), Ctx: uint32(rng.Intn(6)),
				A: uint64(rng.Intn(2000)), B: uint64(rng.Intn(5)),
			}
			if rng.Intn(4) == 0 {
				req.A = rng.Uint64()
			}
			if rng.Intn(10) == 0 {
				req.GPU, req.Ctx = rng.Uint32(), rng.Uint32()
			}
			data := make([]byte, rng.Intn(3)*rng.Intn(400))
			rng.Read(data)
			if req.Op == wire.OpHostDone || req.Op == wire.OpStreamPriority { // have no answer
				_, _ = c.conn.Write(message(req, nil))
				continue
			}
			c.ask(req, data)
		}
		_ = c.conn.Close()
	}
	healthy(t, h, path)
}

func TestNonsenseInTheRing(t *testing.T) {
	h, path := serve(t)
	rng := rand.New(rand.NewSource(3))
	for round := range 10 {
		c := join(t, path)
		for ctx := range uint32(3) {
			c.ask(wire.Request{Op: wire.OpCtxCreate, GPU: ctx % 2}, nil)
			for range 4 {
				c.ask(wire.Request{Op: wire.OpStreamCreate, Ctx: ctx + 1, A: uint64(rng.Intn(3))}, nil)
			}
		}
		_, g := c.ask(wire.Request{Op: wire.OpGraphDefine}, encodeParts(t,
			wire.GraphPart{Function: 1, Count: 1<<32 - 1}, wire.GraphPart{Kind: wire.PartJoin, Branch: 3, Other: 15},
			wire.GraphPart{Kind: wire.PartCopy, Branch: 15, Bytes: 1<<64 - 1}))
		for range 3000 {
			if load64(&c.shm.Head)-load64(&c.shm.Tail) >= wire.RingEntries {
				h.kick()
				time.Sleep(time.Millisecond)
				if round%2 == 0 {
					continue // an honest pace; else entries are written over
				}
			}
			e := wire.Entry{
				TimeNS: rng.Uint64(), Stream: uint32(rng.Intn(14)), Kind: uint32(rng.Intn(20)),
				Arg: uint32(rng.Intn(70000)), Arg64: uint64(rng.Intn(3)),
			}
			if rng.Intn(20) == 0 {
				e.Stream, e.Arg, e.Arg64 = rng.Uint32(), uint32(g), rng.Uint64()
			}
			c.shm.Ring[load64(&c.shm.Head)%wire.RingEntries] = e
			store64(&c.shm.Head, load64(&c.shm.Head)+1)
			if rng.Intn(100) == 0 {
				store64(&c.shm.Stream[rng.Intn(wire.StreamSlots)].Wanted, rng.Uint64())
				store64(&c.shm.Tail, rng.Uint64())
				h.kick()
			}
		}
		_ = c.conn.Close()
	}
	healthy(t, h, path)
}

func TestRingThatMakesNoSenseEndsTheConnection(t *testing.T) {
	h, path := serve(t)
	c := join(t, path)
	c.ask(wire.Request{Op: wire.OpCtxCreate}, nil)
	store64(&c.shm.Head, 1<<40)
	h.mu.Lock()
	h.wakeAll()
	h.mu.Unlock()
	h.kick()
	_ = c.conn.SetReadDeadline(time.Now().Add(3 * time.Second))
	if _, err := c.conn.Read(make([]byte, 100)); err == nil {
		t.Error("the connection is still there")
	}
	healthy(t, h, path)
}

// A client that never reads its answers holds up nobody.
func TestClientThatDoesNotRead(t *testing.T) {
	h, path := serve(t)
	c := join(t, path)
	_ = c.conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	for range 100000 {
		if _, err := c.conn.Write(message(wire.Request{Op: wire.OpMemInfo}, nil)); err != nil {
			break
		}
	}
	other := join(t, path)
	begin := time.Now()
	other.ask(wire.Request{Op: wire.OpMemInfo}, nil)
	if d := time.Since(begin); d > time.Second {
		t.Errorf("an honest client waited %v", d)
	}
	_ = other.conn.Close()
	_ = c.conn.Close()
	healthy(t, h, path)
}
