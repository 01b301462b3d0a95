// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// burst is what storm.c measured: medians in nanoseconds.
type burst struct{ load, cpu, wall, worst uint64 }

// storm lets n processes start at once, again and again, and returns what it cost each.
// It fails on a call that waits for another process.
func (c *container) storm(program string, n, rounds int) burst {
	c.t.Helper()
	out, err := c.run(program, fmt.Sprint(n), fmt.Sprint(rounds))
	if err != nil {
		c.t.Fatalf("%d processes: %v\n%s", n, err, out)
	}
	var load, cpu, wall []uint64
	lines := linesOf(out)
	for _, line := range lines[:len(lines)-1] {
		var l, k, w uint64
		if _, err := fmt.Sscan(line, &l, &k, &w); err != nil {
			c.t.Fatalf("%q: %v", line, err)
		}
		load, cpu, wall = append(load, l), append(cpu, k), append(wall, w)
	}
	if len(cpu) != n*rounds {
		c.t.Fatalf("%d figures of %d processes", len(cpu), n*rounds)
	}
	if last := lines[len(lines)-1]; last != "waits 0" {
		c.t.Errorf("%d processes: %s", n, last)
	}
	for _, v := range [][]uint64{load, cpu, wall} {
		slices.Sort(v)
	}
	return burst{load[len(load)/2], cpu[len(cpu)/2], wall[len(wall)/2], wall[len(wall)-1]}
}

// Many processes of a container that call cuInit at once wait for no lock, none for
// another: HANG-03. What we add to a process's CPU time does not grow with
// their number; the figures are in docs/measurements.
func TestStartUpStormHANG03(t *testing.T) {
	if sanitized() {
		t.Skip("the sanitizers' own start is longer than ours")
	}
	n := simulate(t)
	c := n.container(1024 * mib)
	bare := *c
	bare.env = append(slices.Clone(c.env), "LD_LIBRARY_PATH="+filepath.Join(n.dir, "lib"))
	program := compile(t, "storm.c")
	rounds := map[int]int{1: 64, 16: 8, 64: 3, 256: 1}
	if soaking() {
		rounds = map[int]int{1: 512, 16: 64, 64: 16, 256: 8}
	}
	c.storm(program, 1, 8)
	bare.storm(program, 1, 8)
	added := map[int]uint64{}
	var table strings.Builder
	for _, many := range []int{1, 16, 64, 256} {
		a, b := bare.storm(program, many, rounds[many]), c.storm(program, many, rounds[many])
		added[many] = b.cpu - min(a.cpu, b.cpu)
		fmt.Fprintf(&table, "| %d | %d | %d | %d | %d | %d | %d |\n", many, a.cpu/1000, b.cpu/1000, added[many]/1000,
			(b.load-min(a.load, b.load))/1000, a.wall/1000, b.wall/1000)
	}
	t.Logf("SIMULATED: µs, medians\n| processes | CPU of cuInit, bare | ours | added | added by loading | wall, bare | ours |\n%s", table.String())
	if added[64] > 3*added[1] {
		t.Errorf("64 processes that start at once cost each %d ns of CPU time, one alone %d", added[64], added[1])
	}
}
