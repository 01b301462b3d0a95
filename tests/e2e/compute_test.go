// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gpushare/gpushare/tests/node"
)

// window is how long a share of GPU time is measured.
const window = 4 * time.Second

// settle is how long a tenant may take to find the price of its kernels.
const settle = 2 * time.Second

// shares measures what part of wall time each container had a GPU, in percent, by
// the simulator's account.
func shares(t *testing.T, n *node.Node, containers ...container) []float64 {
	t.Helper()
	read := func() (all []node.Account) {
		for _, c := range containers {
			all = append(all, account(t, n, c))
		}
		return all
	}
	before := read()
	time.Sleep(window)
	after := read()
	var out []float64
	for i := range containers {
		out = append(out, 100*float64(after[i].GPUTimeNs-before[i].GPUTimeNs)/float64(after[i].At-before[i].At))
	}
	return out
}

// claim is the share in percent that a container asked for.
type claim struct {
	what string
	c    container
	want float64
}

// within5 measures the containers' shares. More than 5 points too much fails at
// once, at any time. Too little is measured again, up to three times in all: on a
// machine that is busy with other things a program may lack the CPU time to ask for
// its share, and no limiter can give it what it does not ask for.
func within5(t *testing.T, n *node.Node, claims ...claim) {
	t.Helper()
	var containers []container
	for _, c := range claims {
		containers = append(containers, c.c)
	}
	const tries = 3
	for try := 1; try <= tries; try++ {
		low := ""
		for i, got := range shares(t, n, containers...) {
			t.Logf("%s: %.1f %% of GPU time, asked %.0f %%", claims[i].what, got, claims[i].want)
			if got > claims[i].want+5 {
				t.Errorf("%s: %.1f %% of GPU time is more than 5 points over %.0f %%", claims[i].what, got, claims[i].want)
			}
			if got < claims[i].want-5 {
				low = fmt.Sprintf("%s: %.1f %% of GPU time is more than 5 points under %.0f %%", claims[i].what, got, claims[i].want)
			}
		}
		if low == "" || t.Failed() {
			return
		}
		if try == tries {
			t.Error(low)
		}
	}
}

// Two tenants that ask for all they can get have 60 and 20 percent of GPU time,
// although their kernels differ in length a hundred times, and each alone has no
// more than its own share.
func TestShares(t *testing.T) {
	times := []string{"short=50us", "medium=1ms", "long=5ms"}
	each(t, node.Options{KernelTimes: times}, func(t *testing.T, n *node.Node, e engine) {
		start := func(t *testing.T, compute string, args ...string) container {
			c, s := e.talk(t, append(share("4Gi"), "GPUSHARE_COMPUTE="+compute), append([]string{"saturate", "--kernel"}, args...)...)
			expect(t, s, "running")
			return c
		}
		for _, c := range []struct {
			name         string
			first, other []string
		}{
			{"asynchronous", []string{"short", "--mode", "async"}, []string{"long", "--mode", "async"}},
			// A program that waits for each kernel of 50 us cannot fill 60 % by itself.
			{"waiting for each kernel", []string{"medium", "--mode", "sync"}, []string{"long", "--mode", "sync"}},
			{"graphs", []string{"short", "--mode", "graph"}, []string{"long", "--mode", "graph", "--nodes", "1"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				a := start(t, "60%", c.first...)
				time.Sleep(settle)
				within5(t, n, claim{"first alone", a, 60})
				b := start(t, "20%", c.other...)
				time.Sleep(settle)
				within5(t, n, claim{"first beside the other", a, 60}, claim{"other beside the first", b, 20})
				a.remove()
				time.Sleep(settle / 4)
				within5(t, n, claim{"other alone", b, 20})
				b.remove()
			})
		}
	})
}

// A running tenant gets another share of both kinds without a restart.
func TestLiveSet(t *testing.T) {
	each(t, node.Options{KernelTimes: []string{"spin=200us"}}, func(t *testing.T, n *node.Node, e engine) {
		c, s := e.talk(t, append(share("1Gi"), "GPUSHARE_COMPUTE=20%"),
			"alloc", "--fill", "--rounds", "3", "--hold", "stdin")
		// What the context takes is counted; the rest is the program's.
		first := filled(t, expect(t, s, "filled"))
		expect(t, s, "holding")
		set := func(args ...string) node.Result { return n.CLI(within(t), append([]string{"set", c.id}, args...)...) }
		if r := set("--gpu-memory", "3Gi"); r.Err != nil {
			t.Fatal(r.Err)
		}
		if err := s.Next(); err != nil {
			t.Fatal(err)
		}
		if more := filled(t, expect(t, s, "filled")); more != 2*gib {
			t.Errorf("after 1Gi -> 3Gi the running program got %d bytes more, want %d", more, 2*gib)
		}
		expect(t, s, "holding")
		if r := set("--gpu-memory", "2Gi"); r.Err == nil || r.Code != 6 || !code.MatchString(r.Stderr) {
			t.Errorf("lowering below what is in use: exit %d, %q", r.Code, r.Stderr)
		}
		if r := set("--gpu-memory", "81Gi"); r.Code != 6 {
			t.Errorf("raising beyond the GPU: exit %d, %q", r.Code, r.Stderr)
		}
		if err := s.Next(); err != nil {
			t.Fatal(err)
		}
		if more := filled(t, expect(t, s, "filled")); more != 0 {
			t.Errorf("refused changes gave %d bytes", more)
		}
		if got := high(t, n, c); got != 3*gib || first == 0 {
			t.Errorf("high-water %d, want %d", got, 3*gib)
		}
		c.remove()

		b, run := e.talk(t, append(share("1Gi"), "GPUSHARE_COMPUTE=20%"), "saturate", "--kernel", "spin")
		expect(t, run, "running")
		time.Sleep(settle)
		within5(t, n, claim{"before", b, 20})
		if r := n.CLI(within(t), "set", b.id, "--gpu-compute", "70%", "--gpu-compute-max", "70%"); r.Err != nil {
			t.Fatal(r.Err)
		}
		time.Sleep(100 * time.Millisecond) // resize is in force in 50 ms
		within5(t, n, claim{"after set 70%", b, 70})
		if r := n.CLI(within(t), "set", b.id, "--gpu-compute", "10%", "--gpu-compute-max", "10%"); r.Err != nil {
			t.Fatal(r.Err)
		}
		time.Sleep(100 * time.Millisecond)
		within5(t, n, claim{"after set 10%", b, 10})
	})
}

func filled(t *testing.T, line string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.Fields(line)[1], 10, 64)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return n
}
