// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// crowd is who uses a virtual clock: processes with a CUDA library or a time
// library. Host.mu guards it.
type crowd struct {
	order []*process // in the order in which turns are granted
	count uint64
	names map[string]int // how many processes had a name
	polls []unix.PollFd
	watch watcher
}

// watcher tells what the threads of a process do that do not wait for the host.
type watcher interface {
	// threads returns how many threads a process has; 0: it is gone.
	threads(p *process) int
	// asleep reports whether all threads of p but p.waiting wait for each other
	// or for the outside, with no time set; why says what one does that does not. sum is
	// the same as before if none has run in between.
	asleep(p *process) (ok bool, why string, sum uint64)
	// bury takes the words of dead threads for what they are.
	bury(p *process)
	// children returns the processes that p has made.
	children(p *process) []uint32
}

func newCrowd() crowd { return crowd{watch: procWatcher{}, names: map[string]int{}} }

// process is a client of a virtual clock, with all its connections.
type process struct {
	pid    uint32
	name   string // SIMGPU_CLIENT, or "" if it has none
	number uint64 // order of its first connection
	key    string // how a trace calls it
	tasks  int    // descriptor of /proc/PID/task, or -1
	// When it was last looked at: the threads that waited for the host, by the
	// numbers that p has for them, and all threads if there were others.
	waiting []uint32
	seen    []*thread
	// checked is how many threads it had when all of them were last looked at,
	// also those that say they wait: one that was killed says so for ever.
	checked int
	links   []*link
}

func (p *process) String() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.pid))
	return fmt.Sprintf("pid %d (%s)", p.pid, strings.TrimSpace(string(b)))
}

// link is one connection of a process.
type link struct {
	p       *process
	conn    *net.UnixConn
	fd      int
	c       *client // nil: of a time library
	waits   *wire.Waits
	handled atomic.Uint64  // requests answered
	granted map[uint32]int // turns at this moment, by place in the table
}

// enter puts a connection into the crowd.
func (k *crowd) enter(conn *net.UnixConn, pid uint32, name string, c *client, waits *wire.Waits) *link {
	l := &link{conn: conn, c: c, waits: waits, fd: descriptor(conn), granted: map[uint32]int{}}
	l.p = k.process(pid)
	if l.p.key == "" {
		l.p.name, l.p.key = name, name
		if name == "" {
			l.p.key = "client"
		}
		if k.names[l.p.key]++; name == "" || k.names[l.p.key] > 1 {
			l.p.key = fmt.Sprintf("%s-%d", l.p.key, k.names[l.p.key])
		}
		slices.SortStableFunc(k.order, func(a, b *process) int {
			return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.number, b.number))
		})
	}
	l.p.links = append(l.p.links, l)
	return l
}

// process returns the process of that number, new if it is not known.
func (k *crowd) process(pid uint32) *process {
	if i := slices.IndexFunc(k.order, func(p *process) bool { return p.pid == pid && !p.dead() }); i >= 0 {
		return k.order[i]
	}
	k.count++
	p := &process{pid: pid, number: k.count, tasks: -1}
	if pid != 0 {
		if fd, err := unix.Open(fmt.Sprintf("/proc/%d/task", pid), unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
			p.tasks = fd
		}
	}
	k.order = append(k.order, p)
	return p
}

// leave takes a connection out. A process that lives on without one may be
// about to become another program of the same kind, so it stays until it ends.
func (k *crowd) leave(l *link) {
	l.p.links = slices.DeleteFunc(l.p.links, func(o *link) bool { return o == l })
	if len(l.p.links) == 0 && k.watch.threads(l.p) == 0 {
		k.drop(l.p)
	}
}

func (k *crowd) drop(p *process) {
	p.forgetThreads()
	if p.tasks >= 0 {
		_ = unix.Close(p.tasks)
		p.tasks = -1
	}
	k.order = slices.DeleteFunc(k.order, func(o *process) bool { return o == p })
}

func descriptor(conn *net.UnixConn) int {
	n := -1
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { n = int(fd) })
	}
	return n
}

// dead reports whether p ended while something else, a forked child, holds its
// connection.
func (p *process) dead() bool {
	var st unix.Stat_t
	return p.tasks >= 0 && (unix.Fstat(p.tasks, &st) != nil || st.Nlink <= 2)
}

// running returns a process that may still do something, and what, or nil. Those
// in ignored are taken to wait.
func (k *crowd) running(ignored map[*process]bool) (*process, string) {
	var slow, gone []*process
	var sums []uint64
	defer func() {
		for _, p := range gone {
			k.drop(p)
		}
	}()
	for _, p := range k.order {
		if ignored[p] {
			continue
		}
		// Waiting threads first: the other order would miss a thread that one
		// which runs makes in between.
		p.waiting = p.waiting[:0]
		for _, l := range p.links {
			p.waiting = l.appendWaiting(p.waiting)
		}
		waiting, n := len(p.waiting), k.watch.threads(p)
		if len(p.links) == 0 && n == 0 {
			gone = append(gone, p)
			continue
		}
		if n <= waiting && n == p.checked {
			continue
		}
		if n != p.checked {
			p.waiting = p.waiting[:0]
		}
		ok, why, sum := k.watch.asleep(p)
		if !ok {
			return p, why
		}
		if n != p.checked {
			k.watch.bury(p)
			p.checked = n
		}
		slow, sums = append(slow, p), append(sums, sum)
	}
	if k.adopt(slow) {
		return slow[0], "has made a process"
	}
	if p, why := k.pending(ignored); p != nil {
		return p, why
	}
	// One that was looked at first may have been woken by one looked at later:
	// if none has run since, all slept at one moment.
	for i, p := range slow {
		if ok, why, sum := k.watch.asleep(p); !ok || sum != sums[i] {
			return p, cmp.Or(why, "runs")
		}
	}
	return nil, ""
}

// adopt takes the processes in that those of the crowd have made and that have
// not connected, or not yet: a shell waits for a program that only begins.
func (k *crowd) adopt(parents []*process) bool {
	grown := false
	for _, p := range parents {
		for _, pid := range k.watch.children(p) {
			if !slices.ContainsFunc(k.order, func(o *process) bool { return o.pid == pid }) {
				k.process(pid)
				grown = true
			}
		}
	}
	return grown
}

// doubt has every thread looked at before time passes again: the outside may have
// killed some.
func (k *crowd) doubt() {
	for _, p := range k.order {
		p.checked = -1
	}
}

// pending looks for requests that are on their way, and for connections that
// have ended and whose end is not accounted yet.
func (k *crowd) pending(ignored map[*process]bool) (*process, string) {
	k.polls = k.polls[:0]
	for _, p := range k.order {
		for _, l := range p.links {
			if !ignored[p] && atomic.LoadUint64(&l.waits.Calls) != l.handled.Load() {
				return p, "asks the simulator for something"
			}
			k.polls = append(k.polls, unix.PollFd{Fd: int32(l.fd)}) //nolint:gosec // a descriptor
		}
	}
	n, err := unix.Poll(k.polls, 0)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(k.polls, 0)
	}
	if n == 0 {
		return nil, ""
	}
	i := 0
	for _, p := range k.order {
		for range p.links {
			if k.polls[i].Revents != 0 {
				return p, "ends"
			}
			i++
		}
	}
	return nil, ""
}

func (l *link) high() uint32 { return min(atomic.LoadUint32(&l.waits.High), wire.Waiters) }

// appendWaiting appends the numbers of the threads that wait for the host.
func (l *link) appendWaiting(tids []uint32) []uint32 {
	for i := range l.high() {
		w := &l.waits.Waiter[i]
		// A thread in a call of the system's may have been woken already.
		if s := atomic.LoadUint32(&w.State); s == wire.WaiterReady ||
			s == wire.WaiterWaiting && atomic.LoadUint32(&w.Kind) != wire.WaitPoll {
			tids = append(tids, atomic.LoadUint32(&w.TID))
		}
	}
	return tids
}

// waiter is a place of a link's table.
type waiter struct {
	l *link
	i uint32
}

// choose returns the thread whose turn it is now, or nil and when there is one.
func (k *crowd) choose(h *Host, now int64) (*waiter, int64) {
	var best *waiter
	bestTurns, bestThread := 0, uint32(0)
	next := int64(sim.Never)
	for _, p := range k.order {
		for _, l := range p.links {
			for i := range l.high() {
				at := l.due(h, i, now)
				if at > now {
					next = min(next, at)
					continue
				}
				turns, thread := l.granted[i], atomic.LoadUint32(&l.waits.Waiter[i].Thread)
				if best == nil || turns < bestTurns ||
					turns == bestTurns && l.p == best.l.p && thread < bestThread {
					best, bestTurns, bestThread = &waiter{l, i}, turns, thread
				}
			}
		}
	}
	return best, next
}

// due returns when the thread in place i goes on if nothing else happens.
func (l *link) due(h *Host, i uint32, now int64) int64 {
	w := &l.waits.Waiter[i]
	state := atomic.LoadUint32(&w.State)
	if state != wire.WaiterWaiting && state != wire.WaiterReady {
		return sim.Never
	}
	if state == wire.WaiterReady || l.over(w) {
		return now
	}
	if until := load64(&w.UntilNS); until < uint64(sim.Never) {
		return max(int64(until), now)
	}
	return sim.Never
}

// over reports whether what a thread waits for has come.
func (l *link) over(w *wire.Waiter) bool {
	c := l.c
	switch kind := atomic.LoadUint32(&w.Kind); {
	case kind == wire.WaitTurn:
		return true
	case c == nil:
		return false
	case kind == wire.WaitStream:
		slot := atomic.LoadUint32(&w.Slot)
		return slot >= wire.StreamSlots || load64(&c.shm.Stream[slot].Done) >= load64(&w.Position)
	case kind == wire.WaitEvent:
		hold := c.shares[atomic.LoadUint32(&w.Slot)]
		return hold == nil || hold.e.done >= load64(&w.Position)
	case kind == wire.WaitSpace:
		return load64(&c.shm.Head)-c.tail <= wire.RingEntries-spaceMark
	case kind == wire.WaitHost:
		return c.hostHead != uint32(load64(&w.Position))
	}
	return false
}

// grant wakes the thread.
func (w *waiter) grant(now int64) {
	p := &w.l.waits.Waiter[w.i]
	w.l.granted[w.i]++
	by := uint32(1)
	state := atomic.LoadUint32(&p.State)
	if state == wire.WaiterReady || w.l.over(p) {
		by = 0
	}
	atomic.StoreUint32(&p.By, by)
	if !atomic.CompareAndSwapUint32(&p.State, state, wire.WaiterGranted) {
		return // a signal came first
	}
	if atomic.LoadUint32(&p.Kind) == wire.WaitPoll {
		_ = unix.Sendto(w.l.fd, make([]byte, replySize), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	}
	wakeFutex(&p.State)
}

// newMoment begins the count of turns again.
func (k *crowd) newMoment() {
	for _, p := range k.order {
		for _, l := range p.links {
			if len(l.granted) > 0 {
				clear(l.granted)
			}
		}
	}
}

const sizeWaits = unsafe.Sizeof(wire.Waits{})
