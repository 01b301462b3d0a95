// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
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
