// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Sixteen processes of 64 threads take memory in every way and give it back, with the
// limit in the way all the time: the simulator never held a byte over it, and when all
// is given back but the contexts, ledger and simulator say the same.
func TestManyThreadsAtTheEdge(t *testing.T) {
	const limit, processes, threads = 2048 * mib, 16, 64
	operations := often(40000, 1000000)
	many := threads
	if sanitized() {
		operations, many = 4000, 8
	}
	n := simulate(t)
	c := n.container(limit)
	began := time.Now()
	h := c.start(true, compile(t, "edge.c"), fmt.Sprint(processes), fmt.Sprint(many), fmt.Sprint(operations), edgeWays())
	var got, refused, freed, other uint64
	var code int
	if _, err := fmt.Sscan(h.lines[len(h.lines)-1], &got, &refused, &freed, &other, &code); err != nil {
		t.Fatalf("%q: %v", h.lines, err)
	}
	took := time.Since(began)
	if other != 0 {
		t.Errorf("%d calls answered neither success nor out of memory, the last %d", other, code)
	}
	if got == 0 || refused < got/100 || freed != got {
		t.Errorf("%d allocations, %d refused, %d freed", got, refused, freed)
	}
	g, charged := n.gpu(), c.ledger()[0]
	if g.High > limit || g.High < limit/10*9 {
		t.Errorf("the simulator held %d bytes of %d at most", g.High, limit)
	}
	if g.Used != processes*contextBytes || charged != g.Used {
		t.Errorf("at the end the ledger has %d bytes, the simulator %d, the contexts %d", charged, g.Used, processes*contextBytes)
	}
	t.Logf("SIMULATED: %d processes of %d threads, %d allocations, %d refused, %d freed in %v; at most %d bytes of %d, drift %d",
		processes, many, got, refused, freed, took.Round(time.Millisecond), g.High, uint64(limit), int64(charged)-int64(g.Used))
}

// edgeWays are the ways that take part, see edge.c. GPUSHARE_TEST_WAYS names others.
func edgeWays() string {
	if ways := os.Getenv("GPUSHARE_TEST_WAYS"); ways != "" {
		return ways
	}
	return "lmpva"
}
