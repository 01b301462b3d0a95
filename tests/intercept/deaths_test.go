// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"fmt"
	"testing"
	"time"
)

// Processes are killed at random moments and replaced, some leave a forked child, and
// there is no daemon: whoever lives on is not blocked for longer than a scheduler's
// slip, and a second after the last death ledger and simulator agree on what is left.
func TestDeathsBlockNobody(t *testing.T) {
	const limit, second = 4096 * mib, time.Second
	kills := often(300, 6000)
	if sanitized() {
		kills = 60
	}
	n := simulate(t)
	program := compile(t, "deaths.c")
	die := func(kills int) (longest, calls uint64, took time.Duration) {
		c := n.container(limit)
		began := time.Now()
		h := c.start(true, program, fmt.Sprint(kills), "1000")
		took = time.Since(began)
		if _, err := fmt.Sscan(h.lines[len(h.lines)-1], &longest, &calls); err != nil || len(h.lines) != 1 {
			t.Fatalf("%q: %v", h.lines, err)
		}
		// Bytes come back within a second to who asks for them.
		all := limit - 3*contextBytes
		within := fmt.Sprintf("within=1000,%d", all)
		if out, err := c.run(compile(t, "tenant.c"), "init", within); err != nil || out != "within 0\n" {
			t.Errorf("after %d kills: %v, output %q", kills, err, out)
		}
		end := time.Now().Add(second)
		for time.Now().Before(end) && n.gpu().Used != 2*contextBytes {
			time.Sleep(10 * time.Millisecond)
		}
		// The one who took it all is dead in turn; a sweep of the daemon's finds it.
		var charged uint64
		for end := time.Now().Add(second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if charged = c.swept(); charged == 2*contextBytes {
				break
			}
		}
		if g := n.gpu(); g.Used != 2*contextBytes || charged != g.Used {
			t.Errorf("after %d kills the ledger has %d bytes, the simulator %d, two contexts %d", kills, charged, g.Used, 2*contextBytes)
		}
		h.in.Close()
		if err := h.cmd.Wait(); err != nil {
			t.Errorf("after %d kills: %v", kills, err)
		}
		waitFor(t, "an empty GPU", func() bool { return n.gpu().Used == 0 })
		return longest, calls, took
	}
	quiet, _, _ := die(0)
	longest, calls, took := die(kills)
	if g := n.gpu(); g.High > limit {
		t.Errorf("the simulator held %d bytes over the limit", g.High-limit)
	}
	t.Logf("SIMULATED: %d kills in %v, %d calls of the bystanders, the longest blocked %v; without kills %v",
		kills, took.Round(time.Millisecond), calls, time.Duration(longest), time.Duration(quiet))
	if longest > uint64(50*time.Millisecond)+quiet {
		t.Errorf("a call of a bystander was blocked for %v", time.Duration(longest))
	}
}
