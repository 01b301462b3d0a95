// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// push puts an entry into the ring.
func (c *tenant) push(e wire.Entry) {
	head := load64(&c.shm.Head)
	c.shm.Ring[head%wire.RingEntries] = e
	store64(&c.shm.Head, head+1)
}

// stream makes a context with a stream.
func (c *tenant) stream() (ctx, slot uint32) {
	c.t.Helper()
	id, _, _ := c.must(wire.Request{Op: wire.OpCtxCreate}, nil, -1)
	s, _, _ := c.must(wire.Request{Op: wire.OpStreamCreate, Ctx: uint32(id)}, nil, -1)
	return uint32(id), uint32(s)
}

// record asks for a number.
func (c *tenant) record(slot uint64) uint64 {
	c.t.Helper()
	gen, _, _ := c.must(wire.Request{Op: wire.OpEventRecord, A: slot}, nil, -1)
	return gen
}

// state is what c sees of a shared event.
func (c *tenant) state(slot int) (done, newest uint64) {
	return load64(&c.shm.Event[slot].Generation), load64(&c.shm.Event[slot].TimeNS)
}

func (c *tenant) comesTo(slot int, gen uint64, why string) {
	c.t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		done, newest := c.state(slot)
		if done == gen && newest == gen {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s: record %d of %d complete, want %d", why, done, newest, gen)
		}
	}
}

func TestSharedEventsAreNotTaken(t *testing.T) {
	h, path := serve(t)
	a, b := join(t, path), join(t, path)
	_, key, _ := a.must(wire.Request{Op: wire.OpEventShare, A: 3}, nil, -1)
	if len(key) != wire.KeyBytes {
		t.Fatalf("a key of %d bytes", len(key))
	}
	wrong := append([]byte{}, key...)
	wrong[5] ^= 1
	for _, c := range []struct {
		who  *tenant
		req  wire.Request
		data []byte
		want int32
	}{
		{b, wire.Request{Op: wire.OpEventShare}, wrong, wire.CUDAInvalidHandle},
		{b, wire.Request{Op: wire.OpEventShare}, key[:15], wire.CUDAInvalidHandle},
		{b, wire.Request{Op: wire.OpEventShare}, append(key, 0), wire.CUDAInvalidHandle},
		{b, wire.Request{Op: wire.OpEventShare, A: wire.EventSlots}, key, wire.CUDAInvalidValue},
		{b, wire.Request{Op: wire.OpEventShare, A: 1<<32 | 3}, key, wire.CUDAInvalidValue},
		{b, wire.Request{Op: wire.OpEventRecord, A: 3}, nil, wire.CUDAInvalidHandle},
		{b, wire.Request{Op: wire.OpEventDrop, A: 3}, nil, wire.CUDAInvalidHandle},
		{a, wire.Request{Op: wire.OpEventShare, A: 4}, key, wire.CUDAInvalidContext},
		{a, wire.Request{Op: wire.OpEventShare, A: 3}, nil, wire.CUDAInvalidValue},
	} {
		if st, _, _, _ := c.who.exchange(c.req, c.data, -1); st != c.want {
			t.Errorf("%+v: %d, want %d", c.req, st, c.want)
		}
	}
	b.must(wire.Request{Op: wire.OpEventShare, A: 9}, key, -1)

	// Numbers that were not given out, and events that are not there, record nothing.
	_, s := b.stream()
	gen := a.record(3)
	for _, e := range []wire.Entry{
		{Kind: wire.EntryEvent, Arg: 9 | wire.EventShared, Arg64: gen},
		{Kind: wire.EntryEvent, Arg: 9 | wire.EventShared, Arg64: 1<<64 - 1},
		{Kind: wire.EntryEvent, Arg: 8 | wire.EventShared, Arg64: 1},
		{Kind: wire.EntryEvent, Arg: 1<<31 - 1 | wire.EventShared, Arg64: 1},
		{Kind: wire.EntryEvent, Arg: 9, Arg64: 77}, // its own event of that slot
		{Kind: wire.EntryWait, Arg: 9 | wire.EventShared},
	} {
		e.Stream = s
		b.push(e)
	}
	b.must(wire.Request{Op: wire.OpStreamDestroy, A: uint64(s)}, nil, -1)
	if done, newest := a.state(3); done != gen-1 || newest != gen {
		t.Errorf("the event stands at %d of %d, want %d of %d", done, newest, gen-1, gen)
	}
	if done, newest := b.state(9); done != gen-1 || newest != gen {
		t.Errorf("there at %d of %d, want %d of %d", done, newest, gen-1, gen)
	}
	_ = a.conn.Close() // it owes a record
	b.comesTo(9, gen, "who was to record is gone")
	_ = b.conn.Close()
	healthy(t, h, path)
}

// Whatever ends between a number and its record, nobody waits for it for ever.
func TestSharedEventsOutliveWhoRecords(t *testing.T) {
	h, path := serve(t)
	for name, end := range map[string]func(a *tenant, ctx, s uint32, gen uint64){
		"context with the record": func(a *tenant, ctx, s uint32, gen uint64) {
			a.push(wire.Entry{Stream: s, Kind: wire.EntryHost})
			a.push(wire.Entry{Stream: s, Kind: wire.EntryEvent, Arg: wire.EventShared, Arg64: gen})
			a.must(wire.Request{Op: wire.OpCtxDestroy, Ctx: ctx}, nil, -1)
		},
		"context before the record": func(a *tenant, ctx, s uint32, gen uint64) {
			a.must(wire.Request{Op: wire.OpCtxDestroy, Ctx: ctx}, nil, -1)
			a.push(wire.Entry{Stream: s, Kind: wire.EntryEvent, Arg: wire.EventShared, Arg64: gen})
			h.kick()
		},
		"broken context": func(a *tenant, ctx, s uint32, gen uint64) {
			h.mu.Lock()
			for _, c := range h.clients {
				if cc := c.contexts[ctx]; cc != nil {
					h.breakContext(cc, wire.CUDALaunchFailed)
				}
			}
			h.mu.Unlock()
			a.push(wire.Entry{Stream: s, Kind: wire.EntryEvent, Arg: wire.EventShared, Arg64: gen})
			h.kick()
		},
		"event": func(a *tenant, _, _ uint32, _ uint64) {
			a.must(wire.Request{Op: wire.OpEventDrop}, nil, -1)
		},
		"nonsense": func(a *tenant, _, _ uint32, _ uint64) {
			store64(&a.shm.Head, 1<<40)
			h.kick()
		},
		"connection": func(a *tenant, _, s uint32, gen uint64) {
			a.push(wire.Entry{Stream: s, Kind: wire.EntryHost})
			a.push(wire.Entry{Stream: s, Kind: wire.EntryEvent, Arg: wire.EventShared, Arg64: gen})
			_ = a.conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := join(t, path), join(t, path)
			_, key, _ := a.must(wire.Request{Op: wire.OpEventShare}, nil, -1)
			b.must(wire.Request{Op: wire.OpEventShare, A: 5}, key, -1)
			ctx, s := a.stream()
			gen := a.record(0)
			if done, newest := b.state(5); done != gen-1 || newest != gen {
				t.Fatalf("the event stands at %d of %d", done, newest)
			}
			end(a, ctx, s, gen)
			b.comesTo(5, gen, "after the end of the "+name)
			_ = a.conn.Close()
			_ = b.conn.Close()
		})
	}
	healthy(t, h, path)
}

// What clients make, hold and leave is bounded, and used again.
func TestSharedEventsAreUsedAgain(t *testing.T) {
	h, path := serve(t)
	a := join(t, path)
	_, s := a.stream()
	for range 300 {
		a.must(wire.Request{Op: wire.OpEventShare, A: 1}, nil, -1)
		gen := a.record(1)
		a.push(wire.Entry{Stream: s, Kind: wire.EntryHost}) // never done
		a.push(wire.Entry{Stream: s, Kind: wire.EntryEvent, Arg: 1 | wire.EventShared, Arg64: gen})
		a.must(wire.Request{Op: wire.OpEventDrop, A: 1}, nil, -1)
	}
	_, key, _ := a.must(wire.Request{Op: wire.OpEventShare, A: 1}, nil, -1)
	if done, newest := a.state(1); done != newest {
		t.Errorf("a new event stands at %d of %d", done, newest)
	}
	b := join(t, path)
	atomic.StoreUint32(&b.shm.EventWaiters, 1) // it does not
	n := uint64(0)
	for ; n < 2*maxHolds; n++ {
		if st, _, _, _ := b.exchange(wire.Request{Op: wire.OpEventShare, A: n}, key, -1); st != 0 {
			break
		}
	}
	if n != maxHolds-1 {
		t.Errorf("opened %d times", n)
	}
	_ = a.conn.Close()
	_ = b.conn.Close()
	healthy(t, h, path)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.shared.all) != 1 || len(h.shared.unused) != 1 || len(h.shared.byKey) != 0 || len(h.shared.users) != 0 {
		t.Errorf("%d events, %d unused, %d keys, %d users", len(h.shared.all), len(h.shared.unused), len(h.shared.byKey),
			len(h.shared.users))
	}
}
