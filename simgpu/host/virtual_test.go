// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gpushare/gpushare/simgpu/sim"
	"github.com/gpushare/gpushare/simgpu/wire"
)

// stage plays all clients of a virtual clock in one goroutine: whoever the host
// grants a turn does its next thing.
type stage struct {
	t       *testing.T
	h       *Host
	r       *rand.Rand
	players []*player
	log     []string
}

// player is one client with some threads, each in a place of its own.
type player struct {
	c       *client
	peer    int // the other end of its connection
	threads []int
	streams []uint32
	pushed  map[uint32]uint64
	left    int // things to do
	dead    bool
}

// stageWatcher knows how many threads the players have; none does anything that
// the host does not see.
type stageWatcher struct{ s *stage }

func (w stageWatcher) threads(p *process) int {
	for _, pl := range w.s.players {
		if pl.c.pid == p.pid && !pl.dead {
			return len(pl.threads)
		}
	}
	return 0
}
func (w stageWatcher) asleep(p *process) (bool, string, uint64) {
	return len(p.waiting) == 0 && w.threads(p) <= w.s.waiting(p), "plays", 0
}
func (stageWatcher) bury(*process)              {}
func (stageWatcher) children(*process) []uint32 { return nil }

func (s *stage) waiting(p *process) (n int) {
	for _, l := range p.links {
		n += len(l.appendWaiting(nil))
	}
	return n
}

func newStage(t *testing.T, seed int64) *stage {
	t.Helper()
	cfg := testConfig()
	cfg.Clock = Clock{Virtual: true, QueryCost: DefaultQueryCost}
	cfg.Trace = filepath.Join(t.TempDir(), "trace")
	h, err := New(cfg, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, h: h, r: rand.New(rand.NewSource(seed))}
	h.virtual.crowd.watch = stageWatcher{s}
	t.Cleanup(func() {
		for _, p := range s.players {
			if !p.dead {
				s.kill(p)
			}
		}
		h.trace.close()
	})
	return s
}

func (s *stage) add(name string, threads, things int) *player {
	s.t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "client")
	conn, err := net.FileConn(f)
	_ = f.Close()
	if err != nil {
		s.t.Fatal(err)
	}
	pid := uint32(1<<30 + len(s.players)) // no process has such a number
	c, err := s.h.addClient(conn.(*net.UnixConn), pid, name)
	if err != nil {
		s.t.Fatal(err)
	}
	p := &player{c: c, peer: fds[1], pushed: map[uint32]uint64{}, left: things}
	for i := range threads {
		p.threads = append(p.threads, i)
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	for i := range 3 {
		cc := s.h.addContext(c, i%2, 0)
		slot, err := s.h.addStream(c, cc, sim.StreamKind(i), 0)
		if err != nil {
			s.t.Fatal(err)
		}
		p.streams = append(p.streams, slot)
	}
	s.players = append(s.players, p)
	for i := range threads {
		s.wait(p, i, wire.WaitTurn, 0, 0, 1<<63)
	}
	return p
}

func (s *stage) wait(p *player, i int, kind, slot uint32, position, until uint64) {
	w := &p.c.shm.Waits.Waiter[i]
	w.Kind, w.Slot, w.Thread, w.TID = kind, slot, uint32(i), uint32(i)
	store64(&w.Position, position)
	store64(&w.UntilNS, until)
	atomic.StoreUint32(&p.c.shm.Waits.High, max(uint32(i+1), atomic.LoadUint32(&p.c.shm.Waits.High)))
	atomic.StoreUint32(&w.State, wire.WaiterWaiting)
}

func (s *stage) kill(p *player) {
	p.dead = true
	s.h.removeClient(p.c)
	_ = p.c.conn.Close()
	_ = unix.Close(p.peer)
}

// conduct runs the host until somebody has a turn; it returns who, or nil if
// nothing happens any more.
func (s *stage) conduct() (*player, int) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	for wait := time.Duration(0); wait == 0; { // else it has only let go of the lock
		wait = s.h.conduct()
	}
	var who *player
	which := 0
	for _, p := range s.players {
		for i := range p.threads {
			if !p.dead && atomic.LoadUint32(&p.c.shm.Waits.Waiter[i].State) == wire.WaiterGranted {
				if who != nil {
					s.t.Fatal("two threads have a turn at the same time")
				}
				who, which = p, i
			}
		}
	}
	if now := s.h.clock.now(); now > s.h.virtual.limit {
		s.t.Fatalf("time is %d, beyond the limit %d", now, s.h.virtual.limit)
	}
	if m := s.h.machine.Now(); m > s.h.virtual.limit {
		s.t.Fatalf("the GPUs are at %d, beyond the limit %d", m, s.h.virtual.limit)
	}
	return who, which
}

// play does thread i's next thing and lets it wait again.
func (s *stage) play(p *player, i int) {
	now := uint64(s.h.clock.now())
	s.log = append(s.log, fmt.Sprint(now, " ", p.c.key, " ", i))
	atomic.StoreUint32(&p.c.shm.Waits.Waiter[i].State, wire.WaiterFree)
	if p.left--; p.left <= 0 {
		s.wait(p, i, wire.WaitAddress, 0, 0, 1<<63) // for ever
		return
	}
	slot := p.streams[s.r.Intn(len(p.streams))]
	for range s.r.Intn(6) {
		head := load64(&p.c.shm.Head)
		if head-load64(&p.c.shm.Tail) >= wire.RingEntries {
			s.wait(p, i, wire.WaitSpace, 0, 0, 1<<63)
			return
		}
		kind, arg, arg64 := uint32(wire.EntryKernel), uint32(0), uint64(0)
		switch s.r.Intn(8) {
		case 0:
			kind, arg, arg64 = wire.EntryEvent, uint32(s.r.Intn(4)), head+1
		case 1:
			// A generation that comes for sure: one that has been recorded.
			kind = wire.EntryWait
		}
		p.c.shm.Ring[head%wire.RingEntries] = wire.Entry{
			TimeNS: now + uint64(s.r.Intn(3)*s.r.Intn(20000)), Stream: slot, Kind: kind, Arg: arg, Arg64: arg64,
		}
		store64(&p.c.shm.Head, head+1)
		p.pushed[slot]++
	}
	switch s.r.Intn(4) {
	case 0:
		s.wait(p, i, wire.WaitTurn, 0, 0, 1<<63)
	case 1:
		s.wait(p, i, wire.WaitTime, 0, 0, now+uint64(s.r.Intn(3_000_000)))
	default:
		s.wait(p, i, wire.WaitStream, slot, p.pushed[slot], 1<<63)
	}
}

// run plays until nothing happens within the limit.
func (s *stage) run(limit int64, each func(turn int)) {
	s.t.Helper()
	s.h.virtual.limit = limit
	for turn := 0; ; turn++ {
		p, i := s.conduct()
		if p == nil {
			if now := s.h.clock.now(); now != limit {
				s.t.Fatalf("stopped at %d, before the limit %d", now, limit)
			}
			return
		}
		s.play(p, i)
		if each != nil {
			each(turn)
		}
	}
}

func TestStepsAreExactAndTheSameEachTime(t *testing.T) {
	for seed := range int64(20) {
		var traces [2]string
		for k := range traces {
			s := newStage(t, seed)
			for i := range 1 + s.r.Intn(3) {
				s.add(fmt.Sprint("c", i), 1+s.r.Intn(3), 200)
			}
			at := int64(0)
			for range 50 {
				at += int64(s.r.Intn(5_000_000))
				s.run(at, nil)
			}
			s.h.trace.sync()
			b, err := os.ReadFile(s.h.trace.path)
			if err != nil {
				t.Fatal(err)
			}
			traces[k] = string(b) + fmt.Sprint(s.log)
		}
		if traces[0] != traces[1] {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// Where time is let pass in one go or in many steps, the same happens.
func TestTheSizeOfStepsDoesNotMatter(t *testing.T) {
	for seed := range int64(20) {
		var logs [2]string
		for k, steps := range []int64{1, 97} {
			s := newStage(t, seed)
			s.add("a", 2, 150)
			s.add("b", 1, 150)
			const end = int64(97 * 1_000_000)
			for i := range steps {
				s.run(end/steps*(i+1), nil)
			}
			logs[k] = fmt.Sprint(s.log)
		}
		if logs[0] != logs[1] {
			t.Fatalf("seed %d: one step and 97 differ:\n%.2000s\n%.2000s", seed, logs[0], logs[1])
		}
	}
}

// Whenever a client dies, the others come to their end, and nothing of it is left.
func TestADeathAtAnyTurnStopsNobody(t *testing.T) {
	for at := range 120 {
		s := newStage(t, int64(at%5))
		victim := s.add("victim", 2, 1<<30)
		others := []*player{s.add("a", 1, 60), s.add("z", 2, 60)}
		s.run(time.Hour.Nanoseconds(), func(turn int) {
			if turn == at {
				s.kill(victim)
			}
			if turn > 100_000 {
				t.Fatalf("death at turn %d: no end", at)
			}
		})
		for _, p := range others {
			if p.left > 0 {
				t.Errorf("death at turn %d: %s has %d things left to do", at, p.c.key, p.left)
			}
		}
		if v := s.h.virtual; !victim.dead || len(s.h.clients) != 2 || len(v.crowd.order) != 2 || len(v.future) != 0 {
			t.Errorf("death at turn %d: %d clients, %d processes, %d operations for later are left", at, len(s.h.clients),
				len(v.crowd.order), len(v.future))
		}
	}
}

// What a client writes into its table can keep time standing, and be named for
// it, but nothing worse; and only as long as it lives.
func TestNonsenseInTheTableOfWaits(t *testing.T) {
	for seed := range int64(30) {
		s := newStage(t, seed)
		bad := s.add("bad", 2, 1<<30)
		good := s.add("good", 2, 50)
		garbage := unsafe.Slice((*byte)(unsafe.Pointer(&bad.c.shm.Waits)), sizeWaits)
		limit := int64(0)
		for range 200 {
			for range 1 + s.r.Intn(64) {
				garbage[s.r.Intn(len(garbage))] = byte(s.r.Intn(256))
			}
			if s.r.Intn(2) == 0 { // more likely something that counts
				w := &bad.c.shm.Waits.Waiter[s.r.Intn(4)]
				w.State, w.Kind, w.Slot = uint32(s.r.Intn(8)), uint32(s.r.Intn(8)), uint32(s.r.Intn(3)-1)
				bad.c.shm.Waits.High = uint32(s.r.Intn(3000))
			}
			limit += 1_000_000
			s.h.mu.Lock()
			s.h.virtual.limit = limit
			s.h.conduct()
			if now := s.h.clock.now(); now > limit {
				t.Fatalf("seed %d: time is %d, beyond the limit %d", seed, now, limit)
			}
			s.h.mu.Unlock()
			for i := range good.threads {
				if atomic.LoadUint32(&good.c.shm.Waits.Waiter[i].State) == wire.WaiterGranted {
					s.play(good, i)
				}
			}
		}
		s.kill(bad)
		s.run(time.Hour.Nanoseconds(), nil)
		if good.left > 0 {
			t.Errorf("seed %d: the other has %d things left to do", seed, good.left)
		}
	}
}

// A client that always has another thread to go on does not keep the host from
// answering, and is named.
func TestAClientThatLetsNoTimePassIsNamed(t *testing.T) {
	s := newStage(t, 1)
	bad := s.add("bad", 1, 1)
	for i := range 8 { // more threads than it has
		s.wait(bad, i, wire.WaitTurn, 0, 0, 1<<63)
	}
	s.h.virtual.limit, s.h.virtual.atOnce = 1, manyTurns-10_000
	done, over := make(chan struct{}), make(chan struct{})
	go func() { // as a hostile program would, at the same time
		defer close(over)
		for {
			select {
			case <-done:
				return
			default:
			}
			for i := range 8 {
				atomic.CompareAndSwapUint32(&bad.c.shm.Waits.Waiter[i].State, wire.WaiterGranted, wire.WaiterReady)
			}
		}
	}()
	for end := time.Now().Add(20 * time.Second); len(s.h.Clock().Waiting) == 0 && time.Now().Before(end); {
		s.h.mu.Lock()
		s.h.conduct()
		s.h.mu.Unlock()
	}
	close(done)
	<-over
	if st := s.h.Clock(); len(st.Waiting) != 1 || !strings.Contains(st.Waiting[0], "lets no time pass") {
		t.Errorf("not named: %+v", st)
	}
}
