// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"container/list"
	"math"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/wire"
)

// allocationUnit is what sizes are rounded up to on a card without blocks.
const allocationUnit = 512

// object is device memory. Clients hold it by handles, descriptors by being open
// (share.go); it lives as long as anything holds it. Who made it is charged; when
// that one lets go, the oldest other holder is, and with none left but
// descriptors the bytes stay in the account of the control group.
type object struct {
	gpu     int
	bytes   uint64          // as charged
	use     int             // wire.Use…
	holders map[*client]int // handles of each
	charged *client         // nil: nobody's process
	group   *group          // that is charged
	shared  *sharing
	queue   *list.Element // in gpu.managed, while it has bytes that can be pushed out
}

// usage is the account of one process, group or GPU on one GPU.
type usage struct {
	used, high uint64
	by         [wire.Uses]uint64 // used, by what for
	contexts   int
	ran        int64 // ns of the compute engine
	copied     int64 // ns of the copy engines
}

func (u *usage) add(n uint64, use int) {
	u.used += n
	u.by[use] += n
	u.high = max(u.high, u.used)
}

func (u *usage) sub(n uint64, use int) {
	u.used -= n
	u.by[use] -= n
}

// unit is what a GPU gives memory in.
func (g *gpu) unit() uint64 {
	if b := g.rules.BlockBytes; b != 0 {
		return b
	}
	return allocationUnit
}

// round rounds up to the GPU's unit; ok is false if that overflows.
func (g *gpu) round(n uint64) (r uint64, ok bool) {
	r = (n + g.unit() - 1) / g.unit() * g.unit()
	return r, r >= n
}

// reserve takes n bytes of device memory for c, or reports that there are not
// as many. Managed memory of any process makes way.
func (h *Host) reserve(c *client, gpu int, n uint64, use int) bool {
	if !h.withinLimits(c.group, gpu, n) || !h.makeRoom(gpu, n, nil) {
		return false
	}
	h.gpus[gpu].use.add(n, use)
	c.use[gpu].add(n, use)
	c.group.use[gpu].add(n, use)
	h.tracedMemory(c, gpu, int64(n)) //nolint:gosec // at most the GPU's memory
	return true
}

func (h *Host) release(c *client, gpu int, n uint64, use int) {
	h.gpus[gpu].use.sub(n, use)
	c.use[gpu].sub(n, use)
	c.group.use[gpu].sub(n, use)
	h.tracedMemory(c, gpu, -int64(n)) //nolint:gosec // likewise
}

// makeRoom reports whether n bytes are free, having pushed managed memory out to
// the host where that is needed and enough; keep stays.
func (h *Host) makeRoom(gpu int, n uint64, keep *object) bool {
	g := h.gpus[gpu]
	free := g.info.MemoryBytes - min(g.use.used, g.info.MemoryBytes)
	if n <= free {
		return true
	}
	h.seeHangups()
	free = g.info.MemoryBytes - min(g.use.used, g.info.MemoryBytes)
	if n <= free {
		return true
	}
	movable := g.use.by[wire.UseManaged]
	if keep != nil {
		movable -= keep.bytes
	}
	if !g.rules.ManagedMigrates || n-free > movable {
		return false
	}
	for e := g.managed.Front(); e != nil && n > free; { // longest unused first
		o := e.Value.(*object)
		e = e.Next()
		if o == keep {
			continue
		}
		out, _ := g.round(n - free)
		out = min(out, o.bytes)
		h.shrink(o, out)
		free += out
	}
	return true
}

// shrink gives back n of an object's bytes.
func (h *Host) shrink(o *object, n uint64) {
	o.bytes -= n
	h.gpus[o.gpu].use.sub(n, o.use)
	o.group.use[o.gpu].sub(n, o.use)
	if o.charged != nil {
		o.charged.use[o.gpu].sub(n, o.use)
		h.tracedMemory(o.charged, o.gpu, -int64(n)) //nolint:gosec // likewise
	}
	h.enqueue(o)
}

// enqueue keeps managed memory that can be pushed out in the GPU's queue, at the
// end when it is new there.
func (h *Host) enqueue(o *object) {
	g := h.gpus[o.gpu]
	switch {
	case o.use != wire.UseManaged || !g.rules.ManagedMigrates:
	case o.bytes == 0 && o.queue != nil:
		g.managed.Remove(o.queue)
		o.queue = nil
	case o.bytes != 0 && o.queue == nil:
		o.queue = g.managed.PushBack(o)
	}
}

// grow charges n more bytes, which are free, to whom an object is charged.
func (h *Host) grow(o *object, n uint64) {
	o.bytes += n
	h.gpus[o.gpu].use.add(n, o.use)
	o.group.use[o.gpu].add(n, o.use)
	if o.charged != nil {
		o.charged.use[o.gpu].add(n, o.use)
		h.tracedMemory(o.charged, o.gpu, int64(n)) //nolint:gosec // likewise
	}
	h.enqueue(o)
}

// hold gives c a handle of o.
func (c *client) hold(o *object) uint64 {
	c.nextMem++
	c.allocs[c.nextMem] = o
	o.holders[c]++
	return c.nextMem
}

// alloc answers wire.OpAlloc. Managed memory and tokens may be of no bytes.
func (h *Host) alloc(c *client, req *wire.Request) (wire.Reply, []byte, bool) {
	if int(req.GPU) >= len(h.gpus) {
		return wire.Reply{Status: wire.CUDAInvalidDevice}, nil, true
	}
	g := h.gpus[req.GPU]
	n, ok := g.round(req.A)
	empty := req.B == wire.UseManaged || req.B == wire.UseToken
	if req.B >= wire.UseContext || (req.B == wire.UseToken && n != 0) {
		return wire.Reply{Status: wire.CUDAInvalidValue}, nil, true
	}
	use := int(req.B)
	if !ok || (n == 0 && !empty) || len(c.allocs) >= maxAllocations || !h.reserve(c, int(req.GPU), n, use) {
		return wire.Reply{Status: wire.CUDAOutOfMemory}, nil, true
	}
	o := &object{gpu: int(req.GPU), bytes: n, use: use, holders: map[*client]int{}, charged: c, group: c.group}
	h.enqueue(o)
	return wire.Reply{A: c.hold(o), B: n}, nil, true
}

// resize answers wire.OpResize. Managed memory grows as far as there is room;
// the rest of it stays in the host's memory.
func (h *Host) resize(c *client, req *wire.Request) wire.Reply {
	o := c.allocs[req.A]
	if o == nil || o.use == wire.UseToken || o.shared != nil {
		return wire.Reply{Status: wire.CUDAInvalidValue}
	}
	g, before := h.gpus[o.gpu], o.bytes
	if req.B == math.MaxUint64 { // only asks
		return wire.Reply{A: before, B: before}
	}
	n, ok := g.round(req.B)
	if !ok {
		return wire.Reply{Status: wire.CUDAOutOfMemory}
	}
	if o.queue != nil { // used now
		g.managed.MoveToBack(o.queue)
	}
	if n <= before {
		h.shrink(o, before-n)
		return wire.Reply{A: before, B: n}
	}
	if !h.withinLimits(o.group, o.gpu, n-before) {
		if o.use != wire.UseManaged {
			return wire.Reply{Status: wire.CUDAOutOfMemory}
		}
		n = before // what does not fit stays in the host's memory
	} else if o.use == wire.UseManaged && !h.makeRoom(o.gpu, n-before, o) {
		free := g.info.MemoryBytes - min(g.use.used, g.info.MemoryBytes)
		most := (free + g.use.by[wire.UseManaged] - before) / g.unit() * g.unit() // less than n - before
		if !h.makeRoom(o.gpu, most, o) {
			most = 0
		}
		n = before + most
	} else if !h.makeRoom(o.gpu, n-before, o) {
		return wire.Reply{Status: wire.CUDAOutOfMemory}
	}
	h.grow(o, n-before)
	return wire.Reply{A: before, B: n}
}

// dropHandle ends one handle of c.
func (h *Host) dropHandle(c *client, handle uint64) {
	o := c.allocs[handle]
	delete(c.allocs, handle)
	if o.holders[c]--; o.holders[c] == 0 {
		delete(o.holders, c)
		if o.charged == c {
			h.recharge(o)
		}
	}
	h.dropIfUnheld(o)
}

// recharge moves the account of an object from a client that lets go of it to
// another one that holds it.
func (h *Host) recharge(o *object) {
	n := o.bytes
	o.charged.use[o.gpu].sub(n, o.use)
	h.tracedMemory(o.charged, o.gpu, -int64(n)) //nolint:gosec // likewise
	o.charged = nil
	var next *client
	for c := range o.holders {
		if next == nil || c.id < next.id {
			next = c
		}
	}
	if next == nil {
		return // in its group's account until the last descriptor closes
	}
	o.group.use[o.gpu].sub(n, o.use)
	o.charged, o.group = next, next.group
	next.use[o.gpu].add(n, o.use)
	next.group.use[o.gpu].add(n, o.use)
	h.tracedMemory(next, o.gpu, int64(n)) //nolint:gosec // likewise
}

// dropIfUnheld frees an object that nothing holds any more.
func (h *Host) dropIfUnheld(o *object) {
	if len(o.holders) > 0 || (o.shared != nil && o.shared.exports > 0) {
		return
	}
	h.shrink(o, o.bytes)
	if s := o.shared; s != nil {
		delete(h.keys, s.key)
		if s.fd >= 0 {
			_ = unix.Close(s.fd)
			s.maker.files--
			h.files--
		}
	}
}

// dropHandles ends all handles of a client that is gone.
func (h *Host) dropHandles(c *client) {
	for handle := range c.allocs {
		h.dropHandle(c, handle)
	}
}

func (h *Host) memInfo(i int) wire.Reply {
	h.seeHangups()
	g := h.gpus[i]
	return wire.Reply{A: g.info.MemoryBytes - min(g.use.used, g.info.MemoryBytes), B: g.info.MemoryBytes, C: g.use.used}
}

// contextCost is what a new context of c costs.
func (h *Host) contextCost(c *client, i int) uint64 {
	g, n := h.gpus[i], h.gpus[i].info.ContextBytes
	if next := g.rules.ContextNextBytes; next != 0 && c.use[i].contexts > 0 {
		n = next
	}
	if g.rules.BlockBytes != 0 {
		n, _ = g.round(n)
	}
	return n
}
