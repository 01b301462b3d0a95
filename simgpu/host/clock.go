// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"container/heap"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/sim"
)

// VirtualEpoch is the date of moment 0 of a virtual clock.
var VirtualEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock says what time it is on the node, in nanoseconds: CLOCK_MONOTONIC, read
// without a system call once calibrated, or a virtual moment.
type clock struct {
	base int64
	at   time.Time

	virtual *atomic.Int64 // nil: the wall clock
}

func newClock() clock {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return clock{base: ts.Nano(), at: time.Now()}
}

func newVirtualClock(start int64) clock {
	c := newClock()
	c.virtual = &atomic.Int64{}
	c.virtual.Store(start)
	return c
}

func (c clock) now() int64 {
	if c.virtual != nil {
		return c.virtual.Load()
	}
	return c.wall()
}

// wall returns CLOCK_MONOTONIC, also beside a virtual clock.
func (c clock) wall() int64 { return c.base + int64(time.Since(c.at)) }

// epoch returns what makes a date of now: nanoseconds since 1970 minus now.
func (c clock) epoch() int64 {
	if c.virtual != nil {
		return VirtualEpoch.UnixNano()
	}
	return time.Now().UnixNano() - c.wall()
}

// publishClock writes what clients read of the clock into the node's page.
func (h *Host) publishClock() {
	v := h.virtual
	if v == nil {
		return
	}
	h.node.ClockVirtual = 1
	h.node.EpochNS = uint64(VirtualEpoch.UnixNano())
	h.node.CallCostNS = uint32(h.cfg.Clock.CallCost)
	h.node.QueryCostNS = uint32(h.cfg.Clock.QueryCost)
	h.node.ReadCostNS = uint32(h.cfg.Clock.ReadCost)
	atomic.StoreUint64(&h.node.NowNS, uint64(h.clock.now()))
}

// timer is something that the host itself does at a moment.
type timer struct {
	at  int64
	seq uint64 // of two at the same moment the earlier made one goes first
	f   func()
}

type timers struct {
	list []timer
	made uint64
}

func (t *timers) Len() int { return len(t.list) }
func (t *timers) Less(i, j int) bool {
	a, b := &t.list[i], &t.list[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}
func (t *timers) Swap(i, j int) { t.list[i], t.list[j] = t.list[j], t.list[i] }
func (t *timers) Push(x any)    { t.list = append(t.list, x.(timer)) }
func (t *timers) Pop() any {
	x := t.list[len(t.list)-1]
	t.list = t.list[:len(t.list)-1]
	return x
}

// at has f called with h.mu held when the node's clock comes to at. The caller
// holds h.mu.
func (h *Host) at(at int64, f func()) {
	h.timers.made++
	heap.Push(&h.timers, timer{at: at, seq: h.timers.made, f: f})
	h.kick()
}

// nextTimer returns when the next f of at is due.
func (h *Host) nextTimer() int64 {
	if len(h.timers.list) == 0 {
		return sim.Never
	}
	return h.timers.list[0].at
}

// runTimers calls what is due at now.
func (h *Host) runTimers(now int64) {
	for h.nextTimer() <= now {
		heap.Pop(&h.timers).(timer).f()
	}
}

// Clock sets which clock the node has.
type Clock struct {
	Virtual bool
	Start   time.Duration // the first moment
	// Lenient lets time go on without a client that has not come back for
	// Grace. What happens then depends on the machine's speed.
	Lenient bool
	Grace   time.Duration // wall clock: how long a client may run before it is named; 0: 1 s
	// What things take the thread that does them; all else takes no time.
	CallCost  time.Duration // a submission: a launch, a copy, an event
	QueryCost time.Duration // a question answered with "not ready"
	ReadCost  time.Duration // a look at the clock
}

// Costs that a program which asks or looks in a loop cannot do without.
const (
	DefaultQueryCost = time.Microsecond
	DefaultReadCost  = 20 * time.Nanosecond
	defaultGrace     = time.Second
	maxCost          = time.Second
)
