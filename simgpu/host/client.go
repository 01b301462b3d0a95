// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/trace"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// Bounds of what one client can make the host remember.
const (
	maxContexts    = wire.ContextSlots
	maxAllocations = 1 << 20
)

// client is one connection of a CUDA library. Its fields are guarded by Host.mu.
type client struct {
	id    uint32
	key   string // how a trace calls it
	conn  *net.UnixConn
	pid   uint32
	group *group
	fd    int
	mem   []byte
	shm   *wire.Shared

	tail     uint64 // entries taken from the ring
	lastTime int64
	dead     bool // it has lost a GPU
	broken   bool // the ring makes no sense: nothing is taken any more
	active   bool // the engine thread looks at the ring by itself
	busyAt   int64

	contexts   map[uint32]*clientContext
	nextCtx    uint32
	streams    [wire.StreamSlots]*stream
	position   [wire.StreamSlots]uint64 // reached by the streams before
	live       []*stream
	allocs     map[uint64]*object // by handle
	exports    int                // descriptors made
	files      int                // memory files made
	fds        descriptors
	nextMem    uint64
	graphs     map[uint32]*graph
	nextGr     uint32
	inBranches int // operations of graphs' branches in the model
	markGen    uint64
	graphParts int                   // over all graphs
	events     map[uint32]struct{}   // slots that the model knows
	shares     map[uint32]*eventHold // by event slot
	pending    int                   // operations in the model
	hostHead   uint32
	launches   uint64
	use        []usage // by GPU

	mig     []migUse // by GPU
	started int64

	link   *link // on a virtual clock
	future int   // entries that were taken before their time

	saved checkpoint

	gone     bool // what it held is being taken back
	wake     bool // a wanted position was reached
	wakeHost bool // a host function is due
}

type clientContext struct {
	c     *client
	id    uint32
	gpu   int
	bytes uint64 // what it costs
	sms   uint32 // that it may use, as a client of MPS; 0: all
	sim   *sim.Context
}

type stream struct {
	c       *client
	ctx     *clientContext
	slot    uint32
	sim     *sim.Stream
	sms     uint32 // multiprocessors its kernels may use; 0: its context's
	base    uint64 // position of the slot when the stream began: positions never go back
	done    uint64 // position reached
	traced  []tracedOp
	last    int64 // virtual clock: when its newest operation was submitted
	closing bool  // the slot is free when the stream has run dry

	priority int
	branches [wire.PartBranches]*branch // of graphs
}

var errFull = errors.New("too many clients")

// addClient gives a connection its shared memory.
func (h *Host) addClient(conn *net.UnixConn, pid uint32, name string) (*client, error) {
	fd, mem, err := sharedFile("simgpu-client", int(sizeShared), 0)
	if err != nil {
		return nil, err
	}
	line := cgroupLine(pid)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || len(h.clients) >= 1<<16 {
		_ = unix.Munmap(mem)
		_ = unix.Close(fd)
		return nil, errFull
	}
	for h.nextID++; h.clients[h.nextID] != nil || h.nextID == 0; h.nextID++ {
	}
	c := &client{
		id: h.nextID, conn: conn, pid: pid, group: h.groupOf(line), fd: fd, mem: mem, shm: asShared(mem),
		contexts: map[uint32]*clientContext{}, allocs: map[uint64]*object{},
		fds:    descriptors{got: -1, send: -1},
		graphs: map[uint32]*graph{}, events: map[uint32]struct{}{}, shares: map[uint32]*eventHold{}, use: make([]usage, len(h.gpus)),
		started: h.clock.now(), mig: make([]migUse, len(h.gpus)),
	}
	c.shm.Magic, c.shm.Version = wire.Magic, wire.Version
	h.clients[c.id] = c
	if h.virtual != nil {
		c.link = h.virtual.crowd.enter(conn, pid, name, c, &c.shm.Waits)
		c.key = c.link.p.key
	} else if c.key = name; name == "" || slices.ContainsFunc(slices.Collect(maps.Values(h.clients)), func(o *client) bool {
		return o != c && o.key == name
	}) {
		c.key = fmt.Sprintf("%s-%d", cmp.Or(name, "client"), c.id)
	}
	h.trace.client(c, h.clock.now(), trace.Attach, trace.None, trace.None)
	c.group.clients++
	return c, nil
}

// removeClient frees all that a client held, at once.
func (h *Host) removeClient(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.machine.Advance(max(h.clock.now(), h.machine.Now()))
	h.accountGone(c)
	h.trace.client(c, h.clock.now(), trace.Detach, trace.None, trace.None)
	c.gone = true
	for _, id := range slices.Sorted(maps.Keys(c.contexts)) {
		h.dropContext(c, id)
	}
	h.dropHandles(c)
	h.dropEvents(c)
	for slot := range c.events {
		h.machine.Forget(c.event(slot))
	}
	if h.virtual != nil {
		h.virtual.forget(c)
		h.leave(c.link)
	}
	delete(h.clients, c.id)
	if c.dead || c.saved.locking {
		h.publishDead()
	}
	h.active = slices.DeleteFunc(h.active, func(o *client) bool { return o == c })
	c.group.clients--
	_ = unix.Munmap(c.mem)
	_ = unix.Close(c.fd)
	h.kick()
}

// event names slot over all clients and remembers that the model knows it.
func (c *client) event(slot uint32) sim.EventID {
	c.events[slot] = struct{}{}
	return sim.EventID(uint64(c.id)<<32 | uint64(slot))
}

// take appends the client's new entries to batch. Times are made to rise and
// to lie between the last one and now.
func (c *client) take(batch []arrival, now int64, bounded bool) []arrival {
	if c.broken {
		return batch
	}
	head := load64(&c.shm.Head)
	n := head - c.tail
	if n > wire.RingEntries {
		c.broken = true
		_ = c.conn.Close()
		return batch
	}
	if room := uint64(max(0, maxPending-c.pending-c.future)); bounded && n > room {
		n = room
	}
	for range n {
		e := c.shm.Ring[c.tail%wire.RingEntries] // a copy: the client may still write
		c.lastTime = min(max(int64(min(e.TimeNS, 1<<62)), c.lastTime), now)
		batch = append(batch, arrival{at: c.lastTime, c: c, e: e})
		c.tail++
	}
	return batch
}

// publish makes progress visible to the client and wakes its waiting threads.
func (c *client) publish() {
	if load64(&c.shm.Tail) != c.tail {
		store64(&c.shm.Tail, c.tail)
	}
	if atomic.LoadUint32(&c.shm.SpaceWaiters) != 0 && load64(&c.shm.Head)-c.tail <= wire.RingEntries-spaceMark {
		atomic.AddUint32(&c.shm.TailFutex, 1)
		wakeFutex(&c.shm.TailFutex)
	}
	if c.wake {
		c.wake = false
		atomic.AddUint32(&c.shm.DoneFutex, 1)
		wakeFutex(&c.shm.DoneFutex)
	}
	if c.wakeHost {
		c.wakeHost = false
		wakeFutex(&c.shm.HostHead)
	}
}

func (c *client) publishAwake(on bool) {
	v := uint32(0)
	if on {
		v = 1
	}
	atomic.StoreUint32(&c.shm.Awake, v)
}

// addContext makes a context whose number marks a free slot of ContextFault.
// percent is what a client of MPS may use of the multiprocessors.
func (h *Host) addContext(c *client, gpu int, percent uint64) *clientContext {
	used := map[uint32]bool{}
	for id := range c.contexts {
		used[id%wire.ContextSlots] = true
	}
	for c.nextCtx++; c.nextCtx == 0 || used[c.nextCtx%wire.ContextSlots]; c.nextCtx++ {
	}
	cc := &clientContext{c: c, id: c.nextCtx, gpu: gpu}
	cc.sim = h.machine.AddContext(gpu, cc)
	if percent > 0 && percent < 100 && h.engineOf(gpu).Sharing == "mps" {
		// Whole pairs of multiprocessors, as MPS rounds.
		all := h.gpus[gpu].info.Multiprocessors
		cc.sms = min(max((all*uint32(percent)+199)/200*2, 2), all)
		h.machine.LimitSMs(cc.sim, int(cc.sms))
	}
	atomic.StoreUint32(&c.shm.ContextFault[cc.id%wire.ContextSlots], 0)
	c.contexts[cc.id] = cc
	return cc
}

// addStream puts a stream into a free slot.
func (h *Host) addStream(c *client, cc *clientContext, kind sim.StreamKind, priority int) (uint32, error) {
	for slot := range uint32(wire.StreamSlots) {
		if c.streams[slot] != nil {
			continue
		}
		s := &stream{c: c, ctx: cc, slot: slot, base: c.position[slot], done: c.position[slot], priority: priority}
		s.sim = h.machine.AddStream(cc.sim, kind, priority, s)
		store64(&c.shm.Stream[slot].Done, s.base)
		c.streams[slot] = s
		c.live = append(c.live, s)
		return slot, nil
	}
	return 0, fmt.Errorf("all %d streams in use", wire.StreamSlots)
}

// freeStream gives a slot back. What is still queued counts as done: a thread
// that waits for it must not wait for ever.
func (c *client) freeStream(s *stream) {
	for _, x := range s.branches {
		if x != nil {
			x.ended(x.ops)
		}
	}
	if n := s.sim.Len(); n > 0 {
		s.done += uint64(n)
		store64(&c.shm.Stream[s.slot].Done, s.done)
		c.wake = true
	}
	c.position[s.slot] = s.done
	c.streams[s.slot] = nil
	c.live = slices.DeleteFunc(c.live, func(o *stream) bool { return o == s })
}

// dropContext ends a context of c with its streams and queued work.
func (h *Host) dropContext(c *client, id uint32) {
	cc := c.contexts[id]
	for _, s := range slices.Clone(c.live) {
		if s.sim.Context() == cc.sim {
			c.pending -= s.sim.Len()
			c.freeStream(s)
		}
	}
	h.machine.RemoveContext(cc.sim)
	if !c.gone {
		h.trace.client(c, h.clock.now(), trace.ContextEnd, cc.gpu, int(id))
	}
	delete(c.contexts, id)
	if _, given := c.saved.contexts[cc]; !given {
		c.use[cc.gpu].contexts--
	}
	h.release(c, cc.gpu, cc.bytes, wire.UseContext)
}
