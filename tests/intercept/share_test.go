// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/gpushare/gpushare/limiter/region"
)

// sharer is a running cuda-intercept/test/sharer.c.
type sharer struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	path string // where it takes descriptors
}

// sharing is containers in which sharers run, and a simulated node.
type sharing struct {
	*node
	program string
	*container
	names int
}

func newSharing(t *testing.T, limit uint64, flags ...string) *sharing {
	t.Helper()
	n := simulateGPUs(t, 1, flags...)
	return &sharing{node: n, program: compile(t, "sharer.c"), container: n.container(limit)}
}

func (s *sharing) sharer() *sharer { return s.sharerIn(s.container) }

func (s *sharing) sharerIn(c *container, prefix ...string) *sharer {
	t := s.node.t
	t.Helper()
	words := append(prefix, s.program)
	cmd := c.command(context.Background(), words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.names++
	p := &sharer{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out), path: filepath.Join(s.node.dir, fmt.Sprintf("box%d", s.names))}
	t.Cleanup(p.kill)
	if line := p.line(); line != "holding" {
		t.Fatalf("a sharer begins with %q", line)
	}
	p.ok("at %s", p.path)
	return p
}

func (p *sharer) line() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("a sharer has ended: %v", p.out.Err())
	}
	return p.out.Text()
}

// ask gives a command and returns the answer.
func (p *sharer) ask(format string, a ...any) string {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", a...); err != nil {
		p.t.Fatalf("%s: %v", fmt.Sprintf(format, a...), err)
	}
	return p.line()
}

// code gives a command that answers with a number.
func (p *sharer) code(format string, a ...any) int {
	p.t.Helper()
	n, err := strconv.Atoi(p.ask(format, a...))
	if err != nil {
		p.t.Fatalf("%s: %v", fmt.Sprintf(format, a...), err)
	}
	return n
}

func (p *sharer) ok(format string, a ...any) {
	p.t.Helper()
	if r := p.code(format, a...); r != 0 {
		p.t.Fatalf("%s = %d", fmt.Sprintf(format, a...), r)
	}
}

// give hands descriptor f of p to q as g.
func (p *sharer) give(f int, q *sharer, g int) {
	p.t.Helper()
	p.ok("send %d %s", f, q.path)
	q.ok("recv %d", g)
}

func (p *sharer) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// quit lets the program end by itself.
func (p *sharer) quit() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// sweep is what the daemon does once a second.
func (s *sharing) sweep() uint64 {
	s.node.t.Helper()
	return sweepLedger(s.node.t, s.container)[0]
}

// conserved waits until the ledger is the simulator's account, to the byte, and
// both are want MiB beside the contexts of n processes.
func (s *sharing) conserved(when string, n int, want uint64) {
	t := s.node.t
	t.Helper()
	want = want*mib + uint64(n)*contextBytes
	var ledger, used uint64
	for begin := time.Now(); time.Since(begin) < 2*time.Second; time.Sleep(5 * time.Millisecond) {
		ledger, used = s.sweep(), s.gpu().Used
		if ledger == want && used == want {
			return
		}
	}
	t.Errorf("%s: the ledger has %.1f MiB, the simulator %.1f, want %.1f", when, float64(ledger)/mib, float64(used)/mib, float64(want)/mib)
}

// words counts the words of the ledger that hold bytes of anybody's, records of shares and
// those of their holders.
func (s *sharing) words() (n int) {
	t := s.node.t
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.container.dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(from int64) uint64 { return binary.NativeEndian.Uint64(b[from:]) }
	for i := range region.SlotCount {
		if at(region.UsedOffset(0, i)) != 0 {
			n++
		}
	}
	for i := range region.ShareCount {
		if b[region.ShareOffset(1, i)+int64(unsafe.Offsetof(region.Share{}.State))] != region.ShareFree {
			n++
		}
	}
	for i := range region.HolderCount {
		if at(region.HolderOffset(1, i)) != 0 {
			n++
		}
	}
	return n
}

const outOfMemory = 2

// sharingWay is a way for a process i to have 64 MiB of a process e as object 1.
type sharingWay struct {
	share          func(e, i *sharer)
	letGoE, letGoI []string
}

var sharingWays = map[string]sharingWay{
	"ipc": {func(e, i *sharer) {
		e.ok("alloc 1 64")
		i.ok("open 1 %s", e.ask("get 1"))
	}, []string{"free 1"}, []string{"shut 1"}},
	"descriptor": {func(e, i *sharer) {
		handOver(e, i)
		i.ok("import 1 1")
		i.ok("close 1")
		i.ok("map 1 64")
	}, []string{"release 1"}, []string{"unmap 1", "release 1"}},
	"mapping": {func(e, i *sharer) { // held by mappings alone
		handOver(e, i)
		i.ok("import 1 1")
		i.ok("close 1")
		i.ok("map 1 64")
		i.ok("release 1")
		e.ok("map 1 64")
		e.ok("release 1")
	}, []string{"unmap 1"}, []string{"unmap 1"}},
	"external": {func(e, i *sharer) {
		handOver(e, i)
		i.ok("ext 1 1 64")
		i.ok("close 1")
		i.ok("buffer 1 1")
	}, []string{"release 1"}, []string{"free 1", "destroy 1"}},
	"pool": {func(e, i *sharer) {
		e.ok("pool 1")
		e.ok("pexport 1 1")
		e.give(1, i, 1)
		e.ok("close 1")
		i.ok("pimport 1 1")
		i.ok("close 1")
		e.ok("palloc 1 1 64")
		i.ok("popen 1 1 %s", e.ask("pget 1"))
	}, []string{"afree 1"}, []string{"free 1"}},
}

// handOver makes 64 MiB in e of which i has the only descriptor.
func handOver(e, i *sharer) {
	e.t.Helper()
	e.ok("create 1 64")
	e.ok("export 1 1")
	e.give(1, i, 1)
	e.ok("close 1")
}

// Each order in which an exporter e and an importer i let go (e, i), end (Q, q) or are
// killed (E, I). After every step the ledger is what the simulator has.
func TestShares(t *testing.T) {
	s := newSharing(t, 256*mib)
	for name, way := range sharingWays {
		for _, order := range []string{"ei", "ie", "Ei", "eI", "Ie", "iE", "EI", "IE", "Qi", "qe", "eq", "iQ"} {
			t.Run(name+"/"+order, func(t *testing.T) {
				s.node.t, s.container.t = t, t
				e, i := s.sharer(), s.sharer()
				way.share(e, i)
				s.conserved("shared", 2, 64)
				if r := i.code("alloc 2 161"); r != outOfMemory {
					t.Errorf("more than what is left: %d", r)
				}
				i.ok("alloc 2 160")
				i.ok("free 2")
				left := 2
				for k, step := range order {
					switch step {
					case 'e':
						for _, c := range way.letGoE {
							e.ok("%s", c)
						}
					case 'i':
						for _, c := range way.letGoI {
							i.ok("%s", c)
						}
					case 'E', 'Q', 'I', 'q':
						map[rune]func(){'E': e.kill, 'Q': e.quit, 'I': i.kill, 'q': i.quit}[step]()
						left--
					}
					s.conserved("after "+order[:k+1], left, uint64(64*(1-k)))
				}
				e.quit()
				i.quit()
				s.conserved("at the end", 0, 0)
			})
		}
	}
}

// Memory that only a descriptor holds, in a process or in a message that nobody has read,
// is charged until the last copy is closed.
func TestDescriptorHoldsMemory(t *testing.T) {
	s := newSharing(t, 256*mib)
	e, i := s.sharer(), s.sharer()
	e.ok("create 1 64")
	e.ok("export 1 1")
	e.ok("export 1 2")
	if n := e.code("tags 1"); n != 1 {
		t.Errorf("%d marks on the descriptor", n)
	}
	e.ok("release 1")
	s.conserved("released", 2, 64)
	e.ok("send 1 %s", i.path)
	e.ok("close 1")
	e.ok("close 2")
	e.kill()
	s.conserved("in a message", 1, 64)
	if r := i.code("alloc 2 177"); r != outOfMemory {
		t.Errorf("more than what is left: %d", r)
	}
	i.ok("recv 1")
	i.ok("import 1 1")
	s.conserved("imported by nobody's heir", 1, 64)
	i.ok("release 1")
	s.conserved("in a descriptor", 1, 64)
	i.ok("close 1")
	// No sweep before: whoever needs the room finds it.
	i.ok("alloc 2 240")
	i.ok("free 2")
	s.conserved("closed", 1, 0)
}

// Exporting and letting go again and again never gets past the limit, whether the
// descriptor stays or is closed.
func TestLaundering(t *testing.T) {
	s := newSharing(t, 128*mib)
	p, q := s.sharer(), s.sharer()
	left := 128 - 2*contextBytes/mib
	refused := 0
	for k := range 1000 {
		switch r := p.code("create 1 8"); r {
		case 0:
		case outOfMemory:
			refused++
			continue
		default:
			t.Fatalf("create = %d", r)
		}
		p.ok("export 1 %d", k+1)
		p.ok("release 1")
	}
	if want := 1000 - left/8; refused != want {
		t.Errorf("%d of 1000 were refused, want %d", refused, want)
	}
	s.conserved("held by descriptors", 2, uint64(left))
	for k := range left / 8 {
		p.ok("close %d", k+1)
	}
	for range 1000 {
		p.ok("create 1 8")
		p.ok("export 1 1")
		p.ok("import 1 2")
		p.ok("release 1")
		p.ok("release 2")
		p.ok("close 1")
	}
	for range 1000 {
		p.ok("alloc 1 32")
		q.ok("open 1 %s", p.ask("get 1"))
		p.ok("free 1")
		if r := p.code("alloc 2 %d", left-31); r != outOfMemory {
			t.Fatalf("beside what is opened: %d", r)
		}
		q.ok("shut 1")
	}
	s.conserved("all closed", 2, 0)
	if high := s.gpu().High; high > 128*mib {
		t.Errorf("SIMULATED: the driver has held %d bytes over the limit", high-128*mib)
	}
}

// 8 processes share at random, 10,000 operations each.
func TestSharingAtRandom(t *testing.T) {
	s := newSharing(t, 8*(contextBytes+24*mib))
	var all []*sharer
	for range 8 {
		all = append(all, s.sharer())
	}
	for k, p := range all {
		fmt.Fprintf(p.in, "race %d 10000\n", k+1)
	}
	for _, p := range all {
		if line := p.line(); !strings.HasPrefix(line, "-") && line != "0" {
			t.Errorf("race: %s", line)
		} else {
			t.Logf("%s refused", strings.TrimPrefix(line, "-"))
		}
	}
	s.conserved("all given back", 8, 0)
	if high := s.gpu().High; high > 8*(contextBytes+24*mib) {
		t.Errorf("SIMULATED: the driver has held %d bytes", high)
	}
}

// 500 pairs of processes that share in every way are killed at any moment.
func TestSharersKilled(t *testing.T) {
	pairs := 500
	if testing.Short() {
		pairs = 50
	}
	s := newSharing(t, 512*mib)
	var names []string
	for name := range sharingWays {
		names = append(names, name)
	}
	slices.Sort(names)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible
	for k := range pairs {
		e, i := s.sharer(), s.sharer()
		sharingWays[names[k%len(names)]].share(e, i)
		// In the middle of something, one after the other or at once.
		for _, p := range []*sharer{e, i} {
			fmt.Fprintf(p.in, "race %d 1000000\n", k+1)
		}
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
		if k%2 == 0 {
			e.kill()
		}
		time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
		i.kill()
		e.kill()
		if k%50 == 49 {
			begin := time.Now()
			waitFor(t, "every word of the ledger to be given back", func() bool {
				s.sweep()
				return s.words() == 0
			})
			t.Logf("after %d pairs every word is back in %v", k+1, time.Since(begin).Round(time.Millisecond))
			s.conserved(fmt.Sprintf("after %d pairs", k+1), 0, 0)
		}
	}
}

func sweepLedger(t *testing.T, c *container) []uint64 {
	t.Helper()
	l, err := region.OpenLedger(filepath.Join(c.dir, "ledger"), c.limits.GPUs())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := l.Sweep()
	if err != nil {
		t.Fatal(err)
	}
	var sums []uint64
	for _, g := range u.GPU {
		sums = append(sums, g.Bytes)
	}
	return sums
}

// What keeps memory beside handles and mappings, and the calls of sharing that no
// simulated card has: cuda-intercept/test/keepers.c.
func TestKeepers(t *testing.T) {
	limit := standInLimit()
	limit.MemoryLimit, limit.ContextBytes = 1024*mib, 100*mib
	c := newContainer(t, limit)
	c.driver = standIn(t)
	if out, err := c.run(compile(t, "keepers.c")); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}
