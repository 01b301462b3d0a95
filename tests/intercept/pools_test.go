// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gpushare/gpushare/limiter/region"
	"github.com/gpushare/gpushare/simgpu/host"
)

// A card takes device memory in blocks, and for a pool in steps.
const (
	cardBlock = 2 * mib
	cardStep  = 32 * mib
	cardNode  = 10 << 10 // of an executable graph
)

// pooler drives cuda-intercept/test/pools.c and looks at both accounts after each call.
type pooler struct {
	t     *testing.T
	n     *node
	c     *container
	card  bool
	grain uint64 // in which the card's memory is taken
	exec  uint64 // what a few executable graphs cost
	admin *host.AdminClient
	limit uint64
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
}

// onProfiles runs a test on the card that counts to the byte and on one that counts in
// blocks. limit is beside the context.
func onProfiles(t *testing.T, limit uint64, test func(t *testing.T, p *pooler)) {
	t.Helper()
	program := compile(t, "pools.c")
	for _, profile := range []string{"exact", "h100"} {
		t.Run(profile, func(t *testing.T) {
			n := simulateGPUs(t, 2, "--driver", "newest", "--profile", profile)
			p := &pooler{t: t, n: n, card: profile == "h100", grain: granule, limit: contextBytes + limit}
			if p.card {
				p.grain, p.exec = cardBlock, cardBlock
			}
			p.admin = host.NewAdminClient(filepath.Join(n.dir, "admin.sock"))
			p.start(program)
			test(t, p)
		})
	}
}

func (p *pooler) start(program string) {
	p.t.Helper()
	limits := []region.GPULimit{p.n.limit(0, p.limit), p.n.limit(1, p.limit)}
	if p.card {
		for i := range limits {
			limits[i].BlockBytes, limits[i].GraphNodeBytes = cardBlock, cardNode
		}
	}
	p.c = p.n.containerOn(limits...)
	p.cmd, p.in, p.out = p.run(program)
}

// run starts one more process of the container.
func (p *pooler) run(program string) (*exec.Cmd, io.WriteCloser, *bufio.Scanner) {
	p.t.Helper()
	cmd := p.c.command(p.t.Context(), program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	scan := bufio.NewScanner(out)
	if !scan.Scan() || scan.Text() != "0" {
		p.t.Fatalf("the program does not start: %q", scan.Text())
	}
	return cmd, in, scan
}

// line sends a command and returns the answer.
func (p *pooler) line(format string, args ...any) string {
	p.t.Helper()
	fmt.Fprintf(p.in, format+"\n", args...)
	if !p.out.Scan() {
		p.t.Fatalf("%s: the program has ended: %v", fmt.Sprintf(format, args...), p.cmd.Wait())
	}
	return p.out.Text()
}

// want sends a command, wants its code, and compares the accounts.
func (p *pooler) want(code int, format string, args ...any) {
	p.t.Helper()
	what := fmt.Sprintf(format, args...)
	if got := p.line("%s", what); got != fmt.Sprint(code) {
		p.t.Errorf("%s: %s, want %d", what, got, code)
	}
	p.agree(what)
}

// agree: the ledger is the simulator's account, on a card not below it; and never has
// the card held more than the limit.
func (p *pooler) agree(what string) {
	p.t.Helper()
	s, err := p.admin.Status(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	for gpu, ledger := range p.charged() {
		used, high := s.GPUs[gpu].UsedBytes, s.GPUs[gpu].HighBytes
		if ledger < used || !p.card && ledger != used {
			p.t.Errorf("%s: GPU %d: ledger %d, simulator %d", what, gpu, ledger, used)
		}
		if ledger > p.limit || high > p.limit {
			p.t.Errorf("%s: GPU %d: ledger %d, the card has held %d, limit %d", what, gpu, ledger, high, p.limit)
		}
	}
}

// charged is the ledger's figures, guesses included.
func (p *pooler) charged() []uint64 {
	p.t.Helper()
	l, err := region.OpenLedger(filepath.Join(p.c.dir, "ledger"), 2)
	if err != nil {
		p.t.Fatal(err)
	}
	defer l.Close()
	u, err := l.Read()
	if err != nil {
		p.t.Fatal(err)
	}
	return []uint64{u.GPU[0].Bytes + u.GPU[0].Guess, u.GPU[1].Bytes + u.GPU[1].Guess}
}

// settled: nothing is charged that the simulator does not hold.
func (p *pooler) settled(what string, want uint64) {
	p.t.Helper()
	if ledger, used := p.charged()[0], p.n.gpu().Used; ledger != used || used != contextBytes+want {
		p.t.Errorf("%s: ledger %d, simulator %d, want %d", what, ledger, used, contextBytes+want)
	}
}

// TestPools: pools of every kind at their limit.
func TestPools(t *testing.T) {
	const limit = 256 * mib
	onProfiles(t, limit, func(t *testing.T, p *pooler) {
		p.want(0, "pool 0 0 0")
		p.want(0, "default 1 0")
		p.want(0, "located 2 0")
		p.want(0, "current 3 0")
		for pool := -1; pool < 4; pool++ { // -1: the current one
			p.want(0, "alloc 0 %d %d 0", limit, pool)
			p.want(2, "alloc 1 1 %d 0", pool)
			p.want(2, "linear 1 %d", p.grain)
			p.want(0, "free 0 0")
			p.want(2, "alloc 0 %d %d 0", limit+granule, pool)
			p.want(0, "alloc 0 %d %d 0", limit, pool)
			p.want(0, "freesync 0")
			// What a pool keeps gives way to linear memory, and is not in its view.
			p.want(0, "linear 0 %d", limit)
			p.want(2, "alloc 1 1 %d 0", pool)
			p.want(0, "freesync 0")
			p.want(0, "sync 0")
			p.settled(fmt.Sprintf("pool %d", pool), 0)
		}
		// The host's memory is not the GPU's.
		p.want(0, "linear 0 %d", limit)
		p.want(0, "pool 4 -1 0")
		p.want(0, "pool 5 -2 0")
		p.want(0, "alloc 1 %d 4 0", limit)
		p.want(0, "alloc 2 %d 5 0", limit)
		p.want(0, "free 1 0")
		p.want(0, "freesync 2")
		p.want(0, "freesync 0")
		p.want(0, "destroy 4")
		p.want(0, "destroy 5")
		// A pool of its own, and what nobody gave out (the driver's own answer).
		p.want(0, "alloc 0 %d 0 0", 64*mib)
		p.want(1, "foreign 0")
		p.want(0, "free 0 0")
		// The loop that ends in an out-of-memory elsewhere.
		p.want(0, "loop 10000 %d -1", 64*mib)
		p.want(0, "loop 1000 %d 0", 48*mib)
		p.want(0, "sync -1")
		p.settled("loops", 0)
	})
}

// TestPoolsNearTheLimit: a pool that has no room to grow serves what fits in its pieces.
func TestPoolsNearTheLimit(t *testing.T) {
	const limit = 4 * cardStep
	onProfiles(t, limit, func(t *testing.T, p *pooler) {
		p.want(0, "pool 0 0 0")
		p.want(0, "stream 1 0")
		// As many small ones as the limit holds, the last step's rest included.
		for i := range 32 {
			p.want(0, "alloc %d %d 0 1", i, 4*mib)
		}
		p.settled("full", limit)
		p.want(2, "alloc 40 512 0 1")
		// What a stream has freed it can have again; other memory cannot, for the
		// blocks are in use.
		for i := range 8 {
			p.want(0, "free %d 1", 4*i)
		}
		if p.card {
			p.settled("pieces", limit)
			p.want(2, "linear 40 %d", p.grain)
			for i := range 8 {
				p.want(0, "alloc %d %d 0 1", 4*i, 4*mib)
			}
			p.want(2, "alloc 40 %d 0 1", 4*mib)
			// Another stream has them when the first was waited for.
			p.want(0, "free 0 1")
			p.want(0, "free 1 1")
			p.want(0, "sync 1")
			p.want(0, "alloc 0 %d 0 0", 4*mib)
			p.want(0, "alloc 1 %d 0 0", 4*mib)
		}
		for i := range 32 {
			if p.card || i%4 != 0 {
				p.want(0, "free %d 1", i)
			}
		}
		p.want(0, "sync -1")
		p.settled("all freed", 0)
	})
}

// TestPoolsOfEveryKind: many pools, capped ones, destroyed ones, those of another GPU.
func TestPoolsOfEveryKind(t *testing.T) {
	const limit = 512 * mib
	onProfiles(t, limit, func(t *testing.T, p *pooler) {
		// A destroyed pool holds what its allocations lie in.
		p.want(0, "pool 0 0 0")
		p.want(0, "keep 0")
		p.want(0, "alloc 0 %d 0 0", 40*mib)
		p.want(0, "alloc 1 %d 0 0", mib)
		p.want(0, "destroy 0")
		p.want(0, "free 0 0")
		p.want(0, "freesync 1")
		p.settled("destroyed", 0)
		// A capped one says itself when it is full.
		p.want(0, "pool 0 0 %d", 8*mib)
		p.want(0, "alloc 0 %d 0 0", 8*mib)
		p.want(2, "alloc 1 %d 0 0", 4*mib)
		p.want(0, "free 0 0")
		p.want(0, "destroy 0")
		p.settled("capped", 0)
		// More of them than any table was made for.
		const many = 200
		for i := range many {
			p.want(0, "pool %d 0 0", i)
			p.want(0, "keep %d", i)
			p.want(0, "alloc %d %d %d 0", 0, 2*mib, i)
			p.want(0, "free 0 0")
		}
		p.want(0, "linear 0 %d", limit) // all gave way
		p.want(0, "freesync 0")
		for i := range many {
			p.want(0, "destroy %d", i)
		}
		p.settled("many", 0)
		// A pool of the other GPU is charged there, whichever context is current.
		p.want(0, "pool 0 1 0")
		p.want(0, "stream 1 1")
		p.want(0, "device 0")
		p.want(0, "linear 0 %d", limit)
		p.want(0, "alloc 1 %d 0 0", limit)
		p.want(2, "alloc 2 512 0 0")
		p.want(2, "alloc 2 512 -1 1") // its stream's device's pool
		p.want(0, "freesync 1")
		p.want(0, "alloc 1 %d -1 1", limit)
		p.want(2, "alloc 2 512 0 0")
		p.want(0, "free 1 1")
		p.want(0, "freesync 0")
		p.want(0, "destroy 0")
		// A pool that is current, and destroyed as such.
		p.want(0, "pool 0 0 0")
		p.want(0, "set 0 0")
		p.want(0, "alloc 0 %d -1 0", limit)
		p.want(2, "alloc 1 512 -1 0")
		p.want(0, "free 0 0")
		p.want(0, "destroy 0")
		p.want(0, "alloc 0 %d -1 0", limit)
		p.want(0, "freesync 0")
		p.want(0, "sync -1")
		p.settled("current", 0)
	})
}

// TestPoolsOfManyThreads: eight threads that take and give from pools and graphs at
// random, at the limit: never more than the limit, and nothing left over.
func TestPoolsOfManyThreads(t *testing.T) {
	const limit, threads, ops = 512 * mib, 8, 50_000
	onProfiles(t, limit, func(t *testing.T, p *pooler) {
		// Small buffers of the gate and of graphs are not what is counted here.
		p.want(0, "sync -1")
		var wrong, granted, refused int
		line := p.line("storm %d %d %d", threads, ops, 1)
		if _, err := fmt.Sscan(line, &wrong, &granted, &refused); err != nil || wrong != 0 {
			t.Fatalf("%q: %v", line, err)
		}
		p.agree("storm")
		p.settled("storm", 0)
		if granted < ops/10 || refused == 0 {
			t.Errorf("granted %d, refused %d: not at the limit", granted, refused)
		}
		t.Logf("SIMULATED: granted %d, refused %d, high-water mark %d of %d", granted, refused, p.n.gpu().High, p.limit)
	})
}
