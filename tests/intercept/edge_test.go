// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// edge runs edge.c and returns what was refused and the most that was held at once.
func (c *container) edge(program string, processes, threads, operations int, ways string) (refused, most uint64, h *held) {
	c.t.Helper()
	began := time.Now()
	h = c.start(true, program, fmt.Sprint(processes), fmt.Sprint(threads), fmt.Sprint(operations), ways)
	var got, freed, other uint64
	var code int
	if _, err := fmt.Sscan(h.lines[len(h.lines)-1], &got, &refused, &freed, &other, &code, &most); err != nil {
		c.t.Fatalf("%q: %v", h.lines, err)
	}
	if other != 0 {
		c.t.Errorf("%d calls answered neither success nor out of memory, the last %d", other, code)
	}
	if got == 0 || freed != got {
		c.t.Errorf("%d allocations, %d freed", got, freed)
	}
	c.t.Logf("%d processes of %d threads, %d allocations, %d refused, %d freed in %v", processes, threads, got, refused, freed,
		time.Since(began).Round(time.Millisecond))
	return refused, most, h
}

// Sixteen processes of 64 threads take memory in every way and give it back, with the
// limit in the way all the time: the simulator never held a byte over it, and when all
// is given back but the contexts, ledger and simulator say the same. Then one process
// alone gets all that is left, to the last granule.
//
// On a card the crowd itself stays away from the limit: each thread that takes a part of
// a block charges a whole one until the driver has said in which block the part lies, and
// so many threads have no room for a block each.
func TestManyThreadsAtTheEdge(t *testing.T) {
	const limit, processes = 2048 * mib, 16
	operations, threads := often(40000, 1000000), 64
	if sanitized() {
		operations, threads = 4000, 8
	}
	n := simulate(t)
	c := n.container(limit)
	refused, _, _ := c.edge(compile(t, "edge.c"), processes, threads, operations, edgeWays())
	if refused < uint64(operations)/100 {
		t.Errorf("only %d were refused", refused)
	}
	g, charged := n.gpu(), c.ledger()[0]
	if g.High > limit || (g.High < limit/10*9 && !sanitized() && !n.card) { // sanitized: few threads and operations
		t.Errorf("the simulator held %d bytes of %d at most", g.High, limit)
	}
	if g.Used != processes*contextBytes || charged != g.Used {
		t.Errorf("at the end the ledger has %d bytes, the simulator %d, the contexts %d", charged, g.Used, processes*contextBytes)
	}
	t.Logf("SIMULATED: at most %d bytes of %d, drift %d", g.High, uint64(limit), int64(charged)-int64(g.Used))
	one := c.session(compile(t, "views.c"))
	one.want("init 0 1", "init")
	one.want("use 0", "use 0")
	rest := limit - n.gpu().Used
	one.want("alloc 0", "alloc %d", rest)
	one.want("alloc 2", "alloc 1")
	if g := n.gpu(); g.Used != limit || g.High != limit {
		t.Errorf("one process alone was given all, the simulator holds %d bytes of %d, %d at most", g.Used, limit, g.High)
	}
	one.want("free 0", "free")
	one.close()
}

// The same as fast as it goes, over a driver in the process that takes no time, so that
// threads of two processes meet between any two instructions. The program counts itself.
func TestFastAtTheEdge(t *testing.T) {
	const processes = 4
	limit := standInLimit()
	limit.MemoryLimit = processes*limit.ContextBytes + 200*mib
	c := newContainer(t, limit)
	c.driver = standIn(t)
	_, most, _ := c.edge(compile(t, "edge.c"), processes, 2, often(1000000, 20000000), "e")
	room := limit.MemoryLimit - processes*limit.ContextBytes
	if most > room || most < room/4*3 {
		t.Errorf("%d bytes of %d were held at once", most, room)
	}
	if charged := c.ledger()[0]; charged != processes*limit.ContextBytes {
		t.Errorf("at the end the ledger has %d bytes, %d contexts", charged, processes)
	}
	t.Logf("at most %d bytes of %d", most, room)
}

// edgeWays are the ways that take part, see edge.c. GPUSHARE_TEST_WAYS names others.
func edgeWays() string {
	if ways := os.Getenv("GPUSHARE_TEST_WAYS"); ways != "" {
		return ways
	}
	return "lmpova"
}
