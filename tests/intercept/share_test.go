// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

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

const outOfMemory = 2

// The two processes of each order of dying, closing and releasing: exporter e,
// importer i. What a step leaves is charged, and no more.
func TestShares(t *testing.T) {
	s := newSharing(t, 256*mib)
	for _, way := range []string{"descriptor", "ipc"} {
		for _, order := range []string{"ei", "ie", "Ei", "eI", "Ie", "iE", "EI", "IE"} {
			t.Run(way+"/"+order, func(t *testing.T) {
				s.node.t, s.container.t = t, t
				e, i := s.sharer(), s.sharer()
				if way == "ipc" {
					e.ok("alloc 1 64")
					i.ok("open 1 %s", e.ask("get 1"))
				} else {
					e.ok("create 1 64")
					e.ok("export 1 1")
					e.give(1, i, 1)
					e.ok("close 1")
					i.ok("import 1 1")
					i.ok("close 1")
					i.ok("map 1 64")
				}
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
						e.ok("%s", map[string]string{"ipc": "free 1", "descriptor": "release 1"}[way])
					case 'i':
						if way == "descriptor" {
							i.ok("unmap 1")
						}
						i.ok("%s", map[string]string{"ipc": "shut 1", "descriptor": "release 1"}[way])
					case 'E':
						e.kill()
						left--
					case 'I':
						i.kill()
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
